"""An example: an engine of one's own. It belongs in a module of `engines/`, and `engine_for` chooses it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark import Ola, Study
from veilmark.engines.recoder import Recoder
from veilmark.engines.writing import write_rows
from veilmark.study import opening as sources
from veilmark.tables.cells import encode
from veilmark.tables.domain import Domain


class Arrow:
    """Arrow tables in memory. What it lacks of `engines/base.py` needs SQL (`query`, `holding`) or persons (`visits`,
    `group_persons`), so it measures and anonymizes tables of one record per person, and no more."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        """Nothing to close."""

    def open(self, source, csv=None, joined=False):
        return ArrowTable(self, source)


class ArrowTable:
    label = "the frame"

    def __init__(self, engine, data):
        self.engine, self._data = engine, data
        self.columns = {f.name: "number" if pa.types.is_integer(f.type) else "text" for f in data.schema}

    def _clean(self, column):
        """An empty text is missing."""
        values = self._data[column].combine_chunks()
        return pc.if_else(pc.equal(values, ""), None, values) if self.columns[column] == "text" else values

    def domain(self, column):
        return Domain.of(self._clean(column).unique(), column)

    def group(self, columns):
        clean = pa.table({name: self._clean(name) for name in columns})
        return encode(clean.group_by(list(columns)).aggregate([([], "count_all")]), columns)

    def write_recoded(self, recoding, columns, path, pseudonyms=None, order=None):
        recoder = Recoder(recoding, columns)
        write_rows(recoder.batches(self._data.to_batches()), path, order, recoder.labels)


def test_it_gives_the_same_numbers_as_duckdb(monkeypatch):
    rng = np.random.default_rng(3)
    ages, cities = rng.integers(20, 60, 300), rng.choice(["Bonn", "Ulm", "", None], 300)
    data = pa.table({"age": ages, "city": pa.array(cities.tolist()), "ill": rng.choice(list("abc"), 300)})
    roles = {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 20]}}, "city": "quasi", "ill": "sensitive"}
    study, method = Study.of(data, roles), Ola(k=4, suppression=0.1)
    measured, released = study.measure(), study.anonymize(method, seed=5)
    monkeypatch.setattr(sources, "engine_for", lambda *_: Arrow())
    assert study.measure().to_dict() == measured.to_dict()
    again = study.anonymize(method, seed=5)
    assert again.to_dict() == released.to_dict()
    assert again.table().to_pylist() == released.table().to_pylist()

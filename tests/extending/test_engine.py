"""An example: an engine of one's own. It belongs in a module of `engines/`, and `engine_for` chooses it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from veilmark import Ola, Study
from veilmark.cells import CellIndex, encode, row_codes
from veilmark.domain import Domain
from veilmark.workbench import sources


class Arrow:
    """Arrow tables in memory. What it lacks of `engines/base.py` needs SQL (`query`, `holding`) or persons (`visits`,
    `group_persons`), so it measures and anonymizes tables of one record a person, and no more."""

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

    def write_recoded(self, recoding, columns, path, pseudonyms=None):
        rows = row_codes(self._data.combine_chunks().to_batches()[0], recoding.columns, recoding.domains)
        groups = np.array([of[codes] for of, codes in zip(recoding.codes, rows, strict=True)])
        place = CellIndex(recoding.classes, [Domain(of, of) for of in recoding.labels]).find_codes(groups)
        new = {c: of.take(pa.array(g)) for c, of, g in zip(recoding.columns, recoding.labels, groups, strict=True)}
        if recoding.local:
            new = {c: of.take(pa.array(place)) for c, of in zip(recoding.columns, recoding.class_labels, strict=True)}
        keep = pa.array(place >= 0 if recoding.local else place < 0)
        release = pa.table({c: new.get(c, self._data[c]) for c in columns}).filter(keep)
        (pq.write_table if path.suffix == ".parquet" else pa.csv.write_csv)(release, path)


def test_it_gives_the_same_numbers_as_duckdb(monkeypatch):
    rng = np.random.default_rng(3)
    ages, cities = rng.integers(20, 60, 300), rng.choice(["Bonn", "Ulm", "", None], 300)
    data = pa.table({"age": ages, "city": pa.array(cities.tolist()), "ill": rng.choice(list("abc"), 300)})
    roles = {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 20]}}, "city": "quasi", "ill": "sensitive"}
    study, method = Study.of(data, roles), Ola(k=4, suppression=0.1)
    measured, released = study.measure(), study.anonymize(method)
    monkeypatch.setattr(sources, "engine_for", lambda *_: Arrow())
    assert study.measure().to_dict() == measured.to_dict()
    again = study.anonymize(method)
    assert again.to_dict() == released.to_dict()
    assert again.table().to_pylist() == released.table().to_pylist()

"""The values of a column and how many records have each, kept for a while; and the first rows of a table as text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from veilmark.engines.files import find_files
from veilmark.hierarchy import IntervalSpec
from veilmark.study.opening import engine_of, open_source
from veilmark.study.spec import Attribute
from veilmark.study.study import Study
from veilmark.tables.cells import Cells
from veilmark.tables.domain import as_text, to_numbers

MOST_KEPT = 8

_counted: dict[tuple[object, ...], Cells] = {}
"""The values of the columns that were looked at last, so that each change in the form need not read the table again."""


def values_of(study: Study, column: str, missing: Sequence[str] = ()) -> Cells:
    """The values of a column of the study's source, and how many records have each."""
    key = (str(study.folder), repr(study.spec.source), _stamp(study), column, tuple(missing))
    found = _counted.get(key)
    if found is None:
        found = _count(study, column, missing)
        while len(_counted) >= MOST_KEPT:
            _counted.pop(next(iter(_counted)), None)
        _counted[key] = found
    return found


def _stamp(study: Study) -> object:
    """What changes when the source does; of a database that is not known, so it is asked again after a minute."""
    path = study.source()[0]
    if not isinstance(path, str):
        return time.monotonic() // 60
    return tuple((str(f), f.stat().st_mtime_ns, f.stat().st_size) for f in find_files(path))


def _count(study: Study, column: str, missing: Sequence[str]) -> Cells:
    attribute = Attribute(role="other", missing=list(missing) or None)
    spec = study.spec.model_copy(update={"attributes": {column: attribute}, "person": None})
    bare = replace(study, spec=spec)
    with engine_of(bare) as engine:
        return open_source(engine, bare).group([column])


def frequent_values(study: Study, column: str, most: int) -> tuple[list[tuple[str, int]], int]:
    """The commonest values with their records, and how many different ones there are; missing is the empty text."""
    cells = values_of(study, column)
    order = np.argsort(-cells.records, kind="stable")[:most]
    texts = cells.domains[0].text
    listed = [(texts[int(cells.codes[0, i])].as_py() or "", int(cells.records[i])) for i in order]
    return listed, len(cells.domains[0])


def first_rows(study: Study, rows: int) -> tuple[dict[str, str], pa.Table]:
    """The columns of the study's source with their kinds, and its first rows."""
    with engine_of(study) as engine:
        table = open_source(engine, study)
        return dict(table.columns), table.sample(rows)


def texts_of(column: pa.ChunkedArray) -> list[str | None]:
    """The values of a column as text."""
    values = column.combine_chunks()
    try:
        return list(as_text(values).to_pylist())
    except pa.ArrowException:
        return [str(value) for value in values.to_pylist()]


def are_amounts(study: Study, rows: pa.Table) -> bool:
    """Whether the quasi-identifiers look like amounts, by their first values and their hierarchies."""
    specs = [study.spec.attributes[name].hierarchy for name in study.quasi]
    if not all(spec is None or isinstance(spec, IntervalSpec) for spec in specs):
        return False
    return all(to_numbers(as_text(rows[name].combine_chunks())) is not None for name in study.quasi)

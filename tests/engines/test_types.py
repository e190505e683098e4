"""Columns of Arrow's rarer types: read as what they mean, or refused by name."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilmark.errors import DataError, OutputError
from veilmark.study.study import Study
from veilmark.veil.ola import Ola

HALF = pa.array([0.5, None, 2.0], pa.float32()).cast(pa.float16())
SOME_ID = uuid.UUID(int=7)
KINDS = {
    "half": (HALF, ["0.5", "2", None]),
    "duration": (pa.array([90, None, 5], pa.duration("s")), ["5", "90", None]),
    "fine duration": (pa.array([dt.timedelta(seconds=1), None, None], pa.duration("ms")), ["1000", None]),
    "small decimal": (pa.array([Decimal("1.5"), None, None]).cast(pa.decimal32(3, 1)), ["1.5", None]),
    "id": (pa.array([SOME_ID.bytes, None, None], pa.binary(16)).cast(pa.uuid()), [str(SOME_ID), None]),
    "view": (pa.array(["x", None, "y"], pa.string_view()), ["x", "y", None]),
    "nothing": (pa.nulls(3), [None]),
}


def source(kind, form, folder):
    table = pa.table({"q": ["a"] * 3, "x": KINDS[kind][0]})
    if form == "frame":
        return table
    pq.write_table(table, folder / "s.parquet")
    return str(folder / "s.parquet")


@pytest.mark.parametrize("form", ["frame", "parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_rare_types_are_read(tmp_path, kind, form):
    given, expected = source(kind, form, tmp_path), KINDS[kind][1]
    levels = Ola(k=1, levels={"q": 0, "x": 0})
    labels = Study.of(given, {"q": "quasi", "x": "quasi"}).anonymize(levels).table()["x"].to_pylist()
    assert sorted(set(labels), key=lambda v: (v is None, v)) == expected
    published = Study.of(given, {"q": "quasi", "x": "other"})
    for suffix in ("csv", "parquet"):
        made = published.anonymize(Ola(k=2), tmp_path / f"o.{suffix}", order="keep")
        assert made.table()["x"].null_count == sum(v is None for v in labels)


def test_types_that_nothing_compares_are_named(tmp_path):
    months = pa.table({"q": ["a"] * 2, "x": pa.array([pa.MonthDayNano([1, 2, 3])] * 2)})
    with pytest.raises(DataError, match=r"Column 'x' has values of the type month_day_nano_interval"):
        Study.of(months, {"q": "quasi", "x": "quasi"}).measure()
    study = Study.of(months, {"q": "quasi", "x": "other"})
    assert study.anonymize(Ola(k=2), tmp_path / "o.csv").records == 2
    with pytest.raises(OutputError, match=r"cannot hold \(month_day_nano_interval\)"):
        study.anonymize(Ola(k=2), tmp_path / "o.parquet")
    wide = pa.table({"q": ["a"], "x": pa.array([Decimal(1)], pa.decimal256(60, 1))})
    with pytest.raises(DataError, match=r"Column 'x' of the frame has the type decimal256\(60, 1\), which cannot"):
        Study.of(wide, {"q": "quasi"}).measure()


@pytest.mark.parametrize("place", [3, 1_999])
@pytest.mark.parametrize("text", ["x" * 3_000_000, "y\n," * 1_000_000])
def test_a_cell_of_many_megabytes_is_published(tmp_path, place, text):
    """As the last line, too, which DuckDB may leave out without a word."""
    texts = [text if i == place else str(i) for i in range(2_000)]
    study = Study.of(pa.table({"q": ["a"] * 2_000, "x": texts}), {"q": "quasi", "x": "other"})
    made = study.anonymize(Ola(k=2), tmp_path / "o.csv", order="keep")
    assert made.records == 2_000
    assert (tmp_path / "o.csv").stat().st_size > 3_000_000
    with pytest.raises(DataError, match=r"longer than 2 MB.*write the table as Parquet"):
        made.table()

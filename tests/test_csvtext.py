"""CSV is written alike everywhere: minimal quotes, and no line that a reader would skip."""

from __future__ import annotations

import csv
import datetime as dt
import io
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark import csvtext
from veilmark.csvtext import CsvWriter
from veilmark.output import write_table

TEXTS = st.one_of(st.none(), st.text('ab,;"\n\r é', max_size=4))


def written(path, *batches):
    with CsvWriter(path, batches[0].schema) as writer:
        for batch in batches:
            writer.write(batch)
    return path.read_bytes().decode()


def field(value):
    """The obvious way to write one value."""
    if value is None:
        return ""
    quote = not value or any(c in value for c in ',"\r\n')
    return '"' + value.replace('"', '""') + '"' if quote else value


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=8), st.integers(0, 8))
def test_quotes_stand_only_where_they_must(tmp_path_factory, rows, cut):
    path = tmp_path_factory.getbasetemp() / "quotes.csv"
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    arrays = [pa.array(columns[0], pa.string()), pa.array(columns[1], pa.large_string())]
    arrays.append(pa.array(columns[2], pa.string()).dictionary_encode())
    batch = pa.RecordBatch.from_arrays(arrays, ["a", 'b"', "c,"])
    expected = 'a,"b""","c,"\n' + "".join(",".join(map(field, row)) + "\n" for row in rows)
    assert written(path, batch.slice(0, cut), batch.slice(cut)) == expected


@given(st.lists(TEXTS, max_size=8))
def test_a_single_column_has_no_blank_line(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "single.csv"
    raw = written(path, pa.record_batch({"a": pa.array(values, pa.string())}))
    assert raw == "a\n" + "".join((field(v) or '""') + "\n" for v in values)
    assert len(list(csv.reader(io.StringIO(raw, newline="")))) == len(values) + 1


VALUES = {
    "whole": pa.array([1, None, -3]),
    "float": pa.array([0.1, None, 1e20]),
    "truth": pa.array([True, None, False]),
    "day": pa.array([dt.date(2020, 1, 2), None, dt.date(1, 1, 1)]),
    "moment": pa.array([dt.datetime(2020, 1, 2, 3, 4, 5, 120000), None, dt.datetime(2020, 1, 2)]),
    "moment in UTC": pa.array([dt.datetime(2020, 1, 2), None, None], pa.timestamp("us", "Europe/Berlin")),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("-2.00")]),
    "time": pa.array([dt.time(3, 4), None, dt.time(5)]),
    "list": pa.array([[1, 2], None, []]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_other_values_are_written_as_duckdb_writes_them(tmp_path, kind):
    table = pa.table({"v": VALUES[kind], "x": ["a", "b", "c"]})
    write_table(table, tmp_path / "ours.csv")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone='UTC'")
        connection.register("t", table)
        connection.execute(f"COPY t TO '{tmp_path / 'theirs.csv'}' (FORMAT csv, HEADER)")
    assert (tmp_path / "ours.csv").read_bytes() == (tmp_path / "theirs.csv").read_bytes()


def test_long_texts_are_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(csvtext, "MOST_BYTES", 100)
    values = [str(i) * 30 for i in range(9)]
    assert written(tmp_path / "x.csv", pa.record_batch({"a": values})) == "\n".join(["a", *values]) + "\n"

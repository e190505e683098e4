"""The same table gives the same numbers from every kind of source."""

from __future__ import annotations

import gzip

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from veilmark.engines.duckdb import DuckDB
from veilmark.errors import DataError, OptionError, VeilmarkWarning
from veilmark.tables.classes import ClassTable

TABLE = pa.table(
    {
        "zip": ["01234", "01234", "1234", None, "01234", ""],
        "age": pa.array([30, 30, 31, None, 30, 31], pa.int32()),
        "weight": [70.5, 70.5, 80.0, None, 70.5, 80.0],
        "born": pa.array([19000, 19000, 19001, None, 19000, 19001], pa.date32()),
        "note": ["a, b", 'say "x"', "line\nbreak", "café", "日本", "plain"],
    }
)
QUASI = ["zip", "age", "weight", "born"]


@pytest.fixture
def engine():
    with DuckDB(threads=2, memory="1GB") as engine:
        yield engine


def from_csv(folder, **options):
    pa_csv.write_csv(TABLE, folder / "t.csv", **options)
    return folder / "t.csv"


def from_parquet(folder):
    pq.write_table(TABLE, folder / "t.parquet", row_group_size=2)
    return folder / "t.parquet"


def from_glob(folder):
    for i in range(3):
        pq.write_table(TABLE.slice(2 * i, 2), folder / f"part{i}.parquet")
    return str(folder / "part*.parquet")


def from_gzip(folder):
    (folder / "t.csv.gz").write_bytes(gzip.compress(from_csv(folder).read_bytes()))
    return folder / "t.csv.gz"


def from_relation(folder):
    path = from_parquet(folder)
    return duckdb.connect().sql(f"FROM '{path}'")


def from_pandas(folder):
    return TABLE.to_pandas()


SOURCES = {
    "csv": from_csv,
    "csv in semicolons": lambda f: from_csv(f, write_options=pa_csv.WriteOptions(delimiter=";")),
    "csv in tabs": lambda f: from_csv(f, write_options=pa_csv.WriteOptions(delimiter="\t")),
    "gzipped csv": from_gzip,
    "parquet": from_parquet,
    "parquet glob": from_glob,
    "arrow": lambda f: TABLE,
    "arrow dictionaries": lambda f: TABLE.set_column(0, "zip", TABLE["zip"].dictionary_encode()),
    "pandas": from_pandas,
    "polars": lambda f: pl.from_arrow(TABLE),
    "duckdb relation": from_relation,
}


@pytest.mark.parametrize("source", SOURCES)
def test_same_classes(engine, tmp_path, source):
    table = engine.open(SOURCES[source](tmp_path))
    classes = ClassTable.build(table, QUASI, ["note"])
    got = dict(zip(zip(*(classes.texts(c) for c in QUASI), strict=True), classes.records.tolist(), strict=True))
    assert got == {
        ("01234", "30", "70.5", "2022-01-08"): 3,
        ("1234", "31", "80", "2022-01-09"): 1,
        (None, "31", "80", "2022-01-09"): 1,
        (None, None, None, None): 1,
    }
    assert sorted(classes.histograms["note"].domain.text.to_pylist()) == sorted(TABLE["note"].to_pylist())
    assert table.count() == 6
    assert table.missing("zip") == 2
    assert table.sample(2).num_rows == 2
    assert list(table.columns) == TABLE.column_names


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_are_found(engine, tmp_path, encoding):
    rows = "".join(f"{i % 3},café\n" for i in range(50))
    (tmp_path / "t.csv").write_bytes(f"a,b\n{rows}".encode(encoding))
    table = engine.open(tmp_path / "t.csv")
    assert list(table.columns) == ["a", "b"]
    assert table.domain("b").text.to_pylist() == ["café"]


def test_latin_letters_are_read_with_a_note(engine, tmp_path):
    (tmp_path / "t.csv").write_bytes("näme,b\n1,café\n".encode("latin-1"))
    with pytest.warns(VeilmarkWarning, match="Not UTF-8, so read as Windows-1252"):
        table = engine.open(tmp_path / "t.csv")
    assert list(table.columns) == ["näme", "b"]
    assert table.domain("b").text.to_pylist() == ["café"]


def test_quotes_are_found(engine, tmp_path):
    (tmp_path / "t.csv").write_text("'a';'b'\n'1';'x;y'\n'2';'z'\n")
    assert engine.open(tmp_path / "t.csv").domain("b").text.to_pylist() == ["x;y", "z"]


def test_windows_line_ends_and_a_field_of_two_lines(engine, tmp_path):
    (tmp_path / "t.csv").write_bytes(b'a,b\r\n1,"x\r\ny"\r\n2,z\r\n')
    assert engine.open(tmp_path / "t.csv").count() == 2


def test_files_of_one_pattern_must_agree(engine, tmp_path):
    (tmp_path / "t1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "t2.csv").write_text("b,a\n1,2\n")
    with pytest.raises(DataError, match=r"t2\.csv' does not have the same columns"):
        engine.open(str(tmp_path / "t*.csv"))


def test_packed_rows_and_the_group_by_agree(engine, tmp_path, monkeypatch):
    table = engine.open(from_parquet(tmp_path))
    dense = table.group(QUASI)
    monkeypatch.setattr("veilmark.engines.duckdb.FEW_VALUES", 1)
    grouped = table.group(QUASI)
    assert dense.codes.tolist() == grouped.codes.tolist()
    assert dense.records.tolist() == grouped.records.tolist()


def test_closing_leaves_no_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with DuckDB() as engine:
        engine.open(duckdb.connect().sql("SELECT 1 AS a")).count()
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("settings", [{"threads": -1}, {"memory": "much"}])
def test_settings_that_make_no_sense(settings):
    with pytest.raises(OptionError, match="Give threads as a whole number"):
        DuckDB(**settings)


def test_a_pandas_frame_with_a_mixed_column(engine):
    with pytest.raises(DataError, match="Column 'a' of the frame mixes types"):
        engine.open(pd.DataFrame({"a": [1, "x", 2.5]}))


def test_a_pandas_frame_with_a_column_twice(engine):
    with pytest.raises(DataError, match="more than one column called 'a'"):
        engine.open(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_something_that_is_no_table(engine):
    with pytest.raises(DataError, match="A dict is not a table"):
        engine.open({"a": [1]})


def test_not_a_number_and_missing_are_one_value_also_where_statistics_leave_it_out(tmp_path):
    pq.write_table(pa.table({"x": [1.0, 2.0, float("nan"), None, float("nan")]}), tmp_path / "n.parquet")
    with DuckDB() as engine:
        table = engine.open(tmp_path / "n.parquet")
        assert table.missing("x") == 3
        assert table.group(["x"]).records.tolist() == [1, 1, 3]
        assert len(table.group(["x"]).domains[0]) == 3


def test_a_folder_named_like_a_column_does_not_replace_it(tmp_path):
    for folder in ("year=1999", "state=FL"):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"year": ["1980", "1981"]}), tmp_path / folder / "p.parquet")
        (tmp_path / folder / "c.csv").write_text("year\n1980\n1981\n")
    with DuckDB() as engine:
        for file in ("year=1999/p.parquet", "year=1999/c.csv", "state=FL/c.csv"):
            table = engine.open(tmp_path / file)
            assert list(table.columns) == ["year"]
            assert table.group(["year"]).domains[0].text.to_pylist() == ["1980", "1981"]
        assert list(engine.open(tmp_path / "state=FL/p.parquet").columns) == ["year", "state"]

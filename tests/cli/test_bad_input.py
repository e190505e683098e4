"""Bad input gets one clear paragraph, exit code 2, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from strength import PATIENCE
from veilmark.cli.main import main
from veilmark.engines.sources import PostgresTable, SparkFiles
from veilmark.errors import DataError
from veilmark.study.study import Study

STUDY = "version: 1\nsource: {source}\nattributes: {{a: {{role: quasi}}, s: {{role: sensitive}}}}\n"

FILES = {
    "an empty file": (b"", "is empty"),
    "blank lines only": (b"\n\n\n", "is empty"),
    "a header only": (b"a,s\n", "has column names but no records"),
    "a row too short": (b"a,s\n1,x\n2\n", "Line 3 .* has 1 field, but the first line names 2 columns"),
    "a row too long": (b"a,s\n1,x\n2,y,z\n", "Line 3 .* has 3 fields"),
    "a quote never closed": (b'a,s\n1,"x\n2,y\n', "quote"),
    "a column twice": (b"a,s,a\n1,x,2\n", "more than one column called 'a'"),
    "a column without a name": (b"a,s,\n1,x,2\n", "no name for column 3"),
    "a NUL byte at the start": (b"a,s\n\x00\x01,x\n", "NUL bytes"),
    "a NUL byte far down": (b"a,s\n" + b"1,x\n" * 2000 + b"2,\x00y\n", "'s' contains a NUL byte"),
    "a long line": (b"a,s\n1," + b"x" * 5_000_000 + b"\n", "longer than 2 MB"),
    "one long line": (b"x" * 5_000_000, "longer than 1 MB"),
    "a row too short after blank lines": (b"\n\na,s\n1,x\n2\n", "Line 5 .* has 1 field,"),
    "a bare return in a row": (b"a,s\n1,x\ry\n2,z\n", "Line 3 .* has 1 field,"),
    "a line of Excel only": (b"sep=;\r\n", "is empty"),
    "a zipped file": (b"PK\x03\x04" + bytes(100), r"is compressed \(zip"),
}


def study_of(folder, data):
    (folder / "t.csv").write_bytes(data)
    (folder / "study.yaml").write_text(STUDY.format(source="t.csv"))
    return str(folder / "study.yaml")


def fails(capsys, *arguments, code=2):
    assert main(list(map(str, arguments))) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert len(err) < 1000
    return err


@pytest.mark.parametrize("fault", FILES)
def test_a_broken_csv(tmp_path, capsys, fault):
    data, words = FILES[fault]
    err = fails(capsys, "measure", study_of(tmp_path, data))
    assert re.search(words, err), err


def test_a_message_shows_no_row(tmp_path, capsys):
    err = fails(capsys, "measure", study_of(tmp_path, b"a,s\n1,x\nSECRET-NAME\n"))
    assert "SECRET" not in err


@pytest.mark.parametrize("form", ['delimiter: "||"', "quote: '\"\"'"])
def test_a_form_that_is_not_one_character(tmp_path, capsys, form):
    path = study_of(tmp_path, b"a,s\n1,x\n")
    (tmp_path / "study.yaml").write_text(STUDY.format(source=f"{{path: t.csv, {form}}}"))
    assert "is not one character" in fails(capsys, "measure", path)


@pytest.mark.filterwarnings("ignore::veilmark.errors.VeilmarkWarning")
@pytest.mark.parametrize("data", [b"\n\na,s\n1,x\n", b"sep=;\r\na;s\r\n1;x\n", b"a,s\r1,x\r", b"a,s\n1,\x80\n"])
def test_odd_files_are_read(tmp_path, capsys, data):
    assert main(["measure", study_of(tmp_path, data), "--json"]) == 0
    assert '"classes": 1' in capsys.readouterr().out


def test_a_column_of_mixed_types_is_text(tmp_path, capsys):
    assert main(["measure", study_of(tmp_path, b"a,s\n1,x\n1.0,y\nabc,2024-01-01\n"), "--json"]) == 0
    assert '"classes": 3' in capsys.readouterr().out


def test_a_folder_in_place_of_a_file(tmp_path, capsys):
    path = study_of(tmp_path, b"a,s\n1,x\n")
    assert "is a folder" in fails(capsys, "measure", path, "--data", tmp_path)


def test_a_parquet_file_that_is_none(tmp_path, capsys):
    path = study_of(tmp_path, b"a,s\n1,x\n")
    (tmp_path / "x.parquet").write_text("not parquet")
    assert "cannot be read as Parquet" in fails(capsys, "measure", path, "--data", tmp_path / "x.parquet")


def test_a_misspelt_file_and_column_get_a_hint(tmp_path, capsys):
    path = study_of(tmp_path, b"a,s\n1,x\n")
    assert "Did you mean 't.csv'" in fails(capsys, "measure", path, "--data", tmp_path / "tt.csv")
    (tmp_path / "study.yaml").write_text("version: 1\nsource: t.csv\nattributes: {A1: {role: quasi}}\n")
    assert "no column 'A1'" in fails(capsys, "measure", path)


@pytest.mark.parametrize(
    "verb",
    [
        ["measure"],
        ["score"],
        ["breach", "--records", "t.csv"],
        ["monitor", "--log", "t.csv"],
        ["anonymize", "--k", "2", "-o", "x.csv"],
        ["apply", "recoding.yaml", "-o", "x.csv"],
        ["utility", "t.csv"],
        ["attack", "t.csv"],
        ["compare"],
        ["hierarchy", "a"],
        ["report", "-o", "x.html"],
        ["feasible", "--population", "t.csv", "--recipients", "2"],
        [
            "release",
            "--recipients",
            "a,b",
            "--population",
            "t.csv",
            "--identity",
            "a",
            "--decoys",
            "1",
            "--covers",
            "1",
        ],
    ],
    ids=lambda of: of[0],
)
def test_a_table_in_place_of_a_study(tmp_path, capsys, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)
    study_of(tmp_path, b"a,s\n1,x\n")
    said = fails(capsys, verb[0], "t.csv", *verb[1:])
    assert "This is a table, not a study. Run: veilmark init t.csv" in said
    assert {p.name for p in tmp_path.iterdir()} == {"t.csv", "study.yaml"}


def test_a_table_is_told_by_its_name_and_a_study_by_its_first_lines(tmp_path, capsys):
    (tmp_path / "my table.parquet").write_bytes(b"PAR1")
    assert f"veilmark init '{tmp_path}/my table.parquet'" in fails(capsys, "measure", tmp_path / "my table.parquet")
    study_of(tmp_path, b"a,s\n1,x\n1,y\n")
    (tmp_path / "study.txt").write_text(STUDY.format(source="t.csv"))
    assert main(["measure", str(tmp_path / "study.txt")]) == 0
    capsys.readouterr()
    assert "no file" in fails(capsys, "measure", tmp_path / "nowhere.csv")


def test_an_address_is_taken_as_it_is_written(tmp_path, capsys):
    """One slash less, and Spark would look elsewhere."""
    study = study_of(tmp_path, b"a,s\n1,x\n1,y\n")
    for options in (["--population", "s3a://bucket/everybody.parquet"], ["--data", "hdfs:///new.parquet"]):
        assert f"'{options[1]}'" in fails(capsys, "measure", study, *options)


ADDRESS = "postgresql://me:sesame@/db?password=sesame"


def test_init_takes_no_address(tmp_path, capsys):
    said = fails(capsys, "init", ADDRESS, "-o", tmp_path / "new.yaml")
    assert said.startswith("Error: This is a URL")
    assert "source: {engine: postgres" in said
    assert "sesame" not in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["measure", ADDRESS],
        ["measure", "STUDY", "--data", ADDRESS],
        ["measure", "STUDY", "--population", ADDRESS],
        ["score", "STUDY", "--published", ADDRESS],
        ["breach", "STUDY", "--records", ADDRESS],
        ["apply", "STUDY", ADDRESS, "-o", "x.csv"],
        ["attack", "STUDY", ADDRESS],
        ["anonymize", "STUDY", "--k", "2", "-o", ADDRESS],
        ["monitor", "STUDY", "--log", ADDRESS],
        ["report", "STUDY", ADDRESS, "-o", "x.html"],
    ],
    ids=lambda of: " ".join(of).replace(ADDRESS, "ADDRESS"),
)
def test_a_password_is_never_repeated(tmp_path, capsys, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    study = study_of(tmp_path, b"a,s\n1,x\n1,y\n")
    assert "sesame" not in fails(capsys, *[study if of == "STUDY" else of for of in arguments])


def test_a_table_where_the_source_is_a_file(tmp_path, capsys):
    study = study_of(tmp_path, b"a,s\n1,x\n1,y\n")
    words = "'clinic.voters' names a database table (`table:`), but the source of this study is a file"
    assert words in fails(capsys, "measure", study, "--population", "table:clinic.voters")
    for table in (PostgresTable("postgresql://me:sesame@/db", "clinic.voters"), SparkFiles(table="clinic.voters")):
        with pytest.raises(DataError, match="but the source of this study is a file") as caught:
            Study.open(study).measure(population=table)
        assert words in str(caught.value)


def test_persons_that_are_missing(tmp_path, capsys):
    path = study_of(tmp_path, b"id,a,s\n1,1,x\n,1,y\n")
    (tmp_path / "study.yaml").write_text(STUDY.format(source="t.csv") + "person: id\n")
    assert "is empty in 1 records" in fails(capsys, "measure", path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--threshold", "2"], "2 is not. Write 2%"),
        (["--population-size", "1"], "smaller than the 2"),
        (["--population-size", "0"], "--population-size"),
        (["--population-size", "5", "--population", "t.csv"], "not both"),
        (["--threads", "0"], "--threads"),
        (["--memory", "much"], "memory=much"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_options_that_make_no_sense(tmp_path, capsys, options, words):
    assert words in fails(capsys, "measure", study_of(tmp_path, b"a,s\n1,x\n2,y\n"), *options)


def test_an_ordered_distance_without_an_order(tmp_path, capsys):
    path = study_of(tmp_path, b"a,s\n1,low\n2,high\n")
    text = "version: 1\nsource: t.csv\nattributes: {s: {role: sensitive, distance: ordered}}\n"
    (tmp_path / "study.yaml").write_text(text)
    assert "order: [low, medium, high]" in fails(capsys, "measure", path)
    (tmp_path / "study.yaml").write_text(text.replace("ordered}", "ordered, order: [low]}"))
    assert "lacks the values 'high'" in fails(capsys, "measure", path)


def test_init_does_not_overwrite(tmp_path, capsys):
    path = study_of(tmp_path, b"a,s\n1,x\n")
    err = fails(capsys, "init", tmp_path / "t.csv", "-o", path)
    assert "exists already" in err


def test_an_output_folder_that_is_not_there(tmp_path, capsys):
    err = fails(capsys, "sample", "hospital", "-o", tmp_path / "no" / "x.csv")
    assert "cannot be written" in err


def test_an_output_without_a_known_ending(tmp_path, capsys):
    assert "must end in .csv or .parquet" in fails(capsys, "sample", "hospital", "-o", tmp_path / "x.xlsx")
    assert not list(tmp_path.iterdir())


def veilmark(*arguments, **options):
    command = [sys.executable, "-c", "from veilmark.cli.main import run; run()", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_a_full_disk_leaves_nothing(tmp_path, name):
    def little_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = veilmark("sample", "voters", "--size", "50000", "-o", tmp_path / name, preexec_fn=little_room)
    out, err = done.communicate(timeout=PATIENCE)
    assert (done.returncode, out) == (1, ""), err
    assert "cannot be written" in err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


ENDLESS = """
import os
from veilmark.cli.main import run
from veilmark.engines.duckdb import DuckDB
fetch = DuckDB.run
def endless(self, statement):
    os.write(int(os.environ["BEGUN"]), b"!")
    return fetch(self, "SELECT count(*) FROM range(1000000000) a, range(1000000000) b")
DuckDB.run = endless
run()
"""


STOPPED = (1, "", "Error: Stopped. No unfinished output was left.\n")


@contextmanager
def endless(folder, **options):
    """A statement that takes ages stands for a source that takes long; yields the process when it is at it."""
    path = study_of(folder, b"a,s\n1,x\n")
    before = set(folder.iterdir())
    reading, writing = os.pipe()
    running = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, "measure", path, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "BEGUN": str(writing)},
        pass_fds=[writing],
        **options,
    )
    os.close(writing)
    begun = os.read(reading, 1)  # Empty where the process ends before it has begun.
    os.close(reading)
    assert begun, running.communicate()
    try:
        yield running, before
    finally:
        running.kill()  # Where it was not stopped, it would never end.
        running.wait()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_stops_cleanly(tmp_path, name):
    with endless(tmp_path) as (running, before):
        running.send_signal(getattr(signal, name))
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out, err) == STOPPED
    assert set(tmp_path.iterdir()) == before


def test_nohup_is_respected(tmp_path):
    with endless(tmp_path, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as (running, before):
        running.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out, err) == STOPPED
    assert set(tmp_path.iterdir()) == before


def test_a_signal_leaves_no_half_written_output(tmp_path):
    running = veilmark("sample", "voters", "--size", "50000000", "-o", tmp_path / "x.parquet")
    while not list(tmp_path.iterdir()):
        assert running.poll() is None, running.communicate()
        time.sleep(0.1)
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out, err) == STOPPED
    assert not list(tmp_path.iterdir())


def test_no_permission(tmp_path, capsys, monkeypatch):
    """Root may read everything, so that the refusal is played here."""
    import pyarrow as pa

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    path = study_of(tmp_path, b"a,s\n1,x\n")
    monkeypatch.setattr(pa, "input_stream", refuse)
    assert "cannot be read: Permission denied" in fails(capsys, "measure", path)


@pytest.mark.heavy
def test_a_line_of_a_gigabyte(tmp_path, capsys):
    with (tmp_path / "t.csv").open("wb") as out:
        out.write(b"a,s\n1,")
        for _ in range(1024):
            out.write(b"x" * (1 << 20))
    (tmp_path / "study.yaml").write_text(STUDY.format(source="t.csv"))
    assert "longer than 2 MB" in fails(capsys, "measure", tmp_path / "study.yaml")

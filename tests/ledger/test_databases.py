"""Opening and making ledgers: older and newer ones, what is none, and what is said of it."""

from __future__ import annotations

import os
import sqlite3
import sys

import pytest
from sqlalchemy import text

from ledger.helpers import ONE, PUBLIC, SECRET, all_end_well, forked, old_ledger, prepare, rows_of
from veilmark.errors import DataError, OptionError, OutputError
from veilmark.ledger import Ledger, schema
from veilmark.ledger.schema import MIGRATIONS
from veilmark.workbench import ledger as verbs

TRIGGERS = "SELECT name FROM sqlite_master WHERE type = 'trigger'"


@pytest.fixture
def older(tmp_path, key):
    """A ledger of version 1, which had no guards and no seals, with a release in it."""
    path = old_ledger(tmp_path / "old.db", key, "started", "prepared", version=1)
    assert rows_of(path, "SELECT version FROM veilmark_schema") == [(1,)]
    assert rows_of(path, TRIGGERS) == []
    return path


# --- versions ----------------------------------------------------------------------------------------------


def test_an_older_ledger_is_brought_up_to_date(older, key):
    ledger = Ledger.open(older)
    assert rows_of(older, "SELECT version FROM veilmark_schema") == [(len(MIGRATIONS),)]
    assert len(rows_of(older, TRIGGERS)) == 5
    assert ledger.verify(key).ok
    assert ledger.secrets(ONE, key) == SECRET
    assert ledger.upgrade(key) == 2
    assert Ledger.open(older).append("published", ONE, {}, key=key).number == 4


def test_processes_that_bring_it_up_to_date_at_once(older, key):
    assert all_end_well([forked(Ledger.open, older) for _ in range(5)])
    assert Ledger.open(older).verify(key).ok


def test_a_step_that_fails_leaves_the_ledger_as_it_was(older, monkeypatch):
    def bad(connection):
        connection.exec_driver_sql("CREATE TABLE veilmark_half (x)")
        connection.exec_driver_sql("CREATE TABLE veilmark_half (x)")

    before = rows_of(older, "SELECT * FROM sqlite_master")
    monkeypatch.setattr(schema, "MIGRATIONS", [*MIGRATIONS, bad])
    with pytest.raises(OutputError, match="cannot be used: table veilmark_half already exists"):
        Ledger.open(older)
    assert rows_of(older, "SELECT * FROM sqlite_master") == before
    assert rows_of(older, "SELECT version FROM veilmark_schema") == [(1,)]


def test_a_newer_ledger_is_refused(ledger, where):
    with ledger.database.writing() as connection:
        connection.execute(text("UPDATE veilmark_schema SET version = 99"))
    with pytest.raises(DataError, match=r"newer veilmark \(its version is 99, .* Update veilmark"):
        Ledger.open(where)


# --- making ------------------------------------------------------------------------------------------------


def test_processes_that_make_a_ledger_at_once_share_it(where):
    def work(i):
        Ledger.open(where, create=True).append("note", None, {"i": i})

    assert all_end_well([forked(work, i) for i in range(6)])
    assert sorted(e.public["i"] for e in Ledger.open(where).entries()) == list(range(6))


def test_a_ledger_is_not_made_unless_asked_for(where, tmp_path):
    with pytest.raises(OptionError, match="There is no ledger"):
        Ledger.open(where)
    with pytest.raises(OptionError, match="there is no folder"):
        Ledger.open(tmp_path / "nowhere" / "l.db", create=True)
    Ledger.open(where, create=True)
    assert Ledger.open(where).entries() == []


@pytest.mark.parametrize("name", ["a b?mode=ro&x=%41#.db", "file:l.db", "ü:memory:", "-l"])
def test_any_file_name_will_do(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Ledger.open(name, create=True).append("note", None, PUBLIC)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert Ledger.open(tmp_path / name).verify().entries == 1


# --- what is no ledger -------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"zip,age\n13053,28\n" * 99, b"SQLite format 3\0" + b"x" * 5000])
def test_other_files_are_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "x.db"
    path.write_bytes(content)
    for create in (False, True):
        with pytest.raises((DataError, OptionError), match=r"no ledger in|is not a ledger"):
            Ledger.open(path, create)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_another_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(OptionError, match="There is no ledger in"):
        Ledger.open(path, create=True)
    assert path.read_bytes() == before
    with pytest.raises(OptionError, match="There is no ledger"):
        Ledger.open(tmp_path, create=True)


def test_a_file_cut_short_is_refused(tmp_path, key):
    path = tmp_path / "x.db"
    prepare(Ledger.open(path, create=True), key, ONE)
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(DataError, match="is not a ledger, or it is damaged"):
        Ledger.open(path).verify()


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("mysql://me:hush@host/db", "not in mysql"),
        ("sqlite:///x.db", "Give a path"),
        ("://", "is not valid"),
        ("postgresql://me:hush@host:port/db", "is not valid"),
        ("env:VEILMARK_NOWHERE", "VEILMARK_NOWHERE, which is not set"),
    ],
)
def test_other_places_are_refused(where, message):
    with pytest.raises(OptionError, match=message) as caught:
        Ledger.open(where, create=True)
    assert "hush" not in str(caught.value)


def test_a_server_that_is_not_there(tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(OptionError, match=r"The ledger 'postgresql://me:\*\*\*@/db' cannot be used") as caught:
        Ledger.open(f"postgres://me:hush@/db?host={tmp_path}&sslpassword=hush")
    assert "hush" not in str(caught.value)


def test_psycopg_is_asked_for_when_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(OptionError, match=r"pip install 'veilmark\[postgres\]'"):
        Ledger.open("postgresql://me@host/db")


def test_the_place_may_be_in_the_environment(where, ledger, monkeypatch):
    monkeypatch.setenv("VEILMARK_LEDGER_HERE", where)
    ledger.append("note", None, PUBLIC)
    assert len(Ledger.open("env:VEILMARK_LEDGER_HERE").entries()) == 1


def test_a_writer_that_takes_too_long_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("veilmark.ledger.database.PATIENCE", 0.05)
    ledger = Ledger.open(tmp_path / "l.db", create=True)
    with ledger.database.writing(), pytest.raises(OutputError, match="is being written by another process"):
        Ledger.open(tmp_path / "l.db").append("note", None, PUBLIC)


def test_errors_do_not_show_what_was_to_be_written(ledger):
    with pytest.raises(OutputError) as caught, ledger.database.writing() as connection:
        connection.execute(text("INSERT INTO veilmark_entries (number, body) VALUES (1, :body)"), {"body": "hush"})
    assert "hush" not in str(caught.value)
    assert caught.value.__suppress_context__


# --- to be read only ---------------------------------------------------------------------------------------


@pytest.fixture
def locked(tmp_path, key, monkeypatch):
    """A ledger that the user may not write to. (Tests may run as root, who may always.)"""
    path = tmp_path / "l.db"
    prepare(Ledger.open(path, create=True), key, ONE)
    monkeypatch.setattr(os, "access", lambda *_: False)
    return path


def test_a_ledger_that_can_only_be_read(locked, tmp_path, key):
    before, files = locked.read_bytes(), sorted(p.name for p in tmp_path.iterdir())
    ledger = Ledger.open(locked)
    assert ledger.verify(key).ok
    assert ledger.secrets(ONE, key) == SECRET
    assert [r.status for r in verbs.open_to_read(locked).releases()] == ["unfinished"]
    assert verbs.verify(locked, tmp_path / "key").entries == 2
    for work in (lambda: ledger.append("aborted", ONE, {}, key=key), ledger.check_writable):
        with pytest.raises(OutputError, match="is read-only"):
            work()
    with pytest.raises(OutputError, match="is read-only"):
        verbs.plan_to_publish(locked, tmp_path / "key")
    assert (locked.read_bytes(), sorted(p.name for p in tmp_path.iterdir())) == (before, files)


def test_an_older_ledger_that_can_only_be_read(older, key, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = older.read_bytes()
    ledger = Ledger.open(older)
    found = ledger.verify(key)
    assert (found.ok, found.sealed, found.secrets) == (True, 0, 1)
    assert "have no seal" in found.lacks
    assert (ledger.key_id(), ledger.secrets(ONE, key)) == (key.id, SECRET)
    assert older.read_bytes() == before


def test_what_is_still_in_the_log_is_read_too(locked, key):
    with sqlite3.connect(locked) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute(
            "INSERT INTO veilmark_entries SELECT 3, time, kind, release, body, NULL, hash, hash FROM veilmark_entries "
            "WHERE number = 2"
        )
        writer.commit()
        assert len(Ledger.open(locked).entries()) == 3
    writer.close()

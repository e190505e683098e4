"""Temporary folders are private and gone afterwards; those of killed processes are removed, and nobody else's."""

from __future__ import annotations

import os
import signal
import time

import pytest

from ledger.helpers import forked
from veilmark import scratch
from veilmark.cli.main import main
from veilmark.engines.duckdb import DuckDB
from veilmark.ledger import Key, Ledger
from veilmark.ledger.files import new_private_file
from veilmark.output import write_text
from veilmark.scratch import FORGOTTEN, PART, Scratch, sweep, sweep_parts


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder for temporary ones that nothing else uses."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "_swept", set())
    return tmp_path


def killed(work):
    """A process that has done `work` and was then killed, without a chance to tidy up."""
    reading, writing = os.pipe()

    def child():
        kept = work()
        os.write(writing, b"!")
        time.sleep(60)
        return kept

    process = forked(child)
    os.close(writing)  # So that reading ends where the child fails.
    done = os.read(reading, 1)
    os.close(reading)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    assert done == b"!"


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_a_folder_is_private_and_gone_afterwards(place, mask):
    before = os.umask(mask)
    try:
        with Scratch() as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
            assert folder.name.startswith(f"veilmark-scratch-{os.getpid()}-")
            (folder / "deep").mkdir()
            (folder / "deep" / "x").write_text("secret")
    finally:
        os.umask(before)
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_is_removed_at_the_next_start(place):
    def work():
        engine = DuckDB()
        (engine.folder / "recoded.parquet").write_text("the source, recoded")
        return engine

    killed(work)
    (left,) = place.iterdir()
    assert (left / "recoded.parquet").exists()
    with DuckDB() as engine:
        assert list(place.iterdir()) == [engine.folder]
    assert list(place.iterdir()) == []


def test_what_a_living_process_uses_stays(place):
    with Scratch() as mine:
        child = forked(sweep, place)
        os.waitpid(child, 0)
        sweep(place)
        assert mine.is_dir()


def test_what_is_not_ours_stays(place, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    names = ["veilmark-demo", "veilmark-scratch-notes", "veilmark-scratch-1-TOOLONGNAME", "veilmark-abcd1234"]
    for name in names:
        (place / name).mkdir()
    (place / "veilmark-scratch-1-aaaaaaaa").symlink_to(elsewhere)
    (place / "veilmark-scratch-2-aaaaaaaa").write_text("a file")
    with Scratch():
        pass
    assert sorted(p.name for p in place.iterdir()) == sorted(
        [*names, "veilmark-scratch-1-aaaaaaaa", "veilmark-scratch-2-aaaaaaaa"]
    )
    assert elsewhere.is_dir()


def test_parts_of_outputs_that_were_left_are_removed(tmp_path):
    old = time.time() - FORGOTTEN - 60
    for name in (f"{PART}aaaaaaaa.csv", f"{PART}bbbbbbbb.csv", f"tmp_{PART}cccccccc.csv", ".veilmark-mine"):
        (tmp_path / name).write_text("x")
    (tmp_path / f"{PART}folder").mkdir()
    for path in tmp_path.iterdir():
        os.utime(path, (old, old))
    (tmp_path / f"{PART}dddddddd.csv").write_text("somebody is writing this")
    write_text(tmp_path / "out.txt", "done")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".veilmark-mine", f"{PART}dddddddd.csv", "out.txt"]


def test_a_key_that_was_never_finished_is_removed(tmp_path):
    part = tmp_path / f"{PART}aaaaaaaa"
    part.write_text("half a key")
    os.utime(part, (0, 0))
    Key.open_or_make(tmp_path / "key")
    assert [p.name for p in tmp_path.iterdir()] == ["key"]


def half_made(path):
    """A ledger that a killed process was making."""

    def work():
        making = new_private_file(path)
        making.__enter__().write_text("half a ledger")
        return making

    return work


@pytest.mark.parametrize("next_command", ["list", "a new ledger"])
def test_a_ledger_that_was_never_finished_is_removed_at_once(tmp_path, next_command):
    killed(half_made(tmp_path / "l.db"))
    (left,) = tmp_path.iterdir()
    assert left.stat().st_mode & 0o777 == 0o700
    if next_command == "list":
        assert main(["ledger", "list", "--ledger", str(tmp_path / "l.db")]) == 2
    else:
        Ledger.open(tmp_path / "l.db", create=True)
    assert not left.exists()
    assert not list(tmp_path.glob(".veilmark*"))


def test_a_ledger_that_somebody_is_making_stays(tmp_path):
    with new_private_file(tmp_path / "l.db") as temporary:
        child = forked(sweep_parts, tmp_path)
        os.waitpid(child, 0)
        sweep_parts(tmp_path)
        assert temporary.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["l.db"]


@pytest.mark.parametrize("command", [["--version"], ["ledger", "list", "--ledger", "none.db"]])
def test_every_command_sweeps(place, monkeypatch, command):
    """Also one that needs no temporary files of its own."""
    killed(Scratch)
    monkeypatch.setattr(scratch, "_swept", set())
    assert len(list(place.iterdir())) == 1
    main(command)
    assert list(place.iterdir()) == []

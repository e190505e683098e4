"""Ledgers to test on: an SQLite file and, where its programs are installed, a PostgreSQL server of our own."""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from ledger.helpers import ONE, TWO, prepare
from veilmark.ledger import Key, Ledger

NUMBERS = itertools.count(1)


def programs():
    """The folder of PostgreSQL's programs: those of the system, else those of the package pgserver."""
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    spec = importlib.util.find_spec("pgserver")
    return None if spec is None else Path(spec.origin).parent / "pginstall" / "bin"


def account():
    """PostgreSQL does not run as root; then its own account is needed."""
    if os.geteuid() != 0:
        return None
    pwd = pytest.importorskip("pwd")
    try:
        return pwd.getpwnam("postgres").pw_uid
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no account postgres")


@pytest.fixture(scope="session")
def postgres():
    """A server on a socket in a folder of its own; gives the folder."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    bin_folder = programs()
    if bin_folder is None:
        pytest.skip("there is no PostgreSQL here: install it, or the package pgserver")
    user = account()
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # A socket's path must be short.
    if user is not None:
        os.chown(folder, user, -1)

    def run(program, *arguments):
        command = [bin_folder / program, "-D", folder / "data", *arguments]
        subprocess.run(command, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run("initdb", "-U", "veilmark", "-A", "trust", "-E", "UTF8", "--no-sync")
    run("pg_ctl", "-w", "-l", folder / "log", "-o", f"-k {folder} -c listen_addresses='' -c fsync=off", "start")
    yield folder
    run("pg_ctl", "-m", "immediate", "stop")
    shutil.rmtree(folder)


def new_schema(folder):
    """The URL of a schema that is empty, which is made faster than a database."""
    import psycopg

    name = f"ledger{next(NUMBERS)}"
    with psycopg.connect(f"host={folder} user=veilmark dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"postgresql://veilmark@/postgres?host={folder}&options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgres"])
def places(request):
    """Gives a new place for a ledger at each call."""
    if request.param == "postgres":
        folder = request.getfixturevalue("postgres")
        return lambda: new_schema(folder)
    folder = request.getfixturevalue("fast_folder")
    return lambda: str(folder / f"ledger{next(NUMBERS)}.db")


@pytest.fixture
def where(places):
    return places()


@pytest.fixture
def ledger(where):
    return Ledger.open(where, create=True)


@pytest.fixture
def key(tmp_path):
    return Key.open_or_make(tmp_path / "key")


@pytest.fixture
def other_key(tmp_path):
    return Key.open_or_make(tmp_path / "other.key")


@pytest.fixture
def filled(ledger, key):
    """Entries 1 to 6; 2 and 5 have secrets."""
    for release in (ONE, TWO):
        prepare(ledger, key, release)
        ledger.append("published", release, {})
    return ledger


@pytest.fixture
def fast_folder():
    """A folder in memory where there is one, for speed: what a killed process wrote is there all the same."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="veilmark-", dir=memory if os.access(memory, os.W_OK) else None))
    yield folder
    shutil.rmtree(folder)

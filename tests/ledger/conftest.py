"""Ledgers to test on: an SQLite file and, where its programs are installed, a PostgreSQL server of our own."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from ledger.helpers import ONE, TWO, prepare
from veilmark.ledger import Key, Ledger

NUMBERS = itertools.count(1)


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

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


def new_schema(postgres):
    """The URL of a schema that is empty, which is made faster than a database."""
    import psycopg

    name = f"ledger{next(NUMBERS)}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{postgres.url()}&options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgres"])
def places(request):
    """Gives a new place for a ledger at each call."""
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres")
        return lambda: new_schema(postgres)
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
        ledger.append("published", release, {}, key=key)
    return ledger


@pytest.fixture
def fast_folder():
    """A folder in memory where there is one, for speed: what a killed process wrote is there all the same."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="veilmark-", dir=memory if os.access(memory, os.W_OK) else None))
    yield folder
    shutil.rmtree(folder)

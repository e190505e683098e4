"""What the tests of the ledger share."""

from __future__ import annotations

import os
import sqlite3
import traceback

from sqlalchemy import text

from veilmark.ledger import publishing

ONE, TWO = "r00000001", "r00000002"
PUBLIC = {"study": "visits.yaml", "parameters": {"k": 5}, "recipients": [{"name": "ada"}, {"name": "bob"}]}
SECRET = {"decoys": {"ada": [{"voter": "V000123", "zip": "130**"}], "bob": [{"voter": "V000456", "zip": "14***"}]}}


def prepare(ledger, key, release):
    """A release up to its secrets, without files."""
    ledger.append("started", release, PUBLIC)
    ledger.append("prepared", release, PUBLIC, SECRET, key)


def publish(ledger, key, folder, public=PUBLIC, secret=SECRET):
    """A release of two small copies."""
    with publishing(ledger, key, folder, public, secret) as doing:
        (doing.folder / "ada.csv").write_text("zip\n130**\n")
        (doing.folder / "bob.csv").write_text("zip\n14***\n")
    return doing.release


def edit(ledger, *statements):
    """Change a ledger behind its back, as somebody would who has the database and drops its guards."""
    with ledger.database.writing() as connection:
        if connection.dialect.name == "sqlite":
            names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
            guards = [f"DROP TRIGGER {name}" for name in names]
        else:
            guards = [f"ALTER TABLE veilmark_{t} DISABLE TRIGGER ALL" for t in ("entries", "wrapped_keys")]
        for statement in (*guards, *statements):
            connection.execute(text(statement))


def rows_of(path, query):
    with sqlite3.connect(path) as connection:
        return connection.execute(query).fetchall()


def forked(work, *arguments):
    """Run `work` in a process of its own; gives its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def all_end_well(children):
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * len(children)

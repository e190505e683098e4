"""What the tests of the ledger share."""

from __future__ import annotations

import os
import sqlite3
import traceback

from sqlalchemy import StaticPool, create_engine, text

from veilmark.ledger import publishing
from veilmark.ledger.chain import BEGINNING, Link, about_old_secret, canonical, hash_of, now
from veilmark.ledger.keys import seal
from veilmark.ledger.schema import MIGRATIONS
from veilmark.ledger.secret import wrap
from veilmark.ledger.store import insert_link

ONE, TWO = "r00000001", "r00000002"
PUBLIC = {"study": "visits.yaml", "parameters": {"k": 5}, "recipients": [{"name": "ada"}, {"name": "bob"}]}
SECRET = {"decoys": {"ada": [{"voter": "V000123", "zip": "130**"}], "bob": [{"voter": "V000456", "zip": "14***"}]}}


def prepare(ledger, key, release):
    """A release up to its secrets, without files."""
    ledger.append("started", release, PUBLIC, key=key)
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
            guards = [f"ALTER TABLE veilmark_{t} DISABLE TRIGGER ALL" for t in ("entries", "wrapped_keys", "seals")]
        for statement in (*guards, *statements):
            connection.execute(text(statement))


def forge(ledger, kind, release, body, **fields):
    """Put in an entry at the end as somebody would who has the database and no key: well hashed, in its turn or not."""
    last = list(ledger.links())[-1]
    link = Link(last.number + 1, now(), kind, release, canonical(body), None, last.hash, "")._replace(**fields)
    with ledger.database.writing() as connection:
        insert_link(connection, link._replace(hash=hash_of(link)))


def old_ledger(path, key, *kinds, version=2):
    """A ledger as veilmark wrote it before entries were sealed: a release that went through these steps."""
    with sqlite3.connect(path) as connection:
        engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
        with engine.begin() as tables:
            for step in MIGRATIONS[:version]:
                step(tables)
            tables.exec_driver_sql(f"UPDATE veilmark_schema SET version = {version}")
            previous = BEGINNING
            for number, kind in enumerate(kinds, 1):
                link = Link(number, now(), kind, ONE, canonical(PUBLIC), None, previous, "")
                if kind == "prepared":
                    data_key = os.urandom(32)
                    secret = seal(data_key, canonical(SECRET).encode(), about_old_secret(link))
                    link = link._replace(secret=secret, key_id=key.id, wrapped=wrap(data_key, number, key))
                link = link._replace(hash=hash_of(link))
                insert_link(tables, link)
                previous = link.hash
    connection.close()
    return path


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

"""The ledger's tables, and the steps that bring an older ledger up to date."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Column, Connection, Integer, LargeBinary, MetaData, Table, Text, inspect, select

_metadata = MetaData()
ENTRIES = Table(
    "veilmark_entries",
    _metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("time", Text),
    Column("kind", Text),
    Column("release", Text),
    Column("body", Text),
    Column("secret", LargeBinary),
    Column("previous", Text),
    Column("hash", Text),
)
WRAPPED = Table(
    "veilmark_wrapped_keys",
    _metadata,
    Column("entry", Integer, primary_key=True, autoincrement=False),
    Column("key_id", Text),
    Column("wrapped", LargeBinary),
)
SEALS = Table(
    "veilmark_seals",
    _metadata,
    Column("entry", Integer, primary_key=True, autoincrement=False),
    Column("seal_key", Text),
    Column("mac", LargeBinary),
    Column("signer", Text),
    Column("signature", LargeBinary),
)
SCHEMA = Table("veilmark_schema", _metadata, Column("version", Integer))


def version_of(connection: Connection) -> int:
    """How many of the steps a database has seen; 0 where there is no ledger in it."""
    if not inspect(connection).has_table(SCHEMA.name):
        return 0
    return connection.execute(select(SCHEMA.c.version)).scalar_one()


def migrate(connection: Connection) -> None:
    """Take the steps that are missing, in the transaction that is open."""
    steps = MIGRATIONS[version_of(connection) :]
    for step in steps:
        step(connection)
    if steps:
        connection.execute(SCHEMA.update().values(version=len(MIGRATIONS)))


def _tables(connection: Connection) -> None:
    blob = "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"
    for statement in (
        "CREATE TABLE veilmark_schema (version INTEGER NOT NULL)",
        "INSERT INTO veilmark_schema VALUES (1)",
        "CREATE TABLE veilmark_entries (number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, "
        f"release TEXT, body TEXT NOT NULL, secret {blob}, previous TEXT NOT NULL, hash TEXT NOT NULL)",
        "CREATE TABLE veilmark_wrapped_keys (entry INTEGER PRIMARY KEY REFERENCES veilmark_entries, "
        f"key_id TEXT NOT NULL, wrapped {blob} NOT NULL)",
    ):
        connection.exec_driver_sql(statement)


def _guards(connection: Connection) -> None:
    """Entries are added at the end and never changed. Who drops the guards is found out by the chain."""
    for statement in _SQLITE_GUARDS if connection.dialect.name == "sqlite" else _POSTGRES_GUARDS:
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql("CREATE INDEX veilmark_entries_release ON veilmark_entries (release)")


def _seals(connection: Connection) -> None:
    """A seal and a signature for each entry, outside the chain: a new key seals all entries anew."""
    blob = "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"
    connection.exec_driver_sql(
        "CREATE TABLE veilmark_seals (entry INTEGER PRIMARY KEY REFERENCES veilmark_entries, seal_key TEXT NOT NULL, "
        f"mac {blob} NOT NULL, signer TEXT, signature {blob})"
    )
    connection.exec_driver_sql(_SQLITE_SEALS if connection.dialect.name == "sqlite" else _POSTGRES_SEALS)


_REFUSAL = "entries of a ledger are never changed or removed"
_SQLITE_GUARDS = (
    *(
        f"CREATE TRIGGER veilmark_no_{verb.lower()} BEFORE {verb} ON veilmark_entries "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
        for verb in ("UPDATE", "DELETE")
    ),
    # INSERT OR REPLACE would replace an entry without a DELETE that a trigger sees.
    "CREATE TRIGGER veilmark_at_the_end BEFORE INSERT ON veilmark_entries "
    "WHEN NEW.number <> (SELECT COALESCE(MAX(number), 0) + 1 FROM veilmark_entries) "
    f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    "CREATE TRIGGER veilmark_keep_keys BEFORE DELETE ON veilmark_wrapped_keys "
    f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
)
_POSTGRES_GUARDS = (
    "CREATE FUNCTION veilmark_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
    "CREATE TRIGGER veilmark_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON veilmark_entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION veilmark_refuse()",
    "CREATE TRIGGER veilmark_keep_keys BEFORE DELETE OR TRUNCATE ON veilmark_wrapped_keys "
    "FOR EACH STATEMENT EXECUTE FUNCTION veilmark_refuse()",
)
_SQLITE_SEALS = (
    f"CREATE TRIGGER veilmark_keep_seals BEFORE DELETE ON veilmark_seals BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
)
_POSTGRES_SEALS = (
    "CREATE TRIGGER veilmark_keep_seals BEFORE DELETE OR TRUNCATE ON veilmark_seals "
    "FOR EACH STATEMENT EXECUTE FUNCTION veilmark_refuse()"
)
SQLITE_GUARDS = frozenset((*_SQLITE_GUARDS, _SQLITE_SEALS))
"""The triggers of a ledger in SQLite, as they were made."""
GUARDS = frozenset(
    (
        ("veilmark_no_change", ENTRIES.name),
        ("veilmark_keep_keys", WRAPPED.name),
        ("veilmark_keep_seals", SEALS.name),
    )
)
"""Those in PostgreSQL, and their tables."""

MIGRATIONS: list[Callable[[Connection], None]] = [_tables, _guards, _seals]
"""A step a version, oldest first. A step that was shipped is never edited: a new one is added."""

SEALED = 3
"""From this version on there is a table of seals."""

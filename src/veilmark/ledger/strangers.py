"""What a ledger's database may not hold: triggers, rules and views by which somebody without the key could keep entries from
being written, or show others than there are. They need no key, leave the chain as it is, and so no seal finds them.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from veilmark.ledger.schema import ENTRIES, GUARDS, SCHEMA, SEALS, SQLITE_GUARDS, WRAPPED

TABLES = frozenset(table.name for table in (ENTRIES, WRAPPED, SEALS, SCHEMA))
INSERT = 4
"""The bit of PostgreSQL's `tgtype` that says that a trigger fires when a row is put in, which none of ours does."""

_SQLITE = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')"
_POSTGRES_TRIGGERS = (
    "SELECT t.tgname, c.relname, t.tgtype FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
    "WHERE NOT t.tgisinternal AND pg_table_is_visible(c.oid)"
)
_POSTGRES_RULES = (
    "SELECT r.rulename, c.relname FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class "
    "WHERE c.relname LIKE 'veilmark%' AND pg_table_is_visible(c.oid)"
)


def stranger_in(connection: Connection) -> str | None:
    """The first of them, if there is one."""
    found = _in_sqlite(connection) if connection.dialect.name == "sqlite" else _in_postgres(connection)
    return min(found, default=None)


def _in_sqlite(connection: Connection) -> list[str]:
    return [
        f"{row.type} '{row.name}'"
        for row in connection.execute(text(_SQLITE))
        if row.tbl_name.lower() in TABLES and row.sql not in SQLITE_GUARDS
    ]


def _in_postgres(connection: Connection) -> list[str]:
    """A view is a table with a rule."""
    triggers = [
        f"trigger '{row.tgname}'"
        for row in connection.execute(text(_POSTGRES_TRIGGERS))
        if row.relname in TABLES and ((row.tgname, row.relname) not in GUARDS or row.tgtype & INSERT)
    ]
    rules = connection.execute(text(_POSTGRES_RULES))
    return triggers + [f"rule '{row.rulename}' of '{row.relname}'" for row in rules if row.relname in TABLES]

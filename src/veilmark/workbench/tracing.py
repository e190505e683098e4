"""The verb trace: from a claim or a leaked file to its source."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa

from veilmark.engines.duckdb import DuckDB, DuckTable
from veilmark.errors import DataError, OptionError
from veilmark.trace.accuse import Traced, trace_claims, trace_file
from veilmark.trace.evidence import Marked
from veilmark.workbench.ledger import key_of, open_to_read, verify

File = str | os.PathLike[str]


def trace(
    ledger: File,
    key: File,
    claims: Any = None,
    file: Any = None,
    release: str | None = None,
    false_accusation: float = 1e-6,
) -> Traced:
    """Rank the recipients by `claims` of re-identification or by a leaked `file`, and name those who are guilty with at
    most this probability of naming any innocent one. Without `release`, all published ones are looked into."""
    if (claims is None) == (file is None):
        raise OptionError("Give --claims or --file: the persons somebody claims to have found, or a leaked table.")
    if not 0 < false_accusation < 1:
        raise OptionError(
            f"The probability of a false accusation must lie between 0 and 1, not {false_accusation:g}. Try 1e-6."
        )
    everything = _marked(ledger, key)
    if release is not None:
        open_to_read(ledger).release(release)
    marked = [m for m in everything if release in (None, m.release)]
    if not marked:
        which = (
            f"Release '{release}' was not published" if release else f"The ledger '{ledger}' has no published release"
        )
        raise OptionError(f"{which}, so there is nothing to trace.")
    with DuckDB() as engine:
        table = engine.open(claims if file is None else file)
        if not table.count():
            raise DataError(f"'{table.label}' has column names but no records, so there is nothing to trace.")
        if file is None:
            columns = (c for m in marked for c in (*m.identity, *m.columns))
            return trace_claims(marked, _columns(table, columns, "SELECT"), false_accusation, everything)
        # Of a leak, only the distinct combinations of quasi-identifiers matter.
        columns = (c for m in marked for c in m.columns)
        return trace_file(marked, _columns(table, columns, "SELECT DISTINCT"), false_accusation)


def _marked(ledger: File, key: File) -> list[Marked]:
    """What the ledger knows of all releases. A ledger that was changed is no evidence."""
    found = verify(ledger, key)
    book = open_to_read(ledger)
    if not found.ok:
        raise DataError(
            f"The ledger '{book.label}' is not as it was written: {found.what}. Nobody can be accused by it. Restore it "
            "from a backup; see: veilmark ledger verify."
        )
    secret_key = key_of(book, key)
    return [Marked.of(r.id, book.secrets(r.id, secret_key)) for r in book.releases() if r.status == "published"]


def _columns(table: DuckTable, columns: Iterable[str], verb: str) -> pa.Table:
    """The columns that a table has of those wanted, under the names wanted."""
    plain = [name for name, kind in table.columns.items() if kind != "nested"]
    listed = ", ".join(
        f"{_value(name, table.columns[name])} AS {_quoted(column)}" for column, name in matching(plain, columns).items()
    )
    return table.query(f"{verb} {listed} FROM {table.name}") if listed else pa.table({})


def matching(there: Collection[str], wanted: Iterable[str]) -> dict[str, str]:
    """Which column that is there each of those wanted is: the one of that name or, capital letters and blanks around it
    aside, the only one."""
    columns = list(dict.fromkeys(wanted))
    found = {column: column for column in columns if column in there}
    for column in columns:
        alike = [name for name in there if name not in found and _plainly(name) == _plainly(column)]
        rivals = [other for other in columns if _plainly(other) == _plainly(column)]
        if column not in found and len(alike) == len(rivals) == 1:
            found[column] = alike[0]
    return found


def _plainly(name: str) -> str:
    return name.strip().casefold()


def _value(name: str, kind: str) -> str:
    """A column; where its name has blanks around it, so may have its values."""
    return f"trim({_quoted(name)})" if kind == "text" and name != name.strip() else _quoted(name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""The verb trace: from a claim or a leaked file to its source."""

from __future__ import annotations

import os
from collections.abc import Iterable
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
    if not found.ok:
        raise DataError(
            f"The ledger '{ledger}' is not as it was written: {found.what}. Nobody can be accused by it. Restore it from a "
            "backup; see: veilmark ledger verify."
        )
    book = open_to_read(ledger)
    secret_key = key_of(book, key)
    return [Marked.of(r.id, book.secrets(r.id, secret_key)) for r in book.releases() if r.status == "published"]


def _columns(table: DuckTable, columns: Iterable[str], verb: str) -> pa.Table:
    """The columns that a table has of those wanted."""
    there = [c for c in dict.fromkeys(columns) if table.columns.get(c, "nested") != "nested"]
    listed = ", ".join('"' + c.replace('"', '""') + '"' for c in there)
    return table.query(f"{verb} {listed} FROM {table.name}") if there else pa.table({})

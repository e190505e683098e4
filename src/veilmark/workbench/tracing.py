"""The verb trace: from a claim or a leaked file to its source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from veilmark.engines.duckdb import DuckDB, DuckTable
from veilmark.errors import OptionError
from veilmark.ledger import Key, Ledger
from veilmark.trace.accuse import Traced, trace_claims, trace_file
from veilmark.trace.evidence import Marked
from veilmark.workbench.ledger import key_of, open_to_read

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
    book = open_to_read(ledger)
    marked = _marked(book, key_of(book, key), release)
    with DuckDB() as engine:
        table = engine.open(claims if file is None else file)
        if file is None:
            return trace_claims(marked, table.query(f"SELECT * FROM {table.name}"), false_accusation)
        return trace_file(marked, _labels(table, marked), false_accusation)


def _marked(book: Ledger, key: Key, release: str | None) -> list[Marked]:
    names = (
        [r.id for r in book.releases() if r.status == "published"] if release is None else [book.release(release).id]
    )
    if not names:
        raise OptionError(f"The ledger '{book.label}' has no published release to trace.")
    return [Marked.of(name, book.secrets(name, key)) for name in names]


def _labels(table: DuckTable, marked: Sequence[Marked]) -> pa.Table:
    """The distinct combinations of the leak's quasi-identifiers; of nothing else does tracing need to know."""
    wanted = dict.fromkeys(c for m in marked for c in m.columns if c in table.columns)
    if not wanted:
        return table.sample(0)
    listed = ", ".join('"' + c.replace('"', '""') + '"' for c in wanted)
    return table.query(f"SELECT DISTINCT {listed} FROM {table.name}")

"""The verb trace: from a claim or a leaked file to its source."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from veilmark.engines.duckdb import DuckDB, DuckTable
from veilmark.errors import DataError, OptionError
from veilmark.ledger import Ledger
from veilmark.messages import Message, command, param, template_of
from veilmark.trace.accuse import Traced, trace_file
from veilmark.trace.claims import trace_claims
from veilmark.trace.columns import same_name
from veilmark.trace.evidence import Marked
from veilmark.trace.shown import same_covers, shown_before
from veilmark.workbench.ledger import AnchorToKeep, Noted, key_of, open_to_read, verify
from veilmark.workbench.trace_evidence import kept
from veilmark.workbench.trace_leak import FileLeak, column_value, quoted
from veilmark.workbench.trace_record import Trace, begin, end, somebody

File = str | os.PathLike[str]


def trace(
    ledger: File,
    key: File,
    claims: Any = None,
    file: Any = None,
    release: str | None = None,
    false_accusation: float = 1e-6,
    noted: Noted | None = None,
    who: str | None = None,
    columns: Mapping[str, str] | None = None,
    anchor: AnchorToKeep | None = None,
) -> Traced:
    """Rank the recipients by `claims` of re-identification or by a leaked `file`, and name those who are guilty with at
    most this probability of naming any innocent one. Without `release`, all published ones are looked into. A ledger that
    does not agree with what was `noted` of it elsewhere is refused. The ledger records who traced what, and with which
    limit, before the evidence is compared; `who` is the user of this process if nobody is named. `columns`
    maps names of a leaked file's columns to the release's; without, they are matched by name, else by their values. `anchor`
    is written of the record before the evidence is compared: kept elsewhere, it shows that this trace was begun."""
    check_asked(claims, file, false_accusation)
    if anchor is not None:
        anchor.check()
    book, notes = _sound_ledger(ledger, key, noted)
    everything = _marked(book, key)
    if release is not None:
        book.release(release)
    marked = [m for m in everything if release in (None, m.release)]
    if not marked:
        which = (
            f"Release '{release}' was not published" if release else f"The ledger '{ledger}' has no published release"
        )
        raise OptionError(f"{which}, so there is nothing to trace.")
    kind, evidence = ("claims", claims) if file is None else ("leak", file)
    secret_key = key_of(book, key)
    with kept(evidence) as held:
        asked = Trace(kind, held.files, release, false_accusation, who or somebody(), columns or {})
        begun = begin(book, secret_key, asked, anchor)
        is_file = file is not None
        claims, file = (None, held.table) if is_file else (held.table, None)
        found = trace_marked(marked, everything, claims, file, false_accusation, columns, held.label)
    if is_file and found.accused:
        notes += same_covers(found.accused, everything)
        notes += shown_before(book.releases(), everything, {s.release: None for s in found.suspects})
    return end(book, secret_key, begun, asked, replace(found, notes=(*found.notes, *notes)))


def trace_key(key: File | None) -> File:
    """The key file, without which nothing can be traced."""
    if key is None:
        raise OptionError("Tracing needs the ledger's key file to read its secrets. Give the key file.")
    return key


def column_map(pairs: Iterable[str]) -> dict[str, str]:
    """`THEIRS=OURS` each, as names in a leak to names in the release."""
    found: dict[str, str] = {}
    for pair in pairs:
        theirs, equals, ours = (part.strip() for part in pair.rpartition("="))
        if not (equals and theirs and ours):
            raise OptionError(f"A column is mapped by THEIRS=OURS, such as region=zip, not by '{pair}'.")
        if theirs in found:
            raise OptionError(f"The column '{theirs}' is mapped twice. Map it to one column.")
        found[theirs] = ours
    return found


def check_asked(claims: Any, file: Any, false_accusation: float) -> None:
    """There is one kind of evidence, and the probability is one."""
    if (claims is None) == (file is None):
        raise OptionError(
            f"Give {param('claims')} or {param('file')}: persons whom somebody claims to have re-identified, or a "
            f"leaked table. You gave {'neither' if file is None else 'both'}."
        )
    if not 0 < false_accusation < 1:
        raise OptionError(
            f"The probability of a false accusation must lie between 0 and 1, not {false_accusation:g}. Try 1e-6."
        )


def trace_marked(
    marked: Sequence[Marked],
    everything: Sequence[Marked],
    claims: Any,
    file: Any,
    false_accusation: float,
    columns: Mapping[str, str] | None = None,
    label: str | None = None,
) -> Traced:
    """Trace by what is known of some releases; `everything` includes releases in which nobody is looked for. `label` is what
    the evidence is called, if not by its path."""
    check_asked(claims, file, false_accusation)
    with DuckDB() as engine:
        table = engine.open(claims if file is None else file)
        table.label = label or table.label
        if not table.count():
            raise DataError(f"'{table.label}' has column names but no records, so there is nothing to trace.")
        if file is None:
            wanted = (c for m in marked for c in (*m.identity, *m.columns))
            return trace_claims(marked, _columns(table, wanted, "SELECT"), false_accusation, everything)
        return trace_file(marked, FileLeak(table), false_accusation, columns, everything)


def _sound_ledger(ledger: File, key: File, noted: Noted | None) -> tuple[Ledger, list[str]]:
    """The ledger, and what it cannot show. One that was changed is no evidence."""
    found = verify(ledger, key, noted=noted)
    book = open_to_read(ledger, key)
    if not found.ok:
        raise DataError(
            f"The ledger '{book.label}' was changed: {found.what}. Nobody can be accused on its evidence. Restore "
            f"it from a backup. {command('ledger verify', lead='See')}"
        )
    return book, [] if found.lacks is None else [Message(f"The ledger is weaker evidence: {template_of(found.lacks)}")]


def _marked(book: Ledger, key: File) -> list[Marked]:
    """What the ledger knows of all releases whose copies may be in somebody's hands."""
    secret_key = key_of(book, key)
    return [Marked.of(r.id, book.secrets(r.id, secret_key)) for r in book.releases() if r.is_out]


def _columns(table: DuckTable, columns: Iterable[str], verb: str) -> pa.Table:
    """The columns that a table has of those wanted, under the names wanted."""
    plain = [name for name, kind in table.columns.items() if kind != "nested"]
    listed = ", ".join(
        f"{column_value(name, table.columns[name])} AS {quoted(column)}"
        for column, name in same_name(plain, columns).items()
    )
    return table.query(f"{verb} {listed} FROM {table.name}") if listed else pa.table({})

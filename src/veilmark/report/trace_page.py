"""The report of a trace: one HTML page that needs nothing else, for somebody who has to decide on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from veilmark import __version__
from veilmark.messages import PLAIN, spell
from veilmark.readable import probability
from veilmark.trace.accuse import Suspect, Traced
from veilmark.trace.bits import HOLDS

KINDS = {
    "decoy class claimed": "Groups of persons who are not in the data. They were put into this recipient's copy alone. "
    "<i>claims</i> says how many of the claims are about the group; it counts once.",
    "decoy class": "Groups of persons who are not in the data. They were put into this recipient's copy alone, and are "
    "in the file.",
    "cover class": "Groups of persons who are in the data, but only in few copies (<i>held_by</i> says in how many). This "
    "recipient's copy holds them, and so does the file. Of more than a few, the rarest are listed; all count.",
}

STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --mark: #b3261e; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.2rem; margin-top: 2rem; } h3 { font-size: 1rem; }
.verdict { border-left: .4rem solid var(--mark); background: var(--soft); padding: .8rem 1rem; margin: 1.2rem 0; }
.verdict.nobody { border-color: var(--line); } .verdict strong { font-size: 1.2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .5rem 0; }
th, td { text-align: left; padding: .25rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code { overflow-wrap: anywhere; } .quiet { opacity: .75; font-size: .9rem; }
@media print { body { max-width: none; margin: 0; } thead { display: table-header-group; } tr { break-inside: avoid; } }
"""


@dataclass(frozen=True)
class Exhibit:
    """What was traced, and against what: `kind` is `leak` or `claims`, `files` are (name, bytes, SHA-256)."""

    kind: str
    files: Sequence[tuple[str, int, str]]
    ledger: str
    entries: int
    head: str
    fault: str | None
    time: str

    @property
    def name(self) -> str:
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{self.files[0][0]}{more}" if self.files else "the evidence"


def trace_page(traced: Traced, exhibit: Exhibit) -> str:
    """The page. Whatever comes from data is escaped; evidence is shown against those who are named and nobody else."""
    named = [s for s in traced.suspects if s.p_value <= traced.false_accusation]
    title = f"Trace of {exhibit.name}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="quiet">{escape(exhibit.time)}, veilmark {escape(__version__)}</p>',
        _verdict(traced, named),
        *([_identical(traced)] if traced.identical else []),
        *([_confidential()] if named else []),
        "<h2>What the probabilities mean</h2>",
        _meaning(traced),
        "<h2>Recipients</h2>",
        _recipients(traced),
        *([f"<h2>Evidence</h2>{''.join(_evidence(s) + _marks(s, traced) for s in named)}"] if named else []),
        "<h2>How it can be checked</h2>",
        _provenance(traced, exhibit),
    ]
    policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    head = f'<meta charset="utf-8">{policy}<meta name="viewport" content="width=device-width">'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{escape(title)}</title><style>{STYLE}</style></head>\n'
        f"<body>\n{''.join(f'{part}{chr(10)}' for part in parts)}</body></html>\n"
    )


def _verdict(traced: Traced, named: Sequence[Suspect]) -> str:
    limit = f"{probability(traced.false_accusation)} ({in_words(traced.false_accusation)})"
    if not named:
        return (
            '<div class="verdict nobody"><strong>Nobody is named.</strong><br>No recipient agrees with the evidence so well '
            f"that chance would explain it with a probability of {limit} or less. That clears nobody.</div>"
        )
    who = "".join(
        f"<br>By chance alone, an innocent recipient (any of the {all_tested(traced)}) would look as guilty as "
        f"<b>{escape(s.name)}</b>, release {escape(s.release)}, with a probability of {_at_most(s)}"
        f"{probability(s.p_value)}: {in_words(s.p_value)}."
        for s in named
    )
    names = escape(", ".join(traced.accused))
    return f'<div class="verdict"><strong>Named: {names}</strong>{who}<br>The limit, chosen before, was {limit}.</div>'


def _identical(traced: Traced) -> str:
    """What needs no probability."""
    said = "".join(
        f"<li><code>{escape(one['evidence'])}</code> is, byte for byte, the copy of <b>{escape(one['recipient'])}</b> in "
        f"release {escape(one['release'])} (<code>{escape(one['file'])}</code>).</li>"
        for one in traced.identical
    )
    return (
        f"<p><b>The file is a recorded copy.</b> Its SHA-256 is the one that the ledger recorded at the release:</p>"
        f"<ul>{said}</ul>"
    )


def _confidential() -> str:
    return (
        "<p><b>Confidential.</b> The evidence below tells which persons or groups are decoys. Once that is known, they "
        "protect nothing any more.</p>"
    )


def _meaning(traced: Traced) -> str:
    return (
        f"<p>{escape(traced.meaning)}</p><p>The probability given for each recipient is that of <i>any</i> innocent one "
        f"among the {all_tested(traced)} agreeing so well: the number of tests is allowed for. <i>Exact</i> means that it "
        "was computed; <i>bound</i> that it is at most this. It is not the probability that a recipient is "
        "innocent, which depends on all that is known of the case besides. Nor does it tell who at the recipient's acted, "
        "or whether the copy was stolen there.</p>"
    )


def _recipients(traced: Traced) -> str:
    rows = [
        (
            s.name,
            s.release,
            f"{_at_most(s)}{probability(s.p_value)}",
            "exact" if s.tail == "exact" else "bound",
            f"{len(s.evidence):,}",
            standing(s, traced.false_accusation),
        )
        for s in traced.suspects
    ]
    left_out = (
        '<p class="quiet">What evidence there is against recipients who are not named is left out, so that their marks stay '
        "secret. The result of the trace as JSON lists it.</p>"
    )
    columns = ("recipient", "release", "probability if innocent", "kind", "pieces of evidence", "")
    return _table(columns, rows, numbers=(2, 4)) + left_out


def _evidence(suspect: Suspect) -> str:
    title = f"<h3>Against {escape(suspect.name)}, release {escape(suspect.release)}</h3>"
    if suspect.beside is not None:
        title += f"<p>The groups in the file point to this recipient together with {escape(suspect.beside)}.</p>"
    if not suspect.evidence:
        return f"{title}<p>Many small agreements, none of which says much alone.</p>"
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for piece in suspect.evidence:
        by_kind.setdefault(str(piece.get("kind", "evidence")), []).append(piece)
    return title + "".join(_pieces(kind, pieces) for kind, pieces in by_kind.items())


def _marks(suspect: Suspect, traced: Traced) -> str:
    """Every mark of the release, also those that speak for the recipient; folded up."""
    own = [table for table in traced.marks if table.num_rows and table["release"][0].as_py() == suspect.release]
    if not own:
        return ""
    table = own[0]
    shown = [name for name in table.column_names if name not in ("release", "group") and not name.startswith(HOLDS)]
    cells = [_cells(table[name]) for name in (*shown, HOLDS + suspect.name)]
    rows = [[cell or "" for cell in row] for row in zip(*cells, strict=True)]
    return (
        f"<details><summary>All {len(rows):,} marks of the release, one by one</summary><p><i>told</i>: whether the file "
        "can show it; <i>in_leak</i>: whether it does; <i>probability</i>: with which a recipient was given it. "
        "The trace can write them for all recipients as a table.</p>"
        f"{_table((*shown, f'{suspect.name} holds it'), rows)}</details>"
    )


def _cells(column: Any) -> list[str | None]:
    """Yes and no, numbers with four digits, labels as they are."""
    values = column.to_pylist()
    if str(column.type) == "bool":
        return ["yes" if value else "no" for value in values]
    if str(column.type) == "double":
        return ["" if value is None else f"{value:.4g}" for value in values]
    return [None if value is None else str(value) for value in values]


def _pieces(kind: str, pieces: Sequence[Mapping[str, Any]]) -> str:
    names = [n for n in dict.fromkeys(name for piece in pieces for name in piece) if n != "kind"]
    rows = [(str(i), *("" if p.get(n) is None else str(p[n]) for n in names)) for i, p in enumerate(pieces, 1)]
    return f"<p><b>{escape(kind)}</b>: {len(pieces):,}. {KINDS.get(kind, '')}</p>" + _table(("", *names), rows, (0,))


def _provenance(traced: Traced, exhibit: Exhibit) -> str:
    files = [(name, f"{size:,}", f"<code>{escape(digest)}</code>") for name, size, digest in exhibit.files]
    chain = (
        f"The chain of its {exhibit.entries:,} entr{'y' if exhibit.entries == 1 else 'ies'} is whole."
        if exhibit.fault is None
        else f"<b>Its chain is broken: {escape(exhibit.fault)}.</b>"
    )
    notes = "".join(f"<li>{escape(spell(note, PLAIN))}</li>" for note in traced.notes)
    record = _record(traced) if traced.record is not None else ""
    return (
        f"{_table(('file', 'bytes', 'SHA-256'), files, (1,), raw=(2,))}"
        f"<p>Ledger <code>{escape(exhibit.ledger)}</code>. {chain} Its head is <code>{escape(exhibit.head)}</code>. "
        "Checking the ledger against this head shows whether it still holds all that it held then. The same file, "
        f"ledger and key give the same result with veilmark {escape(__version__)}.</p>{record}"
        f"{f'<ul>{notes}</ul>' if notes else ''}"
    )


def _record(traced: Traced) -> str:
    record = traced.record or {}
    return (
        f"<p>Before the evidence was compared, entry {escape(str(record['entry']))} of the ledger recorded its digest, the "
        f"limit of {probability(traced.false_accusation)} and who traced: {escape(str(record['who']))}, "
        f"{escape(str(record['time']))}. The hash of that entry is <code>{escape(str(record['hash']))}</code>. Entry "
        f"{escape(str(record['verdict']))} has the digest of this verdict.</p>"
    )


def _table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = (), raw: Sequence[int] = ()
) -> str:
    """A table; all cells are escaped but those of the columns `raw`."""
    right = [' class="number"' if i in numbers else "" for i in range(len(columns))]
    top = "".join(f"<th{side}>{escape(name)}</th>" for name, side in zip(columns, right, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{right[i]}>{cell if i in raw else escape(cell)}</td>" for i, cell in enumerate(row))
        + "</tr>\n"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>\n{body}</tbody></table></div>'


def _at_most(suspect: Suspect) -> str:
    return "" if suspect.tail == "exact" else "at most "


def all_tested(traced: Traced) -> str:
    """How many were tested, and in how many releases."""
    names, releases = len({s.name for s in traced.suspects}), len({s.release for s in traced.suspects})
    said = f"{names:,} recipient{'' if names == 1 else 's'} tested"
    return said if releases < 2 else f"{said} in {releases:,} releases"


def standing(suspect: Suspect, limit: float) -> str:
    """Whether a recipient is named and, where there is evidence but it does not suffice, why not."""
    if suspect.p_value <= limit:
        return "named"
    if not suspect.evidence:
        return ""
    if suspect.p_value < 1:
        return "above the limit"
    return (
        "seen also in what others hold" if all("held_by" in e for e in suspect.evidence) else "no more than by chance"
    )


def in_words(p: float) -> str:
    """`1 in 3,100,000`, rounded so that it does not look rarer than it is."""
    if p >= 0.1:
        return f"{math.ceil(p * 100)} in 100"
    times = 1 / max(p, 1e-300)
    if times >= 1e12:
        return f"1 in 10<sup>{math.floor(math.log10(times) + 1e-9)}</sup>"
    unit = 10 ** max(math.floor(math.log10(times)) - 1, 0)
    return f"1 in {math.floor(times * (1 + 1e-9) / unit) * unit:,}"

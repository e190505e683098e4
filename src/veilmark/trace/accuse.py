"""Accuse: from evidence to ranked recipients, each with the probability that an innocent one would look as guilty.

Of a leaked file the probability rests on the keyed draw of decoys, covers and bits alone: whatever the leakers did, made-up
rows included, an innocent one's marks are independent of the leak, given everybody else's. Each test says what of it is
taken as given. The probability allows for the number of recipients tested. Nobody is named above the probability of a
false accusation that was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.charted import Charted
from veilmark.errors import DataError, OptionError, listing
from veilmark.readable import Grid, Summary
from veilmark.trace.bits import marks_of
from veilmark.trace.columns import Matched, check_map, match_columns
from veilmark.trace.covers import cover_tests
from veilmark.trace.elsewhere import avoiding, draw_weight, same_draw
from veilmark.trace.evidence import Marked
from veilmark.trace.leaked import Leaked, LeakedTable
from veilmark.trace.said import notes_on, unread
from veilmark.trace.sighting import Sighting, sightings
from veilmark.trace.tails import decoy_tail

MEANING = (
    "A secret key decided at random which groups of persons are in which recipient's copy. Nobody without the "
    "key could know this. Rows or columns may be removed, values coarsened, copies mixed. The copy of a "
    "recipient who is not involved still agrees with the file only by chance. (If real groups are kept for one "
    "recipient each, this is true only for files made from one copy; a note at the end then says so.)"
)
"""What the probability of a leaked file is, in the same words everywhere."""

LISTED = 50
"""So many cover classes are listed as evidence."""


@dataclass(frozen=True)
class Suspect:
    """One recipient of one release.

    `p_value`: the probability that an innocent recipient, any of those tested, would look as guilty; `score`: its negative
    decimal logarithm. `tail` says how it was computed: exact, or a bound (chernoff, bound). `beside`: the recipients
    together with whom the covers point to this one, if that is stronger than alone. `evidence` says what was seen.
    """

    name: str
    release: str
    score: float
    p_value: float
    tail: str
    beside: str | None = None
    evidence: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "evidence": list(self.evidence)}


@dataclass(frozen=True)
class Traced(Charted):
    """The recipients, the most suspicious first, and those who are named.

    `identical`: the recorded copies that the evidence is equal to, byte for byte. `record`: the ledger's entry that was
    written of this trace before it began. `evidence`: name, size and SHA-256 of each file that was read. `marks`: of a
    leaked file, every mark of each release (`trace/bits.py`). `columns[ours]` is the name that a column of the release has
    in a leaked file, of the release that fits best; `by_release[id]` has these names for each release. `meaning` says what
    the probabilities are.
    """

    accused: tuple[str, ...]
    suspects: tuple[Suspect, ...]
    false_accusation: float
    tested: int
    notes: tuple[str, ...] = ()
    identical: tuple[dict[str, str], ...] = ()
    record: Mapping[str, Any] | None = None
    marks: tuple[pa.Table, ...] = field(default=(), repr=False, compare=False)
    columns: Mapping[str, str] = field(default_factory=dict)
    meaning: str = ""
    by_release: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    evidence: tuple[dict[str, Any], ...] = ()

    @property
    def recipients(self) -> tuple[Suspect, ...]:
        """All recipients, the most suspicious first."""
        return self.suspects

    def chart(self) -> Any:
        """The recipients by what speaks against them."""
        from veilmark.report.trace_chart import evidence

        return evidence(self)

    def summary(self) -> Summary:
        """Without the evidence, which tells decoys."""
        rows = [
            (s.name, s.release, f"{s.p_value:.3g}", "named" if s.name in self.accused else "") for s in self.suspects
        ]
        named = f"Named: {', '.join(self.accused)}." if self.accused else "Nobody is named."
        limit = f"The probability of naming any innocent recipient is at most {self.false_accusation:g}."
        grid = Grid(("recipient", "release", "probability if innocent", ""), rows)
        return Summary(f"{named} {limit}", (grid,), (*filter(None, [self.meaning]), *self.notes))

    def to_dict(self) -> dict[str, Any]:
        return {
            "accused": list(self.accused),
            "recipients": [s.to_dict() for s in self.suspects],
            "false_accusation": self.false_accusation,
            "tested": self.tested,
            "notes": list(self.notes),
            "evidence": list(self.evidence),
            "identical": list(self.identical),
            "record": None if self.record is None else dict(self.record),
            "columns": dict(self.columns),
            "columns_by_release": {release: dict(of) for release, of in self.by_release.items()},
            "meaning": self.meaning,
        }


@dataclass(frozen=True)
class Finding:
    """A recipient's probability, before allowing for the others tested."""

    name: str
    release: str
    p_value: float
    tail: str
    evidence: tuple[dict[str, Any], ...]
    beside: str | None = None


# Leaked files.


def trace_file(
    releases: Sequence[Marked],
    leak: pa.Table | Leaked,
    false_accusation: float,
    columns: Mapping[str, str] | None = None,
    others: Sequence[Marked] = (),
) -> Traced:
    """Who leaked a file, or gave a part of it; `columns` maps names in the leak to the release's. `others` are further
    releases of the ledger, in which nobody is looked for."""
    table: Leaked = LeakedTable(leak) if isinstance(leak, pa.Table) else leak
    wanted = dict.fromkeys(c for marked in releases for c in marked.columns)
    check_map(columns or {}, table.columns, wanted)
    found: list[Finding] = []
    notes: list[str] = []
    marks = []
    matches = {marked.release: match_columns(marked, table, columns) for marked in releases}
    _refuse_misfits(matches, columns or {})
    matched: dict[str, Matched] = {}
    for marked in releases:
        match = matches[marked.release]
        seen = sightings(marked, table, match) if match.readings else []
        if not any(one.tells for one in seen):
            notes.append(unread(marked, match))
            continue
        found += _by_file(marked, seen, [*releases, *others])
        notes += notes_on(marked, seen[0])
        marks.append(marks_of(marked, seen[0]))
        matched[marked.release] = match
    check_any(found, notes, "leaked file")
    best = max(matched.values(), key=lambda match: match.fit)
    by_release = {release: match.columns for release, match in matched.items()}
    result = ranked(found, false_accusation, notes)
    return replace(result, marks=tuple(marks), columns=best.columns, by_release=by_release, meaning=MEANING)


def _refuse_misfits(matches: Mapping[str, Matched], given: Mapping[str, str]) -> None:
    """A column that is mapped must be readable as that column of some release."""
    for theirs, ours in given.items():
        having = [match for match in matches.values() if ours in match.columns or ours in match.passed]
        if having and all(ours in match.misfits for match in having):
            raise OptionError(
                f"The column '{theirs}' is mapped to '{ours}', but none of its values is a label of '{ours}' in a "
                "release, and its frequencies do not match. Map another column, or remove this mapping."
            )


def nothing_shared(marked: Marked, columns: Sequence[str]) -> str:
    """That a release has no column of the evidence."""
    names = listing(list(dict.fromkeys(columns)))
    return f"Release {marked.release} was skipped: no column has its values. Its columns are {names}."


def check_any(found: Sequence[Finding], notes: Sequence[str], what: str) -> None:
    """Refuse evidence that can be compared with no release."""
    if not found:
        raise DataError(
            f"The {what} cannot be compared with any release. {' '.join(notes)} Rename the columns to these, or "
            "map them (THEIRS=OURS). Check that the first line of the file has the column names."
        )


def _by_file(marked: Marked, seen: Sequence[Sighting], every: Sequence[Marked]) -> list[Finding]:
    """The tests of all recipients of a release: decoys, and covers by their code or as classes of one copy alone. Where the
    leak is seen at two choices of levels, both are allowed for; and so is what later releases drew, which spared decoys of
    this one."""
    others = list({of.release: of for of in every if not same_draw(marked, of)}.values())
    free = ~avoiding(marked, others)
    weight = draw_weight(marked, free, others)
    decoys = [drawn_tails(marked.drawn, one.pool_clear & free, one.pool_there, weight) for one in seen]
    covers = cover_tests(marked.holds, marked.code, seen)
    found = []
    for i, name in enumerate(marked.names):
        drawn = min(1.0, len(seen) * min(of[i] for of in decoys))
        kinds = ([drawn] if marked.drawn.any() else []) + ([float(covers.p_value[i])] if marked.coded else [])
        partner = ", ".join(marked.names[j] for j in covers.beside[i]) or None
        best = seen[int(np.argmin([of[i] for of in decoys]))]
        evidence = (*_decoys_there(marked, best, i), *_covers_there(marked, best, i))
        found.append(Finding(name, marked.release, together(*kinds), covers.tail[i], evidence, partner))
    return found


def drawn_tails(drawn: np.ndarray, clear: np.ndarray, there: np.ndarray, weight: float = 1.0) -> list[float]:
    """For each recipient, the probability that as many of its decoy classes are there: exact, for any leakers.

    Given all other recipients' (some of whom may have made the leak), its classes are a random choice from those that are
    left of the pool. Classes that the leak does not tell apart are left aside, which says nothing of whose they are; so are
    those that cannot be anybody's, as later releases tell. `weight` is how much likelier these make one draw than another.
    """
    taken = drawn.sum(axis=0)
    tails = []
    for own in drawn:
        left = clear & (taken == own)
        mine = own & clear
        hits, marked = int((mine & there).sum()), int((left & there).sum())
        tail = decoy_tail(hits, int(mine.sum()), marked, int(left.sum()))
        tails.append(min(1.0, weight * tail))
    return tails


def together(*p_values: float) -> float:
    """One probability from that of the decoys and that of the covers, which are drawn independently of each other.

    Half of the allowance goes to the covers, a quarter to the decoys, and a quarter to both: of two independent ones, the
    product is at most x with a probability of at most x·(1 - ln x).
    """
    if len(p_values) < 2:
        return min([1.0, *p_values])
    decoys, covers = p_values
    product = max(decoys * covers, 1e-300)
    return min(1.0, 4 * decoys, 2 * covers, 4 * product * (1 - math.log(product)))


def best_probability(recipients: int, decoys: int, spare: int, covers: int) -> float:
    """The least probability that a whole leaked copy can have, by decoys (with `spare` classes left in the pool) and by
    covers kept for each recipient alone."""
    kinds = [decoy_tail(decoys, decoys, decoys, decoys + spare)] if decoys else []
    others = max(recipients - 1, 1) * covers
    kinds += [decoy_tail(covers, covers, covers, others)] if covers else []
    return min(1.0, recipients * together(*kinds))


def _decoys_there(marked: Marked, seen: Sighting, i: int) -> list[dict[str, Any]]:
    hits = np.flatnonzero(marked.drawn[i] & seen.pool_clear & seen.pool_there)
    rows = marked.texts(marked.pool_codes[:, hits])
    return [{"kind": "decoy class", **dict(zip(marked.columns, row, strict=True))} for row in rows]


def _covers_there(marked: Marked, seen: Sighting, i: int) -> list[dict[str, Any]]:
    """The cover classes in the leak that few others hold, the rarest first."""
    holders = marked.holds.sum(axis=0)
    few = holders <= max(len(marked.names) // 3, 1)
    mine = np.flatnonzero(
        marked.holds[i] & seen.cover_there & (seen.counted.shown >= 0.5) & (seen.cover_group >= 0) & few
    )
    mine = mine[np.argsort(holders[mine], kind="stable")][:LISTED]
    rows = marked.texts(marked.class_codes[:, marked.covers[mine]])
    return [
        {"kind": "cover class", "held_by": int(holders[j]), **dict(zip(marked.columns, row, strict=True))}
        for j, row in zip(mine, rows, strict=True)
    ]


def ranked(found: Sequence[Finding], false_accusation: float, notes: Sequence[str]) -> Traced:
    """All recipients, each test allowed for; who lies within the chosen probability is named."""
    tests = len(found)
    suspects = []
    for one in found:
        p = min(1.0, one.p_value * tests)
        sure = float(-math.log10(max(p, 1e-300)))
        suspects.append(Suspect(one.name, one.release, sure, p, one.tail, one.beside, one.evidence))
    suspects.sort(key=lambda s: (s.p_value, s.name))
    accused = tuple(dict.fromkeys(s.name for s in suspects if s.p_value <= false_accusation))
    return Traced(accused, tuple(suspects), false_accusation, tests, tuple(notes))

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
from veilmark.errors import DataError, listing
from veilmark.trace.elsewhere import chances
from veilmark.trace.evidence import Marked, Sighting, claimed, sight
from veilmark.trace.scores import observe, score
from veilmark.trace.tails import claims_tail, decoy_tail, elsewhere_tail

LISTED = 50
"""So many cover classes are listed as evidence."""


@dataclass(frozen=True)
class Suspect:
    """One recipient of one release.

    `p_value`: the probability that an innocent recipient, any of those tested, would look as guilty; `score`: its negative
    decimal logarithm. `tail` says how it was computed: exact, or a bound (chernoff, bound). `beside`: the recipient together
    with whom the covers point to this one, if that is stronger than alone. `evidence` says what was seen.
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
    """The recipients, the most suspicious first, and those who are named."""

    accused: tuple[str, ...]
    suspects: tuple[Suspect, ...]
    false_accusation: float
    tested: int
    notes: tuple[str, ...] = ()

    def chart(self) -> Any:
        """The recipients by what speaks against them."""
        from veilmark.report.trace_chart import evidence

        return evidence(self)

    def to_dict(self) -> dict[str, Any]:
        return {
            "accused": list(self.accused),
            "recipients": [s.to_dict() for s in self.suspects],
            "false_accusation": self.false_accusation,
            "tested": self.tested,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class _Finding:
    """A recipient's probability, before allowing for the others tested."""

    name: str
    release: str
    p_value: float
    tail: str
    evidence: tuple[dict[str, Any], ...]
    beside: str | None = None


# Claims.


def trace_claims(
    releases: Sequence[Marked], claims: pa.Table, false_accusation: float, others: Sequence[Marked] = ()
) -> Traced:
    """Who gave away what led to these claims: the probability is that of claims drawn at random from the population, or made
    with copies of other releases, of these or of `others`."""
    found: list[_Finding] = []
    notes = []
    for marked in releases:
        elsewhere = chances(marked, [*releases, *others])
        hits = claimed(marked, claims, elsewhere)
        if hits is None:
            notes.append(_nothing_shared(marked, (*marked.identity, *marked.columns)))
            continue
        found += [_by_claims(marked, name, kinds) for name, kinds in hits.items()]
        if doubtful := sum(int((of > 0).sum()) for of in elsewhere.values()):
            notes.append(
                f"Release {marked.release}: {doubtful:,} of its decoys may be in classes that other releases show to "
                "others. They count for less, as claims may have come from there."
            )
    _check_any(found, notes, "claims")
    traced = _ranked(found, false_accusation, notes)
    named = [s for s in traced.suspects if s.p_value <= false_accusation]
    return replace(traced, notes=(*traced.notes, *_assumed(named, releases, false_accusation)))


def _assumed(named: Sequence[Suspect], releases: Sequence[Marked], false_accusation: float) -> list[str]:
    """What the probability of claims takes for granted, where somebody is named by it."""
    if not named:
        return []
    notes = ["The probability is that of claims made at random. Ask how they were made before you rely on it."]
    for one in named:
        marked = next(m for m in releases if m.release == one.release)
        chance = picked_tail(marked, one.name, one.evidence)
        if chance > false_accusation:
            notes.append(
                f"Somebody without any copy who lists whole small groups of persons would meet {one.name}'s groups of "
                f"decoys in release {one.release} as often with a probability of {chance:.2g} at least."
            )
    return notes


def picked_tail(marked: Marked, name: str, evidence: Sequence[Mapping[str, Any]]) -> float:
    """The least probability of hitting so many of a recipient's decoy classes by listing just as many classes of the pool:
    over the draw of classes, given everybody else's."""
    i = marked.names.index(name)
    met = len({tuple(row[c] for c in marked.columns) for row in evidence})
    left = int((marked.drawn.sum(axis=0) == marked.drawn[i]).sum())
    mine = int(marked.drawn[i].sum())
    return decoy_tail(min(met, mine), mine, min(met, left), left)


def _by_claims(marked: Marked, name: str, kinds: Sequence[Any]) -> _Finding:
    """The kinds of claims (persons who are named, and others) are tested each, and allowed for."""
    p, evidence, exact = 1.0, [], True
    for seen in kinds:
        claims, reach = (min(n, marked.population) for n in (seen.claims, seen.reach))
        tail = claims_tail(min(seen.hits, claims, reach), claims, reach, marked.population)
        if seen.chances.any():
            tail = max(tail, elsewhere_tail(seen.hits, seen.chances + claims / marked.population))
            exact = False
        p = min(p, len(kinds) * tail)
        exact &= seen.exact
        evidence += [{"kind": "decoy claimed", **row} for row in seen.evidence]
    distinct = {tuple(row.items()): row for row in evidence}
    return _Finding(name, marked.release, p, "exact" if exact else "bound", tuple(distinct.values()))


# Leaked files.


def trace_file(releases: Sequence[Marked], leak: pa.Table, false_accusation: float) -> Traced:
    """Who leaked a file, or gave a part of it."""
    found: list[_Finding] = []
    notes = []
    for marked in releases:
        seen = sight(marked, leak)
        if seen is None:
            notes.append(_nothing_shared(marked, marked.columns))
            continue
        found += _by_file(marked, seen)
        notes += _notes(marked, seen)
    _check_any(found, notes, "leaked file")
    return _ranked(found, false_accusation, notes)


def _nothing_shared(marked: Marked, columns: Sequence[str]) -> str:
    names = listing(list(dict.fromkeys(columns)))
    return f"Release {marked.release} was not looked into: no column holds its values. It has {names}."


def _check_any(found: Sequence[_Finding], notes: Sequence[str], what: str) -> None:
    if not found:
        raise DataError(
            f"The {what} can be compared with no release. {' '.join(notes)} Rename columns to these where they hold the "
            "same, and see that the first line has the names."
        )


def _notes(marked: Marked, seen: Sighting) -> list[str]:
    levels = ", ".join(f"{name} at level +{level}" if level else name for name, level in seen.levels.items())
    covers = int((seen.cover_group >= 0).sum())
    notes = [
        f"Release {marked.release}: {seen.known_rows:,} of {seen.rows:,} different rows are readable by {levels}; "
        f"{covers:,} of {len(marked.covers):,} cover classes and {int(seen.pool_clear.sum()):,} of "
        f"{len(seen.pool_clear):,} decoy candidates can be told apart; {seen.kept[0]:,} of {sum(seen.kept):,} classes that "
        "everybody holds are there."
    ]
    if marked.code is None and len(marked.covers):
        notes.append(
            f"Release {marked.release}: its covers are kept for one recipient each. What they say holds if no two "
            "recipients made the file together; what decoys say holds in any case."
        )
    return notes


def _by_file(marked: Marked, seen: Sighting) -> list[_Finding]:
    """The tests of all recipients of a release: decoys, and covers by their code or as classes of one copy alone."""
    decoys = drawn_tails(marked.drawn, seen.pool_clear, seen.pool_there)
    covers, tails, beside = _cover_tests(marked, seen)
    found = []
    for i, name in enumerate(marked.names):
        kinds = ([decoys[i]] if marked.drawn.any() else []) + ([covers[i]] if len(marked.covers) else [])
        partner = None if beside[i] < 0 else marked.names[beside[i]]
        evidence = (*_decoys_there(marked, seen, i), *_covers_there(marked, seen, i))
        found.append(_Finding(name, marked.release, together(*kinds), tails[i], evidence, partner))
    return found


def drawn_tails(drawn: np.ndarray, clear: np.ndarray, there: np.ndarray) -> list[float]:
    """For each recipient, the probability that as many of its decoy classes are there: exact, for any leakers.

    Given all other recipients' (some of whom may have made the leak), its classes are a random choice from those that are
    left of the pool. Classes that the leak does not tell apart are left aside, which says nothing of whose they are.
    """
    taken = drawn.sum(axis=0)
    tails = []
    for own in drawn:
        left = clear & (taken == own)
        mine = own & clear
        hits, marked = int((mine & there).sum()), int((left & there).sum())
        tails.append(decoy_tail(hits, int(mine.sum()), marked, int(left.sum())))
    return tails


def alone_tails(holds: np.ndarray, told: np.ndarray, there: np.ndarray) -> list[float]:
    """For each recipient, the probability that as many of the classes kept for it alone are there: a bound, if one of the
    others, or none of them, made the leak.

    Given that one's classes, all others are shared out at random; the one for which the probability is largest counts.
    (Given everybody else's, nothing would be left to chance.)
    """
    mine, hits = (holds & told).sum(axis=1), (holds & told & there).sum(axis=1)
    every, marked = int(told.sum()), int((told & there).sum())
    tails = []
    for i in range(len(holds)):
        leakers = {(0, 0), *((int(mine[j]), int(hits[j])) for j in range(len(holds)) if j != i)}
        own = int(hits[i]), int(mine[i])
        tails.append(max(decoy_tail(*own, marked - seen, every - size) for size, seen in leakers))
    return tails


def _cover_tests(marked: Marked, seen: Sighting) -> tuple[list[float], list[str], np.ndarray]:
    """For each recipient the probability, how it was computed, and beside whom."""
    names = len(marked.names)
    nobody = np.full(names, -1)
    if not len(marked.covers):
        return [1.0] * names, ["exact"] * names, nobody
    if marked.code is None:
        group = seen.cover_group
        told = (group >= 0) & (np.bincount(group + 1, minlength=2)[group + 1] == 1)
        return alone_tails(marked.holds, told, seen.cover_there), ["bound"] * names, nobody
    code, bits = observe(marked.code, marked.holds, seen.cover_group)
    if not code.length:
        return [1.0] * names, ["exact"] * names, nobody
    present = np.zeros(code.length, dtype=bool)
    told = seen.cover_group >= 0
    present[seen.cover_group[told]] = seen.cover_there[told]
    found = score(code, bits, present, seen.kept)
    return found.p_value.tolist(), ["exact" if e else "chernoff" for e in found.exact], found.beside


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
    mine = np.flatnonzero(marked.holds[i] & seen.cover_there & (seen.cover_group >= 0) & few)
    mine = mine[np.argsort(holders[mine], kind="stable")][:LISTED]
    rows = marked.texts(marked.class_codes[:, marked.covers[mine]])
    return [
        {"kind": "cover class", "held_by": int(holders[j]), **dict(zip(marked.columns, row, strict=True))}
        for j, row in zip(mine, rows, strict=True)
    ]


def _ranked(found: Sequence[_Finding], false_accusation: float, notes: Sequence[str]) -> Traced:
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

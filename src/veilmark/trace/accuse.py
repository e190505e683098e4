"""Accuse: from evidence to ranked recipients, each with the probability that an innocent one would look as guilty.

The probability rests on the keyed draw of decoys, covers and bits alone, which no recipient knows: whatever the leakers
did, an innocent one's marks are independent of the leak. It allows for the number of recipients tested. Nobody is named
above the probability of a false accusation that was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.trace.evidence import Marked, Sighting, claimed, sight
from veilmark.trace.scores import combine, observe, score
from veilmark.trace.tails import claims_tail, decoy_tail


@dataclass(frozen=True)
class Suspect:
    """One recipient of one release.

    `p_value`: the probability that an innocent recipient, any of those tested, would look as guilty; `score`: its negative
    decimal logarithm. `evidence` says what was seen.
    """

    name: str
    release: str
    score: float
    p_value: float
    tail: str
    evidence: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "evidence": list(self.evidence)}


@dataclass(frozen=True)
class Traced:
    """The recipients, the most suspicious first, and those who are named."""

    accused: tuple[str, ...]
    suspects: tuple[Suspect, ...]
    false_accusation: float
    tested: int
    notes: tuple[str, ...] = ()

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
    """A recipient's probability by each kind of evidence, before allowing for the others tested."""

    name: str
    release: str
    p_values: tuple[float, ...]
    exact: bool
    evidence: tuple[dict[str, Any], ...]


def trace_claims(releases: Sequence[Marked], claims: pa.Table, false_accusation: float) -> Traced:
    """Who gave away what led to these claims: the tail is exact where claims are drawn at random from the population."""
    found = [_by_claims(marked, claims, name) for marked in releases for name in marked.names]
    return _ranked(found, false_accusation, ())


def _by_claims(marked: Marked, claims: pa.Table, name: str) -> _Finding:
    seen = claimed(marked, claims, name)
    p = claims_tail(len(seen.hits), seen.claims, seen.decoys, marked.population)
    evidence = [{"kind": "decoy claimed", **marked.decoys[name][i]} for i in seen.hits]
    return _Finding(name, marked.release, (p,), True, tuple(evidence))


def trace_file(releases: Sequence[Marked], leak: pa.Table, false_accusation: float) -> Traced:
    """Who leaked a file, or gave a part of it."""
    found: list[_Finding] = []
    notes = []
    for marked in releases:
        seen = sight(marked, leak)
        found += _by_file(marked, seen)
        notes.append(_note(marked, seen))
    return _ranked(found, false_accusation, tuple(notes))


def _note(marked: Marked, seen: Sighting) -> str:
    levels = ", ".join(f"{name} at level +{level}" if level else name for name, level in seen.levels.items())
    covers = int((seen.cover_group >= 0).sum())
    return (
        f"Release {marked.release}: {seen.known_rows:,} of {seen.rows:,} rows are readable by {levels}; {covers:,} of "
        f"{len(marked.covers):,} cover classes and {int(seen.pool_clear.sum()):,} of {len(marked.pool):,} decoy candidates "
        f"can be told apart; {seen.kept[0]:,} of {sum(seen.kept):,} classes that everybody holds are there."
    )


def _by_file(marked: Marked, seen: Sighting) -> list[_Finding]:
    """The tests of all recipients of a release: decoys, and covers by their code or as classes of one copy alone."""
    decoys = _decoy_tests(marked, seen)
    covers, exact = _cover_tests(marked, seen)
    found = []
    for i, name in enumerate(marked.names):
        p, evidence = decoys[i]
        found.append(
            _Finding(name, marked.release, (p, *covers[i]), bool(exact[i]), (*evidence, *_held(marked, seen, i)))
        )
    return found


def _decoy_tests(marked: Marked, seen: Sighting) -> list[tuple[float, list[dict[str, Any]]]]:
    """For each recipient: its decoy classes were drawn at random from the pool, of which some are in the leak."""
    place = {tuple(labels): i for i, labels in enumerate(marked.pool)}
    clear, there = seen.pool_clear, seen.pool_there & seen.pool_clear
    tests = []
    for name in marked.names:
        own = {place[tuple(row[c] for c in marked.columns)] for row in marked.decoys[name]}
        told = [i for i in own if clear[i]]
        hits = [i for i in told if there[i]]
        p = decoy_tail(len(hits), len(told), int(there.sum()), int(clear.sum()))
        evidence = [
            {"kind": "decoy class", **dict(zip(marked.columns, marked.pool[i], strict=True))} for i in sorted(hits)
        ]
        tests.append((p, evidence))
    return tests


def _cover_tests(marked: Marked, seen: Sighting) -> tuple[list[tuple[float, ...]], np.ndarray]:
    names = len(marked.names)
    if not len(marked.covers):
        return [()] * names, np.ones(names, dtype=bool)
    if marked.code is None:
        return _alone_tests(marked, seen), np.ones(names, dtype=bool)
    code, bits = observe(marked.code, marked.holds, seen.cover_group)
    groups = code.length
    if not groups:
        return [(1.0,)] * names, np.ones(names, dtype=bool)
    present = np.zeros(groups, dtype=bool)
    told = seen.cover_group >= 0
    present[seen.cover_group[told]] = seen.cover_there[told]
    found = score(code, bits, present, seen.kept)
    return [(float(p),) for p in found.p_value], found.exact


def _alone_tests(marked: Marked, seen: Sighting) -> list[tuple[float, ...]]:
    """Classes kept for one recipient alone: which one has which was drawn at random."""
    told = (seen.cover_group >= 0) & (np.bincount(seen.cover_group + 1, minlength=2)[seen.cover_group + 1] == 1)
    there = told & seen.cover_there
    tests: list[tuple[float, ...]] = []
    for row in marked.holds:
        own = row & told
        tests.append((decoy_tail(int((own & there).sum()), int(own.sum()), int(there.sum()), int(told.sum())),))
    return tests


def _held(marked: Marked, seen: Sighting, i: int) -> list[dict[str, Any]]:
    """The cover classes in the leak that few others hold, the rarest first."""
    holders = marked.holds.sum(axis=0)
    few = holders <= max(len(marked.names) // 3, 1)
    mine = np.flatnonzero(marked.holds[i] & seen.cover_there & (seen.cover_group >= 0) & few)
    mine = mine[np.argsort(holders[mine], kind="stable")][:50]
    return [
        {
            "kind": "cover class",
            "held_by": int(holders[j]),
            **dict(zip(marked.columns, marked.classes[int(marked.covers[j])], strict=True)),
        }
        for j in mine
    ]


def _ranked(found: Sequence[_Finding], false_accusation: float, notes: Sequence[str]) -> Traced:
    """All recipients, each test allowed for; who lies within the chosen probability is named."""
    tests = len(found)
    suspects = []
    for one in found:
        p = min(1.0, combine(*one.p_values) * tests)
        tail = "exact" if one.exact else "chernoff"
        suspects.append(Suspect(one.name, one.release, float(-np.log10(max(p, 1e-300))), p, tail, one.evidence))
    suspects.sort(key=lambda s: (s.p_value, s.name))
    accused = tuple(dict.fromkeys(s.name for s in suspects if s.p_value <= false_accusation))
    return Traced(accused, tuple(suspects), false_accusation, tests, tuple(notes))

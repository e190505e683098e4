"""Other releases of the same ledger: which classes of one may hold the same persons as classes of another.

Decoys avoid classes that held decoys before (`used_before`), so that a claim points to one recipient of one release. Then
decoys of a later release tell something of those of an earlier one: where these are not. `explained` classes (of claims) or
`avoiding` ones (of files) and the `draw_weight` are what a test of the earlier draw has to allow for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veilmark.tables.domain import Domain
from veilmark.trace.evidence import Marked
from veilmark.trace.sealed import BLOCK, Labels, Values


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of a release as label numbers, with what the labels become further up and, where it is known, the values that
    they stand for."""

    columns: Sequence[str]
    above: Mapping[str, Labels]
    codes: np.ndarray
    values: Mapping[str, Values] | None = None

    @classmethod
    def of(cls, marked: Marked, codes: np.ndarray) -> Classes:
        values = None if marked.sealed is None else marked.sealed.values
        return cls(marked.columns, marked.above, codes, values)

    def __len__(self) -> int:
        return self.codes.shape[1]


def same_draw(one: Marked, other: Marked) -> bool:
    """Whether two releases are one, made twice: by the same seed, from the same data."""
    return (
        (one.names, one.columns) == (other.names, other.columns)
        and np.array_equal(one.drawn, other.drawn)
        and one.texts(one.pool_codes) == other.texts(other.pool_codes)
    )


def used_before(new: Classes, earlier: Sequence[Marked]) -> np.ndarray:
    """Which classes may be those of decoys of earlier releases: a mask."""
    used = np.zeros(len(new), dtype=bool)
    for other in earlier:
        used |= _meeting(new, Classes.of(other, other.pool_codes[:, other.drawn.any(axis=0)]))
    return used


def explained(marked: Marked, others: Sequence[Marked]) -> np.ndarray:
    """Which classes of a release's pool may be those of decoys of other releases: a mask."""
    related = [other for other in others if other.release != marked.release]
    return used_before(Classes.of(marked, marked.pool_codes), related)


def avoiding(marked: Marked, others: Sequence[Marked]) -> np.ndarray:
    """Which classes of a release's pool are known not to be its decoys, by what later releases drew that spared those: a
    mask. A release that could not spare them drew as if there were none, and tells nothing."""
    later = [
        other
        for other in others
        if other.release != marked.release and (other.sealed is None or marked.release in other.sealed.earlier)
    ]
    taken = Classes.of(marked, marked.pool_codes[:, marked.drawn.any(axis=0)])
    spared = [other for other in later if not _meeting(Classes.of(other, other.pool_codes), taken).any()]
    return used_before(Classes.of(marked, marked.pool_codes), spared)


def draw_weight(marked: Marked, free: np.ndarray, others: Sequence[Marked]) -> float:
    """How much likelier one draw of a release can be than another, given the draws of all other releases; `free` classes of
    its pool are those that these do not explain.

    A release that spares a draw A draws its own N decoy classes in order from the n(A) classes that A leaves, so the
    likelihood of what it drew is 1/(n(A)·(n(A)-1)·…·(n(A)-N+1)). Between the smallest and the largest n(A) that is a factor,
    1 where every class of the pool keeps out as many as any other, as with two releases of the same table. Where it depends
    on A whether the later release could spare at all, nothing is known, and the factor is infinite.
    """
    weight = 1.0
    taken = marked.drawn.any(axis=0)
    for later in others:
        seen = () if later.sealed is None else later.sealed.earlier
        if marked.release not in seen or not set(marked.columns) & set(later.columns):
            continue
        every = Classes.of(later, _eligible(later))
        known = used_before(every, [other for other in others if other.release in seen])
        known |= _meeting(every, Classes.of(marked, marked.pool_codes[:, taken & ~free]))
        own = _meeting(every, Classes.of(marked, marked.pool_codes[:, taken & free]))
        pool = Classes.of(marked, marked.pool_codes[:, free])
        least, most = _kept_out(pool, every, ~known, int((taken & free).sum()))
        left, crowded = int((~known).sum()), bool((known | own)[: later.pool_codes.shape[1]].any())
        weight *= _spread(left - most, left - least, int(later.drawn.sum()), crowded)
    return weight


def _eligible(marked: Marked) -> np.ndarray:
    """The classes that a release would have drawn from, had there been none before it: its pool, and those it spared."""
    spared = None if marked.sealed is None else marked.sealed.spared
    return marked.pool_codes if spared is None else np.concatenate([marked.pool_codes, spared], axis=1)


def _kept_out(pool: Classes, every: Classes, free: np.ndarray, size: int) -> tuple[int, int]:
    """The fewest and the most free classes of a later release that so many classes of a pool can keep out."""
    counts, twice = np.zeros(len(pool), dtype=np.int64), np.zeros(len(every), dtype=np.int64)
    for rows, agree in _blocks(pool, every):
        counts[rows] = (agree & free).sum(axis=1)
        twice += agree.sum(axis=0)
    counts.sort()
    apart = not (twice[free] > 1).any()
    least = counts[:size].sum() if apart else counts[:1].sum()
    return int(least), int(counts[len(counts) - size :].sum()) if size else 0


def _spread(fewest: int, largest: int, drawn: int, crowded: bool) -> float:
    if crowded:
        return 1.0 if largest < drawn else math.inf
    if fewest < drawn:
        return math.inf
    return float(np.prod((largest - np.arange(drawn)) / (fewest - np.arange(drawn))))


# Which classes agree.


def _meeting(one: Classes, other: Classes) -> np.ndarray:
    """Which classes may share a person with any of another release's: none where the two share no column."""
    found = np.zeros(len(one), dtype=bool)
    for rows, agree in _blocks(one, other):
        found[rows] = agree.any(axis=1)
    return found


def _blocks(one: Classes, other: Classes) -> Iterator[tuple[slice, np.ndarray]]:
    """Some classes at a time, which of another release's each may share a person with."""
    shared = [c for c in one.columns if c in other.columns]
    if not shared or not len(other):
        return
    fits = {c: may_agree(one, other, c) for c in shared}
    step = max(BLOCK // len(other), 1)
    for start in range(0, len(one), step):
        rows = slice(start, min(start + step, len(one)))
        agree = np.ones((rows.stop - start, len(other)), dtype=bool)
        for column in shared:
            mine, theirs = (of.codes[list(of.columns).index(column)] for of in (one, other))
            agree &= fits[column][mine[rows]][:, theirs]
        yield rows, agree


def may_agree(one: Classes, other: Classes, column: str) -> np.ndarray:
    """For each label of a column (row) and each of another release's (column), whether a person may have both: if a value
    has both or, where the values are not known, if one becomes the other further up. Where the two have no label in common
    there either, any may."""
    if one.values is not None and other.values is not None:
        sizes = len(one.above[column][0]), len(other.above[column][0])
        return _sharing(one.values[column], other.values[column], sizes)
    return _by_level(one.above[column], other.above[column])


def _sharing(one: Values, other: Values, sizes: tuple[int, int]) -> np.ndarray:
    """Which labels stand for a common value."""
    found = np.zeros(sizes, dtype=bool)
    if len(one.texts) and len(other.texts):
        (mine, value), (theirs, place) = one.pairs, other.pairs
        value_there = Domain.of(one.texts).codes_of(other.texts)[place]
        value = Domain.of(one.texts).codes_of(one.texts)[value]
        order = np.argsort(value_there, kind="stable")
        first, last = (np.searchsorted(value_there[order], value, side=side) for side in ("left", "right"))
        count = last - first
        cuts = np.flatnonzero(np.diff(np.cumsum(count) // BLOCK)) + 1
        for some in np.split(np.arange(len(value)), cuts):
            before = np.cumsum(count[some]) - count[some]
            pairs = order[np.arange(int(count[some].sum())) + np.repeat(first[some] - before, count[some])]
            found[np.repeat(mine[some], count[some]), theirs[pairs]] = True
    found[one.every] = True
    found[:, other.every] = True
    return found


def _by_level(own: Labels, theirs: Labels) -> np.ndarray:
    """Which labels become each other further up."""
    known = {text: i for i, text in enumerate(dict.fromkeys(text for of in (*own, *theirs) for text in of))}
    mine, other = (np.array([[known[text] for text in level] for level in of]) for of in (own, theirs))
    found = np.ones((mine.shape[1], other.shape[1]), dtype=bool)
    undecided = np.ones(mine.shape[1], dtype=bool)
    for low, high in [*((mine[0], level) for level in other), *((level, other[0]) for level in mine[1:])]:
        rows = undecided & np.isin(low, high)
        found[rows] = low[rows][:, None] == high
        undecided &= ~rows
    return found

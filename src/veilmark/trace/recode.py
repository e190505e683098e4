"""Codes that were exchanged one for one: which label each unknown code stands for, by how often it occurs with others.

Every code of a column is compared with every label of the release: how often it occurs, and how often together with each
value of the other columns. Square roots of counts scatter alike whatever the count, so that the sum of squared differences
is what chance explains; the assignment of codes to labels with the least sum is taken. Where several columns are coded,
each is assigned in turn given the others, until nothing changes.

What the release has of each combination is the same for all copies but for covers, which count by their chances; no
recipient's marks are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, sparse

from veilmark.trace.labels import Column, ColumnReading, apart
from veilmark.trace.leaked import Combinations

LARGEST = 2_000
"""Columns with more labels than this are not tried."""

ROUNDS = 12
FITS = 0.25
"""So far from the release's, at most, may the frequencies of the codes be under the labels they are given."""


@dataclass(frozen=True, eq=False)
class Released:
    """The release's classes: `codes[column]` the label numbers of each, `records` how many it has in a copy on average."""

    codes: Mapping[str, np.ndarray]
    records: np.ndarray


def same_shape(column: Column, up: np.ndarray, records: np.ndarray) -> float:
    """How far a column's frequencies are from a release's labels', each sorted: 0 where one may be the other recoded."""
    theirs = np.sort(column.counts.astype(float))[::-1]
    ours = np.sort(np.bincount(up, records))[::-1]
    size = max(len(theirs), len(ours))
    return apart(np.pad(theirs, (0, size - len(theirs))), np.pad(ours, (0, size - len(ours))))


def level_of(column: Column, ups: Sequence[np.ndarray], records: np.ndarray) -> tuple[int, float]:
    """The level whose labels are about as many and as frequent as a column's codes, and how far they are off."""
    codes = int((column.counts > 0).sum())
    sizes = [len(np.unique(up)) for up in ups]
    fit = [
        same_shape(column, up, records) if 1 < size <= LARGEST and codes <= 1.2 * size + 2 and codes > 1 else 1.0
        for up, size in zip(ups, sizes, strict=True)
    ]
    best = int(np.argmin(fit))
    return best, fit[best]


def match_codes(
    leak: Combinations,
    columns: Sequence[str],
    read: Mapping[str, ColumnReading],
    unread: Mapping[str, np.ndarray],
    released: Released,
) -> dict[str, ColumnReading]:
    """Readings for the columns of `unread` (what our labels become at the level that fits); `read` are those of the others.
    `leak` has the columns in the order of `columns`."""
    scale = leak.counts.sum() / max(released.records.sum(), 1e-9)
    theirs = {c: read[c].codes[leak.codes[columns.index(c)]] for c in read}
    ours = {c: read[c].up[released.codes[c]] for c in read}
    raw = {c: leak.codes[columns.index(c)] for c in unread}
    images = {c: up[released.codes[c]] for c, up in unread.items()}
    assigned: dict[str, np.ndarray] = {}
    for _ in range(ROUNDS):
        changed = False
        for c in sorted(unread, key=lambda name: len(np.unique(unread[name]))):
            beside = {o: (theirs[o], ours[o]) for o in theirs if o != c}
            one = _features(raw[c], [t for t, _ in beside.values()], [u for _, u in beside.values()], leak.counts)
            other = _features(
                images[c], [u for _, u in beside.values()], [t for t, _ in beside.values()], released.records
            )
            place = _assign(one, other * np.sqrt(scale), int(unread[c].max()) + 1)
            changed |= c not in assigned or bool((assigned[c] != place).any())
            assigned[c], theirs[c], ours[c] = place, place[raw[c]], images[c]
        if not changed:
            break
    return {c: _reading(leak, columns.index(c), assigned[c], unread[c], released, c) for c in unread}


def _features(
    codes: np.ndarray, beside: Sequence[np.ndarray], others: Sequence[np.ndarray], weight: np.ndarray
) -> np.ndarray:
    """For each code, the roots of how often it occurs: at all, and with each value of each other column. `others` are the
    other side's values of the same columns, so that both sides have as many."""
    size = int(codes.max(initial=0)) + 1
    blocks = [np.bincount(codes, weight, size)[:, None]]
    for values, there in zip(beside, others, strict=True):
        width = int(max(values.max(initial=0), there.max(initial=0))) + 1
        known = values >= 0
        pairs = sparse.coo_matrix((weight[known], (codes[known], values[known])), shape=(size, width))
        blocks.append(pairs.toarray())
    return np.sqrt(np.hstack(blocks))


def _assign(theirs: np.ndarray, ours: np.ndarray, labels: int) -> np.ndarray:
    """The label of each code, no label twice; -1 for codes beyond the labels."""
    cost = (theirs**2).sum(axis=1)[:, None] + (ours**2).sum(axis=1) - 2 * theirs @ ours.T
    rows, columns = optimize.linear_sum_assignment(cost)
    place = np.full(len(theirs), -1)
    place[rows] = columns
    return np.where(place < labels, place, -1)


def _reading(
    leak: Combinations, nth: int, place: np.ndarray, up: np.ndarray, released: Released, column: str
) -> ColumnReading:
    theirs = np.bincount(leak.codes[nth], leak.counts, len(leak.texts[nth]))
    full = np.full(len(leak.texts[nth]), -1)
    full[: len(place)] = place
    size = int(up.max(initial=0)) + 1
    read = full >= 0
    records = np.bincount(up[released.codes[column]], released.records, size)
    counts = np.bincount(full[read], theirs[read], size)
    share = float(counts.sum() / max(theirs.sum(), 1))
    return ColumnReading("codes exchanged one for one", 0, full, up, share, apart(counts, records))

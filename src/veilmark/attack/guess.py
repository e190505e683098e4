"""The best guess of a sensitive attribute, and whether it is right.

Every candidate row counts by how many published persons may lead to it. A point (a value; of numbers, one with all
within the tolerance) scores what the candidates' labels tell of it. The guess is the point with the highest score that
is not known already; of several with the same, one at random, so that each counts for its share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from veilmark.attack.candidates import expand
from veilmark.attack.compatible import blocks
from veilmark.attack.facts import contains
from veilmark.attack.labels import SAME, Meaning

BLOCK = 1 << 21
"""So many scores are held at once."""

DENSE = 1 / 4
"""Above this share of points with some weight, scores are held in a full matrix."""


@dataclass(frozen=True, eq=False)
class Truth:
    """What targets have, and what is known of it: target i has the points of the windows `low[j]` to `high[j]` for j
    from `starts[i]` to `starts[i + 1]`, which do not overlap; `known[k]` is a point known of target `owner[k]`."""

    starts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    owner: np.ndarray
    known: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def asked(self) -> np.ndarray:
        """The targets of whom there is something to guess."""
        return np.diff(self.starts) > 0

    @classmethod
    def of(
        cls, meaning: Meaning, starts: np.ndarray, values: np.ndarray, owner: np.ndarray, known: np.ndarray
    ) -> Truth:
        """Of values still to be guessed, ascending for each target, and values known."""
        point = meaning.point[values]
        low, high = meaning.low[point], meaning.high[point]
        first = np.zeros(len(values), dtype=bool)
        first[starts[:-1][np.diff(starts) > 0]] = True
        low[1:] = np.where(first[1:], low[1:], np.maximum(low[1:], high[:-1] + 1))
        return cls(starts, low, high, owner, meaning.point[known])

    def take(self, targets: np.ndarray) -> Truth:
        """The chosen targets, in that order."""
        place, window = expand(self.starts, targets)
        new = np.full(len(self.starts) - 1, -1)
        new[targets] = np.arange(len(targets))
        stay = new[self.owner] >= 0
        starts = np.append(0, np.cumsum(np.bincount(place, minlength=len(targets))))
        return Truth(starts, self.low[window], self.high[window], new[self.owner[stay]], self.known[stay])


def rightness(told: sparse.csr_array, meaning: Meaning, row: np.ndarray, truth: Truth) -> np.ndarray:
    """For each target the probability that the best guess is right; NaN where there is nothing to guess from.

    `told` holds the weight of each label (column) for each question (row); `row` is each target's question.
    """
    result = np.full(len(row), np.nan)
    order = np.argsort(row, kind="stable")
    ends = np.searchsorted(row[order], np.arange(told.shape[0] + 1))
    cost = told.astype(bool).astype(np.float64) @ np.diff(meaning.told.indptr).astype(np.float64)
    for block in blocks(cost, BLOCK):
        targets = order[ends[block[0]] : ends[block[-1] + 1]]
        mine = truth.take(targets)
        scores = _scores((told[block] @ meaning.told).tocsr(), meaning, only_best=not len(mine.known))
        result[targets] = _right(scores, row[targets] - block[0], mine)
    return result


def _scores(weights: sparse.csr_array, meaning: Meaning, only_best: bool) -> sparse.csr_array:
    """What each point scores: its own weight, of numbers with all within the tolerance."""
    if meaning.tolerance and only_best and weights.nnz > DENSE * math.prod(weights.shape):
        return _best_scores(weights, meaning)
    weights.sort_indices()
    if not meaning.tolerance:
        return weights
    size = weights.shape[1]
    keys, row = _keys(weights)
    sums = np.append(0, np.cumsum(weights.data))
    low = np.searchsorted(keys, row * size + meaning.low[weights.indices])
    high = np.searchsorted(keys, row * size + meaning.high[weights.indices], "right")
    return sparse.csr_array((sums[high] - sums[low], weights.indices, weights.indptr), weights.shape)


def _best_scores(weights: sparse.csr_array, meaning: Meaning) -> sparse.csr_array:
    """The same by a full matrix, which is quicker where many points have some weight; only the best are kept."""
    own = weights.toarray()
    sums = np.zeros((own.shape[0], own.shape[1] + 1))
    np.cumsum(own, axis=1, out=sums[:, 1:])
    scores = sums[:, meaning.high + 1]
    scores -= sums[:, meaning.low]
    scores[own == 0] = 0
    scores[scores < scores.max(axis=1, keepdims=True) * (1 - SAME)] = 0
    return sparse.csr_array(scores)


def _keys(matrix: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """A number for each place that is filled, ascending, and its row."""
    row = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    return row * matrix.shape[1] + matrix.indices, row


def _right(scores: sparse.csr_array, row: np.ndarray, truth: Truth) -> np.ndarray:
    result = np.where(np.diff(scores.indptr)[row] > 0, 0.0, np.nan)
    keys, owner = _keys(scores)
    score, open_ = scores.data, ~np.isnan(result)
    while open_.any() and len(keys):
        begins = np.flatnonzero(np.diff(owner, prepend=-1))
        best = np.repeat(np.maximum.reduceat(score, begins), np.diff(np.append(begins, len(owner))))
        tied = score >= best * (1 - SAME)
        free, hits = _hits(keys[tied], scores.shape, row, truth)
        sure = open_ & (free > 0)
        result[sure] = hits[sure] / free[sure]
        # Where all of the best are known already, the next best is guessed.
        open_ &= free == 0
        again = np.zeros(scores.shape[0], dtype=bool)
        again[row[open_]] = True
        stay = ~tied & again[owner]
        keys, owner, score = keys[stay], owner[stay], score[stay]
        open_ &= np.isin(row, owner)
    return result


def _hits(tied: np.ndarray, shape: tuple[int, int], row: np.ndarray, truth: Truth) -> tuple[np.ndarray, np.ndarray]:
    """For each target how many of the tied points are not known yet, and how many of these it has."""
    size, targets = shape[1], len(row)
    count = np.bincount(tied // size, minlength=shape[0])[row]
    target = np.repeat(np.arange(targets), np.diff(truth.starts))
    base = row[target] * size
    inside = np.searchsorted(tied, base + truth.high, "right") - np.searchsorted(tied, base + truth.low)
    hits = np.bincount(target, weights=np.maximum(inside, 0), minlength=targets)
    known = contains(tied, row[truth.owner] * size + truth.known)
    owner, point = truth.owner[known], truth.known[known]
    keys = target * size + truth.low
    window = np.searchsorted(keys, owner * size + point, "right") - 1
    has = (window >= 0) & (target[window] == owner) & (truth.high[window] >= point) if len(keys) else window >= 0
    hits -= np.bincount(owner[has], minlength=targets)
    return count - np.bincount(owner, minlength=targets), hits

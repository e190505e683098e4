"""Microaggregation: numeric records in groups of at least k that are as alike as can be, each replaced by its group's mean.

Attributes are standardized first, so that none counts more for its unit. One attribute is grouped optimally; several
by a heuristic, for the optimum is NP-hard then. `counts` say, where rows stand for several records, for how many: groups
then have at least k records, and the records of a row stay together.

Time grows with n²/k for `mdav` and n² for `v_mdav`: 100,000 rows of three attributes with k = 5 take about ten seconds
and a minute. For more rows, use Mondrian, or block the table by a coarse attribute first. For one attribute it grows
with n·k, and a million rows are fine.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

import numpy as np

from veilmark.errors import DataError, OptionError
from veilmark.progress import step

MOST_CELLS = 1 << 22
"""So many candidates are compared at once when one attribute is grouped."""


def mdav(values: np.ndarray, k: int, counts: np.ndarray | None = None) -> np.ndarray:
    """The group of each row: all have k rows but for one with up to 2k-1, or k to 2k-1 rows for one attribute.

    Maximum distance to average vector: a group is formed around the record farthest from the mean of the ungrouped ones,
    another around the record farthest from that one, and so on. (Domingo-Ferrer and Mateo-Sanz 2002; in the form of
    Domingo-Ferrer and Torra 2005)
    """
    columns, weights = _prepare(values, k, counts)
    if len(columns) == 1:
        return _by_first(_optimal(columns[0], weights, k))
    return _grouped(_Pool(columns, weights), k, _mdav_groups)


def v_mdav(values: np.ndarray, k: int, gamma: float = 0.2, counts: np.ndarray | None = None) -> np.ndarray:
    """The group of each row, of variable size: a group may grow up to 2k-1 where a further record belongs to it.

    A record joins if it is nearer to the group than `gamma` times its distance to the nearest other ungrouped record; 0
    lets none join, 0.2 suits scattered data, 1.1 clustered. (Solanas and Martínez-Ballesté 2006.) The last records, fewer
    than k, join the groups nearest to them, which can so outgrow 2k-1.
    """
    if not gamma >= 0:
        raise OptionError(f"gamma must be a number of 0 or more, not {gamma}. Try 0.2.")
    columns, weights = _prepare(values, k, counts)
    if len(columns) == 1:
        return _by_first(_optimal(columns[0], weights, k))
    return _grouped(_Pool(columns, weights), k, lambda pool, k: _v_mdav_groups(pool, k, gamma))


def means(values: np.ndarray, groups: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """For each row the mean of its group, attribute by attribute: what is published."""
    weights = np.ones(len(groups)) if counts is None else counts
    size = np.maximum(np.bincount(groups, weights), 1)
    columns = np.reshape(values, (len(groups), -1)).T
    mean = np.array([np.bincount(groups, weights * column) / size for column in columns])
    return mean[:, groups].T.reshape(np.shape(values))


# What comes in.


def _prepare(values: np.ndarray, k: int, counts: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The standardized columns and the records of each row, checked."""
    columns = np.array(np.reshape(values, (len(values), -1)).T, dtype=float, order="C")
    weights = np.ones(len(values), dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
        raise OptionError(f"k must be a whole number of 1 or more, not {k}. Try 5.")
    if not len(columns):
        raise OptionError("No attribute to group by is given. Give at least one.")
    if len(weights) != len(values) or weights.min(initial=1) < 1:
        raise OptionError("counts must have a whole number of 1 or more for each row.")
    if weights.sum() < k:
        raise OptionError(
            f"{weights.sum():,} records are too few for k = {k}. Lower k to at most the number of records."
        )
    _check_finite(columns)
    return _standardized(columns, weights), weights


def _check_finite(columns: np.ndarray) -> None:
    lost = ~np.isfinite(columns)
    if lost.any():
        rows = lost.any(axis=0).sum()
        raise DataError(
            f"{lost.sum():,} of {lost.size:,} values, in {rows:,} rows, are missing or infinite, so their "
            "distance cannot be computed. Fill them in, or remove these rows."
        )


def _standardized(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean 0 and variance 1 over the records; a column that is constant is 0."""
    centred = columns - np.average(columns, axis=1, weights=weights)[:, None]
    spread = np.sqrt(np.average(centred**2, axis=1, weights=weights))[:, None]
    return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)


# Several attributes.


class _Pool:
    """The rows that are in no group yet. They stand at the front of the arrays; whoever leaves is overwritten."""

    def __init__(self, columns: np.ndarray, counts: np.ndarray) -> None:
        self.columns, self.counts, self.rows = columns.copy(), counts.copy(), np.arange(len(counts))
        self.size, self.records = len(counts), int(counts.sum())
        self._sums = columns @ counts
        self._distance, self._scratch = np.empty(len(counts)), np.empty(len(counts))

    @property
    def mean(self) -> np.ndarray:
        """The mean record of those who are left."""
        mean: np.ndarray = self._sums / self.records
        return mean

    def point(self, position: int) -> np.ndarray:
        return self.columns[:, position].copy()

    def distances(self, point: np.ndarray) -> np.ndarray:
        """The squared distance of each row to a point; the array is valid until the next call."""
        total, scratch = self._distance[: self.size], self._scratch[: self.size]
        total[:] = 0
        for column, place in zip(self.columns, point, strict=True):
            np.subtract(column[: self.size], place, out=scratch)
            np.multiply(scratch, scratch, out=scratch)
            total += scratch
        return total

    def farthest(self, point: np.ndarray) -> int:
        return int(self.distances(point).argmax())

    def nearest(self, position: int, k: int) -> np.ndarray:
        """A row and those nearest to it, so many that they have k records."""
        distance = self.distances(self.point(position))
        distance[position] = -1
        enough = min(k, self.size)
        chosen = np.flatnonzero(distance <= np.partition(distance, enough - 1)[enough - 1])
        chosen = chosen[np.argsort(distance[chosen], kind="stable")]
        reached = np.searchsorted(np.cumsum(self.counts[chosen]), k)
        return chosen[: reached + 1]

    def take(self, chosen: np.ndarray) -> np.ndarray:
        """Remove these positions; the rows that stood there."""
        rows = self.rows[chosen]
        self._sums -= self.columns[:, chosen] @ self.counts[chosen]
        self.records -= int(self.counts[chosen].sum())
        self.size -= len(chosen)
        movers = np.setdiff1d(np.arange(self.size, self.size + len(chosen)), chosen, assume_unique=True)
        holes = chosen[chosen < self.size]
        self.columns[:, holes] = self.columns[:, movers]
        self.counts[holes], self.rows[holes] = self.counts[movers], self.rows[movers]
        return rows

    def take_rest(self) -> np.ndarray:
        return self.take(np.arange(self.size))


def _grouped(pool: _Pool, k: int, method: Callable[[_Pool, int], list[np.ndarray]]) -> np.ndarray:
    """The group of each row, and for the rows that the method leaves over the nearest one."""
    columns, counts, every = pool.columns.copy(), pool.counts.copy(), pool.size
    if k == 1:
        return pool.rows
    with step("Forming groups", lambda: 1 - pool.size / every):
        found = method(pool, k)
    group = np.empty(every, dtype=np.int64)
    for i, rows in enumerate(found):
        group[rows] = i
    rest = pool.rows[: pool.size]
    centres = np.array([np.average(columns[:, rows], axis=1, weights=counts[rows]) for rows in found])
    for row in rest:
        group[row] = ((centres - columns[:, row]) ** 2).sum(axis=1).argmin()
    return _by_first(group)


def _mdav_groups(pool: _Pool, k: int) -> list[np.ndarray]:
    groups = []
    while pool.records >= 3 * k:
        far = pool.farthest(pool.mean)
        point = pool.point(far)
        groups.append(pool.take(pool.nearest(far, k)))
        if pool.records >= 2 * k:
            groups.append(pool.take(pool.nearest(pool.farthest(point), k)))
    if pool.records >= 2 * k:
        groups.append(pool.take(pool.nearest(pool.farthest(pool.mean), k)))
    return [*groups, pool.take_rest()] if pool.records >= k else groups


def _v_mdav_groups(pool: _Pool, k: int, gamma: float) -> list[np.ndarray]:
    groups, centre = [], pool.mean
    while pool.records >= k:
        chosen = pool.nearest(pool.farthest(centre), k)
        groups.append(pool.take(_extended(pool, chosen, k, gamma) if gamma else chosen))
    return groups


def _extended(pool: _Pool, chosen: np.ndarray, k: int, gamma: float) -> np.ndarray:
    """The group, with those who belong to it rather than to others."""
    within = np.full(pool.size, np.inf)
    for position in chosen:
        np.minimum(within, pool.distances(pool.point(position)), out=within)
    while len(chosen) < pool.size:
        within[chosen] = np.inf
        candidate = int(within.argmin())
        outside = pool.distances(pool.point(candidate))
        apart = outside.copy()
        apart[chosen], apart[candidate] = np.inf, np.inf
        large = pool.counts[chosen].sum() + pool.counts[candidate] > 2 * k - 1
        if large or within[candidate] >= gamma**2 * apart.min():
            break
        np.minimum(within, outside, out=within)
        chosen = np.append(chosen, candidate)
    return chosen


# One attribute.


def _optimal(column: np.ndarray, counts: np.ndarray, k: int) -> np.ndarray:
    """The groups with the least sum of squares within them: a shortest path over the sorted records.

    Groups are runs of sorted records, none of which could be two: k to 2k-1 records each. (Hansen and Mukherjee 2003)
    Time grows with n·k. Ends j whose possible starts are all settled before the first of them are settled at once.
    """
    order = np.argsort(column, kind="stable")
    sums = _Sums(column[order], counts[order], k)
    cost, best = np.full(len(column) + 1, np.inf), np.zeros(len(column) + 1, dtype=np.int64)
    cost[0], low = 0, int(np.argmax(sums.last >= 0))
    while low <= len(column):
        first = int(sums.last[sums.last[low]]) + 1
        high = min(int(np.searchsorted(sums.last, low)), low + max(MOST_CELLS // (low - first), 1))
        start = np.arange(first, sums.last[high - 1] + 1)
        ends = np.arange(low, high)[:, None]
        ways = cost[start] + sums.within(start, ends)
        ways[start <= sums.last[sums.last[ends]]] = np.inf
        best[low:high] = start[ways.argmin(axis=1)]
        cost[low:high] = ways.min(axis=1)
        low = high
    group = np.empty(len(column), dtype=np.int64)
    group[order] = _runs(best)
    return group


class _Sums:
    """Running sums over sorted values; `last[j]` is the latest start of a group of k records that ends before j, or -1."""

    def __init__(self, column: np.ndarray, counts: np.ndarray, k: int) -> None:
        parts = (counts, counts * column, counts * column**2)
        self.count, self.sum, self.square = (np.append(0, np.cumsum(part)) for part in parts)
        self.last = np.searchsorted(self.count, self.count - k, side="right") - 1

    def within(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """The sum of squares about the mean of the values from start to before end; infinite for too few."""
        count = np.maximum(self.count[end] - self.count[start], 1)
        spread = self.square[end] - self.square[start] - (self.sum[end] - self.sum[start]) ** 2 / count
        return np.where(start <= self.last[end], spread, np.inf)


def _runs(best: np.ndarray) -> np.ndarray:
    """From the start of the best last group before each end to the number of each record's group."""
    begins = np.zeros(len(best) - 1, dtype=bool)
    end = len(best) - 1
    while end > 0:
        end = int(best[end])
        begins[end] = True
    return np.cumsum(begins) - 1


def _by_first(group: np.ndarray) -> np.ndarray:
    """The same groups, numbered in the order of their first rows."""
    _, first, index = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[index]

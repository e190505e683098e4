"""Counts, not presence: whether a cover class is in a leak, by how many of its records are.

A class that the leaker held has its share of the expected records. One that was filled with made-up rows, or into which
rows strayed whose values were changed, has another number. How many records are to be expected is learned from the classes
that everybody holds: the rate, by label and by size, how much counts scatter, how many classes fit nothing, and how many
rows stray from one class into another. What made-up rows look like is learned from the cover classes' own counts.

All of it follows from the leak, from the sizes of the released classes and from the probabilities of the code, which are
the same for all recipients. Nobody's marks are looked at, so that an innocent one's stay independent of what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy import optimize, special

from veilmark.tables.cells import number, pack

STRAYING = 0.01
"""Where more than this share of the rows is in no class of the release, rows are taken to have strayed."""

PADDED = 10.0
"""Classes are taken to have been filled with made-up rows where that raises the log-likelihood by so much, beyond what
that many more parameters do by chance."""

_UNEXPLAINED = 1e-3  # probability of any count, so that one that nothing explains says nothing
_ROWS_EACH = np.unique(np.concatenate([np.arange(1, 33), np.geomspace(33, 1e6, 60).astype(int)]))
_SHARES = np.arange(0, 2.05, 0.1)
_LIKE_HELD = (0.75, 1.3)  # shares of the expected records at which a class looks as if it were held


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a leak: combinations of labels at the levels that are read.

    `labels[c, g]` is the label number of cell g in column c, `count[g]` the leak's rows there; `common[g]` the records of
    the classes that everybody holds, `candidates[g]` whether decoys may be there. Cover j is in cell `cell[j]`, has
    `size[j]` records and is held with probability `p[j]`.
    """

    labels: np.ndarray
    count: np.ndarray
    common: np.ndarray
    candidates: np.ndarray
    cell: np.ndarray
    size: np.ndarray
    p: np.ndarray

    @cached_property
    def covered(self) -> np.ndarray:
        """How many covers each cell has."""
        return np.bincount(self.cell, minlength=len(self.count))

    @cached_property
    def expected(self) -> np.ndarray:
        """The records of each cell in a copy, on average."""
        return self.common + np.bincount(self.cell, self.p * self.size, len(self.count))

    @cached_property
    def clear(self) -> np.ndarray:
        """Cells that hold classes of everybody and nothing else: all that is learned of a leak comes from these. Where a
        leak is so coarse that there are few, all cells with such classes."""
        alone = (self.common > 0) & (self.covered == 0) & ~self.candidates
        return alone if alone.sum() >= 20 else self.common > 0


@dataclass(frozen=True, eq=False)
class Counted:
    """What the counts say.

    `shown[j]`: how well holding cover j explains its cell's count, against not holding it, from 0 to 1. `share[j]`: the
    share of its expected records that are there, at most 1; 0.5 where its cell has other classes too, or no records are
    expected. `rate`: how many rows are there for one expected, cell by cell; `stray`: how many from elsewhere. `padded`: of
    the covers that seem not to be held, the share that has made-up rows. `strayed`: the share of rows that were moved.
    """

    shown: np.ndarray
    share: np.ndarray
    rate: np.ndarray
    stray: np.ndarray
    padded: float
    strayed: float

    def spread(self, places: np.ndarray, count: int) -> Counted:
        """The same for all of `count` covers, of which those at `places` were counted; the others are left open."""
        shown, share = np.full(count, 0.5), np.full(count, 0.5)
        shown[places], share[places] = self.shown, self.share
        return replace(self, shown=shown, share=share)


def count_covers(cells: Cells) -> Counted:
    """Weigh every cover's count; where no class of everybody can be read, counts say nothing."""
    if not cells.clear.any():
        covers, size = len(cells.cell), len(cells.count)
        return Counted(np.full(covers, 0.5), np.full(covers, 0.5), np.ones(size), np.zeros(size), 0.0, 0.0)
    stray, strayed = _strays(cells)
    rate, scatter = _rates(cells, stray)
    odd = _Odd.of(cells, rate, stray, scatter)
    held, lacked, alone = _both(cells, rate, stray, scatter, odd)
    filled = _filled(cells, rate, stray, held, lacked, alone)
    lacked = np.where(alone, filled.of(cells, rate, stray, lacked), lacked)
    sure = (held + _UNEXPLAINED / 10) / (held + lacked + _UNEXPLAINED / 5)
    expected = np.maximum(rate[cells.cell] * cells.size, 1e-9)
    there = np.clip((cells.count[cells.cell] - stray[cells.cell]) / expected, 0, 1)
    return Counted(sure, np.where(alone & (expected >= 0.5), there, 0.5), rate, stray, filled.padded, strayed)


# What a copy's classes look like in this leak.


def _strays(cells: Cells) -> tuple[np.ndarray, float]:
    """How many rows each cell has from elsewhere, and the share of rows that were moved.

    A row whose value in one column or two was replaced, by one of another row or by any, falls into a cell that agrees with
    its own in all other columns. So strays are a sum of such neighbours' records; the factors are fitted.
    """
    nowhere = (cells.expected == 0) & ~cells.candidates
    total = max(float(cells.count.sum()), 1.0)
    if cells.count[nowhere].sum() < STRAYING * total:
        return np.zeros(len(cells.count)), 0.0
    near = _neighbours(cells)
    fit = cells.clear & (cells.count <= 50 * np.maximum(cells.expected, 1))
    matrix = np.vstack([cells.expected, near]).T[fit]
    wanted = cells.count[fit].astype(float)
    weight = 1 / np.sqrt(cells.expected[fit] * total / max(cells.expected.sum(), 1.0) + 1)
    for _ in range(2):
        factors, _ = optimize.nnls(matrix * weight[:, None], wanted * weight, maxiter=1000)
        fitted = matrix @ factors
        off = np.abs(wanted - fitted) / np.sqrt(fitted + 1)
        weight = np.where(off > 6 * np.median(off) + 6, 0.0, 1 / np.sqrt(fitted + 1))
    stray = factors[1:] @ near
    share = stray[cells.expected > 0].sum() + cells.count[nowhere].sum()
    return stray, float(min(share / total, 1.0))


def _neighbours(cells: Cells) -> np.ndarray:
    """For each way to change a row, the rows that would come into each cell if all were changed so: a row a way."""
    labels, total = cells.labels, max(float(cells.expected.sum()), 1.0)
    sizes = [int(of.max(initial=0)) + 1 for of in labels]
    often = [np.bincount(of, cells.expected, n)[of] / total for of, n in zip(labels, sizes, strict=True)]
    columns = range(len(labels))
    found = [np.full(len(cells.count), 1.0), np.prod(often, axis=0) * total if len(labels) else np.zeros(0)]
    for changed in [*combinations(columns, 1), *(combinations(columns, 2) if len(labels) <= 8 else ())]:
        rest = [c for c in columns if c not in changed]
        alike = _alike(labels[rest], [sizes[c] for c in rest], cells.expected)
        found.append(alike * np.prod([often[c] for c in changed], axis=0))
        found.append(alike / np.prod([sizes[c] for c in changed]))
    return np.array(found)


def _alike(labels: np.ndarray, sizes: list[int], records: np.ndarray) -> np.ndarray:
    """The records of all cells that agree with each."""
    if not len(labels):
        return np.full(len(records), records.sum())
    _, group = number(*pack(labels, sizes))
    return np.bincount(group, records)[group]


def _rates(cells: Cells, stray: np.ndarray) -> tuple[np.ndarray, float]:
    """How many rows there are for one expected, and their variance for one of the mean.

    One rate for all, if that fits; else one by label and by size, as where a leak has some groups only.
    """
    here = cells.clear
    expected, count = cells.expected[here], (cells.count - stray)[here]
    ratios = (count / expected)[count > 0]
    if not len(ratios):
        return np.ones(len(cells.count)), 1.0
    usual_rate = float(np.median(ratios))
    exact = (ratios == usual_rate).mean() >= 0.5
    overall = usual_rate if exact else float(count[count > 0].sum() / expected.sum())
    flat = np.full(len(cells.count), overall)
    groups = [*cells.labels, _size_groups(cells)]
    raked = overall * _raked(cells, stray, overall, groups)
    misfits = [
        (np.minimum((count - expected * r[here]) ** 2 / (expected * r[here] + 0.1), 25)).sum() for r in (flat, raked)
    ]
    chance = max(1 - overall, 0.02)
    parameters = sum(len(np.unique(of[here])) for of in groups)
    rate = raked if misfits[0] - misfits[1] > 3 * parameters * chance + 10 else flat
    mean = cells.expected[here] * rate[here] + stray[here]
    off = (cells.count[here] - mean) ** 2 / np.maximum(mean, 0.1)
    usual = off[off <= max(9.0, float(np.quantile(off, 0.75)))]
    return np.maximum(rate, 1e-6), float(np.clip(usual.mean(), max(1e-4, 1 / here.sum()), 25.0))


def _size_groups(cells: Cells) -> np.ndarray:
    """Cells in tenths by their expected records; covers count as if they were held."""
    sizes = cells.common.astype(float)
    sizes[cells.cell] += cells.size
    edges = np.unique(np.quantile(sizes[cells.clear], np.arange(0.1, 1, 0.1)))
    return np.searchsorted(edges, sizes, side="left")


def _raked(cells: Cells, stray: np.ndarray, overall: float, groups: list[np.ndarray]) -> np.ndarray:
    """Factors by group that bring the expected records of everybody's classes to those seen; iterative scaling."""
    here = cells.clear
    seen, factor = np.maximum(cells.count - stray, 0.0), np.ones(len(cells.count))
    for _ in range(8):
        for of in groups:
            size = int(of.max(initial=0)) + 1
            want = np.bincount(of[here], seen[here], size)
            have = np.bincount(of[here], (cells.expected * factor * overall)[here], size)
            factor *= ((want + 1) / (have + 1))[of]
    return factor


# How likely a count is.


def spread_chance(count: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """P(count) for a mean and a variance: binomial, Poisson or negative binomial, whichever has that variance."""
    mean = np.maximum(mean, 1e-9)
    ratio = np.clip(variance / mean, 1e-6, 1e6)
    trials = np.maximum(np.rint(mean / np.maximum(1 - ratio, 1e-9)), np.ceil(mean))
    chance = np.clip(mean / np.maximum(trials, 1), 1e-12, 1 - 1e-12)
    inside = np.minimum(count, trials)
    log_choose = special.gammaln(trials + 1) - special.gammaln(inside + 1) - special.gammaln(trials - inside + 1)
    narrow = log_choose + special.xlogy(inside, chance) + special.xlog1py(trials - inside, -chance)
    narrow = np.where(count > trials, -np.inf, narrow)
    poisson = special.xlogy(count, mean) - mean - special.gammaln(count + 1)
    r = mean / np.maximum(ratio - 1, 1e-9)
    wide = special.gammaln(count + r) - special.gammaln(r) - special.gammaln(count + 1)
    wide = wide - r * np.log(ratio) + special.xlog1py(count, -1 / np.maximum(ratio, 1 + 1e-12))
    return np.asarray(np.exp(np.where(ratio < 0.98, narrow, np.where(ratio > 1.02, wide, poisson))))


@dataclass(frozen=True, eq=False)
class _Odd:
    """Classes of everybody whose counts fit nothing: how many, by size, and what share of their records they have."""

    share: np.ndarray
    shape: np.ndarray

    @classmethod
    def of(cls, cells: Cells, rate: np.ndarray, stray: np.ndarray, scatter: float) -> _Odd:
        mean = rate * cells.expected + stray
        odd = np.abs(cells.count - mean) > 4 * np.sqrt(scatter * mean + 0.25) + 0.5
        groups, here = _size_groups(cells), cells.clear
        size = int(groups.max(initial=0)) + 1
        overall = (odd[here].sum() + 0.1) / (here.sum() + 10)
        each = (np.bincount(groups[here], odd[here], size) + 10 * overall) / (
            np.bincount(groups[here], minlength=size) + 10
        )
        part = _share_place(cells.count[here & odd], mean[here & odd])
        shape = np.bincount(part, minlength=len(_SHARES)) + 1 / len(_SHARES)
        return cls(np.clip(each, 1e-3, 0.9)[groups], shape / shape.sum())

    def chance(self, count: np.ndarray, mean: np.ndarray) -> np.ndarray:
        return np.asarray(self.shape[_share_place(count, mean)] * _share_density(mean))


def _share_place(count: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """In which of `_SHARES` the count is, as a share of what is expected; the first is for none at all."""
    place = np.searchsorted(_SHARES, count / np.maximum(mean, 1e-9), side="left")
    return np.where(count == 0, 0, np.clip(place, 1, len(_SHARES) - 1))


def _share_density(mean: np.ndarray) -> np.ndarray:
    """The probability of each count within a step of `_SHARES`."""
    return 1 / np.maximum(0.1 * mean, 1.0)


def _both(
    cells: Cells, rate: np.ndarray, stray: np.ndarray, scatter: float, odd: _Odd
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How likely each cover's count is if it is held and if it is not, and whether it is alone in its cell.

    Other covers of the cell are held or not, by their chances: they widen what may be expected.
    """
    at = cells.cell
    unsure = np.bincount(at, cells.p * (1 - cells.p) * cells.size**2.0, len(cells.count))[at]
    unsure = np.maximum(unsure - cells.p * (1 - cells.p) * cells.size**2.0, 0)
    base = cells.expected[at] - cells.p * cells.size
    count = cells.count[at]
    chances = []
    for own in (cells.size, 0):
        mean = rate[at] * (base + own) + stray[at]
        variance = scatter * rate[at] * (base + own) + max(scatter, 1.0) * stray[at] + rate[at] ** 2 * unsure
        chances.append(spread_chance(count, mean, np.maximum(variance, 1e-6)))
    alone = (cells.common[at] == 0) & (cells.covered[at] == 1) & ~cells.candidates[at]
    mean = rate[at] * cells.size + stray[at]
    held = (1 - odd.share[at]) * chances[0] + odd.share[at] * odd.chance(count, mean)
    return np.where(alone, held, chances[0]), chances[1], alone


# Made-up rows.


@dataclass(frozen=True, eq=False)
class _Filled:
    """Of the covers that are not held: the share that has made-up rows, and how many, as a number (`rows`) or as a share of
    the expected records (`shares`): probabilities of the steps of each."""

    padded: float
    rows: np.ndarray
    shares: np.ndarray

    def of(self, cells: Cells, rate: np.ndarray, stray: np.ndarray, empty: np.ndarray) -> np.ndarray:
        """How likely a cover's count is if it is not held."""
        if not self.padded:
            return empty
        more, parts = _filling(cells, rate, stray)
        made = (more * self.rows).sum(axis=1) + (parts * self.shares).sum(axis=1)
        return (1 - self.padded) * empty + self.padded * made


def _filling(cells: Cells, rate: np.ndarray, stray: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probability of each cover's count by each step of made-up rows, as a number and as a share."""
    at, count = cells.cell, cells.count[cells.cell]
    extra = np.maximum(np.rint(count - stray[at]), 0)
    step = np.searchsorted(_ROWS_EACH, extra, side="right") - 1
    width = np.diff(np.append(_ROWS_EACH, 2e6))
    rows = np.zeros((len(at), len(_ROWS_EACH)))
    some = np.flatnonzero(extra > 0)
    rows[some, step[some]] = 1 / width[step[some]]
    mean = rate[at] * cells.size
    place = _share_place(extra, mean)
    like_held = (extra >= _LIKE_HELD[0] * mean) & (extra <= _LIKE_HELD[1] * mean)
    shares = np.zeros((len(at), len(_SHARES)))
    free = np.flatnonzero((extra > 0) & ~like_held)
    shares[free, place[free]] = _share_density(mean)[free]
    return rows, shares


def _filled(
    cells: Cells, rate: np.ndarray, stray: np.ndarray, held: np.ndarray, empty: np.ndarray, alone: np.ndarray
) -> _Filled:
    """Made-up rows by maximum likelihood (EM), over the covers that are alone in their cells; none unless that explains
    the counts much better."""
    none = _Filled(0.0, np.zeros(len(_ROWS_EACH)), np.zeros(len(_SHARES)))
    if not alone.any():
        return none
    rows, shares = (of[alone] for of in _filling(cells, rate, stray))
    yes, no, p = held[alone] + _UNEXPLAINED, empty[alone], cells.p[alone]
    steps = np.hstack([rows, shares])
    used = steps.any(axis=0)
    weight = used / max(used.sum(), 1)
    padded = 0.5
    for _ in range(200):
        made = steps @ weight
        every = p * yes + (1 - p) * ((1 - padded) * no + padded * made) + 1e-300
        by_step = ((1 - p) * padded / every) @ (steps * weight)
        missing = float(((1 - p) * (1 - padded) * no / every).sum())
        total = float(by_step.sum())
        before, padded = padded, (total + 1e-9) / (total + missing + 1e-6)
        weight = (by_step + 0.5 * used / max(used.sum(), 1)) / (total + 0.5)
        if abs(padded - before) < 1e-4:
            break
    plain = p * yes + (1 - p) * no
    needed = PADDED + 0.5 * used.sum() * np.log(len(p))  # more steps fit better in any case
    if np.log(every).sum() - np.log(plain + 1e-300).sum() < needed:
        return none
    return _Filled(float(padded), weight[: len(_ROWS_EACH)], weight[len(_ROWS_EACH) :])

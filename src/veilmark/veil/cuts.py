"""Cuts: Mondrian's search. All open parts try one cut at a time together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from veilmark.privacy.models import KAnonymity, PrivacyModel
from veilmark.progress import step
from veilmark.tables.cells import DENSE_LIMIT
from veilmark.tables.classes import ClassTable
from veilmark.veil.axes import Axis

DENSE_SHARE = 8
"""Up to so many times as many bins as rows, or DENSE_LIMIT, are counted in an array over all of them."""

_ROW_BITS = 32
_ROW_MASK = (1 << _ROW_BITS) - 1


@dataclass(frozen=True, eq=False)
class _Front:
    """The parts that may still be cut; the first has the first `sizes[0]` of `rows`, and so on.

    For each axis and part: the lowest and the highest place, the level at which they meet, and the width, set to 0 when
    the part cannot be cut along the axis. `again` marks parts that failed the first of two ways to cut their widest
    axis.
    """

    rows: np.ndarray
    sizes: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: np.ndarray
    width: np.ndarray
    again: np.ndarray

    def __len__(self) -> int:
        return len(self.sizes)

    def keep(self, parts: np.ndarray) -> _Front:
        """Some of the parts (a mask)."""
        if parts.all():
            return self
        rows = self.rows[np.repeat(parts, self.sizes)]
        low, high, level, width = (of[:, parts] for of in (self.low, self.high, self.level, self.width))
        return _Front(rows, self.sizes[parts], low, high, level, width, self.again[parts])

    def join(self, other: _Front) -> _Front:
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return _Front(*(np.concatenate(pair, axis=-1) for pair in pairs))

    def widest(self) -> np.ndarray:
        """The axis that each part is to be cut along."""
        return self.width.argmax(axis=0)

    def ends(self, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest place of each part on its axis."""
        each = np.arange(len(self))
        return self.low[axis, each], self.high[axis, each]


@dataclass(frozen=True, eq=False)
class _Runs:
    """Numbers for the rows of parts, rising from part to part: each row's number, each part's first, and how many."""

    of: np.ndarray
    first: np.ndarray
    count: int

    @property
    def last(self) -> np.ndarray:
        return np.append(self.first[1:], self.count) - 1


@dataclass(frozen=True, eq=False)
class _Ground:
    """The classes that the search works on: their ids, places and what they count.

    `table` has one class more at its end where others are done with: models may compare with the whole.
    """

    ids: np.ndarray
    places: np.ndarray
    table: ClassTable

    def shrink(self, rows: np.ndarray) -> tuple[_Ground, np.ndarray]:
        """The ground of these rows only, and their numbers there."""
        stay = np.zeros(len(self.table), dtype=bool)
        stay[rows] = True
        position = np.where(stay, np.cumsum(stay) - 1, len(rows))
        chosen = stay[: len(self.ids)]
        table = merge_classes(self.table, position, len(rows) + 1)
        return _Ground(self.ids[chosen], self.places[:, chosen], table), position[rows]


class Cutting:
    """Cuts the classes into parts, breadth first."""

    def __init__(self, axes: Sequence[Axis], models: Sequence[PrivacyModel], relaxed: bool) -> None:
        self.axes, self.models, self.relaxed = axes, models, relaxed
        self.ranks = np.concatenate([np.empty(0, dtype=np.int32), *(a.ranks.ravel() for a in axes)])
        self.start = np.cumsum([0, *(a.ranks.size for a in axes)])[:-1]
        self.values = np.array([len(a) for a in axes], dtype=np.int64)
        self.missing = np.array([a.missing for a in axes], dtype=np.int64)
        self.numeric = np.array([a.numeric for a in axes], dtype=bool)
        self.free = np.array([a.free for a in axes], dtype=bool)

    def run(self, table: ClassTable, places: np.ndarray) -> np.ndarray:
        """The part of each class."""
        rows = np.arange(len(table))
        self.part, self.parts, self.closed = np.zeros(len(rows), dtype=np.int64), 0, 0
        self.ground = _Ground(rows, places, table)
        self.floor = _floor(self.models, table)
        with step("Splitting into classes", lambda: self.closed / max(len(rows), 1)):
            front = self._close(self._measure(rows, np.full(min(len(rows), 1), len(rows))))
            while len(front):
                front = self._shrink(self._round(front))
        return self.part

    def _round(self, front: _Front) -> _Front:
        """Every part tries a cut: those for which it is safe give way to their sides."""
        sides = self._cut(front)
        size, safe = self._judge(front, sides)
        return self._split(front, sides, size, safe).join(self._close(self._refuse(front.keep(~safe))))

    def _measure(self, rows: np.ndarray, sizes: np.ndarray) -> _Front:
        """The front of new parts."""
        shape, starts = (len(self.axes), len(sizes)), starts_of(sizes)
        low, high, level = np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.int8)
        width = np.empty(shape)
        for i, axis in enumerate(self.axes):
            place = self.ground.places[i].take(rows)
            low[i], high[i] = np.minimum.reduceat(place, starts), np.maximum.reduceat(place, starts)
            level[i] = axis.meeting(low[i], high[i])
            width[i] = axis.width(low[i], high[i], level[i])
        return _Front(rows, sizes, low, high, level, width, np.zeros(len(sizes), dtype=bool))

    def _cut(self, front: _Front) -> _Runs:
        """The sides of the cut that each part tries."""
        axis = front.widest()
        low, high = front.ends(axis)
        apart = ~self.numeric[axis] & ~front.again
        off = (high == self.missing[axis]) & ~front.again
        bins = self._bins(front, axis, np.where(apart, front.level[axis, np.arange(len(front))] - 1, 0), low, high)
        bins = _by_row(bins, self.numeric[axis] & ~off, front.sizes) if self.relaxed else bins
        weight = np.bincount(bins.of, self.ground.table.size.take(front.rows), bins.count)
        begins = (weight > 0) & np.repeat(apart, bins.last - bins.first + 1)
        begins[bins.first] = True
        upper = np.where(off, bins.last, _upper(bins, weight))
        begins[upper[~apart]] = True
        side = np.cumsum(begins) - 1
        return _Runs(side.take(bins.of), side[bins.first], int(side[-1]) + 1)

    def _bins(self, front: _Front, axis: np.ndarray, level: np.ndarray, low: np.ndarray, high: np.ndarray) -> _Runs:
        """The nodes of a level that each part reaches over, as one sequence of bins."""
        base = self.start[axis] + level * self.values[axis]
        bottom = self.ranks[base + low]
        length = self.ranks[base + high] - bottom + 1
        first = starts_of(length)
        place = self.ground.places.ravel().take(np.repeat(axis * self.ground.places.shape[1], front.sizes) + front.rows)
        rank = self.ranks.take(np.repeat(base, front.sizes) + place)
        return _compact(_Runs(np.repeat(first - bottom, front.sizes) + rank, first, int(length.sum())))

    def _judge(self, front: _Front, sides: _Runs) -> tuple[np.ndarray, np.ndarray]:
        """The size of each side, and whether all sides of a part meet the models."""
        table = self.ground.table
        index = np.full(len(table), sides.count)
        index[front.rows] = sides.of
        merged = merge_classes(table, index, sides.count + (len(front.rows) < len(table)))
        failing = _failing(self.models, merged)[: sides.count]
        return merged.size[: sides.count], ~np.logical_or.reduceat(failing, sides.first)

    def _split(self, front: _Front, sides: _Runs, size: np.ndarray, safe: np.ndarray) -> _Front:
        """The sides of the parts whose cut is safe; what can never be cut again is closed at once."""
        chosen = np.repeat(safe, front.sizes)
        rows, side = front.rows[chosen], sides.of[chosen]
        count = np.bincount(side, minlength=sides.count)
        alive = (count > 1) & (size >= self.floor)
        lasting = alive[side]
        self._number(rows[~lasting], renumber((count > 0) & ~alive)[side[~lasting]])
        ordered = ordered_by_part(renumber(alive)[side[lasting]], rows[lasting])
        return self._close(self._measure(ordered, count[alive]))

    def _refuse(self, front: _Front) -> _Front:
        """The parts whose cut is not safe: they try another way, or another axis."""
        axis = front.widest()
        low, high = front.ends(axis)
        another = (high == self.missing[axis]) | (self.free[axis] & (high - low > 1))
        again = another & ~front.again
        width = front.width.copy()
        width[axis[~again], np.flatnonzero(~again)] = 0
        return replace(front, width=width, again=again)

    def _close(self, front: _Front) -> _Front:
        """Number the parts that nothing can be cut of; the others stay open."""
        alive = front.width.max(axis=0, initial=0) > 0
        done = front.keep(~alive)
        self._number(done.rows, np.repeat(np.arange(len(done)), done.sizes))
        return front.keep(alive)

    def _number(self, rows: np.ndarray, part: np.ndarray) -> None:
        """These rows' parts are final."""
        self.part[self.ground.ids[rows]] = self.parts + part
        self.parts += int(part.max(initial=-1)) + 1
        self.closed += len(rows)

    def _shrink(self, front: _Front) -> _Front:
        """Work goes with the rows that are still in open parts."""
        if 2 * len(front.rows) >= len(self.ground.ids):
            return front
        self.ground, rows = self.ground.shrink(front.rows)
        return replace(front, rows=rows)


def starts_of(sizes: np.ndarray) -> np.ndarray:
    starts: np.ndarray = np.cumsum(sizes) - sizes
    return starts


def ordered_by_part(part: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The rows by part, and within a part by number; sorting plain numbers is faster than sorting pairs."""
    both = part << _ROW_BITS | rows
    both.sort()
    both &= _ROW_MASK
    return both


def renumber(chosen: np.ndarray) -> np.ndarray:
    return np.cumsum(chosen) - 1


def _compact(bins: _Runs) -> _Runs:
    """Without the empty bins, where these are far too many."""
    if bins.count <= max(DENSE_LIMIT, DENSE_SHARE * len(bins.of)):
        return bins
    distinct, of = np.unique(bins.of, return_inverse=True)
    return _Runs(of, np.searchsorted(distinct, bins.first), len(distinct))


def _by_row(bins: _Runs, parts: np.ndarray, sizes: np.ndarray) -> _Runs:
    """In these parts every row is a bin of its own, in the order of the bins and then of the rows."""
    position = np.empty(len(bins.of), dtype=np.int64)
    position[np.argsort(bins.of, kind="stable")] = np.arange(len(bins.of))
    length = np.where(parts, sizes, bins.last - bins.first + 1)
    first = starts_of(length)
    shift = np.repeat(first - np.where(parts, starts_of(sizes), bins.first), sizes)
    return _Runs(np.where(np.repeat(parts, sizes), position, bins.of) + shift, first, int(length.sum()))


def _upper(bins: _Runs, weight: np.ndarray) -> np.ndarray:
    """For each part the first bin of the upper side, so that both sides weigh as equal as they can."""
    total = np.cumsum(weight)
    before = total[bins.first] - weight[bins.first]
    middle = (before + total[bins.last]) / 2
    reached = np.searchsorted(total, middle)
    under = total[reached] - weight[reached]
    upper = np.where(middle - under <= total[reached] - middle, reached, reached + 1)
    return np.clip(upper, bins.first + 1, bins.last)


def merge_classes(classes: ClassTable, index: np.ndarray, groups: int) -> ClassTable:
    """The table in which class i is part of class index[i]; it has no quasi-identifiers any more."""
    histograms = {name: h.merge(index) for name, h in classes.histograms.items()}
    codes = np.zeros((0, groups), dtype=np.int32)
    return ClassTable((), (), codes, classes.tally.merge(index, groups), histograms)


def _failing(models: Sequence[PrivacyModel], classes: ClassTable) -> np.ndarray:
    """The classes that fail a model, compared with the whole table: unlike for suppression, nothing goes away."""
    failing = np.zeros(len(classes), dtype=bool)
    for model in models:
        failing |= model.failing(classes)
    return failing


def _floor(models: Sequence[PrivacyModel], table: ClassTable) -> int:
    """No part below this size can be cut: both sides need k. (Not so if one person may be on both sides.)"""
    wander = len(table.tally.wander_group) > 0
    return 0 if wander else 2 * max((m.k for m in models if isinstance(m, KAnonymity)), default=0)

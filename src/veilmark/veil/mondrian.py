"""Mondrian: the table is cut again and again, each part where it is widest, for as long as the parts stay safe.

(LeFevre, DeWitt and Ramakrishnan 2006.) What is cut are leaf classes, never rows, and all open parts try one cut at a
time together, so that a round costs a few passes over the classes of the parts that are still open.

How a part is cut along an attribute:

- numbers: in two at the weighted median. Missing values have no number: they are cut off first. Where that would not be
  safe, they stay with the upper part, whose label says so (`30-35 or missing`).
- a category: the smallest node of its hierarchy that covers the part's values gives way to its children, all at once.
- a category that has no levels between its values and the top: where not every value can stand alone, in two at the
  weighted median of its values in domain order. Labels are then sets of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.cells import DENSE_LIMIT, number, pack
from veilmark.classes import ClassTable
from veilmark.domain import Domain
from veilmark.errors import OptionError, VeilmarkError, listing
from veilmark.hierarchy import Levels
from veilmark.privacy.models import DeltaPresence, KAnonymity, KMap, PrivacyModel
from veilmark.progress import step

DENSE_SHARE = 8
"""Up to so many times as many bins as rows, or DENSE_LIMIT, are counted in an array over all of them."""

LISTED = 5
"""Sets of up to so many values are written out."""

MISSING = "missing"

_ROW_BITS = 32
_ROW_MASK = (1 << _ROW_BITS) - 1


@dataclass(frozen=True)
class Mondrian:
    """Tuning of the method.

    `relaxed`: classes that share the median number may go to either side. The part's classes are ordered by the
    number, then by their other values, and cut at the middle class instead of the middle number; so parts are more
    even, and the labels of neighbours may overlap (`30-35`, `35-40`). A leaf class is never divided: where LeFevre et
    al. spread the records of one class over two parts, here they stay together.

    `sets`: a category without levels of its own may be published as a set of values (`{a, b}`), not only as itself or
    `*`.

    `k` and `models` are what the release must meet.
    """

    relaxed: bool = False
    sets: bool = True
    k: int | None = field(default=None, kw_only=True)
    models: tuple[PrivacyModel, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, eq=False)
class Partition:
    """The part of each leaf class, and for each quasi-identifier the label of each part.

    No two parts have the same labels. `widths[i, p]` is the share of attribute i that part p's label covers, from 0
    (one value) to 1: of its range for numbers, of its values for categories. Their mean over attributes and records
    is the NCP.
    """

    part: np.ndarray
    labels: tuple[pa.Array, ...]
    parts: int
    widths: np.ndarray

    def __repr__(self) -> str:
        return f"Partition({self.parts:,} parts of {len(self.part):,} classes)"


def partition(
    classes: ClassTable,
    levels: Sequence[Levels],
    numeric: Sequence[bool],
    models: Sequence[PrivacyModel],
    method: Mondrian | None = None,
) -> Partition:
    """Cut the classes into parts that meet all models, of which none can be cut further by the rules above.

    `levels[i]` is the hierarchy of quasi-identifier i on its domain; `numeric[i]` has it cut as numbers instead.
    """
    method = method or Mondrian()
    named = zip(classes.columns, classes.domains, levels, numeric, strict=True)
    axes = tuple(_axis(*each, sets=method.sets) for each in named)
    table = _needed(classes, models)
    _check_whole(table, models)
    places = np.array([a.place[c] for a, c in zip(axes, classes.codes, strict=True)], dtype=np.int32)
    places = places.reshape(len(axes), len(classes))
    found = _publish(axes, places, _Search(axes, models, method.relaxed).run(table, places))
    _check_published(found, table, models)
    return found


def _needed(classes: ClassTable, models: Sequence[PrivacyModel]) -> ClassTable:
    """What the models look at, no more."""
    beyond = [m for m in models if isinstance(m, KMap | DeltaPresence)]
    if beyond:
        raise OptionError(f"Mondrian cannot compare with a population. Drop {listing(beyond)}, or use OLA.")
    wanted = {m.attribute for m in models}
    histograms = {name: h for name, h in classes.histograms.items() if name in wanted}
    return ClassTable((), (), np.zeros((0, len(classes)), dtype=np.int32), classes.tally, histograms)


def _check_whole(table: ClassTable, models: Sequence[PrivacyModel]) -> None:
    """The table as a single class must meet the models, or there is nothing to begin with."""
    groups = min(len(table), 1)
    whole = _merged(table, np.zeros(len(table), dtype=np.int64), groups)
    unmet = [m for m in models if m.failing(whole).any()]
    if unmet:
        raise OptionError(
            f"Even one single class of all {table.total_records:,} records does not meet {listing(unmet)}. "
            "Lower that limit, or drop it."
        )


def _check_published(found: Partition, table: ClassTable, models: Sequence[PrivacyModel]) -> None:
    """Parts with the same labels were joined; there are models that two classes meet but not both together."""
    published = _merged(table, found.part, found.parts)
    unmet = [m for m in models if m.failing(published).any()]
    if unmet:
        raise VeilmarkError(f"Parts that got the same labels do not meet {listing(unmet)} together. Try it strict.")


# Axes: a quasi-identifier in the order in which it is cut.


@dataclass(frozen=True, eq=False)
class _Axis:
    """A quasi-identifier whose values are placed so that every node of its hierarchy is a run of places.

    `ranks[level, place]` numbers the nodes of a level, rising with the place; `spots` are numbers to measure widths by.
    """

    domain: Domain
    levels: Levels
    numeric: bool
    free: bool
    code: np.ndarray
    place: np.ndarray
    ranks: np.ndarray
    spots: np.ndarray

    def __len__(self) -> int:
        return len(self.domain)

    @property
    def missing(self) -> int:
        """The place of the missing value among numbers, -1 where it does not matter."""
        return -1 if not self.numeric or self.domain.missing is None else self.domain.missing

    @cached_property
    def leaves(self) -> np.ndarray:
        """How many values the node over each place has, at each level."""
        return np.array([np.bincount(ranks)[ranks] for ranks in self.ranks])

    def meeting(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The level of the smallest node over both places: how many levels tell them apart."""
        level = np.zeros(len(low), dtype=np.int8)
        for ranks in self.ranks:
            level += ranks[low] != ranks[high]
        return level

    def width(self, low: np.ndarray, high: np.ndarray, level: np.ndarray) -> np.ndarray:
        """The share of the axis that the values from one place to another span, 0 where they are one."""
        if self.numeric:
            return (self.spots[high] - self.spots[low]) / _reach(self.spots)
        values = high - low + 1 if self.free else self.leaves[level, low]
        return np.where(low == high, 0.0, values / len(self))


def _axis(column: str, domain: Domain, levels: Levels, numeric: bool, *, sets: bool) -> _Axis:
    order = np.arange(len(domain)) if numeric else np.lexsort(levels.codes)
    nodes = [order] if numeric else [codes[order] for codes in levels.codes]
    ranks = np.array([np.cumsum(np.diff(of, prepend=of[:1]) != 0) for of in nodes], dtype=np.int32)
    place = np.empty(len(domain), dtype=np.int32)
    place[order] = np.arange(len(domain))
    free = sets and not numeric and levels.height == 1
    spots = _spots(column, domain) if numeric else np.empty(0)
    return _Axis(domain, levels, numeric, free, order, place, ranks, spots)


def _reach(spots: np.ndarray) -> float:
    """From the first to the last, 1 where there is nothing to measure by."""
    return float(spots[-1] - spots[0]) or 1.0 if len(spots) else 1.0


def _spots(column: str, domain: Domain) -> np.ndarray:
    """The numbers; a missing one stands a mean step above the others."""
    present = len(domain) - (domain.missing is not None)
    if present and domain.numbers is None:
        raise OptionError(f"Column '{column}' is to be cut as numbers, but has other values. Cut it by its hierarchy.")
    if not present or domain.numbers is None:
        return np.zeros(len(domain))
    numbers = domain.numbers[:present]
    gap = (numbers[-1] - numbers[0]) / (present - 1) if present > 1 else 1.0
    return np.append(numbers, numbers[-1] + gap)[: len(domain)]


# The search: all open parts at once.


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
        table = _merged(self.table, position, len(rows) + 1)
        return _Ground(self.ids[chosen], self.places[:, chosen], table), position[rows]


class _Search:
    """Cuts the classes into parts, breadth first."""

    def __init__(self, axes: Sequence[_Axis], models: Sequence[PrivacyModel], relaxed: bool) -> None:
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
        with step("Cutting into parts", lambda: self.closed / max(len(rows), 1)):
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
        shape, starts = (len(self.axes), len(sizes)), _starts(sizes)
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
        first = _starts(length)
        place = self.ground.places.ravel().take(np.repeat(axis * self.ground.places.shape[1], front.sizes) + front.rows)
        rank = self.ranks.take(np.repeat(base, front.sizes) + place)
        return _compact(_Runs(np.repeat(first - bottom, front.sizes) + rank, first, int(length.sum())))

    def _judge(self, front: _Front, sides: _Runs) -> tuple[np.ndarray, np.ndarray]:
        """The size of each side, and whether all sides of a part meet the models."""
        table = self.ground.table
        index = np.full(len(table), sides.count)
        index[front.rows] = sides.of
        merged = _merged(table, index, sides.count + (len(front.rows) < len(table)))
        failing = _failing(self.models, merged)[: sides.count]
        return merged.size[: sides.count], ~np.logical_or.reduceat(failing, sides.first)

    def _split(self, front: _Front, sides: _Runs, size: np.ndarray, safe: np.ndarray) -> _Front:
        """The sides of the parts whose cut is safe; what can never be cut again is closed at once."""
        chosen = np.repeat(safe, front.sizes)
        rows, side = front.rows[chosen], sides.of[chosen]
        count = np.bincount(side, minlength=sides.count)
        alive = (count > 1) & (size >= self.floor)
        lasting = alive[side]
        self._number(rows[~lasting], _renumber((count > 0) & ~alive)[side[~lasting]])
        ordered = _ordered(_renumber(alive)[side[lasting]], rows[lasting])
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


def _starts(sizes: np.ndarray) -> np.ndarray:
    starts: np.ndarray = np.cumsum(sizes) - sizes
    return starts


def _ordered(part: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The rows by part, and within a part by number; sorting plain numbers is faster than sorting pairs."""
    both = part << _ROW_BITS | rows
    both.sort()
    both &= _ROW_MASK
    return both


def _renumber(chosen: np.ndarray) -> np.ndarray:
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
    first = _starts(length)
    shift = np.repeat(first - np.where(parts, _starts(sizes), bins.first), sizes)
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


def _merged(classes: ClassTable, index: np.ndarray, groups: int) -> ClassTable:
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


# What is published.


@dataclass(frozen=True, eq=False)
class _Labels:
    """Distinct labels of a quasi-identifier, the number of each part's, and the width of each part."""

    texts: pa.Array
    of: np.ndarray
    width: np.ndarray


@dataclass(frozen=True, eq=False)
class _Spread:
    """The places on one axis that parts have, row by row, ordered by part; `starts` is where each part begins."""

    place: np.ndarray
    starts: np.ndarray

    @property
    def low(self) -> np.ndarray:
        return np.minimum.reduceat(self.place, self.starts)

    @property
    def high(self) -> np.ndarray:
        return np.maximum.reduceat(self.place, self.starts)

    @property
    def owner(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.place)))


def _publish(axes: Sequence[_Axis], places: np.ndarray, part: np.ndarray) -> Partition:
    """The parts with their labels, in the order of their first classes; those with the same labels are one."""
    sizes = np.bincount(part)
    rows, starts = _ordered(part, np.arange(len(part))), _starts(sizes)
    columns = [_labels(axis, _Spread(place[rows], starts)) for axis, place in zip(axes, places, strict=True)]
    same = np.zeros(len(sizes), dtype=np.int64)
    if columns and len(sizes):
        same = number(*pack([c.of for c in columns], [len(c.texts) for c in columns]))[1]
    renamed = _by_first(same[part])
    shown = np.zeros(int(renamed.max(initial=-1)) + 1, dtype=np.int64)
    shown[renamed] = part
    labels = tuple(c.texts.take(pa.array(c.of[shown])) for c in columns)
    widths = np.array([c.width[shown] for c in columns]).reshape(len(columns), len(shown))
    return Partition(renamed, labels, len(shown), widths)


def _by_first(index: np.ndarray) -> np.ndarray:
    """The same groups, numbered in the order in which they first occur."""
    first = np.zeros(int(index.max(initial=-1)) + 1, dtype=np.int64)
    first[index[::-1]] = np.arange(len(index))[::-1]
    begins = np.zeros(len(index), dtype=bool)
    begins[first] = True
    return _renumber(begins)[first[index]]


def _labels(axis: _Axis, spread: _Spread) -> _Labels:
    kind = _number_labels if axis.numeric else _set_labels if axis.free else _node_labels
    labels = kind(axis, spread)
    coded = labels.texts.dictionary_encode(null_encoding="encode")
    return replace(labels, texts=coded.dictionary, of=coded.indices.to_numpy()[labels.of])


def _number_labels(axis: _Axis, spread: _Spread) -> _Labels:
    """`30-35`; `30`; `[-5, 2.5]` where an end is not a plain whole number; nothing for missing."""
    low, high, values = spread.low, spread.high, max(len(axis), 1)
    mixed = (high == axis.missing) & (low < high)
    if mixed.any():
        present = np.where(spread.place == axis.missing, -1, spread.place)
        high = np.where(mixed, np.maximum.reduceat(present, spread.starts), high)
    keys, of = number(*pack([low, high, mixed], [values, values, 2]))
    texts = _range_texts(axis.domain.text, keys // 2 // values, keys // 2 % values, keys % 2 > 0)
    numbers = axis.spots[: len(axis) - axis.domain.text.null_count]
    width = (axis.spots[high] - axis.spots[low]) / _reach(numbers)
    return _Labels(texts, of, np.minimum(width + mixed / values, 1))


def _range_texts(text: pa.Array, low: np.ndarray, high: np.ndarray, mixed: np.ndarray) -> pa.Array:
    lower, upper = text.take(pa.array(low)), text.take(pa.array(high))
    plain = pc.match_substring_regex(text, r"^\d+$").take(pa.array(np.stack([low, high]).ravel()))
    plain = pc.and_(plain[: len(low)], plain[len(low) :])
    hyphen = pc.binary_join_element_wise(lower, upper, "-")
    bracket = pc.binary_join_element_wise("[", lower, ", ", upper, "]", "")
    texts = pc.if_else(pa.array(low == high), lower, pc.if_else(plain, hyphen, bracket))
    return pc.if_else(pa.array(mixed), pc.binary_join_element_wise(texts, MISSING, " or "), texts)


def _node_labels(axis: _Axis, spread: _Spread) -> _Labels:
    """The label of the smallest node over the part's values."""
    low, high = spread.low, spread.high
    level = axis.meeting(low, high)
    keys, of = number(*pack([level, axis.ranks[level, low]], [len(axis.ranks), len(axis)]))
    texts = [pa.array([], pa.string())]
    for height, (ranks, codes) in enumerate(zip(axis.ranks, axis.levels.codes, strict=True)):
        nodes = keys[keys // len(axis) == height] % len(axis)
        leaf = axis.code[np.searchsorted(ranks, nodes)]
        texts.append(axis.levels.labels[height].take(pa.array(codes[leaf])))
    return _Labels(pa.concat_arrays(texts), of, axis.width(low, high, level))


def _set_labels(axis: _Axis, spread: _Spread) -> _Labels:
    """The value; the set of up to five values; a run of values in domain order; `*` for all."""
    low, high, values = spread.low, spread.high, max(len(axis), 1)
    pairs = _distinct(spread.owner * values + spread.place)
    count = np.bincount(pairs // values, minlength=len(low))
    listed = (count > 1) & (count <= LISTED) & (count < values)
    members = pairs[listed[pairs // values]] % values
    sets = _set_texts(axis.domain.text, members, count[listed])
    keys, of = number(*pack([low, high], [values, values]))
    runs = _run_texts(axis, keys // values, keys % values)
    of[listed] = len(keys) + np.arange(len(sets))
    width = np.where(listed, count, high - low + 1) / values
    return _Labels(pa.concat_arrays([runs, sets]), of, np.where(low == high, 0.0, width))


def _distinct(keys: np.ndarray) -> np.ndarray:
    """The distinct keys in order; far faster for many keys than np.unique, which hashes them."""
    keys = np.sort(keys)
    return keys[np.diff(keys, prepend=-1) > 0]


def _set_texts(text: pa.Array, members: np.ndarray, count: np.ndarray) -> pa.Array:
    """`{a, b, c}`, for sets that follow each other in `members`."""
    ends = pa.array(np.append(0, np.cumsum(count)), pa.int32())
    lists = pa.ListArray.from_arrays(ends, text.fill_null(MISSING).take(pa.array(members)))
    return pc.binary_join_element_wise("{", pc.binary_join(lists, ", "), "}", "")


def _run_texts(axis: _Axis, low: np.ndarray, high: np.ndarray) -> pa.Array:
    """`a…z (12 values)`: all values from a to z in domain order."""
    text = axis.domain.text
    lower, upper = text.take(pa.array(low)), text.fill_null(MISSING).take(pa.array(high))
    many = pc.cast(pa.array(high - low + 1), pa.string())
    runs = pc.binary_join_element_wise(lower, "…", upper, " (", many, " values)", "")
    whole = pc.if_else(pa.array(high - low + 1 == len(axis)), axis.levels.labels[-1][0], runs)
    return pc.if_else(pa.array(low == high), lower, whole)

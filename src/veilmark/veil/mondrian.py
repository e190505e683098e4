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

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.errors import OptionError, VeilmarkWarning, listing
from veilmark.hierarchy import Levels
from veilmark.privacy.models import DeltaPresence, KMap, PrivacyModel
from veilmark.tables.cells import number, pack
from veilmark.tables.classes import ClassTable
from veilmark.veil.axes import Axis, axis_of, reach
from veilmark.veil.cuts import Cutting, merge_classes, ordered_by_part, renumber, starts_of

LISTED = 5
"""Sets of up to so many values are written out."""

MISSING = "missing"


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
    models: Sequence[PrivacyModel] = field(default=(), kw_only=True)


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
    axes = tuple(axis_of(*each, sets=method.sets) for each in named)
    table = _needed(classes, models)
    _check_whole(table, models)
    places = np.array([a.place[c] for a, c in zip(axes, classes.codes, strict=True)], dtype=np.int32)
    places = places.reshape(len(axes), len(classes))
    found = _publish(axes, places, Cutting(axes, models, method.relaxed).run(table, places))
    unmet = _unmet(found, table, models)
    if unmet and method.relaxed:
        warnings.warn(
            f"With overlapping ranges, classes would merge and no longer meet {listing(unmet)}. So the "
            "release has no overlapping ranges.",
            VeilmarkWarning,
            stacklevel=2,
        )
        found = _publish(axes, places, Cutting(axes, models, relaxed=False).run(table, places))
        unmet = _unmet(found, table, models)
    if unmet:
        raise OptionError(
            f"Classes with the same labels merge, and then do not meet {listing(unmet)}. Give the labels of "
            "different hierarchy levels different names, or use OLA."
        )
    return found


def _needed(classes: ClassTable, models: Sequence[PrivacyModel]) -> ClassTable:
    """What the models look at, no more."""
    beyond = [m for m in models if isinstance(m, KMap | DeltaPresence)]
    if beyond:
        raise OptionError(
            f"Mondrian does not support limits that need a population. Drop {listing(beyond)}, or use OLA."
        )
    wanted = {m.attribute for m in models}
    histograms = {name: h for name, h in classes.histograms.items() if name in wanted}
    return ClassTable((), (), np.zeros((0, len(classes)), dtype=np.int32), classes.tally, histograms)


def _check_whole(table: ClassTable, models: Sequence[PrivacyModel]) -> None:
    """The table as a single class must meet the models, or there is nothing to begin with."""
    groups = min(len(table), 1)
    whole = merge_classes(table, np.zeros(len(table), dtype=np.int64), groups)
    unmet = [m for m in models if m.failing(whole).any()]
    if unmet:
        raise OptionError(
            f"Even a single class of all {table.total_records:,} records does not meet {listing(unmet)}. Relax "
            "that limit, or drop it."
        )


def _unmet(found: Partition, table: ClassTable, models: Sequence[PrivacyModel]) -> list[PrivacyModel]:
    """What the published classes do not meet: parts with the same labels were joined, and there are models that two classes
    meet but not both together."""
    published = merge_classes(table, found.part, found.parts)
    return [m for m in models if m.failing(published).any()]


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


def _publish(axes: Sequence[Axis], places: np.ndarray, part: np.ndarray) -> Partition:
    """The parts with their labels, in the order of their first classes; those with the same labels are one."""
    sizes = np.bincount(part)
    rows, starts = ordered_by_part(part, np.arange(len(part))), starts_of(sizes)
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
    return renumber(begins)[first[index]]


def _labels(axis: Axis, spread: _Spread) -> _Labels:
    kind = _number_labels if axis.numeric else _set_labels if axis.free else _node_labels
    labels = kind(axis, spread)
    coded = labels.texts.dictionary_encode(null_encoding="encode")
    return replace(labels, texts=coded.dictionary, of=coded.indices.to_numpy()[labels.of])


def _number_labels(axis: Axis, spread: _Spread) -> _Labels:
    """`30-35`; `30`; `[-5, 2.5]` where an end is not a plain whole number; nothing for missing."""
    low, high, values = spread.low, spread.high, max(len(axis), 1)
    mixed = (high == axis.missing) & (low < high)
    if mixed.any():
        present = np.where(spread.place == axis.missing, -1, spread.place)
        high = np.where(mixed, np.maximum.reduceat(present, spread.starts), high)
    keys, of = number(*pack([low, high, mixed], [values, values, 2]))
    texts = _range_texts(axis.domain.text, keys // 2 // values, keys // 2 % values, keys % 2 > 0)
    numbers = axis.spots[: len(axis) - axis.domain.text.null_count]
    width = (axis.spots[high] - axis.spots[low]) / reach(numbers)
    return _Labels(texts, of, np.minimum(width + mixed / values, 1))


def _range_texts(text: pa.Array, low: np.ndarray, high: np.ndarray, mixed: np.ndarray) -> pa.Array:
    lower, upper = text.take(pa.array(low)), text.take(pa.array(high))
    plain = pc.match_substring_regex(text, r"^\d+$").take(pa.array(np.stack([low, high]).ravel()))
    plain = pc.and_(plain[: len(low)], plain[len(low) :])
    hyphen = pc.binary_join_element_wise(lower, upper, "-")
    bracket = pc.binary_join_element_wise("[", lower, ", ", upper, "]", "")
    texts = pc.if_else(pa.array(low == high), lower, pc.if_else(plain, hyphen, bracket))
    return pc.if_else(pa.array(mixed), pc.binary_join_element_wise(texts, MISSING, " or "), texts)


def _node_labels(axis: Axis, spread: _Spread) -> _Labels:
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


def _set_labels(axis: Axis, spread: _Spread) -> _Labels:
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


def _run_texts(axis: Axis, low: np.ndarray, high: np.ndarray) -> pa.Array:
    """`a…z (12 values)`: all values from a to z in domain order."""
    text = axis.domain.text
    lower, upper = text.take(pa.array(low)), text.fill_null(MISSING).take(pa.array(high))
    many = pc.cast(pa.array(high - low + 1), pa.string())
    runs = pc.binary_join_element_wise(lower, "…", upper, " (", many, " values)", "")
    whole = pc.if_else(pa.array(high - low + 1 == len(axis)), axis.levels.labels[-1][0], runs)
    return pc.if_else(pa.array(low == high), lower, whole)

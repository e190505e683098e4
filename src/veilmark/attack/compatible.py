"""Which published classes a person's quasi-identifiers fit: the candidates that an attacker who knows them starts from.

A class fits where each of its labels may stand for the person's value. Where numbers were replaced by class means, of the
classes that fit otherwise those count whose means are nearest: by Euclid, each column divided by its standard deviation
in the release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veilmark.attack.labels import SAME, marked, ranges
from veilmark.attack.view import View
from veilmark.tables.cells import number, pack

BLOCK = 1 << 25
"""So many (person, class) pairs are looked at together, a bit each."""

PAIRS = 1 << 22
"""So many pairs that fit are held at once."""

MANY = 1 << 16
"""Beyond so many pairs the nearest are found by a tree."""


@dataclass(frozen=True, eq=False)
class Sets:
    """Distinct sets of classes: set i holds `members[starts[i]:starts[i + 1]]`, in ascending order.

    `of` is the set of each of the combinations that were asked for.
    """

    starts: np.ndarray
    members: np.ndarray
    of: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1


def fitting_classes(view: View, values: Mapping[str, np.ndarray], count: int) -> Sets:
    """The classes that each combination of quasi-identifiers fits; `values` are codes of the source, by attribute."""
    if not view.quasi:
        return Sets(np.array([0, len(view)]), np.arange(len(view)), np.zeros(count, dtype=np.int64))
    used = {name: values[name] for name in view.quasi}
    kinds = [labels.alike[used[name]] for name, labels in view.quasi.items()]
    which = number(*pack(kinds, [int(kind.max(initial=0)) + 1 for kind in kinds]))[1]
    first = np.zeros(int(which.max(initial=-1)) + 1, dtype=np.int64)
    first[which[::-1]] = np.arange(count)[::-1]
    sets = _of_different(view, {name: codes[first] for name, codes in used.items()}, len(first))
    sets = Sets(sets.starts, sets.members, sets.of[which])
    return _nearest(view, used, sets) if any(labels.mean.any() for labels in view.quasi.values()) else sets


def _of_different(view: View, values: Mapping[str, np.ndarray], count: int) -> Sets:
    """In blocks of combinations with like values of the attribute that leaves the fewest classes."""
    lead, often = _lead(view)
    order = np.argsort(values[lead], kind="stable")
    size = max(int(BLOCK / max(len(view), 1)), int(math.sqrt(BLOCK / often)), 1)
    finder = _Finder(view, lead)
    found = [_NOTHING]
    for at in range(0, count, size):
        some = {name: codes[order[at : at + size]] for name, codes in values.items()}
        found += list(finder.find(some, min(size, count - at)))
    sets = _joined(found, len(view))
    of = np.empty(count, dtype=np.int64)
    of[order] = sets.of
    return Sets(sets.starts, sets.members, of)


def _lead(view: View) -> tuple[str, float]:
    """The attribute by which a value fits the fewest classes, and how many on average."""
    found = {}
    for i, (name, labels) in enumerate(view.quasi.items()):
        covered = np.where(labels.mean | labels.unread, len(labels.domain), labels.cover.count)
        found[name] = float(covered[view.codes[i]].sum()) / max(len(labels.domain), 1)
    lead = min(found, key=found.__getitem__)
    return lead, max(found[lead], 1.0)


class _Finder:
    """Finds the classes of some combinations. Classes are bits, so that an attribute costs little."""

    def __init__(self, view: View, lead: str) -> None:
        self._view, self._lead = view, list(view.quasi).index(lead)
        self._by_label = np.argsort(view.codes[self._lead], kind="stable")
        counts = np.bincount(view.codes[self._lead], minlength=len(view.quasi[lead]))
        self._ends = np.append(0, np.cumsum(counts))

    def find(self, values: Mapping[str, np.ndarray], count: int) -> Iterator[Sets]:
        distinct = {name: np.unique(codes, return_inverse=True) for name, codes in values.items()}
        masks = [labels.fits(distinct[name][0]) for name, labels in self._view.quasi.items()]
        classes = self._with_labels(masks[self._lead][0])
        bits = np.full((count, -(-len(classes) // 64) * 8), 255, dtype=np.uint8)
        for i, (name, (labels, mask)) in enumerate(zip(values, masks, strict=True)):
            column = np.full(len(self._view.quasi[name]), len(labels))
            column[labels] = np.arange(len(labels))
            wide = np.concatenate([mask, np.zeros((len(mask), 1), dtype=bool)], axis=1)
            packed = np.packbits(wide[:, column[self._view.codes[i, classes]]], axis=1, bitorder="little")
            bits[:, packed.shape[1] :] = 0
            bits[:, : packed.shape[1]] &= packed[distinct[name][1]]
        amount = np.bitwise_count(bits.view(np.uint64)).sum(axis=1, dtype=np.int64)
        for rows in blocks(amount, PAIRS):
            row, bit = _set_bits(bits[rows])
            yield _distinct(np.bincount(row, minlength=len(rows)), classes[bit], len(self._view))

    def _with_labels(self, labels: np.ndarray) -> np.ndarray:
        """The classes that have one of some labels of the leading attribute, in order."""
        length = (self._ends[1:] - self._ends[:-1])[labels]
        return np.sort(self._by_label[np.repeat(self._ends[:-1][labels], length) + ranges(length)])


def _set_bits(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row and place of each bit that is set."""
    row, word = np.nonzero(bits.view(np.uint64))
    at, bit = np.nonzero(np.unpackbits(bits.reshape(len(bits), -1, 8)[row, word], axis=1, bitorder="little"))
    return row[at], word[at] * 64 + bit


def blocks(cost: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """Consecutive places, together of a cost of about `most`, or just one."""
    done = np.cumsum(np.maximum(cost, 1).astype(np.float64))
    ends = np.flatnonzero(np.diff((done // most).astype(np.int64))) + 1
    yield from np.split(np.arange(len(cost)), ends) if len(cost) else ()


_NOTHING = Sets(np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def _distinct(lengths: np.ndarray, members: np.ndarray, classes: int) -> Sets:
    """Lists of classes, equal ones as one set."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    first, of = np.unique(marked(owner, members, len(lengths), classes), return_index=True, return_inverse=True)[1:]
    starts = np.append(0, np.cumsum(lengths))
    chosen = np.repeat(starts[first], lengths[first]) + ranges(lengths[first])
    return Sets(np.append(0, np.cumsum(lengths[first])), members[chosen], of)


def _joined(found: Sequence[Sets], classes: int) -> Sets:
    """The sets of all combinations, one after the other."""
    before = np.cumsum([0, *(len(sets) for sets in found)])
    lengths, members = (np.concatenate(of) for of in zip(*((np.diff(s.starts), s.members) for s in found), strict=True))
    whole = _distinct(lengths, members, classes)
    of = np.concatenate([sets.of + offset for sets, offset in zip(found, before[:-1], strict=True)])
    return Sets(whole.starts, whole.members, whole.of[of])


# Means.


def _nearest(view: View, values: Mapping[str, np.ndarray], sets: Sets) -> Sets:
    """Of each combination's classes those with the nearest means; `values` are the combinations' own."""
    targets, classes = _places(view, values)
    by_set = np.argsort(sets.of, kind="stable")
    ends = np.searchsorted(sets.of[by_set], np.arange(len(sets) + 1))
    cost = np.diff(ends) * np.diff(sets.starts)
    found, order = [_NOTHING], [np.empty(0, np.int64)]
    few = by_set[np.repeat(cost <= MANY, np.diff(ends))]
    for rows in blocks(np.diff(sets.starts)[sets.of[few]], PAIRS):
        found.append(_distinct(*_nearest_pairs(sets, few[rows], targets, classes), len(view)))
        order.append(few[rows])
    for i in np.flatnonzero(cost > MANY):
        rows, members = by_set[ends[i] : ends[i + 1]], sets.members[sets.starts[i] : sets.starts[i + 1]]
        found.append(_distinct(*_nearest_by_tree(members, targets[rows], classes), len(view)))
        order.append(rows)
    whole = _joined(found, len(view))
    of = np.empty(len(sets.of), dtype=np.int64)
    of[np.concatenate(order)] = whole.of
    return Sets(whole.starts, whole.members, of)


def _places(view: View, values: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Where combinations and classes stand by the columns of means, in standard deviations; NaN: no number."""
    targets, classes = [], []
    for i, (name, labels) in enumerate(view.quasi.items()):
        if labels.mean.any() and labels.domain.numbers is not None:
            means = labels.numbers[view.codes[i]]
            there = ~np.isnan(means)
            weight = view.size[there] / view.size[there].sum()
            middle = np.dot(weight, means[there])
            spread = math.sqrt(np.dot(weight, (means[there] - middle) ** 2)) or 1.0
            targets.append(labels.domain.numbers[values[name]] / spread)
            classes.append(means / spread)
    return np.array(targets).T, np.array(classes).T


def _nearest_pairs(
    sets: Sets, rows: np.ndarray, targets: np.ndarray, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How many classes are nearest to each of some combinations, and which."""
    length = np.diff(sets.starts)[sets.of[rows]]
    row = np.repeat(np.arange(len(rows)), length)
    member = sets.members[np.repeat(sets.starts[sets.of[rows]], length) + ranges(length)]
    apart = (np.nan_to_num(targets[rows[row]] - classes[member]) ** 2).sum(axis=1)
    begins = np.flatnonzero(np.diff(row, prepend=-1))
    least = np.repeat(np.minimum.reduceat(apart, begins), length[length > 0]) if len(row) else apart
    near = apart <= least * (1 + SAME) + SAME**2
    return np.bincount(row[near], minlength=len(rows)), member[near]


def _nearest_by_tree(members: np.ndarray, targets: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for combinations with one set. Where a class has no number, that column does not count."""
    from scipy.spatial import KDTree  # here, because it takes a while to load

    patterns, pattern = np.unique(np.isnan(classes[members]), axis=0, return_inverse=True)
    trees = []
    for i, lacks in enumerate(patterns):
        mine = members[pattern.ravel() == i]
        spots, which = np.unique(np.where(lacks, 0.0, classes[mine]), axis=0, return_inverse=True)
        trees.append((KDTree(spots), which.ravel(), mine, np.nan_to_num(np.where(lacks, 0.0, targets))))
    least = np.min([tree.query(at)[0] for tree, _, _, at in trees], axis=0)
    reach = np.sqrt(least**2 * (1 + SAME) + SAME**2)
    row, member = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for tree, which, mine, at in trees:
        lists = tree.query_ball_point(at, reach, return_sorted=False)
        length = np.fromiter(map(len, lists), np.int64, len(lists))
        spot = np.concatenate([np.empty(0, np.int64), *lists]).astype(np.int64)
        order = np.argsort(which, kind="stable")
        ends = np.append(0, np.cumsum(np.bincount(which)))
        many = np.diff(ends)[spot]
        row.append(np.repeat(np.repeat(np.arange(len(at)), length), many))
        member.append(mine[order[np.repeat(ends[spot], many) + ranges(many)]])
    rows, found = np.concatenate(row), np.concatenate(member)
    order = np.lexsort((found, rows))
    return np.bincount(rows, minlength=len(targets)), found[order]

"""Which published classes a person's quasi-identifiers fit: the candidates that an attacker who knows them starts from.

A class fits where each of its labels may stand for the person's value. Where numbers were replaced by class means, of the
classes that fit otherwise those count whose means are nearest: by Euclid, each column divided by its standard deviation
in the release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from veilmark.attack.labels import SAME, marked, ranges
from veilmark.attack.view import View

BLOCK = 1 << 23
"""So many (person, class) pairs are looked at together."""


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
    block = max(BLOCK // max(len(view), 1), 1)
    found = [Sets(np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))]
    for first in range(0, count, block):
        size = min(block, count - first)
        some = {name: codes[first : first + size] for name, codes in values.items() if name in view.quasi}
        row, member = _nearest(view, some, *_fitting(view, some, size))
        found.append(_distinct(np.bincount(row, minlength=size), member, len(view)))
    before = np.cumsum([0, *(len(sets) for sets in found)])
    lengths, members = (np.concatenate(of) for of in zip(*((np.diff(s.starts), s.members) for s in found), strict=True))
    whole = _distinct(lengths, members, len(view))
    of = np.concatenate([sets.of + offset for sets, offset in zip(found, before[:-1], strict=True)])
    return Sets(whole.starts, whole.members, whole.of[of])


def _fitting(view: View, values: Mapping[str, np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of combination and class that fit. Classes are bits, so that an attribute costs little."""
    width = -(-len(view) // 64) * 8
    bits = np.full((count, width), 255, dtype=np.uint8)
    bits[:, -(-len(view) // 8) :] = 0
    for i, (name, labels) in enumerate(view.quasi.items()):
        distinct, which = np.unique(values[name], return_inverse=True)
        packed = np.packbits(labels.fits(distinct)[:, view.codes[i]], axis=1, bitorder="little")
        bits[:, : packed.shape[1]] &= packed[which]
    row, word = np.nonzero(bits.view(np.uint64))
    found = np.unpackbits(bits.reshape(count, -1, 8)[row, word], axis=1, bitorder="little")
    at, bit = np.nonzero(found)
    member = word[at] * 64 + bit
    there = member < len(view)
    return row[at][there], member[there]


def _nearest(
    view: View, values: Mapping[str, np.ndarray], row: np.ndarray, member: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of each combination's classes those with the nearest means."""
    apart = np.zeros(len(row))
    for i, (name, labels) in enumerate(view.quasi.items()):
        if not labels.mean.any() or labels.domain.numbers is None:
            continue
        means = labels.numbers[view.codes[i]]
        apart += np.nan_to_num((labels.domain.numbers[values[name][row]] - means[member]) / _spread(means, view)) ** 2
    if not len(row) or not apart.any():
        return row, member
    begins = np.flatnonzero(np.diff(row, prepend=-1))
    least = np.repeat(np.minimum.reduceat(apart, begins), np.diff(np.append(begins, len(row))))
    near = apart <= least * (1 + SAME) + SAME**2
    return row[near], member[near]


def _spread(means: np.ndarray, view: View) -> float:
    """The standard deviation of published means over rows; 1 where they are all one."""
    there = ~np.isnan(means)
    mean = np.average(means[there], weights=view.size[there])
    spread = np.sqrt(np.average((means[there] - mean) ** 2, weights=view.size[there]))
    return float(spread) or 1.0


def _distinct(lengths: np.ndarray, members: np.ndarray, classes: int) -> Sets:
    owner = np.repeat(np.arange(len(lengths)), lengths)
    marks = marked(owner, members, len(lengths), classes)
    first, of = np.unique(marks, return_index=True, return_inverse=True)[1:]
    starts = np.append(0, np.cumsum(lengths))
    chosen = np.repeat(starts[first], lengths[first]) + ranges(lengths[first])
    return Sets(np.append(0, np.cumsum(lengths[first])), members[chosen], of)

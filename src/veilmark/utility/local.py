"""Information loss of local recodings (Mondrian), by the same metrics as full-domain ones.

What a part publishes of an attribute covers some of its values: of numbers all between the least and the largest
present; of categories all under the smallest node of the hierarchy that covers those present, or, where there are no
levels between the values and the top and sets are published, the set itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from veilmark.hierarchy import Levels
from veilmark.tables.classes import ClassTable
from veilmark.utility.loss import ADDITIVE, Attribute, label_widths
from veilmark.veil.mondrian import LISTED

Parts = Mapping[str, Mapping[str, float]]


class _Members:
    """Which classes each part has, brought together once for all attributes."""

    def __init__(self, part: np.ndarray, parts: int) -> None:
        self.part, self.parts = part, parts
        self._order = np.argsort(part, kind="stable")
        self._there, self._starts = np.unique(part[self._order], return_index=True)

    def extremes(self, codes: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray]:
        """The least and largest code of each part."""
        low, high = np.full(self.parts, bound, dtype=np.int64), np.full(self.parts, -1, dtype=np.int64)
        if len(codes):
            ordered = codes[self._order]
            low[self._there] = np.minimum.reduceat(ordered, self._starts)
            high[self._there] = np.maximum.reduceat(ordered, self._starts)
        return low, high


def local_losses(
    classes: ClassTable,
    levels: Sequence[Levels],
    numeric: Sequence[bool],
    part: np.ndarray,
    parts: int,
    by_attribute: Parts | None = None,
    gone: np.ndarray | None = None,
) -> dict[str, float]:
    """The loss of a partition by every metric; `gone` is a mask of the parts that are suppressed. `by_attribute` saves
    computing it again."""
    own = by_attribute or local_by_attribute(classes, levels, numeric, part, parts, gone=gone)
    size = np.bincount(part, weights=classes.records, minlength=parts)
    squares = float((size**2).sum())
    lost = np.zeros(parts, dtype=bool) if gone is None else gone
    left_out = float((size[lost] * size.sum() - size[lost] ** 2).sum())
    means: dict[str, float] = {}
    for metric in ADDITIVE:
        total = sum(of[metric] for of in own.values())
        means[metric] = total if metric == "entropy" else total / max(len(own), 1)
    return {"dm_star": squares, "dm": squares + left_out, **means}


def local_by_attribute(
    classes: ClassTable,
    levels: Sequence[Levels],
    numeric: Sequence[bool],
    part: np.ndarray,
    parts: int,
    sets: bool = True,
    gone: np.ndarray | None = None,
) -> dict[str, dict[str, float]]:
    """Each attribute's own loss by the additive metrics: a mean over records in 0..1, entropy a sum in bits.

    `sets`: categories without levels of their own are published as sets of values, as Mondrian does by default. Records of
    parts that are `gone` lose everything.
    """
    size = np.bincount(part, weights=classes.records, minlength=parts)
    members = _Members(part, parts)
    lost = np.zeros(parts, dtype=bool) if gone is None else gone
    return {
        column: _attribute_losses(classes, i, of, as_number, members, size, sets, lost)
        for i, (column, of, as_number) in enumerate(zip(classes.columns, levels, numeric, strict=True))
    }


def _attribute_losses(
    classes: ClassTable,
    i: int,
    levels: Levels,
    as_number: bool,
    members: _Members,
    size: np.ndarray,
    sets: bool,
    gone: np.ndarray,
) -> dict[str, float]:
    codes, domain = classes.codes[i], classes.domains[i]
    values, everyone = len(domain), float(size.sum()) or 1.0
    records = np.bincount(codes, weights=classes.records, minlength=values)
    level, node = _smallest_node(levels, codes, members)
    if as_number and domain.numbers is not None:
        width, leaves, covered = _number_cover(domain.numbers, domain.missing, codes, records, members)
    else:
        attribute = Attribute(levels, records, domain.numbers)
        width, leaves, covered = _node_cover(attribute, level, node)
        if sets and levels.height == 1:
            leaves, covered = _set_cover(codes, records, members)
            width = np.where(leaves > 1, leaves / max(values, 1), 0.0)
    level, width = np.where(gone, levels.height, level), np.where(gone, 1.0, width)
    leaves, covered = np.where(gone, values, leaves), np.where(gone, everyone, covered)
    there = classes.records > 0
    bits = np.log2(covered[members.part[there]] / records[codes[there]])
    return {
        "precision": float(np.dot(size, level / max(levels.height, 1))) / everyone,
        "gcp": float(np.dot(size, width)) / everyone,
        "entropy": float(np.dot(classes.records[there], bits)),
        "lm": float(np.dot(size, (leaves - 1) / max(values - 1, 1))) / everyone,
    }


def _smallest_node(levels: Levels, codes: np.ndarray, members: _Members) -> tuple[np.ndarray, np.ndarray]:
    """For each part the lowest level at which all its values have one label, and that label."""
    level = np.full(members.parts, levels.height)
    node = np.zeros(members.parts, dtype=np.int64)
    for at in reversed(range(levels.height + 1)):
        labels = levels.codes[at][codes]
        low, high = members.extremes(labels, len(levels.labels[at]))
        one = low == high
        level[one], node[one] = at, low[one]
    return level, node


# What the label of each part covers: which share of the attribute, how many values, and how many records of the table
# have one of these.


def _node_cover(attribute: Attribute, level: np.ndarray, node: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The width of the node too, as a full-domain recoding reckons it."""
    levels = attribute.levels
    width, leaves, covered = (np.empty(len(level)) for _ in range(3))
    for at in range(levels.height + 1):
        here = level == at
        width[here] = label_widths(attribute, at)[node[here]]
        leaves[here] = levels.leaves(at)[node[here]]
        covered[here] = np.bincount(levels.codes[at], weights=attribute.records)[node[here]]
    return width, leaves, covered


def _set_cover(codes: np.ndarray, records: np.ndarray, members: _Members) -> tuple[np.ndarray, np.ndarray]:
    """Small sets are written out; a larger one is the run of values from its first to its last."""
    values = max(len(records), 1)
    owner, member = np.divmod(np.unique(members.part.astype(np.int64) * values + codes), values)
    count = np.bincount(owner, minlength=members.parts)
    own = np.bincount(owner, weights=records[member], minlength=members.parts)
    low, high = members.extremes(codes, values)
    listed = count <= LISTED
    return np.where(listed, count, high - low + 1), np.where(listed, own, _between(records, low, high))


def _number_cover(
    numbers: np.ndarray, missing: int | None, codes: np.ndarray, records: np.ndarray, members: _Members
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The share of the range too; a part that mixes numbers with missing values covers everything."""
    low, high = members.extremes(codes, len(numbers))
    mixed = np.zeros(members.parts, dtype=bool) if missing is None else (high == missing) & (low != missing)
    whole = np.nanmax(numbers) - np.nanmin(numbers) or 1.0
    width = np.where(mixed, 1.0, np.nan_to_num(numbers[high] - numbers[low]) / whole)
    leaves = np.where(mixed, len(numbers), high - low + 1)
    return width, leaves, np.where(mixed, records.sum(), _between(records, low, high))


def _between(records: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    before = np.append(0.0, np.cumsum(records))
    return before[high + 1] - before[low]

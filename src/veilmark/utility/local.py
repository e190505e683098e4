"""Information loss of local recodings (Mondrian), by the same metrics as full-domain ones.

What a part publishes of an attribute covers some of its values: of numbers all between the least and the largest
present, of categories all under the smallest node of the hierarchy that covers those present.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veilmark.classes import ClassTable
from veilmark.hierarchy import Levels


def local_losses(
    classes: ClassTable, levels: Sequence[Levels], numeric: Sequence[bool], part: np.ndarray, parts: int
) -> dict[str, float]:
    """The loss of a partition by every metric; nothing is suppressed."""
    size = np.bincount(part, weights=classes.records, minlength=parts)
    everyone, total = float(size.sum()), {"precision": 0.0, "gcp": 0.0, "entropy": 0.0, "lm": 0.0}
    for i, (of, as_number) in enumerate(zip(levels, numeric, strict=True)):
        for name, amount in _attribute_losses(classes, i, of, as_number, part, parts, size).items():
            total[name] += amount
    scale = everyone * len(levels) or 1.0
    squares = float((size**2).sum())
    averages = {name: amount if name == "entropy" else amount / scale for name, amount in total.items()}
    return {"dm_star": squares, "dm": squares, **averages}


def _attribute_losses(
    classes: ClassTable, i: int, levels: Levels, as_number: bool, part: np.ndarray, parts: int, size: np.ndarray
) -> dict[str, float]:
    """One attribute's loss, summed over records."""
    codes, domain = classes.codes[i], classes.domains[i]
    values = len(domain)
    records = np.bincount(codes, weights=classes.records, minlength=values)
    level, node = _smallest_node(levels, codes, part, parts)
    leaves = np.array([levels.leaves(at)[label] for at, label in zip(level, node, strict=True)], dtype=float)
    members = [np.bincount(of, weights=records) for of in levels.codes]
    covered = np.array([members[at][label] for at, label in zip(level, node, strict=True)])
    width = np.where(leaves > 1, leaves / values, 0.0)
    if as_number and domain.numbers is not None:
        low, high, mixed = _span(codes, domain.missing, part, parts)
        numbers = domain.numbers
        whole = np.nanmax(numbers) - np.nanmin(numbers) or 1.0
        width = np.where(mixed, 1.0, np.nan_to_num(numbers[high] - numbers[low]) / whole)
        before = np.append(0.0, np.cumsum(records))
        covered = np.where(mixed, records.sum(), before[high + 1] - before[low])
        leaves = np.where(mixed, values, high - low + 1)
    bits = np.log2(covered[part] / records[codes])
    return {
        "precision": float(np.dot(size, level / max(levels.height, 1))),
        "gcp": float(np.dot(size, width)),
        "lm": float(np.dot(size, (leaves - 1) / max(values - 1, 1))),
        "entropy": float(np.dot(classes.records, bits)),
    }


def _smallest_node(levels: Levels, codes: np.ndarray, part: np.ndarray, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """For each part the lowest level at which all its values have one label, and that label."""
    level = np.full(parts, levels.height)
    node = np.zeros(parts, dtype=np.int64)
    for at in reversed(range(levels.height + 1)):
        labels = levels.codes[at][codes]
        low, high = _extremes(labels, part, parts, len(levels.labels[at]))
        one = low == high
        level[one], node[one] = at, low[one]
    return level, node


def _span(
    codes: np.ndarray, missing: int | None, part: np.ndarray, parts: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The least and largest code of each part, and whether it mixes numbers with missing values."""
    low, high = _extremes(codes, part, parts, int(codes.max(initial=0)) + 1)
    mixed = np.zeros(parts, dtype=bool) if missing is None else (high == missing) & (low != missing)
    return low, high, mixed


def _extremes(codes: np.ndarray, part: np.ndarray, parts: int, bound: int) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.full(parts, bound, dtype=np.int64), np.full(parts, -1, dtype=np.int64)
    np.minimum.at(low, part, codes)
    np.maximum.at(high, part, codes)
    return low, high

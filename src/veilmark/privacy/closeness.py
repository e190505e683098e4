"""t-closeness: the earth mover's distance between a class's sensitive values and the whole table's.

(Li et al. 2007.) Each distance is computed from the cells that occur, never from classes × values.
"""

from __future__ import annotations

import numpy as np

from veilmark.hierarchy import Levels
from veilmark.tables.classes import ClassTable, Histogram


def equal_distance(classes: ClassTable, attribute: str) -> np.ndarray:
    """½ Σ|p - q| for each class, in [0, 1): all values are equally far apart.

    What the class has too much of, it has too little of elsewhere, so that Σ max(p - q, 0) is the same.
    """
    histogram = classes.histograms[attribute]
    share, overall = _shares(classes, histogram)
    extra = np.maximum(share - overall[histogram.value], 0.0)
    return np.minimum(np.bincount(histogram.owner, weights=extra, minlength=len(classes)), 1.0)


def ordered_distance(classes: ClassTable, attribute: str, rank: np.ndarray) -> np.ndarray:
    """Σ_i |Σ_{j≤i} (p_j - q_j)| / (m - 1) for each class, in [0, 1]; `rank` places each code in the order.

    The m values are those that the table has. Between two values that a class has, its cumulative share stays
    put while the table's rises, so that the sum over the values between is a difference of prefix sums, cut
    where the two cross.
    """
    histogram = classes.histograms[attribute]
    counts, place = _places(histogram, rank)
    m = len(counts)
    if m < 2:
        return np.zeros(len(classes))
    order = np.argsort(histogram.owner * m + place)
    owner, place, records = histogram.owner[order], place[order], histogram.records[order]
    first = np.append(True, owner[1:] != owner[:-1])
    level = _running(first, records) / classes.records[owner]
    table = np.cumsum(counts) / counts.sum()
    prefix = np.append(0.0, np.cumsum(table))
    until = np.where(np.append(first[1:], True), m, np.append(place[1:], m))
    cross = np.clip(np.searchsorted(table, level), place, until)
    below = level * (cross - place) - (prefix[cross] - prefix[place])
    above = (prefix[until] - prefix[cross]) - level * (until - cross)
    before = np.where(first, prefix[place], 0.0)
    distance = np.bincount(owner, weights=below + above + before, minlength=len(classes))
    return np.clip(distance / (m - 1), 0.0, 1.0)


def _places(histogram: Histogram, rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The records of the values that occur, in order, and each cell's place among them."""
    counts = np.zeros(len(histogram.domain), dtype=np.int64)
    counts[rank] = histogram.overall
    place = np.cumsum(counts > 0) - 1
    return counts[counts > 0], place[rank[histogram.value]]


def _running(first: np.ndarray, records: np.ndarray) -> np.ndarray:
    """Cumulative sums that begin anew where a class does; of whole numbers, so that nothing is lost."""
    running = np.cumsum(records)
    starts = np.flatnonzero(first)
    before = running[starts] - records[starts]
    sums: np.ndarray = running - np.repeat(before, np.diff(np.append(starts, len(records))))
    return sums


def hierarchical_distance(classes: ClassTable, attribute: str, levels: Levels) -> np.ndarray:
    """Σ_N height(N)/H · min(extra⁺, extra⁻) over inner nodes N, in [0, 1]: far is what meets high up.

    A node that the class does not reach has no extra⁺ and costs nothing: only reached ones are visited.
    """
    histogram = classes.histograms[attribute]
    share, overall = _shares(classes, histogram)
    owner, node = histogram.owner, histogram.value
    distance = np.zeros(len(classes))
    for height in range(1, levels.height + 1):
        up = levels.up(height - 1, height)
        labels = len(levels.labels[height])
        wider = np.bincount(up, weights=overall, minlength=labels)
        cells, position = np.unique(owner * labels + up[node], return_inverse=True)
        surplus = share - overall[node]
        plus = np.bincount(position, weights=np.maximum(surplus, 0))
        less = np.bincount(position, weights=np.maximum(-surplus, 0))
        reached = np.bincount(position, weights=overall[node])
        share = np.bincount(position, weights=share)
        owner, node, overall = cells // labels, cells % labels, wider
        minus = less + np.maximum(wider[node] - reached, 0)
        cost = np.minimum(plus, minus) * height / levels.height
        distance += np.bincount(owner, weights=cost, minlength=len(classes))
    return np.clip(distance, 0.0, 1.0)


def _shares(classes: ClassTable, histogram: Histogram) -> tuple[np.ndarray, np.ndarray]:
    """Each cell's share of its class, and each value's share of the table."""
    everything = max(histogram.overall.sum(), 1)
    return histogram.records / classes.records[histogram.owner], histogram.overall / everything

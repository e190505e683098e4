"""How diverse the sensitive values of each class are: one array, a number a class, for each notion.

All of them count records. α alone counts persons where they are known: the share of a class's persons who
have a value is what an intruder may believe of each of them.
"""

from __future__ import annotations

import numpy as np

from veilmark.tables.classes import ClassTable, Histogram


def distinct_values(classes: ClassTable, attribute: str) -> np.ndarray:
    """Distinct l-diversity: how many values the class has. At least 1. (Machanavajjhala et al. 2007)"""
    return np.bincount(classes.histograms[attribute].owner, minlength=len(classes))


def entropy_diversity(classes: ClassTable, attribute: str) -> np.ndarray:
    """Entropy l-diversity: exp(H) of the class's values, 1 up to the number of distinct values.

    A whole number comes out whole, so that a class that just meets a limit meets it.
    """
    histogram = classes.histograms[attribute]
    share = histogram.records / classes.records[histogram.owner]
    entropy = np.bincount(histogram.owner, weights=-share * np.log(share), minlength=len(classes))
    l = np.exp(entropy)  # noqa: E741
    whole = np.rint(l)
    return np.where(np.abs(l - whole) <= 1e-12 * whole, whole, l)


def recursive_c(classes: ClassTable, attribute: str, l: int) -> np.ndarray:  # noqa: E741
    """The c above which a class is recursively (c,l)-diverse: r_1 / (r_l + … + r_m), counts falling.

    Infinite where the class has fewer than l values.
    """
    histogram = classes.histograms[attribute]
    most = int(histogram.records.max(initial=0))
    order = np.argsort(histogram.owner * (most + 1) + most - histogram.records)
    owner, records = histogram.owner[order], histogram.records[order]
    starts = _starts(histogram)
    rank = np.arange(len(owner)) - np.repeat(starts, np.diff(np.append(starts, len(owner))))
    tail = np.bincount(owner, weights=np.where(rank >= l - 1, records, 0), minlength=len(classes))
    c: np.ndarray = np.divide(records[starts], tail, out=np.full(len(classes), np.inf), where=tail > 0)
    return c


def largest_share(classes: ClassTable, attribute: str) -> np.ndarray:
    """α of (α,k)-anonymity: the largest share of the class that has one value, in (0, 1]."""
    histogram = classes.histograms[attribute]
    share: np.ndarray = _largest(histogram, histogram.tally.size) / classes.size
    return share


def basic_beta(classes: ClassTable, attribute: str) -> np.ndarray:
    """Basic β-likeness: the largest gain (q - p)/p of a value's share q over its share p in the table.

    At least 0. (Cao and Karras 2012)
    """
    histogram = classes.histograms[attribute]
    gain: np.ndarray = _largest(histogram, _lift(classes, histogram)) - 1
    return gain


def enhanced_beta(classes: ClassTable, attribute: str) -> np.ndarray:
    """Enhanced β-likeness as pyCANON has it: the basic one, at most -ln of the rarest value's share."""
    overall = classes.histograms[attribute].overall
    if not overall.any():
        return np.empty(0)
    cap = np.log(overall.sum() / overall[overall > 0].min())
    capped: np.ndarray = np.minimum(basic_beta(classes, attribute), cap)
    return capped


def disclosure(classes: ClassTable, attribute: str) -> np.ndarray:
    """δ-disclosure: the largest |ln(q/p)| over the values the class has (Brickell and Shmatikov 2008)."""
    histogram = classes.histograms[attribute]
    return _largest(histogram, np.abs(np.log(_lift(classes, histogram))))


def _lift(classes: ClassTable, histogram: Histogram) -> np.ndarray:
    """For each cell the value's share in the class over its share in the table; 1 where they are equal."""
    expected = classes.records[histogram.owner] * histogram.overall[histogram.value].astype(float)
    lift: np.ndarray = histogram.records * float(histogram.overall.sum()) / expected
    return lift


def _largest(histogram: Histogram, amounts: np.ndarray) -> np.ndarray:
    if not len(amounts):
        return np.empty(0)
    largest: np.ndarray = np.maximum.reduceat(amounts, _starts(histogram))
    return largest


def _starts(histogram: Histogram) -> np.ndarray:
    """Where each class's cells begin; every class has at least one."""
    return np.flatnonzero(np.diff(histogram.owner, prepend=-1))

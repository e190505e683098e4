"""How diverse the sensitive values of each class are: one array, a number a class, for each notion.

All of them count records. α alone counts persons where they are known: the share of a class's persons who have
a value is what an intruder may believe of each of them.
"""

from __future__ import annotations

import numpy as np

from veilmark.classes import ClassTable, Histogram


def distinct_values(classes: ClassTable, attribute: str) -> np.ndarray:
    """Distinct l-diversity: how many values the class has. At least 1. (Machanavajjhala et al. 2007)"""
    return np.bincount(classes.histograms[attribute].owner, minlength=len(classes))


def entropy_diversity(classes: ClassTable, attribute: str) -> np.ndarray:
    """Entropy l-diversity: exp(H) of the class's values, 1 up to the number of distinct values."""
    histogram = classes.histograms[attribute]
    terms = histogram.records * np.log(histogram.records)
    inner = np.bincount(histogram.owner, weights=terms, minlength=len(classes))
    entropy = np.log(classes.records) - inner / classes.records
    return np.exp(np.maximum(entropy, 0.0))


def recursive_c(classes: ClassTable, attribute: str, l: int) -> np.ndarray:  # noqa: E741
    """The c above which a class is recursively (c,l)-diverse: r_1 / (r_l + … + r_m), counts falling.

    Infinite where the class has fewer than l values.
    """
    histogram = classes.histograms[attribute]
    order = np.lexsort((-histogram.records, histogram.owner))
    owner, records = histogram.owner[order], histogram.records[order]
    starts = _starts(histogram)
    rank = np.arange(len(owner)) - np.repeat(starts, np.diff(np.append(starts, len(owner))))
    tail = np.bincount(owner, weights=np.where(rank >= l - 1, records, 0), minlength=len(classes))
    with np.errstate(divide="ignore"):
        return records[starts] / tail


def largest_share(classes: ClassTable, attribute: str) -> np.ndarray:
    """α of (α,k)-anonymity: the largest share of the class that has one value, in (0, 1]."""
    histogram = classes.histograms[attribute]
    return _largest(histogram, histogram.tally.size) / classes.size


def basic_beta(classes: ClassTable, attribute: str) -> np.ndarray:
    """Basic β-likeness: the largest relative gain (q - p)/p of a value's share q over its share p in the table."""
    histogram = classes.histograms[attribute]
    return _largest(histogram, _lift(classes, histogram)) - 1


def enhanced_beta(classes: ClassTable, attribute: str) -> np.ndarray:
    """Enhanced β-likeness as pyCANON has it: the basic one, at most -ln of the rarest value's share."""
    overall = classes.histograms[attribute].overall
    rarest = overall[overall > 0].min() / overall.sum()
    return np.minimum(basic_beta(classes, attribute), -np.log(rarest))


def disclosure(classes: ClassTable, attribute: str) -> np.ndarray:
    """δ-disclosure: the largest |ln(q/p)| over the values the class has (Brickell and Shmatikov 2008)."""
    histogram = classes.histograms[attribute]
    return _largest(histogram, np.abs(np.log(_lift(classes, histogram))))


def _lift(classes: ClassTable, histogram: Histogram) -> np.ndarray:
    """For each cell the value's share in the class over its share in the table."""
    share = histogram.records / classes.records[histogram.owner]
    return share / (histogram.overall / histogram.overall.sum())[histogram.value]


def _largest(histogram: Histogram, amounts: np.ndarray) -> np.ndarray:
    return np.maximum.reduceat(amounts, _starts(histogram)) if len(amounts) else np.empty(0)


def _starts(histogram: Histogram) -> np.ndarray:
    """Where each class's cells begin; every class has at least one."""
    return np.flatnonzero(np.diff(histogram.owner, prepend=-1))

"""How strongly two columns go together, from 0 to 1, by their kinds.

Small samples make every two columns look related. The corrected forms take off what chance alone would bring.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

NOISE = 1e-24
"""Less variance within groups than this share of that between them is float error."""


def contingency(first: np.ndarray, second: np.ndarray, records: np.ndarray | None = None) -> np.ndarray:
    """How often each pair of codes occurs; `records` counts each row."""
    rows, columns = int(first.max(initial=-1)) + 1, int(second.max(initial=-1)) + 1
    keys = first.astype(np.int64) * columns + second
    return np.bincount(keys, weights=records, minlength=rows * columns).reshape(rows, columns).astype(np.float64)


def cramers_v(table: np.ndarray, corrected: bool = True, freedom: float | None = None) -> float:
    """Cramér's V of a table of counts, bias-corrected (Bergsma 2013): 0 unrelated, 1 one column decides the other.

    `freedom` are the degrees of freedom, where the table has fewer than (rows - 1)·(columns - 1) because its counts are
    smoothed.
    """
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    n, (rows, columns) = float(table.sum()), table.shape
    if min(rows, columns) < 2 or n <= 1:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi2 = float(((table - expected) ** 2 / expected).sum()) / n
    reach = min(rows, columns) - 1.0
    if corrected:
        phi2 = max(0.0, phi2 - ((rows - 1) * (columns - 1) if freedom is None else freedom) / (n - 1))
        reach = min(size - 1 - (size - 1) ** 2 / (n - 1) for size in (rows, columns))
    return min(math.sqrt(phi2 / reach), 1.0) if reach > 1e-12 else 0.0


def correlation_ratio(
    groups: np.ndarray, numbers: np.ndarray, records: np.ndarray | None = None, corrected: bool = True
) -> float:
    """η: the share of a number's variance that its group decides, as a root; 0 unrelated, 1 decided.

    Corrected, it is the root of Kelley's ε² = 1 - (within/(n - groups))/(total/(n - 1)), at least 0. Missing numbers
    (NaN) are left out.
    """
    found = _variance(groups, numbers, records)
    if found.total <= 0:
        return 0.0
    if not corrected:
        return math.sqrt(found.between / found.total)
    if found.n <= found.groups:
        return 0.0
    return math.sqrt(max(0.0, 1 - (found.within / (found.n - found.groups)) / (found.total / (found.n - 1))))


def anova_f(groups: np.ndarray, numbers: np.ndarray, records: np.ndarray | None = None) -> float:
    """The F of a one-way analysis of variance, from 0 up; not comparable with V, η or r. NaN where it is undefined."""
    found = _variance(groups, numbers, records)
    if found.groups < 2 or found.n <= found.groups or found.total <= 0:
        return math.nan
    within = found.within / (found.n - found.groups)
    return found.between / (found.groups - 1) / within if within > 0 else math.inf


def pearson(first: np.ndarray, second: np.ndarray, records: np.ndarray | None = None) -> float:
    """|r| of two numbers, 0 to 1; rows of which one is missing (NaN) are left out."""
    there = ~(np.isnan(first) | np.isnan(second))
    weights = np.ones(len(first)) if records is None else records
    n = weights[there].astype(np.float64)
    x, y = _apart(first[there], n), _apart(second[there], n)
    spread = math.sqrt(float(np.dot(n, x**2)) * float(np.dot(n, y**2)))
    return min(abs(float(np.dot(n, x * y))) / spread, 1.0) if spread > 0 else 0.0


@dataclass(frozen=True)
class _Variance:
    """The sums of squares of numbers between groups and within them."""

    n: float
    groups: int
    between: float
    within: float

    @property
    def total(self) -> float:
        return self.between + self.within


def _variance(groups: np.ndarray, numbers: np.ndarray, records: np.ndarray | None) -> _Variance:
    there = ~np.isnan(numbers)
    weights = (np.ones(len(numbers)) if records is None else records)[there].astype(np.float64)
    groups, numbers = groups[there], numbers[there]
    size = np.bincount(groups, weights=weights)
    apart = _apart(numbers, weights)
    means = np.bincount(groups, weights=weights * apart) / np.where(size > 0, size, 1.0)
    within = float(np.dot(weights, (apart - means[groups]) ** 2))
    between = float(np.dot(size, means**2))
    within = within if within > NOISE * between else 0.0
    return _Variance(float(size.sum()), int((size > 0).sum()), between, within)


def _apart(numbers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """How far each number is from the mean; exactly 0 where all are one, whatever float error says."""
    if not len(numbers) or np.ptp(numbers) == 0 or not weights.sum():
        return np.zeros(len(numbers))
    return numbers - np.average(numbers, weights=weights)

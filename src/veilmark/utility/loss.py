"""Information loss of full-domain generalization, on class tables.

Suppressed records count as fully generalized. Metrics that add up over records and attributes are kept as tables: what
all records lose at a level, and what a record of a label loses on top when it is suppressed. So a node of the lattice
costs one look at its suppressed classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veilmark.defaults import Metric
from veilmark.hierarchy import Levels
from veilmark.tables.classes import ClassTable

METRICS: tuple[Metric, ...] = ("dm_star", "precision", "dm", "gcp", "entropy", "lm")
ADDITIVE: tuple[Metric, ...] = ("precision", "gcp", "entropy", "lm")


@dataclass(frozen=True, eq=False)
class Attribute:
    """One quasi-identifier: its levels, the records of each value, and the values as numbers where they are."""

    levels: Levels
    records: np.ndarray
    numbers: np.ndarray | None


@dataclass(frozen=True, eq=False)
class LevelCosts:
    """For each level: the loss summed over all records, and what suppressing a record adds, by label."""

    base: tuple[float, ...]
    extra: tuple[np.ndarray, ...]


def attributes_of(classes: ClassTable, levels: Sequence[Levels]) -> list[Attribute]:
    """What the metrics need to know of each quasi-identifier."""
    return [
        Attribute(of, classes.value_records(i), domain.numbers)
        for i, (of, domain) in enumerate(zip(levels, classes.domains, strict=True))
    ]


def level_costs(metric: Metric, attribute: Attribute) -> LevelCosts:
    """An additive metric of one attribute, level by level."""
    by_label = {"precision": _precision, "gcp": label_widths, "lm": _leaves}
    everyone = attribute.records.sum()
    base, extra = [], []
    for level in range(attribute.levels.height + 1):
        codes = attribute.levels.codes[level]
        labels = len(attribute.levels.labels[level])
        members = np.bincount(codes, weights=attribute.records, minlength=labels)
        if metric == "entropy":
            base.append(_bits(attribute.records, members[codes]))
            with np.errstate(divide="ignore"):
                extra.append(np.where(members > 0, np.log2(everyone / np.maximum(members, 1)), 0.0))
        else:
            cost = by_label[metric](attribute, level)
            base.append(float(np.dot(members, cost)))
            extra.append(1.0 - cost)
    return LevelCosts(tuple(base), tuple(extra))


def _bits(records: np.ndarray, group: np.ndarray) -> float:
    """Σ -log2(freq(v)/freq(g(v))) over records (non-uniform entropy)."""
    there = records > 0
    return float(np.dot(records[there], np.log2(group[there] / records[there])))


def _precision(attribute: Attribute, level: int) -> np.ndarray:
    """Level over height, the same for every label; in 0..1 (Sweeney 2002)."""
    height = max(attribute.levels.height, 1)
    return np.full(len(attribute.levels.labels[level]), level / height)


def _leaves(attribute: Attribute, level: int) -> np.ndarray:
    """(leaves - 1)/(all leaves - 1), in 0..1 (Iyengar 2002)."""
    values = len(attribute.records)
    return (attribute.levels.leaves(level) - 1) / max(values - 1, 1)


def label_widths(attribute: Attribute, level: int) -> np.ndarray:
    """The normalized certainty penalty: the label's share of the range (numbers) or of the leaves; a leaf is 0."""
    leaves = attribute.levels.leaves(level)
    if attribute.numbers is None:
        return np.where(leaves > 1, leaves / len(attribute.records), 0.0)
    return number_widths(attribute.numbers, attribute.levels.codes[level], len(leaves))


def number_widths(numbers: np.ndarray, codes: np.ndarray, labels: int) -> np.ndarray:
    """The share of the whole range that each label spans; one that mixes numbers and missing values spans it all."""
    present = ~np.isnan(numbers)
    low, high = np.full(labels, np.inf), np.full(labels, -np.inf)
    np.minimum.at(low, codes[present], numbers[present])
    np.maximum.at(high, codes[present], numbers[present])
    whole = np.ptp(numbers[present]) if present.any() else 0.0
    spans = np.where(high > low, high - low, 0.0) / (whole or 1.0)
    mixed = np.isin(np.arange(labels), codes[~present]) & np.isfinite(low)
    return np.where(mixed, 1.0, spans)


class NodeLoss:
    """The loss of any node of the lattice, by every metric; `weights` say how much an attribute counts."""

    def __init__(
        self, classes: ClassTable, levels: Sequence[Levels], weights: Mapping[str, float] | None = None
    ) -> None:
        self._columns = classes.columns
        self._everyone = float(classes.records.sum())
        self._weights = np.array([(weights or {}).get(c, 1.0) for c in classes.columns])
        attributes = attributes_of(classes, levels)
        self._squares = [
            np.array([float((np.bincount(codes, weights=a.records) ** 2).sum()) for codes in a.levels.codes])
            for a in attributes
        ]
        self._costs = {metric: [level_costs(metric, a) for a in attributes] for metric in ADDITIVE}

    def scale(self, metric: Metric) -> float:
        """What an additive metric is divided by: entropy stays a sum, the others are a mean in 0..1."""
        return 1.0 if metric == "entropy" else self._everyone * float(self._weights.sum()) or 1.0

    def floor(self, metric: Metric, attribute: int) -> np.ndarray:
        """An attribute's part of an additive metric at each level, if nothing is suppressed."""
        return np.array(self._costs[metric][attribute].base) * self._weights[attribute] / self.scale(metric)

    def squares(self, attribute: int) -> np.ndarray:
        """Σ over labels of (records)², at each level of one attribute: discernibility if it stood alone."""
        return self._squares[attribute]

    def of(self, metric: Metric, table: ClassTable, node: Sequence[int], failing: np.ndarray) -> float:
        """The loss of a node whose class table and suppressed classes are known."""
        if metric in ("dm", "dm_star"):
            return self.discernibility(metric, table.records, failing)
        return self.additive(metric, node, table.records[failing], table.codes[:, failing])

    def discernibility(self, metric: Metric, records: np.ndarray, failing: np.ndarray) -> float:
        """DM*: Σ|E|² over all classes; DM: suppressed records count |E|·N instead (Bayardo and Agrawal 2005)."""
        squares = records.astype(np.float64) ** 2
        if metric == "dm_star":
            return float(squares.sum())
        return float(squares[~failing].sum() + records[failing].sum() * self._everyone)

    def additive(
        self, metric: Metric, node: Sequence[int], suppressed: np.ndarray, codes: Sequence[np.ndarray] | np.ndarray
    ) -> float:
        """The loss by an additive metric, from the records and labels of the suppressed classes."""
        total = 0.0
        for i, (level, weight) in enumerate(zip(node, self._weights, strict=True)):
            costs = self._costs[metric][i]
            total += weight * (costs.base[level] + float(np.dot(suppressed, costs.extra[level][codes[i]])))
        return total / self.scale(metric)

    def dearer(self, metric: Metric, attribute: int) -> np.ndarray:
        """What suppressing a record adds at least to an attribute's part of an additive metric, at each level."""
        least = [
            float(extra.min(initial=np.inf)) if len(extra) else 0.0 for extra in self._costs[metric][attribute].extra
        ]
        return np.maximum(np.array(least), 0.0) * self._weights[attribute] / self.scale(metric)

    def all_of(self, table: ClassTable, node: Sequence[int], failing: np.ndarray) -> dict[str, float]:
        """The loss by every metric."""
        return {metric: self.of(metric, table, node, failing) for metric in METRICS}

    def by_attribute(self, table: ClassTable, node: Sequence[int], failing: np.ndarray) -> dict[str, dict[str, float]]:
        """Each attribute's own loss by the additive metrics: a mean over records in 0..1, entropy a sum in bits.

        A total is the weighted mean of these, that of entropy their weighted sum.
        """
        suppressed = table.records[failing]
        found: dict[str, dict[str, float]] = {}
        for i, (column, level) in enumerate(zip(self._columns, node, strict=True)):
            labels = table.codes[i, failing]
            found[column] = {}
            for metric in ADDITIVE:
                costs = self._costs[metric][i]
                lost = costs.base[level] + float(np.dot(suppressed, costs.extra[level][labels]))
                found[column][metric] = lost if metric == "entropy" else lost / (self._everyone or 1.0)
        return found


def untouched(classes: ClassTable) -> dict[str, float]:
    """The loss of a table as it is, by every metric: its own classes' discernibility and size, and nothing else."""
    count, squares = classes.raw_sizes
    nothing: dict[str, float] = dict.fromkeys(ADDITIVE, 0.0)
    average = classes.total_records / count if count else 0.0
    return {"dm_star": squares, "dm": squares, **nothing, "average_class": average}


def nil(old: np.ndarray, new: np.ndarray, records: np.ndarray | None = None) -> float:
    """Numeric information loss, Σ|old - new|/(n·range of old): 0 unchanged, 1 every number moved by the whole range.

    `records` says how often each pair occurs. Pairs of which one is missing (NaN) are left out.
    """
    moved, count, numbers = _moved(old, new, records)
    return moved / (count * (np.ptp(numbers) or 1.0)) if count else 0.0


def nil_as_printed(old: np.ndarray, new: np.ndarray, records: np.ndarray | None = None) -> float:
    """Numeric information loss as the f-slip paper prints it: Σ|old - new|/(distinct old values), from 0 up.

    It is in the unit of the numbers and grows with the table, so it compares only releases of one table.
    """
    moved, _, numbers = _moved(old, new, records)
    return moved / max(len(np.unique(numbers)), 1)


def _moved(old: np.ndarray, new: np.ndarray, records: np.ndarray | None) -> tuple[float, float, np.ndarray]:
    """By how much numbers moved in all, how many there are, and the old ones."""
    there = ~(np.isnan(old) | np.isnan(new))
    records = np.ones(len(old)) if records is None else records
    moved = float(np.dot(records[there], np.abs(old[there] - new[there])))
    return moved, float(records[there].sum()), old[there]

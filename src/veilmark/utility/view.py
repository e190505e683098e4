"""What a release still tells of its source: marginals, associations, and what was lost.

One rule makes both comparable, whatever the recoding: the records of a released label are spread evenly over the values
of the source that the label covers, which is what somebody who has the release alone can do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from veilmark.charted import Charted
from veilmark.hierarchy import Levels
from veilmark.readable import Grid, Summary
from veilmark.tables.cells import Cells
from veilmark.utility.association import contingency, cramers_v
from veilmark.utility.columns import Column
from veilmark.utility.covers import Cover

if TYPE_CHECKING:
    from veilmark.utility.classifier import Classified

Count = Callable[[str, str], Cells]
"""Counts the records of each pair of values of two columns."""


@dataclass(frozen=True)
class Change:
    """A number in the source and in the release."""

    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before

    def to_dict(self) -> dict[str, float]:
        return {"before": self.before, "after": self.after}


@dataclass(frozen=True)
class Marginal:
    """How a column's distribution changed; `shares` are those of its `groups`.

    `total_variation_labels` compares the source rolled up to the release's labels, where each value has one label:
    it shows what suppression alone did.
    """

    column: str
    role: str
    values: tuple[int, int]
    total_variation: float | None
    total_variation_labels: float | None
    mean: Change | None
    sd: Change | None
    shares: Mapping[str, Change]
    grouped: str
    unread: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "role": self.role,
            "values": {"before": self.values[0], "after": self.values[1]},
            "total_variation": self.total_variation,
            "total_variation_labels": self.total_variation_labels,
            "mean": self.mean.to_dict() if self.mean else None,
            "sd": self.sd.to_dict() if self.sd else None,
            "grouped": self.grouped,
            "shares": {name: change.to_dict() for name, change in self.shares.items()},
            "unread": self.unread,
        }


@dataclass(frozen=True)
class Association:
    """Cramér's V of two columns, bias-corrected, in the source and in the release."""

    columns: tuple[str, str]
    v: Change

    def to_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), **self.v.to_dict(), "change": self.v.change}


@dataclass(frozen=True)
class ReleaseLoss:
    """Loss metrics that a release's file shows: of the source as it is, of the release, and by attribute."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    by_attribute: Mapping[str, Mapping[str, float]]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class UtilityView(Charted):
    """A release beside its source."""

    records: tuple[int, int]
    loss: ReleaseLoss | None
    marginals: Mapping[str, Marginal]
    associations: tuple[Association, ...]
    classifier: Classified | None
    notes: tuple[str, ...]

    def chart(self) -> Any:
        """Marginals and associations, before and after."""
        from veilmark.report.utility_charts import utility

        return utility(self)

    def summary(self) -> Summary:
        rows = [(n, *m.values, _distance(m.total_variation)) for n, m in self.marginals.items()]
        columns = Grid(("column", "values before", "after", "total variation"), rows)
        pairs = [(" × ".join(a.columns), f"{a.v.before:.3f}", f"{a.v.after:.3f}") for a in self.associations]
        together = Grid(("association (Cramér's V)", "before", "after"), pairs)
        loss = self.loss.after.items() if self.loss else ()
        lost = Grid(("loss", "value"), [(name, f"{value:.5g}") for name, value in loss])
        headline = f"The release has {self.records[1]:,} of the source's {self.records[0]:,} records."
        return Summary(headline, (columns, together, lost), self.notes)

    def to_dict(self) -> dict[str, Any]:
        return {
            "records": {"before": self.records[0], "after": self.records[1]},
            "loss": self.loss.to_dict() if self.loss else None,
            "marginals": {name: m.to_dict() for name, m in self.marginals.items()},
            "associations": [a.to_dict() for a in self.associations],
            "classifier": self.classifier.to_dict() if self.classifier else None,
            "notes": list(self.notes),
        }


def _distance(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def marginal(column: Column) -> Marginal:
    """How one column's distribution changed."""
    cover, groups = column.cover, column.groups
    spread = cover.spread(np.where(cover.count > 0, column.released, 0))
    before, after = _shares(column.records), _shares(spread)
    grouped = [np.bincount(groups.of, weights=of, minlength=len(groups)) for of in (before, after)]
    shares = {name: Change(*map(float, pair)) for name, *pair in zip(groups.names, *grouped, strict=True)}
    mean, sd = _moments(column)
    return Marginal(
        column.name,
        column.role,
        (int((column.records > 0).sum()), int((column.released > 0).sum())),
        float(np.abs(before - after).sum() / 2) if spread.any() else None,
        _label_variation(column),
        mean,
        sd,
        shares,
        groups.how,
        column.unread,
    )


def _shares(records: np.ndarray) -> np.ndarray:
    return records / (records.sum() or 1)


def _label_variation(column: Column) -> float | None:
    """The total variation between the release and the source at the release's own labels."""
    cover = column.cover
    if np.rint(cover.covering()).max(initial=0) > 1 or not cover.count.all():
        return None
    label = np.full(cover.values, len(cover.labels))
    label[_expanded(cover)] = np.repeat(cover.owner, cover.high - cover.low + 1)
    before = _shares(np.bincount(label, weights=column.records, minlength=len(cover.labels) + 1))
    return float(np.abs(before - np.append(_shares(column.released), 0)).sum() / 2)


def _expanded(cover: Cover) -> np.ndarray:
    """The codes in all runs, one run after the other."""
    size = cover.high - cover.low + 1
    return np.arange(size.sum()) + np.repeat(cover.low - (np.cumsum(size) - size), size)


def _moments(column: Column) -> tuple[Change | None, Change | None]:
    """Mean and standard deviation, where values are numbers."""
    if column.numbers is None:
        return None, None
    before = _moment(column.records, column.numbers, np.zeros(len(column.numbers)))
    after = _moment(column.released, *column.cover.moments(column.numbers))
    if before is None or after is None:
        return None, None
    return Change(before[0], after[0]), Change(before[1], after[1])


def _moment(records: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> tuple[float, float] | None:
    """Mean and standard deviation over all records, from those of each value or label."""
    there = ~np.isnan(mean) & (records > 0)
    if not there.any():
        return None
    n, first = records[there] / records[there].sum(), mean[there]
    centre = float(np.dot(n, first))
    return centre, math.sqrt(float(np.dot(n, variance[there] + (first - centre) ** 2)))


def associations(columns: Sequence[Column], before: Count, after: Count) -> tuple[Association, ...]:
    """Every two columns, those whose association changed most first."""
    found = []
    for a, b in combinations([c for c in columns if len(c.groups) > 1], 2):
        old, new = before(a.name, b.name), after(a.name, b.name)
        table = contingency(a.groups.of[old.codes[0]], b.groups.of[old.codes[1]], old.records)
        v = Change(cramers_v(table), released_v(a, b, new))
        found.append(Association((a.name, b.name), v))
    return tuple(sorted(found, key=lambda each: -abs(each.v.change)))


def released_v(a: Column, b: Column, cells: Cells) -> float:
    """Cramér's V of released pairs of labels, spread evenly over the groups that they cover."""
    shape = (len(a.cover.labels), len(b.cover.labels))
    pairs = sparse.coo_array((cells.records.astype(np.float64), (cells.codes[0], cells.codes[1])), shape).tocsr()
    rows, columns = pairs @ (b.cover.count > 0), (a.cover.count > 0) @ pairs
    table = a.shares.T @ (pairs @ b.shares)
    return cramers_v(table, freedom=_freedom(a.shares, rows) * _freedom(b.shares, columns))


def _freedom(shares: np.ndarray, records: np.ndarray) -> float:
    """How many of the groups vary by themselves, less one, when records are spread by shares.

    Chance moves labels, not groups: where each label is one group this is the groups less one, where every label is
    spread alike it is 0. (The trace of the groups' covariance, in units of what independent counts would have.)
    """
    groups = records @ shares
    there = groups > 0
    return float(((records @ shares**2)[there] / groups[there]).sum()) - 1 if there.any() else 0.0


def release_loss(
    quasi: Sequence[Column], dropped: Sequence[str], before: np.ndarray, after: np.ndarray
) -> ReleaseLoss | None:
    """What the file of a release shows of its loss; `before` and `after` are the sizes of the classes.

    Records that the release lacks, and quasi-identifiers that it dropped, count as fully generalized. None where that
    cannot be said: a label is not understood, or a number that the source lacks; or the release has more records.
    """
    everyone, kept = float(before.sum()), float(after.sum())
    changed = any(column.unread or not np.isnan(column.cover.number).all() for column in quasi)
    if changed or kept > everyone:
        return None
    lost = everyone - kept
    own = {
        column.name: {
            metric: (float(np.dot(column.released, cost)) + lost) / everyone
            for metric, cost in label_costs(column).items()
        }
        for column in quasi
    }
    own |= {name: dict.fromkeys(("precision", "gcp", "lm"), 1.0) for name in dropped}
    means = {metric: float(np.mean([of[metric] for of in own.values()])) for metric in ("precision", "gcp", "lm")}
    squares = [float((sizes.astype(np.float64) ** 2).sum()) for sizes in (before, after)]
    nothing = dict.fromkeys(means, 0.0)
    return ReleaseLoss(
        {"dm": squares[0], **nothing, "average_class": everyone / len(before)},
        {"dm": squares[1] + lost * everyone, **means, "average_class": kept / max(len(after), 1)},
        own,
    )


def label_costs(column: Column) -> dict[str, np.ndarray]:
    """What a record of each label loses, from 0 to 1, by the metrics that add up and need no more than the label."""
    cover, values = column.cover, column.cover.values
    count, labels = cover.count, len(cover.labels)
    low, high = np.full(labels, values - 1), np.zeros(labels, dtype=np.int64)
    np.minimum.at(low, cover.owner, cover.low)
    np.maximum.at(high, cover.owner, cover.high)
    width = np.where(count > 1, count / values, 0.0)
    numbers = column.domain.numbers
    if numbers is not None:
        whole = np.nanmax(numbers) - np.nanmin(numbers) or 1.0
        mixed = np.isnan(numbers[high]) & (low < high)
        width = np.where(mixed, 1.0, np.nan_to_num(numbers[high] - numbers[low]) / whole)
    level = np.where(cover.level >= 0, cover.level, _smallest_level(cover, column.levels))
    return {
        "precision": level / max(column.levels.height, 1),
        "gcp": width,
        "lm": (count - 1) / max(values - 1, 1),
    }


def _smallest_level(cover: Cover, levels: Levels) -> np.ndarray:
    """For each label the lowest level at which all values that it covers are one."""
    found = np.full(len(cover.labels), levels.height)
    for at in reversed(range(levels.height)):
        codes = levels.codes[at]
        changes = np.append(0, np.cumsum(codes[1:] != codes[:-1]))
        apart = changes[cover.low] != changes[cover.high]
        low, high = np.full(len(found), len(levels.labels[at])), np.full(len(found), -1)
        np.minimum.at(low, cover.owner, codes[cover.low])
        np.maximum.at(high, cover.owner, np.where(apart, len(levels.labels[at]) + 1, codes[cover.low]))
        found[low == high] = at
    return found

"""What a published column's labels tell of the source's values: which value a label may stand for, and how likely.

How labels are read is said in `utility/covers.py`. Beyond that, a column that holds numbers the source lacks holds
means: a mean may stand for any number, and is most likely the one nearest to it. A label that cannot be read may stand
for every value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from scipy import sparse

from veilmark.hierarchy import Levels
from veilmark.tables.domain import Domain
from veilmark.tables.persons import Fingerprints
from veilmark.utility.covers import Cover, read_labels
from veilmark.utility.sliced import is_amount

TOLERANCE = 0.05
"""A guessed number is right within this share of the distance between the source's 5th and 95th percentile."""

SAME = 1e-9
"""Amounts that differ by no more than this share are the same."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a published column beside the source's values, its `domain`."""

    domain: Domain
    cover: Cover

    @classmethod
    def read(cls, labels: pa.Array, domain: Domain, levels: Levels) -> Labels:
        return cls(domain, read_labels(labels, domain, levels))

    def __len__(self) -> int:
        return len(self.cover.labels)

    @cached_property
    def unread(self) -> np.ndarray:
        """The labels that are not understood."""
        return self.cover.count == 0

    @cached_property
    def mean(self) -> np.ndarray:
        """The labels that are means: all numbers of a column where one of them is not in the source."""
        number = ~np.isnan(self.cover.number)
        if self.domain.numbers is None or not (number & (self.cover.level < 0)).any():
            return np.zeros(len(self), dtype=bool)
        return number | (self.cover.level == 0) & np.asarray(self.cover.labels.is_valid())

    @cached_property
    def numbers(self) -> np.ndarray:
        """The means; NaN for other labels."""
        numbers = self.cover.number.copy()
        if self.domain.numbers is not None:
            raw = np.flatnonzero(self.mean & np.isnan(numbers))
            numbers[raw] = self.domain.numbers[self.domain.codes_of(self.cover.labels.take(pa.array(raw)))]
        return np.where(self.mean, numbers, np.nan)

    def fits(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The labels that some of the values (in ascending order) may become, and for each value (row) and label (column)
        whether it may."""
        cover = self.cover
        here = (cover.high >= values[0]) & (cover.low <= values[-1]) if len(values) else np.zeros(len(cover.low), bool)
        listed = self.unread | self.mean
        listed[cover.owner[here]] = True
        labels = np.flatnonzero(listed)
        owner = np.searchsorted(labels, cover.owner[here])
        change = np.zeros((len(values) + 1, len(labels)), dtype=np.int8)
        np.add.at(change, (np.searchsorted(values, cover.low[here]), owner), 1)
        np.add.at(change, (np.searchsorted(values, cover.high[here], "right"), owner), -1)
        found = np.cumsum(change, axis=0, dtype=np.int8)[:-1] > 0
        found[:, self.unread[labels]] = True
        found[:, self.mean[labels]] = (values != self._missing)[:, None]
        return labels, found

    @cached_property
    def alike(self) -> np.ndarray:
        """A number for each value, the same for values that fit the same labels: sums of the labels' random marks."""
        marks = np.random.default_rng(0).integers(1, 1 << 63, len(self), dtype=np.uint64)
        marks[self.mean | self.unread] = 0
        change = np.zeros(len(self.domain) + 1, dtype=np.uint64)
        np.add.at(change, self.cover.low, marks[self.cover.owner])
        np.subtract.at(change, self.cover.high + 1, marks[self.cover.owner])
        missing = np.arange(len(self.domain)) == self._missing
        return np.unique(np.stack([np.cumsum(change)[:-1], missing]), axis=1, return_inverse=True)[1].ravel()

    @cached_property
    def covered(self) -> np.ndarray:
        """The values that some label may stand for."""
        some = self.cover.covering() > SAME
        if self.mean.any():
            some |= np.arange(len(self.domain)) != self._missing
        return some | self.unread.any()

    @property
    def _missing(self) -> int:
        return -1 if self.domain.missing is None else self.domain.missing

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The values and labels that go together, of means only the nearest; sorted by value."""
        cover = self.cover
        told = ~(self.mean | self.unread)[cover.owner]
        length = (cover.high - cover.low + 1)[told]
        label = np.repeat(cover.owner[told], length)
        value = np.repeat(cover.low[told], length) + ranges(length)
        blind = np.flatnonzero(self.unread)
        values = [value, np.repeat(np.arange(cover.values), len(blind)), *self._nearest[:1]]
        labels = [label, np.tile(blind, cover.values), *self._nearest[1:]]
        keys = np.sort(np.concatenate(values) * max(len(self), 1) + np.concatenate(labels))
        return keys // max(len(self), 1), keys % max(len(self), 1)

    @cached_property
    def _nearest(self) -> tuple[np.ndarray, np.ndarray]:
        """For every number its nearest means, two where it is halfway between them."""
        means = np.flatnonzero(self.mean)
        if not len(means) or self.domain.numbers is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        order = means[np.argsort(self.numbers[means], kind="stable")]
        distinct, first = np.unique(self.numbers[order], return_index=True)
        ends = np.append(first, len(order))
        value = np.flatnonzero(~np.isnan(self.domain.numbers))
        place = np.searchsorted(distinct, self.domain.numbers[value])
        sides = np.stack([np.maximum(place - 1, 0), np.minimum(place, len(distinct) - 1)])
        apart = np.abs(distinct[sides] - self.domain.numbers[value])
        near = apart <= apart.min(axis=0) * (1 + SAME)
        near[1] &= sides[0] != sides[1]
        side, value = sides[near], np.tile(value, (2, 1))[near]
        length = ends[side + 1] - ends[side]
        return np.repeat(value, length), order[np.repeat(ends[side], length) + ranges(length)]


def ranges(lengths: np.ndarray) -> np.ndarray:
    """0, 1, … for each length, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)


@dataclass(frozen=True, eq=False)
class Meaning:
    """What can be guessed of a sensitive attribute, its points: the source's values and, of numbers, published means.

    `point` is each value's own; a guess of point p is right for persons who have one of the points from `low[p]` to
    `high[p]`, and nobody else: the point itself, of numbers all within the tolerance. `told` says how likely a label
    (row) stands for a point (column): its values by how often the source has them. `kind` numbers the values, the same
    for those that the labels do not tell apart; `kinds` (rows) holds the labels that may stand for them.
    """

    labels: Labels
    point: np.ndarray
    low: np.ndarray
    high: np.ndarray
    told: sparse.csr_array
    kind: np.ndarray
    kinds: sparse.csr_array
    tolerance: float

    @classmethod
    def of(cls, labels: Labels, column: Fingerprints, levels: Levels) -> Meaning:
        """`column` holds the persons' true values."""
        often = np.bincount(column.values, minlength=len(labels.domain)).astype(np.float64)
        number = is_amount(column, levels) or bool(labels.mean.any())
        tolerance = _tolerance(labels.domain, often) if number else 0.0
        spots, place = _points(labels)
        low = high = np.arange(len(spots))
        if number:
            there = spots[~np.isnan(spots)]
            low, high = low.copy(), high.copy()
            reach = tolerance * (1 + SAME)
            low[: len(there)] = np.searchsorted(there, there - reach)
            high[: len(there)] = np.searchsorted(there, there + reach, "right") - 1
        told = _told(labels, often, place, len(spots))
        kind, kinds = _kinds(labels)
        return cls(labels, place[: len(labels.domain)], low, high, told, kind, kinds, tolerance)

    def __len__(self) -> int:
        return len(self.low)


def _points(labels: Labels) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all points in their order (NaN: none), and the point of each value and then of each label's mean."""
    size = len(labels.domain)
    if labels.domain.numbers is None:
        return np.full(size, np.nan), np.append(np.arange(size), np.full(len(labels), -1))
    numbers, code = labels.domain.numbers, np.arange(size)
    extra = np.setdiff1d(labels.numbers[labels.mean], numbers)
    spots = np.concatenate([numbers, extra])
    order = np.argsort(spots, kind="stable")
    rank = np.empty(len(spots), dtype=np.int64)
    rank[order] = np.arange(len(spots))
    spots = spots[order]
    own = np.searchsorted(spots, labels.numbers)
    return spots, np.append(rank[code], np.where(labels.mean, own, -1))


def _told(labels: Labels, often: np.ndarray, place: np.ndarray, points: int) -> sparse.csr_array:
    size, means = len(labels.domain), np.flatnonzero(labels.mean)
    value, label = labels.pairs
    plain = ~labels.mean[label]
    value, label = value[plain], label[plain]
    weight = often[value]
    whole = np.bincount(label, weights=weight, minlength=len(labels))
    lost = whole[label] == 0  # values that nobody has any more: all alike
    weight = np.where(lost, 1.0, weight) / np.where(
        lost, np.bincount(label, minlength=len(labels))[label], whole[label]
    )
    data = np.concatenate([weight, np.ones(len(means))])
    rows, columns = np.concatenate([label, means]), np.concatenate([place[value], place[size + means]])
    found = sparse.coo_array((data, (rows, columns)), (len(labels), points)).tocsr()
    found.eliminate_zeros()
    return found


def _kinds(labels: Labels) -> tuple[np.ndarray, sparse.csr_array]:
    """Values with the same labels are one kind: compared by the sums of their labels' random marks."""
    value, label = labels.pairs
    first, kind = np.unique(
        marked(value, label, len(labels.domain), len(labels)), return_index=True, return_inverse=True
    )[1:]
    number = np.full(len(labels.domain), -1)
    number[first] = np.arange(len(first))
    chosen = number[value] >= 0
    pairs = (number[value[chosen]], label[chosen])
    found = sparse.coo_array((np.ones(len(pairs[0])), pairs), (len(first), len(labels))).tocsr()
    return kind, found


def marked(owner: np.ndarray, member: np.ndarray, owners: int, members: int) -> np.ndarray:
    """A number for each owner's set of members, the same for equal sets and, as good as surely, for no others."""
    marks = np.random.default_rng(0).integers(1, 1 << 63, members, dtype=np.uint64)
    sums = np.zeros(owners, dtype=np.uint64)
    np.add.at(sums, owner, marks[member])
    return sums


def _tolerance(domain: Domain, often: np.ndarray) -> float:
    """The share of the spread between the 5th and the 95th percentile within which a guess is right."""
    numbers = domain.numbers
    if numbers is None:
        return 0.0
    there = ~np.isnan(numbers)
    values = np.repeat(numbers[there], often[there].astype(np.int64))
    if not len(values):
        return 0.0
    low, high = np.quantile(values, [0.05, 0.95])
    return float(TOLERANCE * (high - low))

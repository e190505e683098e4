"""Covers: which values of the source a released label stands for.

A label is a value, a label of the column's hierarchy, or one of the forms that local recodings are written in: `20-34`,
`[2.5, 5)`, `{a, b}`, `a…z (12 values)`, each perhaps with ` or missing`. `*` stands for every value, and so does an
empty cell where the source has none. A number that the source lacks (a mean, say) stands for the nearest that it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.hierarchy import Levels
from veilmark.tables.domain import Domain
from veilmark.veil.mondrian import MISSING

TOP = "*"
OR_MISSING = f" or {MISSING}"
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGES = (
    rf"^(?P<left>)(?P<low>{_NUMBER})\s*[-–]\s*(?P<high>{_NUMBER})(?P<right>)$",
    rf"^(?P<left>[\[\](])\s*(?P<low>{_NUMBER})\s*[,;]\s*(?P<high>{_NUMBER})\s*(?P<right>[\[\])])$",
)
SINGLE = rf"^(?P<low>{_NUMBER})$"
RUN = r"(?s)^(?P<low>.*)…(?P<high>.*) \(\d+ values\)$"
SET = r"(?s)^\{(?P<members>.*)\}$"


@dataclass(frozen=True, eq=False)
class Cover:
    """The labels of a column, as runs of codes in its domain: label `owner[i]` covers `low[i]` to `high[i]`.

    `level` is the level of a label that the hierarchy has, else -1; `number` a label that is a plain number, else NaN.
    """

    labels: pa.Array
    values: int
    owner: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: np.ndarray
    number: np.ndarray

    @cached_property
    def count(self) -> np.ndarray:
        """How many values each label covers; 0: it was not understood."""
        return self._sum((self.high - self.low + 1).astype(np.float64))

    def spread(self, amounts: np.ndarray) -> np.ndarray:
        """What each value gets when each label's amount goes evenly to the values it covers."""
        return self._over_values((amounts / np.maximum(self.count, 1))[self.owner])

    def covering(self) -> np.ndarray:
        """By how many labels each value is covered."""
        return self._over_values(np.ones(len(self.owner)))

    def shares(self, groups: np.ndarray, number: int) -> np.ndarray:
        """For each label, the share of its values that is in each group; nothing for one not understood."""
        inside = np.zeros((self.values + 1, number), dtype=np.int32)
        inside[np.arange(1, self.values + 1), groups] = 1
        np.cumsum(inside, axis=0, out=inside)
        found = np.zeros((len(self.labels), number))
        np.add.at(found, self.owner, inside[self.high + 1] - inside[self.low])
        return found / np.maximum(self.count, 1)[:, None]

    def moments(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the numbers that each label covers; NaN where it covers none."""
        there = ~np.isnan(numbers)
        centre = numbers[there].mean() if there.any() else 0.0
        apart = np.where(there, numbers - centre, 0.0)
        sums = [np.append(0, np.cumsum(of)) for of in (there, apart, apart**2)]
        count, first, second = (self._sum(s[self.high + 1] - s[self.low]) for s in sums)
        with np.errstate(invalid="ignore"):
            mean = first / count
            variance = np.maximum(second / count - mean**2, 0.0)
        own = ~np.isnan(self.number)
        return np.where(own, self.number, centre + mean), np.where(own, 0.0, variance)

    def masks(self) -> np.ndarray:
        """For each value (row) and label (column), whether the label covers it."""
        change = np.zeros((self.values + 1, len(self.labels)), dtype=np.int8)
        np.add.at(change, (self.low, self.owner), 1)
        np.add.at(change, (self.high + 1, self.owner), -1)
        return np.cumsum(change, axis=0, dtype=np.int8)[:-1] > 0

    def _sum(self, amounts: np.ndarray) -> np.ndarray:
        return np.bincount(self.owner, weights=amounts, minlength=len(self.labels))

    def _over_values(self, amounts: np.ndarray) -> np.ndarray:
        change = np.bincount(self.low, weights=amounts, minlength=self.values + 1)
        change -= np.bincount(self.high + 1, weights=amounts, minlength=self.values + 1)
        return np.cumsum(change)[:-1]


def read_labels(labels: pa.Array, domain: Domain, levels: Levels) -> Cover:
    """What each of a column's released labels covers of the source's domain."""
    return _Reader(labels, domain, levels).read()


class _Reader:
    """Reads labels, one way after the other; `open` are those not read yet."""

    def __init__(self, labels: pa.Array, domain: Domain, levels: Levels) -> None:
        self.labels, self.domain, self.levels = labels, domain, levels
        self.level = np.full(len(labels), -1)
        self.number = np.full(len(labels), np.nan)
        self.runs = [np.zeros((3, 0), dtype=np.int64)]
        self.open = np.ones(len(labels), dtype=bool)

    def read(self) -> Cover:
        if len(self.domain):
            self._by_levels()
            self._add(np.flatnonzero(self.open & self._hidden()), 0, len(self.domain) - 1)
            mixed = np.asarray(pc.ends_with(self.labels, OR_MISSING).fill_null(False)) & self.open
            text = pc.if_else(pa.array(mixed), pc.utf8_slice_codeunits(self.labels, 0, -len(OR_MISSING)), self.labels)
            if self.domain.numbers is not None:
                self._ranges(text)
            self._runs_of_values(text)
            self._sets(text)
            if self.domain.missing is not None:
                self._add(np.flatnonzero(mixed & ~self.open), self.domain.missing, self.domain.missing)
        owner, low, high = np.concatenate(self.runs, axis=1)
        return Cover(self.labels, len(self.domain), owner, low, high, self.level, self.number)

    def _add(self, labels: np.ndarray, low: np.ndarray | int, high: np.ndarray | int) -> None:
        self.runs.append(np.stack(np.broadcast_arrays(labels, low, high)).astype(np.int64))
        self.open[labels] = False

    def _hidden(self) -> np.ndarray:
        return np.asarray(pc.or_kleene(pc.equal(self.labels, TOP), self.labels.is_null()).fill_null(True))

    def _by_levels(self) -> None:
        """One level for all labels, the lowest that has them; else for each the lowest that has it."""
        found = [self._in_level(level) for level in range(self.levels.height + 1)]
        hidden = self._hidden()
        whole = next((at for at, place in enumerate(found) if np.all((place >= 0) | hidden)), None)
        for at in range(self.levels.height + 1) if whole is None else [whole]:
            alone = whole is None and at > 0
            self._take_level(at, np.where(alone & hidden, -1, found[at]))

    def _in_level(self, level: int) -> np.ndarray:
        if level == 0:
            return self.domain.codes_of(self.labels)
        places = pc.index_in(self.labels, value_set=self.levels.labels[level])
        return np.asarray(places.fill_null(-1))

    def _take_level(self, level: int, place: np.ndarray) -> None:
        """The labels that stand in a level: their values, as runs."""
        mine = np.flatnonzero(self.open & (place >= 0))
        label_of = np.full(len(self.levels.labels[level]), -1)
        label_of[place[mine]] = mine
        codes = self.levels.codes[level]
        value = np.argsort(codes, kind="stable")
        owner = label_of[codes[value]]
        begins = (np.diff(owner, prepend=-2) != 0) | (np.diff(value, prepend=-2) != 1)
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(value)) - 1
        used = owner[first] >= 0
        self._add(owner[first][used], value[first][used], value[last][used])
        self.level[mine] = level

    def _ranges(self, text: pa.Array) -> None:
        assert self.domain.numbers is not None
        numbers = self.domain.numbers[~np.isnan(self.domain.numbers)]
        for pattern in RANGES:
            mine, parts = self._matches(text, pattern)
            low, high = (_floats(parts.field(name)) for name in ("low", "high"))
            beyond = np.isin(parts.field("left"), ["(", "]"]), np.isin(parts.field("right"), [")", "["])
            self._add_range(mine, numbers, low, high, beyond)
        mine, parts = self._matches(text, SINGLE)
        self.number[mine] = low = _floats(parts.field("low"))
        self._add_range(mine, numbers, low, low, (np.zeros(len(low), bool),) * 2)

    def _add_range(
        self,
        labels: np.ndarray,
        numbers: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        beyond: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Labels over numbers from low to high, an end `beyond` not counted; where there is none, the nearest one."""
        first = np.where(beyond[0], np.searchsorted(numbers, low, "right"), np.searchsorted(numbers, low, "left"))
        last = np.where(beyond[1], np.searchsorted(numbers, high, "left"), np.searchsorted(numbers, high, "right")) - 1
        middle = (low + high) / 2
        nearest = np.searchsorted((numbers[1:] + numbers[:-1]) / 2, middle)
        empty = first > last
        self._add(labels, np.where(empty, nearest, first), np.where(empty, nearest, last))

    def _runs_of_values(self, text: pa.Array) -> None:
        mine, parts = self._matches(text, RUN)
        low, high = self._codes(parts.field("low")), self._codes(parts.field("high"))
        known = (low >= 0) & (low <= high)
        self._add(mine[known], low[known], high[known])

    def _sets(self, text: pa.Array) -> None:
        mine, parts = self._matches(text, SET)
        pieces = pc.split_pattern(parts.field("members"), ", ")
        owner = np.repeat(mine, np.diff(pieces.offsets))
        codes = self._codes(pieces.flatten())
        odd = np.unique(owner[codes < 0])
        plain = ~np.isin(owner, odd)
        self._add(owner[plain], codes[plain], codes[plain])
        for label in odd:
            members = self._members(text[label].as_py()[1:-1].split(", "))
            self._add(
                np.full(len(members), label), np.array(members, dtype=np.int64), np.array(members, dtype=np.int64)
            )

    def _members(self, pieces: list[str]) -> list[int]:
        """The codes of a set's members where a member may hold the separator; none where one is not known."""
        codes: list[int] = []
        begun: list[str] = []
        for piece in pieces:
            begun.append(piece)
            code = int(self._codes(pa.array([", ".join(begun)]))[0])
            if code >= 0:
                codes.append(code)
                begun = []
        return [] if begun else codes

    def _matches(self, text: pa.Array, pattern: str) -> tuple[np.ndarray, pa.Array]:
        """The open labels of a form, and its named parts."""
        candidates = np.flatnonzero(self.open)
        parts = pc.extract_regex(text.take(pa.array(candidates)), pattern)
        fits = np.asarray(parts.is_valid())
        return candidates[fits], parts.drop_null()

    def _codes(self, text: pa.Array) -> np.ndarray:
        codes = self.domain.codes_of(text)
        if self.domain.missing is not None:
            codes[np.asarray(pc.equal(text, MISSING).fill_null(False)) & (codes < 0)] = self.domain.missing
        return codes


def _floats(text: pa.Array) -> np.ndarray:
    return np.asarray(pc.cast(text, pa.float64()).to_numpy(zero_copy_only=False))

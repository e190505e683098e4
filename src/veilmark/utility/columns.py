"""A column of the source beside the same column of a release, and its values in a few groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from veilmark.hierarchy import Levels
from veilmark.tables.domain import Domain
from veilmark.utility.covers import Cover

MANY = 50
"""More values than these are tabulated in groups."""

MANY_NUMBERS = 20
"""More numbers than these are tabulated in quantiles."""

QUANTILES = 10


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each value, the groups' names, and in words how they came about."""

    of: np.ndarray
    names: tuple[str, ...]
    how: str

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Column:
    """The source's values with how many records have each, and the release's labels with theirs."""

    name: str
    role: str
    domain: Domain
    levels: Levels
    records: np.ndarray
    cover: Cover
    released: np.ndarray

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """The values as numbers, where they are amounts: codes that a hierarchy masks digit by digit are not."""
        between = self.levels.labels[1:-1]
        masked = any(pc.any(pc.match_substring(labels, "*")).as_py() for labels in between)
        return None if masked or "*" in (self.levels.labels[-1][0].as_py() or "")[1:] else self.domain.numbers

    @cached_property
    def groups(self) -> Groups:
        """The values as they are tabulated."""
        if self.numbers is not None and len(self.domain) > MANY_NUMBERS:
            return _quantiles(self.domain, self.records)
        if len(self.domain) <= MANY:
            return Groups(np.arange(len(self.domain)), _names(self.domain.text.to_pylist()), "values")
        for level in range(1, self.levels.height):
            labels = self.levels.labels[level]
            if 1 < len(labels) <= MANY:
                return Groups(self.levels.codes[level], _names(labels.to_pylist()), f"level {level}")
        return _most_frequent(self.domain, self.records)

    @cached_property
    def shares(self) -> np.ndarray:
        """For each released label, how its records go evenly over the groups of the values that it covers."""
        return self.cover.shares(self.groups.of, len(self.groups))

    @property
    def unread(self) -> int:
        """How many released records have a label that is not understood."""
        return int(self.released[self.cover.count == 0].sum())


def _names(texts: Sequence[str | None]) -> tuple[str, ...]:
    return tuple("(missing)" if text is None else text for text in texts)


def _quantiles(domain: Domain, records: np.ndarray) -> Groups:
    """Numbers in up to ten groups of about as many records each; missing ones are a group of their own."""
    present = len(domain) - (domain.missing is not None)
    counts = records[:present]
    middle = (np.cumsum(counts) - counts / 2) / max(counts.sum(), 1)
    tenth = np.minimum((middle * QUANTILES).astype(np.int64), QUANTILES - 1)
    of = np.cumsum(np.diff(tenth, prepend=tenth[:1]) != 0)
    first = np.flatnonzero(np.diff(of, prepend=-1))
    last = np.append(first[1:], present) - 1
    ends = zip(domain.text.take(first).to_pylist(), domain.text.take(last).to_pylist(), strict=True)
    names = [low if low == high else f"{low} to {high}" for low, high in ends]
    if domain.missing is not None:
        of, names = np.append(of, len(names)), [*names, "(missing)"]
    return Groups(of, tuple(names), f"{QUANTILES} quantiles")


def _most_frequent(domain: Domain, records: np.ndarray) -> Groups:
    order = np.argsort(-records, kind="stable")[: MANY - 1]
    of = np.full(len(domain), MANY - 1)
    of[order] = np.arange(MANY - 1)
    names = _names(domain.text.take(order).to_pylist())
    return Groups(of, (*names, "(all others)"), f"the {MANY - 1} most frequent values and the rest")

"""Axes: a quasi-identifier in the order in which Mondrian cuts it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from veilmark.errors import OptionError
from veilmark.hierarchy import Levels
from veilmark.tables.domain import Domain


@dataclass(frozen=True, eq=False)
class Axis:
    """A quasi-identifier whose values are placed so that every node of its hierarchy is a run of places.

    `ranks[level, place]` numbers the nodes of a level, rising with the place; `spots` are numbers to measure widths by.
    """

    domain: Domain
    levels: Levels
    numeric: bool
    free: bool
    code: np.ndarray
    place: np.ndarray
    ranks: np.ndarray
    spots: np.ndarray

    def __len__(self) -> int:
        return len(self.domain)

    @property
    def missing(self) -> int:
        """The place of the missing value among numbers, -1 where it does not matter."""
        return -1 if not self.numeric or self.domain.missing is None else self.domain.missing

    @cached_property
    def leaves(self) -> np.ndarray:
        """How many values the node over each place has, at each level."""
        return np.array([np.bincount(ranks)[ranks] for ranks in self.ranks])

    def meeting(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The level of the smallest node over both places: how many levels tell them apart."""
        level = np.zeros(len(low), dtype=np.int8)
        for ranks in self.ranks:
            level += ranks[low] != ranks[high]
        return level

    def width(self, low: np.ndarray, high: np.ndarray, level: np.ndarray) -> np.ndarray:
        """The share of the axis that the values from one place to another span, 0 where they are one."""
        if self.numeric:
            return (self.spots[high] - self.spots[low]) / reach(self.spots)
        values = high - low + 1 if self.free else self.leaves[level, low]
        return np.where(low == high, 0.0, values / len(self))


def axis_of(column: str, domain: Domain, levels: Levels, numeric: bool, *, sets: bool) -> Axis:
    order = np.arange(len(domain)) if numeric else np.lexsort(levels.codes)
    nodes = [order] if numeric else [codes[order] for codes in levels.codes]
    ranks = np.array([np.cumsum(np.diff(of, prepend=of[:1]) != 0) for of in nodes], dtype=np.int32)
    place = np.empty(len(domain), dtype=np.int32)
    place[order] = np.arange(len(domain))
    free = sets and not numeric and levels.height == 1
    spots = _spots(column, domain) if numeric else np.empty(0)
    return Axis(domain, levels, numeric, free, order, place, ranks, spots)


def reach(spots: np.ndarray) -> float:
    """From the first to the last, 1 where there is nothing to measure by."""
    return float(spots[-1] - spots[0]) or 1.0 if len(spots) else 1.0


def _spots(column: str, domain: Domain) -> np.ndarray:
    """The numbers; a missing one stands a mean step above the others."""
    present = len(domain) - (domain.missing is not None)
    if present and domain.numbers is None:
        raise OptionError(
            f"Column '{column}' must contain only numbers to be split by number, but has other values. Split it "
            "by its hierarchy."
        )
    if not present or domain.numbers is None:
        return np.zeros(len(domain))
    numbers = domain.numbers[:present]
    gap = (numbers[-1] - numbers[0]) / (present - 1) if present > 1 else 1.0
    return np.append(numbers, numbers[-1] + gap)[: len(domain)]

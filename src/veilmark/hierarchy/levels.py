"""The levels of a hierarchy: what all kinds build them with, and check them by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.charted import Charted
from veilmark.errors import HierarchyError, listing
from veilmark.readable import Grid, Summary, count
from veilmark.tables.domain import Domain

TOP = "*"
OFFER = f'or set others: "{TOP}" to let them become {TOP} at every level.'

Codes: TypeAlias = npt.NDArray[np.int32]
Flags: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.float64]
Whole: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Levels(Charted):
    """A hierarchy resolved on a domain.

    `labels` are the distinct labels of each level, those of level 0 the domain's own texts. `codes` give, for
    each level and domain value, the position of its label.
    """

    labels: tuple[pa.Array, ...]
    codes: tuple[Codes, ...]

    def __repr__(self) -> str:
        return f"Levels({' → '.join(str(len(labels)) for labels in self.labels)} labels)"

    def summary(self) -> Summary:
        rows = [(level, len(labels)) for level, labels in enumerate(self.labels)]
        headline = f"A hierarchy of {count(len(self.labels[0]), 'value')}, up to level {self.height}."
        return Summary(headline, (Grid(("level", "labels"), rows),))

    def chart(self) -> Any:
        """The tree of labels."""
        from veilmark.report.hierarchy_chart import tree

        return tree(self)

    @property
    def height(self) -> int:
        """The number of the top level."""
        return len(self.labels) - 1

    def up(self, lower: int, upper: int) -> Codes:
        """For each label of level `lower`, the position of the one above it in level `upper`."""
        return _above(self.codes[lower], self.codes[upper], len(self.labels[lower]))

    def leaves(self, level: int) -> Whole:
        """For each label of the level, how many domain values fall under it."""
        return np.bincount(self.codes[level], minlength=len(self.labels[level]))

    def of_values(self, level: int) -> pa.Array:
        """The label of each domain value at the level."""
        return self.labels[level].take(pa.array(self.codes[level]))


@dataclass(frozen=True, eq=False)
class Level:
    """Distinct labels, each of them used, and the position of each value's label."""

    labels: pa.Array
    codes: Codes


def level_of(labels: pa.Array, codes: npt.NDArray[np.integer[Any]]) -> Level:
    """The level whose values have the labels at `codes`: equal labels are one, in the order of the values."""
    coded = labels.dictionary_encode(null_encoding="encode")
    used = pa.array(coded.indices.to_numpy()[codes]).dictionary_encode()
    return Level(coded.dictionary.take(used.dictionary), used.indices.to_numpy())


def ground(text: pa.Array) -> Level:
    return Level(text, np.arange(len(text), dtype=np.int32))


def nest(domain: Domain, middle: Sequence[Level], column: str, top: str = TOP) -> Levels:
    """The levels between the values and the top, checked and completed with both."""
    roof = Level(pa.array([top]), np.zeros(len(domain), dtype=np.int32))
    levels = [ground(domain.text), *middle, roof]
    check_nested(levels, f"Column '{column}'")
    return Levels(tuple(level.labels for level in levels), tuple(level.codes for level in levels))


def check_nested(levels: Sequence[Level], where: str) -> None:
    """Each level must be a function of the one below, or rolling up would depend on the way."""
    for number, (lower, upper) in enumerate(pairwise(levels), start=1):
        above = _above(lower.codes, upper.codes, len(lower.labels))[lower.codes]
        wrong = np.flatnonzero(above != upper.codes)
        if len(wrong):
            label = shown(lower.labels[lower.codes[wrong[0]]])
            both = " and ".join(shown(upper.labels[codes[wrong[0]]]) for codes in (upper.codes, above))
            raise HierarchyError(
                f"{where}: the levels do not nest: {label} of level {number - 1} has two labels in level "
                f"{number}: {both}. Give it one."
            )


def _above(lower: Codes, upper: Codes, count: int) -> Codes:
    above = np.zeros(count, dtype=np.int32)
    above[lower] = upper
    return above


def shown(label: Any) -> str:
    return f"'{label}'" if label.is_valid else "the missing value"


def spread(level: Level, covered: Flags, text: pa.Array) -> Level:
    """A level of the covered values on the whole domain: missing stays missing, all else becomes `*`."""
    if covered.all():
        return level
    labels = pa.concat_arrays([level.labels, pa.array([TOP, None], pa.string())])
    codes = len(level.labels) + np.asarray(text.is_null())
    codes[covered] = level.codes
    return level_of(labels, codes)


class UncoveredError(HierarchyError):
    """Some values are in no part of the hierarchy; `covered` are the others, a mask over the domain."""

    def __init__(self, message: str, covered: Flags) -> None:
        super().__init__(message)
        self.covered = covered


def check_covered(text: pa.Array, covered: Flags, fault: str, remedy: str) -> None:
    """Raise for the present values that are not covered; `fault` ends where they are listed."""
    lost = ~covered & np.asarray(text.is_valid())
    if lost.any():
        raise UncoveredError(f"{fault} {listing(text.filter(pa.array(lost)))}. {remedy}", ~lost)


def joined(*parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")

"""Which sensitive attributes go together, and into how many groups they are split by that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from veilmark.tables.persons import Fingerprints, PersonTable
from veilmark.utility.association import anova_f, contingency, correlation_ratio, cramers_v, pearson

MANY_VALUES = 1000
"""So many of an attribute's values are told apart, the commonest; all others count as one."""

MOST_PERSONS = 200_000
"""Of so many persons the correlation is known to the second digit."""


@dataclass(frozen=True)
class Correlation:
    """Two attributes. `strength`, from 0 to 1, is what groups are made by: the corrected measure.

    Two categories: Cramér's V. A number and a category: the correlation ratio η, beside the F of the one-way analysis of
    variance, which the f-slip paper prints in one table with V though the two cannot be compared. Two numbers: |r|.
    """

    first: str
    second: str
    measure: str
    plain: float
    strength: float
    f: float | None = None

    def to_dict(self) -> dict[str, Any]:
        found = {"first": self.first, "second": self.second, "measure": self.measure}
        figures = {self.measure: self.plain, f"{self.measure}_corrected": self.strength}
        return {**found, **figures, **({} if self.f is None else {"f": self.f})}


@dataclass(frozen=True)
class Correlations:
    """All pairs of sensitive attributes."""

    names: tuple[str, ...]
    pairs: tuple[Correlation, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"attributes": list(self.names), "pairs": [pair.to_dict() for pair in self.pairs]}

    def matrix(self) -> np.ndarray:
        """How strongly each two go together, 1 on the diagonal."""
        place = {name: i for i, name in enumerate(self.names)}
        matrix = np.eye(len(self.names))
        for pair in self.pairs:
            i, j = place[pair.first], place[pair.second]
            matrix[i, j] = matrix[j, i] = pair.strength
        return matrix

    def groups(self, count: int = 2) -> tuple[tuple[str, ...], ...]:
        """The attributes in so many groups, those that go together in one: average linkage on 1 - strength."""
        strength = self.matrix()
        groups = [[i] for i in range(len(self.names))]
        while len(groups) > count:
            near = {
                (a, b): strength[np.ix_(groups[a], groups[b])].mean() for a, b in combinations(range(len(groups)), 2)
            }
            first, second = max(near, key=lambda pair: near[pair])
            groups[first] = sorted(groups[first] + groups.pop(second))
        return tuple(tuple(self.names[i] for i in group) for group in groups)


def correlations(persons: PersonTable, numeric: Iterable[str] = ()) -> Correlations:
    """The correlation of each two sensitive attributes; of several values of a person each pair counts.

    Of very many persons a sample is looked at.
    """
    if len(persons) > MOST_PERSONS:
        persons = persons.take(np.sort(np.random.default_rng(1).choice(len(persons), MOST_PERSONS, replace=False)))
    amounts = set(numeric)
    columns = {name: (column, name in amounts) for name, column in persons.sensitive.items()}
    pairs = [_pair(a, b, columns) for a, b in combinations(columns, 2)]
    return Correlations(tuple(columns), tuple(pairs))


def _pair(first: str, second: str, columns: Mapping[str, tuple[Fingerprints, bool]]) -> Correlation:
    (a, a_number), (b, b_number) = columns[first], columns[second]
    left, right = _meeting(a, b)
    if a_number and b_number:
        r = pearson(_numbers(a)[left], _numbers(b)[right])
        return Correlation(first, second, "r", r, r)
    if not a_number and not b_number:
        table = contingency(_common(a)[left], _common(b)[right])
        return Correlation(first, second, "v", cramers_v(table, corrected=False), cramers_v(table))
    groups, numbers = (_common(a)[left], _numbers(b)[right]) if b_number else (_common(b)[right], _numbers(a)[left])
    ratio = correlation_ratio(groups, numbers, corrected=False)
    return Correlation(first, second, "eta", ratio, correlation_ratio(groups, numbers), anova_f(groups, numbers))


def _meeting(a: Fingerprints, b: Fingerprints) -> tuple[np.ndarray, np.ndarray]:
    """Each value of a person with each of the other attribute, as positions among the values of both."""
    if a.single and b.single:
        everyone = np.arange(len(a))
        return everyone, everyone
    if a.single:
        return b.owner, np.arange(len(b.values))
    left = np.repeat(np.arange(len(a.values)), b.lengths[a.owner])
    owner = a.owner[left]
    first = np.concatenate([[True], left[1:] != left[:-1]]) if len(left) else np.zeros(0, dtype=bool)
    step = np.arange(len(left)) - np.flatnonzero(first)[np.cumsum(first) - 1]
    return left, b.starts[owner] + step


def _numbers(column: Fingerprints) -> np.ndarray:
    numbers = column.domain.numbers
    assert numbers is not None
    return numbers[column.values]


def _common(column: Fingerprints) -> np.ndarray:
    """The codes of the values; beyond the commonest ones, they share a code."""
    if len(column.domain) <= MANY_VALUES:
        return column.values
    often = np.bincount(column.values, minlength=len(column.domain))
    codes = np.full(len(often), MANY_VALUES, dtype=np.int32)
    top = np.argsort(-often, kind="stable")[:MANY_VALUES]
    codes[top] = np.arange(MANY_VALUES)
    return codes[column.values]


def read_groups(given: Sequence[Sequence[str]], names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Groups that were asked for, which must hold each sensitive attribute once."""
    from veilmark.errors import OptionError, did_you_mean, listing
    from veilmark.messages import param

    groups = tuple(tuple(group) for group in given if group)
    listed = [name for group in groups for name in group]
    for name in listed:
        if name not in names:
            raise OptionError(f"'{name}' of {param('groups')} is not a sensitive attribute.{did_you_mean(name, names)}")
        if listed.count(name) > 1:
            raise OptionError(f"'{name}' is in {param('groups')} more than once. Name each attribute once.")
    if lacking := [name for name in names if name not in listed]:
        raise OptionError(f"{param('groups')} lacks {listing(lacking)}. Put every sensitive attribute into one group.")
    return groups

"""ClassTable: the equivalence classes of a table, with their sizes and sensitive values.

Scores, privacy models, searches and attacks work on class tables alone; the rows stay in the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from veilmark.tables.cells import CellIndex, Cells, number, number_unordered, pack, total
from veilmark.tables.domain import Domain

if TYPE_CHECKING:
    from veilmark.engines.base import Table
    from veilmark.hierarchy import Levels


@dataclass(frozen=True, eq=False)
class Tally:
    """Records and persons of each group.

    Persons who occur in one class only are `settled`: their counts add up when classes merge. The others wander
    between classes; they are kept as (group, person) pairs, so that merging classes counts each once.
    """

    records: np.ndarray
    settled: np.ndarray | None = None
    wander_group: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    wander_person: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.records)

    @cached_property
    def persons(self) -> np.ndarray | None:
        if self.settled is None or not len(self.wander_group):
            return self.settled
        return self.settled + np.bincount(self.wander_group, minlength=len(self))

    @property
    def size(self) -> np.ndarray:
        """What privacy counts: persons where they are known, else records."""
        return self.records if self.persons is None else self.persons

    def merge(self, index: np.ndarray, groups: int) -> Tally:
        """Group i becomes part of group index[i]."""
        settled = None if self.settled is None else total(index, self.settled, groups)
        group, person = _distinct_pairs(index[self.wander_group], self.wander_person)
        return Tally(total(index, self.records, groups), settled, group, person)

    def take(self, chosen: np.ndarray) -> Tally:
        """The chosen groups (a mask)."""
        position = np.cumsum(chosen) - 1
        stay = chosen[self.wander_group]
        settled = None if self.settled is None else self.settled[chosen]
        return Tally(self.records[chosen], settled, position[self.wander_group[stay]], self.wander_person[stay])


@dataclass(frozen=True, eq=False)
class Histogram:
    """How often each value of a sensitive attribute occurs in each class: one cell a (class, value) that occurs.

    Cells are ordered by class (`owner`), then value.
    """

    domain: Domain
    owner: np.ndarray
    value: np.ndarray
    tally: Tally

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def records(self) -> np.ndarray:
        return self.tally.records

    @cached_property
    def overall(self) -> np.ndarray:
        """Records of each value in the whole table."""
        return total(self.value, self.records, len(self.domain))

    def merge(self, index: np.ndarray) -> Histogram:
        """Class i becomes part of class index[i]."""
        size = len(self.domain)
        bound = (int(index.max(initial=-1)) + 1) * size
        cells, position = number(index[self.owner].astype(np.int64) * size + self.value, bound)
        tally = self.tally.merge(position, len(cells))
        return Histogram(self.domain, cells // size, (cells % size).astype(np.int32), tally)

    def take(self, chosen: np.ndarray) -> Histogram:
        """The cells of the chosen classes (a mask over classes)."""
        stay = chosen[self.owner]
        position = np.cumsum(chosen) - 1
        return Histogram(self.domain, position[self.owner[stay]], self.value[stay], self.tally.take(stay))


@dataclass(frozen=True, eq=False)
class ClassTable:
    """`codes[i, j]` is the value of quasi-identifier i in class j; classes stand in lexicographic order."""

    columns: tuple[str, ...]
    domains: tuple[Domain, ...]
    codes: np.ndarray
    tally: Tally
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    population: np.ndarray | None = None
    """How many of the population fall into each class, where a population is linked."""

    @classmethod
    def build(
        cls, table: Table, quasi: Sequence[str], sensitive: Sequence[str] = (), person: str | None = None
    ) -> ClassTable:
        """Group a table's rows by its quasi-identifiers, with a histogram for each sensitive attribute."""
        if person is None:
            return cls.of_cells(table.group([*quasi, *sensitive]), len(quasi))
        return _with_persons(table, quasi, sensitive, person)

    @classmethod
    def of_cells(cls, cells: Cells, leading: int) -> ClassTable:
        """The classes over the leading columns; the other columns become histograms."""
        starts = cells.starts(leading)
        if leading == len(cells.columns):
            return cls(cells.columns, cells.domains, cells.codes, Tally(cells.records))
        owner = cells.owners(leading)
        records = np.add.reduceat(cells.records, starts) if len(starts) else cells.records
        histograms = {
            cells.columns[i]: _histogram(owner, cells.codes[i], cells.domains[i], cells.records, len(starts))
            for i in range(leading, len(cells.columns))
        }
        names, domains = cells.columns[:leading], cells.domains[:leading]
        return cls(names, domains, cells.codes[:leading, starts], Tally(records), histograms)

    def __len__(self) -> int:
        return len(self.tally)

    def __repr__(self) -> str:
        return f"ClassTable({len(self):,} classes of {self.total_records:,} records by {', '.join(self.columns)})"

    @property
    def records(self) -> np.ndarray:
        return self.tally.records

    @property
    def persons(self) -> np.ndarray | None:
        return self.tally.persons

    @property
    def size(self) -> np.ndarray:
        """Persons of each class where they are known, else records."""
        return self.tally.size

    @cached_property
    def total_records(self) -> int:
        return int(self.records.sum())

    @cached_property
    def total_persons(self) -> int | None:
        """Persons in the whole table, each once; None where persons are not known."""
        if self.tally.settled is None:
            return None
        return int(self.tally.settled.sum()) + len(np.unique(self.tally.wander_person))

    @cached_property
    def alone(self) -> int:
        """How many persons (or records) stand alone in a class, each counted once."""
        single = self.size == 1
        if self.tally.settled is None:
            return int(single.sum())
        wanderers = self.tally.wander_person[single[self.tally.wander_group]]
        return int(self.tally.settled[single].sum()) + len(np.unique(wanderers))

    @cached_property
    def k(self) -> int:
        """The size of the smallest class; 0 for an empty table."""
        return int(self.size.min()) if len(self) else 0

    def value_records(self, i: int) -> np.ndarray:
        """The records of each value of a quasi-identifier."""
        return np.bincount(self.codes[i], weights=self.records, minlength=len(self.domains[i]))

    @property
    def raw_sizes(self) -> tuple[int, float]:
        """How many classes there are, those of the population alone aside, and the sum of their sizes squared."""
        sizes = self.records[self.records > 0].astype(np.float64)
        return len(sizes), float((sizes**2).sum())

    def texts(self, column: str, classes: np.ndarray | slice = slice(None)) -> list[str | None]:
        """The values of a quasi-identifier in some classes, as text."""
        i = self.columns.index(column)
        values: list[str | None] = self.domains[i].text.take(self.codes[i, classes]).to_pylist()
        return values

    def merge(
        self, codes: Sequence[np.ndarray] | np.ndarray, domains: Sequence[Domain], ordered: bool = True
    ) -> ClassTable:
        """Classes that have the same new codes become one; unordered is faster, where the order does not matter."""
        keys, bound = pack(codes, [len(d) for d in domains])
        if ordered:
            distinct, index = number(keys, bound)
            count, first = len(distinct), np.zeros(len(distinct), dtype=np.int64)
            first[index[::-1]] = np.arange(len(index))[::-1]
        else:
            count, first, index = number_unordered(keys)
        histograms = {name: h.merge(index) for name, h in self.histograms.items()}
        population = None if self.population is None else total(index, self.population, count)
        return replace(
            self,
            domains=tuple(domains),
            codes=np.array([code[first] for code in codes], dtype=np.int32).reshape(len(codes), count),
            tally=self.tally.merge(index, count),
            histograms=histograms,
            population=population,
        )

    def roll_up(self, levels: Sequence[Levels], node: Sequence[int]) -> ClassTable:
        """The class table after generalizing each quasi-identifier to its level in `node`."""
        pairs = list(zip(levels, node, strict=True))
        domains = [Domain(of.labels[level], of.labels[level]) for of, level in pairs]
        codes = np.array([of.codes[level][code] for (of, level), code in zip(pairs, self.codes, strict=True)])
        return self.merge(codes.reshape(self.codes.shape), domains)

    def keep(self, columns: Sequence[str]) -> ClassTable:
        """The class table over some of the quasi-identifiers."""
        chosen = [self.columns.index(c) for c in columns]
        kept = replace(self, columns=tuple(columns))
        return kept.merge(self.codes[chosen], [self.domains[i] for i in chosen])

    def take(self, chosen: np.ndarray) -> ClassTable:
        """The chosen classes (a mask), split off."""
        histograms = {name: h.take(chosen) for name, h in self.histograms.items()}
        population = None if self.population is None else self.population[chosen]
        return replace(
            self,
            codes=self.codes[:, chosen],
            tally=self.tally.take(chosen),
            histograms=histograms,
            population=population,
        )

    def find_in(self, other: ClassTable) -> np.ndarray:
        """For each class its position in another class table over the same columns, -1 where it is not there."""
        theirs = [other.columns.index(c) for c in self.columns]
        index = CellIndex(other.codes[theirs], [other.domains[j] for j in theirs])
        return index.find(self.codes, self.domains)


def _distinct_pairs(group: np.ndarray, person: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not len(group):
        return group, person
    size = int(person.max()) + 1
    pairs = np.sort(group.astype(np.int64) * size + person)
    pairs = pairs[np.concatenate([[True], pairs[1:] != pairs[:-1]])]
    return pairs // size, pairs % size


def _histogram(owner: np.ndarray, value: np.ndarray, domain: Domain, records: np.ndarray, classes: int) -> Histogram:
    """The histogram of one column of cells that are ordered by class."""
    size = len(domain)
    cells, position = number(owner * size + value, classes * size)
    if len(cells) == len(owner):
        return Histogram(domain, owner, value, Tally(records))
    tally = Tally(total(position, records, len(cells)))
    return Histogram(domain, cells // size, (cells % size).astype(np.int32), tally)


def _with_persons(table: Table, quasi: Sequence[str], sensitive: Sequence[str], person: str) -> ClassTable:
    groups = table.group_persons(quasi, sensitive, person)
    classes, wanderers = groups[0]
    histograms = {}
    for name, (cells, found) in zip(sensitive, groups[1:], strict=True):
        owner = cells.owners(len(quasi))
        histograms[name] = Histogram(cells.domains[-1], owner, cells.codes[-1], _person_tally(cells, found))
    tally = _person_tally(classes, wanderers)
    return ClassTable(classes.columns, classes.domains, classes.codes, tally, histograms)


def _person_tally(cells: Cells, wanderers: pa.Table) -> Tally:
    """The cells' records and settled persons, and where the wanderers (the cells' columns, then the person) are."""
    if not len(wanderers):
        return Tally(cells.records, cells.settled)
    codes = np.empty((len(cells.columns), len(wanderers)), dtype=np.int32)
    for i, domain in enumerate(cells.domains):
        codes[i] = domain.codes_of(wanderers.column(i).combine_chunks())
    group = CellIndex(cells.codes, cells.domains).find_codes(codes)
    who = wanderers.column(len(cells.columns)).combine_chunks().dictionary_encode().indices.to_numpy()
    return Tally(cells.records, cells.settled, *_distinct_pairs(group, who.astype(np.int64)))

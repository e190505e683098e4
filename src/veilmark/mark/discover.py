"""Discover: link a release to a population, and find the classes that decoys can be taken from (AnonTokens, Algorithm 1).

A candidate is a class of the population at the release's own labels that the release does not have, with at least k
persons and fewer than `min_link`, the fewest that any released class links to: whoever links the release to the
population finds it the easiest to re-identify. Full-domain releases are linked here, local ones in `boxes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.hierarchy import Levels
from veilmark.tables.cells import CellIndex, number, pack, row_codes, total
from veilmark.tables.classes import ClassTable
from veilmark.tables.domain import Domain
from veilmark.tables.recoding import Recoding

SAYS = 4.0
"""What a column says about others counts for so much more than that it has few labels."""


@dataclass(frozen=True, eq=False)
class Linked:
    """The classes of a release, its source and a population, all at the release's labels.

    `labels[i]` are the labels of quasi-identifier i, `codes[i, j]` is the label of class j. `published` counts the records
    of the release, `suppressed` those of the source that it leaves out, `population` the persons who link to the class,
    `outside` those of them who can serve as decoys: they are not in the source, and nobody else has their identity (None
    where nobody has looked).
    """

    columns: tuple[str, ...]
    labels: tuple[pa.Array, ...]
    codes: np.ndarray
    published: np.ndarray
    suppressed: np.ndarray
    population: np.ndarray
    of_people: np.ndarray
    """The class of each of the population's own classes, -1 where it is none."""
    outside: np.ndarray | None = None
    places: tuple[np.ndarray | None, ...] = ()
    """For each quasi-identifier that holds numbers, where its labels stand between the least (0) and the largest (1)."""
    lost: np.ndarray | None = None
    """The persons of each class whose records are suppressed, where records are not persons."""
    local: bool = False
    """Whether each class has labels of its own, as in a local recoding."""
    allowed: np.ndarray | None = None
    """A mask of the classes that decoys may come from; None: those that are riskier than any released one."""
    given_up: np.ndarray | None = None
    """A mask of the classes that nobody gets so that decoys can be drawn from them."""
    partner: np.ndarray | None = None
    """Of a class that was given up so that decoys blend in, the like one whose values its decoys take; else -1."""
    weights: tuple[float, ...] = ()
    """How much each quasi-identifier says about the other columns, beside what it says by itself."""

    def __len__(self) -> int:
        return len(self.published)

    @cached_property
    def min_link(self) -> int:
        """The fewest persons of the population that a released class links to; classes that link to nobody set aside."""
        links = self.population[(self.published > 0) & (self.population > 0)]
        return int(links.min()) if len(links) else 0

    @property
    def unlinked(self) -> int:
        """How many released classes link to nobody: the population lacks some of the source's persons."""
        return int(((self.published > 0) & (self.population == 0)).sum())

    @property
    def source(self) -> np.ndarray:
        """The source's records of each class."""
        return self.published + self.suppressed

    @property
    def told_codes(self) -> np.ndarray:
        """The labels of the classes; none where nobody has told them."""
        return self.codes if self.codes.shape[1] == len(self) else self.codes[:0]

    def found(self, k: int) -> np.ndarray:
        """A mask of the candidates, members of the source among them: the paper's, or those that are allowed."""
        fits = self.population < self.min_link if self.allowed is None else self.allowed
        return (self.published == 0) & (self.population >= k) & fits

    def candidates(self, k: int) -> np.ndarray:
        """A mask of the candidates that leave k persons who can serve as decoys.

        Where nobody has looked, a class that holds a suppressed record's combination is none.
        """
        if self.outside is None:
            return self.found(k) & (self.suppressed == 0)
        return self.found(k) & (self.outside >= k)

    def without(self, chosen: np.ndarray, guess: bool = False) -> Linked:
        """The same with some more classes suppressed; who can serve as decoys is to be looked up again. With `guess`, it is
        taken to be as it was said before."""
        published, suppressed = self.published.copy(), self.suppressed.copy()
        published[chosen] = 0
        suppressed[chosen] = self.published[chosen]
        lost = None if self.lost is None else np.where(self.published > published, suppressed, self.lost)
        outside = self.outside if guess else None
        return replace(self, published=published, suppressed=suppressed, lost=lost, outside=outside)

    def multiples(self) -> np.ndarray:
        """How many times riskier each class is than the riskiest released one: min_link/size."""
        return self.min_link / np.maximum(self.population, 1)

    def find(self, table: pa.Table) -> np.ndarray:
        """The class of each row of a table with the release's columns, -1 where it has another combination of labels."""
        domains = [Domain(labels, labels) for labels in self.labels]
        index = CellIndex(self.codes, domains)
        batches = table.select(list(self.columns)).combine_chunks().to_batches()
        found = [index.find_codes(row_codes(batch, self.columns, domains)) for batch in batches]
        return np.concatenate([np.empty(0, dtype=np.int64), *found])

    def texts(self, chosen: np.ndarray) -> list[list[str | None]]:
        """The labels of some classes, class by class."""
        columns = [
            labels.take(pa.array(code[chosen])).to_pylist()
            for labels, code in zip(self.labels, self.codes, strict=True)
        ]
        return [list(row) for row in zip(*columns, strict=True)]

    def unlike(self, one: int, others: np.ndarray) -> np.ndarray:
        """How unlike a class each of some others is, so that values borrowed from a like one fit: a column counts for more
        the fewer labels it has, and the more it says about the other columns."""
        distance = np.zeros(len(others))
        weights = self.weights or (0.0,) * len(self.codes)
        for codes, labels, places, weight in zip(self.codes, self.labels, self._places, weights, strict=True):
            differs = (codes[others] != codes[one]).astype(float)
            step = np.abs(places[codes[others]] - places[codes[one]])
            by_itself = 1 / np.log2(max(len(labels), 2))
            distance += (by_itself + SAYS * weight) * np.where(np.isnan(step), differs, step)
        return distance

    def strangeness(self, chosen: np.ndarray) -> np.ndarray:
        """The mean squared distance of each of some classes to the records of the release: squared Euclid for numbers, whose
        range is 1; 0 or 1 for all else."""
        distance = np.zeros(len(chosen))
        for codes, places in zip(self.codes, self._places, strict=True):
            share = np.bincount(codes, weights=self.published, minlength=len(places)) / max(self.published.sum(), 1)
            there = ~np.isnan(places)
            numbers = share[there].sum()
            mean = np.dot(share[there], places[there]) / (numbers or 1.0)
            spread = np.dot(share[there], (places[there] - mean) ** 2)
            by_number = numbers * (places - mean) ** 2 + spread + (1 - numbers)
            distance += np.where(there, by_number, 1 - share)[codes[chosen]]
        return distance

    @property
    def _places(self) -> list[np.ndarray]:
        """Where each label stands, NaN where it is no number."""
        given = self.places or [None] * len(self.labels)
        return [np.full(len(of), np.nan) if at is None else at for of, at in zip(self.labels, given, strict=True)]


def link(
    classes: ClassTable,
    recoding: Recoding,
    people: ClassTable,
    levels: Sequence[Levels],
    domains: Sequence[Domain],
    numeric: Sequence[bool] = (),
) -> Linked:
    """Link a full-domain release to a population.

    `classes` and `people` are the classes of source and population by their own values; `levels` are the hierarchies on
    `domains`, the values of both; `numeric` says which of these are numbers.
    """
    node = [recoding.levels[c] for c in classes.columns]
    at = [of.codes[level] for of, level in zip(levels, node, strict=True)]
    labels = tuple(of.labels[level] for of, level in zip(levels, node, strict=True))
    both = np.concatenate([relabel(classes, domains, at), relabel(people, domains, at)], axis=1)
    gone = suppressed_classes(classes, recoding)
    distinct, index = number(*pack(both, [len(of) for of in labels]))
    first = np.zeros(len(distinct), dtype=np.int64)
    first[index[::-1]] = np.arange(len(index))[::-1]
    mine, other = index[: len(classes)], index[len(classes) :]
    return Linked(
        classes.columns,
        labels,
        both[:, first],
        total(mine, np.where(gone, 0, classes.records), len(distinct)),
        total(mine, np.where(gone, classes.records, 0), len(distinct)),
        total(other, people.size, len(distinct)),
        other,
        places=_places(domains, at, labels, numeric),
        lost=None if classes.persons is None else total(mine, np.where(gone, classes.size, 0), len(distinct)),
    )


def relabel(classes: ClassTable, domains: Sequence[Domain], at: Sequence[np.ndarray]) -> np.ndarray:
    """The label of each class's values; `at` gives it for the values of `domains`."""
    rows = []
    for own, domain, code, label in zip(classes.domains, domains, classes.codes, at, strict=True):
        rows.append(label[domain.codes_of(own.text)][code])
    return np.array(rows, dtype=np.int32).reshape(len(rows), len(classes))


def suppressed_classes(classes: ClassTable, recoding: Recoding) -> np.ndarray:
    """A mask of the source's classes that a full-domain recoding leaves out."""
    sizes = [int(code.max(initial=0)) + 1 for code in recoding.codes]
    own = [group[code] for group, code in zip(recoding.codes, classes.codes, strict=True)]
    both = np.concatenate([np.array(own, dtype=np.int64).reshape(len(own), -1), recoding.classes], axis=1)
    keys, _ = pack(both, sizes)
    return np.isin(keys[: len(classes)], keys[len(classes) :])


def union_domain(one: Domain, other: Domain) -> Domain:
    """The values of both; a value that the other writes otherwise (30.0 for 30) is the same."""
    new = other.text.filter(pa.array(one.codes_of(other.text) < 0))
    return Domain.of(pa.concat_arrays([one.text.cast(pa.string()), new.cast(pa.string())]))


def _places(
    domains: Sequence[Domain], at: Sequence[np.ndarray], labels: Sequence[pa.Array], numeric: Sequence[bool]
) -> tuple[np.ndarray | None, ...]:
    """Where the labels of numbers stand: the middle of the numbers under each."""
    places: list[np.ndarray | None] = []
    for domain, codes, of, is_number in zip(domains, at, labels, numeric or [False] * len(at), strict=True):
        scaled = scaled_numbers(domain) if is_number else None
        if scaled is None:
            places.append(None)
            continue
        there = ~np.isnan(scaled)
        count = np.bincount(codes[there], minlength=len(of))
        with np.errstate(invalid="ignore"):
            places.append(np.bincount(codes[there], weights=scaled[there], minlength=len(of)) / count)
    return tuple(places)


def scaled_numbers(domain: Domain) -> np.ndarray | None:
    """The numbers of a domain from 0 to 1, NaN for missing; None where they are no numbers."""
    if domain.numbers is None:
        return None
    low, high = np.nanmin(domain.numbers), np.nanmax(domain.numbers)
    scaled: np.ndarray = (domain.numbers - low) / ((high - low) or 1.0)
    return scaled


@dataclass(frozen=True)
class Feasibility:
    """Table 4 of the paper for one's own data: what decoys a release can have.

    `classes` candidates with `records` persons can serve; `excluded` more cannot, because too few of their persons are known
    not to be in the source. `members` persons of all of them cannot serve.
    """

    min_link: int
    released_classes: int
    unlinked: int
    classes: int
    records: int
    members: int
    excluded: int
    near_k: int
    multiples: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "multiples": list(self.multiples)}


def feasibility(linked: Linked, k: int) -> Feasibility:
    """How many candidates there are, and how many fall away because they hold members of the source."""
    found, kept = linked.found(k), linked.candidates(k)
    usable = linked.population if linked.outside is None else linked.outside
    members = linked.population[found] - usable[found]
    near = (linked.published >= k) & (10 * linked.published <= 11 * k + 9)  # up to ⌈1.1k⌉
    multiples = np.quantile(linked.multiples()[kept], [0, 0.25, 0.5, 0.75, 1]) if kept.any() else np.empty(0)
    return Feasibility(
        linked.min_link,
        int((linked.published > 0).sum()),
        linked.unlinked,
        int(kept.sum()),
        int(usable[kept].sum()),
        int(members.sum()),
        int((found & ~kept).sum()),
        int(near.sum()),
        tuple(float(m) for m in multiples),
    )

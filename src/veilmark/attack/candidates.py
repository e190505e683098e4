"""The published persons that a target may be: the rows of fitting classes whose groups hold the facts that are known.

Links stand for them: a link is a class with a group of each part. Each question is answered from its shorter end: the
links of its classes, or the links to the groups that hold its facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from veilmark.attack.compatible import Sets, blocks
from veilmark.attack.facts import Facts, Fitting, RowFinder, contains
from veilmark.attack.labels import ranges
from veilmark.attack.view import View
from veilmark.tables.cells import number, pack

BLOCK = 1 << 22
"""So many candidates are held at once."""


@dataclass(frozen=True, eq=False)
class Links:
    """`group[j]` are the links' groups of part j, `count` the rows that they stand for; of the links of classes,
    `starts` says where those of each class begin. Without, all classes are one."""

    group: np.ndarray
    count: np.ndarray
    groups: tuple[int, ...]
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.count)

    @cached_property
    def owner(self) -> np.ndarray:
        """The class of each link."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @cached_property
    def to_group(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """For each part the links in the order of their groups, and where each group's begin."""
        orders = [np.argsort(group, kind="stable") for group in self.group]
        ends = [
            np.append(0, np.cumsum(np.bincount(g, minlength=n))) for g, n in zip(self.group, self.groups, strict=True)
        ]
        return tuple(zip(orders, ends, strict=True))


def links_of(view: View) -> Links:
    """The links of each class."""
    starts = np.searchsorted(view.links[0], np.arange(len(view) + 1))
    return Links(view.links[1:], view.count, tuple(part.groups for part in view.parts), starts)


def all_links(view: View) -> Links:
    """The links of somebody whose class is not known."""
    groups = tuple(part.groups for part in view.parts)
    distinct, which = number(*pack(view.links[1:], groups))
    count = np.bincount(which, weights=view.count, minlength=len(distinct))
    group = np.zeros((len(groups), len(distinct)), dtype=np.int64)
    group[:, which] = view.links[1:]
    return Links(group, count, groups, np.array([0, len(distinct)]))


EVERYBODY = Sets(np.array([0, 1]), np.array([0]), np.empty(0, np.int64))
"""The set of all classes, where these are one."""


@dataclass(frozen=True, eq=False)
class Question:
    """Distinct questions: who is in a class of the set `chosen[i]`, and in groups that hold the facts?

    `of` is each target's question, `first` the first target that has it.
    """

    links: Links
    sets: Sets
    chosen: np.ndarray
    facts: tuple[Fitting, ...]
    of: np.ndarray
    first: np.ndarray

    @classmethod
    def of_targets(cls, links: Links, sets: Sets, facts: Sequence[Fitting]) -> Question:
        """`sets.of` and the facts' `of` are the targets'."""
        sizes = [len(sets), *(len(f) + 1 for f in facts)]
        distinct, of = np.unique(pack([sets.of, *(f.of + 1 for f in facts)], sizes)[0], return_inverse=True)
        first = np.zeros(len(distinct), dtype=np.int64)
        first[of[::-1]] = np.arange(len(of))[::-1]
        return cls(links, sets, sets.of[first], tuple(f.take(first) for f in facts), of, first)

    def __len__(self) -> int:
        return len(self.chosen)

    def answers(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """A block of questions at a time: which they are, and the pairs of their places there and links, in order."""
        costs = np.stack([self._set_cost, *(self._fact_cost(f) for f in self.facts)])
        way, cost = np.argmin(costs, axis=0), costs.min(axis=0)
        for block in blocks(cost, BLOCK):
            place, link = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
            for w in np.unique(way[block]):
                mine = np.flatnonzero(way[block] == w)
                found = self._from_sets(block[mine]) if w == 0 else self._from_facts(block[mine], self.facts[w - 1])
                place.append(mine[found[0]])
                link.append(found[1])
            pairs = self._checked(block, np.concatenate(place), np.concatenate(link), way[block])
            yield block, *pairs

    @cached_property
    def _class_links(self) -> np.ndarray:
        return np.diff(self.links.starts)

    @cached_property
    def _set_cost(self) -> np.ndarray:
        sums = np.append(0, np.cumsum(self._class_links[self.sets.members]))
        return (sums[self.sets.starts[1:]] - sums[self.sets.starts[:-1]])[self.chosen]

    def _fact_cost(self, facts: Fitting) -> np.ndarray:
        sums = np.append(0, np.cumsum(np.diff(self.links.to_group[facts.part][1])[facts.found]))
        cost = sums[facts.starts[1:]] - sums[facts.starts[:-1]]
        return np.where(facts.of < 0, np.iinfo(np.int64).max, np.append(cost, 0)[facts.of])

    def _from_sets(self, questions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        owner, member = expand(self.sets.starts, self.chosen[questions], self.sets.members)
        more, link = expand(self.links.starts, member)
        return owner[more], link

    def _from_facts(self, questions: np.ndarray, facts: Fitting) -> tuple[np.ndarray, np.ndarray]:
        owner, group = expand(facts.starts, facts.of[questions], facts.found)
        order, starts = self.links.to_group[facts.part]
        more, link = expand(starts, group, order)
        return owner[more], link

    def _checked(
        self, block: np.ndarray, place: np.ndarray, link: np.ndarray, way: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The pairs that meet the rest of the question too, in order."""
        question = block[place]
        stay = (way[place] == 0) | contains(
            self._set_keys, self._set_key(self.chosen[question], self.links.owner[link])
        )
        for w, facts in enumerate(self.facts, 1):
            of, groups = facts.of[question], self.links.groups[facts.part]
            keys = np.repeat(np.arange(len(facts)), np.diff(facts.starts)) * groups + facts.found
            stay &= (way[place] == w) | (of < 0) | contains(keys, of * groups + self.links.group[facts.part][link])
        place, link = place[stay], link[stay]
        order = np.lexsort((link, place))
        return place[order], link[order]

    def _set_key(self, chosen: np.ndarray, member: np.ndarray) -> np.ndarray:
        return chosen * len(self.links.starts) + member

    @cached_property
    def _set_keys(self) -> np.ndarray:
        return self._set_key(np.repeat(np.arange(len(self.sets)), np.diff(self.sets.starts)), self.sets.members)


def expand(starts: np.ndarray, chosen: np.ndarray, found: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The members of chosen lists one after the other, each with the place of its list among the chosen."""
    length = np.diff(starts)[chosen]
    place = np.repeat(starts[:-1][chosen], length) + ranges(length)
    return np.repeat(np.arange(len(chosen)), length), place if found is None else found[place]


def held_by_groups(view: View, finders: Sequence[RowFinder], facts: Facts) -> list[Fitting]:
    """The groups that hold the facts: all of a part in one row, where rows are persons; else each in some row."""
    asked = [facts] if view.of_persons else [facts.one(f) for f in range(facts.attribute.shape[1])]
    found = [finder.find(some).groups(view) for some in asked for finder in finders]
    return [fitting for fitting in found if len(fitting)]

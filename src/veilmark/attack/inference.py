"""Guessing sensitive values: what the attacks bk, msacorr and qicorr share.

Candidates are the published persons of fitting classes whose groups hold the facts that are known. The rows of their
groups that hold the facts (of records: those on other attributes) tell what to guess. Facts that no candidate holds are
dropped, and where no class fits, everybody is a candidate. A part that no class leads to is looked at as a whole: of it
count the rows that hold the facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from veilmark.attack.candidates import EVERYBODY, Links, Question, all_links, held_by_groups, links_of
from veilmark.attack.compatible import Sets
from veilmark.attack.facts import Facts, Fitting, RowFinder, no_facts
from veilmark.attack.guess import Truth, rightness
from veilmark.attack.labels import ranges
from veilmark.attack.view import Part, View
from veilmark.tables.persons import PersonTable

TARGETS = 1 << 14
"""So many targets are attacked together."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """For each attribute and target the probability that the guess is right, by the attack and by the control; NaN where
    there was nothing to guess."""

    attack: Mapping[str, np.ndarray]
    control: Mapping[str, np.ndarray]


class Inference:
    """An attacker on a release who guesses sensitive values of `persons`; `sets` are the classes that these fit."""

    def __init__(self, view: View, persons: PersonTable, sets: Sets) -> None:
        self.view, self.persons, self.sets = view, persons, sets
        self._tables = {name: _Table(view.parts[view.part_of(name)], name) for name in view.meanings}

    def run(self, facts: Facts, quasi: bool, same: bool) -> Outcome:
        """Guess what the facts leave open, knowing the quasi-identifiers or not.

        With `same`, the rest of an attribute of which a fact is known is guessed as well; else other attributes only.
        """
        outcome = Outcome(*({name: np.full(len(facts), np.nan) for name in self.view.meanings} for _ in range(2)))
        for first in range(0, len(facts), TARGETS):
            targets = np.arange(first, min(first + TARGETS, len(facts)))
            some = facts.take(targets)
            truths = {name: self._truth(name, targets, some, same) for name in self.view.meanings}
            right = self._attack(targets, some, quasi, truths)
            for name, truth in truths.items():
                control = self._control(name, truth)
                outcome.attack[name][targets] = np.where(np.isnan(right[name]), control, right[name])
                outcome.control[name][targets] = control
        return outcome

    def _truth(self, name: str, targets: np.ndarray, facts: Facts, same: bool) -> Truth:
        """What is known and what is to be guessed of an attribute."""
        mine = self.persons.sensitive[name].take(targets)
        person, fact = np.nonzero(facts.attribute == facts.names.index(name))
        value = facts.value[person, fact]
        if same:
            left = ~np.isin(mine.owner * len(mine.domain) + mine.values, person * len(mine.domain) + value)
        else:
            left = ~np.isin(mine.owner, person)
        starts = np.append(0, np.cumsum(np.bincount(mine.owner[left], minlength=len(targets))))
        return Truth.of(self.view.meanings[name], starts, mine.values[left], person, value)

    def _control(self, name: str, truth: Truth) -> np.ndarray:
        """The guess of somebody who has the release, and knows neither the target's class nor a fact."""
        j = self.view.part_of(name)
        count = np.bincount(self.view.links[1 + j], weights=self.view.count, minlength=self.view.parts[j].groups)
        told = sparse.csr_array(count[None, :]) @ self._tables[name].by_group
        result = np.full(len(truth), np.nan)
        self._judge(name, result, told, np.zeros(len(truth), dtype=np.int64), truth)
        return result

    def _attack(
        self, targets: np.ndarray, facts: Facts, quasi: bool, truths: Mapping[str, Truth]
    ) -> dict[str, np.ndarray]:
        """With the facts; where these lead nowhere, without."""
        right = self._guess(targets, facts, quasi, truths)
        if quasi and facts.attribute.size and any((np.isnan(right[n]) & truths[n].asked).any() for n in truths):
            without = self._guess(targets, no_facts(facts.names, len(facts)), quasi, truths)
            right = {name: np.where(np.isnan(found), without[name], found) for name, found in right.items()}
        return right

    def _guess(
        self, targets: np.ndarray, facts: Facts, quasi: bool, truths: Mapping[str, Truth]
    ) -> dict[str, np.ndarray]:
        right = {name: np.full(len(targets), np.nan) for name in truths}
        rows = {name: self._rows(name, facts) for name in truths}
        linked = [name for name in truths if self._tables[name].part.groups > 1]
        for name in truths:
            if name not in linked:
                told = self._tables[name].of_rows(rows[name])
                self._judge(name, right[name], told, rows[name].of, truths[name])
        if linked:
            question = self._ask(targets, facts, quasi)
            for block, place, link in question.answers():
                here = np.where((question.of >= block[0]) & (question.of <= block[-1]), question.of - block[0], -1)
                for name in linked:
                    leads = question.links.group[self.view.part_of(name)][link], question.links.count[link]
                    told = self._tables[name].of_groups(place, *leads, rows[name].take(question.first[block]))
                    self._judge(name, right[name], told, here, truths[name])
        return right

    def _rows(self, name: str, facts: Facts) -> Fitting:
        """The rows of an attribute's part that hold the facts."""
        own = facts if self.view.of_persons else facts.without(name)
        return self._finders[self.view.part_of(name)].find(own)

    def _judge(self, name: str, right: np.ndarray, told: sparse.csr_array, row: np.ndarray, truth: Truth) -> None:
        """Enter how right the guesses are of targets of whom there is something to guess, and whose question is a row
        (not -1) of what is told."""
        chosen = np.flatnonzero((row >= 0) & truth.asked)
        right[chosen] = rightness(told, self.view.meanings[name], row[chosen], truth.take(chosen))

    def _ask(self, targets: np.ndarray, facts: Facts, quasi: bool) -> Question:
        """Who the targets may be."""
        links, sets = (self._links, self.sets) if quasi else (self._all_links, EVERYBODY)
        of = sets.of[targets] if quasi else np.zeros(len(targets), dtype=np.int64)
        held = held_by_groups(self.view, self._finders, facts)
        return Question.of_targets(links, Sets(sets.starts, sets.members, of), held)

    @cached_property
    def _finders(self) -> list[RowFinder]:
        return [RowFinder(self.view, j) for j in range(len(self.view.parts))]

    @cached_property
    def _links(self) -> Links:
        return links_of(self.view)

    @cached_property
    def _all_links(self) -> Links:
        return all_links(self.view)


class _Table:
    """The labels of an attribute: `by_row` of its part, and `by_group`, whose rows count for one together."""

    def __init__(self, part: Part, name: str) -> None:
        column = part.columns[name]
        self.part = part
        self.by_row = _counted(column.values, column.starts, len(column.domain))
        self.share = 1 / np.maximum(np.diff(part.starts), 1)
        groups = _counted(np.arange(part.rows), part.starts, part.rows)
        self.by_group = sparse.diags_array(self.share).tocsr() @ groups @ self.by_row

    def of_rows(self, rows: Fitting) -> sparse.csr_array:
        """How often each label stands in each set of rows."""
        return _counted(rows.found, rows.starts, self.part.rows) @ self.by_row

    def of_groups(self, place: np.ndarray, group: np.ndarray, count: np.ndarray, rows: Fitting) -> sparse.csr_array:
        """The weight of each label for questions whose candidates are `count` persons of some groups.

        Where a question has facts, only the rows of the groups count that hold them.
        """
        questions, free = len(rows.of), rows.of[place] < 0
        shape = (questions, self.part.groups)
        told = sparse.coo_array((count[free], (place[free], group[free])), shape).tocsr() @ self.by_group
        place, group, count = place[~free], group[~free], count[~free]
        cells, cell = np.unique(rows.of[place] * self.part.groups + group, return_inverse=True)
        held = self._held(rows, cells // self.part.groups, cells % self.part.groups)
        weights = (count * self.share[group], (place, cell))
        return told + sparse.coo_array(weights, (questions, len(cells))).tocsr() @ held

    def _held(self, rows: Fitting, of: np.ndarray, group: np.ndarray) -> sparse.csr_array:
        """How often each label stands in the rows of a group that hold some facts, for pairs of both."""
        keys = np.repeat(np.arange(len(rows)), np.diff(rows.starts)) * self.part.rows + rows.found
        low, high = (np.searchsorted(keys, of * self.part.rows + self.part.starts[group + end]) for end in (0, 1))
        found = rows.found[np.repeat(low, high - low) + ranges(high - low)]
        return _counted(found, np.append(0, np.cumsum(high - low)), self.part.rows) @ self.by_row


def _counted(members: np.ndarray, starts: np.ndarray, size: int) -> sparse.csr_array:
    """Lists of members as the rows of a matrix."""
    return sparse.csr_array((np.ones(len(members)), members, starts), (len(starts) - 1, size))

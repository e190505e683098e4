"""Telling whether somebody is in the release at all: the attacks mcorr and nmcorr.

Who knows a person's quasi-identifiers and some sensitive values says "in" where a fitting class leads to groups that hold
these values, and "not in" otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilmark.attack.candidates import Question, held_by_groups, links_of
from veilmark.attack.compatible import Sets
from veilmark.attack.facts import Facts, RowFinder
from veilmark.attack.harness import AttackResult, Seed, result
from veilmark.attack.view import View
from veilmark.tables.persons import PersonTable

DRAWS = 20
"""How often a non-member is drawn anew where the combination is that of a member."""

TARGETS = 1 << 14
"""So many targets are attacked together."""


class Membership:
    """An attacker on a release who decides on membership."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._links = links_of(view)
        self._finders = [RowFinder(view, j) for j in range(len(view.parts))]

    def holds(self, sets: Sets, facts: Facts) -> np.ndarray:
        """Whether a class of each target's set leads to groups that hold its facts."""
        called = np.zeros(len(facts), dtype=bool)
        for first in range(0, len(facts), TARGETS):
            some = np.arange(first, min(first + TARGETS, len(facts)))
            held = held_by_groups(self.view, self._finders, facts.take(some))
            question = Question.of_targets(self._links, Sets(sets.starts, sets.members, sets.of[some]), held)
            found = np.zeros(len(question), dtype=bool)
            for block, place, _ in question.answers():
                found[block[place]] = True
            called[some] = found[question.of]
        return called

    def by_marginals(self, persons: PersonTable, facts: Facts) -> np.ndarray:
        """Whether each column by itself has a label for what is known of each target."""
        called = np.ones(len(facts), dtype=bool)
        for name, labels in self.view.quasi.items():
            called &= labels.covered[persons.quasi[name].values]
        for name, meaning in self.view.meanings.items():
            here = facts.attribute == facts.names.index(name)
            called &= (~here | meaning.labels.covered[np.where(here, facts.value, 0)]).all(axis=1)
        return called


@dataclass(frozen=True, eq=False)
class Calls:
    """For each target with a non-member beside it: whether either is called in, by the attack and by the control.

    A non-member has the target's quasi-identifiers and somebody else's facts, such that nobody in the source has both.
    """

    member: np.ndarray
    member_control: np.ndarray
    other: np.ndarray
    other_control: np.ndarray

    def mcorr(self) -> AttackResult:
        """Somebody knows the target, and wants to know whether the target is in the release, because being in it tells
        enough: everybody in it was, say, a patient.

        Of each target and its non-member, how many are rightly called in or not in: 0.5 is what a coin gets.
        """
        right = np.mean([self.member, ~self.other], axis=0)
        control = np.mean([self.member_control, ~self.other_control], axis=0)
        if not len(right):
            return result(right, control)
        called = {"members": float(self.member.mean()), "non_members": float(self.other.mean())}
        return result(right, control, called_in=called)

    def nmcorr(self) -> AttackResult:
        """Somebody wants to rule out that a person is in the release: how many non-members are so called."""
        return result(~self.other, ~self.other_control)


def call(
    release: Membership, source: Membership, persons: PersonTable, sets: Sets, own: Sets, facts: Facts, seed: Seed
) -> Calls:
    """Call targets and non-members, whose classes are `sets` in the release and `own` in the source."""
    other, drawn = draw_non_members(source, own, facts, np.random.default_rng(seed))
    chosen = np.flatnonzero(drawn)
    # Whom no class fits was suppressed, and is no member of the release.
    chosen = chosen[np.diff(sets.starts)[sets.of[chosen]] > 0]
    some, mine = Sets(sets.starts, sets.members, sets.of[chosen]), persons.take(chosen)
    calls = []
    for known in (facts.take(chosen), facts.take(other[chosen])):
        calls += [release.holds(some, known), release.by_marginals(mine, known)]
    return Calls(*calls)


def draw_non_members(
    source: Membership, own: Sets, facts: Facts, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """For each target somebody whose facts nobody in the target's class has, and whether one was found."""
    other = np.zeros(len(facts), dtype=np.int64)
    open_ = np.arange(len(facts))
    for _ in range(DRAWS):
        if not len(open_):
            break
        other[open_] = rng.integers(len(facts), size=len(open_))
        there = source.holds(Sets(own.starts, own.members, own.of[open_]), facts.take(other[open_]))
        open_ = open_[there]
    drawn = np.ones(len(facts), dtype=bool)
    drawn[open_] = False
    return other, drawn

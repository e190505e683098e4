"""mcorr, nmcorr and linkage against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from attack_cases import CASES, QUASI, facts_as_lists, release, sets_of
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.attack import source_population
from veilmark.attack.compatible import Sets
from veilmark.attack.facts import draw_facts
from veilmark.attack.linkage import linkage
from veilmark.attack.membership import Calls, Membership, call, draw_non_members
from veilmark.attack.view import view_of_persons


def source_of(case):
    source = view_of_persons(case.persons, case.levels)
    return Membership(source), Sets(np.arange(len(source) + 1), np.arange(len(source)), case.persons.class_of)


@settings(max_examples=examples(40))
@given(CASES, st.integers(1, 3))
def test_calls_are_the_oracles(drawn, known):
    case = release(**drawn)
    facts = draw_facts(case.persons, case.oracle.names, known, np.random.default_rng(1))
    source, own = source_of(case)
    other, found = draw_non_members(source, own, facts, np.random.default_rng([2]))
    calls = call(Membership(case.view), source, case.persons, sets_of(case), own, facts, [2])
    lists = facts_as_lists(case, facts)
    expected = []
    for i in np.flatnonzero(found):
        quasi, theirs = case.oracle.persons[i]["quasi"], lists[other[i]]
        assert not any(p["quasi"] == quasi and has_all(p, theirs) for p in case.oracle.persons)
        expected.append(
            [
                ask(quasi, f)
                for f in (lists[i], theirs)
                for ask in (case.oracle.called_in, case.oracle.called_in_by_marginals)
            ]
        )
    got = np.array([calls.member, calls.member_control, calls.other, calls.other_control]).T
    assert got.tolist() == expected
    for result in (calls.mcorr(), calls.nmcorr()):
        assert result.targets == len(expected)
        assert 0 <= result.interval[0] <= result.success <= result.interval[1] <= 1


def has_all(person, facts):
    return all(value in person["sensitive"][name] for name, value in facts)


def test_scores_of_calls():
    calls = Calls(*(np.array(x, dtype=bool) for x in ([1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0], [1, 1, 1, 0])))
    assert (calls.mcorr().success, calls.mcorr().control, calls.mcorr().targets) == (0.75, 0.625, 4)
    assert calls.mcorr().to_dict()["called_in"] == {"members": 0.75, "non_members": 0.25}
    assert (calls.nmcorr().success, calls.nmcorr().control) == (0.75, 0.25)


def test_nobody_to_call():
    nobody = np.zeros(0, dtype=bool)
    calls = Calls(nobody, nobody, nobody, nobody)
    judged = {"gain": 0.0, "better_than_guessing": False, "amount": "none"}
    assert calls.mcorr().to_dict() == {"success": 0.0, "control": 0.0, "interval": [0.0, 1.0], "targets": 0} | judged


@settings(max_examples=examples(30))
@given(CASES)
def test_linkage_is_the_oracles(drawn):
    case = release(**drawn)
    result = linkage(case.view, source_population(case.persons, case.levels))
    people = [person["quasi"] for person in case.oracle.persons]
    assert result.success == pytest.approx(case.oracle.linked(QUASI, people))
    assert result.control == 1 / len(people)
    assert result.targets == len(case.oracle.quasi)

"""bk, msacorr and qicorr against the oracle, on random releases of every form."""

from __future__ import annotations

import numpy as np
import pytest
from attack_cases import CASES, facts_as_lists, release, sets_of
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.attack import adversaries
from veilmark.attack.facts import draw_facts, no_facts
from veilmark.attack.inference import Inference


@settings(max_examples=examples(40))
@given(CASES, st.integers(1, 3))
def test_guesses_are_the_oracles(drawn, known):
    case = release(**drawn)
    attacker, names = Inference(case.view, case.persons, sets_of(case)), case.oracle.names
    some, one = (draw_facts(case.persons, names, n, np.random.default_rng([7])) for n in (known, 1))
    compare(case, adversaries.qicorr(attacker), no_facts(names, len(case.persons)), quasi=True, same=True)
    compare(case, adversaries.bk(attacker, known, [7]), some, quasi=True, same=True)
    compare(case, adversaries.msacorr(attacker, [7]), one, quasi=False, same=False)


def compare(case, result, facts, quasi, same):
    expected = case.oracle.mean(case.oracle.infer(facts_as_lists(case, facts), quasi, same))
    assert (result.success, result.control, result.targets) == pytest.approx(expected)
    assert 0 <= result.interval[0] <= result.success <= result.interval[1] <= 1


def test_blocks_change_nothing(monkeypatch):
    case = release(seed=3, persons=12, kind="linked", depth=1, means=True)
    whole = adversaries.bk(Inference(case.view, case.persons, sets_of(case)), 2, [7])
    monkeypatch.setattr("veilmark.attack.inference.TARGETS", 5)
    monkeypatch.setattr("veilmark.attack.candidates.BLOCK", 3)
    monkeypatch.setattr("veilmark.attack.guess.BLOCK", 3)
    monkeypatch.setattr("veilmark.attack.compatible.BLOCK", 40)
    monkeypatch.setattr("veilmark.attack.compatible.PAIRS", 3)
    monkeypatch.setattr("veilmark.attack.compatible.MANY", 1)
    assert adversaries.bk(Inference(case.view, case.persons, sets_of(case)), 2, [7]) == whole


def test_facts_are_the_persons_own():
    case = release(seed=5, persons=12, kind="file", depth=0)
    facts = draw_facts(case.persons, case.oracle.names, 2, np.random.default_rng(1))
    for person, known in zip(case.oracle.persons, facts_as_lists(case, facts), strict=True):
        assert len(set(known)) == 2
        assert all(value in person["sensitive"][name] for name, value in known)

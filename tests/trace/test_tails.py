"""Tails against enumeration, convolution, closed forms and counting; never below the truth."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from veilmark.errors import OptionError
from veilmark.mark.code import Code
from veilmark.trace.scores import observe
from veilmark.trace.tails import Null, decoy_tail

UP = 1 + 1e-14  # the oracles round, too


def convolved(steps, p):
    """P(sum = value) for values from the smallest, term by term: sums of positive numbers keep every digit."""
    mass = np.ones(1)
    for step, chance in zip(steps.tolist(), p.tolist(), strict=True):
        low, high = (1 - chance, chance) if step > 0 else (chance, 1 - chance)
        rest = np.zeros(abs(step))
        mass = np.append(mass * low, rest) + np.append(rest, mass * high) if step else mass
    return mass


@st.composite
def terms(draw):
    length = draw(st.integers(0, 9))
    steps = draw(st.lists(st.integers(-30, 30), min_size=length, max_size=length))
    p = draw(st.lists(st.sampled_from([0.0, 0.002, 0.2, 0.5, 0.75, 0.999, 1.0]), min_size=length, max_size=length))
    return np.array(steps, dtype=np.int64), np.array(p)


@given(terms())
def test_tail_equals_enumeration(given_terms):
    steps, p = given_terms
    rows = np.array(list(itertools.product([0, 1], repeat=len(steps))), dtype=np.int64).reshape(2 ** len(steps), -1)
    chance = np.where(rows == 1, p, 1 - p).prod(axis=1)
    sums = rows @ steps
    null = Null.of(steps, p)
    at = np.unique(sums[chance > 0])
    truth = np.array([chance[sums >= s].sum() for s in at])
    tail, exact = null.tail(at)
    assert exact
    assert (tail * UP >= truth).all()
    assert (tail <= truth * (1 + 2e-9) + 3e-10 * null.chernoff(at)).all()
    assert (null.chernoff(at) >= tail).all()
    assert null.mean == pytest.approx((sums * chance).sum(), abs=1e-9)
    assert null.deviation**2 == pytest.approx((sums**2 * chance).sum() - null.mean**2, abs=1e-7)


@pytest.mark.parametrize("length", [30, 400])
def test_far_tails_of_a_binomial(length):
    null = Null.of(np.full(length, 3), np.full(length, 0.2))
    hits = np.arange(length + 1)
    truth = stats.binom.sf(hits - 1, length, 0.2)
    seen = truth > 1e-280
    tail, _ = null.tail(3 * hits)
    assert tail[seen] == pytest.approx(truth[seen], rel=1e-8)
    assert (tail[seen] * (1 + 1e-11) >= truth[seen]).all()
    assert (null.chernoff(3 * hits) >= tail * (1 - 1e-9)).all()


def test_tails_of_mixed_terms_far_out():
    random = np.random.default_rng(3)
    steps, p = random.integers(-12, 25, 150), random.choice([0.05, 0.2, 0.5, 0.8, 0.95], 150)
    truth = np.cumsum(convolved(steps, p)[::-1])[::-1]
    values = np.arange(len(truth)) + np.minimum(steps, 0).sum()
    truth, values = truth[::40], values[::40]
    tail, exact = Null.of(steps, p).tail(values)
    seen = truth > 1e-290
    assert exact
    assert tail[seen] == pytest.approx(truth[seen], rel=1e-8)
    assert (tail[seen] * (1 + 1e-12) >= truth[seen]).all()


def test_tail_by_drawing():
    random = np.random.default_rng(5)
    steps, p = random.integers(-9, 20, 300), random.uniform(0.02, 0.98, 300)
    sums = (random.random((40_000, 300)) < p).astype(float) @ steps
    null = Null.of(steps, p)
    at = np.quantile(sums, [0.1, 0.5, 0.9, 0.99, 0.999]).astype(np.int64)
    seen = (sums[:, None] >= at).mean(axis=0)
    assert null.tail(at)[0] == pytest.approx(seen, abs=4 * 0.5 / 200)


def test_tail_falls_back_on_the_bound_where_it_would_take_long(monkeypatch):
    steps, p = np.arange(1, 40), np.linspace(0.1, 0.9, 39)
    null = Null.of(steps, p)
    exact, sure = null.tail(np.array([500, 600]))
    monkeypatch.setattr("veilmark.trace.tails._WORK", 100)
    bound, bounded = null.tail(np.array([500, 600]))
    assert sure
    assert not bounded
    assert (bound > exact).all()
    assert bound == pytest.approx(null.chernoff(np.array([500, 600])))


def counted(hits, drawn, marked, pool):
    ways = sum(math.comb(marked, k) * math.comb(pool - marked, drawn - k) for k in range(hits, min(drawn, marked) + 1))
    return Fraction(ways, math.comb(pool, drawn))


@given(st.data())
def test_decoy_tail_equals_counting(data):
    pool = data.draw(st.integers(0, 60))
    drawn, marked, hits = (data.draw(st.integers(0, pool)) for _ in range(3))
    truth = counted(hits, drawn, marked, pool)
    tail = decoy_tail(hits, drawn, marked, pool)
    assert Fraction(tail) >= truth
    assert tail == pytest.approx(float(truth), rel=1e-8)


def test_decoy_tail_of_large_pools():
    assert decoy_tail(6, 36, 12, 60_000) == pytest.approx(float(counted(6, 36, 12, 60_000)), rel=1e-8)
    assert decoy_tail(3, 5_000, 60, 13_000_000) == pytest.approx(float(counted(3, 60, 5_000, 13_000_000)), rel=1e-8)
    assert decoy_tail(700, 2_000, 900_000, 1_300_000) == 1.0
    assert decoy_tail(0, 3, 0, 40) == 1.0
    assert decoy_tail(4, 3, 10, 40) == 0.0


def test_decoy_tail_says_what_does_not_fit():
    with pytest.raises(OptionError, match="pool of 3"):
        decoy_tail(1, 4, 1, 3)


@given(st.lists(st.integers(-1, 3), max_size=8), st.integers(0, 2**31))
def test_classes_that_look_alike_are_one(groups, seed):
    random = np.random.default_rng(seed)
    names = {g: i for i, g in enumerate(sorted({g for g in groups if g >= 0}))}
    group = np.array([names.get(g, -1) for g in groups], dtype=np.int64)
    p, bits = random.uniform(0.1, 0.9, len(group)), random.random((4, len(group))) < 0.3
    code, merged = observe(Code("nuida", 3, p), bits, group)
    assert code.length == len(names)
    for g in range(len(names)):
        assert code.p[g] == pytest.approx(1 - np.prod(1 - p[group == g]))
        assert (merged[:, g] == bits[:, group == g].any(axis=1)).all()

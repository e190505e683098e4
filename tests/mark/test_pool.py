"""The pool of decoys: how large it is, which classes look as usual, what is given up, and that decoys then blend in."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mark.test_discover import some_linked
from mark.test_plan import KEY, NAMES, wide
from strength import examples
from veilmark.mark.code import stream
from veilmark.mark.enough import enough_decoys, pool_size
from veilmark.mark.marking import Marking
from veilmark.mark.plan import plan_marks
from veilmark.mark.pool import (
    GIVEN_UP,
    GIVEN_UP_AT_MOST,
    LEFT,
    UNUSUAL,
    blending,
    candidate_pool,
    expected_sizes,
    given_up,
    looking_usual,
    partners,
    riskiest,
    sharing_labels,
    sizes_like,
    wanted_pool,
)
from veilmark.mark.telling import GOAL, told_apart
from veilmark.trace.tails import smallest_probability

SHAPE, LARGE = (12, 2, 9), (60, 2, 20)


def made_up(seed=0, persons=6_000, shape=SHAPE, sampled=0.1, k=5):
    """A release of a sample of a population: classes that are too small are suppressed."""
    rng = np.random.default_rng(seed)
    chances = [rng.dirichlet(np.full(n, 3.0)) for n in shape]
    cells = chances[0][:, None, None] * chances[1][:, None] * chances[2] * rng.gamma(5, 1, shape)
    population = rng.multinomial(int(persons / sampled), (cells / cells.sum()).ravel())
    members = rng.binomial(population, sampled)
    codes = np.array(np.unravel_index(np.arange(len(population)), shape), dtype=np.int32)
    linked = some_linked(np.where(members >= k, members, 0), population, None, codes)
    return replace(linked, suppressed=np.where(members < k, members, 0))


@given(st.integers(1, 60), st.integers(1, 8), st.sampled_from([1e-2, 1e-3, 1e-6]))
def test_a_pool_is_no_larger_than_claims_need(recipients, decoys, limit):
    size = pool_size(recipients, decoys, limit)
    assert 1.5 * recipients * decoys <= size <= max(10 * recipients * decoys, math.ceil(1.5 * recipients * decoys))
    if size > math.ceil(1.5 * recipients * decoys):
        assert smallest_probability(recipients, decoys, size - 1) > limit


@pytest.mark.parametrize(("recipients", "limit"), [(2, 1e-6), (5, 1e-6), (30, 1e-6), (100, 1e-6), (5, 1e-3)])
def test_enough_decoys_let_claims_name_a_recipient(recipients, limit):
    decoys = enough_decoys(recipients, limit)
    size = pool_size(recipients, decoys, limit)
    assert decoys >= 3
    assert smallest_probability(recipients, decoys, size) <= limit
    others = {d: pool_size(recipients, d, limit) for d in range(3, 21)}
    assert all(n >= size or smallest_probability(recipients, d, n) > limit for d, n in others.items())


def test_what_is_asked_for_where_nothing_is():
    names = tuple("abcde")
    plain = Marking().of_copies(names, 5)
    assert (plain.collusion, plain.covers, plain.risk, plain.decoys) == (2, 0, None, enough_decoys(5, 1e-6))
    assert Marking(covers=4).of_copies(names, 5).collusion is None
    assert Marking(decoys=2, covers=0).of_copies(names, 5).collusion is None
    assert Marking().of_copies(("ada",), 5).collusion == 1


@settings(max_examples=examples(25))
@given(st.integers(0, 1 << 20))
def test_classes_look_as_usual_by_counting(seed):
    linked = made_up(seed, 800)
    released = [j for j in range(len(linked)) if linked.published[j]]
    usual = looking_usual(linked)

    def elsewhere(j, columns):
        alike = np.all([linked.codes[c] == linked.codes[c, j] for c in columns], axis=0)
        return int(linked.published[alike].sum() - linked.published[j])

    expected = expected_sizes(linked)
    total = linked.published.sum()
    for j in range(0, len(linked), 7):
        by_label = [
            sum(int(linked.published[i]) for i in released if code[i] == code[j]) / total for code in linked.codes
        ]
        if all(by_label):
            assert expected[j] == pytest.approx(math.log(total) + sum(map(math.log, by_label)))
    sets = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    least = {s: np.quantile([elsewhere(j, s) for j in released], UNUSUAL) for s in sets}
    least_expected = np.quantile(expected[released], UNUSUAL)
    for j in range(0, len(linked), 7):
        fits = expected[j] >= least_expected and all(elsewhere(j, s) >= least[s] for s in sets)
        assert usual[j] == (fits and all(elsewhere(j, s) > 0 for s in sets[:3]))


@settings(max_examples=examples(40))
@given(st.integers(0, 1 << 20), st.integers(0, 400), st.integers(1, 4))
def test_the_riskiest_classes_make_room_for_decoys_that_attract(seed, allowance, decoys):
    """By trying every number of links up to which classes could be left out."""
    linked = replace(made_up(seed, 1_500))
    linked = replace(linked, outside=linked.population - linked.published - linked.suppressed)
    marking = wide(("ada", "bob"), decoys=decoys)
    links = sorted({int(n) for n, of in zip(linked.population, linked.published, strict=True) if of})
    tried = []
    for least in links:
        gone = np.flatnonzero((linked.published > 0) & (linked.population < least))
        if linked.published[gone].sum() <= allowance:
            tried.append((len(candidate_pool(linked.without(gone, guess=True), marking)), gone))
    wanted = wanted_pool(marking)
    enough = [gone for size, gone in tried if size >= wanted]
    largest = max((size for size, _ in tried), default=0)
    best = enough[0] if enough else next((gone for size, gone in tried if size == largest > 0), np.empty(0))
    assert sorted(riskiest(linked, marking, allowance, wanted)) == sorted(best)


@settings(max_examples=examples(25))
@given(st.integers(0, 1 << 20), st.booleans())
def test_what_is_given_up_is_bounded_and_can_hold_decoys(seed, known):
    linked = made_up(seed)
    marking = Marking().of_copies(NAMES, 5)
    chance = np.random.default_rng(seed).random(int((linked.published > 0).sum()))
    chosen = given_up(linked, marking, 0, chance, sharing_labels(linked) & known)
    if not known:
        assert not len(chosen)
        return
    assert (linked.published[chosen] > 0).all()
    assert linked.published[chosen].sum() <= GIVEN_UP_AT_MOST * linked.published.sum()
    if len(chosen) > marking.decoys * len(NAMES):
        assert linked.published[chosen].sum() <= GIVEN_UP * linked.published.sum()
    assert len(set(chosen)) == len(chosen) <= wanted_pool(marking)
    outside = linked.population - linked.published
    assert (outside[chosen] >= linked.published[chosen]).all()


def blended(seed):
    """A release as it is planned where nothing is asked for, its decoys drawn."""
    linked, random = made_up(seed, 30_000, LARGE), np.random.default_rng(seed)
    marking = Marking(decoys=5, covers=2).of_copies(NAMES, 5)
    chance = random.random(int((linked.published > 0).sum()))
    chosen = given_up(linked, marking, 0, chance, sharing_labels(linked))
    given = np.isin(np.arange(len(linked)), chosen)
    linked = linked.without(chosen)
    outside = np.where(linked.published > 0, 0, linked.population - linked.suppressed)
    linked = replace(linked, given_up=given, outside=outside)
    linked = replace(linked, allowed=blending(linked, marking))
    return plan_marks(linked, marking, random.bytes(32))


def test_decoys_blend_in_by_labels_and_sizes():
    """20 decoys among some 1,000 classes, with 24 keys: the mean of the best AUC of each feature stays near a guess, which
    with so few is about 0.6: the largest classes are not given up."""
    found = [told_apart(blended(seed), None, np.empty(0, dtype=np.int64)) for seed in range(24)]
    for name in ("size", "rare", "label", "pair"):
        assert np.mean([of.by[name].auc for of in found]) < 0.66
    assert np.mean([of.classifiers["logistic"].auc for of in found]) < 0.66
    assert np.mean([of.best.auc for of in found]) < GOAL


def test_decoys_that_attract_are_told():
    linked = made_up(3, 30_000, LARGE)
    linked = replace(linked, outside=np.where(linked.published > 0, 0, linked.population - linked.suppressed))
    marks = plan_marks(linked, wide(decoys=3, risk=(0.5, 50.0)), KEY)
    assert told_apart(marks, None, np.empty(0, dtype=np.int64)).best.auc > 0.85


def test_no_decoy_has_a_label_that_the_release_lacks():
    for seed in range(20):
        marks = blended(seed)
        linked, released = marks.linked, marks.linked.published > 0
        for code in linked.codes:
            assert np.isin(code[np.concatenate(marks.decoys)], code[released]).all()


def test_what_is_given_up_has_rare_labels_too_but_none_that_few_classes_left_have():
    rare = 0
    for seed in range(20):
        linked = made_up(seed, 30_000, LARGE)
        marking = Marking(decoys=4, covers=2).of_copies(NAMES, 5)
        chance = np.random.default_rng(seed).random(int((linked.published > 0).sum()))
        chosen = given_up(linked, marking, 0, chance, sharing_labels(linked))
        rare += int((~looking_usual(linked)[chosen]).sum())
        left = np.setdiff1d(np.flatnonzero(linked.published > 0), chosen)
        for code in linked.codes:
            classes = Counter(code[left].tolist())
            assert all(classes[label] >= LEFT for label in code[chosen].tolist())
    assert rare > 0


def test_sizes_are_those_of_classes_whose_labels_are_as_common():
    linked = made_up(1, 30_000, LARGE)
    released = np.flatnonzero(linked.published > 0)
    expected = expected_sizes(linked)
    draw = stream(KEY, "sizes", len(released), "<u8")
    sizes = sizes_like(linked, released, np.full(len(released), 1 << 40), draw)
    assert np.corrcoef(np.log(sizes), expected[released])[0, 1] > 0.7
    assert set(sizes) <= set(linked.published[released])
    assert abs(np.log(sizes).mean() - np.log(linked.published[released]).mean()) < 0.1
    few = sizes_like(linked, released, np.full(len(released), 7), draw)
    assert few.max() <= 7
    assert min(Counter(few)) == linked.published[released].min()


def test_classes_are_given_up_in_pairs_that_take_each_others_values():
    for seed in range(8):
        linked = made_up(seed, 30_000, LARGE)
        marking = Marking(decoys=4, covers=2).of_copies(NAMES, 5)
        chance = np.random.default_rng(seed).random(int((linked.published > 0).sum()))
        chosen = given_up(linked, marking, 0, chance, sharing_labels(linked))
        partner = partners(linked, chosen)
        assert len(chosen) % 2 == 0
        assert (partner[partner[chosen]] == chosen).all()
        assert (partner[chosen] != chosen).all()
        outside = linked.population - linked.published
        assert (linked.published[partner[chosen]] <= outside[chosen]).all()
        others = np.setdiff1d(chosen, chosen[:2])
        nearest = linked.unlike(int(chosen[0]), others).min()
        assert linked.unlike(int(chosen[0]), chosen[1:2])[0] <= nearest + 1


@settings(max_examples=examples(25))
@given(st.integers(0, 1 << 20))
def test_decoys_that_attract_have_labels_of_the_release_where_enough_do(seed):
    linked = made_up(seed, 800)
    pool = candidate_pool(linked, wide(decoys=1, risk=(0.1, 100.0)))
    known = np.all([np.isin(code, code[linked.published > 0]) for code in linked.codes], axis=0)
    assert known[pool].all() or known[pool].sum() < wanted_pool(wide(decoys=1))

"""Population uniques: formulas by hand, fits against brute force, and estimates against populations made to measure."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.privacy.population import (
    Uniques,
    _one_of,
    fit_pitman,
    pitman,
    population_uniques,
    shifted_negative_binomial,
    zayatz,
)

pytestmark = pytest.mark.filterwarnings("error")

BIG = 300_000_000


def histogram(size):
    return np.unique(np.asarray(size), return_counts=True)


def draw(population, fraction, rng):
    """The class sizes of a simple random sample, and the population's size and share of uniques."""
    everyone = int(population.sum())
    seen = rng.multivariate_hypergeometric(population, round(fraction * everyone), method="marginals")
    return seen[seen > 0], everyone, int((population == 1).sum()) / everyone


# --- by hand -----------------------------------------------------------------------------------------------


def test_zayatz_by_hand():
    # 4 of 8 are sampled. A pair sends just one of its two with 2·C(6,3)/C(8,4) = 4/7, a unique itself with 1/2.
    # So 2·1/2 of 2·1/2 + 4/7 expected sample uniques are population uniques: 7/11 of 2, doubled, of 8.
    assert zayatz(*histogram([1, 1, 2]), 8) == pytest.approx(2 * 7 / 11 * 2 / 8)


@pytest.mark.parametrize(("sample", "population"), [(4, 8), (1, 9), (30, 60), (59, 60)])
def test_one_of_a_class(sample, population):
    sizes = np.arange(1, sample + 1)
    expected = [n * math.comb(population - n, sample - 1) / math.comb(population, sample) for n in range(1, sample + 1)]
    assert _one_of(sizes, sample, population).tolist() == pytest.approx(expected, rel=1e-9)


def test_ewens_by_hand():
    # 1 + θ/(θ+1) + θ/(θ+2) = 2 classes expected of 3 records gives θ = √2; α rises no further: 1/θ < 1.
    alpha, theta = fit_pitman(*histogram([1, 2]))
    assert (alpha, theta) == (0.0, pytest.approx(math.sqrt(2)))
    # One of N is alone if none of the other N - 1 joins it: θ/(θ+N-1).
    assert pitman(*histogram([1, 2]), 10) == pytest.approx(math.sqrt(2) / (math.sqrt(2) + 9))


def test_pitman_is_a_product_over_those_who_do_not_join():
    sizes, counts = histogram([1] * 40 + [2] * 9 + [3] * 4 + [30])
    alpha, theta = fit_pitman(sizes, counts)
    assert 0 < alpha < 1
    alone = math.prod(1 - (1 - alpha) / (theta + i) for i in range(1, 1000))
    assert pitman(sizes, counts, 1000) == pytest.approx(alone)


@pytest.mark.parametrize(
    ("shape", "p", "kept"), [(0.5, 0.2, 0.1), (3.0, 0.4, 0.02), (0.05, 0.001, 0.3), (20, 0.9, 0.9)]
)
def test_snb_gives_back_the_model_it_is_given(shape, p, kept):
    """Sample classes and uniques exactly as expected (but for rounding) lead back to p^shape of the classes."""
    classes = 10**12
    seen, alone = expected_in_sample(shape, p, kept)
    population = round(classes * (1 + shape * (1 - p) / p))
    sample, seen, alone = round(kept * population), round(classes * seen), round(classes * alone)
    pairs = seen - alone - 1
    sizes, counts = np.array([1, 2, sample - alone - 2 * pairs]), np.array([alone, pairs, 1])
    uniques = shifted_negative_binomial(sizes, counts, population)
    assert uniques == pytest.approx(classes * p**shape / population, rel=1e-4)


def expected_in_sample(shape, p, kept):
    """Chances that a class is in the sample at all, and with one record, summed over its size in the population."""
    chance, seen, alone = p**shape, 0.0, 0.0
    for less_one in range(50_000):
        size = less_one + 1
        seen += chance * (1 - (1 - kept) ** size)
        alone += chance * size * kept * (1 - kept) ** less_one
        chance *= (shape + less_one) / size * (1 - p)
    return seen, alone


# --- the fit of Pitman's formula ---------------------------------------------------------------------------


def log_likelihood(alpha, theta, sizes, counts):
    """Of Pitman's sampling formula, term by term."""
    new = np.log(theta + alpha * np.arange(1, counts.sum())).sum()
    every = np.log(theta + np.arange(1, (sizes * counts).sum())).sum()
    joined = sum(c * np.log(np.arange(1, n) - alpha).sum() for n, c in zip(sizes, counts, strict=True))
    return new - every + joined


@pytest.mark.parametrize("seed", range(12))
def test_no_point_of_a_grid_is_likelier(seed):
    rng = np.random.default_rng(seed)
    sizes, counts = histogram([1, 2, *(rng.zipf(1.3 + seed % 3, 40) % 500 + 1), *(1 + rng.poisson(seed % 4, 20))])
    best = log_likelihood(*fit_pitman(sizes, counts), sizes, counts)
    for alpha in (1e-9, *np.linspace(0.02, 0.98, 17)):
        for beyond in np.geomspace(1e-3, 1e5, 25):
            assert log_likelihood(alpha, beyond - alpha, sizes, counts) <= best + 1e-9


def test_theta_may_be_negative():
    """One class that has nearly all: the room between -α and 0 is needed."""
    alpha, theta = fit_pitman(*histogram([1] * 12 + [2, 2, 5000]))
    assert -alpha < theta < 0


# --- populations made to measure ---------------------------------------------------------------------------


def restaurant(people, alpha, theta, rng):
    """Class sizes by the Chinese restaurant process, which Pitman's formula describes."""
    seat, sizes = [], []
    draws = iter(rng.random(5 * people))
    for i in range(people):
        table = len(sizes)
        if i and next(draws) * (theta + i) >= theta + alpha * len(sizes):
            table = seat[int(next(draws) * i)]
            while next(draws) * sizes[table] >= sizes[table] - alpha:
                table = seat[int(next(draws) * i)]
        else:
            sizes.append(0)
        sizes[table] += 1
        seat.append(table)
    return np.array(sizes)


@pytest.mark.parametrize(("alpha", "theta", "fraction"), [(0.5, 100, 0.1), (0.8, 10, 0.1), (0.2, 2000, 0.3)])
def test_pitman_on_a_population_of_its_kind(alpha, theta, fraction):
    rng = np.random.default_rng(5)
    population = restaurant(60_000, alpha, theta, rng)
    sample, everyone, truth = draw(population, fraction, rng)
    assert population_uniques(sample, everyone).pitman == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize(("shape", "p", "fraction"), [(0.5, 0.2, 0.2), (3.0, 0.4, 0.3), (0.1, 0.01, 0.1)])
def test_snb_on_a_population_of_its_kind(shape, p, fraction):
    rng = np.random.default_rng(6)
    sample, everyone, truth = draw(1 + rng.negative_binomial(shape, p, 60_000), fraction, rng)
    assert population_uniques(sample, everyone).snb == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize(("fraction", "within"), [(0.5, 0.1), (0.8, 0.03)])
def test_zayatz_on_a_large_sample(fraction, within):
    rng = np.random.default_rng(7)
    sample, everyone, truth = draw(np.minimum(rng.zipf(1.8, 60_000), 1000), fraction, rng)
    assert population_uniques(sample, everyone).zayatz == pytest.approx(truth, rel=within)


def test_zayatz_overestimates_from_a_small_sample():
    """Its known failing, and why its docstring warns: the sample's classes are smaller than the population's."""
    rng = np.random.default_rng(8)
    sample, everyone, truth = draw(rng.geometric(0.2, 40_000), 0.2, rng)
    assert population_uniques(sample, everyone).zayatz > 2 * truth


# --- edges -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("population", [7, 1000, BIG])
def test_no_uniques_hint_at_none(population):
    assert population_uniques(np.array([2, 2, 3]), population) == Uniques(0.0, 0.0, 0.0)


@pytest.mark.parametrize("size", [[1], [1] * 5, [1] * 1000])
@pytest.mark.parametrize("population", [1000, BIG])
def test_nothing_but_uniques_hints_at_nothing_else(size, population):
    assert population_uniques(np.array(size), population) == Uniques(1.0, 1.0, 1.0)


@pytest.mark.parametrize("population", [4, 3, 0])
def test_a_sample_that_is_the_population_is_counted(population):
    assert population_uniques(np.array([1, 1, 2]), population) == Uniques(0.5, 0.5, 0.5)


def test_one_class():
    assert population_uniques(np.array([100]), 1000) == Uniques(0.0, 0.0, 0.0)


def test_no_class():
    assert population_uniques(np.empty(0, dtype=np.int64), 1000) == Uniques(0.0, 0.0, 0.0)


def test_as_a_dict():
    assert Uniques(0.1, None, 0.2).to_dict() == {"zayatz": 0.1, "pitman": None, "snb": 0.2}


def test_snb_does_not_fit_classes_more_alike_than_poissons():
    """1,000 classes of 5 in a tenth of the population, and one unique: chance alone would leave some thirty."""
    sizes, counts = histogram([5] * 1000 + [1])
    assert shifted_negative_binomial(sizes, counts, 50_000) is None
    assert population_uniques(np.repeat(sizes, counts), 50_000).snb is None


def test_snb_takes_poissons_classes_as_they_come():
    """By chance a sample has a few uniques less than expected; that is no misfit."""
    rng = np.random.default_rng(9)
    for _ in range(10):
        sample, everyone, truth = draw(1 + rng.poisson(2, 20_000), 0.3, rng)
        assert population_uniques(sample, everyone).snb == pytest.approx(truth, rel=0.15)


counts_by_size = st.dictionaries(
    st.one_of(st.integers(1, 6), st.integers(1, 10**7)), st.one_of(st.integers(1, 5), st.integers(1, 10**6)), max_size=6
)


@settings(max_examples=examples(300), deadline=None)
@given(counts_by_size, st.integers(0, 10**10))
def test_always_a_share(by_size, more):
    sizes = np.array(sorted(by_size), dtype=np.int64)
    counts = np.array([by_size[n] for n in sizes.tolist()], dtype=np.int64)
    population = int((sizes * counts).sum()) + more
    if len(sizes) > 1 and sizes[0] == 1 and more:
        assert 0 <= zayatz(sizes, counts, population) <= 1 + 1e-6
        assert 0 <= pitman(sizes, counts, population) <= 1 + 1e-6
        uniques = shifted_negative_binomial(sizes, counts, population)
        assert uniques is None or 0 <= uniques <= 1
    small = population_uniques(np.repeat(sizes, np.minimum(counts, 50)), population)
    assert all(share is None or 0 <= share <= 1 for share in small.to_dict().values())


def test_many_classes_take_a_moment_only():
    size = np.random.default_rng(1).zipf(1.7, 787_000)
    size = size[size < 10**6]
    population_uniques(size[:1000], BIG)
    began = time.perf_counter()
    found = population_uniques(size, BIG)
    assert time.perf_counter() - began < 1
    assert None not in found.to_dict().values()

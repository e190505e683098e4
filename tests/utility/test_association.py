"""Measures of association against their definitions, SciPy and what they must obey."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from veilmark.utility.association import anova_f, contingency, correlation_ratio, cramers_v, pearson

CODES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=40)
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 50)), min_size=1, max_size=40)


def plain_v(pairs, corrected):
    """By the definition, cell by cell."""
    n = len(pairs)
    rows, columns = sorted({a for a, _ in pairs}), sorted({b for _, b in pairs})
    r, c = len(rows), len(columns)
    if min(r, c) < 2:
        return 0.0
    chi2 = 0.0
    for a in rows:
        for b in columns:
            expected = sum(x == a for x, _ in pairs) * sum(y == b for _, y in pairs) / n
            chi2 += (sum(p == (a, b) for p in pairs) - expected) ** 2 / expected
    if not corrected:
        return math.sqrt(chi2 / n / (min(r, c) - 1))
    phi2 = max(0.0, chi2 / n - (r - 1) * (c - 1) / (n - 1))
    reach = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    return math.sqrt(phi2 / reach) if reach > 1e-12 else 0.0


@given(CODES, st.booleans())
def test_cramers_v_is_its_definition(pairs, corrected):
    a, b = np.array(pairs).T
    got = cramers_v(contingency(a, b), corrected)
    assert 0 <= got <= 1
    assert got == pytest.approx(plain_v(pairs, corrected), abs=1e-6)


def test_cramers_v_against_scipy_and_at_its_ends():
    table = np.array([[12, 5, 3], [4, 9, 20]])
    assert cramers_v(table, corrected=False) == pytest.approx(stats.contingency.association(table, method="cramer"))
    assert cramers_v(np.diag([5, 7, 9])) == pytest.approx(1)
    assert cramers_v(np.full((3, 3), 10)) == 0
    assert cramers_v(np.zeros((2, 2))) == cramers_v(np.array([[5, 3]])) == 0
    # Every record a value of its own decides everything, which says nothing.
    alone = contingency(np.arange(30), np.arange(30) % 2)
    assert cramers_v(alone, corrected=False) == pytest.approx(1)
    assert cramers_v(alone) == 0


def test_chance_is_taken_off():
    random = np.random.default_rng(1)
    draws = [(random.integers(0, 8, 60), random.integers(0, 8, 60)) for _ in range(200)]
    plain = np.mean([cramers_v(contingency(a, b), corrected=False) for a, b in draws])
    corrected = np.mean([cramers_v(contingency(a, b)) for a, b in draws])
    assert plain > 0.3 > 0.1 > corrected
    ratios = [correlation_ratio(a, b.astype(float)) for a, b in draws]
    assert np.mean([correlation_ratio(a, b.astype(float), corrected=False) for a, b in draws]) > 2 * np.mean(ratios)


@given(PAIRS)
def test_variance_is_taken_apart_as_scipy_does(pairs):
    groups, numbers = np.array(pairs).T
    numbers = numbers.astype(float)
    eta = correlation_ratio(groups, numbers, corrected=False)
    assert 0 <= correlation_ratio(groups, numbers) <= eta + 1e-12 <= 1 + 1e-9
    sides = [numbers[groups == g] for g in np.unique(groups)]
    f = anova_f(groups, numbers)
    if len(sides) < 2 or len(numbers) <= len(sides) or np.ptp(numbers) == 0:
        assert math.isnan(f)
        return
    if all(np.ptp(side) == 0 for side in sides):
        assert f == math.inf
        assert eta == pytest.approx(1)
        return
    assert f == pytest.approx(stats.f_oneway(*sides).statistic)
    between, n, g = (len(sides) - 1) * f, len(numbers), len(sides)
    assert eta == pytest.approx(math.sqrt(between / (between + n - g)))
    epsilon2 = max(0.0, (g - 1) * (f - 1) / (between + n - g))
    assert correlation_ratio(groups, numbers) == pytest.approx(math.sqrt(epsilon2), abs=1e-6)


@given(PAIRS)
def test_pearson_is_numpys(pairs):
    x, y = np.array(pairs, dtype=float).T
    if np.ptp(x) and np.ptp(y):
        assert pearson(x, y) == pytest.approx(abs(np.corrcoef(x, y)[0, 1]))
    else:
        assert pearson(x, y) == 0


@given(PAIRS, st.lists(st.integers(1, 3), min_size=40, max_size=40))
def test_counted_rows_are_repeated_rows_and_missing_ones_are_left_out(pairs, times):
    groups, numbers = np.array(pairs).T
    numbers, times = numbers.astype(float), np.array(times[: len(pairs)])
    more = np.append(groups, 0), np.append(numbers, np.nan), np.append(times, 5)
    repeated = np.repeat(groups, times), np.repeat(numbers, times)
    assert correlation_ratio(*more) == pytest.approx(correlation_ratio(*repeated), abs=1e-6)
    assert anova_f(*more) == pytest.approx(anova_f(*repeated), nan_ok=True)
    assert pearson(more[0].astype(float), *more[1:]) == pytest.approx(pearson(repeated[0].astype(float), repeated[1]))

"""Re-identification risk: worked by hand, against the slow oracle, and Benedetti and Franconi's in many digits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from veilmark.privacy.risk import Risk, journalist, marketer, prosecutor, sample_risk, summarize

pytestmark = pytest.mark.filterwarnings("error")

SIZE = np.array([1, 2, 5])
NONE = np.empty(0, dtype=np.int64)


def test_prosecutor():
    # 8 persons: one at 1, two at 1/2, five at 1/5, which is not over 1/5.
    assert prosecutor(SIZE) == Risk(max=1.0, mean=3 / 8, over=3 / 8, threshold=0.2)
    assert prosecutor(SIZE, 0.6).over == 1 / 8


def test_journalist():
    # The population has 10 of the first class, 5 of the last, and knows only 1 of the 2 who are in the second.
    risk = journalist(SIZE, np.array([10, 1, 5]))
    assert (risk.max, risk.mean, risk.over) == (0.5, pytest.approx((0.1 + 2 * 0.5 + 5 * 0.2) / 8), 2 / 8)


def test_marketer():
    assert marketer(SIZE) == 3 / 8
    assert marketer(SIZE, np.array([10, 1, 5])) == pytest.approx((0.1 + 1 + 1) / 8)


def test_risk_as_a_dict():
    assert prosecutor(SIZE).to_dict() == {"max": 1.0, "mean": 0.375, "over": 0.375, "threshold": 0.2}


def test_no_classes():
    assert prosecutor(NONE) == journalist(NONE, NONE) == Risk(0.0, 0.0, 0.0, 0.2)
    assert marketer(NONE) == 0.0
    assert sample_risk(NONE, 0.5).tolist() == []
    assert summarize(NONE / 1, NONE, 0.2).max == 0.0


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30)), min_size=1), st.sampled_from([0.1, 0.2, 0.5]))
def test_all_as_the_oracle_has_them(pairs, threshold):
    size, linked = (np.array(column) for column in zip(*pairs, strict=True))
    sizes = {(str(i),): int(n) for i, n in enumerate(size)}
    links = {(str(i),): int(n) for i, n in enumerate(linked)}

    def numbers(risk):
        return risk.max, risk.mean, risk.over

    assert numbers(prosecutor(size, threshold)) == pytest.approx(oracle.prosecutor(sizes, threshold))
    assert numbers(journalist(size, linked, threshold)) == pytest.approx(oracle.journalist(sizes, links, threshold))
    assert marketer(size) == pytest.approx(oracle.marketer(sizes, {}))
    assert marketer(size, linked) == pytest.approx(oracle.marketer(sizes, links))


def test_sample_risk_by_hand():
    # p = 1/2: ln 2; 1 - ln 2; and 1/2 over 3 - 1/2.
    risk = sample_risk(np.array([1, 2, 3]), 0.5)
    assert risk.tolist() == pytest.approx([np.log(2), 1 - np.log(2), 0.2])


SMALL = [10.0**-i for i in range(1, 10)]
SHARES = [*SMALL, 0.3, 0.49999, 0.5, 0.50001, 0.89, 0.9, 0.91, *(1 - s for s in SMALL), 1 - 1e-12, 1 - 2**-53, 1.0]


@pytest.mark.parametrize("f", [1, 2, 3, 4, 100, 10**6])
@pytest.mark.parametrize("p", SHARES)
def test_sample_risk_keeps_its_digits(f, p):
    """The printed formulas lose all of them near p = 1, where their terms cancel."""
    (risk,) = sample_risk(np.array([f]), p)
    assert risk == pytest.approx(oracle.benedetti_franconi(f, p), rel=1e-14)


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.9, 0.999, 1.0])
def test_sample_risk_is_the_expected_inverse_of_the_population_class(p):
    """To the last digit up to f = 2; beyond, the approximation errs by under 5 %, and less the larger the class."""
    for f, within in [(1, 1e-12), (2, 1e-12), (3, 0.05), (5, 0.02), (20, 0.002)]:
        (risk,) = sample_risk(np.array([f]), p)
        assert risk == pytest.approx(oracle.expected_inverse(f, p), rel=within)


@given(st.integers(1, 50), st.floats(1e-9, 1))
def test_sample_risk_never_exceeds_the_prosecutors(f, p):
    (risk,) = sample_risk(np.array([f]), p)
    assert 0 < risk <= 1 / f * (1 + 1e-15)


def test_each_class_has_its_own_share():
    size, share = np.array([1, 1, 2, 7]), np.array([0.1, 1.0, 0.25, 1.0])
    expected = [oracle.benedetti_franconi(int(f), p) for f, p in zip(size, share, strict=True)]
    assert sample_risk(size, share).tolist() == pytest.approx(expected)

"""Codes: the published distributions, bits that never change, lengths that grow as they should."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark.errors import OptionError
from veilmark.mark.code import (
    KINDS,
    bits,
    coalition_withstood,
    derive,
    distribution,
    make_code,
    needed_length,
    stream,
)

KEY = bytes(range(32))


@pytest.mark.parametrize(
    ("coalition", "points", "shares"),
    [
        (1, [0.5], [1]),
        (2, [0.5], [1]),
        (4, [0.21132, 0.78868], [0.5, 0.5]),
        (6, [0.11270, 0.5, 0.88730], [0.33201, 0.33598, 0.33201]),
        (8, [0.06943, 0.33001, 0.66999, 0.93057], [0.24833, 0.25167, 0.25167, 0.24833]),
    ],
)
def test_nuida_distributions_as_published(coalition, points, shares):
    found = distribution("nuida", coalition)
    assert found[0] == pytest.approx(points, abs=1e-5)
    assert found[1] == pytest.approx(shares, abs=1e-5)
    if coalition > 1:
        assert distribution("nuida", coalition - 1)[0] == pytest.approx(points if coalition > 2 else [0.5], abs=1e-5)


def test_tardos_density_within_its_cut_off():
    points, shares = distribution("tardos", 3)
    assert points.min() > 1 / 900
    assert points.max() < 1 - 1 / 900
    assert points + points[::-1] == pytest.approx(np.ones(len(points)))
    # Between a and b lies (arcsin√b - arcsin√a) / (π/2 - 2·arcsin√t) of the density.
    angle = [math.asin(math.sqrt(x)) for x in (0.1, 0.6)]
    share = (angle[1] - angle[0]) / (math.pi / 2 - 2 * math.asin(math.sqrt(1 / 900)))
    assert shares[(points > 0.1) & (points < 0.6)].sum() == pytest.approx(share, abs=1 / 64)


@given(st.sampled_from(KINDS), st.integers(1, 9), st.integers(0, 300), st.floats(0.3, 0.7))
def test_each_point_gets_its_share_of_the_classes(kind, coalition, length, share):
    code = make_code(KEY, kind, coalition, length, share)
    points, weights = distribution(kind, coalition, share)
    assert code.length == length
    assert weights.sum() == pytest.approx(1)
    assert weights @ (1 - points) == pytest.approx(share, abs=1e-6)
    counts = [np.isclose(code.p, p, atol=1e-9, rtol=0).sum() for p in points]
    assert counts == pytest.approx(weights * length, abs=1)
    assert (code.p * 2**32 == np.round(code.p * 2**32)).all()
    if length:
        assert code.withheld == pytest.approx(share, abs=1 / length + 1e-6)


def test_bits_never_change():
    """Written down once: the same key must give the same copies on every machine and version."""
    code = make_code(KEY, "nuida", 5, 1000)
    held = bits(KEY, ["ada", "bob", "Zoë"], code)
    assert hashlib.sha256((code.p * 2**32).astype("<u8").tobytes()).hexdigest()[:16] == "a4e8037905267c62"
    assert hashlib.sha256(np.packbits(held).tobytes()).hexdigest()[:16] == "ff08a0873d5f64a4"


def test_bits_depend_on_key_and_name_alone():
    code = make_code(KEY, "tardos", 3, 500)
    held = bits(KEY, ["a", "b", "c"], code)
    assert (bits(KEY, ["c", "a"], code) == held[[2, 0]]).all()
    assert (bits(derive(KEY, "other"), ["a"], code) != held[0]).any()
    assert (make_code(derive(KEY, "other"), "tardos", 3, 500).p != code.p).any()


def test_bits_are_drawn_by_p_and_independent():
    code = make_code(KEY, "nuida", 5, 400)
    held = bits(KEY, [str(i) for i in range(2000)], code).astype(float)
    spread = np.sqrt(code.p * (1 - code.p))
    assert np.abs((held.mean(axis=0) - code.p) / spread).max() * np.sqrt(2000) < 4.5
    alike = np.corrcoef(((held - code.p) / spread)[:60])
    assert np.abs(alike[np.triu_indices(60, 1)]).max() * np.sqrt(400) < 4.8


def test_streams_are_uniform():
    drawn = stream(KEY, "x", 100_000, "<u4") / 2**32
    assert np.bincount((drawn * 20).astype(int), minlength=20) == pytest.approx(np.full(20, 5000), abs=350)
    assert (stream(KEY, "x", 10, "<u4") / 2**32 == drawn[:10]).all()


@given(
    st.integers(1, 200),
    st.integers(1, 12),
    st.floats(-12, -1),
    st.floats(0.5, 0.999),
    st.sampled_from(["nuida", "tardos"]),
)
def test_length_and_coalition_are_inverse(recipients, coalition, exponent, power, kind):
    coalition = min(coalition, recipients)
    rest = (10.0**exponent, power, kind)
    length = needed_length(recipients, coalition, *rest).length
    assert coalition_withstood(length, recipients, *rest) >= coalition
    assert coalition_withstood(length - 1, recipients, *rest) < coalition
    assert needed_length(recipients + 1, coalition, *rest).length >= length
    assert needed_length(recipients, coalition, rest[0] / 10, *rest[1:]).length > length
    assert needed_length(recipients, coalition, *rest, deletions=0.3).length > length


def test_the_shorter_code_is_taken():
    for coalition in range(1, 9):
        both = [needed_length(30, coalition, kind=kind) for kind in ("nuida", "tardos")]
        assert needed_length(30, coalition) == min(both, key=lambda needed: needed.length)
    leaning = needed_length(30, 3, share_withheld=0.4)
    assert leaning.length > needed_length(30, 3).length
    assert leaning.length * 0.4 < needed_length(30, 3).length * 0.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: make_code(KEY, "tardo", 3, 10), "no code 'tardo'"),
        (lambda: make_code(KEY, "nuida", 0, 10), "at least 1"),
        (lambda: make_code(KEY, "nuida", 3, -1), "not -1"),
        (lambda: make_code(KEY, "nuida", 3, 10, 0.1), "between 0.21 and 0.79"),
        (lambda: make_code(KEY, "random", 3, 10, 1.0), "between 0.00 and 1.00"),
        (lambda: make_code(b"short", "nuida", 3, 10), "at least 16 bytes"),
        (lambda: bits(KEY, ["a", "a"], make_code(KEY, "nuida", 3, 10)), "same name"),
        (lambda: needed_length(2, 3), "1 to 2, the number"),
        (lambda: needed_length(5, 2, 0.0), "false accusation"),
        (lambda: needed_length(5, 2, power=1.0), "finding a leaker"),
        (lambda: needed_length(5, 2, kind="random"), "not known"),
        (lambda: needed_length(5, 2, share_withheld=0.1), "0.4 to 0.5"),
        (lambda: needed_length(5, 2, deletions=1.0), "leave out"),
    ],
)
def test_what_is_wrong_is_said(call, words):
    with pytest.raises(OptionError, match=words):
        call()

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierarchy.helpers import check_sound, domain, failure, levels_of, paths, spec_failure
from veilmark.hierarchy import parse_spec, resolve


def test_intervals_of_whole_numbers():
    assert paths(levels_of({"intervals": [5, 10, 20]}, 0, 4, 5, 24, 100, None)) == {
        "0": ["0-4", "0-9", "0-19", "*"],
        "4": ["0-4", "0-9", "0-19", "*"],
        "5": ["5-9", "0-9", "0-19", "*"],
        "24": ["20-24", "20-29", "20-39", "*"],
        "100": ["100-104", "100-109", "100-119", "*"],
        None: [None, None, None, "*"],
    }


def test_intervals_below_zero_are_half_open():
    assert paths(levels_of({"intervals": [5, 10]}, -11, -5, -1, 0)) == {
        "-11": ["[-15, -10)", "[-20, -10)", "*"],
        "-5": ["[-5, 0)", "[-10, 0)", "*"],
        "-1": ["[-5, 0)", "[-10, 0)", "*"],
        "0": ["0-4", "0-9", "*"],
    }


def test_intervals_of_width_one_and_an_offset():
    assert paths(levels_of({"intervals": [1, 4], "offset": 2}, 1, 2, 7)) == {
        "1": ["1", "[-2, 2)", "*"],
        "2": ["2", "2-5", "*"],
        "7": ["7", "6-9", "*"],
    }


def test_intervals_of_decimals():
    assert paths(levels_of({"intervals": [0.1, 0.3]}, 0.3, 0.29, 0.7, -0.1, 2)) == {
        "-0.1": ["[-0.1, 0)", "[-0.3, 0)", "*"],
        "0.29": ["[0.2, 0.3)", "[0, 0.3)", "*"],
        "0.3": ["[0.3, 0.4)", "[0.3, 0.6)", "*"],
        "0.7": ["[0.7, 0.8)", "[0.6, 0.9)", "*"],
        "2": ["[2, 2.1)", "[1.8, 2.1)", "*"],
    }


def test_whole_widths_of_decimal_values_are_half_open():
    assert paths(levels_of({"intervals": [5]}, "2.5", "7")) == {"2.5": ["[0, 5)", "*"], "7": ["[5, 10)", "*"]}


def test_decimal_offset():
    assert paths(levels_of({"intervals": [2.5], "offset": 0.5}, 3, 0)) == {
        "0": ["[-2, 0.5)", "*"],
        "3": ["[3, 5.5)", "*"],
    }


def test_leading_zeros_are_numbers_to_intervals_and_text_to_masks():
    assert paths(levels_of({"intervals": [10]}, "01234", "01235"))["01234"] == ["1230-1239", "*"]
    assert paths(levels_of({"mask": 2}, "01234"))["01234"] == ["0123*", "012**", "*"]


def test_float_error_does_not_move_a_value_off_its_edge():
    # 0.1 + 0.2 has seventeen digits, so the exact way is barred for all three.
    found = paths(levels_of({"intervals": [0.1]}, 0.1 + 0.2, 0.7, 0.69))
    assert [label for label, _ in found.values()] == ["[0.3, 0.4)", "[0.6, 0.7)", "[0.7, 0.8)"]


def test_large_numbers_stay_in_their_own_bin():
    assert paths(levels_of({"intervals": [10_000_000]}, 9_999_999_999))["9999999999"][0] == ("9990000000-9999999999")
    amounts = paths(levels_of({"intervals": [1]}, "12345678.99", "12345679"))
    assert amounts["12345678.99"][0] == "[12345678, 12345679)"


def test_numbers_as_yaml_text():
    spec = parse_spec({"intervals": ["5", "10.0", "0.2e2"], "offset": "1"})
    assert spec == parse_spec({"intervals": [5, 10.0, 20.0], "offset": 1})


def test_interval_values_that_are_not_numbers():
    message = failure({"intervals": [5]}, "7", "old", "young", "1e999", None)
    assert "Column 'col'" in message
    assert "not numbers" in message
    assert "'1e999', 'old', 'young'." in message
    assert 'others: "*"' in message


def test_interval_others():
    assert paths(levels_of({"intervals": [5, 10], "others": "*"}, "7", "old", None)) == {
        "7": ["5-9", "0-9", "*"],
        "old": ["*", "*", "*"],
        None: [None, None, "*"],
    }


@pytest.mark.parametrize(
    ("widths", "words"),
    [
        ([4, 6], "6 is not a multiple of 4"),
        ([0.2, 0.5], "0.5 is not a multiple of 0.2"),
        ([10, 5], "5 is not above 10"),
        ([5, 5], "5 is not above 5"),
        ([0, 5], "0 is not a width"),
        ([-5], "-5 is not a width"),
        ([], "The list is empty"),
        (["five"], "'five' is not a number"),
        ([True], "'True' is not a number"),
        ([math.inf], "'inf' is not a number"),
        ([1e-20, 1e20], "more than 15 digits"),
        (5, "valid tuple"),
    ],
)
def test_wrong_widths(widths, words):
    assert words in spec_failure({"intervals": widths})


def plain(number: Fraction) -> str:
    text = f"{Decimal(number.numerator) / Decimal(number.denominator):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def slow_interval(value: Fraction, width: Fraction, offset: Fraction, whole: bool) -> str:
    low = offset + math.floor((value - offset) / width) * width
    if whole and low >= 0:
        return plain(low) if width == 1 else f"{low}-{low + width - 1}"
    return f"[{plain(low)}, {plain(low + width)})"


decimals = st.decimals(-10_000, 10_000, places=3, allow_nan=False).map(lambda d: plain(Fraction(d)))
wholes = st.integers(-(10**12), 10**12).map(str)
factors = st.lists(st.integers(2, 7), max_size=3)
width_units = st.sampled_from(["0.001", "0.01", "0.05", "0.1", "0.3", "0.25", "1", "2.5", "3", "5", "1000"])


@given(
    st.lists(st.one_of(decimals, wholes), min_size=1, unique=True)
    | st.lists(wholes, min_size=1, unique=True)
    | st.lists(st.integers(0, 120).map(str), min_size=1, unique=True),
    width_units,
    factors,
    st.sampled_from(["0", "1", "-7", "0.5", "0.1"]),
)
def test_intervals_against_the_slow_oracle(values, unit, factors, offset):
    widths = [Fraction(unit)]
    for factor in factors:
        widths.append(widths[-1] * factor)
    column = domain(*values)
    spec = parse_spec({"intervals": [float(width) for width in widths], "offset": float(offset)})
    levels = resolve(spec, column, "col")
    whole = all(Fraction(n).denominator == 1 for n in [*values, *widths, offset])
    for value, labels in paths(levels).items():
        assert value is not None
        assert labels[:-1] == [slow_interval(Fraction(value), w, Fraction(offset), whole) for w in widths]
    check_sound(levels, column)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, unique=True), width_units, factors)
def test_intervals_of_any_floats_nest(values, unit, factors):
    widths = [Fraction(unit)]
    for factor in factors:
        widths.append(widths[-1] * factor)
    column = domain(*values)
    check_sound(resolve(parse_spec({"intervals": [float(w) for w in widths]}), column, "col"), column)

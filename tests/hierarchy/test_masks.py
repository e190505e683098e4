from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hierarchy.helpers import check_sound, domain, levels_of, paths, spec_failure
from veilmark.hierarchy import parse_spec, resolve


def test_mask_from_the_right():
    assert paths(levels_of({"mask": 5}, "13120", None)) == {
        "13120": ["1312*", "131**", "13***", "1****", "*****"],
        None: [None, None, None, None, "*****"],
    }


def test_mask_from_the_left():
    assert paths(levels_of({"mask": 3, "side": "left"}, "abc", "x")) == {
        "abc": ["*bc", "**c", "***"],
        "x": ["*", "**", "***"],
    }


def test_mask_shorter_than_a_value_gets_a_star_on_top():
    assert paths(levels_of({"mask": 2}, "13120", "7")) == {
        "13120": ["1312*", "131**", "*"],
        "7": ["*", "**", "*"],
    }


def test_mask_counts_characters_not_bytes():
    assert paths(levels_of({"mask": 3}, "Ωλ€", "né😀"))["né😀"] == ["né*", "n**", "***"]
    assert paths(levels_of({"mask": 2, "side": "left"}, "日本語"))["日本語"] == ["*本語", "**語", "*"]


def test_mask_of_numbers():
    assert paths(levels_of({"mask": 1}, 12, 17)) == {"12": ["1*", "*"], "17": ["1*", "*"]}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"mask": 0}, "greater than or equal to 1"),
        ({"mask": True}, "true is not a number"),
        ({"mask": 2.5}, "integer"),
        ({"mask": 5, "side": "top"}, "'right' or 'left'"),
        ({"mask": 5, "others": "*"}, "'others' is not an option of 'mask'"),
        ({"mask": 5, "sied": "left"}, "Did you mean 'side'?"),
    ],
)
def test_wrong_masks(spec, words):
    assert words in spec_failure(spec)


def slow_mask(value: str, hidden: int, side: str) -> str:
    kept = max(0, len(value) - hidden)
    return value[:kept] + "*" * hidden if side == "right" else "*" * hidden + value[len(value) - kept :]


texts = st.text(st.sampled_from("ab1*é€😀"), min_size=1, max_size=6)


@given(st.lists(texts, min_size=1, unique=True), st.integers(1, 7), st.sampled_from(["right", "left"]))
@example(["*", "**", "a*", "a"], 3, "right")
def test_masks_against_the_slow_oracle(values, hidden, side):
    column = domain(*values, None)
    levels = resolve(parse_spec({"mask": hidden, "side": side}), column, "col")
    expected = {v: [slow_mask(v, i, side) for i in range(1, hidden + 1)] for v in values}
    longer = max(map(len, values)) > hidden
    found = paths(levels)
    assert found.pop(None) == [None] * (levels.height - 1) + ["*" if longer else "*" * hidden]
    assert found == {v: [*labels, "*"] if longer else labels for v, labels in expected.items()}
    check_sound(levels, column)

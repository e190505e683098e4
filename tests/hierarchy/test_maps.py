from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierarchy.helpers import check_sound, domain, failure, levels_of, paths, spec_failure
from veilmark.hierarchy import parse_spec, resolve


def test_map_with_one_label_is_the_top():
    spec = {"levels": [{"Male": "Person", "Female": "Person"}]}
    assert paths(levels_of(spec, "Male", "Female", None)) == {"Female": ["*"], "Male": ["*"], None: ["*"]}


def test_maps_upon_maps():
    spec = {"levels": [{"a": "A", "b": "A", "c": "C"}, {"A": "vowel", "C": "consonant"}, {"vowel": "letter"}]}
    assert "map of level 3 lacks, from level 2, 'consonant'" in failure(spec, "a", "b", "c")
    assert paths(levels_of(spec, "a", "b")) == {"a": ["A", "vowel", "*"], "b": ["A", "vowel", "*"]}
    spec["levels"].pop()
    assert paths(levels_of(spec, "a", "c", None)) == {
        "a": ["A", "vowel", "*"],
        "c": ["C", "consonant", "*"],
        None: [None, None, "*"],
    }


def test_a_label_may_equal_another_value():
    spec = {"levels": [{"a": "b", "b": "x", "c": "c"}]}
    assert paths(levels_of(spec, "a", "b", "c")) == {"a": ["b", "*"], "b": ["x", "*"], "c": ["c", "*"]}


def test_keys_and_labels_of_maps_are_texts():
    spec = parse_spec({"levels": [{1: 10, 2: 10, 3.0: 20, 2.5: True, False: "no", None: "unknown"}]})
    texts = {"1": "10", "2": "10", "3": "20", "2.5": "true", "false": "no", "": "unknown"}
    assert spec.model_dump(exclude_none=True) == {"levels": [texts]}
    assert paths(resolve(spec, domain(1, 3), "col")) == {"1": ["10", "*"], "3": ["20", "*"]}


def test_a_map_may_name_the_missing_value():
    spec = {"levels": [{"a": "A", "": "unknown"}]}
    assert paths(levels_of(spec, "a", None)) == {"a": ["A", "*"], None: ["unknown", "*"]}


def test_map_lacks_values():
    message = failure({"levels": [{"a": "A", "b": "B"}]}, "a", "x", "y", None)
    assert "Column 'col': the map of level 1 lacks the values 'x', 'y'." in message
    assert 'others: "*"' in message


def test_map_others():
    spec = {"levels": [{"a": "A", "b": "B"}, {"A": "X", "B": "Y"}], "others": "*"}
    assert paths(levels_of(spec, "a", "z", None)) == {
        "a": ["A", "X", "*"],
        "z": ["*", "*", "*"],
        None: [None, None, "*"],
    }
    spec["levels"][1].pop("A")
    assert "map of level 2 lacks, from level 1, 'A'" in failure(spec, "a")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"levels": []}, "The list is empty"),
        ({"levels": [{}]}, "at least 1 item"),
        ({"levels": [{"a": None}]}, "at least 1 character"),
        ({"levels": [{"a": ["b"]}]}, "valid string"),
        ({"levels": [{1: "A", "1": "B"}]}, "'1' occurs twice with different labels"),
        ({"levels": [{"a": "A"}], "others": "rest"}, "'*'"),
    ],
)
def test_wrong_maps(spec, words):
    assert words in spec_failure(spec)


@given(st.data())
def test_maps_nest(data):
    labels = ["", *"abcdef"]
    maps = data.draw(st.lists(st.fixed_dictionaries({k: st.sampled_from("abcdef") for k in labels}), min_size=1))
    column = domain(*data.draw(st.lists(st.sampled_from([*"abcdef", None]), min_size=1)))
    levels = resolve(parse_spec({"levels": maps}), column, "col")
    check_sound(levels, column)
    for value, found in paths(levels).items():
        for step, label in zip(maps, found[:-1], strict=False):
            value = step[value or ""]
            assert label == value

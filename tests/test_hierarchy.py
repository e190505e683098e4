from __future__ import annotations

import csv
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from veilmark.domain import Domain
from veilmark.errors import HierarchyError, OutputError
from veilmark.hierarchy import HierarchySpec, Levels, parse_spec, resolve, write_arx

ADULT = Path(__file__).parents[2] / "shared/data/adult/hierarchies_arx"


def domain(*values: Any) -> Domain:
    return Domain.of(pa.array(values) if values else pa.array([], pa.string()))


def levels_of(spec: dict[str, Any] | None, *values: Any, folder: Path | None = None) -> Levels:
    return resolve(spec and parse_spec(spec), domain(*values), "col", folder)


def paths(levels: Levels) -> dict[str | None, list[str | None]]:
    """Value -> its labels from level 1 to the top."""
    columns = [levels.of_values(level).to_pylist() for level in range(levels.height + 1)]
    return {value: above for value, *above in map(list, zip(*columns, strict=True))}


def failure(spec: dict[str, Any], *values: Any, folder: Path | None = None) -> str:
    with pytest.raises(HierarchyError) as caught:
        levels_of(spec, *values, folder=folder)
    return str(caught.value)


def spec_failure(spec: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        parse_spec(spec)
    assert isinstance(caught.value, ValueError)
    errors = caught.value.errors()
    assert len(errors) == 1
    return errors[0]["msg"]


def check_sound(levels: Levels, domain: Domain) -> None:
    """Of every hierarchy: distinct and used labels, every value labelled, nesting, one label at the top."""
    assert levels.labels[0] is domain.text
    assert len(levels.labels[-1]) == 1
    assert set(levels.labels[-1][0].as_py()) == {"*"}
    for level in range(levels.height + 1):
        labels, codes = levels.labels[level].to_pylist(), levels.codes[level]
        assert codes.dtype == np.int32
        assert len(codes) == len(domain)
        assert len(set(labels)) == len(labels)
        assert len(domain) == 0 or set(codes.tolist()) == set(range(len(labels)))
        assert levels.leaves(level).sum() == len(domain)
        for upper in range(level, levels.height + 1):
            up = levels.up(level, upper)
            assert len(up) == len(labels)
            assert (up[codes] == levels.codes[upper]).all()


# --- no hierarchy, and the levels themselves ---------------------------------------------------------------


def test_without_a_hierarchy_there_are_value_and_star():
    levels = levels_of(None, "b", "a", None)
    assert paths(levels) == {"a": ["*"], "b": ["*"], None: ["*"]}
    assert levels.height == 1


def test_up_and_leaves():
    levels = levels_of({"mask": 2}, "11", "12", "13", "21", "3", None)
    assert levels.labels[1].to_pylist() == ["*", "1*", "2*", None]
    assert levels.leaves(1).tolist() == [1, 3, 1, 1]
    assert levels.leaves(2).tolist() == [6]
    assert levels.up(0, 1).tolist() == [0, 1, 1, 1, 2, 3]
    assert levels.up(1, 1).tolist() == [0, 1, 2, 3]
    assert levels.up(1, 2).tolist() == [0, 0, 0, 0]
    assert repr(levels) == "Levels(6 → 4 → 1 labels)"


ANY_SPEC = [
    None,
    {"intervals": [5, 10]},
    {"mask": 3},
    {"dates": ["month", "year"]},
    {"levels": [{"a": "A"}, {"A": "B", "C": "D"}]},
]


@pytest.mark.parametrize("spec", ANY_SPEC)
@pytest.mark.parametrize("values", [[], [None, None]])
def test_nothing_and_only_missing(spec, values):
    column = Domain.of(pa.array(values, pa.string()))
    levels = resolve(spec and parse_spec(spec), column, "col")
    check_sound(levels, column)
    assert [labels.to_pylist() for labels in levels.labels[:-1]] == [values[:1]] * levels.height


# --- intervals ---------------------------------------------------------------------------------------------


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
    assert paths(levels_of({"intervals": [10_000_000]}, 9_999_999_999))["9999999999"][0] == (
        "9990000000-9999999999"
    )
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
        ([10, 5], "5 is not more than 10"),
        ([5, 5], "5 is not more than 5"),
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


# --- masks -------------------------------------------------------------------------------------------------


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
        ({"mask": 5, "others": "*"}, "'others' does not go with 'mask'"),
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


# --- dates -------------------------------------------------------------------------------------------------

UNITS = ["day", "month", "quarter", "year", "decade", "century"]


def test_every_unit_of_dates():
    found = paths(levels_of({"dates": UNITS}, "2024-03-05", "1999-12-31", "2000-10-01", None))
    assert found == {
        "2024-03-05": ["2024-03-05", "2024-03", "2024-Q1", "2024", "2020-2029", "2000-2099", "*"],
        "1999-12-31": ["1999-12-31", "1999-12", "1999-Q4", "1999", "1990-1999", "1900-1999", "*"],
        "2000-10-01": ["2000-10-01", "2000-10", "2000-Q4", "2000", "2000-2009", "2000-2099", "*"],
        None: [None] * 6 + ["*"],
    }


@pytest.mark.parametrize(
    "moment",
    ["2024-03-05 10:11:12", "2024-03-05T10:11:12", "2024-03-05 10:11", "2024-03-05T23:11:12.25+01:00"],
)
def test_moments(moment):
    assert paths(levels_of({"dates": ["day", "year"]}, moment))[moment] == ["2024-03-05", "2024", "*"]


def test_typed_dates():
    days = pa.array([0, 19787], pa.date32())
    moments = pa.array([0, 1709633472500], pa.timestamp("ms"))
    for values in (days, moments):
        levels = resolve(parse_spec({"dates": ["month"]}), Domain.of(values), "col")
        assert levels.of_values(1).to_pylist() == ["1970-01", "2024-03"]


@pytest.mark.parametrize(
    ("form", "value", "label"),
    [
        ("%d.%m.%Y", "05.03.2024", "2024-03-05"),
        ("%d.%m.%Y", "5.3.2024", "2024-03-05"),
        ("%m/%d/%y", "03/05/99", "1999-03-05"),
        ("%d %B %Y", "5 march 2024", "2024-03-05"),
        ("%Y", "2024", "2024-01-01"),
        ("%Y-%m-%dT%H:%M:%S.%f%z", "2024-03-05T10:11:12.5+0100", "2024-03-05"),
    ],
)
def test_dates_by_format(form, value, label):
    assert paths(levels_of({"dates": ["day"], "format": form}, value, None))[value] == [label, "*"]


def test_values_that_are_not_dates():
    values = ["2024-03-05", "soon", "2023-02-30", "05.03.2024", "2024-03-05 25:00", "2024-3-5"]
    message = failure({"dates": ["month"]}, *values, None)
    assert "Column 'col'" in message
    assert "'05.03.2024', '2023-02-30', '2024-03-05 25:00', '2024-3-5', 'soon'." in message
    assert "format" in message
    assert 'others: "*"' in message


def test_values_that_are_not_dates_of_the_format():
    message = failure({"dates": ["month"], "format": "%d.%m.%Y"}, "05.03.2024", "30.02.2023", "1.1.2024x")
    assert "of the form %d.%m.%Y: '1.1.2024x', '30.02.2023'." in message


def test_date_others():
    spec = {"dates": ["month", "year"], "others": "*"}
    assert paths(levels_of(spec, "2024-03-05", "soon", None)) == {
        "2024-03-05": ["2024-03", "2024", "*"],
        "soon": ["*", "*", "*"],
        None: [None, None, "*"],
    }


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"dates": ["year", "month"]}, "from fine to coarse: [month, year]"),
        ({"dates": ["year", "year"]}, "Give each unit once"),
        ({"dates": ["monht"]}, "Did you mean 'month'?"),
        ({"dates": []}, "The list is empty"),
        ({"dates": ["day"], "format": "%Q"}, "not one of strptime's"),
        ({"dates": ["day"], "format": "%d.%m."}, "holds no year"),
    ],
)
def test_wrong_dates(spec, words):
    assert words in spec_failure(spec)


@given(
    st.lists(st.dates() | st.none(), min_size=1, unique=True),
    st.sets(st.sampled_from(UNITS), min_size=1).map(lambda units: sorted(units, key=UNITS.index)),
)
def test_dates_against_the_slow_oracle(days, units):
    column = Domain.of(pa.array(days, pa.date32()))
    levels = resolve(parse_spec({"dates": units}), column, "col")
    check_sound(levels, column)
    for day in filter(None, days):
        labels = {
            "day": day.isoformat(),
            "month": day.isoformat()[:7],
            "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
            "year": f"{day.year:04}",
            "decade": f"{day.year // 10 * 10:04}-{day.year // 10 * 10 + 9:04}",
            "century": f"{day.year // 100 * 100:04}-{day.year // 100 * 100 + 99:04}",
        }
        assert paths(levels)[day.isoformat()] == [*(labels[unit] for unit in units), "*"]


# --- maps --------------------------------------------------------------------------------------------------


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
    maps = data.draw(
        st.lists(st.fixed_dictionaries({k: st.sampled_from("abcdef") for k in labels}), min_size=1)
    )
    column = domain(*data.draw(st.lists(st.sampled_from([*"abcdef", None]), min_size=1)))
    levels = resolve(parse_spec({"levels": maps}), column, "col")
    check_sound(levels, column)
    for value, found in paths(levels).items():
        for step, label in zip(maps, found[:-1], strict=False):
            value = step[value or ""]
            assert label == value


# --- files -------------------------------------------------------------------------------------------------


def written(folder: Path, content: str | bytes) -> dict[str, str]:
    """The spec of a hierarchy file with this content."""
    data = content.encode() if isinstance(content, str) else content
    (folder / "h.csv").write_bytes(data)
    return {"file": "h.csv"}


def test_file(tmp_path):
    spec = written(tmp_path, "a;A;letter;all\nb;A;letter;all\n1;D;digit;all\nunused;U;none;all\n")
    assert paths(levels_of(spec, "a", "b", "1", None, folder=tmp_path)) == {
        "1": ["D", "digit", "*"],
        "a": ["A", "letter", "*"],
        "b": ["A", "letter", "*"],
        None: [None, None, "*"],
    }


def test_file_without_a_common_last_label(tmp_path):
    spec = written(tmp_path, "a;A\nb;B\n")
    assert paths(levels_of(spec, "a", folder=tmp_path)) == {"a": ["A", "*"]}


@pytest.mark.parametrize("content", ["a\nb\n", "a", "\r\na\r\n\r\nb\r\n"])
def test_file_of_values_only(tmp_path, content):
    assert paths(levels_of(written(tmp_path, content), "a", folder=tmp_path)) == {"a": ["*"]}


@pytest.mark.parametrize(
    "content",
    [
        "x,y;A\nz;B\n",
        '"x,y",A\nz,B\n',
        "x,y\tA\t\nz\tB\t\n",
        "\ufeffx,y;A\nz;B\n",
        '"x,y";A\r\n"z";"B"\r\n\r\n',
    ],
)
def test_delimiters_quotes_and_marks(tmp_path, content):
    levels = levels_of(written(tmp_path, content), "x,y", "z", folder=tmp_path)
    assert levels.of_values(1).to_pylist() == ["A", "B"]


def test_file_may_list_the_missing_value(tmp_path):
    spec = written(tmp_path, "a;A;*\n;unknown;*\n")
    assert paths(levels_of(spec, "a", None, folder=tmp_path)) == {"a": ["A", "*"], None: ["unknown", "*"]}


def test_file_others(tmp_path):
    spec = written(tmp_path, "a;A;X\nb;B;Y\n") | {"others": "*"}
    assert paths(levels_of(spec, "a", "z", None, folder=tmp_path)) == {
        "a": ["A", "X", "*"],
        "z": ["*", "*", "*"],
        None: [None, None, "*"],
    }


def test_same_line_twice_is_fine(tmp_path):
    assert paths(levels_of(written(tmp_path, "a;A;*\na;A;*\n"), "a", folder=tmp_path)) == {"a": ["A", "*"]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["h.csv is empty"]),
        ("\ufeff\n\n", ["h.csv is empty"]),
        ("a;A;*\n\nb;B\n", ["h.csv, line 3", "'b' has 1 levels", "the first line has 2"]),
        ("a;A;*\na;B;*\n", ["'a' occurs twice", "'A' and 'B'"]),
        ("a;A;X;*\na;A;Y;*\n", ["'a' occurs twice", "'X' and 'Y'"]),
        ("a;A;X\nb;A;Y\n", ["'A' of level 1", "'X' and 'Y' in level 2"]),
        (";;X\na;;Y\n", ["the missing value of level 1", "'X' and 'Y' in level 2"]),
        ('a;"A\nb;B\n', ["h.csv, line 2", "Check the quotes"]),
        ("ä;A\n".encode("latin-1"), ["not UTF-8", "h.csv"]),
        ("a;A\n".encode("utf-16"), ["not UTF-8", "h.csv"]),
        ("b;B\n", ["h.csv lacks the values 'a'.", "Add a line", 'others: "*"']),
    ],
)
def test_wrong_files(tmp_path, content, words):
    message = failure(written(tmp_path, content), "a", None, folder=tmp_path)
    assert "Column 'col'" in message
    for word in words:
        assert word in message


def test_file_lacks_many_values(tmp_path):
    values = [f"v{i}" for i in range(8)]
    message = failure(written(tmp_path, "v0;A\n"), *values, folder=tmp_path)
    assert "'v1', 'v2', 'v3', 'v4', 'v5' and 2 more" in message


def test_file_that_is_not_there(tmp_path):
    assert f"{tmp_path / 'gone.csv'} does not exist" in failure({"file": "gone.csv"}, "a", folder=tmp_path)
    (tmp_path / "folder.csv").mkdir()
    assert "folder.csv cannot be read" in failure({"file": "folder.csv"}, "a", folder=tmp_path)


# --- writing -----------------------------------------------------------------------------------------------


def same(left: Levels, right: Levels) -> bool:
    return (
        left.height == right.height
        and all(a.equals(b) for a, b in zip(left.labels, right.labels, strict=True))
        and all((a == b).all() for a, b in zip(left.codes, right.codes, strict=True))
    )


def test_written_form(tmp_path):
    spec = {"levels": [{"a;b": 'A "x"', "c\nd": "C", "e": 'A "x"'}]}
    write_arx(levels_of(spec, "a;b", "c\nd", "e", None), tmp_path / "out.csv")
    content = (tmp_path / "out.csv").read_text(encoding="utf-8")
    assert content == '"a;b";"A ""x""";*\n"c\nd";C;*\ne;"A ""x""";*\n;;*\n'
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


@given(
    st.dictionaries(
        st.text(st.sampled_from('ab ,;"\n\r\té'), min_size=1),
        st.text(st.sampled_from('AB,;"\n\r'), min_size=1),
    ).filter(len)
)
def test_what_is_written_reads_back_the_same(tmp_path_factory, labels):
    folder = tmp_path_factory.mktemp("arx")
    column = domain(*labels, None)
    levels = resolve(parse_spec({"levels": [labels]}), column, "col")
    write_arx(levels, folder / "h.csv")
    assert same(resolve(parse_spec({"file": "h.csv"}), column, "col", folder), levels)
    check_sound(levels, column)


def test_nothing_is_left_where_writing_fails(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        write_arx(levels_of(None, "a"), tmp_path / "none" / "h.csv")
    (tmp_path / "h.csv").mkdir()
    with pytest.raises(OutputError, match=r"h\.csv' cannot be written"):
        write_arx(levels_of(None, "a"), tmp_path / "h.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["h.csv"]


ADULT_HEIGHTS = {
    "age": 4,
    "education": 3,
    "marital-status": 2,
    "native-country": 2,
    "occupation": 2,
    "race": 1,
    "salary-class": 1,
    "sex": 1,
    "workclass": 2,
}


@pytest.mark.skipif(not ADULT.exists(), reason=f"ARX's Adult hierarchies are not in {ADULT}")
@pytest.mark.parametrize(("name", "height"), ADULT_HEIGHTS.items())
def test_adult_hierarchies_read_and_write(tmp_path, name, height):
    source = ADULT / f"adult_hierarchy_{name}.csv"
    with source.open(encoding="utf-8", newline="") as lines:
        expected = {value: above for value, *above in csv.reader(lines, delimiter=";")}
    column = domain(*expected)
    levels = resolve(parse_spec({"file": source.name}), column, name, ADULT)
    check_sound(levels, column)
    assert levels.height == height
    assert paths(levels) == expected
    write_arx(levels, tmp_path / "h.csv")
    assert same(resolve(parse_spec({"file": "h.csv"}), column, name, tmp_path), levels)


# --- specs in a study --------------------------------------------------------------------------------------

SPECS = [
    {"intervals": [5, 10, 20]},
    {"intervals": [0.1, 2.5], "offset": 0.5, "others": "*"},
    {"mask": 5},
    {"mask": 5, "side": "left"},
    {"dates": ["month", "year"], "format": "%d.%m.%Y", "others": "*"},
    {"file": "education.csv"},
    {"file": "education.csv", "others": "*"},
    {"levels": [{"Male": "Person", "Female": "Person"}, {"Person": "Human"}]},
]


class Attribute(BaseModel):
    role: str = "quasi"
    hierarchy: HierarchySpec | None = None


@pytest.mark.parametrize("spec", SPECS)
def test_specs_are_written_as_they_were_read(spec):
    attribute = Attribute.model_validate({"hierarchy": spec})
    assert attribute.hierarchy == parse_spec(spec)
    assert attribute.model_dump(exclude_defaults=True) == {"hierarchy": spec}
    assert Attribute.model_validate(attribute.model_dump()) == attribute
    assert Attribute.model_validate_json(attribute.model_dump_json()) == attribute
    assert Attribute(hierarchy=attribute.hierarchy) == attribute


def test_no_spec_is_none():
    assert Attribute.model_validate({"hierarchy": None}).hierarchy is None


def test_specs_are_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        parse_spec({"mask": 5}).mask = 6


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"interval": [5]}, "'interval' is not a kind of hierarchy. Did you mean 'intervals'?"),
        ({"interval": [5], "others": "*"}, "'interval' is not a kind"),
        ({"tree": 1}, "The kinds are 'intervals', 'mask', 'dates', 'file', 'levels'."),
        ({"others": "*"}, "'others' is not a kind of hierarchy"),
        ({5: 1}, "'5' is not a kind of hierarchy"),
        ({"mask": 5, "intervals": [5]}, "'intervals', 'mask'. Keep one."),
        ({"intervals": [5], "ofset": 1}, "'ofset' does not go with 'intervals'. Did you mean 'offset'?"),
        ({"intervals": [5], "side": "left"}, "'side' does not go with 'intervals'."),
        ({}, "A hierarchy is a mapping"),
        ("education.csv", "A hierarchy is a mapping"),
        ([5, 10], "A hierarchy is a mapping"),
    ],
)
def test_wrong_keys(spec, words):
    assert words in spec_failure(spec)


def test_place_of_a_fault_in_a_study():
    with pytest.raises(ValidationError) as caught:
        Attribute.model_validate({"hierarchy": {"mask": 0}})
    assert [error["loc"] for error in caught.value.errors()] == [("hierarchy", "mask", "mask")]


# --- size --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [{"mask": 5}, {"intervals": [5, 10, 20]}])
def test_many_values(spec):
    column = Domain.of(pa.array(np.arange(200_000)))
    levels = resolve(parse_spec(spec), column, "col")
    step = 10 if "mask" in spec else 5
    assert len(levels.labels[1]) == 200_000 // step
    assert (levels.leaves(1) == step).all()

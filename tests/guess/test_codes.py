"""Codes that mean missing: which are found, which are values after all, and that a study with them measures."""

from __future__ import annotations

import pyarrow as pa
import pytest
from guessing import guess_again, one
from hypothesis import given
from hypothesis import strategies as st

from veilmark import Study
from veilmark.guess.codes import NEGATIVES, Candidates, judge

AGES = list(range(18, 80))


@pytest.mark.parametrize(
    ("name", "values", "codes"),
    [
        ("job", ["cook", "smith", "NA", "n/a", "Unknown", "?"], {"NA", "n/a", "Unknown", "?"}),
        ("age", [*AGES, -9, -1], {"-9", "-1"}),
        ("age", [*map(str, AGES), "NA", "-8"], {"NA", "-8"}),
        ("age", [*map(float, AGES), -9.0, 9999.0], {"-9", "9999"}),
        ("educ", [*range(18), -1, -7, -8, -9], {"-1", "-7", "-8", "-9"}),
        ("visit_date", [f"2020-01-{i:02}" for i in range(1, 29)] + ["NULL"], {"NULL"}),
        ("year", [*range(1990, 2020), 9999], {"9999"}),
        ("income", [*range(0, 50_000, 500), 9_999], set()),
        ("nationality", ["German", "French", "none"], set()),
    ],
)
def test_codes_are_found(name, values, codes):
    found = one(name, values, 5)
    assert set(found.missing) == codes
    assert bool(codes) == any(w.startswith("treated as missing") for w in found.warnings)
    assert "becomes * at level 1" not in str(found.warnings)


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("income", [*range(0, 9_000, 50), -1, -20], None),
        ("yield", [*range(40), -3, *[-1] * 4], "other values are negative too"),
        ("mood", [-1, 0, 1], "it may be a scale from -1 to 1"),
        ("agree", [-9, *range(10)], "it may be a scale from -9 to 9"),
        ("temperature", [-1, *range(30)], "can be negative"),
        ("change", [-9, *range(30)], "can be negative"),
        ("country", ["DE", "FR", "NA", "US"], "Namibia"),
    ],
)
def test_a_number_that_may_be_negative_is_no_code(name, values, why):
    found = one(name, values, 10)
    assert found.missing == ()
    assert (why or "proposed as missing") in str(found.warnings) or why is None


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ([*range(9_000, 90_000, 7), *[9_999] * 60], "9999"),
        ([*range(9_000, 300_000, 20), *[99_999] * 60], "99999"),
        ([*range(9_000, 90_000, 100), *range(9_000, 90_000, 100), *[9_999] * 12], None),
        ([*[9_990] * 40, *range(9_000, 90_000, 7), *[9_999] * 60], None),
    ],
)
def test_nines_among_other_numbers_are_a_code_where_they_are_far_more_frequent(values, code):
    found = one("income", values)
    assert found.missing == ((code,) if code else ())


def test_ranges_and_shapes_are_those_of_the_values():
    found = one("age", [*map(str, AGES), "unknown", "-9"], 5)
    assert found.reason.endswith("62 values in 320 records, 10 missing, from 18 to 79")
    assert found.hierarchy == {"intervals": [5, 10, 20]}
    assert one("x", ["1", "2", "NA"], 20).reason == "few different values: 2 values in 60 records, 20 missing"


@given(st.dictionaries(st.sampled_from(sorted(NEGATIVES)), st.integers(1, 9), min_size=1), st.integers(1, 5))
def test_one_other_negative_number_makes_all_of_them_numbers(negatives, others):
    assert set(judge("visits", Candidates({}, negatives, {}, 0, 500.0)).found) == set(negatives)
    assert judge("visits", Candidates({}, negatives, {}, others, 500.0)).found == ()


def test_the_study_reads_them_as_missing():
    frame = pa.table({"age": ["30", "NA", "40", "50"] * 20, "educ": [1, -9, 3, 4] * 20, "diagnosis": list("abcd") * 20})
    study = Study.guess(frame)
    assert study.missing == {"age": ["NA"], "educ": ["-9"]}
    assert study.measure().missing == {"age": 20, "educ": 20}


def test_codes_that_the_study_has_already_stay_missing():
    from guessing import ENGINE

    table = ENGINE.open(pa.table({"a": ["x", "none", "NA"] * 20, "b": [1, 2, 3] * 20}))
    table.declare_missing({"a": ["none"]})
    table.declare_missing({"a": ["NA"], "b": ["3"]})
    assert [table.missing(name) for name in ("a", "b")] == [40, 20]


def test_every_column_is_looked_at_in_a_table_without_rows():
    assert (
        guess_again(pa.table({"age": pa.array([], pa.int64()), "job": pa.array([], pa.string())}))["age"].missing == ()
    )

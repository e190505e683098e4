"""Diversity of classes: worked by hand, against the slow oracle, and against pyCANON."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import oracle
from strength import examples
from veilmark.privacy.diversity import (
    basic_beta,
    disclosure,
    distinct_values,
    enhanced_beta,
    entropy_diversity,
    largest_share,
    recursive_c,
)

# Class "a" has 3 flu and 1 hiv, class "b" 2 cold, class "" (missing) 1 hiv and 1 of no value: 8 records.
# In the table: flu 3/8, hiv 2/8, cold 2/8, missing 1/8.
ROWS = [
    {"zip": zip_, "illness": illness, "person": person}
    for zip_, illness, person in [
        ("a", "flu", "1"),
        ("a", "flu", "1"),
        ("a", "flu", "2"),
        ("a", "hiv", "2"),
        ("b", "cold", "3"),
        ("b", "cold", "1"),
        (None, "hiv", "4"),
        (None, None, "4"),
    ]
]


@pytest.fixture(scope="module")
def table():
    return oracle.class_table(ROWS, ["zip"], ["illness"])


@pytest.fixture(scope="module")
def persons():
    return oracle.class_table(ROWS, ["zip"], ["illness"], "person")


def test_classes_stand_in_order_with_the_missing_one_last(table):
    assert table.texts("zip") == ["a", "b", None]
    assert table.records.tolist() == [4, 2, 2]


def test_distinct(table):
    assert distinct_values(table, "illness").tolist() == [2, 1, 2]


def test_entropy(table):
    # H(3/4, 1/4) = ln 4 - 3/4 ln 3, and exp of it 4 / 3^(3/4).
    assert entropy_diversity(table, "illness").tolist() == [pytest.approx(4 / 3**0.75), 1.0, 2.0]


def test_recursive(table):
    assert recursive_c(table, "illness", 2).tolist() == [3.0, math.inf, 1.0]
    assert recursive_c(table, "illness", 1).tolist() == [0.75, 1.0, 0.5]
    assert recursive_c(table, "illness", 3).tolist() == [math.inf] * 3


def test_alpha_counts_records(table):
    assert largest_share(table, "illness").tolist() == [0.75, 1.0, 0.5]


def test_alpha_counts_persons_where_they_are_known(persons):
    # Both persons of class a have flu; the one person of the last class has both of its values.
    assert persons.size.tolist() == [2, 2, 1]
    assert largest_share(persons, "illness").tolist() == [1.0, 1.0, 1.0]


def test_the_others_count_records_though_persons_are_known(table, persons):
    for measure in (distinct_values, entropy_diversity, basic_beta, enhanced_beta, disclosure):
        assert measure(table, "illness").tolist() == measure(persons, "illness").tolist()


def test_beta(table):
    # a: flu 3/4 over 3/8; b: cold 1 over 1/4; missing: missing 1/2 over 1/8. The rarest share is 1/8.
    assert basic_beta(table, "illness").tolist() == [1.0, 3.0, 3.0]
    assert enhanced_beta(table, "illness").tolist() == [
        1.0,
        pytest.approx(math.log(8)),
        pytest.approx(math.log(8)),
    ]


def test_delta(table):
    # a: flu doubles, hiv stays; b: cold by four; missing: hiv doubles, missing by four.
    expected = [math.log(2), math.log(4), math.log(4)]
    assert disclosure(table, "illness").tolist() == pytest.approx(expected)


def test_two_classes_that_merge_count_their_wanderer_once(persons):
    merged = persons.keep([])
    assert merged.size.tolist() == [4]
    # Of persons 1 2 3 4: flu 1 and 2, cold 1 and 3, hiv 2 and 4.
    assert largest_share(merged, "illness").tolist() == [0.5]


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(oracle.cases())
def test_every_class_as_the_oracle_has_it(case):
    table, rows, quasi = case.table, case.rows, case.quasi
    assert oracle.by_class(table, table.records.tolist()) == oracle.sizes(rows, quasi)
    assert oracle.by_class(table, table.size.tolist()) == oracle.sizes(rows, quasi, case.person)
    assert table.k == (oracle.k(rows, quasi, case.person) if rows else 0)
    for name in oracle.SENSITIVE:

        def agree(values, expected):
            assert oracle.by_class(table, values.tolist()) == pytest.approx(expected, rel=1e-12, abs=1e-12)

        agree(distinct_values(table, name), oracle.distinct_l(rows, quasi, name))
        agree(entropy_diversity(table, name), oracle.entropy_l(rows, quasi, name))
        agree(largest_share(table, name), oracle.alpha(rows, quasi, name, case.person))
        agree(basic_beta(table, name), oracle.basic_beta(rows, quasi, name))
        agree(enhanced_beta(table, name), oracle.enhanced_beta(rows, quasi, name))
        agree(disclosure(table, name), oracle.delta(rows, quasi, name))
        for l in (1, 2, 3):  # noqa: E741
            agree(recursive_c(table, name, l), oracle.recursive_c(rows, quasi, name, l))


@pytest.mark.parametrize("counts", [[7], [10**9 + 7], [3, 3, 3], [49] * 49, [8, 2, 2, 2, 2], [1] * 1000])
def test_entropy_that_is_a_whole_number_comes_out_whole(counts):
    """Limits are compared with ≥: a class of three equal shares must not miss l = 3 by a rounding error."""
    rows = [{"s": str(i)} for i in range(len(counts))]
    table = oracle.class_table(rows, [], ["s"])
    table.histograms["s"].records[:] = counts
    table.records[:] = sum(counts)
    assert entropy_diversity(table, "s").tolist() == [4.0 if counts == [8, 2, 2, 2, 2] else len(counts)]


def test_a_class_like_the_table_gives_nothing_away():
    rows = [{"q": q, "s": s} for q in "abc" for s in ["x"] * 3 + ["y"] * 7 + ["z"] * 11]
    table = oracle.class_table(rows, ["q"], ["s"])
    for measure in (basic_beta, enhanced_beta, disclosure):
        assert measure(table, "s").tolist() == [0.0, 0.0, 0.0]


def test_no_classes():
    table = oracle.class_table(ROWS, ["zip"], ["illness"]).take(np.zeros(3, dtype=bool))
    for measure in (distinct_values, entropy_diversity, largest_share, basic_beta, enhanced_beta, disclosure):
        assert measure(table, "illness").tolist() == []
    assert recursive_c(table, "illness", 2).tolist() == []

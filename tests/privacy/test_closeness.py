"""t-closeness: worked by hand and in Li et al. 2007, and against the slow oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
from strength import examples
from veilmark.hierarchy import Levels, parse_spec, resolve
from veilmark.privacy.closeness import equal_distance, hierarchical_distance, ordered_distance
from veilmark.privacy.measures import rank_values

# Table 5 of Li, Li and Venkatasubramanian (2007): zip code, salary in thousands, disease.
PAPER = [
    {"zip": zip_, "salary": salary, "disease": disease}
    for zip_, salary, disease in [
        ("4767*", "3", "gastric ulcer"),
        ("4767*", "5", "stomach cancer"),
        ("4767*", "9", "pneumonia"),
        ("4790*", "6", "gastritis"),
        ("4790*", "11", "flu"),
        ("4790*", "8", "bronchitis"),
        ("4760*", "4", "gastritis"),
        ("4760*", "7", "bronchitis"),
        ("4760*", "10", "stomach cancer"),
    ]
]
ORGANS = {
    "gastric ulcer": "stomach",
    "stomach cancer": "stomach",
    "gastritis": "stomach",
    "pneumonia": "infection",
    "flu": "infection",
    "bronchitis": "infection",
}
SYSTEMS = {"stomach": "digestive", "infection": "respiratory"}


def ordered(table, attribute, order=None):
    return ordered_distance(table, attribute, rank_values(table, attribute, order))


def levels_of(table, attribute, *maps) -> Levels:
    return resolve(parse_spec({"levels": list(maps)}), table.histograms[attribute].domain, attribute)


@pytest.fixture(scope="module")
def paper():
    return oracle.class_table(PAPER, ["zip"], ["salary", "disease"])


def test_equal(paper):
    # In ninths, what a class has too much of. 4760*: gastritis, bronchitis and cancer 3 each where the table has 2;
    # 4767*: ulcer and pneumonia 3 over 1, cancer 3 over 2; 4790*: flu 3 over 1, the other two 3 over 2.
    expected = {("4760*",): 3 / 9, ("4767*",): 5 / 9, ("4790*",): 4 / 9}
    assert oracle.by_class(paper, equal_distance(paper, "disease")) == pytest.approx(expected)


def test_ordered_as_the_paper_has_it(paper):
    """ "Table 5 has 0.167-closeness w.r.t. salary.\""""
    assert ordered(paper, "salary").max() == pytest.approx(1 / 6)


def test_ordered_example_of_section_4():
    """Among 3k…11k, {3k 4k 5k} is 0.375 away and {6k 8k 11k} 0.167."""
    classes = {"low": [3, 4, 5], "wide": [6, 8, 11], "rest": [7, 9, 10]}
    rows = [{"q": q, "s": str(s)} for q, salaries in classes.items() for s in salaries]
    table = oracle.class_table(rows, ["q"], ["s"])
    distance = oracle.by_class(table, ordered(table, "s"))
    assert distance["low",] == pytest.approx(0.375)
    assert distance["wide",] == pytest.approx(1 / 6)


def test_hierarchical(paper):
    # H = 3. In 27ths, organ + system + top: 4760* 1+1 + 0 + 3; 4767* 2+2 + 0 + 3; 4790* 1+1 + 0 + 6.
    distance = hierarchical_distance(paper, "disease", levels_of(paper, "disease", ORGANS, SYSTEMS))
    expected = {("4760*",): 5 / 27, ("4767*",): 7 / 27, ("4790*",): 8 / 27}
    assert oracle.by_class(paper, distance) == pytest.approx(expected)


def test_what_meets_low_is_near():
    """One class has all the flu, the other all the cold: one step apart of three."""
    rows = [{"q": s, "s": s} for s in ("flu", "cold")]
    table = oracle.class_table(rows, ["q"], ["s"])
    near = levels_of(table, "s", {"flu": "lung", "cold": "lung", "x": "y"}, {"lung": "inner", "y": "outer"})
    far = levels_of(table, "s", {"flu": "a", "cold": "b"}, {"a": "c", "b": "d"})
    assert hierarchical_distance(table, "s", near).tolist() == pytest.approx([0.5 / 3] * 2)
    assert hierarchical_distance(table, "s", far).tolist() == pytest.approx([0.5] * 2)


def test_an_order_decides_what_is_far():
    rows = [{"q": s, "s": s} for s in ("low", "mid", "high")]
    table = oracle.class_table(rows, ["q"], ["s"])
    # By low < mid < high, the class of low lies (2/3 + 1/3)/2 away and that of mid (1/3 + 1/3)/2.
    distance = oracle.by_class(table, ordered(table, "s", ["low", "mid", "high"]))
    assert distance == pytest.approx({("low",): 1 / 2, ("mid",): 1 / 3, ("high",): 1 / 2})
    distance = oracle.by_class(table, ordered(table, "s", ["mid", "low", "high"]))
    assert distance == pytest.approx({("low",): 1 / 3, ("mid",): 1 / 2, ("high",): 1 / 2})


def test_values_that_were_split_off_no_longer_stretch_the_order():
    """A table measured before it is written must say what the written one will."""
    rows = [{"q": q, "s": s} for q, s in [("a", "1"), ("a", "2"), ("b", "2"), ("c", "3"), ("c", "9")]]
    whole = oracle.class_table(rows, ["q"], ["s"])
    part = whole.take(np.array([True, True, False]))
    again = oracle.class_table(rows[:3], ["q"], ["s"])
    assert ordered(part, "s").tolist() == ordered(again, "s").tolist() == pytest.approx([1 / 6, 1 / 3])


MAPS = [
    st.fixed_dictionaries({v: st.sampled_from("abc") for v in oracle.VALUES["income"]}),
    st.fixed_dictionaries({label: st.sampled_from("xy") for label in "abc"}).map(lambda m: m | {"-": "z"}),
]


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(oracle.cases(), st.permutations(["cold", "flu", "hiv"]), st.tuples(*MAPS))
def test_every_class_as_the_oracle_has_it(case, order, maps):
    table, rows, quasi = case.table, case.rows, case.quasi

    def agree(values, expected):
        assert oracle.by_class(table, values.tolist()) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert ((values >= 0) & (values <= 1)).all()

    numbers = sorted(oracle.VALUES["income"], key=float)
    agree(equal_distance(table, "illness"), oracle.t_equal(rows, quasi, "illness"))
    agree(ordered(table, "illness", order), oracle.t_ordered(rows, quasi, "illness", [*order, None]))
    agree(ordered(table, "income"), oracle.t_ordered(rows, quasi, "income", numbers))
    tree = oracle.tree(numbers, maps)
    levels = levels_of(table, "income", *maps)
    agree(hierarchical_distance(table, "income", levels), oracle.t_hierarchical(rows, quasi, "income", tree))
    mild = {"cold": "mild", "flu": "mild", "hiv": "grave"}
    tree = oracle.tree(oracle.VALUES["illness"], [mild])
    levels = levels_of(table, "illness", mild)
    agree(hierarchical_distance(table, "illness", levels), oracle.t_hierarchical(rows, quasi, "illness", tree))


@settings(max_examples=examples(30), deadline=None)
@given(oracle.cases())
def test_a_hierarchy_of_one_step_is_the_equal_distance(case):
    domain = case.table.histograms["illness"].domain
    flat = hierarchical_distance(case.table, "illness", resolve(None, domain, "illness"))
    assert flat.tolist() == pytest.approx(equal_distance(case.table, "illness").tolist())


def test_long_orders_lose_no_precision():
    """Sums run on from class to class, and must not carry rounding errors over."""
    rng = np.random.default_rng(3)
    quasi, sensitive = rng.integers(0, 200, 3000), rng.zipf(1.3, 3000) % 997
    rows = [{"q": str(q), "s": str(s)} for q, s in zip(quasi, sensitive, strict=True)]
    table = oracle.class_table(rows, ["q"], ["s"])
    expected = oracle.t_ordered(rows, ["q"], "s", [str(s) for s in range(997)])
    assert oracle.by_class(table, ordered(table, "s")) == pytest.approx(expected, rel=1e-13)


def test_a_class_like_the_table_is_at_no_distance():
    rows = [{"q": q, "s": s} for q in "abc" for s in ["1"] * 3 + ["2"] * 7 + ["3"] * 11]
    table = oracle.class_table(rows, ["q"], ["s"])
    assert equal_distance(table, "s").tolist() == [0.0] * 3
    assert ordered(table, "s").tolist() == pytest.approx([0.0] * 3, abs=1e-15)


def test_one_value_is_at_no_distance():
    table = oracle.class_table([{"q": q, "s": "1"} for q in "aab"], ["q"], ["s"])
    assert equal_distance(table, "s").tolist() == ordered(table, "s").tolist() == [0.0, 0.0]
    assert hierarchical_distance(table, "s", levels_of(table, "s", {"1": "a", "2": "b"})).tolist() == [0.0, 0.0]


def test_no_classes(paper):
    none = paper.take(np.zeros(3, dtype=bool))
    assert equal_distance(none, "disease").tolist() == []
    assert ordered(none, "salary").tolist() == []
    levels = levels_of(none, "disease", ORGANS, SYSTEMS)
    assert hierarchical_distance(none, "disease", levels).tolist() == []

"""QI-NCP, SA-NCP and NIL against loops over persons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import CODES, People, people, some_people
from veilmark.hierarchy import parse_spec, resolve
from veilmark.tables.classes import ClassTable, Tally
from veilmark.utility.local import local_by_attribute
from veilmark.utility.sliced import (
    amounts,
    attribute_ncp,
    class_middles,
    counts_as_number,
    nil,
    nil_as_printed,
    qi_ncp,
    sa_ncp,
)


def parts_of(who: People) -> st.SearchStrategy[np.ndarray]:
    return st.integers(0, 1 << 32).map(lambda seed: np.random.default_rng(seed).integers(4, size=len(who)))


def width_of(who: People, name: str, members: list[int], sets: bool) -> float:
    """What a class spans of an attribute, by plain counting."""
    values = [who.quasi[name][i] for i in members]
    domain = set(who.quasi[name])
    distinct = set(values)
    if len(distinct) == 1:
        return 0.0
    if name == "age":
        if None in distinct:
            return 1.0
        everyone = [int(v) for v in domain if v is not None]
        own = [int(v) for v in distinct if v is not None]
        return (max(own) - min(own)) / (max(everyone) - min(everyone))
    if name == "city" and who.levels[name].height > 1:
        code = {t: i for i, t in enumerate(who.levels[name].labels[0].to_pylist())}
        for level, codes in enumerate(who.levels[name].codes):
            if len({codes[code[v]] for v in distinct}) == 1:
                same = codes[code[values[0]]]
                return int(np.count_nonzero(who.levels[name].codes[level] == same)) / len(domain)
    return len(distinct) / len(domain) if sets else 1.0


@given(st.data(), st.booleans())
def test_qi_ncp_is_the_mean_width_over_persons_and_attributes(data: st.DataObject, sets: bool) -> None:
    who = data.draw(some_people())
    part = data.draw(parts_of(who))
    expected = [
        width_of(who, name, np.flatnonzero(part == part[i]).tolist(), sets)
        for name in who.quasi
        for i in range(len(who))
    ]
    assert qi_ncp(who.persons, who.levels, part, sets=sets) == pytest.approx(float(np.mean(expected)))


@given(st.data(), st.booleans())
def test_qi_ncp_is_the_gcp_of_local_recoding(data: st.DataObject, sets: bool) -> None:
    who = data.draw(some_people())
    part = data.draw(parts_of(who))
    part = np.unique(part, return_inverse=True)[1]
    columns = who.persons.quasi
    codes = np.array([column.values for column in columns.values()])
    table = ClassTable(tuple(columns), tuple(c.domain for c in columns.values()), codes, Tally(np.ones(len(who), int)))
    levels = [who.levels[name] for name in columns]
    numeric = [counts_as_number(column, who.levels[name]) for name, column in columns.items()]
    expected = local_by_attribute(table, levels, numeric, part, int(part.max()) + 1, sets)
    for name, column in columns.items():
        assert attribute_ncp(column, who.levels[name], part, sets=sets) == pytest.approx(expected[name]["gcp"])


@given(st.data())
def test_sa_ncp_is_the_mean_share_of_leaves_over_items(data: st.DataObject) -> None:
    who = data.draw(some_people())
    disease = who.persons.sensitive["disease"]
    levels = who.levels["disease"]
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    chosen = rng.integers(levels.height + 1, size=len(disease.values))
    expected = []
    for value, level in zip(disease.values, chosen, strict=True):
        leaves = int(np.count_nonzero(levels.codes[level] == levels.codes[level][value]))
        expected.append(leaves / len(disease.domain) if leaves > 1 else 0.0)
    found = sa_ncp(who.persons, who.levels, {"disease": chosen})
    assert found == pytest.approx(float(np.mean(expected)))


def test_sa_ncp_of_the_papers_form() -> None:
    """Items of one attribute at one level: (3/6 + 3/6 + 2/6)/3, as in the f-slip paper's Equation 12."""
    who = people(
        {"age": ["1"] * 2},
        {"disease": [["B1", "B2", "A1"], [*CODES]]},
        {"disease": {"levels": [CODES]}},
    )
    first = who.persons.take(np.array([0]))
    assert sa_ncp(first, who.levels, {"disease": 1}) == pytest.approx((3 / 6 + 3 / 6 + 2 / 6) / 3)


def test_an_item_published_as_itself_loses_nothing_and_the_top_all() -> None:
    who = people({}, {"disease": [["A1"], ["A2", "B1"]], "level": [["low"], ["high"]]})
    assert sa_ncp(who.persons, who.levels, {"disease": 0, "level": 0}) == 0.0
    assert sa_ncp(who.persons, who.levels, {"disease": 1, "level": 1}) == 1.0
    assert sa_ncp(who.persons, who.levels, {"disease": 1, "level": 0}) == pytest.approx(3 / 5)
    assert sa_ncp(who.persons, who.levels, {}) == 0.0


def test_nil_normalized_and_as_printed() -> None:
    who = people({"age": ["10", "20", "20", None]}, {"income": [["1"], ["2", "4"], ["3"], ["3"]]})
    age = {"age": np.array([15.0, 15.0, 20.0, 3.0])}
    assert nil(who.persons, age) == pytest.approx((5 + 5) / (3 * 10))
    assert nil_as_printed(who.persons, age) == pytest.approx(10 / 2)
    a_person = {"income": np.array([1.0, 3.0, 3.0, 3.0])}
    assert nil(who.persons, a_person) == pytest.approx((1 + 1) / (5 * 3))
    assert nil(who.persons, age | a_person) == pytest.approx((1 / 3 + 2 / 15) / 2)
    assert nil(who.persons, {}) == nil_as_printed(who.persons, {}) == 0.0


def test_a_range_is_read_as_its_middle() -> None:
    numbers = np.array([1.0, 5.0, np.nan, 2.0, np.nan])
    middles = class_middles(numbers, np.array([0, 0, 0, 1, 2]))
    np.testing.assert_array_equal(middles, [3, 3, np.nan, 2, np.nan])


def test_what_counts_as_number() -> None:
    values = [["1"], ["2"], ["3"], ["12"]]
    who = people({}, {"plain": values, "word": [["a"]] * 4, "many": [*values[:3], ["1", "3"]], "flag": [["1"]] * 4})
    assert amounts(who.persons, who.levels) == ("plain",)
    column = who.persons.sensitive["plain"]

    def spec(plain: object) -> bool:
        return counts_as_number(column, resolve(parse_spec(plain), column.domain, "plain"))

    assert spec({"intervals": [5, 10]})
    assert not spec({"levels": [{"1": "low", "2": "low", "3": "high", "12": "high"}]})

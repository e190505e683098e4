"""Correlations of sensitive attributes by pairs of values, and the groups made by them."""

from __future__ import annotations

import json
import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import people, some_people
from veilmark.utility.sliced import amounts
from veilmark.veil import correlation as module
from veilmark.veil.correlation import Correlation, Correlations, correlations


def slow_v(pairs: list[tuple]) -> float:
    """Cramér's V out of expected counts, cell by cell."""
    rows, columns = sorted({a for a, _ in pairs}, key=str), sorted({b for _, b in pairs}, key=str)
    n, least = len(pairs), min(len(rows), len(columns)) - 1
    chi2 = 0.0
    for a, b in product(rows, columns):
        expected = sum(x == a for x, _ in pairs) * sum(y == b for _, y in pairs) / n
        chi2 += (pairs.count((a, b)) - expected) ** 2 / expected
    return math.sqrt(chi2 / n / least) if least else 0.0


def slow_eta(pairs: list[tuple]) -> float:
    """The correlation ratio of the numbers in the groups."""
    there = [(group, float(number)) for group, number in pairs if number is not None]
    mean = sum(number for _, number in there) / len(there)
    total = sum((number - mean) ** 2 for _, number in there)
    groups: dict = {}
    for group, number in there:
        groups.setdefault(group, []).append(number)
    between = sum(len(of) * (sum(of) / len(of) - mean) ** 2 for of in groups.values())
    return math.sqrt(between / total) if total > 1e-9 else 0.0


@given(some_people())
def test_every_pair_of_values_of_a_person_counts(who):
    numeric = amounts(who.persons, who.levels)
    found = correlations(who.persons, numeric)
    assert [(pair.first, pair.second) for pair in found.pairs] == list(combinations(who.sensitive, 2))
    for pair in found.pairs:
        both = zip(who.sensitive[pair.first], who.sensitive[pair.second], strict=True)
        pairs = [(a, b) for first, second in both for a, b in product(first, second)]
        if pair.measure == "v":
            assert pair.plain == pytest.approx(slow_v(pairs), abs=1e-9)
        if pair.measure == "eta":
            grouped = pairs if pair.second in numeric else [(b, a) for a, b in pairs]
            assert pair.plain == pytest.approx(slow_eta(grouped), abs=1e-6)
            assert pair.f is not None
        assert 0 <= pair.strength <= 1


def test_the_three_measures_by_kind():
    numbers = [[str(i)] for i in range(40)]
    double = [[str(3 * i)] for i in range(40)]
    half = [["low" if i < 20 else "high"] for i in range(40)]
    noise = [[str(i % 2), "x"] for i in range(40)]
    who = people({"age": ["1"] * 40}, {"a": numbers, "b": double, "c": half, "d": noise})
    found = correlations(who.persons, ("a", "b"))
    measures = {(pair.first, pair.second): pair for pair in found.pairs}
    assert [measures[pair].measure for pair in (("a", "b"), ("a", "c"), ("c", "d"))] == ["r", "eta", "v"]
    assert measures["a", "b"].strength == pytest.approx(1)
    assert measures["a", "c"].plain == pytest.approx(
        slow_eta([(h, n) for (h,), (n,) in zip(half, numbers, strict=True)])
    )
    assert measures["a", "c"].f > 50
    assert measures["c", "d"].strength == 0
    assert found.groups() == (("a", "b", "c"), ("d",))
    content = found.to_dict()
    assert content["attributes"] == ["a", "b", "c", "d"]
    assert set(content["pairs"][1]) == {"first", "second", "measure", "eta", "eta_corrected", "f"}
    assert json.dumps(content)


def matrix(names: str, strengths: dict[str, float]) -> Correlations:
    pairs = [Correlation(a, b, "v", 0.0, strengths.get(a + b, 0.0)) for a, b in combinations(names, 2)]
    return Correlations(tuple(names), tuple(pairs))


def test_groups_by_average_linkage():
    found = matrix("abcd", {"ab": 0.9, "cd": 0.8, "ac": 0.5, "bc": 0.1})
    assert found.groups() == (("a", "b"), ("c", "d"))
    assert found.groups(3) == (("a", "b"), ("c",), ("d",))
    assert found.groups(1) == (("a", "b", "c", "d"),)
    assert matrix("a", {}).groups() == (("a",),)
    assert matrix("ab", {"ab": 1.0}).groups() == (("a",), ("b",))
    assert found.matrix()[0].tolist() == [1, 0.9, 0.5, 0]


def test_of_many_values_and_persons_only_so_many_are_looked_at(monkeypatch):
    rng = np.random.default_rng(1)
    first = rng.integers(0, 50, 3000)
    who = people(
        {"age": ["1"] * 3000},
        {
            "a": [[str(v)] for v in first],
            "b": [[str(v // 5), "x"] for v in first],
            "c": [[str(v)] for v in rng.random(3000)],
        },
    )
    whole = correlations(who.persons)
    monkeypatch.setattr(module, "MANY_VALUES", 10)
    few = correlations(who.persons)
    monkeypatch.setattr(module, "MOST_PERSONS", 1000)
    sample = correlations(who.persons)
    for found in (whole, few, sample):
        assert found.pairs[0].strength > 0.2
        assert found.pairs[1].strength < 0.2


@given(some_people(), st.integers(1, 3))
def test_groups_hold_each_attribute_once(who, count):
    groups = correlations(who.persons, amounts(who.persons, who.levels)).groups(count)
    assert len(groups) == min(count, len(who.sensitive))
    assert sorted(name for group in groups for name in group) == sorted(who.sensitive)


def test_the_heat_map_tells_measure_and_numbers():
    pytest.importorskip("altair")
    from veilmark.report.correlation_chart import heat_map

    pairs = (Correlation("a", "b", "v", 0.5, 0.4), Correlation("a", "c", "eta", 0.9, 0.8, 1234.5))
    content = heat_map(Correlations(("a", "b", "c"), pairs)).to_dict()
    rows = content["datasets"][content["data"]["name"]]
    assert len(rows) == 4
    assert {row["corrected"] for row in rows} == {"V 0.400", "η 0.800"}
    assert {row["plain"] for row in rows} == {"0.500", "0.900, F 1,234"}

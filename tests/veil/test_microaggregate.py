"""Microaggregation against plain loops, and against all groupings of a few records."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark.errors import DataError, OptionError
from veilmark.veil import microaggregate
from veilmark.veil.microaggregate import mdav, means, v_mdav

Point = tuple[float, ...]


# --- plain loops -------------------------------------------------------------------------------------------


def standardized(values: np.ndarray) -> list[Point]:
    return [tuple(row) for row in (values - values.mean(axis=0)) / values.std(axis=0)]


def mean_of(points: list[Point]) -> Point:
    return tuple(sum(axis) / len(points) for axis in zip(*points, strict=True))


def farthest(left: list[int], points: list[Point], origin: Point) -> int:
    return max(left, key=lambda i: math.dist(points[i], origin))


def cluster(left: list[int], points: list[Point], seed: int, k: int) -> list[int]:
    """The seed and the k-1 nearest to it, taken away from those left."""
    chosen = sorted(left, key=lambda i: math.dist(points[i], points[seed]))[:k]
    left[:] = [i for i in left if i not in chosen]
    return chosen


def slow_mdav(points: list[Point], k: int) -> list[list[int]]:
    left, groups = list(range(len(points))), []
    while len(left) >= 3 * k:
        first = farthest(left, points, mean_of([points[i] for i in left]))
        second = farthest(left, points, points[first])
        groups += [cluster(left, points, seed, k) for seed in (first, second)]
    if len(left) >= 2 * k:
        groups.append(cluster(left, points, farthest(left, points, mean_of([points[i] for i in left])), k))
    return [*groups, left]


def slow_v_mdav(points: list[Point], k: int, gamma: float) -> list[list[int]]:
    left, groups, centre = list(range(len(points))), [], mean_of(points)
    while len(left) >= k:
        group = cluster(left, points, farthest(left, points, centre), k)
        while left and gamma and len(group) < 2 * k - 1:
            inner = {i: min(math.dist(points[i], points[j]) for j in group) for i in left}
            near = min(left, key=inner.__getitem__)
            outer = min((math.dist(points[near], points[j]) for j in left if j != near), default=math.inf)
            if inner[near] >= gamma * outer:
                break
            group.append(near)
            left.remove(near)
        groups.append(group)
    centres = [mean_of([points[i] for i in group]) for group in groups]
    for i in left:
        groups[min(range(len(groups)), key=lambda g: math.dist(centres[g], points[i]))].append(i)
    return groups


def as_sets(groups: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(groups == g).tolist()) for g in np.unique(groups)}


def normal(seed: int, rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns)) * [1, 50, 0.01][:columns]


@pytest.mark.parametrize("seed", range(20))
def test_mdav_is_that_of_plain_loops(seed: int):
    rows, k = 20 + 3 * seed, 2 + seed % 4
    values = normal(seed, rows, 2 + seed % 2)
    assert as_sets(mdav(values, k)) == set(map(frozenset, slow_mdav(standardized(values), k)))


@pytest.mark.parametrize("gamma", [0, 0.2, 1.1])
@pytest.mark.parametrize("seed", range(8))
def test_v_mdav_is_that_of_plain_loops(seed: int, gamma: float):
    values, k = normal(seed, 20 + 5 * seed, 2), 2 + seed % 4
    assert as_sets(v_mdav(values, k, gamma)) == set(map(frozenset, slow_v_mdav(standardized(values), k, gamma)))


# --- sizes -------------------------------------------------------------------------------------------------

SMALL = st.integers(0, 3)


@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=60), st.integers(1, 6), st.sampled_from([1, 2]))
def test_groups_have_k_to_2k_rows_even_where_many_are_equal(rows, k, columns):
    values = np.array(rows, dtype=float)[:, :columns]
    k = min(k, len(values))
    sizes = np.bincount(mdav(values, k))
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1
    assert np.bincount(v_mdav(values, k, 1.1)).min() >= k


@given(st.lists(st.tuples(SMALL, SMALL, st.integers(1, 5)), min_size=1, max_size=40), st.integers(1, 9), st.booleans())
def test_counts_are_records_that_stay_together(rows, k, single):
    *values, counts = np.array(rows).T
    values = np.array(values[:1] if single else values, dtype=float).T
    k = min(k, int(counts.sum()))
    for method in (mdav, v_mdav):
        groups = method(values, k, counts=counts)
        assert np.bincount(groups, counts).min() >= k


def test_groups_are_numbered_by_their_first_rows():
    assert mdav(np.array([[9.0, 9], [0, 0], [9, 9], [0, 0]]), 2).tolist() == [0, 1, 0, 1]
    assert mdav(np.array([9.0, 0, 9, 0]), 2).tolist() == [0, 1, 0, 1]


def test_k_of_one_leaves_every_row_alone():
    values = normal(1, 7, 2)
    assert mdav(values, 1).tolist() == v_mdav(values, 1).tolist() == list(range(7))
    assert mdav(values[:, 0], 1).tolist() == list(range(7))


def test_a_constant_attribute_does_not_count():
    values = normal(1, 30, 2)
    widened = np.column_stack([values, np.full(30, 7.0)])
    assert mdav(values, 3).tolist() == mdav(widened, 3).tolist()


def test_v_mdav_keeps_natural_groups_whole():
    """Five and four records far apart; groups of three would tear them."""
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(0, 0.1, (5, 2)), rng.normal(9, 0.1, (4, 2))])
    assert v_mdav(values, 3, 1.1).tolist() == [0] * 5 + [1] * 4


# --- one attribute -----------------------------------------------------------------------------------------


def squares(values: np.ndarray, groups: np.ndarray) -> float:
    return float(((values - means(values, groups)) ** 2).sum())


def groupings(rows: int, k: int) -> Iterator[np.ndarray]:
    """All ways to put a few rows into groups of at least k."""
    for chosen in np.ndindex(*[rows // k] * rows):
        if np.bincount(chosen)[np.unique(chosen)].min() >= k:
            yield np.array(chosen)


@pytest.mark.parametrize(("rows", "k"), [(5, 2), (6, 2), (7, 2), (7, 3), (8, 4)])
def test_one_attribute_is_grouped_best(rows: int, k: int):
    for seed in range(3):
        values = np.random.default_rng(seed).integers(0, 20, rows).astype(float)
        best = min(squares(values, groups) for groups in groupings(rows, k))
        assert squares(values, mdav(values, k)) == pytest.approx(best)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4)), min_size=1, max_size=30), st.integers(1, 8))
def test_one_attribute_with_counts_is_grouped_best(rows, k):
    """Against the plain recursion over the sorted rows."""
    value, counts = np.array(sorted(rows), dtype=float).T
    k = min(k, int(counts.sum()))
    least = [0.0] + [math.inf] * len(rows)
    for end in range(1, len(rows) + 1):
        for start in range(end):
            weight, part = counts[start:end], value[start:end]
            if weight.sum() >= k:
                spread = weight @ (part - np.average(part, weights=weight)) ** 2
                least[end] = min(least[end], least[start] + spread)
    found = means(value, mdav(value, k, counts=counts), counts)
    assert counts @ (value - found) ** 2 == pytest.approx(least[-1], abs=1e-9)


def test_comparing_fewer_candidates_at_once_changes_nothing(monkeypatch):
    values = np.random.default_rng(5).normal(size=300)
    at_once = mdav(values, 20)
    monkeypatch.setattr(microaggregate, "MOST_CELLS", 50)
    assert at_once.tolist() == mdav(values, 20).tolist() == v_mdav(values, 20).tolist()


# --- means -------------------------------------------------------------------------------------------------


def test_means_by_hand():
    values = np.array([[1.0, 10], [3, 20], [5, 60]])
    groups = np.array([0, 0, 1])
    assert means(values, groups).tolist() == [[2, 15], [2, 15], [5, 60]]
    assert means(values[:, 0], groups, np.array([3, 1, 1])).tolist() == [1.5, 1.5, 5]


# --- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_k_must_be_a_whole_number(k):
    with pytest.raises(OptionError, match=f"k must be a whole number of 1 or more, not {k}"):
        mdav(np.zeros((3, 2)), k)


def test_too_few_rows():
    with pytest.raises(OptionError, match="3 records are too few for k = 4"):
        v_mdav(np.zeros((3, 2)), 4)


def test_says_how_many_values_are_missing():
    values = np.array([[1, np.nan], [np.nan, np.inf], [3, 4]])
    with pytest.raises(DataError, match="3 of 6 values, in 2 rows, are missing or infinite"):
        mdav(values, 2)


def test_there_must_be_an_attribute():
    with pytest.raises(OptionError, match="No attribute"):
        mdav(np.empty((3, 0)), 2)


@pytest.mark.parametrize("counts", [[1, 1], [1, 1, 0]])
def test_counts_must_fit(counts):
    with pytest.raises(OptionError, match="counts must have a whole number of 1 or more for each row"):
        mdav(np.zeros((3, 2)), 2, counts=np.array(counts))


@pytest.mark.parametrize("gamma", [-1, math.nan])
def test_gamma_must_be_a_number_from_zero(gamma):
    with pytest.raises(OptionError, match="gamma must be a number of 0 or more"):
        v_mdav(np.zeros((3, 2)), 2, gamma)

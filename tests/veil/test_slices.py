"""Slices: none too small, none that gives a value away, whatever the table; unions as one would make them by hand."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from people import some_people
from veilmark.veil.slices import commonest, diverse_slices, diversity, fingerprint_kinds, runs, union_of_slices


def slow_diversity(slices: np.ndarray, kinds: list[np.ndarray]) -> float:
    members = {s: np.flatnonzero(slices == s) for s in set(slices.tolist())}
    return min(len(of) / max(Counter(k[of].tolist()).values()) for of in members.values() for k in kinds)


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, list[np.ndarray], int, float]:
    """An order, the kinds of up to four attributes, f and l; the table is l-diverse as a whole."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    count, attributes = draw(st.integers(1, 120)), draw(st.integers(1, 4))
    size, l = draw(st.integers(1, 9)), draw(st.sampled_from([1, 1.2, 1.5, 2, 2.5, 3, 4]))  # noqa: E741
    kinds = [rng.integers(0, rng.integers(1, 30), count) for _ in range(attributes)]
    if draw(st.booleans()):
        often = rng.random(count) < 1 / l
        kinds[0] = np.where(often, 0, kinds[0] + 1)
    assume(all(np.bincount(of).max() * l <= count for of in kinds))
    sort = draw(st.sampled_from(["by kind", "by one", "none"]))
    order = np.lexsort(kinds[::-1]) if sort == "by kind" else rng.permutation(count)
    return (np.argsort(kinds[0], kind="stable") if sort == "by one" else order), kinds, size, l


@given(tables())
def test_every_slice_is_diverse_and_large_enough(table):
    order, kinds, size, l = table  # noqa: E741
    slices = diverse_slices(order, kinds, size, l, np.random.default_rng(1))
    count = slices.max() + 1
    assert sorted(set(slices.tolist())) == list(range(count))
    assert np.bincount(slices).min() >= min(size, len(order))
    assert slow_diversity(slices, kinds) >= l - 1e-9
    assert diversity(slices, kinds) == pytest.approx(slow_diversity(slices, kinds))


def test_runs_that_are_diverse_stay_as_they_are():
    order = np.arange(20)[::-1]
    slices = diverse_slices(order, [np.arange(20)], 4, 2, np.random.default_rng(1))
    assert slices.tolist() == [4 - i // 4 for i in range(20)]


def test_a_value_of_half_the_persons_is_paired_with_all_others():
    kinds = np.concatenate([np.zeros(500, dtype=int), np.arange(1, 501)])
    slices = diverse_slices(np.arange(1000), [kinds], 2, 2, np.random.default_rng(1))
    assert (np.bincount(slices) == 2).all()
    assert diversity(slices, [kinds]) == 2


def test_slices_stay_fine_where_two_attributes_have_common_values():
    rng = np.random.default_rng(5)
    kinds = [np.sort(rng.geometric(0.3, 6000)), rng.choice(3, 6000, p=[0.45, 0.3, 0.25])]
    slices = diverse_slices(np.arange(6000), kinds, 5, 2, rng)
    assert diversity(slices, kinds) >= 2
    assert np.bincount(slices).mean() < 8


@given(st.integers(1, 60), st.integers(1, 9))
def test_runs(count, size):
    found = runs(count, size).tolist()
    lengths = list(Counter(found).values())
    assert found == sorted(found)
    assert lengths[:-1] == [size] * (len(lengths) - 1)
    assert lengths[-1] == count if count < size else size <= lengths[-1] < 2 * size


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=40))
def test_commonest(pairs):
    owner, kind = (np.array([p[i] for p in pairs], dtype=np.int64) for i in (0, 1))
    slow = [max(Counter(k for o, k in pairs if o == each).values(), default=0) for each in range(5)]
    assert commonest(owner, kind, 5).tolist() == slow


@given(some_people(), st.integers(1, 5), st.booleans(), st.integers(0, 9))
def test_union_has_each_value_as_often_as_one_member_has_it(who, size, generalized, seed):
    column, levels = who.persons.sensitive["disease"], who.levels["disease"]
    if generalized:
        codes = levels.codes[levels.height - 1] // 2
        column = column.recode(codes, column.domain)
    slices = np.random.default_rng(seed).permutation(runs(len(column), size))
    found = union_of_slices(column, slices, int(slices.max()) + 1)
    arrays = [Counter(column.values[a:b].tolist()) for a, b in pairwise(column.starts)]
    for i, (a, b) in enumerate(pairwise(found.starts)):
        wanted: Counter[int] = Counter()
        for person in np.flatnonzero(slices == i):
            wanted |= arrays[person]
        assert found.values[a:b].tolist() == sorted(wanted.elements())


@given(some_people())
def test_kinds_are_those_of_the_arrays_in_their_order(who):
    column = who.persons.sensitive["disease"]
    column = column.recode(np.arange(len(column.domain)) // 2, column.domain)
    assert fingerprint_kinds(column).tolist() == dense(column.kinds)
    wide = column.recode(np.arange(len(column.domain)), Wide(column.domain))
    assert dense(fingerprint_kinds(wide)) == dense(column.kinds)


def dense(kinds: np.ndarray) -> list[int]:
    return np.unique(kinds, return_inverse=True)[1].tolist()


class Wide:
    """A domain so large that few of its codes fit into one integer."""

    def __init__(self, domain):
        self.text = domain.text

    def __len__(self):
        return 1 << 31

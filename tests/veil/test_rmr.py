"""RMR: its promises on random person tables, its merging against plain loops, and small cases by hand."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import People, by_gid, people, rows_by_gid, some_people
from veilmark.errors import OptionError
from veilmark.utility.sliced import qi_ncp
from veilmark.veil.items import Items, item_levels
from veilmark.veil.rmr import Rmr, merge_clusters, protect_items, slice_persons

DELTAS = st.sampled_from([0.0, 0.1, 0.3, 0.66, 1.0])


@given(some_people(), st.integers(1, 6), st.integers(1, 3), DELTAS)
def test_clusters_of_k_in_which_m_items_fit_k_persons(who: People, k: int, m: int, delta: float) -> None:
    if len(who) < k:
        return
    release = slice_persons(who.persons, who.levels, Rmr(k, m, delta))
    assert len(release.quasi) == len(release.sensitive[0]) == len(who)
    clusters, labels = by_gid(release), rows_by_gid(release)
    assert {gid: len(of) for gid, of in clusters.items()} == {gid: len(of) for gid, of in labels.items()}
    assert all(len(set(of)) == 1 for of in labels.values())
    assert len({of[0] for of in labels.values()}) == len(labels)
    for members in clusters.values():
        assert len(members) >= k
        persons = Counter(combination for sets in members for combination in up_to(m, sets))
        assert min(persons.values()) >= k
    before = release.facts["clusters_before"]
    assert release.loss["ncp"] <= delta + 1e-9 or release.facts["clusters"] == before


def up_to(m: int, sets: tuple[tuple[str | None, ...], ...]) -> set[frozenset[tuple[int, str | None]]]:
    items = sorted({(i, label) for i, labels in enumerate(sets) for label in labels}, key=str)
    return {frozenset(c) for size in range(1, m + 1) for c in combinations(items, size)}


@given(some_people(), st.integers(0, 1 << 32), DELTAS)
def test_merging_stops_where_the_next_merger_would_lose_too_much(who: People, seed: int, delta: float) -> None:
    first = np.unique(np.random.default_rng(seed).integers(8, size=len(who)), return_inverse=True)[1]
    merged = merge_clusters(who.persons, who.levels, first, delta)
    assert len(set(zip(first.tolist(), merged.tolist(), strict=True))) == int(first.max()) + 1
    loss = _loss(who, merged)
    if _loss(who, first) > delta + 1e-9:
        np.testing.assert_array_equal(merged, first)
        return
    assert loss <= delta + 1e-9
    clusters = range(int(merged.max()) + 1)
    own = [_loss(who, merged, [i]) for i in clusters]
    seeds = [i for i in clusters if own[i] <= min(own) + 1e-9]
    assert len(clusters) == 1 or any(_nearest(who, merged, i) > delta - 1e-9 for i in seeds)


def _loss(who: People, part: np.ndarray, members: list[int] | None = None) -> float:
    """The loss of all persons, or that of a cluster made of some: its members' own, as shares of the whole table."""
    if members is None:
        return qi_ncp(who.persons, who.levels, part, sets=False)
    inside = np.isin(part, members)
    alone = np.where(inside, 0, 1 + np.arange(len(part)))
    return qi_ncp(who.persons, who.levels, alone, sets=False) * len(part) / int(inside.sum())


def _nearest(who: People, part: np.ndarray, i: int) -> float:
    """The loss of all persons after merging cluster i with the one with which it loses least."""
    others = [j for j in range(int(part.max()) + 1) if j != i]
    best = min(_loss(who, part, [i, j]) for j in others)
    near = [j for j in others if _loss(who, part, [i, j]) <= best + 1e-9]
    return max(_loss(who, np.where(part == j, i, part)) for j in near)


@given(some_people(), st.integers(1, 5), st.integers(1, 2))
def test_items_become_nodes_over_them_the_same_in_all_of_a_cluster(who: People, k: int, m: int) -> None:
    if len(who) < 2 * k:
        return
    items = Items.of(who.persons, item_levels(who.persons, who.levels))
    part = np.arange(len(who)) % 2
    node = protect_items(items, part, k, m)
    forest = items.forest
    assert (forest.path[forest.level[node], items.leaf] == node).all()
    for cluster in range(2):
        chosen = set(node[part[items.owner] == cluster].tolist())
        below = {leaf: [n for n in forest.path[:, leaf].tolist() if n in chosen] for leaf in items.leaf.tolist()}
        assert all(len(set(nodes)) <= 1 for nodes in below.values())


def test_a_rare_pair_is_raised_where_the_next_label_is_narrowest() -> None:
    codes = {"A1": "A", "A2": "A", "B1": "B", "B2": "B", "B3": "B"}
    sets = [["A1", "B1"]] * 2 + [["A2", "B1"]] + [["B1"], ["B2"], ["B2"], ["B3"], ["B3"], ["A2"]]
    who = people({"age": ["1"] * 9}, {"disease": sets}, {"disease": {"levels": [codes]}})
    items = Items.of(who.persons, item_levels(who.persons, who.levels))

    def texts(m: int) -> list[str]:
        found = items.published(protect_items(items, np.zeros(9, dtype=np.int64), 2, m))["disease"]
        text = found.domain.text.to_pylist()
        return [
            "|".join(text[c] for c in found.values[a:b]) for a, b in zip(found.starts, found.starts[1:], strict=False)
        ]

    assert texts(1) == ["A1|B1", "A1|B1", "A2|B1", "B1", "B2", "B2", "B3", "B3", "A2"]
    assert texts(2) == ["A|B1", "A|B1", "A|B1", "B1", "B2", "B2", "B3", "B3", "A"]


def test_clusters_merge_up_to_delta() -> None:
    who = people({"age": ["10", "10", "12", "12", "20", "20"]}, {"disease": [["A"], ["B"]] * 3})

    def ages(delta: float) -> list[str]:
        return sorted(set(slice_persons(who.persons, who.levels, Rmr(2, 2, delta)).quasi["age"].to_pylist()))

    assert ages(0.1) == ["10", "12", "20"]
    assert ages(0.2) == ["10-12", "20"]
    assert ages(1.0) == ["10-20"]


def test_facts_and_labels_with_missing_numbers() -> None:
    who = people({"age": ["10", None, "12", None], "town": ["x", "y", "x", "y"]}, {"disease": [["A"]] * 4})
    release = slice_persons(who.persons, who.levels, Rmr(4))
    asked = {"k": 4, "m": 2, "delta": 0.66}
    facts = {"method": "rmr", "link": "groups", "k": 4, "clusters": 1, "clusters_before": 1, "asked": asked}
    assert release.facts == facts
    assert release.quasi.to_pylist() == [{"age": "10-12 or missing", "town": "*", "gid_1": 1}] * 4
    assert release.loss["ncp"] == 1.0
    assert release.loss["sa_ncp"] == 0.0


def test_what_cannot_be() -> None:
    who = people({"age": ["1", "2", "3"]}, {"disease": [["A"], ["A"], ["A"]]})
    for method, message in (
        (Rmr(k=4), "3 persons are too few for k = 4"),
        (Rmr(k=0), "k must be a whole number"),
        (Rmr(k=2, m=0), "m must be a whole number of 1 or more, not 0"),
        (Rmr(k=2, delta=1.5), "delta must be a number from 0 to 1, not 1.5"),
    ):
        with pytest.raises(OptionError, match=message):
            slice_persons(who.persons, who.levels, method)
    with pytest.raises(OptionError, match="The study has no sensitive attribute"):
        slice_persons(people({"age": ["1"]}, {}).persons, {}, Rmr(k=1))

"""1:M-Generalization: its promises on random person tables, and small cases by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import People, by_gid, fingerprints, people, rows_by_gid, some_people
from veilmark.errors import OptionError
from veilmark.utility.sliced import qi_ncp
from veilmark.veil.items import Items, item_levels, joint_kinds
from veilmark.veil.onemany import OneMany, share_sets, slice_persons


def items_of(who: People) -> Items:
    return Items.of(who.persons, item_levels(who.persons, who.levels))


def shared(who: People, k: int) -> tuple[Items, np.ndarray]:
    items = items_of(who)
    return items, share_sets(items, k, np.random.default_rng(1))


@given(some_people(), st.integers(1, 6), st.integers(1, 3))
def test_sets_are_shared_by_k_and_l_diverse_in_every_class(who: People, k: int, l: int) -> None:  # noqa: E741
    if len(who) < k:
        return
    items, node = shared(who, k)
    often = Counter(joint_kinds(list(items.published(node).values())).tolist())
    if len(often) < l or max(often.values()) * l > len(who):
        with pytest.raises(OptionError, match="Lower k or l"):
            slice_persons(who.persons, who.levels, OneMany(k, l))
        return
    release = slice_persons(who.persons, who.levels, OneMany(k, l))
    assert len(release.quasi) == len(release.sensitive[0]) == len(who)
    assert min(Counter(sets for _, sets in fingerprints(release)).values()) >= k
    classes, labels = by_gid(release), rows_by_gid(release)
    assert {gid: len(of) for gid, of in classes.items()} == {gid: len(of) for gid, of in labels.items()}
    assert all(len(set(of)) == 1 for of in labels.values())
    assert len({of[0] for of in labels.values()}) == len(labels) == release.facts["classes"]
    for members in classes.values():
        own = Counter(members)
        assert len(members) >= k
        assert len(own) >= l
        assert max(own.values()) * l <= len(members)


@given(some_people(), st.integers(1, 6))
def test_labels_cover_the_values_that_they_stand_for(who: People, k: int) -> None:
    if len(who) < k:
        return
    items, node = shared(who, k)
    levels, forest = item_levels(who.persons, who.levels), items.forest
    assert (forest.path[forest.level[node], items.leaf] == node).all()
    for name, sets in items.published(node).items():
        texts = sets.domain.text.to_pylist()
        column = who.persons.sensitive[name]
        for i in range(len(who)):
            own = {texts[c] for c in sets.values[sets.starts[i] : sets.starts[i + 1]]}
            for value in column.values[column.starts[i] : column.starts[i + 1]]:
                above = {
                    of[int(c[value])].as_py() for of, c in zip(levels[name].labels, levels[name].codes, strict=True)
                }
                assert own & above
            assert len(own) == sets.lengths[i] <= column.lengths[i]


@given(some_people())
def test_with_k_1_nothing_of_the_sets_is_lost(who: People) -> None:
    items, node = shared(who, 1)
    np.testing.assert_array_equal(node, items.forest.path[0][items.leaf])


def test_those_below_k_keep_the_label_above() -> None:
    sets = [["A1"]] * 3 + [["A2"]] * 3 + [["B1"]] * 2 + [["B2"]] * 2 + [["C1"]] * 4
    codes = {"A1": "A", "A2": "A", "B1": "B", "B2": "B", "C1": "C"}
    who = people({"age": ["1"] * 14}, {"disease": sets}, {"disease": {"levels": [codes]}})
    items, node = shared(who, 3)
    published = items.published(node)["disease"]
    texts = published.domain.text.take(published.values).to_pylist()
    assert texts == ["A1"] * 3 + ["A2"] * 3 + ["B"] * 4 + ["C1"] * 4


def test_too_few_left_behind_take_some_of_the_largest_with_them() -> None:
    who = people({"age": ["1"] * 9}, {"disease": [["A"]] * 8 + [["B"]]})
    items, node = shared(who, 3)
    published = items.published(node)["disease"]
    assert Counter(published.domain.text.take(published.values).to_pylist()) == {"A": 6, "*": 3}
    who = people({"age": ["1"] * 8}, {"disease": [["A"]] * 4 + [["C"]] * 3 + [["B"]]})
    items, node = shared(who, 3)
    published = items.published(node)["disease"]
    assert Counter(published.domain.text.take(published.values).to_pylist()) == {"A": 4, "*": 4}


def test_many_numbers_without_hierarchy_become_ranges() -> None:
    who = people({"age": ["1"] * 32}, {"income": [[str(v)] for v in range(32)]})
    levels = item_levels(who.persons, who.levels)["income"]
    assert [len(labels) for labels in levels.labels] == [32, 16, 8, 4, 2, 1]
    assert levels.labels[4].to_pylist() == ["0-15", "16-31"]
    items, node = shared(who, 4)
    income = items.published(node)["income"]
    assert Counter(income.domain.text.take(income.values).to_pylist()) == {
        f"{low}-{low + 3}": 4 for low in range(0, 32, 4)
    }


def test_facts_and_loss() -> None:
    who = people(
        {"age": ["20", "21", "30", "31"] * 3},
        {"disease": [["A1", "B1"], ["A2"]] * 6},
        {"disease": {"levels": [{"A1": "A", "A2": "A", "B1": "B"}]}},
    )
    release = slice_persons(who.persons, who.levels, OneMany(k=3, seed=1))
    asked = {"k": 3, "l": 2}
    facts = {"method": "onemany", "link": "groups", "k": 6, "l": 2.0, "classes": 2, "sets": 2, "asked": asked}
    assert release.facts == facts
    assert set(release.quasi["gid_1"].to_pylist()) == {1, 2}
    assert release.groups == (("disease",),)
    part = np.array([0, 0, 1, 1] * 3)
    assert release.loss["ncp"] == pytest.approx(qi_ncp(who.persons, who.levels, part)) == pytest.approx(1 / 11)
    assert release.loss["sa_ncp"] == 0.0
    assert release.loss["nil"] == pytest.approx(0.5 / 11)
    again = slice_persons(who.persons, who.levels, OneMany(k=3, seed=1))
    assert again.quasi.equals(release.quasi)
    assert again.sensitive[0].equals(release.sensitive[0])


def test_what_cannot_be() -> None:
    who = people({"age": ["1", "2", "3"]}, {"disease": [["A"], ["A"], ["A"]]})
    with pytest.raises(OptionError, match="3 of 3 persons have the same one"):
        slice_persons(who.persons, who.levels, OneMany(k=2))
    with pytest.raises(OptionError, match="3 persons are too few for k = 4"):
        slice_persons(who.persons, who.levels, OneMany(k=4))
    with pytest.raises(OptionError, match="k must be a whole number"):
        slice_persons(who.persons, who.levels, OneMany(k=0))
    with pytest.raises(OptionError, match="The study has no sensitive attribute"):
        slice_persons(people({"age": ["1"]}, {}).persons, {}, OneMany(k=1))

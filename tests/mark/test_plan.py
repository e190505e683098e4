"""Who gets which decoys and covers: what is promised of every plan, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mark.test_discover import some_linked
from strength import examples
from veilmark.errors import OptionError
from veilmark.mark.code import needed_length
from veilmark.mark.marking import CopyMarking
from veilmark.mark.plan import decoy_pool, plan_marks
from veilmark.mark.pool import room

KEY = bytes(range(32))
NAMES = ("ada", "bob", "cyd", "dan")


def linked_classes(released, candidates, seed=0, smallest=5):
    """Some released classes, which link to 40 persons or more, and candidates of 10 to 39."""
    rng = np.random.default_rng(seed)
    published = np.append(rng.integers(smallest, 3 * smallest, released), np.zeros(candidates, dtype=np.int64))
    published[:1] = smallest
    population = np.append(rng.integers(40, 90, released), rng.integers(10, 40, candidates))
    population[:1] = 40
    codes = np.array([rng.integers(0, 9, len(published)), np.arange(len(published))], dtype=np.int32)
    outside = np.where(published > 0, 0, population - rng.integers(0, 3, len(published)))
    linked = some_linked(published.astype(np.int64), population, outside, codes)
    return replace(linked, places=(np.linspace(0, 1, len(linked.labels[0])), None), local=True)


def wide(names=NAMES, k=5, **given):
    return CopyMarking(tuple(names), k, **({"decoys": 2, "covers": 3, "risk": (1.0, 20.0)} | given))


@settings(max_examples=examples(60))
@given(
    st.integers(0, 1 << 20),
    st.integers(30, 60),
    st.integers(20, 60),
    st.integers(0, 5),
    st.integers(0, 3),
    st.sampled_from(["stratified", "size", "random", "risk"]),
    st.sampled_from([0.6, 1.0]),
    st.booleans(),
)
def test_nobody_shares_decoys_and_the_budget_is_kept(seed, released, candidates, decoys, covers, strategy, near, whole):
    linked = linked_classes(released, candidates, seed)
    if not decoys + covers:
        return
    marking = wide(decoys=decoys, covers=covers, strategy=strategy, near=near, budget=0.9)
    try:
        marks = plan_marks(linked, marking, KEY, whole)
    except OptionError:
        assert decoys * len(NAMES) > ceil(near * candidates * 0.2)
        return
    drawn = np.concatenate([np.empty(0), *marks.decoys])
    assert len(set(drawn)) == len(drawn) == decoys * len(NAMES)
    assert set(drawn) <= set(marks.pool) <= set(np.flatnonzero(linked.candidates(5)))
    for classes, sizes in zip(marks.decoys, marks.sizes, strict=True):
        assert (sizes >= linked.published[linked.published > 0].min()).all()
        assert (sizes <= linked.outside[classes]).all()
        assert np.isin(sizes, linked.published).all()
    assert (linked.published[marks.covers] > 0).all()
    assert len(set(marks.covers)) == len(marks.covers) <= 0.9 * released
    assert (marks.holds.sum(axis=0) == 1).all()
    assert (marks.holds.sum(axis=1) == covers).all()
    if strategy == "size" and covers:
        rest = np.setdiff1d(np.flatnonzero(linked.published > 0), marks.covers)
        assert linked.published[marks.covers].max() <= linked.published[rest].min(initial=1 << 60)
    assert marks.seen_once == pytest.approx(decoys / (decoys + covers) if decoys else 0)


def test_the_key_alone_decides():
    linked = linked_classes(40, 60)
    one, same, other = (plan_marks(linked, wide(), key) for key in (KEY, KEY, KEY[::-1]))
    assert [d.tolist() for d in one.decoys] == [d.tolist() for d in same.decoys] != [d.tolist() for d in other.decoys]
    assert one.holds.tolist() == same.holds.tolist()
    assert one.covers.tolist() == same.covers.tolist() != other.covers.tolist()


def test_decoys_and_covers_are_drawn_evenly():
    """Each class of the pool is as likely for each recipient: counts of 2,000 draws. Chance of failing: below 1e-6."""
    linked = linked_classes(12, 10, 1)
    pool = decoy_pool(linked, wide(("a", "b"), decoys=2, covers=2, budget=1.0))
    drawn, held = np.zeros((2, len(linked))), np.zeros((2, len(linked)))
    for i in range(2_000):
        marks = plan_marks(
            linked, wide(("a", "b"), decoys=2, covers=2, strategy="random", budget=1.0), i.to_bytes(32, "big")
        )
        for j in range(2):
            drawn[j, marks.decoys[j]] += 1
            held[j, marks.covers[marks.holds[j]]] += 1
    for counts, share in ((drawn[:, pool], 2 / len(pool)), (held[:, linked.published > 0], 2 / 12)):
        deviation = np.sqrt(2_000 * share * (1 - share))
        assert np.abs(counts - 2_000 * share).max() < 6 * deviation


def test_codes_withhold_from_each_by_chance():
    linked = linked_classes(400, 60)
    marks = plan_marks(linked, wide(collusion=2, covers=0, false_accusation=1e-3, budget=1.0), KEY)
    assert len(marks.covers) == marks.code.length == needed_length(4, 2, 1e-3).length
    assert marks.holds.shape == (4, marks.code.length)
    assert 0.3 < marks.holds.mean() < 0.7
    p, cost = marks.code.p, marks.cost()
    assert cost["seen_once"] == pytest.approx(2 / (2 + (p * (1 - p)).sum()))
    assert (cost["compared"], cost["covers"], cost["code"]["length"]) == (2, len(p), len(p))
    withheld = [linked.published[marks.withheld(i)].sum() for i in range(4)]
    assert cost["withheld_share"] == pytest.approx(max(withheld) / linked.published.sum())


def test_patterns_are_near_small_enough_withheld_and_different():
    linked = linked_classes(40, 60)
    marks = plan_marks(linked, wide(covers=5), KEY, whole=True)
    for i, (classes, patterns) in enumerate(zip(marks.decoys, marks.patterns, strict=True)):
        free = set(marks.withheld(i).tolist())
        for name, pattern in zip(classes.tolist(), patterns.tolist(), strict=True):
            fits = np.array([c for c in sorted(free) if linked.published[c] <= room(linked)[name]])
            assert linked.unlike(name, np.array([pattern])) == linked.unlike(name, fits).min()
            free.remove(pattern)
        assert (marks.sizes[i] == linked.published[patterns]).all()


def test_near_keeps_the_nearest_share():
    linked = linked_classes(40, 60)
    whole, half = decoy_pool(linked, wide()), decoy_pool(linked, wide(near=0.5))
    assert len(half) == ceil(len(whole) / 2)
    rest = np.setdiff1d(whole, half)
    assert linked.strangeness(half).max() <= linked.strangeness(rest).min() + 1e-12


@pytest.mark.parametrize("near", [0.3, 1.0])
def test_too_few_decoys_say_how_many_there_can_be(near):
    linked = linked_classes(40, 60)
    with pytest.raises(OptionError, match="That is enough for") as said:
        plan_marks(linked, wide(decoys=100, near=near), KEY)
    most = int(re.search(r"enough for (\d+) for each of 4", str(said.value)).group(1))
    plan_marks(linked, wide(decoys=most, near=near), KEY)
    with pytest.raises(OptionError):
        plan_marks(linked, wide(decoys=most + 1, near=near), KEY)


def test_fewer_candidates_than_recipients():
    linked = linked_classes(40, 2)
    with pytest.raises(OptionError, match=r"enough for 1 for each of [12] recipients"):
        plan_marks(linked, wide(), KEY)
    with pytest.raises(OptionError, match="enough for none"):
        plan_marks(linked_classes(40, 0), wide(), KEY)
    with pytest.raises(OptionError, match=r"risks are 1\.\d\d to \d"):
        plan_marks(linked_classes(40, 60), wide(risk=(30.0, 31.0)), KEY)


def test_candidates_with_too_few_persons_for_the_records_of_a_class():
    linked = linked_classes(40, 60)
    many = replace(linked, published=linked.published * 1_000)
    with pytest.raises(OptionError, match="larger population, or a table with fewer records") as said:
        plan_marks(many, wide(), KEY)
    assert "more classes have too few suitable persons" in str(said.value)
    assert "Widen risk=" not in str(said.value)


def test_too_many_covers_say_how_many_there_can_be():
    linked = linked_classes(50, 60)
    with pytest.raises(OptionError, match="At most 6 per recipient"):
        plan_marks(linked, wide(covers=20), KEY)
    plan_marks(linked, wide(covers=6), KEY)


def test_a_code_that_is_too_long_says_what_coalition_there_can_be():
    names = [f"r{i}" for i in range(30)]
    linked = linked_classes(1_200, 60)
    with pytest.raises(OptionError, match=r"These are enough for coalitions of \d") as said:
        plan_marks(linked, wide(names, decoys=0, covers=0, collusion=9), KEY)
    most = int(re.search(r"coalitions of (\d)", str(said.value)).group(1))
    plan_marks(linked, wide(names, decoys=0, covers=0, collusion=most), KEY)
    with pytest.raises(OptionError):
        plan_marks(linked, wide(names, decoys=0, covers=0, collusion=most + 1), KEY)
    with pytest.raises(OptionError, match="These are enough for none"):
        plan_marks(linked_classes(20, 60), wide(names, decoys=0, covers=0, collusion=2), KEY)


def test_decoys_smaller_than_every_released_class_are_not_taken():
    linked = linked_classes(30, 40, smallest=20)
    marks = plan_marks(linked, wide(k=5), KEY)
    assert (linked.outside[marks.pool] >= 20).all()
    assert (linked.outside[np.flatnonzero(linked.candidates(5))] < 20).any()


def test_loss_by_counting():
    linked = linked_classes(30, 40)
    linked = replace(linked, suppressed=np.where(linked.published > 0, 0, 2))
    marks = plan_marks(linked, wide(), KEY)
    sizes, everyone = linked.published, int(linked.published.sum() + linked.suppressed.sum())
    before = {"dm_star": float((sizes**2).sum() + (linked.suppressed**2).sum()), "dm": 0.0}
    before["dm"] = float((sizes**2).sum() + linked.suppressed.sum() * everyone)
    star, dm, average = [], [], []
    for i in range(4):
        kept = [int(n) for j, n in enumerate(sizes) if n and j not in marks.withheld(i)] + marks.sizes[i].tolist()
        lost = [int(sizes[j]) for j in marks.withheld(i)]
        star.append(sum(n * n for n in kept + lost + linked.suppressed.tolist()))
        dm.append(sum(n * n for n in kept) + (sum(lost) + int(linked.suppressed.sum())) * everyone)
        average.append(sum(kept) / len(kept))
    after = marks.loss(before)
    assert after["dm_star"] == pytest.approx(np.mean(star))
    assert after["dm"] == pytest.approx(np.mean(dm))
    assert after["average_class"] == pytest.approx(np.mean(average))


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"names": ()}, "at least one recipient"),
        ({"names": ("ada", " ")}, "at least one recipient"),
        ({"names": ("ada", "bob", "ada")}, "'ada' is named twice"),
        ({"decoys": -1}, "0 or more"),
        ({"decoys": 0, "covers": 0}, "The copies would be identical"),
        ({"collusion": 2}, "not both"),
        ({"covers": 0, "collusion": 5}, "1 to 4"),
        ({"false_accusation": 0}, "between 0 and 1"),
        ({"risk": (2.0, 1.0)}, "two increasing numbers"),
        ({"budget": 0}, "budget"),
        ({"near": 0}, "near="),
        ({"near": 1.5}, "near="),
    ],
)
def test_what_cannot_be_asked_for(given, word):
    with pytest.raises(OptionError, match=word):
        wide(**given)

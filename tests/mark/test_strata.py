"""Classes to be withheld: of every size alike, of every label as little as possible, and what groups lose by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mark.test_discover import some_linked
from mark.test_plan import KEY, wide
from strength import examples
from veilmark.errors import OptionError
from veilmark.mark.code import stream
from veilmark.mark.plan import plan_marks
from veilmark.mark.strata import _least_share, _within, lost_by_label, spread, stratified


def chance(linked):
    """A random number for each released class."""
    return stream(KEY, "spread", int((linked.published > 0).sum()), "<u8")


def grid(seed, classes, labels=(5, 4, 3)):
    """Released classes of skewed sizes with several quasi-identifiers."""
    rng = np.random.default_rng(seed)
    published = np.maximum(5, rng.lognormal(2.5, 1, classes)).astype(np.int64)
    codes = np.array([rng.integers(0, n, classes) for n in labels], dtype=np.int32)
    linked = some_linked(published, published * 10, None, codes)
    return replace(linked, places=(np.linspace(0, 1, len(linked.labels[0])), None, None))


def shares(linked, chosen):
    """The share of each label's records that some classes have, by looking at every class."""
    found = {}
    for i, codes in enumerate(linked.codes):
        for label in set(codes.tolist()):
            own = [c for c in range(len(linked)) if codes[c] == label and linked.published[c]]
            gone = sum(int(linked.published[c]) for c in own if c in set(chosen.tolist()))
            found[i, label] = gone / sum(int(linked.published[c]) for c in own)
    return found


@settings(max_examples=examples(40))
@given(st.integers(0, 1 << 20), st.integers(1, 120), st.floats(0, 1))
def test_so_many_different_released_classes(seed, classes, part):
    linked = grid(seed, classes)
    linked = replace(linked, published=np.where(np.arange(classes) % 3 == 1, 0, linked.published))
    released = np.flatnonzero(linked.published > 0)
    order = spread(linked, chance(linked))
    assert sorted(order) == released.tolist()
    count = int(part * len(released))
    chosen = stratified(linked, count, chance(linked))
    assert len(set(chosen.tolist())) == len(chosen) == count
    assert set(chosen.tolist()) <= set(released.tolist())


@settings(max_examples=examples(40))
@given(st.integers(0, 1 << 20), st.integers(20, 80), st.floats(0.01, 0.99))
def test_no_label_bears_more_than_the_share(seed, classes, share):
    linked = grid(seed, classes)
    found = _within(linked, spread(linked, chance(linked)), share)
    assert max(shares(linked, found).values(), default=0) <= share + 1e-6


@settings(max_examples=examples(20))
@given(st.integers(0, 1 << 20), st.integers(5, 40))
def test_labels_bear_little_more_than_the_least_that_is_possible(seed, count):
    linked = grid(seed, 150)
    least = _least_share(linked, spread(linked, chance(linked)), count)
    assert len(_within(linked, spread(linked, chance(linked)), least)) >= count
    worst = max(shares(linked, stratified(linked, count, chance(linked))).values())
    # No choice of so many classes has fewer records than the smallest ones have.
    floor = np.sort(linked.published)[:count].sum() / linked.published.sum()
    assert floor - 1e-9 <= worst <= min(1.2 * least + 1e-9, 1)


def test_any_beginning_has_all_sizes_but_the_largest():
    linked = grid(1, 1_000)
    linked = replace(linked, published=np.random.default_rng(1).permutation(np.arange(5, 1_005)))
    order = spread(linked, chance(linked))
    for count in (80, 160, 400):
        counts = np.histogram(linked.published[order[:count]], [5, 165, 325, 485, 645, 805])[0]
        assert (counts == count / 5).all()
    assert linked.published[order[800:]].min() == 805


def test_marks_survive_that_the_smallest_quarter_is_dropped():
    linked = grid(2, 1_000, (12, 9, 7))
    small = np.argsort(linked.published, kind="stable")[:250]
    kept = {}
    for strategy in ("stratified", "size"):
        marks = plan_marks(linked, wide(decoys=0, covers=25, strategy=strategy), KEY)
        kept[strategy] = (~np.isin(marks.covers, small)).mean()
    assert kept["size"] == 0
    assert kept["stratified"] > 0.6


def test_groups_lose_less_than_by_size():
    linked = grid(3, 400, (12, 9, 7))
    # Small classes in one group of persons: by size, this group bears all.
    codes = linked.codes.copy()
    codes[1] = np.where(linked.published <= np.quantile(linked.published, 0.2), 0, 1 + codes[1] % 8)
    uneven = replace(linked, codes=codes)
    found = {
        s: plan_marks(uneven, wide(decoys=0, covers=20, strategy=s), KEY).cost()["most_lost"]
        for s in ("stratified", "size")
    }
    assert found["size"] > 0.7
    assert found["stratified"] < 0.5


@settings(max_examples=examples(30))
@given(st.integers(0, 1 << 20), st.integers(1, 4), st.integers(1, 60))
def test_what_groups_lose(seed, recipients, classes):
    linked = grid(seed, classes)
    rng = np.random.default_rng(seed)
    withheld = [np.flatnonzero(rng.random(classes) < 0.3) for _ in range(recipients)]
    found = lost_by_label(
        linked, [np.where(np.isin(np.arange(len(linked)), of), linked.published, 0) for of in withheld]
    )
    slow = [shares(linked, gone) for gone in withheld]
    for i, column in enumerate(linked.columns):
        labels = sorted({label for at, label in slow[0] if at == i})
        most = {label: max(of[i, label] for of in slow) for label in labels}
        records = {label: int(linked.published[linked.codes[i] == label].sum()) for label in labels}
        told = found[column]
        assert told["worst"].share == pytest.approx(max(most.values()))
        assert told["smallest"].records == min(records.values())
        names = {linked.labels[i][label].as_py(): label for label in labels}
        for of in told.values():
            assert of.records == records[names[of.label]]
            assert of.share == pytest.approx(most[names[of.label]])
        assert ("lowest" in told) == (i == 0)
        if i == 0:
            assert (names[told["lowest"].label], names[told["highest"].label]) == (labels[0], labels[-1])


def test_a_limit_that_cannot_be_kept_is_refused():
    linked = grid(3, 400, (12, 9, 7))
    worst = plan_marks(linked, wide(decoys=0, covers=20), KEY).cost()["most_lost"]
    plan_marks(linked, wide(decoys=0, covers=20, most_lost=worst + 1e-9), KEY)
    with pytest.raises(
        OptionError, match=r"would lack \d+\.\d% of the [\d,]+ records with q\d .*most_lost= allows at most 5\.0%"
    ):
        plan_marks(linked, wide(decoys=0, covers=20, most_lost=0.05), KEY)
    with pytest.raises(OptionError, match=r"above 0 and at most 1, not 25\. Try 0\.25"):
        wide(most_lost=25)

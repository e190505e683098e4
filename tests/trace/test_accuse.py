"""Who is named: probabilities by going through all draws, leakers found whatever they did, the innocent left alone."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from marks import ABOVE, COLUMNS, EVERY, as_table, copies, marked
from strength import examples, trials
from veilmark.errors import DataError
from veilmark.trace.accuse import (
    best_probability,
    drawn_tails,
    together,
    trace_file,
)
from veilmark.trace.covers import alone_tails

NAMES = ("ada", "bob", "cyd", "dan", "eve", "fay")
seeds = st.integers(0, 1 << 30)


def valid(p_values):
    """Of equally likely probabilities, a share of at most x is at most x."""
    counts = Counter(np.round(p_values, 9))
    below = 0
    for p in sorted(counts):
        below += counts[p]
        assert below / len(p_values) <= p + 1e-6


# Probabilities: what leakers do is any function of what they have.


def whim(seed, known, of):
    """What leakers put into a leak: anything, the same whenever they know the same."""
    rng = random.Random(f"{seed} {sorted(known)}")
    share = rng.random()
    return {x for x in of if rng.random() < share}


FRAMES = {
    "whim": lambda seed, own, of: whim(seed, own, of),
    "all but mine": lambda seed, own, of: of - own,
    "all": lambda seed, own, of: of,
    "mine and a whim": lambda seed, own, of: own | whim(seed, own, of),
}


def draws(pool, each, recipients=3):
    """All ways to give each recipient so many classes of a pool, nobody the same: masks, a row a recipient."""
    if not recipients:
        yield np.zeros((0, pool), dtype=bool)
        return
    for rest in draws(pool, each, recipients - 1):
        free = np.flatnonzero(~rest.any(axis=0))
        for own in combinations(free.tolist(), each):
            yield np.vstack([rest, np.isin(np.arange(pool), own)])


@settings(max_examples=examples(25))
@given(seeds, st.sampled_from(sorted(FRAMES)), st.sampled_from([(1, 5), (1, 6), (2, 6), (2, 7)]), st.integers(1, 2))
def test_decoys_cannot_frame_anybody(seed, frame, case, leakers):
    """The last of three recipients is innocent."""
    each, pool = case
    clear, every = np.random.default_rng(seed).random(pool) < 0.8, set(range(pool))
    found = []
    for drawn in draws(pool, each):
        own = set(np.flatnonzero(drawn[:leakers].any(axis=0)).tolist())
        there = np.isin(np.arange(pool), list(FRAMES[frame](seed, own, every)))
        found.append(drawn_tails(drawn, clear, there)[2])
    valid(found)


@settings(max_examples=examples(25))
@given(seeds, st.sampled_from(sorted(FRAMES)), st.booleans())
def test_classes_for_one_alone_frame_nobody_if_one_leaks(seed, frame, anybody):
    told = np.random.default_rng(seed).random(6) < 0.9
    found = []
    for holds in draws(6, 2):
        own = set(np.flatnonzero(holds[0]).tolist()) if anybody else set()
        there = np.isin(np.arange(6), list(FRAMES[frame](seed, own, set(range(6)))))
        found.append(alone_tails(holds, told, there)[2])
    valid(found)


@given(st.integers(1, 40), st.integers(1, 40))
def test_two_kinds_of_evidence_together(one, other):
    grid = [together(i / one, j / other) for i in range(1, one + 1) for j in range(1, other + 1)]
    valid(grid)
    assert together(0.3) == 0.3
    assert together() == 1.0
    assert together(1e-200, 1e-200) > 0


def test_best_probability_is_that_of_a_whole_copy():
    rng = np.random.default_rng(5)
    for decoys, covers in ((3, 0), (0, 6), (2, 5)):
        of = marked(rng, NAMES, covers=covers, decoys=decoys, pool=90)
        found = trace_file([of], as_table(copies(of)[2]), 0.5).suspects[0]
        assert found.name == "cyd"
        assert found.p_value == pytest.approx(best_probability(6, decoys, 90 - 6 * decoys, covers), rel=1e-6)
    assert best_probability(2, 0, 0, 9) == 1.0
    assert best_probability(1, 2, 100, 0) == pytest.approx(1 / 5151)


# Leaks.


def mixed(rng, held, way):
    """The classes of several copies, mixed."""
    every = sorted(set().union(*held))
    count = np.array([sum(c in h for h in held) for c in every])
    need = {
        "union": count >= 1,
        "intersection": count == len(held),
        "majority": 2 * count > len(held),
        "minority": (2 * count < len(held)) | (count == len(held)),
        "mix": rng.random(len(every)) < count / len(held),
        "coin": (count == len(held)) | (rng.random(len(every)) < 0.5),
    }[way]
    return {c for c, stays in zip(every, need, strict=True) if stays}


WAYS = ("union", "intersection", "majority", "minority", "mix", "coin")


@pytest.fixture(scope="module")
def coded():
    return marked(np.random.default_rng(2), NAMES, collusion=3, length=500, classes=1_200, pool=200)


@pytest.fixture(scope="module")
def alone():
    return marked(np.random.default_rng(3), NAMES, covers=20, decoys=3, classes=1_200, pool=200)


def named(of, leak, limit=1e-6):
    return set(trace_file([of], leak, limit).accused)


CHANGES = {
    "nothing": lambda rng, t: t,
    "rows shuffled": lambda rng, t: t.take(rng.permutation(len(t))),
    "rows twice": lambda rng, t: pa.concat_tables([t, t]),
    "two thirds of the classes": lambda rng, t: t.take(np.sort(rng.permutation(len(t))[: len(t) * 2 // 3])),
    "another column": lambda rng, t: t.append_column("more", pa.array(range(len(t)))),
    "noise": lambda rng, t: pa.concat_tables([t, as_table(EVERY.T[rng.integers(0, EVERY.shape[1], 400)].tolist())]),
    "strange rows": lambda rng, t: pa.concat_tables(
        [t, pa.table({c: [f"?{i}" for i in range(2_000)] for c in COLUMNS})]
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["coded", "alone"])
def test_a_changed_copy_still_names_its_recipient(request, kind, change):
    of = request.getfixturevalue(kind)
    rng = np.random.default_rng(4)
    for i, name in list(enumerate(NAMES))[::2]:
        assert named(of, CHANGES[change](rng, as_table(copies(of)[i]))) == {name}


def sparse(kind):
    """Few of the possible classes, so that some can still be told when a column is coarser or gone."""
    given = {"collusion": 2, "length": 160} if kind == "coded" else {"covers": 40, "decoys": 5}
    return marked(np.random.default_rng(6), NAMES[:4], classes=340, pool=60, **given)


@pytest.mark.parametrize("kind", ["coded", "alone"])
@pytest.mark.parametrize(
    ("levels", "columns"), [({"place": 1}, COLUMNS), ({"year": 1}, COLUMNS), ({}, ("place", "year"))]
)
def test_coarser_values_and_missing_columns_name_the_leaker_or_nobody(kind, levels, columns):
    of = sparse(kind)
    found = [named(of, as_table(copies(of)[i], levels, columns), 1e-3) for i in range(4)]
    assert all(who <= {of.names[i]} for i, who in enumerate(found))
    assert sum(map(bool, found)) >= 3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [2, 3])
def test_mixed_copies_name_leakers_alone(coded, way, size):
    rng = np.random.default_rng(7)
    held = copies(coded)
    for coalition in list(combinations(range(6), size))[::4]:
        who = named(coded, as_table(mixed(rng, [held[i] for i in coalition], way)))
        assert who
        assert who <= {NAMES[i] for i in coalition}


@pytest.mark.parametrize("way", WAYS)
def test_larger_coalitions_and_deletions_name_nobody_else(coded, way):
    rng = np.random.default_rng(8)
    held = copies(coded)
    for coalition in (range(4), range(1, 6)):
        leak = mixed(rng, [held[i] for i in coalition], way)
        leak = {c for c in leak if rng.random() < 0.7}
        assert named(coded, as_table(leak)) <= {NAMES[i] for i in coalition}


@pytest.mark.parametrize("decoys", [0, 3])
def test_a_release_with_one_kind_of_marks(decoys):
    rng = np.random.default_rng(9)
    covers = 0 if decoys else 12
    of = marked(rng, NAMES, covers=covers, decoys=decoys, pool=500)
    assert named(of, as_table(copies(of)[1]), 1e-5) == {"bob"}
    assert named(of, as_table(set.intersection(*copies(of))), 1e-5) == set()


def test_evidence_can_be_followed(alone):
    found = trace_file([alone], as_table(copies(alone)[0]), 1e-6).suspects[0]
    kinds = Counter(row["kind"] for row in found.evidence)
    assert (found.name, found.tail, kinds) == ("ada", "bound", {"decoy class": 3, "cover class": 20})
    own = {tuple(row[c] for c in COLUMNS) for row in alone.decoys["ada"]}
    assert {tuple(row[c] for c in COLUMNS) for row in found.evidence if row["kind"] == "decoy class"} == own
    assert all(row["held_by"] == 1 for row in found.evidence if row["kind"] == "cover class")
    other = trace_file([alone], as_table(copies(alone)[0]), 1e-6).suspects[1]
    assert (other.evidence, other.p_value) == ((), 1.0)


def leak_of_innocents(rng, of, coalition):
    """Some mix of the coalition's copies, with classes left out and others made up."""
    held = copies(of)
    leak = mixed(rng, [held[i] for i in coalition], rng.choice(WAYS)) if len(coalition) else set()
    leak = {c for c in leak if rng.random() < rng.choice([0.5, 1.0])}
    known = {tuple(c) for c in np.concatenate([of.class_codes, of.pool_codes], axis=1).T.tolist()}
    return leak | {c for c in known if rng.random() < rng.choice([0.0, 0.05, 0.3])}


def test_innocents_are_named_no_more_often_than_promised():
    """A release anew each time, leaked by some of six. Any innocent is named in 5 % of the trials, or less: that it is by
    chance more often than the test allows has a probability below 1e-6."""
    rng = np.random.default_rng(10)
    wrong, times = 0, trials(120)
    for trial in range(times):
        given = ({"collusion": 2, "length": 40}, {"covers": 3})[trial % 2]
        of = marked(rng, NAMES, classes=120, pool=30, decoys=2, **given)
        coalition = rng.permutation(6)[: rng.integers(0, 4 if trial % 2 == 0 else 2)]
        leak = leak_of_innocents(rng, of, coalition)
        wrong += bool(named(of, as_table(leak), 0.05) - {NAMES[i] for i in coalition})
    assert wrong <= stats.binom.ppf(1 - 1e-7, times, 0.05)


def test_innocents_are_never_named():
    """With a probability of 1e-9 a trial, any is named in hundreds of trials with one below 1e-6."""
    rng = np.random.default_rng(11)
    for trial in range(trials(80)):
        given = ({"collusion": 3, "length": 200}, {"covers": 8})[trial % 2]
        of = marked(rng, NAMES, classes=400, pool=60, decoys=3, **given)
        coalition = rng.permutation(6)[: rng.integers(1, 6 if trial % 2 == 0 else 2)]
        leak = leak_of_innocents(rng, of, coalition)
        assert named(of, as_table(leak), 1e-9) <= {NAMES[i] for i in coalition}


# Several releases, and what cannot be compared.


def test_all_releases_are_allowed_for(coded, alone):
    leak = as_table(copies(alone)[3])
    one, both = trace_file([alone], leak, 1e-6), trace_file([alone, coded], leak, 1e-6)
    assert (one.tested, both.tested) == (6, 12)
    assert both.suspects[0].p_value == pytest.approx(2 * one.suspects[0].p_value)
    assert (both.accused, both.suspects[0].release) == (("dan",), alone.release)


def test_a_recipient_of_several_releases_is_named_once():
    rng = np.random.default_rng(12)
    releases = [marked(rng, NAMES, f"r0000000{i}", covers=15, decoys=3) for i in range(2)]
    leak = pa.concat_tables([as_table(copies(of)[1]) for of in releases])
    found = trace_file(releases, leak, 1e-3)
    assert set(found.accused) <= {"bob"}


def test_releases_that_share_nothing_are_left_aside(alone):
    labels = {c: [[f"{c}{i}" for i in range(len(ABOVE[old][0]))]] for c, old in zip("abc", COLUMNS, strict=True)}
    changes = {"release": "r00000009", "columns": ("a", "b", "c"), "identity": ("d",), "above": labels}
    sparse = marked(np.random.default_rng(13), NAMES, classes=200, pool=100, covers=5)
    other = type(alone)(**{**vars(sparse), **changes, "decoys": alone.decoys})
    leak = as_table(copies(alone)[3])
    found = trace_file([other, alone], leak, 1e-6)
    assert (found.accused, found.tested) == (("dan",), 6)
    assert "r00000009 was skipped" in found.notes[0]
    with pytest.raises(DataError, match="'a', 'b', 'c'"):
        trace_file([other], leak, 1e-6)


def test_labels_of_every_level_are_known():
    assert all(len(level) == len(levels[0]) for levels in ABOVE.values() for level in levels)

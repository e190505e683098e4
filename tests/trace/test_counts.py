"""Classes count by how many of their records are there: leakers are named whatever rows they make up, move, merge or drop,
and the innocent are left alone, over fresh keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from marks import ABOVE, COLUMNS, EVERY, as_table, marked, rows_of
from strength import examples, trials
from veilmark.trace.accuse import trace_file
from veilmark.trace.counts import Cells, count_covers, spread_chance

NAMES = tuple(f"recipient {i}" for i in range(8))
SHAPE = tuple(len(ABOVE[c][0]) for c in COLUMNS)


def release(rng, **given):
    """Classes of 5 to 60 records, half of the possible ones; covers among all sizes."""
    sizes = np.maximum(5, rng.lognormal(2.5, 0.8, 1_200)).astype(int)
    return marked(rng, NAMES, classes=1_200, pool=150, sizes=sizes, **({"collusion": 2, "length": 140} | given))


def missing(of, i):
    return of.class_codes[:, of.covers[~of.holds[i]]]


def together(*rows):
    return np.concatenate(rows, axis=1)


def padded(each):
    return lambda rng, of, i: together(rows_of(of, i), np.repeat(missing(of, i), each, axis=1))


def mimicking(rng, of, i):
    lacking = missing(of, i)
    return together(rows_of(of, i), np.repeat(lacking, rng.choice(of.sizes, lacking.shape[1]), axis=1))


def perturbed(rng, of, i):
    rows = rows_of(of, i)
    for column, labels in zip(rows, SHAPE, strict=True):
        column[:] = np.where(rng.random(len(column)) < 0.2, rng.integers(0, labels, len(column)), column)
    return rows


def swapped(rng, of, i):
    rows = rows_of(of, i)
    for column in rows:
        column[:] = np.where(rng.random(len(column)) < 0.2, rng.permutation(column), column)
    return rows


def everything(of):
    return np.repeat(of.class_codes, of.sizes, axis=1)


def without_small(rng, of, i):
    rows = rows_of(of, i)
    _, nth, counts = np.unique(np.ravel_multi_index(tuple(rows), SHAPE), return_inverse=True, return_counts=True)
    return rows[:, ~np.isin(nth, np.argsort(counts, kind="stable")[: len(counts) // 4])]


ATTACKS = {
    "a row for each missing class": padded(1),
    "three rows for each missing class": padded(3),
    "twelve rows for each missing class": padded(12),
    "as many rows as other classes have": mimicking,
    "a fifth of the cells changed": perturbed,
    "a fifth of the cells swapped": swapped,
    "merged with an unmarked table": lambda rng, of, i: together(rows_of(of, i), everything(of)),
    "every row twice": lambda rng, of, i: np.repeat(rows_of(of, i), 2, axis=1),
    "a third of the rows": lambda rng, of, i: (r := rows_of(of, i))[:, rng.random(r.shape[1]) < 0.33],
    "the smallest quarter of the classes dropped": without_small,
    "half of the places": lambda rng, of, i: (r := rows_of(of, i))[:, r[0] < 20],
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_leaker_is_named_and_nobody_else(attack):
    for seed in range(3):
        rng = np.random.default_rng([41, seed])
        of = release(rng)
        i = int(rng.integers(len(NAMES)))
        assert trace_file([of], as_table(ATTACKS[attack](rng, of, i).T), 1e-6).accused == (NAMES[i],)


@pytest.mark.parametrize("attack", ["a row for each missing class", "three rows for each missing class"])
def test_classes_kept_for_one_alone_are_counted_too(attack):
    rng = np.random.default_rng(42)
    of = release(rng, collusion=None, covers=15, decoys=0)
    others = together(*(of.class_codes[:, of.covers[of.holds[j]]] for j in range(len(NAMES)) if j != 3))
    each = 1 if "a row" in attack else 3
    leak = together(rows_of(of, 3), np.repeat(others, each, axis=1))
    assert trace_file([of], as_table(leak.T), 1e-4).accused == (NAMES[3],)


def test_made_up_decoys_do_not_hide_a_decoy():
    """A row for each class of the pool: the leaker's own decoys have more."""
    rng = np.random.default_rng(43)
    of = release(rng, collusion=None, covers=0, decoys=3)
    leak = together(rows_of(of, 2), of.pool_codes)
    assert trace_file([of], as_table(leak.T), 1e-4).accused == (NAMES[2],)


def test_signs_of_changes_are_told():
    rng = np.random.default_rng(44)
    of = release(rng)
    notes = {name: " ".join(trace_file([of], as_table(ATTACKS[name](rng, of, 1).T), 1e-6).notes) for name in ATTACKS}
    assert "made-up rows" in notes["three rows for each missing class"]
    assert "values seem to be changed" in notes["a fifth of the cells changed"]
    assert "2.0 times their records" in notes["merged with an unmarked table"]
    plain = " ".join(trace_file([of], as_table(rows_of(of, 1).T), 1e-6).notes)
    assert not any(word in plain for word in ("made-up", "changed", "times their records"))


# Soundness: whatever is done to a leak without the key, innocents' probabilities are no smaller than chance has them.


def framing(rng, of, leakers):
    """Anything that can be done with some copies and all that is public: labels, classes, sizes, even which are covers."""
    rows = together(*(rows_of(of, i) for i in leakers)) if len(leakers) else everything(of)
    rows = rows[:, rng.random(rows.shape[1]) < rng.choice([0.3, 1.0])]
    some = of.class_codes[:, rng.permutation(of.class_codes.shape[1])[: rng.integers(1, 600)]]
    if rng.random() < 0.5:
        rows = together(rows, np.repeat(some, rng.integers(1, 40, some.shape[1]), axis=1))
    if rng.random() < 0.5:
        covers = of.class_codes[:, of.covers[rng.random(len(of.covers)) < 0.5]]
        gone = np.isin(np.ravel_multi_index(tuple(rows), SHAPE), np.ravel_multi_index(tuple(covers), SHAPE))
        rows = rows[:, ~gone]
    if rng.random() < 0.3:
        rows = together(rows, EVERY[:, rng.integers(0, EVERY.shape[1], 2_000)])
    levels = {c: int(rng.integers(2)) for c in COLUMNS if rng.random() < 0.3}
    return as_table(rows.T, levels)


def test_innocents_probabilities_are_those_of_chance():
    """Over fresh keys and edits, an innocent's probability is at most 0.02 in 2 % of cases, or less, and likewise 0.1; each
    trial counts once, for its luckiest innocent, whose probability allows for all."""
    rng = np.random.default_rng(45)
    times, low = trials(150), []
    for trial in range(times):
        kind = ({"collusion": 2, "length": 60}, {"collusion": None, "covers": 6})[trial % 2]
        of = marked(rng, NAMES[:5], classes=300, pool=40, sizes=rng.integers(5, 40, 300), **kind)
        leakers = rng.permutation(5)[: rng.integers(0, 3 if trial % 2 == 0 else 2)]
        found = trace_file([of], framing(rng, of, leakers), 0.5)
        guilty = {NAMES[i] for i in leakers}
        low.append(min(s.p_value for s in found.suspects if s.name not in guilty))
    for limit in (0.02, 0.1):
        assert (np.array(low) <= limit).sum() <= stats.binom.ppf(1 - 1e-7, times, limit)


def test_what_is_read_does_not_depend_on_anybodys_marks():
    """The same leak, and a release that differs in nothing but who holds what: every cover is read the same."""
    rng = np.random.default_rng(46)
    of = release(rng)
    leak = as_table(perturbed(rng, of, 0).T)
    other = type(of)(**{**vars(of), "holds": rng.permutation(of.holds.ravel()).reshape(of.holds.shape)})
    one, two = (trace_file([m], leak, 0.5).marks[0] for m in (of, other))
    for column in ("told", "group", "in_leak", "by_count", "by_share"):
        assert one[column].equals(two[column]) or column.startswith("by_")
        if column.startswith("by_"):
            np.testing.assert_array_equal(one[column].to_numpy(), two[column].to_numpy())


# The parts.


@given(st.floats(0.1, 50), st.floats(0.05, 4))
def test_counts_have_the_mean_and_variance_asked_for(mean, ratio):
    counts = np.arange(2_000)
    chance = spread_chance(counts, np.full(2_000, mean), np.full(2_000, ratio * mean))
    assert chance.sum() == pytest.approx(1, abs=1e-6)
    assert counts @ chance == pytest.approx(mean, rel=0.02, abs=0.02)
    if ratio >= 1.05:
        assert (counts - mean) ** 2 @ chance == pytest.approx(ratio * mean, rel=0.05)


@settings(max_examples=examples(20))
@given(st.integers(0, 1 << 30), st.floats(0.2, 1.0))
def test_a_cover_counts_by_its_share(seed, rate):
    """Held covers have their share of the records, the others none: those are told apart by counts, one by one."""
    rng = np.random.default_rng(seed)
    size = rng.integers(15, 60, 400)
    held = rng.random(100) < 0.5
    stays = np.append(held, np.ones(300, dtype=bool))
    count = rng.binomial(size, rate) * stays
    common = np.append(np.zeros(100), size[100:])
    labels = np.array(np.unravel_index(rng.permutation(400), (20, 20)))
    cells = Cells(labels, count, common, np.zeros(400, dtype=bool), np.arange(100), size[:100], np.full(100, 0.5))
    found = count_covers(cells)
    wrong = (found.shown > 0.5) != held
    assert wrong.mean() <= 0.03
    assert found.padded == 0
    assert found.strayed == 0
    assert pa.array(found.share[~held]).to_pylist() == [0.0] * int((~held).sum())


def test_without_a_class_of_everybody_counts_say_nothing():
    cells = Cells(
        np.zeros((1, 3), dtype=int),
        np.array([4, 0, 9]),
        np.zeros(3),
        np.zeros(3, dtype=bool),
        np.array([0, 1]),
        np.array([5, 5]),
        np.full(2, 0.5),
    )
    assert count_covers(cells).shown.tolist() == [0.5, 0.5]

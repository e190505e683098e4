"""Marks that stay: a recipient has the same covers in each release of a study, and is named by what is in all its copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mark.test_discover import some_linked
from mark.test_plan import wide
from veilmark.mark.plan import plan_marks
from veilmark.trace.covers import alone_tails
from veilmark.trace.scores import score

NAMES = tuple(f"recipient {i}" for i in range(30))
LEDGER = bytes(range(32))


def successive(releases=3, classes=2_000, seed=0):
    """Releases of a study whose data change: a twentieth of the classes comes and goes, and sizes move."""
    rng = np.random.default_rng(seed)
    sizes = 20 + 3 * rng.permutation(classes)
    codes = np.array([np.arange(classes) // 40, np.arange(classes) % 40], dtype=np.int32)
    found = []
    for _ in range(releases):
        now = np.maximum(5, np.rint(sizes * rng.normal(1, 0.05, classes))).astype(np.int64)
        now[rng.random(classes) < 0.05] = 0
        found.append(replace(some_linked(now, now * 10, None, codes), places=()))
    return found


def marked(linked, turn, cover_key, strategy="stratified"):
    marking = wide(NAMES, decoys=0, covers=0, collusion=2, strategy=strategy)
    return plan_marks(linked, marking, bytes([turn]) * 32, cover_key=cover_key)


def copies(marks, recipient):
    """The classes of a recipient's copy."""
    held = marks.linked.published > 0
    held[marks.withheld(recipient)] = False
    return held


@pytest.mark.parametrize("leaker", [0, 7, 29])
def test_who_intersects_its_own_copies_is_named(leaker):
    marks = [marked(linked, turn, LEDGER) for turn, linked in enumerate(successive())]
    leak = np.all([copies(one, leaker) for one in marks], axis=0)
    for one in marks:
        everybody = (one.linked.published > 0) & ~np.isin(np.arange(len(leak)), one.covers)
        kept = int(leak[everybody].sum()), int((~leak[everybody]).sum())
        found = score(one.code, one.holds, leak[one.covers], kept)
        assert np.flatnonzero(found.accused(1e-6 / 3)).tolist() == [leaker]


def test_without_a_key_that_stays_the_intersection_hides_more():
    """The same with marks drawn anew for each release, in the same smallest classes: those that the other copies lack are
    gone too."""
    stay, anew = [], []
    for keys, found in (([LEDGER] * 3, stay), ([bytes([9 - i]) * 32 for i in range(3)], anew)):
        marks = [
            marked(of, i, key, "size") for i, (of, key) in enumerate(zip(successive(classes=300), keys, strict=True))
        ]
        leak = np.all([copies(one, 3) for one in marks], axis=0)
        found += [-np.log(score(one.code, one.holds, leak[one.covers], (150, 20)).p_value[3]) for one in marks]
    assert min(stay) > 2 * max(anew)


def test_covers_stay_and_other_recipients_do_not_matter():
    first, second, *_ = (marked(linked, turn, LEDGER) for turn, linked in enumerate(successive()))
    shared = np.intersect1d(first.covers, second.covers)
    assert len(shared) > 0.6 * len(first.covers)
    place = [np.array([np.flatnonzero(one.covers == c)[0] for c in shared]) for one in (first, second)]
    same = first.holds[:, place[0]] == second.holds[:, place[1]]
    assert same.mean() > 0.97
    fewer = plan_marks(first.linked, wide(NAMES[5:9], decoys=0, covers=0, collusion=2), bytes(32), cover_key=LEDGER)
    common = np.intersect1d(first.covers, fewer.covers)
    mine, theirs = (
        one.holds[i][[int(np.flatnonzero(one.covers == c)[0]) for c in common]] for one, i in ((first, 5), (fewer, 0))
    )
    assert (mine == theirs).mean() > 0.95


def alone(linked, names=NAMES, covers=20, cover_key=LEDGER):
    return plan_marks(linked, wide(names, decoys=0, covers=covers), bytes(32), cover_key=cover_key)


def alone_p_values(marks, leak):
    """Of a leak that is this set of classes, for the recipients of a release with covers kept for each alone."""
    everything = np.ones(len(marks.covers), dtype=bool)
    return np.array(alone_tails(marks.holds, everything, leak[marks.covers]))


@pytest.mark.parametrize("leaker", [0, 7, 29])
def test_who_intersects_its_own_copies_with_covers_alone_is_named(leaker):
    marks = [alone(linked) for linked in successive()]
    leak = np.all([copies(one, leaker) for one in marks], axis=0)
    for one in marks:
        p_values = alone_p_values(one, leak)
        assert p_values[leaker] < 1e-8
        assert np.delete(p_values, leaker).min() > 1e-3


def test_covers_alone_stay_where_the_same_classes_go_to_the_same_recipients():
    linked = successive(1)[0]
    first, second = alone(linked), alone(replace(linked, population=linked.population + 1), NAMES[::-1])
    for i, name in enumerate(NAMES):
        place = second.marking.recipients.index(name)
        assert set(first.withheld(i)) == set(second.withheld(place))


@pytest.mark.parametrize(
    ("names", "covers"),
    [(NAMES[1:], 20), ((*NAMES[1:], "new"), 20), (NAMES, 22), (NAMES[:15], 20), (("a first one", *NAMES), 20)],
    ids=["one left", "one for another", "more covers", "half left", "one came"],
)
def test_a_copy_of_another_release_points_to_nobody_but_its_holder(names, covers):
    """The next release goes to others, or has another number of covers. A recipient leaks its copy of it, unchanged."""
    linked = successive(2)
    least = []
    for key in range(12):
        lasting = bytes([key]) * 32
        for second in (linked[0], linked[1]):
            first, then = alone(linked[0], cover_key=lasting), alone(second, names, covers, lasting)
            leaker = 7 % len(names)
            p_values = alone_p_values(first, copies(then, leaker))
            innocent = [p for name, p in zip(NAMES, p_values, strict=True) if name != names[leaker]]
            least.append(len(innocent) * min(innocent))
    assert min(least) > 0.05 / len(least)

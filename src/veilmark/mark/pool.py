"""The pool: the classes that decoys are drawn from, and the real classes that are given up to have them.

There are two kinds of pool, and a release has one of them.

- *Decoys that blend in* (the default). Some released classes, of all sizes and with labels common and rare, are withheld
  from everybody, and decoys are drawn from these. They are given up in pairs that are like each other, and a decoy class
  takes all other values of its partner. What is left of the release and what was given up are alike, so that nothing in a
  copy tells its decoys: neither a label, nor a pair of labels, nor a size. Unreleased classes that look as usual join them
  where they are few.
- *Decoys that attract* (`risk`, as in the AnonTokens paper). Classes of the population that are not released and link to
  fewer persons than any released one: whoever links a copy to the population finds these first. Without the population,
  their rare labels may tell them. Released classes that link to the fewest persons are given up to raise that limit.

The pool is a function of release, population and a seed. It is fixed before decoys are drawn from it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np

from veilmark.defaults import DECOYS
from veilmark.mark.discover import Linked
from veilmark.mark.enough import SPARE, pool_size
from veilmark.mark.marking import CopyMarking
from veilmark.mark.strata import spread

GIVEN_UP = 0.05
"""At most this share of the records is given up so that decoys blend in and have a large pool,"""
GIVEN_UP_AT_MOST = 0.2
"""and this share, where the pool would otherwise have fewer classes than are drawn."""
RAISED = 0.01
"""At most this share of the records is given up so that decoys attract."""
UNUSUAL = 0.1
"""This share of the released classes has the rarest labels; decoys from unreleased classes are as usual as the others."""
LEFT = 3
"""Each label of a class that is given up is in so many classes that are left; in one, where decoys would be too few."""
LIKE = 25
"""A decoy class is as large as one of so many released classes, whose labels are about as common."""


# Which classes look as usual.


def expected_sizes(linked: Linked) -> np.ndarray:
    """The logarithm of the records that a class's labels let expect in the release, were they independent."""
    total = max(float(linked.published.sum()), 1.0)
    expected = np.full(len(linked), math.log(total))
    for codes, labels in zip(linked.told_codes, linked.labels, strict=False):
        share = np.bincount(codes, weights=linked.published, minlength=len(labels)) / total
        expected += np.log(np.maximum(share[codes], 1e-12))
    return expected


def sharing_labels(linked: Linked) -> np.ndarray:
    """A mask of the classes each of whose labels another released class has. Any of these may be given up, the rare ones as
    well: decoys that are never rare would be told by that."""
    shared = np.ones(len(linked), dtype=bool)
    for code in linked.told_codes:
        shared &= _records_elsewhere(code, linked.published) > 0
    return shared


def looking_usual(linked: Linked) -> np.ndarray:
    """A mask of the classes whose labels, one by one, in pairs and all together, are no rarer in the release than those of
    most released classes; each label is in another released class."""
    released = linked.published > 0
    if not released.any():
        return np.zeros(len(linked), dtype=bool)
    usual = _no_rarer(expected_sizes(linked), released)
    for code in linked.told_codes:
        elsewhere = _records_elsewhere(code, linked.published)
        usual &= _no_rarer(elsewhere, released) & (elsewhere > 0)
    for one, other in combinations(linked.told_codes, 2):
        pair = one.astype(np.int64) * (int(other.max(initial=0)) + 1) + other
        usual &= _no_rarer(_records_elsewhere(np.unique(pair, return_inverse=True)[1], linked.published), released)
    return usual


def _no_rarer(amounts: np.ndarray, released: np.ndarray) -> np.ndarray:
    """A mask of the classes that have as much of something as most released ones."""
    usual: np.ndarray = amounts >= np.quantile(amounts[released], UNUSUAL)
    return usual


def _records_elsewhere(code: np.ndarray, records: np.ndarray) -> np.ndarray:
    """For each class, the records of other classes that have its code."""
    return np.bincount(code, weights=records)[code] - records


# The pool, and what is given up for it.


def candidate_pool(linked: Linked, marking: CopyMarking) -> np.ndarray:
    """The candidates within the risk range that can be as large as a released class, the nearest ones of them if asked;
    without those that have a label that no released class has, if enough are left."""
    serving = in_range(linked, marking) & (room(linked) >= smallest_class(linked))
    pool = np.flatnonzero(serving & _known_labels(linked))
    if len(pool) < wanted_pool(marking):
        pool = np.flatnonzero(serving)
    if marking.near == 1:
        return pool
    order = np.argsort(linked.strangeness(pool), kind="stable")
    return np.sort(pool[order[: math.ceil(marking.near * len(pool))]])


def in_range(linked: Linked, marking: CopyMarking) -> np.ndarray:
    """A mask of the candidates within the risk range, if there is one."""
    if marking.risk is None:
        return linked.candidates(marking.k)
    multiple = linked.multiples()
    low, high = marking.risk
    return linked.candidates(marking.k) & (multiple >= low) & (multiple <= high)


def _known_labels(linked: Linked) -> np.ndarray:
    """A mask of the classes of whose labels the release has each: a label of decoys alone would tell them at once."""
    known = np.ones(len(linked), dtype=bool)
    for code in () if linked.local else linked.told_codes:
        known &= np.bincount(code, weights=linked.published)[code] > 0
    return known


def room(linked: Linked) -> np.ndarray:
    """The persons of each class who can serve as decoys."""
    return linked.population if linked.outside is None else linked.outside


def smallest_class(linked: Linked) -> int:
    """The records of the smallest released class."""
    return int(linked.published[linked.published > 0].min(initial=1 << 62))


def wanted_pool(marking: CopyMarking) -> int:
    """The classes that the pool of a release should have."""
    return pool_size(len(marking.recipients), marking.decoys, marking.false_accusation)


def given_up(
    linked: Linked, marking: CopyMarking, allowance: int, chance: np.ndarray, may_go: np.ndarray
) -> np.ndarray:
    """The released classes that nobody gets, so that the pool is large enough; none, or fewer, where that costs too much.

    `allowance` are the records that may be suppressed beside those that are already, `chance` has a random number for each
    released class, `may_go` is a mask of the classes that may be given up so that decoys blend in: none where it is not
    known who of the population is in the source, since then decoys cannot be had from a class that was given up.
    """
    if marking.risk is not None:
        return _risky_classes(_guessed(linked, bool(may_go.any())), marking, allowance)
    chosen = _like_the_others(linked, marking, chance, may_go)
    shown = _keeping_labels(linked, chosen, LEFT)
    return shown if len(shown) >= marking.decoys * len(marking.recipients) else _keeping_labels(linked, chosen, 1)


def _risky_classes(linked: Linked, marking: CopyMarking, allowance: int) -> np.ndarray:
    """A small share of the records for a large pool; as much as is allowed for one that can be drawn from at all."""
    drawn = marking.decoys * len(marking.recipients)
    chosen = riskiest(linked, marking, min(allowance, math.ceil(RAISED * linked.published.sum())), wanted_pool(marking))
    if len(candidate_pool(linked.without(chosen, guess=True), marking)) >= drawn:
        return chosen
    return riskiest(linked, marking, allowance, math.ceil(SPARE * drawn))


def _guessed(linked: Linked, members_known: bool) -> Linked:
    """With a guess of who can serve as decoys, before they are looked up: all who are not in the source."""
    outside = linked.population - linked.published - linked.suppressed if members_known else None
    return replace(linked, outside=outside)


def affordable_decoys(linked: Linked, marking: CopyMarking, chance: np.ndarray, may_go: np.ndarray) -> int:
    """The decoys for each recipient: as many as were asked for. If nobody asked: as many as claims need to name a recipient,
    where the classes for that can be had for a small share of the records, or at least few."""
    if marking.decoys_asked or marking.risk is not None or not marking.decoys:
        return marking.decoys
    _, share = _to_give_up(linked, chance, may_go, wanted_pool(marking))
    unreleased = looking_usual(linked) & (linked.published == 0) & (linked.population >= smallest_class(linked))
    classes = int((share <= GIVEN_UP).sum()) or int(unreleased.sum())
    return marking.decoys if classes >= wanted_pool(marking) else min(marking.decoys, DECOYS)


def _like_the_others(linked: Linked, marking: CopyMarking, chance: np.ndarray, may_go: np.ndarray) -> np.ndarray:
    """Pairs of classes like those that are left, one after the other."""
    order, share = _to_give_up(linked, chance, may_go, wanted_pool(marking))
    drawn = np.arange(len(order)) < marking.decoys * len(marking.recipients)
    chosen = order[np.where(drawn, share <= GIVEN_UP_AT_MOST, share <= GIVEN_UP)]
    return chosen[: len(chosen) // 2 * 2]


def _keeping_labels(linked: Linked, chosen: np.ndarray, least: int) -> np.ndarray:
    """The pairs of which each label is in at least so many classes that are left. A label of decoys alone would tell them at
    once, and a recipient may lack a class or two, the covers, of those that are left."""
    left = linked.without(chosen).published > 0
    known = np.ones(len(chosen), dtype=bool)
    for code in () if linked.local else linked.told_codes:
        known &= np.bincount(code[left], minlength=int(code.max(initial=0)) + 1)[code[chosen]] >= least
    return chosen[np.repeat(known.reshape(-1, 2).all(axis=1), 2)]


def _to_give_up(linked: Linked, chance: np.ndarray, may_go: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """So many released classes in the order in which they are given up, or one more, each two after the other like each
    other; and the share of the records that are gone with each."""
    outside = linked.population - linked.published - linked.suppressed
    order = spread(linked, chance)
    order = _in_pairs(linked, order[may_go[order] & (outside[order] >= linked.published[order])], outside, count)
    return order, np.cumsum(linked.published[order]) / max(int(linked.published.sum()), 1)


def _in_pairs(linked: Linked, order: np.ndarray, outside: np.ndarray, count: int) -> np.ndarray:
    """The first classes of an order, each followed by the one that is most like it, so that both can take the other's
    values."""
    free = np.ones(len(order), dtype=bool)
    pairs: list[tuple[int, int]] = []
    for place, name in enumerate(order):
        if 2 * len(pairs) >= count:
            break
        if not free[place]:
            continue
        free[place] = False
        others = order[free]
        size, sizes = linked.published[name], linked.published[others]
        fits = (sizes <= outside[name]) & (size <= outside[others])
        if not fits.any():
            continue
        apart = linked.unlike(int(name), others) + np.abs(np.log(sizes / size)) / 2
        best = int(np.argmin(np.where(fits, apart, np.inf)))
        free[np.flatnonzero(free)[best]] = False
        pairs.append((int(name), int(others[best])))
    return np.array(pairs, dtype=np.int64).reshape(-1)


def partners(linked: Linked, chosen: np.ndarray) -> np.ndarray:
    """For each class, the like one whose values its decoys take; -1 for classes that were not given up in pairs."""
    partner = np.full(len(linked), -1)
    partner[chosen[0::2]], partner[chosen[1::2]] = chosen[1::2], chosen[0::2]
    return partner


def blending(linked: Linked, marking: CopyMarking) -> np.ndarray:
    """A mask of the classes that decoys that blend in may come from: those that were given up and, where these are too few,
    unreleased ones that look as usual."""
    given = np.zeros(len(linked), dtype=bool) if linked.given_up is None else linked.given_up
    return given if given.sum() >= wanted_pool(marking) else given | looking_usual(linked)


def riskiest(linked: Linked, marking: CopyMarking, allowance: int, wanted: int) -> np.ndarray:
    """The released classes that link to the fewest persons, as few as make the pool as large as is wanted, with at most so
    many records; as many as that allows, where it is not enough. Empty where it does not help."""
    released = np.flatnonzero((linked.published > 0) & (linked.population > 0))
    order = released[np.argsort(linked.population[released], kind="stable")]
    records = np.append(0, np.cumsum(linked.published[order]))
    steps = np.flatnonzero(np.diff(linked.population[order], prepend=-1))
    best, chosen = 0, order[:0]
    for step in steps[records[steps] <= allowance]:
        size = len(candidate_pool(linked.without(order[:step], guess=True), marking))
        if size > best:
            best, chosen = size, order[:step]
        if best >= wanted:
            break
    return chosen


def sizes_like(linked: Linked, classes: np.ndarray, most: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A number of records for each of some classes, at most `most`: that of a released class whose labels are about as
    common, which one says `draw`, a random number a class."""
    released = np.flatnonzero(linked.published > 0)
    expected = expected_sizes(linked)
    order = released[np.argsort(expected[released], kind="stable")]
    window = min(LIKE, len(order))
    first = np.searchsorted(expected[order], expected[classes]) - window // 2
    places = np.clip(first, 0, len(order) - window)[:, None] + np.arange(window)
    sizes = np.sort(linked.published[order][places], axis=1)
    fitting = (sizes <= most[:, None]).sum(axis=1)
    chosen: np.ndarray = sizes[np.arange(len(classes)), draw % np.maximum(fitting, 1).astype(np.uint64)]
    return np.where(fitting > 0, chosen, smallest_class(linked))

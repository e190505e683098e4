"""Strata: which real classes are withheld, so that every size of class and every group of persons bears its share alone.

Covers that are all small can be dropped for few rows, and take the smallest areas and the oldest persons away with them. So
classes of all sizes are taken alike, but for the largest, which cost most; and as evenly as possible over the labels of each
quasi-identifier, counted in records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from veilmark.mark.discover import Linked

SPARED = 0.2
"""This share of the classes, the largest ones, is withheld only where all others are."""
BINS = 10
SLACK = 1.2
"""Labels may bear so many times the least that is possible, so that sizes stay spread."""
ROUNDS, STEPS = 3, 8
AHEAD = 8
"""So many times as many classes as needed are looked at."""

USUAL_LIMIT = 0.25
"""A recipient that lacks more of a label's records than this is pointed out."""


def stratified(linked: Linked, count: int, chance: np.ndarray) -> np.ndarray:
    """So many released classes to be withheld; ties by the random number of each released class."""
    order = spread(linked, chance)
    ahead = order[: max(AHEAD * count, 1000)]
    least = _least_share(linked, ahead, count)
    loosely = _within(linked, ahead, min(SLACK * least, 1.0))
    # First come, first served: with more room, a large class may take the place of several small ones.
    return (loosely if len(loosely) >= count else _within(linked, ahead, least))[:count]


def spread(linked: Linked, chance: np.ndarray) -> np.ndarray:
    """The released classes in an order of which any beginning has all sizes alike; the largest classes come last."""
    released = np.flatnonzero(linked.published > 0)
    by_size = np.lexsort((chance, linked.published[released]))
    usual = int(np.ceil((1 - SPARED) * len(released)))
    layer = np.empty(len(released), dtype=np.int64)
    layer[by_size[:usual]] = np.arange(usual) * BINS // max(usual, 1)
    layer[by_size[usual:]] = BINS
    within = np.lexsort((chance, layer))
    sizes = np.bincount(layer, minlength=BINS + 1)
    nth = np.arange(len(released)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    depth = (nth + 0.5) / sizes[layer[within]] + (layer[within] == BINS)
    ordered: np.ndarray = released[within[np.lexsort((chance[within], depth))]]
    return ordered


def _least_share(linked: Linked, order: np.ndarray, count: int) -> float:
    """The least share of every label's records, nearly, among which so many classes can be found."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if len(_within(linked, order, middle)) >= count else (middle, high)
    return high


def _within(linked: Linked, order: np.ndarray, share: float) -> np.ndarray:
    """The classes, first come first served, that together have no more than a share of any label's records."""
    if share >= 1:
        return order
    left = [share * of + 1e-9 for of in _by_label(linked, np.flatnonzero(linked.published > 0))]
    waiting, taken = order, [order[:0]]
    for _ in range(ROUNDS):
        fit = waiting
        for codes, room in zip(linked.told_codes, left, strict=True):
            fit = fit[_running(codes[fit], linked.published[fit]) <= room[codes[fit]]]
        taken.append(fit)
        left = [room - used for room, used in zip(left, _by_label(linked, fit), strict=True)]
        waiting = waiting[~np.isin(waiting, fit)]
    return order[np.isin(order, np.concatenate(taken))]


def _by_label(linked: Linked, chosen: np.ndarray, records: np.ndarray | None = None) -> list[np.ndarray]:
    """The records of some classes by label, for each quasi-identifier; those of the release, or as many as are given."""
    counted = linked.published if records is None else records
    return [
        np.bincount(codes[chosen], weights=counted[chosen], minlength=int(codes.max(initial=0)) + 1)
        for codes in linked.told_codes
    ]


def _running(label: np.ndarray, records: np.ndarray) -> np.ndarray:
    """The sum of the records so far among the classes with the same label."""
    order = np.argsort(label, kind="stable")
    sums = np.cumsum(records[order])
    first = np.flatnonzero(np.diff(label[order], prepend=-1))
    before = sums[first] - records[order][first]
    running = np.empty(len(label), dtype=np.float64)
    running[order] = sums - np.repeat(before, np.diff(np.append(first, len(label))))
    return running


@dataclass(frozen=True)
class Lost:
    """A label, the records that the release has of it, and the share that a copy lacks, of the copy that lacks most."""

    column: str
    label: str | None
    records: int
    share: float

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def __str__(self) -> str:
        return f"{self.column} {'(missing)' if self.label is None else self.label}"


def lost_by_label(linked: Linked, lacking: list[np.ndarray]) -> dict[str, dict[str, Lost]]:
    """What copies lack, by quasi-identifier: of the label that loses most (`worst`), of the one with the fewest records
    (`smallest`) and, of numbers, of the `lowest` and `highest`; `lacking` says how many records of each class each recipient
    lacks."""
    totals = _by_label(linked, np.flatnonzero(linked.published > 0))
    most = [np.zeros(len(of)) for of in totals]
    every = np.arange(len(linked))
    for gone in lacking:
        most = [np.maximum(so_far, own) for so_far, own in zip(most, _by_label(linked, every, gone), strict=True)]
    places = linked.places or [None] * len(totals)
    found = {}
    for column, labels, total, gone, at in zip(linked.columns, linked.labels, totals, most, places, strict=True):
        share = gone / np.maximum(total, 1)
        told = {name: int(label) for name, label in _told(total, share, at).items()}
        found[column] = {
            name: Lost(column, labels[label].as_py(), int(total[label]), float(share[label]))
            for name, label in told.items()
        }
    return found


def _told(total: np.ndarray, share: np.ndarray, places: np.ndarray | None) -> dict[str, np.intp]:
    """Which labels are told of."""
    there = np.flatnonzero(total > 0)
    if not len(there):
        return {}
    told = {
        "worst": there[np.lexsort((total[there], -share[there]))[0]],
        "smallest": there[np.argmin(total[there])],
    }
    if places is not None and not np.isnan(places[there]).all():
        told |= {"lowest": there[np.nanargmin(places[there])], "highest": there[np.nanargmax(places[there])]}
    return told

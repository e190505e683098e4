"""What else may have led to a claim: the copies of other releases.

Within one release nobody but its recipient has a decoy's class. In another release the same persons may fall into a class
that others hold. Whoever holds it can link each of its n records to one of the N persons who fit, and cannot tell which: a
given one is claimed with a probability of n/N at most. These chances are what an innocent recipient is measured by, beside
claims made at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from veilmark.trace.evidence import Marked

Labels = Sequence[Sequence[str | None]]


def chances(marked: Marked, others: Sequence[Marked]) -> dict[str, np.ndarray]:
    """For each recipient, the highest probability with which each of its decoys would be claimed by holders of copies that
    were made for somebody else in other releases; 0 where none of these shows the decoy's class."""
    found = {}
    related = [other for other in others if other.release != marked.release and _comparable(marked, other)]
    for name in marked.names:
        if not related:
            found[name] = np.zeros(len(marked.decoys[name]))
            continue
        own = np.array([[row[c] for c in marked.columns] for row in marked.decoys[name]], dtype=object)
        total = np.zeros(len(own))
        for other in related:
            total += _held_elsewhere(marked, own, other, name)
        found[name] = np.minimum(total, 1.0)
    return found


def _comparable(marked: Marked, other: Marked) -> bool:
    """Whether claims of one can be read as claims of the other: they share a column."""
    return bool({*marked.columns, *marked.identity} & {*other.columns, *other.identity})


def _held_elsewhere(marked: Marked, decoys: np.ndarray, other: Marked, name: str) -> np.ndarray:
    """For each decoy the largest n/N of the other release's classes that may be its own."""
    codes, chance = _shown(other, name)
    largest = {}
    for row in dict.fromkeys(map(tuple, decoys)):
        fits = np.ones(codes.shape[1], dtype=bool)
        for column, label in zip(marked.columns, row, strict=True):
            if column in other.columns:
                place = other.columns.index(column)
                fits &= may_agree(marked.above[column], label, other.above[column])[codes[place]]
        largest[row] = float(chance[fits].max(initial=0.0))
    return np.array([largest[tuple(row)] for row in decoys])


def _shown(other: Marked, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The classes of a release that anybody but `name` has, real ones and decoys, and n/N of each."""
    strangers = [i for i, who in enumerate(other.names) if who != name]
    if not strangers:
        return np.empty((len(other.columns), 0), dtype=np.int64), np.empty(0)
    drawn = np.flatnonzero(other.drawn[strangers].any(axis=0))
    codes = np.concatenate([other.class_codes, other.pool_codes[:, drawn]], axis=1)
    chance = np.concatenate([other.class_chance, other.pool_chance[drawn]])
    return codes, chance


def used_before(
    columns: Sequence[str], above: Mapping[str, Labels], codes: np.ndarray, earlier: Sequence[Marked]
) -> np.ndarray:
    """Which classes of a new release (columns of label numbers) may be those of decoys of earlier ones: a mask."""
    used = np.zeros(codes.shape[1], dtype=bool)
    for other in earlier:
        if not set(columns) & set(other.columns):
            continue
        for row in other.texts(other.pool_codes[:, other.drawn.any(axis=0)]):
            same = np.ones(codes.shape[1], dtype=bool)
            for column, label in zip(other.columns, row, strict=True):
                if column in columns:
                    place = list(columns).index(column)
                    same &= may_agree(other.above[column], label, above[column])[codes[place]]
            used |= same
    return used


def may_agree(own: Labels, label: str | None, theirs: Labels) -> np.ndarray:
    """Which of another release's labels of a column may stand for a person of whom this release says `label`.

    Both are given as the release's labels and, level by level, what each becomes further up. Where the two have no label in
    common above these, any may.
    """
    for level in theirs:
        if label in level:
            return np.array([up == label for up in level], dtype=bool)
    place = list(own[0]).index(label)
    for level in own[1:]:
        if level[place] in theirs[0]:
            return np.array([one == level[place] for one in theirs[0]], dtype=bool)
    return np.ones(len(theirs[0]), dtype=bool)

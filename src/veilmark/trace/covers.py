"""Tests of the recipients by cover classes, in each of the ways in which a leak can be read.

Whether a cover shows is read by presence (it has rows), by share (it counts for as much as there is of its expected records)
and by likelihood (how well its number of rows is explained if it is held, and if not). Presence is right for leaks that were
thinned out unevenly, the others where rows were made up, moved or merged. Which readings there are follows from the leak and
from what all copies have in common. All of them are tested, and the number of tests is allowed for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veilmark.mark.code import Code
from veilmark.trace.rowmarks import RowEvidence
from veilmark.trace.scores import observe, score
from veilmark.trace.sighting import Sighting
from veilmark.trace.tails import decoy_tail

_OPEN = 0.05  # a cover whose count leans no farther to either side is left open


@dataclass(frozen=True, eq=False)
class CoverTests:
    """For each recipient the probability that an innocent one's covers agree with the leak as well; how it was computed; and
    beside whom."""

    p_value: np.ndarray
    tail: list[str]
    beside: list[tuple[int, ...]]


def cover_tests(holds: np.ndarray, code: Code | None, seen: Sequence[Sighting]) -> CoverTests:
    """Test all recipients (rows of `holds`) in all readings; the strongest evidence counts, times the number of readings.
    Row marks are further bits of the code."""
    nothing = CoverTests(np.ones(len(holds)), ["exact"] * len(holds), [()] * len(holds))
    if not holds.shape[1] and not any(one.row_marks for one in seen):
        return nothing
    tests = [test for one in seen for test in (_by_code(holds, code, one) if code is not None else _alone(holds, one))]
    if not tests:
        return nothing
    every = np.array([test.p_value for test in tests])
    best = every.argmin(axis=0)
    chosen = [tests[of] for of in best]
    return CoverTests(
        np.minimum(len(tests) * every.min(axis=0), 1.0),
        [test.tail[i] for i, test in enumerate(chosen)],
        [test.beside[i] for i, test in enumerate(chosen)],
    )


def counts_agree(seen: Sighting) -> bool:
    """Whether counts say of every cover what presence says, so that one reading is enough."""
    told, open_ = seen.cover_group >= 0, np.abs(seen.counted.shown - 0.5) < _OPEN
    alone = np.bincount(seen.cover_group + 1, minlength=2)[seen.cover_group + 1] == 1
    same = (seen.counted.shown > 0.5) == seen.cover_there
    return bool(np.all(np.where(told, same & alone & ~open_, open_)))


def _by_code(holds: np.ndarray, code: Code, seen: Sighting) -> Iterator[CoverTests]:
    rows = seen.row_marks
    observed, bits = observe(code, holds, seen.cover_group)
    told = seen.cover_group >= 0
    if observed.length or rows is not None:
        present = np.zeros(observed.length)
        present[seen.cover_group[told]] = seen.cover_there[told]
        yield _scored(observed, bits, present, rows, seen.kept)
    if not counts_agree(seen):
        for shows in (seen.counted.shown, seen.counted.share):
            if (np.abs(shows - 0.5) > _OPEN).any():
                yield _scored(code, holds, shows, rows)


def _scored(
    code: Code, bits: np.ndarray, shows: np.ndarray, rows: RowEvidence | None, kept: tuple[int, int] = (0, 0)
) -> CoverTests:
    if rows is not None:
        code = replace(code, p=np.append(code.p, rows.p))
        bits, shows = np.hstack([bits, rows.holds]), np.append(shows, rows.shows)
    found = score(code, bits, shows, kept)
    return CoverTests(found.p_value, ["exact" if e else "chernoff" for e in found.exact], list(found.beside))


def _alone(holds: np.ndarray, seen: Sighting) -> Iterator[CoverTests]:
    """Covers that are kept for one recipient each, where they are told from all others."""
    group = seen.cover_group
    told = (group >= 0) & (np.bincount(group + 1, minlength=2)[group + 1] == 1)
    readings = [seen.cover_there] if told.any() else []
    if told.any() and not counts_agree(seen):
        readings.append(seen.counted.shown > 0.5)
    for there in readings:
        tails = np.array(alone_tails(holds, told, there))
        yield CoverTests(tails, ["bound"] * len(holds), [()] * len(holds))


def alone_tails(holds: np.ndarray, told: np.ndarray, there: np.ndarray) -> list[float]:
    """For each recipient, the probability that as many of the classes kept for it alone are there: a bound, if one of the
    others, or none of them, made the leak.

    Given that one's classes, all others are shared out at random; the one for which the probability is largest counts.
    (Given everybody else's, nothing would be left to chance.)
    """
    mine, hits = (holds & told).sum(axis=1), (holds & told & there).sum(axis=1)
    every, marked = int(told.sum()), int((told & there).sum())
    tails = []
    for i in range(len(holds)):
        leakers = {(0, 0), *((int(mine[j]), int(hits[j])) for j in range(len(holds)) if j != i)}
        own = int(hits[i]), int(mine[i])
        tails.append(max(decoy_tail(*own, marked - seen, every - size) for size, seen in leakers))
    return tails

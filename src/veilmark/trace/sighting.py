"""What a leaked file shows of a release's decoys and cover classes.

A leak may lack columns, rows and whole classes, hold made-up rows, and be coarser than the release. Each column is read at
one level of its hierarchy; finer labels are taken up to it. Classes that look alike at these levels are one cell. Whether a
cover is there is answered in two ways: by whether its cell has any rows, and by how many it has (`trace/counts.py`).

All of this follows from the leak and from what all copies have in common, and so tells nothing of an innocent recipient's
marks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from veilmark.tables.cells import number, pack
from veilmark.trace.columns import Matched
from veilmark.trace.counts import Cells, Counted, count_covers
from veilmark.trace.evidence import Marked
from veilmark.trace.labels import ColumnReading
from veilmark.trace.leaked import Leaked
from veilmark.trace.rowmarks import RowEvidence, row_evidence


@dataclass(frozen=True, eq=False)
class Sighting:
    """What a leak shows: of the cover classes and of the pool of decoy classes, which group each belongs to (-1: it cannot
    be told) and whether it is there; of the classes that everybody holds, how many are there and how many are not.

    `counted`: what the numbers of rows say. `pool_there`: a decoy class is there with at least half the rows that the
    smallest class would have. `rows` of the leak, of which `known_rows` have labels in all columns read.
    """

    matched: Matched
    levels: Mapping[str, int]
    rows: int
    known_rows: int
    cover_group: np.ndarray
    cover_there: np.ndarray
    counted: Counted
    pool_clear: np.ndarray
    pool_there: np.ndarray
    kept: tuple[int, int]
    row_marks: RowEvidence | None = None

    @property
    def told(self) -> int:
        """How many covers say anything, by presence or by count."""
        clear = (self.cover_group >= 0) | (np.abs(self.counted.shown - 0.5) > 0.05)
        return int(clear.sum())

    @property
    def tells(self) -> bool:
        """Whether rows could be read, and anything that tells copies apart."""
        several = any(len(np.unique(of.up)) > 1 for of in self.matched.readings.values())
        single = self.row_marks is not None and self.row_marks.told > 0
        return several and self.known_rows > 0 and (self.told > 0 or single or bool(self.pool_clear.any()))


def sightings(marked: Marked, leak: Leaked, matched: Matched) -> list[Sighting]:
    """Look for a release's classes in a leak, at the levels that read most of it, and at finer ones where these read a good
    part."""
    readings = [matched.readings]
    if any(one.finer is not None for one in matched.readings.values()):
        readings.append({column: one.finer or one for column, one in matched.readings.items()})
    return [
        replace(sight(marked, leak, matched, one), row_marks=row_evidence(marked, leak, matched, one))
        for one in readings
    ]


def sight(marked: Marked, leak: Leaked, matched: Matched, readings: Mapping[str, ColumnReading]) -> Sighting:
    """Look for a release's classes in a leak by some readings of its columns."""
    rows = leak.combinations([matched.columns[c] for c in readings])
    theirs = np.array([of.codes[codes] for of, codes in zip(readings.values(), rows.codes, strict=True)])
    both = np.concatenate([marked.class_codes, marked.pool_codes], axis=1)
    ours = np.array([of.up[both[marked.columns.index(c)]] for c, of in readings.items()])
    every = np.concatenate([ours, theirs], axis=1)
    known = np.all(every >= 0, axis=0)
    image = np.full(every.shape[1], -1)
    labels = np.empty((len(readings), 0), dtype=np.int64)
    if known.any():
        distinct, image[known] = number(*pack(every[:, known], [int(of.max(initial=0)) + 1 for of in every]))
        labels = np.empty((len(readings), len(distinct)), dtype=np.int64)
        labels[:, image[known]] = every[:, known]
    mine, leaked = image[: both.shape[1]], image[both.shape[1] :]
    count = np.bincount(leaked[leaked >= 0], rows.counts[leaked >= 0], labels.shape[1]).astype(np.int64)
    levels = {c: of.level for c, of in readings.items()}
    totals = int(rows.counts.sum()), int(rows.counts[leaked >= 0].sum())
    return _sighting(marked, matched, mine, labels, count, levels, totals)


def _sighting(
    marked: Marked,
    matched: Matched,
    image: np.ndarray,
    labels: np.ndarray,
    count: np.ndarray,
    levels: Mapping[str, int],
    rows: tuple[int, int],
) -> Sighting:
    """Which classes can be told, from the cell of each (-1: it has none)."""
    classes, pool = image[: len(marked.sizes)], image[len(marked.sizes) :]
    size = len(count)
    everybody = np.ones(len(classes), dtype=bool)
    everybody[marked.covers] = False
    everybody &= classes >= 0
    covers = classes[marked.covers]
    seen = np.flatnonzero(covers >= 0)
    common = np.bincount(classes[everybody], marked.sizes[everybody], size)
    candidates = np.zeros(size, dtype=bool)
    candidates[pool[pool >= 0]] = True
    covered_size, p = marked.sizes[marked.covers][seen], marked.held_by_chance[seen]
    counted = count_covers(Cells(labels, count, common, candidates, covers[seen], covered_size, p))
    counted = counted.spread(seen, len(covers))
    group = np.full(len(covers), -1)
    clear = seen[common[covers[seen]] == 0]
    group[clear] = np.unique(covers[clear], return_inverse=True)[1]
    held = np.unique(classes[everybody])
    shown = int((count[held] > 0).sum())
    alone, there = _pool(marked, classes, pool, count, counted)
    cover_there = (covers >= 0) & (np.append(count, 0)[covers] > 0)
    return Sighting(matched, levels, *rows, group, cover_there, counted, alone, there, (shown, len(held) - shown))


def _pool(
    marked: Marked, classes: np.ndarray, pool: np.ndarray, count: np.ndarray, counted: Counted
) -> tuple[np.ndarray, np.ndarray]:
    """Which classes of the pool can be told, and which are there. No decoy class is smaller than the smallest released one,
    so that a row or two of it, where many are to be expected, are made up or strayed."""
    real = np.zeros(len(count), dtype=bool)
    real[classes[classes >= 0]] = True
    taken = np.bincount(pool[pool >= 0], minlength=len(count))
    told = pool >= 0
    cell = np.where(told, pool, 0)
    if not len(count):
        return np.zeros(len(pool), dtype=bool), np.zeros(len(pool), dtype=bool)
    alone = told & ~real[cell] & (taken[cell] == 1)
    least = float(marked.sizes.min()) if len(marked.sizes) else 1.0
    stray = counted.stray[cell]
    wanted = np.minimum(counted.rate[cell] * least / 2, least) + stray + 3 * np.sqrt(stray)
    return alone, told & (count[cell] > 0) & (count[cell] >= wanted)

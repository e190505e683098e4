"""Whether a column that was matched without its name can be the release's: it occurs with the other columns as ours does.

For each row the release says how likely the column's label is, given the row's labels in the other columns. That is compared
with how frequent the label is in the leak at all. Of a column of a copy this gains about as much as in the release itself;
of a column that has nothing to do with it, nothing. Codes that were assigned to fit must gain more than the choice among all
assignments explains. A column with many labels of the release, about as frequent as there, speaks for itself.

No recipient's marks are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import lgamma

import numpy as np

from veilmark.tables.cells import number, pack
from veilmark.trace.labels import FORMS, ColumnReading
from veilmark.trace.leaked import Combinations
from veilmark.trace.recode import Released

GAIN = 5.0
"""So much, as a natural logarithm, must be gained beyond what the choice explains: 150 to 1."""

PART = 0.25
"""Of what the release itself would gain, at least."""

STRANGE = 0.3
"""So many of the rows may be made up."""

MANY_LABELS, ALMOST_ALL, ALIKE = 8, 0.9, 0.25
"""A column speaks for itself with so many labels that are read in this share of its rows, at most so far in frequency."""

STRICT = ("as written", *FORMS)
"""Forms that do not read a number as a part of a label."""


def speaks_for_itself(reading: ColumnReading) -> bool:
    """Whether labels alone say that it is the column."""
    labels = len(np.unique(reading.codes[reading.codes >= 0]))
    near = reading.share >= ALMOST_ALL and reading.distance <= ALIKE
    return reading.form in STRICT and labels >= MANY_LABELS and near


def implausible(
    leak: Combinations, readings: Mapping[str, ColumnReading], released: Released, doubtful: Mapping[str, str]
) -> str | None:
    """The column that fits worst, of those `doubtful` (each with how it was found) that do not fit; None where all do.
    `leak` has the columns in the order of `readings`."""
    theirs = {c: r.codes[leak.codes[i]] for i, (c, r) in enumerate(readings.items())}
    ours = {c: r.up[released.codes[c]] for c, r in readings.items()}
    worst, least = None, 0.0
    for column, how in doubtful.items():
        if len(np.unique(ours[column])) < 2 or (how == "values" and speaks_for_itself(readings[column])):
            continue  # one label says nothing, for or against
        missing = _shortfall(column, how, (theirs, leak.counts), (ours, released.records))
        if missing > least:
            worst, least = column, missing
    return worst


Side = tuple[Mapping[str, np.ndarray], np.ndarray]
"""The label of each column in each row or class, and how many records it has."""


def _shortfall(column: str, how: str, leak: Side, release: Side) -> float:
    """What a column lacks of the gain that it needs, as a share of it; 0 where it lacks nothing."""
    gained, rows = _gain(column, leak, release)
    own, records = _gain(column, release, release)
    labels = len(np.unique(release[0][column]))
    needed = GAIN + (lgamma(labels + 1) if how == "codes" else 0.0)
    needed = max(needed, PART * own * rows / max(records, 1e-9))
    return max(0.0, 1 - gained / needed)


def _gain(column: str, leak: Side, release: Side) -> tuple[float, float]:
    """The logarithm of how much likelier rows are by the release than by chance, in sum, and of how many rows."""
    (label, cell, rows), (own_label, own_cell, records) = _readable(column, leak, release)
    if not len(label) or not len(own_label):
        return 0.0, 0.0
    size = int(max(label.max(), own_label.max())) + 1
    by_chance = (np.bincount(label, rows, size) / rows.sum())[label]
    of_cell = np.bincount(own_cell, records, int(max(cell.max(), own_cell.max())) + 1)[cell]
    pairs, nth = np.unique(own_cell * size + own_label, return_inverse=True)
    asked = cell * size + label
    place = np.searchsorted(pairs, asked).clip(max=len(pairs) - 1)
    of_pair = np.where(pairs[place] == asked, np.bincount(nth, records)[place], 0.0)
    told = of_cell > 0
    gain = np.log((1 - STRANGE) * of_pair[told] / of_cell[told] / by_chance[told] + STRANGE)
    return float((gain * rows[told]).sum()), float(rows.sum())


Placed = tuple[np.ndarray, np.ndarray, np.ndarray]


def _readable(column: str, leak: Side, release: Side) -> tuple[Placed, Placed]:
    """Of the rows and of the classes with a label in every column: the label of this one, which combination the others are
    (numbered alike on both sides), and how many records there are."""
    names = [column, *(c for c in leak[0] if c != column)]
    both = np.array([np.concatenate([leak[0][c], release[0][c]]) for c in names])
    known = np.all(both >= 0, axis=0)
    label, cell = both[0, known], np.zeros(int(known.sum()), dtype=np.int64)
    if len(names) > 1 and len(cell):
        _, cell = number(*pack(both[1:, known], [int(of.max()) + 1 for of in both[1:]]))
    split = int(known[: len(leak[1])].sum())
    rows, records = leak[1][known[: len(leak[1])]], release[1][known[len(leak[1]) :]]
    return (label[:split], cell[:split], rows), (label[split:], cell[split:], records)

"""Plant: the recipients' copies. Real rows less the withheld classes, decoys among them, in a keyed order.

A decoy is a real person of the population with values that nobody else's row has: the quasi-identifiers are the person's,
everything else is borrowed whole from one record of the source. Records that the release suppresses are borrowed first,
each once, so that no two rows of any copies share what they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from veilmark.mark.code import derive
from veilmark.mark.plan import Marks, keyed_order

NUMBERS_APART = 1.0
"""What a label that differs weighs beside a number at the other end of its range."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The source's rows at the release's labels, suppressed ones too, and the class of each."""

    table: pa.Table
    owner: np.ndarray


@dataclass(frozen=True, eq=False)
class Decoys:
    """A recipient's decoys: the classes, the persons (their identity, and their quasi-identifiers as the population has
    them), and the class of each person."""

    classes: np.ndarray
    people: pa.Table
    values: pa.Table
    owner: np.ndarray


def donors(rows: Rows, marks: Marks, wanted: np.ndarray, key: bytes, whole: bool) -> np.ndarray:
    """For each decoy, in the order of `wanted` (its class), the row it borrows from.

    The nearest suppressed rows serve first, each once. Where there are too few of them, or where `whole` is asked for (a
    class must keep the diversity of a released one), the nearest released classes do.
    """
    spare = np.flatnonzero(marks.linked.published[rows.owner] == 0)
    if whole or len(spare) < len(wanted):
        return _from_released(rows, marks, wanted, key)
    distance = label_distance(marks, np.unique(wanted), np.unique(rows.owner[spare]))
    return _each_once(rows.owner, spare[keyed_order(key, "donors", len(spare))], wanted, distance)


def _each_once(
    owner: np.ndarray, spare: np.ndarray, wanted: np.ndarray, distance: Mapping[int, np.ndarray]
) -> np.ndarray:
    """The nearest spare rows for each wanted class, none twice."""
    free = np.ones(len(spare), dtype=bool)
    chosen = np.empty(len(wanted), dtype=np.int64)
    for name in np.unique(wanted):
        places = np.flatnonzero(wanted == name)
        far = np.where(free, distance[int(name)][owner[spare]], np.inf)
        nearest = np.argsort(far, kind="stable")[: len(places)]
        chosen[places] = spare[nearest]
        free[nearest] = False
    return chosen


def _from_released(rows: Rows, marks: Marks, wanted: np.ndarray, key: bytes) -> np.ndarray:
    """The rows of the nearest released class that has as many; of several classes where none has."""
    released = np.flatnonzero(marks.linked.published[rows.owner] > 0)
    released = released[keyed_order(key, "donors", len(released))]
    distance = label_distance(marks, np.unique(wanted), np.unique(rows.owner[released]))
    chosen = np.empty(len(wanted), dtype=np.int64)
    for name in np.unique(wanted):
        places = np.flatnonzero(wanted == name)
        near = distance[int(name)] + np.where(marks.linked.published >= len(places), 0.0, 1e6)
        order = np.argsort(near[rows.owner[released]], kind="stable")[: len(places)]
        chosen[places] = released[order]
    return chosen


def label_distance(marks: Marks, of: np.ndarray, to: np.ndarray) -> dict[int, np.ndarray]:
    """The distance of each class in `of` to all classes: numbers by their places, all else by being equal or not."""
    linked = marks.linked
    result = {}
    for name in of:
        far = np.full(len(linked), np.inf)
        near = np.zeros(len(to))
        for labels, codes in zip(linked.labels, linked.codes, strict=True):
            apart = np.abs(codes[to] - codes[name])
            near += np.where(apart > 0, NUMBERS_APART, 0.0) + apart / max(len(labels), 1)
        far[to] = near
        result[int(name)] = far
    return result


def copies(
    rows: Rows, marks: Marks, decoys: Sequence[Decoys], borrowed: Sequence[np.ndarray], key: bytes
) -> list[pa.Table]:
    """Each recipient's copy; `borrowed[i]` has the donor row of each of its decoys."""
    released = marks.linked.published[rows.owner] > 0
    made = []
    for i, name in enumerate(marks.marking.recipients):
        stay = released.copy()
        withheld = np.zeros(len(marks.linked), dtype=bool)
        withheld[marks.withheld(i)] = True
        stay &= ~withheld[rows.owner]
        planted = _planted(rows.table, marks, decoys[i], borrowed[i])
        both = pa.concat_tables([rows.table.filter(pa.array(stay)), planted]).combine_chunks()
        order = keyed_order(derive(key, f"rows {name}"), "order", len(both))
        made.append(both.take(pa.array(order)))
    return made


def _planted(table: pa.Table, marks: Marks, decoys: Decoys, borrowed: np.ndarray) -> pa.Table:
    """A recipient's decoys as rows of the release."""
    planted = table.take(pa.array(borrowed))
    for name, labels, codes in zip(marks.linked.columns, marks.linked.labels, marks.linked.codes, strict=True):
        place = table.column_names.index(name)
        own = labels.take(pa.array(codes[decoys.owner])).cast(table.schema.field(name).type)
        planted = planted.set_column(place, table.schema.field(name), own)
    return planted

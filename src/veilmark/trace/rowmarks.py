"""What a leak shows of row marks: single records that some copies lack.

A leaked row is known by its class and by the keyed fingerprints of its other columns, as far as the leak has them. Marks
that look like another record of their class, by the columns that are left, stay open. How many records of these classes the
leak still has is seen by those that everybody got. Columns that were changed are found by leaving out each in turn.

All of this follows from the leak and from what all copies have in common: the records of the classes with row marks, not who
lacks which. So an innocent recipient's bits are independent of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veilmark.mark.rowmarks import MarkedRows, number_rows, text_prints
from veilmark.tables.cells import number, pack
from veilmark.trace.columns import Matched, same_name
from veilmark.trace.evidence import Marked
from veilmark.trace.labels import ColumnReading
from veilmark.trace.leaked import Leaked

STRAY = 0.01
"""The chance that a record shows which nobody of the leakers has."""

SAME = 0.6
"""A column is known by its values where it has those of at least this share of the records."""


@dataclass(frozen=True, eq=False)
class RowEvidence:
    """Of each row mark, how surely it shows (see `Leak`), with its probability and who holds it; `told` of them say
    anything, by the `columns` compared (ours and theirs); `rate` of the other records of their classes are in the leak."""

    p: np.ndarray
    holds: np.ndarray
    shows: np.ndarray
    told: int
    columns: Mapping[str, str]
    rate: float


def row_evidence(
    marked: Marked, leak: Leaked, matched: Matched, readings: Mapping[str, ColumnReading]
) -> RowEvidence | None:
    """Look for the row marks in a leak; None where it has none of their columns, or the release has no row marks."""
    rows = marked.rows
    if rows is None or not readings:
        return None
    others = _other_columns(rows, leak, set(matched.columns.values()))
    if not others:
        return None
    seen = leak.combinations([*(matched.columns[c] for c in readings), *others.values()])
    labels, codes = seen.codes[: len(readings)], seen.codes[len(readings) :]
    owner = _classes(marked, readings, np.array([of.codes[c] for of, c in zip(readings.values(), labels, strict=True)]))
    texts = seen.texts[len(readings) :]
    prints = [text_prints(t, rows.key, c)[code] for c, t, code in zip(others, texts, codes, strict=True)]
    known = owner >= 0
    leaked = np.array(prints, dtype=np.uint32).T[known]
    readings_of_rows = [_compare(rows, owner[known], leaked, chosen, others) for chosen in _choices(len(others))]
    return max(readings_of_rows, key=lambda one: one.told * one.rate)


def _choices(columns: int) -> list[list[int]]:
    """All columns, and all but one of them."""
    every = list(range(columns))
    return [every, *([i for i in every if i != gone] for gone in (every if columns > 1 else []))]


def _compare(
    rows: MarkedRows, owner: np.ndarray, leaked: np.ndarray, chosen: Sequence[int], others: Mapping[str, str]
) -> RowEvidence:
    """By some of the columns that both have."""
    names = [list(others)[i] for i in chosen]
    own = rows.prints[:, [rows.columns.index(name) for name in names]]
    count, each = number_rows(np.append(rows.owner, owner), np.concatenate([own, leaked[:, list(chosen)]]))
    ours, theirs = each[: len(own)], each[len(own) :]
    there = np.zeros(count, dtype=bool)
    there[theirs] = True
    alone = np.bincount(ours, minlength=count)[ours] == 1
    common = alone.copy()
    common[rows.marked] = False
    rate = float((there[ours[common]].sum() + 0.9) / (common.sum() + 1))
    told = alone[rows.marked]
    rate = min(max(rate, STRAY), 1 - STRAY)
    shown, hidden = rate / (rate + STRAY), (1 - rate) / (1 - rate + 1 - STRAY)
    shows = np.where(told, np.where(there[ours[rows.marked]], shown, hidden), 0.5)
    return RowEvidence(rows.p, rows.holds, shows, int(told.sum()), {n: others[n] for n in names}, rate)


def _classes(marked: Marked, readings: Mapping[str, ColumnReading], theirs: np.ndarray) -> np.ndarray:
    """The released class of each leaked row, -1 where it has none, or where several look alike."""
    ours = np.array([of.up[marked.class_codes[marked.columns.index(c)]] for c, of in readings.items()])
    every = np.concatenate([ours, theirs], axis=1)
    known = np.all(every >= 0, axis=0)
    cell = np.full(every.shape[1], -1)
    if not known.any():
        return cell[ours.shape[1] :]
    distinct, cell[known] = number(*pack(every[:, known], [int(of.max(initial=0)) + 1 for of in every]))
    mine = cell[: ours.shape[1]]
    counts = np.bincount(mine[mine >= 0], minlength=len(distinct))
    class_of = np.full(len(distinct) + 1, -1)  # the last for rows without a cell
    class_of[mine[mine >= 0]] = np.flatnonzero(mine >= 0)
    class_of[:-1][counts != 1] = -1
    found: np.ndarray = class_of[cell[ours.shape[1] :]]
    return found


def _other_columns(rows: MarkedRows, leak: Leaked, taken: set[str]) -> dict[str, str]:
    """Which of the leak's columns has the values of each of the row marks' columns: by name, or else by its values."""
    free = [name for name in leak.columns if name not in taken]
    found = same_name(free, rows.columns)
    for i, column in enumerate(rows.columns):
        left = [name for name in free if name not in found.values()]
        if column in found or not left:
            continue
        shares = [_share(rows.prints[:, i], leak, name, rows.key, column) for name in left]
        if max(shares) >= SAME:
            found[column] = left[int(np.argmax(shares))]
    return {column: found[column] for column in rows.columns if column in found}


def _share(prints: np.ndarray, leak: Leaked, name: str, key: bytes, column: str) -> float:
    """The share of the records whose value is in a leaked column."""
    return float(np.isin(prints, text_prints(leak.combinations([name]).texts[0], key, column)).mean())

"""The recipients' copies, written one at a time: from rows in memory, or by an engine that holds the rows itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from veilmark.mark.code import derive
from veilmark.mark.linking import Ground
from veilmark.mark.plan import Marks
from veilmark.mark.plant import Rows, copy_of, donors, lenders, rows_of, stays
from veilmark.output import write_table
from veilmark.study.columns import published_columns


class Copies(Protocol):
    """Writes the recipients' copies."""

    def write(self, recipient: int, path: Path) -> None:
        """Write one recipient's copy, CSV or Parquet by the suffix."""


@dataclass(frozen=True, eq=False)
class HeldCopies:
    """Copies of rows that are held in memory."""

    rows: Rows
    marks: Marks
    key: bytes

    def write(self, recipient: int, path: Path) -> None:
        """Write one recipient's copy, CSV or Parquet by the suffix."""
        borrowed = donors(self.rows, self.marks, recipient, self.key)
        write_table(copy_of(self.rows, self.marks, recipient, borrowed, self.key), path)


@dataclass(frozen=True, eq=False)
class EngineCopies:
    """Copies of rows that an engine holds. Only the rows of the classes that decoys borrow from are here (`lent`)."""

    held: Any
    marks: Marks
    key: bytes
    lent: Rows

    def write(self, recipient: int, path: Path) -> None:
        """Write one recipient's copy, CSV or Parquet by the suffix; of a large table, a folder of Parquet files."""
        marks, name = self.marks, self.marks.marking.recipients[recipient]
        borrowed = donors(self.lent, marks, recipient, self.key, _counts(marks))
        decoys = rows_of(self.lent, marks, np.repeat(marks.decoys[recipient], marks.sizes[recipient]), borrowed)
        stay = stays(marks, recipient)
        records = int(marks.linked.published[stay].sum()) + len(decoys)
        self.held.write(path, np.flatnonzero(~stay), decoys, derive(self.key, f"rows {name}"), records)


def copies_of(ground: Ground, marks: Marks, key: bytes) -> AbstractContextManager[Copies]:
    """What writes the copies: the engine, where it can, so that nobody has to hold the rows."""
    if getattr(ground.source, "hold_classes", None) is None:
        return nullcontext(HeldCopies(ground.rows(), marks, key))
    return _engine_copies(ground, marks, key)


@contextmanager
def _engine_copies(ground: Ground, marks: Marks, key: bytes) -> Iterator[EngineCopies]:
    source: Any = ground.source
    columns, linked, counts = published_columns(ground.study, source), marks.linked, _counts(marks)
    there = np.flatnonzero(counts)
    labels = [of.take(pa.array(codes[there])) for of, codes in zip(linked.labels, linked.codes, strict=True)]
    classes = pa.table([*labels, pa.array(there)], [*linked.columns, "class"])
    with source.hold_classes(ground.whole_recoding(), columns, classes, int(counts.sum())) as held:
        yield EngineCopies(held, marks, key, _lent(held, columns, marks, key))


def _lent(held: Any, columns: Sequence[str], marks: Marks, key: bytes) -> Rows:
    """The rows of the classes that decoys borrow from."""
    everybody = range(len(marks.marking.recipients))
    chosen = [lenders(_counts(marks), marks, i, key)[0] for i in everybody]
    others = [c for c in columns if c not in marks.linked.columns]
    table, owner = held.rows_in(np.unique(np.concatenate(chosen).astype(np.int64)), others)
    return Rows(tuple(columns), table, owner)


def _counts(marks: Marks) -> np.ndarray:
    """How many of the source's rows each class has."""
    return marks.linked.published + marks.linked.suppressed

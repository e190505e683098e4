"""Recoder: a recoding applied to batches of rows, which stay in their order.

The join of an engine that works in parallel would not keep them so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.tables.cells import BatchCoder, CellIndex
from veilmark.tables.domain import Domain

if TYPE_CHECKING:
    from veilmark.tables.recoding import Recoding


class Recoder:
    """Recoded columns become small numbers, positions in `labels`, which has them by column."""

    def __init__(self, recoding: Recoding, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._recoded = recoding.columns
        pairs = zip(recoding.domains, recoding.codes, strict=True)
        self._coders = [BatchCoder(domain, 1, np.int32, codes) for domain, codes in pairs]
        groups = [Domain(labels, labels) for labels in recoding.labels]
        self._classes = CellIndex(recoding.classes, groups) if recoding.local or recoding.classes.size else None
        self._of_class: list[np.ndarray] | None = None
        labels = recoding.labels
        if recoding.class_labels is not None:
            coded = [_whole(labels).dictionary_encode(null_encoding="encode") for labels in recoding.class_labels]
            self._of_class = [c.indices.to_numpy() for c in coded]
            labels = tuple(c.dictionary for c in coded)
        self.labels = dict(zip(recoding.columns, map(_whole, labels), strict=True))
        self._kinds = [np.min_scalar_type(-max(len(of), 1)) for of in self.labels.values()]

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The published columns of the rows that stay."""
        for batch in batches:
            yield self._recode(batch)

    def _recode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        pairs = zip(self._coders, self._recoded, strict=True)
        codes = np.array([coder.shares(batch.column(c)) for coder, c in pairs], dtype=np.int32)
        kept, labels = self._kept(codes)
        small = [pa.array(of.astype(kind)) for of, kind in zip(labels, self._kinds, strict=True)]
        new = dict(zip(self._recoded, small, strict=True))
        chosen = None if kept is None else pa.array(kept)
        columns = [new[c] if c in new else _plain(batch.column(c), chosen) for c in self._columns]
        return pa.RecordBatch.from_arrays(columns, list(self._columns))

    def _kept(self, codes: np.ndarray) -> tuple[np.ndarray | None, Sequence[np.ndarray]]:
        """The rows that stay (None: all), and their labels column by column."""
        if self._classes is None:
            return None, list(codes)
        place = self._classes.find_codes(codes)
        stays = place >= 0 if self._of_class is not None else place < 0
        kept = None if stays.all() else np.flatnonzero(stays)
        if self._of_class is not None:
            place = place if kept is None else place[kept]
            return kept, [of[place] for of in self._of_class]
        return kept, list(codes if kept is None else codes[:, kept])


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _plain(column: pa.Array, kept: pa.Array | None) -> pa.Array:
    """Rows of a column as it is published: dictionaries, which may name values of rows that are left out, as the values
    themselves; not-a-number as missing."""
    column = column if kept is None else column.take(kept)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary.take(column.indices)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    return column

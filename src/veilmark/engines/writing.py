"""Writing a release: rows kept in their order or shuffled, as one CSV or Parquet file.

The same rows give the same file, byte for byte: row groups do not depend on how the rows arrive.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veilmark.csvtext import CsvWriter
from veilmark.engines.shuffle import Shuffle
from veilmark.errors import OutputError

GROUP_ROWS = 1 << 17
"""Rows of a row group, where rows are kept in their order."""

Labels = Mapping[str, pa.Array]


def write_rows(
    batches: Iterable[pa.RecordBatch],
    path: Path,
    order: Shuffle | None = None,
    labels: Labels | None = None,
    folder: Path | None = None,
) -> None:
    """Write rows to a new file, CSV or Parquet by the suffix; without `order` they stay in theirs.

    Columns in `labels` hold positions there. `folder` is for what does not fit into memory.
    """
    wide = map(_wide, batches)
    ordered = even(wide, GROUP_ROWS) if order is None else order.batches(wide, folder)
    with ExitStack() as opened:
        writer: Any = None
        for batch in ordered:
            dressed = _dressed(batch, labels or {})
            with _explained():
                writer = writer or opened.enter_context(_writer(path, dressed.schema, labels or {}))
                writer.write(dressed)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = "the disk is full" if error.errno == errno.ENOSPC else "the disk or the folder refuses the file"
        raise OutputError(f"The release cannot be written: {full}. Free space, or write elsewhere.") from None
    except pa.ArrowNotImplementedError as error:
        raise OutputError(
            f"A published column has a type that Parquet files cannot hold ({str(error).rpartition(': ')[2]}). Write a .csv "
            "file, or convert the column to text."
        ) from None


def _wide(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Texts that may grow beyond the 2 GiB of Arrow's usual ones when batches are put together."""
    kinds = {pa.string(): pa.large_string(), pa.string_view(): pa.large_string(), pa.binary(): pa.large_binary()}
    columns = [column.cast(kinds[column.type]) if column.type in kinds else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def even(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of so many, and the rest."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        waiting.append(batch)
        held += batch.num_rows
        while held >= rows:
            whole = pa.concat_batches(waiting)
            yield whole.slice(0, rows)
            held -= rows
            waiting = [whole.slice(rows)]
    if held or waiting:
        yield pa.concat_batches(waiting)


def _writer(path: Path, schema: pa.Schema, labels: Labels) -> Any:
    if path.suffix != ".parquet":
        return CsvWriter(path, schema)
    # Least and greatest label of a row group tell nothing that helps a reader, and take longer than the rest.
    others = [name for name in schema.names if name not in labels]
    return pq.ParquetWriter(path, schema, store_schema=False, write_statistics=others or False)


def _dressed(batch: pa.RecordBatch, labels: Labels) -> pa.RecordBatch:
    """Labels in the place of their positions."""
    columns = [
        _labelled(column.to_numpy(), labels[name]) if name in labels else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _labelled(codes: np.ndarray, labels: pa.Array) -> pa.Array:
    """Labels as a dictionary of those that occur: others would tell of records that are left out."""
    if not pa.types.is_string(labels.type):
        return labels.take(pa.array(codes))
    there = np.bincount(codes, minlength=len(labels)) > 0
    missing = np.asarray(labels.is_null())
    place = np.cumsum(there & ~missing) - 1
    mask = missing[codes] if (there & missing).any() else None
    index = pa.array(place.astype(np.int32)[codes], mask=mask)
    return pa.DictionaryArray.from_arrays(index, labels.filter(pa.array(there & ~missing)))

"""CSV as every verb writes it: quotes only where a value needs them, and a missing value is an empty field.

A value needs quotes where it holds a comma, a quote or a line end, or where it is an empty text. In a table of one column
a missing value is written as "": readers skip blank lines.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SPECIAL = (",", '"', "\n", "\r")
MOST_BYTES = 1 << 29
"""Rows are joined to lines in pieces of about so many bytes: Arrow's texts end at 2 GiB."""


class CsvWriter:
    """Writes batches of one schema to a new file; the first line has the column names."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("wb")
        self._render: Any = None
        names = quoted(pa.array(schema.names, pa.string())).to_pylist()
        self._file.write((",".join(names) + "\n").encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self._render is not None:
            self._render.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; dictionaries stand for their values."""
        if batch.nbytes > MOST_BYTES and batch.num_rows > 1:
            half = batch.num_rows // 2
            self.write(batch.slice(0, half))
            self.write(batch.slice(half))
        elif batch.num_rows and batch.num_columns:
            fields = [self._fields(column) for column in batch.columns]
            if len(fields) == 1:
                fields[0] = fields[0].fill_null('""')
            self._file.write(_lines(fields))

    def _fields(self, column: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(column.type):
            return self._fields(column.dictionary).take(column.indices)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            column = self._text(column)
        return quoted(column.cast(pa.string()))

    def _text(self, column: pa.Array) -> pa.Array:
        """Any other value as DuckDB writes it, so that a date or a number looks the same from every verb."""
        if self._render is None:
            import duckdb

            self._render = duckdb.connect(config={"threads": 1})
            self._render.execute("SET enable_progress_bar=false; SET TimeZone='UTC'")
        self._render.register("given", pa.table({"v": column}))
        found = self._render.sql("SELECT CAST(v AS VARCHAR) AS v FROM given").to_arrow_table().column(0)
        return pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], pa.string())


def quoted(values: pa.Array) -> pa.Array:
    """Texts as fields of a CSV file; missing stays missing."""
    ends = _ends(values)
    held = np.frombuffer(values.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
    fields = values
    if any((held == ord(character)).any() for character in SPECIAL):
        special = pc.match_substring(values, SPECIAL[0])
        for character in SPECIAL[1:]:
            special = pc.or_(special, pc.match_substring(values, character))
        enclosed = pc.binary_join_element_wise('"', pc.replace_substring(values, '"', '""'), '"', "")
        fields = pc.if_else(special, enclosed, values)
    has_empty = (ends[1:] == ends[:-1]).sum() > values.null_count
    return pc.if_else(pc.equal(values, ""), '""', fields) if has_empty else fields


def _ends(values: pa.Array) -> np.ndarray:
    """Where each text starts in the data, and the last one ends."""
    if not len(values):
        return np.zeros(1, np.int32)
    return np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]


def _lines(fields: list[pa.Array]) -> memoryview:
    """The rows of some columns as the bytes of their lines."""
    *before, last = fields
    last = pc.binary_join_element_wise(last, "", "\n", null_handling="replace", null_replacement="")
    joined = pc.binary_join_element_wise(*before, last, ",", null_handling="replace", null_replacement="")
    ends = _ends(joined)
    return memoryview(joined.buffers()[2])[ends[0] : ends[-1]]

"""Frames of other libraries as Arrow tables."""

from __future__ import annotations

from typing import Any, TypeVar

import pyarrow as pa

from veilmark.errors import DataError

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def is_relation(data: Any) -> bool:
    """Whether this is a DuckDB relation."""
    return type(data).__name__ == "DuckDBPyRelation"


def to_arrow(data: Any) -> pa.Table:
    """A pandas, polars or Arrow frame, a DuckDB relation, or anything with Arrow's stream interface, as an Arrow table."""
    return with_known_types(_as_table(data))


def with_known_types(rows: Rows) -> Rows:
    """Columns of types that engines do not have, as those that hold the same values: half-precision numbers as single ones,
    durations as whole numbers of their unit, as Parquet files have them."""
    for i, field in enumerate(rows.schema):
        kind = known_type(field.type)
        if kind != field.type:
            rows = rows.set_column(i, field.name, rows.column(i).cast(kind))
    return rows


def known_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_float16(kind):
        return pa.float32()
    return pa.int64() if pa.types.is_duration(kind) else kind


def is_plain(kind: pa.DataType) -> bool:
    """Whether Arrow itself codes, filters and writes values of a type; the others the engine reads into such ones."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    plain = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_timestamp, pa.types.is_time)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_decimal128, pa.types.is_null)
    return kind in (pa.float32(), pa.float64()) or any(test(kind) for test in (*plain, *texts))


def _as_table(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.table(data)
    if type(data).__module__.partition(".")[0] == "pandas":
        return _from_pandas(data)
    if is_relation(data):
        return data.to_arrow_table()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    raise DataError(
        f"A {type(data).__name__} is not a table that veilmark can read. Give a path, a pandas, polars or Arrow "
        "frame, or a DuckDB relation."
    )


def _from_pandas(frame: Any) -> pa.Table:
    if not frame.columns.is_unique:
        twice = list(frame.columns[frame.columns.duplicated()])
        raise DataError(f"The frame has more than one column called '{twice[0]}'. Rename or drop all but one.")
    arrays = {str(name): _column(frame[name], str(name)) for name in frame.columns}
    return pa.table(arrays)


def _column(series: Any, name: str) -> pa.Array:
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise DataError(
            f"Column '{name}' of the frame mixes types (such as numbers and text). Make it one type first: "
            f"frame['{name}'] = frame['{name}'].astype(str)."
        ) from None

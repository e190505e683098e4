"""Frames of other libraries as Arrow tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from veilmark.errors import DataError


def is_relation(data: Any) -> bool:
    """Whether this is a DuckDB relation."""
    return type(data).__name__ == "DuckDBPyRelation"


def to_arrow(data: Any) -> pa.Table:
    """A pandas, polars or Arrow frame, or anything that offers Arrow's stream interface, as an Arrow table."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.table(data)
    if type(data).__module__.partition(".")[0] == "pandas":
        return _from_pandas(data)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    raise DataError(
        f"A {type(data).__name__} is not a table veilmark knows. Give a path, a pandas, polars or Arrow frame, or a "
        "DuckDB relation."
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

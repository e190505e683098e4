"""What every published table can do: become a frame of another library, be read as one, and be written to a file."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from veilmark.errors import VeilmarkError
from veilmark.output import check_table_path, write_table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Framed(ABC):
    """A published table. It can stand wherever a frame can: `study.attack(release)`, `polars.DataFrame(release)`."""

    @abstractmethod
    def table(self) -> pa.Table:
        """The published rows as they are held."""

    def to_arrow(self) -> pa.Table:
        """The published rows as an Arrow table; columns that were read from a CSV file are texts."""
        return plain_columns(self.table())

    def to_pandas(self) -> pd.DataFrame:
        """The published rows as a pandas DataFrame."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """The published rows as a polars DataFrame."""
        return as_polars(self.to_arrow())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the published rows as CSV or Parquet, by the file's suffix, whole or not at all."""
        target = Path(path)
        check_table_path(target)
        write_table(self.to_arrow(), target)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's stream interface, by which other libraries read the rows."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def plain_columns(table: pa.Table) -> pa.Table:
    """The table without dictionaries: whoever counts categories would count those that no row has."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, pc.cast(table.column(i), field.type.value_type))
    return table


def as_pandas(table: pa.Table) -> pd.DataFrame:
    """An Arrow table as a pandas DataFrame."""
    _require("pandas")
    return table.to_pandas()


def as_polars(table: pa.Table) -> pl.DataFrame:
    """An Arrow table as a polars DataFrame."""
    polars: Any = _require("polars")
    frame: pl.DataFrame = polars.from_arrow(table)
    return frame


def _require(package: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ModuleNotFoundError:
        raise VeilmarkError(f"This needs the package {package}. Install it: pip install {package}") from None

"""A leaked file, as tracing looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.engines.duckdb import DuckTable
from veilmark.tables.domain import as_text
from veilmark.trace.leaked import Combinations, distinct_rows


@dataclass(frozen=True, eq=False)
class FileLeak:
    """A leaked file: DuckDB counts the combinations of those columns that are asked for."""

    table: DuckTable
    _known: dict[tuple[str, ...], Combinations] = field(default_factory=dict)
    _orders: dict[str, pa.Array] = field(default_factory=dict)

    @property
    def columns(self) -> Sequence[str]:
        return [name for name, kind in self.table.columns.items() if kind != "nested"]

    def combinations(self, columns: Sequence[str]) -> Combinations:
        key = tuple(columns)
        if key not in self._known:
            texts = [self._texts(name) for name in columns]
            *values, counts = self._grouped(columns)
            codes = [np.asarray(pc.index_in(v, value_set=t)) for v, t in zip(values, texts, strict=True)]
            self._known[key] = distinct_rows(texts, codes, np.asarray(counts))
        return self._known[key]

    def _grouped(self, columns: Sequence[str]) -> list[pa.Array]:
        """Distinct rows as texts, column by column, and last how often each occurs."""
        listed = ", ".join(f"{column_value(name, self.table.columns[name])} AS c{i}" for i, name in enumerate(columns))
        rows = self.table.query(f"SELECT {listed}, count(*) AS n FROM {self.table.name} GROUP BY ALL")
        return [
            *(as_text(rows.column(i).combine_chunks()) for i in range(len(columns))),
            rows.column("n").combine_chunks(),
        ]

    def _texts(self, column: str) -> pa.Array:
        """The distinct texts of a column, in one order whatever is asked for."""
        if column not in self._orders:
            self._orders[column] = self._grouped([column])[0].unique()
        return self._orders[column]


def column_value(name: str, kind: str) -> str:
    """A column; where its name has blanks around it, so may have its values."""
    return f"trim({quoted(name)})" if kind == "text" and name != name.strip() else quoted(name)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""Columns that would be published unchanged: how many records are unique by the quasi-identifiers and such a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veilmark.engines.duckdb import DIALECT, DuckTable

EXACT_ROWS = 1_000_000
SLICE = 64
"""In tables of more rows, the classes of one of so many slices are counted."""


@dataclass(frozen=True)
class Unique:
    """Of all `records`, those that are unique by the quasi-identifiers, by a column, and by both together.

    A record counts as unique where nobody else's has the same values. `exact` is false where both are estimates.
    """

    records: int
    by_quasi: int
    by_column: int
    by_both: int
    exact: bool = True

    def __str__(self) -> str:
        about = "" if self.exact else "about "
        return (
            f"{about}{self.by_both:,} of {self.records:,} records are unique by the quasi-identifiers and this column "
            f"({self.by_quasi:,} by the quasi-identifiers alone, {self.by_column:,} by this column alone)"
        )


def unique_with(
    table: DuckTable, quasi: Sequence[str], person: str | None, columns: Sequence[str]
) -> dict[str, Unique]:
    """For each of some columns, how many records it makes unique; the table is read once."""
    if not columns:
        return {}
    chosen = list(dict.fromkeys([*quasi, *columns, *([person] if person else [])]))
    spooled = table.spooled(chosen)
    records = spooled.count()
    exact = records <= EXACT_ROWS
    keys = {column: DIALECT.clean(column, spooled.columns[column]) for column in chosen}
    count = _Counter(spooled, keys.get(person or ""), records, not exact)
    known = [keys[name] for name in quasi]
    by_quasi = count.unique(known)
    return {
        column: Unique(records, by_quasi, count.unique([keys[column]]), count.unique([*known, keys[column]]), exact)
        for column in columns
    }


@dataclass(frozen=True)
class _Counter:
    """Counts records whose combination of some values nobody else has."""

    table: DuckTable
    person: str | None
    records: int
    sliced: bool

    def unique(self, values: Sequence[str]) -> int:
        """A hash of 64 bits stands for the combination; that two of a million are the same is as likely as 1 in 10^7."""
        rows = f"SELECT hash({', '.join([*values, '0'])}) AS h, {self.person or '0'} AS p FROM {self.table.name}"
        part = f" WHERE h % {SLICE} = 0" if self.sliced else ""
        one = "min(p) IS NOT DISTINCT FROM max(p)" if self.person else "count(*) = 1"
        classes = f"SELECT count(*) AS n, {one} AS one FROM ({rows}){part} GROUP BY h"
        counts = "coalesce(sum(n) FILTER (one), 0)::BIGINT AS unique_ones, coalesce(sum(n), 0)::BIGINT AS looked_at"
        [row] = self.table.query(f"SELECT {counts} FROM ({classes})").to_pylist()
        return round(self.records * row["unique_ones"] / max(row["looked_at"], 1))

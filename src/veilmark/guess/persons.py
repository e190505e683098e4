"""Persons with several records: whether their quasi-identifiers vary, and which value is to count then."""

from __future__ import annotations

from collections.abc import Sequence

from veilmark.engines.duckdb import DIALECT, DuckTable
from veilmark.guess.shapes import ISO_DAY, Shape

Fold = str | dict[str, str]


def varying(table: DuckTable, person: str, columns: Sequence[str]) -> dict[str, int]:
    """The columns of which some persons have several values, and how many persons; a missing value is none."""
    if not columns:
        return {}
    clean = [DIALECT.clean(column, table.columns[column]) for column in columns]
    varies = ", ".join(f"min({value}) <> max({value}) AS v{i}" for i, value in enumerate(clean))
    counts = ", ".join(f"count(*) FILTER (v{i}) AS v{i}" for i in range(len(columns)))
    who = DIALECT.clean(person, table.columns[person])
    inner = f"SELECT {varies} FROM {table.name} WHERE {who} IS NOT NULL GROUP BY {who}"
    [row] = table.query(f"SELECT {counts} FROM ({inner})").to_pylist()
    return {column: row[f"v{i}"] for i, column in enumerate(columns) if row[f"v{i}"]}


def fold_by(shapes: dict[str, Shape], varies: dict[str, int]) -> Fold:
    """The latest record, where just one column is a date by which records can be put in order; else the commonest value."""
    dates = [column for column in varies if shapes[column].name == "date"]
    ordered = len(dates) == 1 and shapes[dates[0]].formats == (ISO_DAY,)
    return {"latest": dates[0]} if ordered else "mode"

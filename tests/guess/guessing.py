"""What the tests of guesses share."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from veilmark.engines.duckdb import DuckDB
from veilmark.guess import Guess, guess_columns
from veilmark.hierarchy import parse_spec, resolve
from veilmark.study.study import Study

ENGINE = DuckDB()
"""One for all tests, for to open one takes longer than most of them."""

atexit.register(ENGINE.close)


def guess_again(source: object) -> dict[str, Guess]:
    """The guesses by column, once every hierarchy among them is known to fit its column."""
    table = ENGINE.open(source)
    guesses = {g.column: g for g in guess_columns(table)}
    assert list(guesses) == list(table.columns)
    for found in guesses.values():
        assert found.role != "other" or not found.usable or found.warnings or _tells_nothing(found)
        if found.hierarchy:
            levels = resolve(parse_spec(found.hierarchy), table.domain(found.column), found.column)
            assert len(levels.labels[-1]) == 1
    return guesses


def _tells_nothing(guess: Guess) -> bool:
    """Columns that may be published unchanged without a word: those that are the same, or empty, in all records."""
    return guess.reason.startswith(("the same value in all records", "no values"))


def one(name: str, values: Sequence[object], times: int = 1) -> Guess:
    """The guess for a column that stands alone in a frame."""
    return guess_again(pa.table({name: pa.array([v for v in values for _ in range(times)])}))[name]


def roles(guesses: dict[str, Guess]) -> dict[str, str]:
    return {column: g.role for column, g in guesses.items()}


def opened(text: str, folder: Path) -> Study:
    file = folder / "study.yaml"
    file.write_text(text, encoding="utf-8")
    return Study.open(file)


def stored(table: pa.Table, folder: Path, suffix: str) -> str:
    file = folder / f"table{suffix}"
    if suffix == ".csv":
        pacsv.write_csv(table, file)
    else:
        pq.write_table(table, file)
    return str(file)

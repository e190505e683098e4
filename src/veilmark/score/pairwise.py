"""Pairwise judgements: how many times one thing outweighs another, checked, from Python or a CSV file."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veilmark.errors import WeightsError, did_you_mean, listing

__all__ = ["Array", "PairwiseMatrix", "read_matrix"]

Array = npt.NDArray[np.float64]

# A hair over 1 %, so that the usual rounding of 1/3 to 0.33 is still taken as the reciprocal of 3.
_RECIPROCAL_TOLERANCE = 0.01 + 1e-9
_LARGEST = 1e100
_ADVICE = "A judgement is a positive number such as 3, 0.5 or 1/3. Leave the cell empty if there is no judgement."


@dataclass(frozen=True, eq=False)
class PairwiseMatrix:
    """How many times the row's name outweighs the column's: positive, NaN where nobody judged.

    One side of the diagonal is enough; the other is its reciprocal. Where both are given they may differ
    by 1 % (rounding), and are then drawn together: a_ij = sqrt(a_ij / a_ji). `source` is named in messages.
    """

    names: tuple[str, ...]
    values: Array
    source: str = "The pairwise matrix"

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.names)
        values = np.array(self.values, dtype=np.float64)
        _check_names(names, self.source)
        _check_shape(names, values, self.source)
        values = _reciprocal(names, values, self.source)
        values.flags.writeable = False
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "values", values)

    @classmethod
    def from_judgements(
        cls,
        judgements: Mapping[tuple[str, str], float | str],
        names: Sequence[str] | None = None,
        source: str = "The pairwise matrix",
    ) -> PairwiseMatrix:
        """From `{("HIV", "Flu"): 5, ("Flu", "Migraine"): "1/2"}`; `names` sets the order, or adds names."""
        order = tuple(names) if names is not None else tuple(dict.fromkeys(n for pair in judgements for n in pair))
        index = {name: i for i, name in enumerate(order)}
        values = np.full((len(order), len(order)), np.nan)
        for (row, column), cell in judgements.items():
            for name in (row, column):
                if name not in index:
                    raise WeightsError(f"{source} judges '{name}', which is not among the names {listing(order)}.")
            values[index[row], index[column]] = _judgement(cell, _place(source, row, column))
        return cls(order, values, source)

    @property
    def missing(self) -> int:
        """Number of pairs without a judgement."""
        return int(np.isnan(self.values).sum()) // 2

    def aligned(self, names: Sequence[str]) -> PairwiseMatrix:
        """The same judgements with the names in another order."""
        order = [self.names.index(name) for name in names]
        return PairwiseMatrix(tuple(names), self.values[np.ix_(order, order)], self.source)

    def to_dict(self) -> dict[str, Any]:
        rows = [[None if math.isnan(cell) else cell for cell in row] for row in self.values.tolist()]
        return {"names": list(self.names), "values": rows}


def read_matrix(path: str | os.PathLike[str]) -> PairwiseMatrix:
    """A pairwise matrix from CSV: header `,a,b,c`, rows `a,1,3,5`; comma, semicolon or tab.

    Columns may be in another order than rows. Cells are decimals (with a decimal comma too, where the comma
    does not separate cells) or fractions such as `1/3`; an empty one is a missing judgement.
    """
    source = os.fspath(path)
    header, *body = _cells(_text(path), source)
    columns = _column_names(header)
    rows = [row[0].strip() for row in body]
    _check_names(tuple(columns), source)
    _check_names(tuple(rows), source)
    _check_same_names(rows, columns, source)
    cells = {
        (name, column): cell
        for name, row in zip(rows, body, strict=True)
        for column, cell in zip(columns, _padded(row[1:], name, len(columns), source), strict=True)
        if cell
    }
    return PairwiseMatrix.from_judgements(cells, rows, source)


# --- reading -----------------------------------------------------------------------------------------------


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise WeightsError(f"{os.fspath(path)} does not exist. Give the path of a pairwise matrix in CSV.") from None
    except UnicodeDecodeError:
        raise WeightsError(f"{os.fspath(path)} is not UTF-8 text. Save the pairwise matrix as CSV in UTF-8.") from None
    except OSError as problem:
        raise WeightsError(f"{os.fspath(path)} cannot be read: {problem.strerror}.") from None


def _cells(text: str, source: str) -> list[list[str]]:
    readings = [_split(text, delimiter) for delimiter in ",;\t"]
    # Names may hold the other delimiters, so a reading whose rows and columns agree goes before most cells.
    rows = max(readings, key=lambda rows: (_names_agree(rows), len(rows[0]) if rows else 0))
    if len(rows) < 2 or len(rows[0]) < 2:
        raise WeightsError(
            f"{source} has no pairwise matrix. A matrix has a header row such as ',a,b' and a row for each name "
            "such as 'a,1,3', separated by commas, semicolons or tabs."
        )
    return rows


def _split(text: str, delimiter: str) -> list[list[str]]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return [row for row in rows if any(cell.strip() for cell in row)]
    except csv.Error:
        return []


def _names_agree(rows: list[list[str]]) -> bool:
    return len(rows) > 1 and sorted(_column_names(rows[0])) == sorted(row[0].strip() for row in rows[1:])


def _column_names(header: list[str]) -> list[str]:
    """Names after the corner cell; spreadsheets leave empty cells behind them."""
    names = [name.strip() for name in header[1:]]
    while names and not names[-1]:
        names.pop()
    return names


def _padded(cells: list[str], name: str, size: int, source: str) -> list[str]:
    cells = [cell.strip() for cell in cells]
    if any(cells[size:]):
        extra = next(filter(None, cells[size:]))
        raise WeightsError(
            f"{source}, row '{name}' has a cell '{extra}' beyond the {size} columns "
            "of the header. Remove it, or name its column."
        )
    return cells[:size] + [""] * (size - len(cells))


def _judgement(cell: float | str, place: str) -> float:
    try:
        value = _number(cell)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not math.isfinite(value):
        raise WeightsError(f"{place}: '{cell}' is not a number. {_ADVICE}")
    return value


def _number(cell: float | str) -> float:
    if not isinstance(cell, str):
        return float(cell)
    numerator, slash, denominator = cell.replace(",", ".").partition("/")
    return float(numerator) / float(denominator) if slash else float(numerator)


# --- validation --------------------------------------------------------------------------------------------


def _place(source: str, row: str, column: str) -> str:
    return f"{source}, row '{row}', column '{column}'"


def _check_names(names: tuple[str, ...], source: str) -> None:
    if not names:
        raise WeightsError(f"{source} has no names. Give at least one.")
    if "" in names:
        raise WeightsError(f"{source} has a row or column without a name, number {names.index('') + 1}. Name it.")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise WeightsError(f"{source} has {listing(twice)} more than once. Give each name one row and one column.")


def _check_same_names(rows: list[str], columns: list[str], source: str) -> None:
    for these, those, kind, other in ((rows, columns, "row", "column"), (columns, rows, "column", "row")):
        lone = [name for name in these if name not in those]
        if lone:
            raise WeightsError(
                f"{source} is not square: {len(rows)} rows and {len(columns)} columns; {listing(lone)} has a "
                f"{kind} but no {other}.{did_you_mean(lone[0], those)} Rows and columns need the same names."
            )


def _check_shape(names: tuple[str, ...], values: Array, source: str) -> None:
    size = len(names)
    if values.shape != (size, size):
        raise WeightsError(
            f"{source} is not square: its shape is {values.shape} for {size} names. "
            f"Give {size} rows of {size} judgements."
        )


def _reciprocal(names: tuple[str, ...], values: Array, source: str) -> Array:
    """The checked matrix, with reciprocals filled in and rounded ones drawn together."""
    _check_positive(names, values, source)
    _check_diagonal(names, values, source)
    np.fill_diagonal(values, 1.0)
    _check_reciprocals(names, values, source)
    opposite = 1 / values.T
    values = np.where(np.isnan(values), opposite, values)
    return np.asarray(np.sqrt(values / values.T), dtype=np.float64)


def _check_positive(names: tuple[str, ...], values: Array, source: str) -> None:
    wrong = ~np.isnan(values) & ((values < 1 / _LARGEST) | (values > _LARGEST))
    for row, column in np.argwhere(wrong)[:1]:
        value = values[row, column]
        fault = "not positive" if value <= 0 else "too extreme to compute with"
        raise WeightsError(f"{_place(source, names[row], names[column])}: {value:g} is {fault}. {_ADVICE}")


def _check_diagonal(names: tuple[str, ...], values: Array, source: str) -> None:
    diagonal = np.diag(values)
    for i in np.flatnonzero(np.abs(diagonal - 1) > 1e-9)[:1]:
        raise WeightsError(
            f"{_place(source, names[i], names[i])}: the diagonal is {diagonal[i]:g}, not 1. "
            "A name compared with itself is 1; write 1 or leave the cell empty."
        )


def _check_reciprocals(names: tuple[str, ...], values: Array, source: str) -> None:
    for row, column in np.argwhere(np.abs(values * values.T - 1) > _RECIPROCAL_TOLERANCE)[:1]:
        raise WeightsError(
            f"{_place(source, names[row], names[column])}: {values[row, column]:g} is not the reciprocal of "
            f"{values[column, row]:g} in row '{names[column]}', column '{names[row]}'. "
            f"Correct one of them, or leave one empty to have it filled in."
        )

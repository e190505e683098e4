"""Whether a CSV has a line of column names, or begins with data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from veilmark.errors import NoHeaderError

NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
VALUE = re.compile(rf"{NUMBER.pattern}|\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}.*|[^@\s]+@[^@\s]+\.[^@\s]+", re.ASCII)
"""A number, a date or an e-mail address."""

YEAR = re.compile(r"(19|20)\d\d")
"""What columns of amounts by year are called."""

ALIKE = 0.8
"""Where a column's name is a number or a date, so many of its values must be too for it to be one of them."""

LEAST_ROWS = 3


def check_header(rows: Sequence[Sequence[str]], label: str) -> None:
    """The first of some rows holds names; the message shows none of them, for they may be somebody's data."""
    if len(rows) <= LEAST_ROWS:
        return
    names, *records = rows
    columns = [[row[i] for row in records if i < len(row)] for i in range(len(names))]
    counted = _is_run([name for name in names if NUMBER.fullmatch(name.strip())])
    values = [_is_value(name.strip(), column, counted) for name, column in zip(names, columns, strict=True)]
    if sum(values) * 2 >= len(names):
        raise NoHeaderError(
            f"'{label}' seems to have no column names: {sum(values)} of the {len(names)} entries in its first "
            "line look like values. Add a first line with a name for each column."
        )


def _is_value(name: str, column: Sequence[str], counted: bool) -> bool:
    """Whether a column's name looks like one of its values."""
    present = [value.strip() for value in column if value.strip()]
    if not VALUE.fullmatch(name):
        return bool(name) and name in present
    if YEAR.fullmatch(name) or (counted and NUMBER.fullmatch(name)):
        return False
    return sum(VALUE.fullmatch(value) is not None for value in present) >= ALIKE * len(present)


def _is_run(names: Sequence[str]) -> bool:
    """Whether numbers count up by one, as years and numbered columns do, and data does not."""
    if len(names) < 2 or not all(name.strip().isdigit() for name in names):
        return False
    return all(int(b) - int(a) == 1 for a, b in pairwise(names))

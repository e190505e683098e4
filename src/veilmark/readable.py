"""What every result prints: a headline, small tables and notes, as text in a terminal and as HTML in a notebook."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_ROWS = 12
"""A table shows so many; of more, it says how many there are."""

WIDEST = 60
"""Texts in a cell are cut beyond that."""

UNSEEN = ("Cc", "Cs", "Zl", "Zp")
"""Unicode's categories of control characters, lone surrogates and line separators."""

Scalar = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Grid:
    """A small table. Numbers are ready to print: whoever makes the table knows how many digits mean something."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    title: str = ""

    def shown(self) -> list[list[str]]:
        """The first rows, as texts of one line each."""
        return [[_cell(value) for value in row] for row in self.rows[:MOST_ROWS]]

    @property
    def left_out(self) -> str:
        more = len(self.rows) - MOST_ROWS
        return f"… and {more:,} more" if more > 0 else ""

    def is_number(self, column: int) -> bool:
        """Whether a column is set flush right: it is not the first, and each cell has a digit or is empty."""
        return column > 0 and all(_looks_like_number(row[column]) for row in self.shown())


@dataclass(frozen=True)
class Summary:
    """What a result says of itself."""

    headline: str
    grids: Sequence[Grid] = ()
    notes: Sequence[str] = ()

    def text(self) -> str:
        blocks = [self.headline, *(_grid_text(grid) for grid in self.grids if grid.rows), "\n".join(self.notes)]
        return "\n\n".join(block for block in blocks if block)

    def html(self) -> str:
        """Whatever comes from data is escaped."""
        grids = "".join(_grid_html(grid) for grid in self.grids if grid.rows)
        notes = "".join(f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)
        return f"<div><p><strong>{html.escape(self.headline)}</strong></p>{grids}{notes}</div>"


class Readable:
    """A result that prints as a few lines. `to_dict` is what it shows where `summary` is not its own."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:
            # A dataclass would otherwise write one with everything in it, arrays too.
            cls.__repr__ = Readable.__repr__  # type: ignore[method-assign]

    def to_dict(self) -> dict[str, Any]:
        """What is known of the result."""
        return {}

    def summary(self) -> Summary:
        return summary_of(type(self).__name__, self.to_dict())

    def __str__(self) -> str:
        return self.summary().text()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary().headline.rstrip('.')})"

    def _repr_html_(self) -> str:
        return self.summary().html()


def summary_of(name: str, content: Mapping[str, Any]) -> Summary:
    """A mapping's plain values, and of those that are mappings themselves a table each. Lists are left to `to_dict`: they
    may be long, and may hold somebody's data."""
    plain = [(key, value) for key, value in content.items() if isinstance(value, Scalar) and value is not None]
    grids = [Grid(("", "value"), plain)]
    for key, value in content.items():
        if isinstance(value, Mapping) and value and all(isinstance(of, Scalar) for of in value.values()):
            grids.append(Grid((key, "value"), list(value.items())))
    return Summary(name, grids)


def count(number: int, noun: str) -> str:
    """`1 record`, `2,000 records`, `3 classes`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def share(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}%}"


def _cell(value: object) -> str:
    if isinstance(value, bool) or value is None:
        text = {True: "yes", False: "no", None: "-"}[value]
    elif isinstance(value, int):
        text = f"{value:,}"
    else:
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
    # Control characters would move the cursor, or break the line.
    text = "".join("?" if unicodedata.category(c) in UNSEEN else c for c in text)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _looks_like_number(cell: str) -> bool:
    return not cell or cell == "-" or cell[0].isdigit() or (cell[0] in "+-−±≤∞" and len(cell) > 1)


def _grid_text(grid: Grid) -> str:
    rows = [[_cell(heading) for heading in grid.headings], *grid.shown()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(grid.headings))]
    right = [grid.is_number(i) for i in range(len(widths))]
    lines = ("  ".join(_padded(*cell) for cell in zip(row, widths, right, strict=True)).rstrip() for row in rows)
    return "\n".join([*([grid.title] if grid.title else []), *lines, *([grid.left_out] if grid.left_out else [])])


def _padded(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def _grid_html(grid: Grid) -> str:
    right = [' style="text-align: right"' if grid.is_number(i) else "" for i in range(len(grid.headings))]
    head = _row_html("th", map(_cell, grid.headings), right)
    body = "".join(_row_html("td", row, right) for row in grid.shown())
    caption = f"<caption>{html.escape(grid.title)}</caption>" if grid.title else ""
    more = f"<p><small>{grid.left_out}</small></p>" if grid.left_out else ""
    return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>{more}"


def _row_html(tag: str, cells: Iterable[str], styles: Sequence[str]) -> str:
    made = (f"<{tag}{style}>{html.escape(cell)}</{tag}>" for cell, style in zip(cells, styles, strict=True))
    return f"<tr>{''.join(made)}</tr>"


def probability(p: float) -> str:
    """Two digits, rounded up, so that no probability looks smaller than it is."""
    if p <= 0 or p >= 1:
        return f"{p:g}"
    unit = 10.0 ** (math.floor(math.log10(p)) - 1)
    return f"{min(math.ceil(p / unit - 1e-6) * unit, 1.0):.2g}"


def finite(value: Any) -> Any:
    """A value as JSON has a form for it: lists for tuples, null for what is not a number."""
    if isinstance(value, Mapping):
        return {str(name): finite(of) for name, of in value.items()}
    if isinstance(value, list | tuple):
        return [finite(of) for of in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

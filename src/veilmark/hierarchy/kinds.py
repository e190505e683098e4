"""Hierarchies as Python writes them: `Mask(5)`, `Intervals(5, 10, 20)`, `Dates("month", "year")`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from veilmark.errors import HierarchyError
from veilmark.hierarchy.spec import DateSpec, HierarchySpec, IntervalSpec, MaskSpec

Others = Literal["*"] | None


class Mask(MaskSpec):
    """Hide one more character a level, from the right: `Mask(5)` turns 13053 into 1305*, 130**, … *****.

    `characters` is how many there are to hide. `side` "left" hides from the left.
    """

    def __init__(self, characters: int, side: Literal["right", "left"] = "right") -> None:
        _fill(super().__init__, mask=characters, side=side)


class Intervals(IntervalSpec):
    """Numbers in bins, a width a level: `Intervals(5, 10, 20)` turns 34 into 30-34, 30-39, 20-39, *.

    Each width is a multiple of the one before. Bins begin at `offset` plus a multiple of the width. With `others` "*",
    values that are not numbers become * instead of being refused.
    """

    def __init__(self, *widths: float, offset: float = 0, others: Others = None) -> None:
        _fill(super().__init__, intervals=widths, offset=offset, others=others)


class Dates(DateSpec):
    """Dates in coarser and coarser units: `Dates("month", "year")` turns 2024-03-05 into 2024-03, 2024, *.

    The units are day, month, quarter, year, decade and century. `format` is strptime's, ISO where there is none; of
    several, the first that fits a value counts. With `others` "*", values that are not dates become * instead of being
    refused.
    """

    def __init__(
        self,
        *units: str,
        format: str | Sequence[str] | None = None,  # noqa: A002
        others: Others = None,
    ) -> None:
        _fill(super().__init__, dates=units, format=format, others=others)


HierarchyLike = HierarchySpec | Mapping[str, Any] | str | os.PathLike[str]
"""A hierarchy as Python takes it: one of the above, what a study file would hold, or the path of a file in ARX's form."""


def hierarchy_content(given: HierarchyLike) -> Any:
    """What a study file would hold."""
    if isinstance(given, BaseModel):
        return given.model_dump(mode="json", exclude_defaults=True)
    return {"file": os.fspath(given)} if isinstance(given, str | os.PathLike) else given


def _fill(init: Any, **content: Any) -> None:
    try:
        init(**content)
    except ValidationError as problem:
        fault = problem.errors()[0]
        said = fault["msg"].removeprefix("Value error, ").rstrip(".")
        raise HierarchyError(f"{problem.title} does not accept {fault['input']!r}: {said}.") from None

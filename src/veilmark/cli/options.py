"""Options that several verbs share, and how results are printed."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from veilmark.cli.numbers import typed_share
from veilmark.cli.spelling import OPTIONS
from veilmark.errors import OptionError, VeilmarkWarning
from veilmark.messages import spell_all
from veilmark.readable import finite

T = TypeVar("T")

StudyArgument = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of cores to use. Default: all.", show_default=False)
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Memory limit of the engine, such as 2GB. Beyond it, the disk is used.", show_default=False
    ),
]
ChartOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a chart: .html, .svg, .png or .json.", show_default=False)
]
AccusationOption = Annotated[
    float,
    typer.Option(metavar="P", help="Highest allowed probability of naming an innocent recipient.", parser=typed_share),
]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
OR_TABLE = "a file, or table:NAME if the source is in a database"
"""What tables may be, in help texts."""


def renamed(old: str, old_value: T | None, new: str, value: T | None) -> T | None:
    """The value of an option that had another name, which still works and says what is new."""
    if old_value is None:
        return value
    if value is not None:
        raise OptionError(f"{old} is the old name of {new}, and both are given. Give only {new}.")
    warnings.warn(f"{old} is now called {new}. The old name will be removed.", VeilmarkWarning, stacklevel=2)
    return old_value


def print_json(content: dict[str, Any]) -> None:
    """One JSON object on standard output; what is not a number is null."""
    typer.echo(json.dumps(finite(spell_all(content, OPTIONS)), ensure_ascii=False, allow_nan=False))

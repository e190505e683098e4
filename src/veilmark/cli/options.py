"""Options that several verbs share, and how results are printed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

StudyArgument = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Cores to use, if not all.", show_default=False)
]
MemoryOption = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Memory for the engine, such as 2GB; beyond it, disk.", show_default=False),
]
ChartOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw it: .html, .svg, .png or .json.", show_default=False)
]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
OR_TABLE = "a file, or table:NAME where the source is in a database"
"""What tables may be, in help texts."""


def print_json(content: dict[str, Any]) -> None:
    """One JSON object on standard output; what is not a number is null."""
    typer.echo(json.dumps(_finite(content), ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

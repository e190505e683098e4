"""`veilmark score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veilmark.cli.options import JsonOption, MemoryOption, StudyArgument, ThreadsOption, print_json
from veilmark.errors import OptionError

PANEL = "1  Score: how badly could it be misused?"


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command(rich_help_panel=PANEL)(score)


def score(
    study: StudyArgument,
    published: Annotated[
        Path | None, typer.Option(help="The table to be shared, a subset of the source. [default: the whole source]")
    ] = None,
    x: Annotated[str, typer.Option(help="How much the number of records counts in M-Score: 1 or more, or inf.")] = "1",
    normalize: Annotated[
        Literal["source", "record", "theory"],
        typer.Option(help="What 1 stands for: the whole source, its worst record, or the largest score there can be."),
    ] = "source",
    records: Annotated[Path | None, typer.Option(metavar="OUT", help="Write each record with its scores.")] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Score the rest where records are not in the source.")
    ] = False,
    cap: Annotated[bool, typer.Option("--cap", help="Hold a record's weight to 1 in tkl too.")] = False,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score how badly a table could be misused: M-Score, L-Severity, tkl-Score.

    The higher, the worse. Scores of one source can be compared with each other, not with another source's.
    """
    from veilmark import workbench
    from veilmark.cli import show
    from veilmark.score.scores import Options

    opened = workbench.open_study(study, threads, memory)
    options = Options(_number(x), normalize, cap)
    result = workbench.score(opened, published, options, records, skip_unknown)
    if as_json:
        print_json(result.to_dict())
    else:
        show.scores(result, opened, published)


def _number(x: str) -> float:
    try:
        return float(x)
    except ValueError:
        raise OptionError(f"--x must be a number, 1 or larger, or inf, not '{x}'.") from None

"""`veilmark score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veilmark.cli.options import (
    OR_TABLE,
    JsonOption,
    MemoryOption,
    SeedOption,
    StudyArgument,
    ThreadsOption,
    print_json,
)
from veilmark.errors import OptionError

PANEL = "1  Score: how badly could it be misused?"


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command(rich_help_panel=PANEL)(score)
    app.command(rich_help_panel=PANEL)(breach)


def score(
    study: StudyArgument,
    others: Annotated[list[Path] | None, typer.Argument(help="More tables for --compare.", show_default=False)] = None,
    published: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help=f"What is to be shared of the source, if not all of it: {OR_TABLE}."),
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
    compare: Annotated[
        Path | None, typer.Option(metavar="A.csv B.csv …", help="Rank candidate tables.", show_default=False)
    ] = None,
    spread: Annotated[float, typer.Option(help="With --compare: move weights by up to this share.")] = 0.2,
    draws: Annotated[int, typer.Option(help="With --compare: how often weights are moved.")] = 1000,
    seed: SeedOption = 1,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw how the worst record comes to its score.")
    ] = None,
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
    if others and not compare:
        raise OptionError(f"'{others[0]}' is one argument too many. To score a table, name it after --published.")
    if compare:
        if published or records or chart:
            raise OptionError("--compare ranks tables; it does not go with --published, --records or --chart.")
        candidates = [compare, *(others or [])]
        ranking = workbench.compare_scores(opened, candidates, options, spread, draws, seed, skip_unknown)
        return print_json(ranking.to_dict()) if as_json else show.ranking(ranking)
    result = workbench.score(opened, published, options, records, skip_unknown, chart)
    return print_json(result.to_dict()) if as_json else show.scores(result, opened, published)


def breach(
    study: StudyArgument,
    records: Annotated[
        Path, typer.Option(help="What leaked: some or all records, with the columns that the study names.")
    ],
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score what leaked against the table it came from: how bad is it?"""
    from veilmark import workbench
    from veilmark.cli import show

    opened = workbench.open_study(study, threads, memory)
    result = workbench.breach(opened, records)
    return print_json(result.to_dict()) if as_json else show.breach(result, opened, records)


def _number(x: str) -> float:
    try:
        return float(x)
    except ValueError:
        raise OptionError(f"--x must be a number, 1 or larger, or inf, not '{x}'.") from None

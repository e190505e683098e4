"""`veilmark score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veilmark.cli.numbers import typed_share
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

PANEL = "1  Measure: risk and possible harm"


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command(rich_help_panel=PANEL)(score)
    app.command(rich_help_panel=PANEL)(breach)


def score(
    study: StudyArgument,
    others: Annotated[list[str] | None, typer.Argument(help="More tables for --compare.", show_default=False)] = None,
    published: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help=f"The part of the source to share. Default: all. Give {OR_TABLE}."),
    ] = None,
    x: Annotated[str, typer.Option(help="Weight of the number of records in M-Score: 1 or more, or inf.")] = "1",
    normalize: Annotated[
        Literal["source", "record", "theory"],
        typer.Option(help="What counts as 100%: the whole source, its worst record, or the largest possible score."),
    ] = "source",
    records: Annotated[Path | None, typer.Option(metavar="OUT", help="Write every record with its scores.")] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Skip records that are not in the source.")
    ] = False,
    compare: Annotated[
        str | None, typer.Option(metavar="A.csv B.csv …", help="Rank candidate tables.", show_default=False)
    ] = None,
    spread: Annotated[
        float,
        typer.Option(metavar="SHARE", help="With --compare: vary the weights by up to this share.", parser=typed_share),
    ] = 0.2,
    draws: Annotated[int, typer.Option(help="With --compare: how many times the weights are varied.")] = 1000,
    seed: SeedOption = 1,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a chart that explains the score of the worst record.")
    ] = None,
    cap: Annotated[bool, typer.Option("--cap", help="Limit the weight of a record to 1 in tkl, too.")] = False,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score how much harm the misuse of a table could do: M-Score, L-Severity, tkl-Score.

    Higher is worse. Compare only scores from the same source.
    """
    from veilmark.cli import show
    from veilmark.score.scores import Options
    from veilmark.study.opening import open_study
    from veilmark.workbench.score import compare_scores
    from veilmark.workbench.score import score as run_score

    opened = open_study(study, threads, memory)
    options = Options(_number(x), normalize, cap)
    if others and not compare:
        raise OptionError(f"'{others[0]}' is one argument too many. To score a table, use --published.")
    if compare:
        if published or records or chart:
            raise OptionError("--compare ranks tables. It cannot be used with --published, --records or --chart.")
        candidates = [compare, *(others or [])]
        ranking = compare_scores(opened, candidates, options, spread, draws, seed, skip_unknown)
        return print_json(ranking.to_dict()) if as_json else show.ranking(ranking)
    result = run_score(opened, published, options, records, skip_unknown, chart)
    return print_json(result.to_dict()) if as_json else show.scores(result, opened, published)


def breach(
    study: StudyArgument,
    records: Annotated[
        str,
        typer.Option(metavar="TABLE", help="The leaked records, with the columns that the study names."),
    ],
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score leaked records against their source: how severe is the leak?"""
    from veilmark.cli import show
    from veilmark.study.opening import open_study
    from veilmark.workbench.score import breach as run_breach

    opened = open_study(study, threads, memory)
    result = run_breach(opened, records)
    return print_json(result.to_dict()) if as_json else show.breach(result, opened, records)


def _number(x: str) -> float:
    try:
        return float(x)
    except ValueError:
        raise OptionError(f"--x must be a number, 1 or larger, or inf, not '{x}'.") from None

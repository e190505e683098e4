"""`veilmark measure`."""

from __future__ import annotations

from typing import Annotated

import typer

from veilmark.cli.options import OR_TABLE, JsonOption, MemoryOption, StudyArgument, ThreadsOption, print_json


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel="1  Score: how badly could it be misused?")(measure)


def measure(
    study: StudyArgument,
    data: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help=f"Measure this, by the study's roles, in place of its source: {OR_TABLE}."),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help=f"Everybody, for the risk of an intruder who has this table: {OR_TABLE}."),
    ] = None,
    population_size: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Only the number of people the table was drawn from."),
    ] = None,
    threshold: Annotated[float, typer.Option(help="Report the share of records whose risk is over this.")] = 0.2,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT",
            help="End with exit code 1 unless the table meets it: k=5, l.diagnosis=2, t.diagnosis=0.2. May be repeated.",
            show_default=False,
        ),
    ] = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a table as it stands: k, l, t and the risk of re-identification.

    A class is the records that share all quasi-identifiers; a missing value is a category of its own. Where the
    study names a person column, k and the risks count persons.
    """
    from veilmark import workbench
    from veilmark.cli import show

    opened = workbench.open_study(study, threads, memory)
    result = workbench.measure(opened, data, population, population_size, threshold)
    required = workbench.require(result, require or [])
    if as_json:
        print_json(result.to_dict() | {"required": [r.to_dict() for r in required]})
    else:
        show.measures(result, opened, data)
        show.requirements(required)
    if not all(r.met for r in required):
        raise typer.Exit(1)

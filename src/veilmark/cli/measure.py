"""`veilmark measure`."""

from __future__ import annotations

from typing import Annotated

import typer

from veilmark.cli.numbers import typed_share
from veilmark.cli.options import OR_TABLE, JsonOption, MemoryOption, StudyArgument, ThreadsOption, print_json
from veilmark.defaults import THRESHOLD


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel="1  Measure: risk and possible harm")(measure)


def measure(
    study: StudyArgument,
    data: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help=f"Measure this table instead of the study's source: {OR_TABLE}."),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help=f"The population, for the journalist risk: {OR_TABLE}."),
    ] = None,
    population_size: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The size of the population, if you have no population table."),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Report the share of records whose risk is above this value.", parser=typed_share
        ),
    ] = THRESHOLD,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT",
            help="Exit with code 1 unless the table meets this limit: k=5, l.diagnosis=2, t.diagnosis=0.2. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a table: k, l, t and the re-identification risk.

    A class (equivalence class) is the set of records with equal quasi-identifiers. A missing value is a category of its
    own. If the study names a person column, k and the risks count persons.
    """
    from rich.console import Console

    from veilmark.cli import show, show_unchanged
    from veilmark.study.opening import open_study
    from veilmark.workbench.measure import measure as run_measure
    from veilmark.workbench.measure import require as run_require

    opened = open_study(study, threads, memory)
    result = run_measure(opened, data, population, population_size, threshold)
    required = run_require(result, require or [])
    if as_json:
        print_json(result.to_dict() | {"required": [r.to_dict() for r in required]})
    else:
        show.measures(result, opened, data)
        show_unchanged.missing_counted(result.missing_counted, Console())
        show_unchanged.unchanged(result.unchanged, Console())
        show.requirements(required)
    if not all(r.met for r in required):
        raise typer.Exit(1)

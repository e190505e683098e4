"""`veilmark attack`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veilmark.cli.options import (
    OR_TABLE,
    ChartOption,
    JsonOption,
    MemoryOption,
    SeedOption,
    StudyArgument,
    ThreadsOption,
    print_json,
)

PANEL = "2  Anonymize: the least change that makes it safe enough"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(attack)


def attack(
    study: StudyArgument,
    release: Annotated[
        Path,
        typer.Argument(metavar="RELEASE", help="The release: a CSV or Parquet file, or a folder.", show_default=False),
    ],
    attacks: Annotated[
        str | None,
        typer.Option(
            metavar="bk,qicorr", help="Only these: bk, msacorr, qicorr, mcorr, nmcorr, linkage.", show_default=False
        ),
    ] = None,
    targets: Annotated[
        int, typer.Option(min=1, metavar="N", help="Persons to attack; of more, so many are drawn.")
    ] = 100_000,
    known: Annotated[
        int, typer.Option(min=1, metavar="N", help="Sensitive values of the target that bk, mcorr and nmcorr know.")
    ] = 1,
    population: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help=f"Everybody, for linkage, if not the source: {OR_TABLE}.", show_default=False
        ),
    ] = None,
    seed: SeedOption = 1,
    chart: ChartOption = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Attack a release before it is shipped: what can be found out about the persons in it?

    Each attack is tried on every person of the source, and compared with guessing from the release's marginals alone.
    The release may come from elsewhere: its labels are values, labels of the study's hierarchies, ranges, sets or means.
    """
    from veilmark.attack import ATTACKS
    from veilmark.cli import show_attack
    from veilmark.workbench.attacking import attack as run
    from veilmark.workbench.sources import open_study

    opened = open_study(study, threads, memory)
    names = [name.strip() for name in attacks.split(",")] if attacks else ATTACKS
    found = run(opened, release, names, targets, known, population, seed, chart)
    return print_json(found.to_dict()) if as_json else show_attack.attacked(found)

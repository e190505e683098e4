"""`veilmark attack`."""

from __future__ import annotations

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
from veilmark.defaults import KNOWN, TARGETS

PANEL = "2  Anonymize: meet your limits with the least loss"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(attack)


def attack(
    study: StudyArgument,
    release: Annotated[
        str,
        typer.Argument(metavar="RELEASE", help="The release: a CSV or Parquet file, or a folder.", show_default=False),
    ],
    attacks: Annotated[
        str | None,
        typer.Option(
            metavar="bk,qicorr", help="Only these: bk, msacorr, qicorr, mcorr, nmcorr, linkage.", show_default=False
        ),
    ] = None,
    targets: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of persons to attack, drawn at random if there are more.")
    ] = TARGETS,
    known: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Number of sensitive values of the target that bk, mcorr and nmcorr know."
        ),
    ] = KNOWN,
    population: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help=f"The population for linkage. Default: the source. Give {OR_TABLE}.",
            show_default=False,
        ),
    ] = None,
    seed: SeedOption = 1,
    chart: ChartOption = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Attack a release before you share it, and measure what attackers learn about persons.

    Each attack targets the persons of the source. Its success is compared with a control: guessing from the marginals of
    the release. The release may come from another tool. Its labels may be values, labels of the study's hierarchies,
    ranges, sets or means.
    """
    from veilmark.attack import ATTACKS
    from veilmark.cli import show_attack
    from veilmark.study.opening import open_study
    from veilmark.workbench.attack import attack as run

    opened = open_study(study, threads, memory)
    names = [name.strip() for name in attacks.split(",")] if attacks else ATTACKS
    found = run(opened, release, names, targets, known, population, seed, chart)
    return print_json(found.to_dict()) if as_json else show_attack.attacked(found)

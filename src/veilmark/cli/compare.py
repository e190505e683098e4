"""`veilmark compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from veilmark.cli.options import (
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
    app.command(rich_help_panel=PANEL)(compare)


def compare(
    study: StudyArgument,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="ola,fslip",
            help="Only these: ola, mondrian, fslip, fslip-linked, fslip-paper, onemany, rmr, anatomy, slicing.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, typer.Option(metavar="N", help="Least persons of a class.")] = 5,
    l: Annotated[  # noqa: E741
        float | None,
        typer.Option(metavar="L", help="No sensitive value over 1/L. Default: of each method.", show_default=False),
    ] = None,
    suppress: Annotated[float, typer.Option(metavar="SHARE", help="Persons that OLA may leave out, 0 to 1.")] = 0.0,
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
    seed: SeedOption = 1,
    chart: ChartOption = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try several methods on a study: what each loses, how long it takes, and what attackers learn from it.

    All work on the same persons, one row each, and their releases are attacked as they would be published; none is kept.
    The chart is the frontier of risk and loss.
    """
    from veilmark.attack import ATTACKS
    from veilmark.cli import show_compare
    from veilmark.workbench.comparing import USUAL, Asked, compare_methods
    from veilmark.workbench.sources import open_study

    opened = open_study(study, threads, memory)
    asked = Asked(k, l, suppress, seed)
    found = compare_methods(opened, _names(methods, USUAL), asked, _names(attacks, ATTACKS), targets, known, chart)
    return print_json(found.to_dict()) if as_json else show_compare.compared(found)


def _names(text: str | None, usual: tuple[str, ...]) -> list[str]:
    """`a,b` as names, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(","))) if text else list(usual)

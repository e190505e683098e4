"""`veilmark compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from veilmark.cli.numbers import typed_share
from veilmark.cli.options import (
    ChartOption,
    JsonOption,
    MemoryOption,
    SeedOption,
    StudyArgument,
    ThreadsOption,
    print_json,
)
from veilmark.defaults import KNOWN, SUPPRESSION, TARGETS, K
from veilmark.errors import OptionError

PANEL = "2  Anonymize: meet your limits with the least loss"


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
    k: Annotated[int, typer.Option(metavar="N", help="Smallest class allowed, in persons.")] = K,
    l: Annotated[  # noqa: E741
        float | None,
        typer.Option(
            metavar="L",
            help="No sensitive value may have a share above 1/L. Default: that of each method.",
            show_default=False,
        ),
    ] = None,
    suppress: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Share of persons that OLA may suppress, such as 0.05 or 5%.", parser=typed_share
        ),
    ] = SUPPRESSION,
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
    seed: SeedOption = 1,
    chart: ChartOption = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare anonymization methods: loss, time, and success of attacks.

    All methods work on the same persons, one row each. veilmark attacks the release of each method, and keeps none of
    them. The chart shows loss against risk, with the frontier.
    """
    from veilmark.attack import ATTACKS
    from veilmark.cli import show_compare
    from veilmark.study.opening import open_study
    from veilmark.workbench.compare import USUAL, CompareRequest, compare_methods

    chosen = _names(methods, USUAL)
    if suppress and "ola" not in chosen:
        raise OptionError(
            "--suppress belongs to OLA, which is not in --methods. Add ola to --methods, or drop --suppress."
        )
    opened = open_study(study, threads, memory)
    asked = CompareRequest(k, l, suppress, seed)
    found = compare_methods(opened, chosen, asked, _names(attacks, ATTACKS), targets, known, chart)
    return print_json(found.to_dict()) if as_json else show_compare.compared(found)


def _names(text: str | None, usual: tuple[str, ...]) -> list[str]:
    """`a,b` as names, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(","))) if text else list(usual)

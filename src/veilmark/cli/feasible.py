"""`veilmark feasible`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from veilmark.cli.numbers import typed_share
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
from veilmark.cli.release import PANEL, _range
from veilmark.defaults import BUDGET, DECOYS, LOSS, SUPPRESSION, K, Metric
from veilmark.errors import OptionError
from veilmark.shares import share

if TYPE_CHECKING:
    from rich.console import Console

    from veilmark.mark.reports import Reports
    from veilmark.workbench.feasible import Feasible

N = TypeVar("N", int, float)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(feasible)


def feasible(
    study: StudyArgument,
    population: Annotated[
        str, typer.Option(metavar="TABLE", help=f"The population that an attacker could link to: {OR_TABLE}.")
    ],
    k: Annotated[str, typer.Option(metavar="K,K", help="One k, or several separated by commas.")] = str(K),
    suppress: Annotated[
        str, typer.Option(metavar="S,S", help="One limit of suppression, or several: 0,5%.")
    ] = f"{SUPPRESSION:g}",
    identity: Annotated[
        str,
        typer.Option(
            metavar="COL,COL",
            help="Columns of source and population that identify a person. Persons of the source cannot be decoys.",
            show_default=False,
        ),
    ] = "",
    recipients: Annotated[int, typer.Option(min=1, help="Number of recipients.")] = 30,
    decoys: Annotated[int, typer.Option(min=0, help="Decoy classes for each recipient.")] = DECOYS,
    covers: Annotated[
        int,
        typer.Option(min=0, help="Cover classes of each recipient, as in the paper. `release` uses 0 by default."),
    ] = 20,
    risk: Annotated[
        str, typer.Option(metavar="LOW:HIGH", help="Risk of the decoys, as a multiple of the release's highest risk.")
    ] = "1.1:1.5",
    budget: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Largest share of classes that may be withheld from some recipient.",
            parser=typed_share,
        ),
    ] = BUDGET,
    loss: Annotated[Metric, typer.Option(help="The loss that is minimized.")] = LOSS,
    chart: ChartOption = None,
    seed: SeedOption = 1,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Before a release: check which decoys are possible, whether they stand out, and how many recipients can be served.

    Every k is tried with every limit of suppression. Nothing is released, and only the chart is written.
    """
    from veilmark.mark.marking import CopyMarking
    from veilmark.study.opening import open_study
    from veilmark.veil.ola import Ola
    from veilmark.workbench.feasible import feasible as run

    opened = open_study(study, threads, memory)
    ks, limits = _list("k", k, int, "5 or 5,10"), _list("suppress", suppress, share, "0.05 or 0,5%")
    names = tuple(str(i + 1) for i in range(recipients))
    marking = CopyMarking(names, ks[0], decoys, covers, risk=_range(risk), budget=budget)
    who = [name.strip() for name in identity.split(",") if name.strip()]
    found = run(opened, population, marking, ks, limits, who, Ola(loss=loss), seed, chart)
    return print_json(found.to_dict()) if as_json else _show(found)


def _list(option: str, text: str, kind: Callable[[str], N], such_as: str) -> list[N]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(f"--{option} takes one number or several, such as {such_as}, not '{text}'.") from None


def _show(found: Feasible) -> None:
    from rich.console import Console

    from veilmark.cli.show import literal

    console = Console()
    console.print()
    console.print(literal(f"{found.population}: {found.people:,} persons", "bold"))
    _feasibility(found, console)
    _detectability(found, console)
    _scalability(found, console)
    if found.recognized is not None:
        console.print(literal(found.recognized.note(found.identity), "yellow" if found.recognized.few else "dim"))
    if not found.members_known:
        console.print(
            literal(
                "veilmark does not know which persons of the population are in the source, so classes with suppressed "
                "records cannot be decoys. Name columns that both tables have with --identity.",
                "dim",
            )
        )


def _label(of: Reports) -> tuple[str, str]:
    return str(of.k), f"{of.suppression:.4g}"


def _feasibility(found: Feasible, console: Console) -> None:
    from veilmark.cli.show import new_table, print_table

    numbers = ("k", "suppressed", "at most", "min link", "candidates", "persons", "with members", "risk multiple")
    table = new_table("Feasible? Classes that can become decoys", "levels", numbers=numbers)
    for of in found.settings:
        found_here = of.feasibility
        levels = ", ".join(f"{name} {level}" for name, level in of.levels.items())
        lost = of.suppressed / max(of.records + of.suppressed, 1)
        times = "-" if not found_here.multiples else f"{found_here.multiples[0]:.2f} to {found_here.multiples[-1]:.1f}"
        counts = (found_here.min_link, found_here.classes, found_here.records, found_here.excluded)
        table.add_row(levels, str(of.k), f"{lost:.2%}", f"{of.suppression:.4g}", *(f"{n:,}" for n in counts), times)
    print_table(table, console)


def _detectability(found: Feasible, console: Console) -> None:
    from veilmark.cli.show import new_table, print_table

    numbers = ("k", "suppressed at most", "classes", "near k", "candidates up to 1.2", "1.5", "above 4 times")
    table = new_table("Detectable? Classes of the release that look like a decoy class", numbers=numbers)
    for of in found.settings:
        seen = of.detectability
        counts = (seen.classes, seen.near_k, seen.up_to_1_2, seen.up_to_1_5, seen.above_4)
        table.add_row(*_label(of), *(f"{n:,}" for n in counts))
    print_table(table, console)


def _scalability(found: Feasible, console: Console) -> None:
    from veilmark.cli.show import new_table, print_table
    from veilmark.cli.show_release import MORE

    asked = found.settings[0].scalability
    title = (
        f"Scalable? {asked.asked:,} recipients, each with {asked.decoys} decoy classes and {asked.covers} cover classes"
    )
    setting = ("k", "suppressed at most")
    decoys = new_table(title, numbers=(*setting, "in risk range", "serve", "records added", "loss before"))
    costs = ("classes", "serve", "without budget", "records withheld", "share", "loss after")
    covers = new_table("Cost of cover classes in a copy", "by", numbers=(*setting, *costs))
    for of in found.settings:
        scale = of.scalability
        served = _count(scale.recipients_by_decoys)
        decoys.add_row(*_label(of), f"{scale.pool:,}", served, f"{scale.added:,.0f}", f"{scale.loss:.4f}")
        for r in scale.removals:
            cost = ("too few", "-", "-") if r.records is None else (f"{r.records:,}", f"{r.share:.2%}", f"{r.loss:.4f}")
            limits = (_count(r.recipients), _count(r.recipients_at_most))
            covers.add_row(r.strategy, *_label(of), f"{r.classes:,}", *limits, *cost)
    print_table(decoys, console)
    if asked.covers:
        print_table(covers, console)
    if asked.asked > 1:
        console.print(
            f"A class that is in only one copy is a decoy with probability {asked.seen_once:.2f}"
            f"{MORE if asked.seen_once < 1 else ''}."
        )
    console.print("Loss is the discernibility from 0 (best) to 1. Withheld records count as suppressed.")


def _count(number: int | None) -> str:
    return "any" if number is None else f"{number:,}"

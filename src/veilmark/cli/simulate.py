"""`veilmark simulate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from veilmark.cli.numbers import typed_share
from veilmark.cli.options import AccusationOption, ChartOption, JsonOption, SeedOption, print_json
from veilmark.defaults import FALSE_ACCUSATION

if TYPE_CHECKING:
    from veilmark.workbench.simulate import Simulated

PANEL = "3  Share: a marked copy for each recipient"
STORIES = {
    "mix": "each class as in the copy of a random member",
    "union": "every class that any member has",
    "intersection": "classes that all members have",
    "majority": "classes that most members have",
    "minority": "where copies differ, what the minority has",
    "coin": "where copies differ, at random",
}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(simulate)


def simulate(
    recipients: Annotated[int, typer.Option(min=1, metavar="N", help="Number of recipients.")],
    collusion: Annotated[int, typer.Option(min=1, metavar="N", help="Number of recipients who mix their copies.")],
    false_accusation: AccusationOption = FALSE_ACCUSATION,
    classes: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Number of cover classes. Default: as many as needed.", show_default=False
        ),
    ] = None,
    strategy: Annotated[
        str, typer.Option(metavar="NAME", help=f"How the copies are mixed: {', '.join(STORIES)}, or all.")
    ] = "all",
    trials: Annotated[int, typer.Option(min=1, metavar="N", help="Number of mixes for each strategy.")] = 1000,
    deletions: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of classes that they also delete.", parser=typed_share)
    ] = 0.0,
    seed: SeedOption = 1,
    chart: ChartOption = None,
    as_json: JsonOption = False,
) -> None:
    """Before a release: simulate how often recipients who mix their copies are named, and how often innocent ones.

    Random coalitions mix random copies. Every mix is traced by its cover classes, as `veilmark trace` does.
    """
    from veilmark.workbench.simulate import simulate as run

    found = run(recipients, collusion, false_accusation, classes, strategy, trials, seed, deletions, chart)
    return print_json(found.to_dict()) if as_json else _show(found)


def _show(found: Simulated) -> None:
    from rich.console import Console

    from veilmark.attack.harness import wilson
    from veilmark.cli.show import new_table, print_table
    from veilmark.mark.simulate import interval

    console, first = Console(), found.runs[0]
    console.print(
        f"\n{first.coalition:,} of {first.recipients:,} recipients mix their copies. The copies differ in "
        f"{found.code.length:,} cover classes; each recipient lacks {found.code.withheld:.0%} of these. {_enough(found)}\n"
    )
    numbers = ("one named", "95 % interval", "all named", "innocent named", "mixes")
    table = new_table("How often leakers are named", "strategy", "", numbers=numbers)
    for run in found.runs:
        low, high = interval(run)
        shares = f"{run.power:.1%}", f"{low:.1%}-{high:.1%}", f"{run.caught_all / run.trials:.1%}"
        table.add_row(run.strategy, STORIES[run.strategy], *shares, f"{run.innocent_accused:,}", f"{run.trials:,}")
    print_table(table, console)
    same = _same_ways(found)
    if same:
        console.print(same)
    most = wilson(found.innocent_accused / found.trials, found.trials)[1]
    console.print(
        f"An innocent recipient was named in {found.innocent_accused:,} of {found.trials:,} mixes. This number of mixes can "
        f"only show a rate of at most {most:.2%}. Tracing guarantees {first.false_accusation:g} or less for any strategy."
    )


def _same_ways(found: Simulated) -> str:
    """Why some ways to mix come out the same."""
    from veilmark.mark.simulate import strategy_table

    coalition = found.runs[0].coalition
    ways: dict[bytes, list[str]] = {}
    for run in found.runs:
        ways.setdefault(strategy_table(run.strategy, coalition).tobytes(), []).append(run.strategy)
    alike = [names for names in ways.values() if len(names) > 1]
    if not alike:
        return ""
    listed = "; ".join(f"{', '.join(names[:-1])} and {names[-1]}" for names in alike)
    if coalition == 1:
        return "One recipient has nothing to mix, so all strategies are the same."
    reason = (
        ": where two copies differ, one has the class and one does not, so chance decides" if coalition == 2 else ""
    )
    return f"For a coalition of {coalition}, {listed} are the same{reason}."


def _enough(found: Simulated) -> str:
    if found.code.length >= found.needed:
        return f"This is enough for coalitions of {found.withstands:,}."
    carried = (
        f"This number is enough for coalitions of {found.withstands:,}"
        if found.withstands
        else "This number is not enough to be sure to find even a single leaker"
    )
    return f"Coalitions of this size need {found.needed:,} cover classes. {carried}."

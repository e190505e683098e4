"""`veilmark simulate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from veilmark.cli.options import ChartOption, JsonOption, SeedOption, print_json

if TYPE_CHECKING:
    from veilmark.workbench.simulating import Simulated

PANEL = "3  Share: a copy for each recipient, with marks of its own"
STORIES = {
    "mix": "each class as a random member has it",
    "union": "every class that any member has",
    "intersection": "classes that all members have",
    "majority": "classes that most members have",
    "minority": "where copies differ, what fewer have",
    "coin": "where copies differ, by chance",
}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(simulate)


def simulate(
    recipients: Annotated[int, typer.Option(min=1, metavar="N", help="Who gets a copy.")],
    collusion: Annotated[int, typer.Option(min=1, metavar="N", help="How many mix their copies.")],
    false_accusation: Annotated[float, typer.Option(help="Probability of naming any innocent recipient.")] = 1e-6,
    classes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Cover classes, if not as many as needed.", show_default=False),
    ] = None,
    strategy: Annotated[
        str, typer.Option(metavar="NAME", help=f"How they mix: {', '.join(STORIES)}, or all of these.")
    ] = "all",
    trials: Annotated[int, typer.Option(min=1, metavar="N", help="Mixes for each way to mix.")] = 1000,
    deletions: Annotated[float, typer.Option(help="Share of the classes that they leave out besides.")] = 0.0,
    seed: SeedOption = 1,
    chart: ChartOption = None,
    as_json: JsonOption = False,
) -> None:
    """Before a release: how often would recipients who mix their copies be found, and innocent ones be named?

    Random coalitions mix random copies, and every mix is traced by its cover classes as `veilmark trace` does.
    """
    from veilmark.workbench.simulating import simulate as run

    found = run(recipients, collusion, false_accusation, classes, strategy, trials, seed, deletions, chart)
    return print_json(found.to_dict()) if as_json else _show(found)


def _show(found: Simulated) -> None:
    from rich.console import Console

    from veilmark.attack.harness import wilson
    from veilmark.cli.show import new_table, print_table
    from veilmark.workbench.simulating import interval

    console, first = Console(), found.runs[0]
    console.print(
        f"\n{first.coalition:,} of {first.recipients:,} recipients mix their copies, which differ in {found.code.length:,} "
        f"cover classes ({found.code.kind}); each recipient lacks {found.code.withheld:.0%} of these. {_enough(found)}\n"
    )
    numbers = ("one named", "95 % interval", "all named", "innocent named", "mixes")
    table = new_table("How often leakers are named", "way to mix", "", numbers=numbers)
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
        f"An innocent recipient was named in {found.innocent_accused:,} of {found.trials:,} mixes; that alone shows that it "
        f"happens in at most {most:.2%}. Tracing keeps it at {first.false_accusation:g} or below, however they mix."
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
        return "One recipient alone has nothing to mix, so that all ways are the same."
    reason = (
        ": where two copies differ, one has the class and one has not, so that chance decides" if coalition == 2 else ""
    )
    return f"For a coalition of {coalition}, {listed} are the same{reason}."


def _enough(found: Simulated) -> str:
    if found.code.length >= found.needed:
        return f"That is enough for coalitions of {found.withstands:,}."
    carried = (
        f"it is for coalitions of {found.withstands:,}" if found.withstands else "not even one leaker alone is sure"
    )
    return f"Coalitions of this size need {found.needed:,}; as it is, {carried}."

"""What `veilmark anonymize` and `veilmark apply` print."""

from __future__ import annotations

from rich.console import Console

from veilmark.cli.show import literal, new_table, print_table
from veilmark.veil.anonymize import Anonymized, Plan
from veilmark.veil.verify import Verified
from veilmark.workbench.applying import Applied


def anonymized(result: Anonymized, console: Console | None = None) -> None:
    """What `veilmark anonymize` prints."""
    console = console or Console()
    plan, found = result.plan, result.verified
    console.print(f"\n{result.records:,} records in {found.classes:,} classes; {plan.suppressed:,} suppressed.")
    _k(result.k, found, result.of_persons, console)
    if plan.recoding.levels:
        levels = new_table("Levels", "attribute", numbers=("level",))
        for name, level in plan.recoding.levels.items():
            levels.add_row(literal(name), str(level))
        print_table(levels, console)
    _losses(plan, console)
    if plan.gap:
        console.print(f"The search was cut short: another generalization may lose up to {plan.gap:.1%} less.")
    if result.as_is:
        named = ", ".join(result.as_is)
        console.print(
            literal(
                f"Published as they are, because the study does not name them: {named}. k does not look at them.",
                "bold",
            )
        )
    _written(result.output, console)


def applied(result: Applied, console: Console | None = None) -> None:
    """What `veilmark apply` prints."""
    console = console or Console()
    console.print(
        f"\n{result.records:,} records in {result.verified.classes:,} classes; {result.left_out:,} left out, "
        f"{result.unknown:,} of them because the rules do not know their values."
    )
    _k(result.k, result.verified, result.of_persons, console)
    _written(result.output, console)


def _k(k: int, found: Verified, of_persons: bool, console: Console) -> None:
    how = "measured anew from the written file."
    if of_persons:
        how = f"in persons. In records the smallest class has {found.k:,}, {how}"
    console.print(f"[bold]k = {k:,}[/bold], {how}\n")


def _losses(plan: Plan, console: Console) -> None:
    losses = new_table("Loss", "metric", numbers=("value",))
    for name, value in plan.loss.items():
        losses.add_row(name, f"{value:,.5g}")
    print_table(losses, console)


def _written(output: str | None, console: Console) -> None:
    if output is not None:
        console.print(literal(f"Written to {output}."))

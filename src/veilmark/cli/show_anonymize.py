"""What `veilmark anonymize` and `veilmark apply` print."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from veilmark.cli.show import literal, new_table, print_table
from veilmark.cli.show_unchanged import missing_counted, unchanged
from veilmark.readable import count
from veilmark.veil.anonymize import Anonymized, Plan
from veilmark.veil.verify import Verified
from veilmark.workbench.apply import Applied


def anonymized(result: Anonymized, console: Console | None = None) -> None:
    """What `veilmark anonymize` prints."""
    console = console or Console()
    plan, found = result.plan, result.verified
    console.print(f"\n{_sizes(result.records, found.classes)}; {plan.suppressed:,} suppressed.")
    _k(result.k, found, result.of_persons, console)
    for name, of in plan.generalized.items():
        console.print(literal(f"{name}: {of}"), highlight=False)
    if plan.generalized:
        console.print()
    _losses(plan, console)
    if plan.local:
        console.print(literal(f"{plan.local}: --method {plan.local.method}", "bold"))
    if plan.suppression:
        console.print(literal(f"{plan.suppression}: --suppress {100 * plan.suppression.share:g}%", "bold"))
    if plan.gap:
        console.print(f"The search did not try all generalizations. Another may lose up to {plan.gap:.1%} less.")
    if result.as_is:
        why = "Columns published unchanged and not counted in k, because the study has `unnamed: other`"
        console.print(literal(f"{why}: {', '.join(result.as_is)}.", "bold"))
    missing_counted(result.missing_counted, console)
    unchanged(found.unchanged, console)
    columns_left_out(result.columns_left_out, console)
    _written(result.output, console)


def applied(result: Applied, console: Console | None = None) -> None:
    """What `veilmark apply` prints."""
    console = console or Console()
    console.print(
        f"\n{_sizes(result.records, result.verified.classes)}; {count(result.left_out, 'record')} suppressed"
        f"{_unknown(result.unknown, result.left_out)}."
    )
    _k(result.k, result.verified, result.of_persons, console)
    unchanged(result.verified.unchanged, console)
    columns_left_out(result.columns_left_out, console)
    _written(result.output, console)


def _sizes(records: int, classes: int) -> str:
    return f"{count(records, 'record')} in {count(classes, 'class')}"


def _unknown(unknown: int, left_out: int) -> str:
    """How many records were left out because of their values."""
    if not unknown:
        return ""
    if unknown == left_out:
        return ", because of values that are not in the recoding"
    return f", {unknown:,} of them because of values that are not in the recoding"


def columns_left_out(columns: Sequence[str], console: Console) -> None:
    """Which columns are not published because the study does not name them, and how to publish them."""
    if columns:
        console.print(
            literal(
                f"Columns not published, because the study does not name them: {', '.join(columns)}. To publish one, give "
                "it a role in the study. To publish them all, write `unnamed: other` at the top of the study."
            )
        )


def _k(k: int, found: Verified, of_persons: bool, console: Console) -> None:
    if of_persons:
        how = (
            f"the smallest class has {count(k, 'person')}. Counted in records, the smallest class of the written file has "
            f"{found.k:,}."
        )
    else:
        how = f"the smallest class has {count(k, 'record')}, measured in the written file."
    console.print(f"[bold]k = {k:,}[/bold]: {how}\n")


def _losses(plan: Plan, console: Console) -> None:
    losses = new_table("Loss (lower is better)", "metric", numbers=("value",))
    for name, value in plan.loss.items():
        losses.add_row(name, f"{value:,.5g}")
    print_table(losses, console)


def _written(output: str | None, console: Console) -> None:
    if output is not None:
        console.print(literal(f"Wrote {output}."))

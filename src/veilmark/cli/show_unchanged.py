"""What the verbs print about columns that are published unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from veilmark.cli.show import literal, new_table, print_table
from veilmark.privacy.measures import missing_counted_lines

if TYPE_CHECKING:
    from veilmark.privacy.unchanged import Unchanged

SHOWN = 10
TITLE = "Columns published unchanged"


def unchanged(found: Mapping[str, Unchanged], console: Console, title: str = TITLE) -> None:
    """How many records each column makes unique, worst first, and what to do."""
    telling = {name: of for name, of in found.items() if of.more}
    if telling:
        table = new_table(title, "column", numbers=next(iter(telling.values())).HEADINGS)
        for name, of in list(telling.items())[:SHOWN]:
            table.add_row(literal(name), *of.figures)
        print_table(table, console)
        if len(telling) > SHOWN:
            console.print(f"{len(telling) - SHOWN:,} more columns make fewer records unique. --json lists all columns.")
        for line in _advice(telling):
            console.print(literal(line))
    quiet = [name for name in found if name not in telling]
    if quiet:
        console.print(literal(f"Columns published unchanged that make no more records unique: {', '.join(quiet)}."))
    sizes = [of.sample for of in found.values() if of.sample is not None]
    if sizes:
        console.print(f"These numbers are estimates from samples of at least {min(sizes):,} records.", style="dim")


def missing_counted(found: Mapping[str, Mapping[str, int]], console: Console) -> None:
    """Where l or t holds only because a missing sensitive value counts as a value."""
    for line in missing_counted_lines(found):
        console.print(literal(line, "bold"))


def _advice(telling: Mapping[str, Unchanged]) -> list[str]:
    """What to do, for the worst column of each kind."""
    others = [name for name, of in telling.items() if not of.sensitive]
    sensitive = [name for name, of in telling.items() if of.sensitive]
    lines = [
        f"Anyone who knows a person's quasi-identifiers and their {next(iter(telling))} can pick out such a record."
    ]
    if others:
        lines.append(
            f"To prevent that for {others[0]}, give it the role quasi, publish coarser values, or remove it from the study."
        )
    if sensitive:
        lines.append(
            f"{sensitive[0]} is sensitive. This is a risk only if somebody already knows the value. If that is likely, "
            "publish coarser values: round numbers, group categories."
        )
    return lines

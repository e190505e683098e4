"""What `veilmark compare` prints."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from veilmark.attack import AttackResult
from veilmark.cli.show import literal, new_table, print_table
from veilmark.workbench.comparing import Compared, Tried


def compared(result: Compared, console: Console | None = None) -> None:
    """A row a method: loss, time, and each attack beside its control."""
    console = console or Console()
    counts = f": {result.persons:,} persons of {result.records:,} records\n"
    console.print(Text.assemble("\n", literal(result.source, "bold"), counts))
    print_table(_table(result), console)
    for name, tried in result.methods.items():
        if tried.refused is not None:
            console.print(literal(f"{name} was not tried. {tried.refused}"))
        for note in tried.notes:
            console.print(literal(f"{name}: {note}", "dim"))
    for line in _in_words(result):
        console.print(literal(line))
    console.print(literal("What each column means, and what loss does not show: docs/compare.md.", "dim"))


def _table(result: Compared) -> Table:
    attacks = next(iter(result.made.values())).attacks
    losses = ("QI NCP", "SA NCP", "SA NIL", "added", "loss")
    title = "Loss, seconds, and success of attacks in % (in brackets: guessing from the marginals)"
    table = new_table(title, "method", numbers=("k", *losses, "seconds", *attacks, "risk"))
    for name, tried in result.made.items():
        table.add_row(name, *_numbers(tried), *(_success(found) for found in tried.attacks.values()), _risk(tried))
    return table


def _numbers(tried: Tried) -> tuple[str, ...]:
    of = tried.loss
    shares = (of["ncp"], of["sa_ncp"], of["sa_nil"], of.get("sa_added", 0.0), tried.total_loss)
    return f"{tried.k:,}", *(f"{share:.1%}" for share in shares), f"{tried.seconds:.2f}"


def _success(found: AttackResult) -> str:
    return f"{100 * found.success:.1f} ({100 * found.control:.1f})" if found.targets else "-"


def _risk(tried: Tried) -> str:
    return f"{100 * tried.risk:+.1f} {tried.worst}" if tried.worst else "-"


def _in_words(result: Compared) -> list[str]:
    """Which methods are worth choosing between."""
    best, linked = result.frontier(), result.frontier(linked=True)
    lines = [f"No other has both less loss and less risk than: {', '.join(best)}."]
    if linked and linked != best:
        lines.append(f"Among those that still tell which values go with which quasi-identifiers: {', '.join(linked)}.")
    return lines

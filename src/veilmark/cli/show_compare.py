"""What `veilmark compare` prints."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from veilmark.attack import RULE, AttackResult
from veilmark.cli.show import literal, new_table, print_table
from veilmark.workbench.compare import Compared, Tried


def compared(result: Compared, console: Console | None = None) -> None:
    """One row per method: loss, time, and each attack with its control."""
    console = console or Console()
    counts = f": {result.persons:,} persons of {result.records:,} records\n"
    console.print(Text.assemble("\n", literal(result.source, "bold"), counts))
    print_table(_table(result), console)
    for name, tried in result.methods.items():
        if tried.refused is not None:
            console.print(literal(f"{name} was not tried. {tried.refused}"))
        for note in tried.notes:
            console.print(literal(f"{name}: {note}", "dim"))
    for why, names in result.reasons_left_out.items():
        console.print(literal(f"Not tried: {names}. {why}"))
    for line in _in_words(result):
        console.print(literal(line))
    console.print(literal("What each column means, and what loss does not show: docs/compare.md.", "dim"))


def _table(result: Compared) -> Table:
    attacks = next(iter(result.made.values())).attacks
    losses = ("gcp", "SA NCP", "SA NIL", "added", "loss")
    title = "Loss, time, and success of attacks in % (in brackets: guessing from the marginals). Lower is better."
    table = new_table(title, "method", numbers=("k", *losses, "seconds", *attacks, "risk"))
    for name, tried in result.made.items():
        k = f"{tried.k:,}" if tried.meets_k else f"{tried.k:,} (below {result.asked.k:,})"
        attacked = (_success(found) for found in tried.attacks.values())
        table.add_row(name, k, *_numbers(tried), *attacked, _risk(tried), style="" if tried.meets_k else "dim")
    return table


def _numbers(tried: Tried) -> tuple[str, ...]:
    of = tried.loss
    shares = (of["ncp"], of["sa_ncp"], of["sa_nil"], of.get("sa_added", 0.0), tried.total_loss)
    return *(f"{share:.1%}" for share in shares), f"{tried.seconds:.2f}"


def _success(found: AttackResult) -> str:
    return f"{100 * found.success:.1f} ({100 * found.control:.1f})" if found.targets else "-"


def _risk(tried: Tried) -> str:
    if not tried.worst:
        return "-"
    return f"{100 * tried.risk:+.1f} {tried.worst} ({tried.attacks[tried.worst].amount})"


def _in_words(result: Compared) -> list[str]:
    """Which methods are worth choosing between, and how risk is judged."""
    best, linked, below = result.frontier(), result.frontier(linked=True), result.below_k
    lines = (
        [f"Choose one of these: {', '.join(best)}. No other method has both less loss and less risk."] if best else []
    )
    if below:
        lines.append(f"Not on the frontier, because k is below {result.asked.k:,}: {', '.join(below)}.")
    if not best:
        lines.append(f"No method reaches k = {result.asked.k:,}. Try a smaller k, or let OLA suppress more.")
    if linked and linked != best:
        lines.append(
            f"If sensitive values must stay linked to quasi-identifiers, choose one of these: {', '.join(linked)}."
        )
    return [*lines, *result.untargeted, RULE]

"""What `veilmark attack` prints."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from veilmark.attack import RULE, AttackResult, verdict, without_targets
from veilmark.cli.show import literal, new_table, print_table
from veilmark.workbench.attack import Attacked

STORIES = {
    "bk": "knows the quasi-identifiers and some sensitive values; guesses the others",
    "msacorr": "knows one sensitive value; guesses the other sensitive attributes",
    "qicorr": "knows the quasi-identifiers; guesses the sensitive values",
    "mcorr": "knows quasi-identifiers and some values; is the person in the release?",
    "nmcorr": "knows the same; can a person who is not in the release be ruled out?",
    "linkage": "has the population table; whose row is this?",
}


def attacked(result: Attacked, console: Console | None = None) -> None:
    """Success of each attack, with its control."""
    console = console or Console()
    counts = f": {result.rows:,} rows in {result.classes:,} classes, from {result.persons:,} persons\n"
    console.print(Text.assemble("\n", literal(result.release, "bold"), counts))
    print_table(_attacks(result), console)
    own = {
        name: found.details["attributes"] for name, found in result.attacks.items() if found.details.get("attributes")
    }
    if own:
        print_table(_attributes(own), console)
    for line in _in_words(result):
        console.print(literal(line))
    for note in (*result.notes, "What each attack does, and what to change if it succeeds: docs/attacks.md."):
        console.print(literal(note, "dim"))


def _attacks(result: Attacked) -> Table:
    numbers = ("success", "95 % interval", "control", "gain", "size", "targets")
    table = new_table(
        "Attacks: share of targets guessed right (control: guessing from the marginals)",
        "attack",
        "attacker",
        numbers=numbers,
    )
    for name, found in result.attacks.items():
        table.add_row(name, STORIES[name], *_numbers(found))
    return table


def _numbers(found: AttackResult) -> tuple[str, ...]:
    if not found.targets:
        return "-", "-", "-", "-", "-", "0"
    low, high = found.interval
    shares = (f"{found.success:.1%}", f"{low:.1%}-{high:.1%}", f"{found.control:.1%}", f"{found.gain:+.1%}")
    return (*shares, found.amount, f"{found.targets:,}")


def _attributes(own: dict[str, dict[str, dict[str, float]]]) -> Table:
    """A row an attribute: success, and the control in brackets, of each attack."""
    table = new_table("By attribute: success (control)", "attribute", numbers=tuple(own))
    for name in dict.fromkeys(name for found in own.values() for name in found):
        cells = [f"{of[name]['success']:.1%} ({of[name]['control']:.1%})" if name in of else "-" for of in own.values()]
        table.add_row(literal(name), *cells)
    return table


def _in_words(result: Attacked) -> list[str]:
    """What stands out: attacks that are better than guessing, by which rule, and how few people a row may be."""
    lines = [verdict(result.attacks), *without_targets(result.attacks), RULE]
    if "linkage" in result.attacks:
        details = result.attacks["linkage"].details
        lines.append(
            f"Every published row matches at least {details['min_linked']:,} of {details['population']:,} people."
        )
    if result.tolerances:
        listed = ", ".join(f"{name} ±{tolerance:,.4g}" for name, tolerance in result.tolerances.items())
        lines.append(f"A number counts as guessed right within {listed}.")
    return lines

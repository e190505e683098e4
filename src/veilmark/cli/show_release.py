"""What `veilmark release` and `veilmark trace` print."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from veilmark.cli.show import literal, new_table, print_table
from veilmark.report.trace_page import all_tested, probability, standing
from veilmark.trace.accuse import Suspect, Traced
from veilmark.workbench.releasing import Released

SHOWN = 10
MORE = ", by presence alone; sizes and rarity tell more: veilmark crosscopy"


def released(result: Released, console: Console | None = None) -> None:
    """A release, or the plan of one."""
    console = console or Console()
    found = result.feasible
    unlinked = f" ({found.unlinked:,} of {found.released_classes:,} link to nobody.)" if found.unlinked else ""
    console.print(
        f"\nEvery class of the release links to at least {found.min_link:,} persons of the population.{unlinked} "
        f"{found.classes:,} classes ({found.records:,} persons) can serve as decoys; {found.excluded:,} more cannot, for "
        "their persons are in the source, may be, or cannot be told apart. "
        f"Decoys are drawn from {result.cost['pool']:,} of them."
    )
    copies = new_table(
        "Copies", "recipient", "file", numbers=("records", "decoys", "in classes", "withheld", "classes")
    )
    for copy in result.copies:
        counts = (copy.records, copy.decoy_records, copy.decoy_classes, copy.withheld_records, copy.withheld_classes)
        copies.add_row(literal(copy.name), literal(copy.file), *(f"{n:,}" for n in counts))
    print_table(copies, console)
    _cost(result, console)
    if result.release is None:
        console.print("A dry run: nothing was written.")
    else:
        console.print(Text.assemble("Release ", (result.release, "bold"), " is published and in the ledger."))


def _cost(result: Released, console: Console) -> None:
    cost = result.cost
    console.print(f"At most {cost['withheld_share']:.2%} of the records are withheld from a recipient.")
    if cost["code"]:
        code = cost["code"]
        console.print(
            f"The code has {code['length']:,} cover classes ({code['kind']}) and finds one of {code['coalition']} who "
            "collude."
        )
    if cost["seen_once"] and cost["compared"] > 1:
        console.print(
            f"Of {cost['compared']:,} copies side by side, a class that only one of them has is a decoy with probability "
            f"{cost['seen_once']:.2f}{MORE if cost['seen_once'] < 1 else ''}."
        )
    before, after = result.loss, result.loss_after
    console.print(
        f"Discernibility (DM) goes from {before['dm']:,.0f} to {after['dm']:,.0f} in a copy, the mean class size from "
        f"{before['average_class']:.1f} to {after['average_class']:.1f}; labels stay as they are."
    )
    for note in result.notes:
        console.print(literal(note, "yellow"))


def traced(result: Traced, console: Console | None = None) -> None:
    """Who is named, and how suspicious each recipient is."""
    console = console or Console()
    if result.accused:
        console.print(Text.assemble("\nNamed: ", literal(", ".join(result.accused), "bold")))
    else:
        console.print("\n[bold]Nobody is named.[/bold]")
    console.print(
        f"The probability of naming any innocent one of the {all_tested(result)} is at most {result.false_accusation:g}.\n"
    )
    table = new_table("Recipients", "recipient", "release", "", numbers=("probability if innocent", "evidence"))
    for suspect in result.suspects[:SHOWN]:
        bound = "≤ " if suspect.tail != "exact" and suspect.p_value < 1 else ""
        p = f"{bound}{probability(suspect.p_value)}"
        why = standing(suspect, result.false_accusation)
        table.add_row(literal(suspect.name), suspect.release, why, p, f"{len(suspect.evidence):,}")
    print_table(table, console)
    _more(len(result.suspects), console)
    for suspect in result.suspects:
        if suspect.p_value <= result.false_accusation:
            _evidence(suspect, console)
    for note in result.notes:
        console.print(literal(note, "dim"))


def _evidence(suspect: Suspect, console: Console) -> None:
    if not suspect.evidence:
        return
    names = list(dict.fromkeys(key for row in suspect.evidence for key in row))
    table = new_table(f"Evidence against {suspect.name}, release {suspect.release}", *names)
    for row in suspect.evidence[:SHOWN]:
        table.add_row(*(literal("" if row.get(name) is None else row[name]) for name in names))
    print_table(table, console)
    _more(len(suspect.evidence), console)


def _more(count: int, console: Console) -> None:
    """That a list was cut short."""
    if count > SHOWN:
        console.print(f"and {count - SHOWN:,} more; --json lists all.\n")

"""What `veilmark release` and `veilmark trace` print."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from veilmark.cli.show import literal, new_table, print_table
from veilmark.cli.show_anonymize import columns_left_out
from veilmark.cli.show_unchanged import unchanged
from veilmark.readable import probability
from veilmark.report.trace_page import all_tested, standing
from veilmark.trace.accuse import Suspect, Traced
from veilmark.workbench.release import Released

SHOWN = 10
IN_COPIES = "Columns published unchanged, in the first copy"
GROUPS = {"worst": "largest loss", "smallest": "smallest", "lowest": "lowest", "highest": "highest"}
MORE = " (from presence alone; for sizes and rarity, run: veilmark crosscopy)"


def released(result: Released, console: Console | None = None) -> None:
    """A release, or the plan of one."""
    console = console or Console()
    console.print(_linked(result))
    copies = new_table(
        "Copies",
        "recipient",
        "file",
        numbers=("records", "decoy records", "decoy classes", "records withheld", "classes withheld"),
    )
    for copy in result.copies:
        counts = (copy.records, copy.decoy_records, copy.decoy_classes, copy.withheld_records, copy.withheld_classes)
        copies.add_row(literal(copy.name), literal(copy.file), *(f"{n:,}" for n in counts))
    print_table(copies, console)
    _cost(result, console)
    unchanged(result.unchanged, console, IN_COPIES)
    columns_left_out(result.columns_left_out, console)
    if result.release is None:
        console.print("This was a dry run. Nothing was written.")
    else:
        console.print(Text.assemble("Release ", (result.release, "bold"), " is published and recorded in the ledger."))
        console.print(literal(f"Commitment: {result.commitment}", "dim"), soft_wrap=True)
        hint = "Publish the commitment before you deliver the copies. It later proves that the marks existed before."
        console.print(literal(hint, "dim"))


def _linked(result: Released) -> str:
    """What the release links to, and which decoys it can have."""
    found = result.feasible
    if found is None:
        return (
            "\nThe copies hold no decoys, because there is no population. Leaked files can be traced by the withheld "
            "classes. Claims of re-identification cannot be traced."
        )
    unlinked = f" ({found.unlinked:,} of {found.released_classes:,} classes link to nobody.)" if found.unlinked else ""
    others = (
        f" {found.excluded:,} other classes cannot, because their persons are (or may be) in the source, or cannot be told "
        "apart."
    )
    return (
        f"\nEvery class of the release links to at least {found.min_link:,} persons of the population.{unlinked} "
        f"{found.classes:,} classes ({found.records:,} persons) can serve as decoys.{others if found.excluded else ''} "
        f"Decoys are drawn from a pool of {result.cost['pool']:,} classes."
    )


def _cost(result: Released, console: Console) -> None:
    cost = result.cost
    console.print(f"No recipient lacks more than {cost['withheld_share']:.2%} of the records.")
    _lost(result, console)
    if cost["code"]:
        code = cost["code"]
        finds = "a recipient who leaks alone" if code["coalition"] == 1 else f"one of {code['coalition']} who collude"
        console.print(
            f"The code uses {code['length']:,} cover classes. Each recipient lacks some of them. The code can find {finds}."
        )
    if cost["seen_once"] and cost["compared"] > 1:
        console.print(
            f"If {cost['compared']:,} recipients compare their copies, a class in only one of them is a decoy with "
            f"probability {cost['seen_once']:.2f}{MORE if cost['seen_once'] < 1 else ''}."
        )
    before, after = result.loss, result.loss_after
    console.print(
        f"Marking changes the discernibility (DM) of a copy from {before['dm']:,.0f} to {after['dm']:,.0f}, and the mean "
        f"class size from {before['average_class']:.1f} to {after['average_class']:.1f}. It changes no label."
    )
    if result.claims is not None and result.claims.enough:
        console.print(result.claims.said)
    best = None if result.told is None else result.told.best
    if best is not None:
        console.print(
            f"The best of five classifiers finds the decoys of one copy with an AUC of {best.auc:.2f} (0.5 is guessing, 0.7 "
            "or less is good)."
        )
    for note in result.notes:
        console.print(literal(note, "yellow"))


def _lost(result: Released, console: Console) -> None:
    """What groups of persons lose, where anything is withheld."""
    if not result.cost["most_lost"]:
        return
    table = new_table("Withheld by group (in the copy that lacks most)", "group", "", numbers=("records", "withheld"))
    for column, labels in result.cost["lost"].items():
        told: dict[str | None, list[str]] = {}
        for name, of in labels.items():
            told.setdefault(of["label"], []).append(GROUPS[name])
        for label, names in told.items():
            of = next(of for of in labels.values() if of["label"] == label)
            group = literal(f"{column} {'(missing)' if label is None else label}")
            table.add_row(group, ", ".join(names), f"{of['records']:,}", f"{of['share']:.1%}")
    print_table(table, console)


def traced(result: Traced, console: Console | None = None) -> None:
    """Who is named, and how suspicious each recipient is."""
    console = console or Console()
    if result.accused:
        console.print(Text.assemble("\nNamed: ", literal(", ".join(result.accused), "bold")))
    else:
        console.print("\n[bold]Nobody is named.[/bold]")
    for one in result.identical:
        console.print(literal(_same_file(one)))
    console.print(
        f"The probability of naming an innocent recipient ({all_tested(result)}) is at most {result.false_accusation:g}.\n"
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
    already = {_same_file(one) for one in result.identical}
    for note in result.notes:
        if note not in already:
            console.print(literal(note, "dim"))
    if result.meaning:
        console.print()
        console.print(literal(result.meaning, "dim"))


def _same_file(one: Mapping[str, str]) -> str:
    """That the evidence is one of the published copies."""
    return f"{one['evidence']} is, byte for byte, the copy of {one['recipient']} in release {one['release']}."


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
        console.print(f"… and {count - SHOWN:,} more. --json lists all.\n")

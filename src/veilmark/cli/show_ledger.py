"""What `veilmark ledger` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from veilmark.cli.show import literal, new_table, print_table
from veilmark.ledger import Release, Verification


def releases(found: Sequence[Release]) -> None:
    """What `veilmark ledger list` prints."""
    console = Console()
    if not found:
        console.print("The ledger has no releases yet.")
        return
    table = new_table("Releases", "id", "time (UTC)", "study", "recipients", "status")
    for release in found:
        study = release.public.get("study") or "-"
        cells = (release.id, release.time, study, ", ".join(release.recipients), release.status)
        table.add_row(*map(literal, cells))
    print_table(table, console)


def release(found: Release) -> None:
    """What `veilmark ledger show` prints."""
    console = Console()
    console.print(
        Text.assemble("\n", literal(f"Release {found.id}", "bold"), literal(f": {found.status}, {found.time}"))
    )
    table = new_table("", "what", "value")
    for name, value in _flat({k: v for k, v in found.public.items() if k != "recipients"}):
        table.add_row(literal(name), literal(value))
    table.add_row("folder", literal(found.folder))
    print_table(table, console)
    listed = (r if isinstance(r, dict) else {"name": r} for r in found.public.get("recipients", []))
    _rows("Recipients", [{"name": r.get("name"), **r} for r in listed], console)
    if found.digests:
        files = new_table("Files", "file", "SHA-256")
        for name, digest in found.digests.items():
            files.add_row(literal(name), digest)
        print_table(files, console)
    history = new_table("Entries", "kind", "time (UTC)", numbers=("entry",))
    for entry in found.history:
        history.add_row(literal(entry.kind), literal(entry.time), str(entry.number))
    print_table(history, console)


def decoys(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """What `veilmark ledger decoys` prints."""
    console = Console()
    for recipient, rows in found.items():
        _rows(f"Decoys of {recipient}", rows, console)


def receipts(found: Sequence[Mapping[str, Any]]) -> None:
    """What `veilmark ledger receipt` prints without a file."""
    console = Console()
    if not found:
        console.print("The ledger has no receipts yet.")
        return
    names = ("recipient", "release", "file", "time", "is_signed", "key_expected", "sha256")
    _rows("Receipts", [{name: receipt[name] for name in names} for receipt in found], console)


def _rows(title: str, rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = new_table(title, *names)
    for row in rows:
        table.add_row(*(literal(_value(row.get(name))) for name in names))
    print_table(table, console)


def _flat(content: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """A line for each value, those of inner objects by names such as `parameters.k`."""
    lines = []
    for name, value in content.items():
        lines += _flat(value, f"{before}{name}.") if isinstance(value, dict) else [(f"{before}{name}", _value(value))]
    return lines


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return "-" if value is None else str(value)


def entries(count: int) -> str:
    """`1 entry`, `2 entries`."""
    return f"{count:,} entr{'y' if count == 1 else 'ies'}"


def verification(found: Verification) -> None:
    """What `veilmark ledger verify` prints: of the ledger first, then of the files."""
    console = Console()
    if not found.whole:
        console.print(literal(f"The ledger was changed: {found.what}.", "bold red"))
        console.print(
            literal(
                f"The entries before that are intact: {entries(found.entries)}. Compare the ledger with a backup.",
                "dim",
            )
        )
        return
    checked = f"The ledger is intact: {entries(found.entries)}"
    checked += "" if found.sealed is None else f"; sealed by the key: {found.sealed:,}"
    checked += f"; signed by an operator: {found.signed:,}" if found.signed else ""
    checked += "" if found.secrets is None else f"; secrets opened: {found.secrets:,}"
    checked += "" if found.files is None else f"; files compared: {found.files:,}"
    console.print(literal(f"{checked}.", "bold"))
    for one in found.anchors:
        console.print(literal(f"Matches {anchored(one)}"), soft_wrap=True)
    if found.lacks:
        console.print(literal(found.lacks, "yellow"))
    if found.sealed is None:
        console.print(literal("Give --key to also find entries that somebody added without the key.", "yellow"))
    _files("Changed since they were published", found.changed, "bold red", console)
    _files("No longer in the folder where they were published", found.missing, "", console)
    console.print(literal(f"Head: {found.head}", "dim"), soft_wrap=True)
    hint = "Save the head elsewhere. `--head HASH` later shows whether entries were removed or rewritten."
    console.print(literal(hint, "dim"))


def anchored(anchor: Mapping[str, Any]) -> str:
    """An anchor, with its time and who confirms it."""
    said = f"{anchor['file']}: {entries(anchor['entries'])} on {anchor['time']}"
    if anchor["stamped"]:
        return f"{said}, time-stamped on {anchor['stamped']}."
    unchecked = (
        "Its time stamp was not checked: give --tsa-certificate." if anchor["has_stamp"] else "It has no time stamp."
    )
    return f"{said}, as it says itself. {unchecked}"


def _files(title: str, paths: Sequence[str], style: str, console: Console) -> None:
    if paths:
        console.print(literal(f"{title} ({len(paths):,}):", style))
    for path in paths:
        console.print(literal(f"  {path}"), soft_wrap=True)

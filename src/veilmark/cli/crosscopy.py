"""`veilmark crosscopy`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veilmark.cli.options import OR_TABLE, JsonOption, SeedOption, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from veilmark.attack.crosscopy import Scope, Telling
    from veilmark.workbench.crosscopy import CrossCopy

PANEL = "3  Share: a copy for each recipient, with marks of its own"
STORIES = {
    "presence": "in how many of the copies",
    "size": "how many rows",
    "rare": "how many rows its labels let expect",
    "repeats": "rows that are elsewhere, too",
    "odd": "how rare its other values are",
    "misfit": "how ill they go with its labels",
    "risk": "how few of the population it links to",
    "combined": "all of these",
}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(crosscopy)


def crosscopy(
    ledger: Annotated[str, typer.Option(metavar="LEDGER", help="The ledger of releases.")],
    key: Annotated[Path, typer.Option(metavar="KEYFILE", help="The ledger's key.")],
    release: Annotated[str, typer.Option(metavar="ID", help="The release.")],
    copies: Annotated[str, typer.Option(metavar="A.csv,B.csv", help="The copies that the attackers have.")],
    population: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help=f"Everybody, if they have such a table: {OR_TABLE}.", show_default=False),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(metavar="STUDY", help="With --population: the study of the release.", show_default=False),
    ] = None,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Attack your own copies: can recipients who lay theirs side by side tell decoys from real classes?

    The attacker is told the truth of most classes and judged by the others, so that real ones do worse.
    """
    from veilmark.workbench.crosscopy import cross_copy
    from veilmark.workbench.sources import open_study

    files = [Path(name.strip()) for name in copies.split(",") if name.strip()]
    opened = None if study is None else open_study(study)
    found = cross_copy(ledger, key, release, files, population, opened, seed)
    return print_json(found.to_dict()) if as_json else _show(found)


def _show(found: CrossCopy) -> None:
    from rich.console import Console

    from veilmark.cli.show import literal

    console = Console()
    whose = ", ".join(name or Path(file).name for name, file in zip(found.recipients, found.copies, strict=True))
    console.print(literal(f"Release {found.release}, with the copies of {whose}."), end="\n\n")
    if len(found.copies) > 1:
        _scope("Classes in one of these copies alone", found.seen_once, console)
    _scope("All classes of these copies", found.whole, console)
    if found.foreign:
        classes = "1 class is" if found.foreign == 1 else f"{found.foreign:,} classes are"
        console.print(f"{classes} not of this release and left out.", style="dim")


def _scope(title: str, scope: Scope, console: Console) -> None:
    from veilmark.cli.show import new_table, print_table

    counts = f"{title}: {scope.decoys:,} of {scope.classes:,} are decoys"
    if not scope.by:
        console.print(f"{counts}. It takes two decoys and two others to compare.\n")
        return
    table = new_table(counts, "by", "", numbers=("AUC", "95 % interval", "decoys of those taken", "guessing"))
    for name, telling in scope.by.items():
        table.add_row(name, STORIES[name], *_numbers(telling))
    print_table(table, console)
    console.print(f"{_in_words(scope)}\n")


def _numbers(telling: Telling) -> tuple[str, ...]:
    low, high = telling.auc_interval
    return f"{telling.auc:.2f}", f"{low:.2f}-{high:.2f}", f"{telling.taken.success:.0%}", f"{telling.taken.control:.0%}"


def _in_words(scope: Scope) -> str:
    best = max(scope.by, key=lambda name: scope.by[name].auc)
    found = scope.by[best]
    if found.auc_interval[0] <= 0.5:
        return "Nothing tells decoys surely better than guessing."
    return (
        f"By {STORIES[best]}, a decoy looks more suspicious than a real class in {found.auc:.0%} of all pairs (50% would be "
        "guessing). Tracing by cover classes does not rest on decoys being hidden."
    )

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

PANEL = "3  Share: a marked copy for each recipient"
STORIES = {
    "presence": "the number of copies that hold the class",
    "size": "the number of rows of the class",
    "rare": "the number of rows expected from its labels",
    "label": "the number of other rows with its rarest label",
    "pair": "the number of other rows with its rarest pair of labels",
    "repeats": "rows that also occur in other classes",
    "odd": "the rarity of its other values",
    "misfit": "how unusual its other values are for its labels",
    "risk": "the small number of people that it links to",
    "combined": "all of these, in a logistic regression",
}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(crosscopy)


def crosscopy(
    ledger: Annotated[str, typer.Option(metavar="LEDGER", help="The ledger of the releases.")],
    key: Annotated[Path, typer.Option(metavar="KEYFILE", help="The key of the ledger.")],
    release: Annotated[str, typer.Option(metavar="ID", help="The release.")],
    copies: Annotated[
        str, typer.Option(metavar="A.csv,B.csv", help="The copies that the attackers have, separated by commas.")
    ],
    population: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help=f"The population, if the attackers have it: {OR_TABLE}.", show_default=False
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(metavar="STUDY", help="With --population: the study of the release.", show_default=False),
    ] = None,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Attack your own copies: can recipients who compare theirs tell decoys from real classes?

    The attacker knows which classes are decoys, for most classes, and is tested on the rest. Real attackers know less and
    do worse.
    """
    from veilmark.study.opening import open_study
    from veilmark.workbench.crosscopy import cross_copy

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
        _scope("Classes in only one of these copies", found.seen_once, console)
    _scope("All classes of these copies", found.whole, console)
    if found.foreign:
        classes = "1 class is" if found.foreign == 1 else f"{found.foreign:,} classes are"
        console.print(f"{classes} not from this release and left out.", style="dim")


def _scope(title: str, scope: Scope, console: Console) -> None:
    from veilmark.cli.show import new_table, print_table

    counts = f"{title}: {scope.decoys:,} of {scope.classes:,} are decoys"
    if not scope.by:
        console.print(f"{counts}. A comparison needs at least two decoys and two other classes.\n")
        return
    table = new_table(counts, "by", "", numbers=("AUC", "95 % interval", "decoys among those chosen", "guessing"))
    for name, telling in scope.by.items():
        table.add_row(name, STORIES[name], *_numbers(telling))
    print_table(table, console)
    console.print(f"{_in_words(scope)}")
    learnt = ", ".join(f"{name} {telling.auc:.2f}" for name, telling in scope.classifiers.items())
    console.print(f"Classifiers that use all clues (AUC; 0.7 or less is good): {learnt}.\n")


def _numbers(telling: Telling) -> tuple[str, ...]:
    low, high = telling.auc_interval
    return f"{telling.auc:.2f}", f"{low:.2f}-{high:.2f}", f"{telling.taken.success:.0%}", f"{telling.taken.control:.0%}"


def _in_words(scope: Scope) -> str:
    best = max(scope.by, key=lambda name: scope.by[name].auc)
    found = scope.by[best]
    if found.auc_interval[0] <= 0.5:
        return "No clue tells decoys from real classes better than guessing."
    return (
        f"The best clue is {STORIES[best]}: a decoy looks more suspicious than a real class in {found.auc:.0%} of all pairs "
        "(50% is guessing). Tracing by cover classes also works if decoys are known."
    )

"""`veilmark watch`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veilmark.cli.options import AccusationOption, JsonOption, print_json
from veilmark.defaults import FALSE_ACCUSATION
from veilmark.errors import without_password

if TYPE_CHECKING:
    from veilmark.services.folder import Checked
    from veilmark.services.watch import Watched

PANEL = "4  Trace: find the source of a leak or a claim"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(watch)


def watch(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder where files arrive.", show_default=False)
    ],
    ledger: Annotated[str, typer.Option(metavar="LEDGER", help="The ledger of the releases.")],
    key: Annotated[Path, typer.Option(metavar="KEYFILE", help="The key of the ledger.")],
    false_accusation: AccusationOption = FALSE_ACCUSATION,
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Send a POST with JSON to this URL when somebody is named.", show_default=False
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Check the files that are there, then exit.")] = False,
    poll: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Seconds between two checks. A file is read once it no longer changes."),
    ] = 5.0,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file for the results, one JSON object per line. Default: next to FOLDER.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Trace claims and leaked files as they arrive in a folder, each once.

    A file with a column that identifies persons counts as claims. Any other file counts as a leak. The probability of a
    false accusation holds for each file. Press Ctrl-C to stop.
    """
    from veilmark.services.watch import watch as run

    if not once and not as_json:
        print(f"Watching {without_password(str(folder))}. Press Ctrl-C to stop.", file=sys.stderr)
    found = run(folder, ledger, key, false_accusation, webhook, once, poll, log, None if as_json else _print)
    return print_json(found.to_dict()) if as_json else _print_end(found)


def _print(found: Checked) -> None:
    from rich.console import Console

    from veilmark.cli.show import literal
    from veilmark.readable import probability

    if found.error is not None:
        said = f"not checked: {found.error}"
    elif found.accused:
        worst = ", ".join(f"{n['name']} ({probability(n['p_value'])} if innocent)" for n in found.named)
        said = f"{found.kind}; named: {worst}"
    else:
        said = f"{found.kind}; nobody is named"
    Console().print(literal(f"{found.time}  {found.file}: {said}", "bold" if found.accused else ""), soft_wrap=True)


def _print_end(found: Watched) -> None:
    counts = found.to_dict()
    files = "1 file" if counts["checked"] == 1 else f"{counts['checked']:,} files"
    typer.echo(
        f"{files} checked: {counts['named']:,} named somebody, {counts['errors']:,} could not be read. See {found.log}."
    )
    if found.waiting:
        notices = "1 notice" if found.waiting == 1 else f"{found.waiting:,} notices"
        typer.echo(f"{notices} did not reach the webhook. The next run tries again.", err=True)

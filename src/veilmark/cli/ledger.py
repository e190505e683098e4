"""`veilmark ledger`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veilmark.cli.options import JsonOption, print_json

PANEL = "4  Trace: a claim or a leaked file, and who it came from"

app = typer.Typer(help="Look into the ledger of releases, check it, back it up.", no_args_is_help=True)

LedgerOption = Annotated[
    str,
    typer.Option(
        "--ledger", metavar="LEDGER", help="An SQLite file, or the URL of a PostgreSQL database (or env:NAME)."
    ),
]
KeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="KEYFILE", help="The ledger's key file.", show_default=False)
]
ReleaseArgument = Annotated[str, typer.Argument(metavar="RELEASE", help="The release's id.", show_default=False)]


def register(parent: typer.Typer) -> None:
    """Add the verb."""
    parent.add_typer(app, name="ledger", rich_help_panel=PANEL)


@app.command("list")
def list_releases(ledger: LedgerOption, key: KeyOption = None, as_json: JsonOption = False) -> None:
    """List all releases: when, of what study, for whom, and whether they were published. Needs no key."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    _warn_of_faults(ledger)
    found = verbs.releases(ledger, key)
    if as_json:
        print_json({"releases": [release.summary() for release in found]})
    else:
        show_ledger.releases(found)


@app.command("show")
def show_release(
    release: ReleaseArgument, ledger: LedgerOption, key: KeyOption = None, as_json: JsonOption = False
) -> None:
    """Show all that is known of a release, but for its secrets. Needs no key."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    _warn_of_faults(ledger)
    found = verbs.release(ledger, release, key)
    if as_json:
        print_json(found.to_dict())
    else:
        show_ledger.release(found)


def _warn_of_faults(ledger: str) -> None:
    """Say that what follows cannot be relied on."""
    from veilmark.workbench import ledger as verbs

    wrong = verbs.fault(ledger)
    if wrong:
        typer.echo(f"Warning: {wrong} Do not rely on what it says; compare with a backup.", err=True)


@app.command("decoys")
def show_decoys(
    release: ReleaseArgument, ledger: LedgerOption, key: KeyOption = None, as_json: JsonOption = False
) -> None:
    """Show the decoys of a release, for each recipient: who they are, and what was published of them."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    found = verbs.decoys(ledger, release, key)
    if as_json:
        print_json({"release": release, "decoys": found})
    else:
        show_ledger.decoys(found)


@app.command()
def verify(
    ledger: LedgerOption,
    key: KeyOption = None,
    files: Annotated[bool, typer.Option("--files", help="Compare the published files that are still there.")] = False,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="A head noted earlier, which the ledger must still hold.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that no entry was changed, removed or put in; with the key, the secrets too. Exit code 1 if not."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    found = verbs.verify(ledger, key, files, head)
    if as_json:
        print_json(found.to_dict())
    else:
        show_ledger.verification(found)
    if not found.ok:
        raise typer.Exit(1)


@app.command()
def rotate(
    ledger: LedgerOption,
    key: Annotated[Path, typer.Option("--key", metavar="KEYFILE", help="The key file until now.")],
    new_key: Annotated[Path, typer.Option(metavar="KEYFILE", help="The new one; it is made where there is none.")],
    as_json: JsonOption = False,
) -> None:
    """Change the ledger's key: the old one then opens nothing in it, only backups made before."""
    from veilmark.workbench import ledger as verbs

    count = verbs.rotate(ledger, key, new_key)
    if as_json:
        print_json({"secrets": count, "key": str(new_key)})
    else:
        typer.echo(f"The secrets ({count:,}) now open with {new_key} alone. Backups made before need {key}.")


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="The backup to write.", show_default=False)],
    ledger: LedgerOption,
    as_json: JsonOption = False,
) -> None:
    """Write a backup: one file of JSON lines, its secrets still encrypted. The key is not in it."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    found = verbs.export(ledger, file)
    if as_json:
        print_json({"output": str(file), "entries": found.entries, "head": found.head})
    else:
        written = show_ledger.entries(found.entries)
        typer.echo(f"Wrote {written} to {file}. The key file needs a backup of its own.")


@app.command("import")
def restore(
    file: Annotated[Path, typer.Argument(help="A backup.", show_default=False)],
    ledger: LedgerOption,
    as_json: JsonOption = False,
) -> None:
    """Make a new ledger from a backup."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    found = verbs.restore(file, ledger)
    if as_json:
        print_json({"entries": found.entries, "head": found.head})
    else:
        typer.echo(f"Restored {show_ledger.entries(found.entries)}; the chain is whole.")

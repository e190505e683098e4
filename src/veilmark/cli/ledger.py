"""`veilmark ledger`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veilmark.cli.options import JsonOption, print_json

if TYPE_CHECKING:
    from veilmark.workbench.ledger import Noted

PANEL = "4  Trace: find the source of a leak or a claim"
RELEASES = "Releases"
CHECKS = "Checks and proofs"
KEYS = "Keys and signatures"
BACKUP = "Backup"

app = typer.Typer(help="Show, check and back up the ledger of the releases.", no_args_is_help=True)

LedgerOption = Annotated[
    str,
    typer.Option(
        "--ledger",
        metavar="LEDGER",
        help="The ledger: an SQLite file, or the URL of a PostgreSQL database (or env:NAME).",
    ),
]
KeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="KEYFILE", help="The key file of the ledger.", show_default=False)
]
HeadOption = Annotated[
    str | None,
    typer.Option(
        metavar="HASH", help="A head that you saved earlier. The ledger must still contain it.", show_default=False
    ),
]
PublicKeyOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE", help="The public key of an operator. All releases must then be signed.", show_default=False
    ),
]
AnchorOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="An anchor that the ledger must match.", show_default=False),
]
CertificateOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="PEM", help="The certificate of a time stamp server that you trust.", show_default=False),
]
OwnKeyOption = Annotated[Path, typer.Option("--key", metavar="KEYFILE", help="The key file of the ledger.")]
ReleaseArgument = Annotated[str, typer.Argument(metavar="RELEASE", help="The id of the release.", show_default=False)]


def register(parent: typer.Typer) -> None:
    """Add the verb."""
    from veilmark.cli import ledger_keys, ledger_proofs  # noqa: F401 - their commands add themselves

    parent.add_typer(app, name="ledger", rich_help_panel=PANEL)


def noted(
    head: str | None, public_keys: list[Path] | None, anchors: list[Path] | None, certificates: list[Path] | None
) -> Noted:
    """What the options say that the ledger must agree with."""
    from veilmark.workbench.ledger import Noted

    return Noted(head, tuple(public_keys or ()), tuple(anchors or ()), tuple(certificates or ()))


@app.command("list", rich_help_panel=RELEASES)
def list_releases(ledger: LedgerOption, key: KeyOption = None, as_json: JsonOption = False) -> None:
    """List all releases with time, study, recipients and status. Needs no key."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    _warn_of_faults(ledger)
    found = verbs.releases(ledger, key)
    if as_json:
        print_json({"releases": [release.summary() for release in found]})
    else:
        show_ledger.releases(found)


@app.command("show", rich_help_panel=RELEASES)
def show_release(
    release: ReleaseArgument, ledger: LedgerOption, key: KeyOption = None, as_json: JsonOption = False
) -> None:
    """Show a release without its secrets. Needs no key."""
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
        typer.echo(f"Warning: {wrong} Do not rely on this ledger. Compare it with a backup.", err=True)


@app.command("decoys", rich_help_panel=RELEASES)
def show_decoys(
    release: ReleaseArgument, ledger: LedgerOption, key: KeyOption = None, as_json: JsonOption = False
) -> None:
    """Show the decoys of each recipient of a release, with the published values."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    found = verbs.decoys(ledger, release, key)
    if as_json:
        print_json({"release": release, "decoys": found})
    else:
        show_ledger.decoys(found)


@app.command(rich_help_panel=CHECKS)
def verify(
    ledger: LedgerOption,
    key: KeyOption = None,
    files: Annotated[bool, typer.Option("--files", help="Also compare the published files that still exist.")] = False,
    head: HeadOption = None,
    public_key: PublicKeyOption = None,
    anchor: AnchorOption = None,
    tsa_certificate: CertificateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that no entry was changed, removed or added. The exit code is 1 if one was.

    With the key, entries that somebody added without it are found, too.
    """
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    found = verbs.verify(ledger, key, files, noted(head, public_key, anchor, tsa_certificate))
    if as_json:
        print_json(found.to_dict())
    else:
        show_ledger.verification(found)
    if not found.ok:
        raise typer.Exit(1)


@app.command(rich_help_panel=KEYS)
def rotate(
    ledger: LedgerOption,
    key: Annotated[Path, typer.Option("--key", metavar="KEYFILE", help="The current key file.")],
    new_key: Annotated[
        Path, typer.Option(metavar="KEYFILE", help="The new key file. It is created if it does not exist.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Replace the key of the ledger. The old key then opens only older backups."""
    from veilmark.workbench import ledger as verbs

    count = verbs.rotate(ledger, key, new_key)
    if as_json:
        print_json({"secrets": count, "key": str(new_key)})
    else:
        typer.echo(f"The secrets ({count:,}) now open only with {new_key}. Older backups still need {key}.")


@app.command(rich_help_panel=BACKUP)
def export(
    file: Annotated[Path, typer.Argument(help="The backup to write.", show_default=False)],
    ledger: LedgerOption,
    as_json: JsonOption = False,
) -> None:
    """Write a backup: one file of JSON lines. Secrets stay encrypted, and the key is not included."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    found = verbs.export(ledger, file)
    if as_json:
        print_json({"output": str(file), "entries": found.entries, "head": found.head})
    else:
        written = show_ledger.entries(found.entries)
        typer.echo(f"Wrote {written} to {file}. Back up the key file separately.")


@app.command("import", rich_help_panel=BACKUP)
def restore(
    file: Annotated[Path, typer.Argument(help="A backup.", show_default=False)],
    ledger: LedgerOption,
    as_json: JsonOption = False,
) -> None:
    """Create a new ledger from a backup."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    found = verbs.restore(file, ledger)
    if as_json:
        print_json({"entries": found.entries, "head": found.head})
    else:
        typer.echo(f"Restored {show_ledger.entries(found.entries)}. The chain is intact.")

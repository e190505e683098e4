"""`veilmark ledger`: keys to sign with, operators, and the seals of older ledgers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veilmark.cli.ledger import KEYS, LedgerOption, OwnKeyOption, app
from veilmark.cli.options import JsonOption, print_json


@app.command(rich_help_panel=KEYS)
def upgrade(ledger: LedgerOption, key: OwnKeyOption, as_json: JsonOption = False) -> None:
    """Seal the entries of a ledger that an older veilmark wrote, as they are. Look at them first: ledger list."""
    from veilmark.workbench import ledger as verbs

    count = verbs.upgrade(ledger, key)
    if as_json:
        print_json({"sealed": count})
    elif count:
        typer.echo(
            f"Sealed {count:,} entries. Nobody without the key can add entries or change them unseen from now on."
        )
    else:
        typer.echo("All entries are sealed already.")


@app.command("signing-key", rich_help_panel=KEYS)
def signing_key(
    file: Annotated[
        Path, typer.Argument(help="The private key to create. FILE.pub is its public key.", show_default=False)
    ],
    as_json: JsonOption = False,
) -> None:
    """Create a pair of keys (Ed25519) to sign releases or receipts."""
    from veilmark.workbench import ledger as verbs

    signer, public = verbs.make_signing_key(file)
    if as_json:
        print_json({"private": str(file), "public": str(public), "public_key": signer.public})
    else:
        typer.echo(
            f"Wrote the private key {file} and the public key {public}. Keep the private key secret. Give the public key "
            "to those who check signatures."
        )


@app.command(rich_help_panel=KEYS)
def operator(
    name: Annotated[str, typer.Argument(help="The operator's name.", show_default=False)],
    ledger: LedgerOption,
    key: OwnKeyOption,
    sign_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The operator's private key: signs the entry, and so vouches for all entries before it.",
            show_default=False,
        ),
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Or the public key alone.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Add an operator, who signs releases with `release --sign-key`. `verify --public-key` checks the signatures."""
    from veilmark.workbench import ledger as verbs

    entry = verbs.add_operator(ledger, key, name, public_key, sign_key)
    if as_json:
        print_json({"entry": entry.number, **entry.public})
    else:
        typer.echo(f"{name} is an operator of the ledger from entry {entry.number} ({entry.time}).")


keys = typer.Typer(help="Split the key of the ledger into shares, and join them.", no_args_is_help=True)
app.add_typer(keys, name="key", rich_help_panel=KEYS)


@keys.command("split")
def split_key(
    folder: Annotated[Path, typer.Argument(help="The folder for the shares.", show_default=False)],
    key: OwnKeyOption,
    shares: Annotated[int, typer.Option(help="Number of shares.")] = 3,
    threshold: Annotated[int, typer.Option(help="Number of shares that are needed to get the key.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Split the key into shares, so that one person alone cannot use it. Fewer shares than the threshold reveal nothing."""
    from veilmark.workbench import custody

    made = custody.split_key(key, folder, shares, threshold)
    if as_json:
        print_json({"shares": [str(path) for path in made], "threshold": threshold})
    else:
        typer.echo(f"Wrote {len(made)} shares to {folder}. Any {threshold} of them give the key.")
        typer.echo(
            f"Give each share to another person. Then delete {folder} and {key}. While they exist, one person can use the "
            "key."
        )


@keys.command("join")
def join_key(
    shares: Annotated[
        list[Path], typer.Argument(help="The shares, at least as many as the threshold.", show_default=False)
    ],
    key: Annotated[Path, typer.Option("--key", metavar="KEYFILE", help="The key file to create.")],
    as_json: JsonOption = False,
) -> None:
    """Create the key file from shares."""
    from veilmark.workbench import custody

    made = custody.join_key(shares, key)
    if as_json:
        print_json({"key": str(key), "id": made.id})
    else:
        typer.echo(f"Wrote {key}, the key with the id {made.id}. Delete it when you are done.")

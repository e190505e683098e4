"""`veilmark ledger`: what shows others that the ledger, and what is said by it, can be relied on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veilmark.cli.ledger import CHECKS, CertificateOption, KeyOption, LedgerOption, OwnKeyOption, ReleaseArgument, app
from veilmark.cli.options import JsonOption, print_json
from veilmark.errors import OptionError


@app.command(rich_help_panel=CHECKS)
def anchor(
    file: Annotated[Path, typer.Argument(help="The anchor to write.", show_default=False)],
    ledger: LedgerOption,
    key: KeyOption = None,
    tsa: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A time stamp server (RFC 3161) that signs the anchor.", show_default=False),
    ] = None,
    tsa_certificate: CertificateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the head of the ledger to a small file. Keep it elsewhere: it later shows whether entries were removed."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import ledger as verbs

    made = verbs.anchor(ledger, file, key, tsa, tsa_certificate or ())
    if as_json:
        print_json({"output": str(file), **made.to_dict()})
    else:
        stamped = f", stamped by {made.server}" if made.server else ""
        typer.echo(f"Wrote {file}: {show_ledger.entries(made.entries)}, head {made.head}{stamped}.")
        typer.echo(
            "Keep it where nobody who can write to the ledger can change it. "
            f"Check it with: veilmark ledger verify --anchor {file}"
        )


@app.command("sign-receipt", rich_help_panel=CHECKS)
def sign_receipt(
    copy: Annotated[Path, typer.Argument(help="The delivered copy.", show_default=False)],
    recipient: Annotated[str, typer.Option(metavar="NAME", help="The recipient's name in the release.")],
    sign_key: Annotated[Path, typer.Option(metavar="FILE", help="The recipient's private key.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The receipt to write.")],
    as_json: JsonOption = False,
) -> None:
    """For recipients: sign the digest of the delivered copy. Needs no ledger."""
    from veilmark.workbench import custody

    made = custody.sign_receipt(copy, recipient, sign_key, output)
    if as_json:
        print_json({"output": str(output), **made.to_dict()})
    else:
        typer.echo(
            f"Wrote {output}: {recipient} has {made.file} with the SHA-256 {made.sha256}. Send it to the sender."
        )


@app.command(rich_help_panel=CHECKS)
def receipt(
    ledger: LedgerOption,
    file: Annotated[
        Path | None, typer.Argument(help="The receipt to store. If omitted, all receipts are listed.")
    ] = None,
    key: KeyOption = None,
    public_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The known public key of the recipient.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a receipt and store it in the ledger, or list the stored receipts."""
    from veilmark.cli import show_ledger
    from veilmark.workbench import custody

    if file is None:
        listed = custody.receipts(ledger)
        return print_json({"receipts": listed}) if as_json else show_ledger.receipts(listed)
    if key is None:
        raise OptionError("Storing a receipt needs the key of the ledger. Give the key file with --key.")
    entry = custody.add_receipt(ledger, key, file, public_key)
    if as_json:
        return print_json({"entry": entry.number, "release": entry.release, **entry.public})
    expected = (
        "" if public_key else " It was not checked whose key signed the receipt. Give --public-key if you have it."
    )
    typer.echo(
        f"Stored the receipt of {entry.public['recipient']} for release {entry.release} as entry {entry.number}.{expected}"
    )
    return None


@app.command(rich_help_panel=CHECKS)
def commitment(release: ReleaseArgument, ledger: LedgerOption, as_json: JsonOption = False) -> None:
    """Show the commitment of a release. Publish it before you deliver the copies. Needs no key."""
    from veilmark.workbench import custody

    found = custody.commitment(ledger, release)
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(found.commitment)


@app.command("open-commitment", rich_help_panel=CHECKS)
def open_commitment(
    release: ReleaseArgument,
    ledger: LedgerOption,
    key: OwnKeyOption,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The file for the third party.")],
    as_json: JsonOption = False,
) -> None:
    """Open the commitment of one release for a third party. The file reveals all marks and decoys of this release."""
    from veilmark.workbench import custody

    opened = custody.open_commitment(ledger, key, release, output)
    if as_json:
        print_json({"output": str(output), "commitment": opened.commitment, "release": release})
    else:
        typer.echo(
            f"Wrote {output}. It opens the commitment {opened.commitment} and reveals all decoys of {release}. It also "
            "reveals the covers of all releases that have the same. The ledger notes it. The next release has new covers."
        )


@app.command("verify-commitment", rich_help_panel=CHECKS)
def verify_commitment(
    opened: Annotated[Path, typer.Argument(help="The file that opens the commitment.", show_default=False)],
    published: Annotated[str, typer.Option("--commitment", metavar="HASH", help="The commitment that was published.")],
    file: Annotated[Path | None, typer.Option(metavar="FILE", help="The leaked table.", show_default=False)] = None,
    claims: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Or the persons of a claim.", show_default=False)
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="THEIRS=OURS", help="As in trace: a column with another name.", show_default=False
        ),
    ] = None,
    false_accusation: Annotated[
        float, typer.Option(help="Highest allowed probability of naming an innocent recipient.")
    ] = 1e-6,
    as_json: JsonOption = False,
) -> None:
    """For third parties: check an opened commitment and repeat the trace, without the ledger and its key."""
    from veilmark.cli import show_release
    from veilmark.workbench import custody
    from veilmark.workbench.trace import column_map

    if columns and claims is not None:
        raise OptionError("--map is for a leaked table (--file). Rename the columns of the claims instead.")
    renamed = column_map(columns or ())
    result = custody.verify_commitment(opened, published, claims, file, false_accusation, renamed)
    if as_json:
        print_json({"commitment": published, **result.to_dict()})
    else:
        typer.echo("The opened secret matches the commitment. It gives this result:")
        show_release.traced(result)

"""`veilmark trace`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veilmark.cli.ledger import AnchorOption, CertificateOption, HeadOption, PublicKeyOption, noted
from veilmark.cli.options import AccusationOption, JsonOption, print_json
from veilmark.defaults import FALSE_ACCUSATION
from veilmark.errors import OptionError

PANEL = "4  Trace: find the source of a leak or a claim"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(trace)


def trace(
    ledger: Annotated[str, typer.Option(metavar="LEDGER", help="The ledger of the releases.")],
    key: Annotated[Path, typer.Option(metavar="KEYFILE", help="The key of the ledger.")],
    claims: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Persons whom somebody claims to have re-identified.", show_default=False),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A leaked table, or a part of one.", show_default=False)
    ] = None,
    release: Annotated[
        str | None, typer.Option(metavar="ID", help="The release, if you know it.", show_default=False)
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="THEIRS=OURS",
            help="A column of the leaked table that has another name in the release. May be repeated. Default: columns "
            "are matched by name, then by values.",
            show_default=False,
        ),
    ] = None,
    false_accusation: AccusationOption = FALSE_ACCUSATION,
    head: HeadOption = None,
    public_key: PublicKeyOption = None,
    anchor: AnchorOption = None,
    tsa_certificate: CertificateOption = None,
    write_anchor: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write an anchor of the record of this trace, before the evidence is compared. Send it away.",
            show_default=False,
        ),
    ] = None,
    tsa: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A time stamp server that signs --write-anchor.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the evidence as a web page (.html).", show_default=False
        ),
    ] = None,
    bits: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every mark behind the result (.csv or .json).", show_default=False),
    ] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Leave out of --bits what would reveal decoys.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find the recipient whose copy a leaked file or a claim came from.

    Recipients are ranked by the probability that an innocent recipient would look as guilty. If no probability is below
    the limit, nobody is named.
    """
    from veilmark.cli import show_release
    from veilmark.workbench import trace_report
    from veilmark.workbench.ledger import AnchorToKeep
    from veilmark.workbench.trace import column_map
    from veilmark.workbench.trace import trace as run_trace

    if claims is not None and file is not None:
        raise OptionError("Give --claims or --file, not both.")
    evidence = claims or file
    if output is not None and evidence is not None:
        trace_report.check_report_path(output, evidence)
    if bits is not None and evidence is not None:
        trace_report.check_marks_path(bits, evidence)
    known = noted(head, public_key, anchor, tsa_certificate)
    if columns and claims is not None:
        raise OptionError("--map is for a leaked table (--file). Rename the columns of the claims instead.")
    if tsa is not None and write_anchor is None:
        raise OptionError("A time stamp server signs an anchor. Name the file to write it to with --write-anchor.")
    keep = None if write_anchor is None else AnchorToKeep(write_anchor, tsa, tuple(tsa_certificate or ()))
    renamed = column_map(columns or ())
    asked = ledger, key, claims, file, release, false_accusation, known
    result = run_trace(*asked, columns=renamed, anchor=keep)
    if output is not None and evidence is not None:
        trace_report.write_trace_report(result, evidence, "claims" if claims else "leak", ledger, output)
    if bits is not None and not redact:
        trace_report.note_marks_shown(result, ledger, key)
    marks = None if bits is None else trace_report.write_marks(result, bits, redact)
    if as_json:
        return print_json(result.to_dict())
    show_release.traced(result)
    if bits is not None and not redact:
        typer.echo(f"{trace_report.SHOWN}")
    if output is not None:
        typer.echo(f"Wrote the evidence to {output}. It names recipients and decoys. Keep it confidential.")
    if marks is not None:
        secret = "" if redact else " It reveals decoys. Keep it confidential."
        typer.echo(f"Wrote {marks:,} mark{'' if marks == 1 else 's'} to {bits}.{secret}")
    return None

"""`veilmark trace`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veilmark.cli.options import JsonOption, print_json
from veilmark.errors import OptionError

PANEL = "4  Trace: a claim or a leaked file, and who it came from"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(trace)


def trace(
    ledger: Annotated[str, typer.Option(metavar="LEDGER", help="The ledger of releases.")],
    key: Annotated[Path, typer.Option(metavar="KEYFILE", help="The ledger's key.")],
    claims: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Persons somebody says to have re-identified.", show_default=False),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A leaked table, whole or part.", show_default=False)
    ] = None,
    release: Annotated[
        str | None, typer.Option(metavar="ID", help="The release, if it is known.", show_default=False)
    ] = None,
    false_accusation: Annotated[float, typer.Option(help="Probability of naming any innocent recipient.")] = 1e-6,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the evidence as a web page, .html.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say whose copy a claim or a leaked file came from, or name nobody.

    Recipients are ranked, each with the probability that an innocent one would look as guilty.
    """
    from veilmark import workbench
    from veilmark.cli import show_release
    from veilmark.workbench import trace_report

    if claims is not None and file is not None:
        raise OptionError("Give --claims or --file, not both: each is traced by itself.")
    evidence = claims or file
    if output is not None and evidence is not None:
        trace_report.check_report_path(output, evidence)
    result = workbench.trace(ledger, key, claims, file, release, false_accusation)
    if output is not None and evidence is not None:
        trace_report.write_trace_report(result, evidence, "claims" if claims else "leak", ledger, output)
    return print_json(result.to_dict()) if as_json else show_release.traced(result)

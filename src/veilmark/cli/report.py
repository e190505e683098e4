"""`veilmark report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veilmark.cli.options import JsonOption, MemoryOption, SeedOption, StudyArgument, ThreadsOption, print_json

if TYPE_CHECKING:
    from veilmark.report.document import Report

PANEL = "3  Share: a copy for each recipient, with marks of its own"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(report)


def report(
    study: StudyArgument,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The web page to write, .html.")],
    release: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR", help="An anonymized file, or a folder of tables, to measure anew.", show_default=False
        ),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="LEDGER", help="The ledger of a release to recipients.", show_default=False)
    ] = None,
    release_id: Annotated[
        str | None,
        typer.Option("--id", metavar="RELEASE", help="Which release of the ledger, if not the newest."),
    ] = None,
    copies: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The recipients' copies, to be compared with the ledger.", show_default=False),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="KEYFILE", help="The ledger's key: its secrets are checked too.", show_default=False),
    ] = None,
    auditor: Annotated[bool, typer.Option("--auditor", help="Name the decoys. Confidential; needs --key.")] = False,
    attacks: Annotated[
        str | None,
        typer.Option(
            metavar="bk,linkage",
            help="Only these: bk, msacorr, qicorr, mcorr, nmcorr, linkage; or all, or none.",
            show_default=False,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT",
            help="Say whether the release meets it: k=5, l.diagnosis=2, t.diagnosis=0.2. May be repeated.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="A title.", show_default=False)] = None,
    seed: SeedOption = 1,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write one page for a review board: what is shared, with whom, what it promises, measured anew, and what attacks get.

    The page needs no network and prints well. It names no decoys, unless the auditor's variant is asked for.
    """
    from veilmark.attack import ATTACKS
    from veilmark.workbench.reporting import Wanted
    from veilmark.workbench.reporting import report as run
    from veilmark.workbench.sources import open_study

    chosen: Sequence[str] | None = None
    if attacks is not None:
        words = {"all": ATTACKS, "none": ()}
        chosen = words[attacks] if attacks in words else [name.strip() for name in attacks.split(",")]
    wanted = Wanted(release, ledger, release_id, copies, key, auditor, chosen, require or (), title, seed)
    made = run(open_study(study, threads, memory), output, wanted)
    return print_json(made.to_dict()) if as_json else _show(made, output)


def _show(made: Report, output: Path) -> None:
    from rich.console import Console

    from veilmark.cli.show import literal
    from veilmark.report.document import FAILS, HOLDS, findings

    console = Console()
    marks = {HOLDS: ("✓", "green"), FAILS: ("✗", "bold red")}
    for status, text in findings(made):
        mark, style = marks.get(status, ("·", ""))
        console.print(literal(f"{mark} {text}", style))
    for note in made.notes:
        console.print(literal(note, "dim"))
    secret = " It names decoys: keep it as you keep the key." if made.decoys is not None else ""
    console.print(literal(f"Wrote {output}.{secret}", "bold"))

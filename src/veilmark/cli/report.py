"""`veilmark report`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veilmark.cli.options import JsonOption, MemoryOption, SeedOption, StudyArgument, ThreadsOption, print_json, renamed
from veilmark.errors import OptionError, VeilmarkWarning

if TYPE_CHECKING:
    from rich.console import Console

    from veilmark.report.document import Report

IDENTIFIER = re.compile("r[0-9a-f]+")
PANEL = "3  Share: a marked copy for each recipient"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(report)


def report(
    study: StudyArgument,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The web page to write (.html).")],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE|DIR]",
            help="The anonymized file, or folder of tables, to measure.",
            show_default=False,
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="LEDGER", help="The ledger with the release to recipients.", show_default=False),
    ] = None,
    release: Annotated[
        str | None, typer.Option(metavar="ID", help="The release in the ledger. Default: the newest.")
    ] = None,
    old_id: Annotated[str | None, typer.Option("--id", hidden=True)] = None,
    copies: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of the copies, to compare with the ledger.", show_default=False),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="KEYFILE", help="The key of the ledger, to check its secrets too.", show_default=False),
    ] = None,
    auditor: Annotated[
        bool, typer.Option("--auditor", help="Name the decoys. The page is then confidential. Needs --key.")
    ] = False,
    attacks: Annotated[
        str | None,
        typer.Option(
            metavar="bk,linkage",
            help="Only these: bk, msacorr, qicorr, mcorr, nmcorr, linkage. Or all, or none.",
            show_default=False,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT",
            help="Report whether the release meets this limit: k=5, l.diagnosis=2, t.diagnosis=0.2. May be repeated.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The title of the page.", show_default=False)
    ] = None,
    seed: SeedOption = 1,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write one page for a review board: the data, the recipients, the guarantees with a new measurement, and attacks.

    The page needs no network and prints well. It names no decoys, except with --auditor.
    """
    from veilmark.attack import ATTACKS
    from veilmark.study.opening import open_study
    from veilmark.workbench.report import Wanted
    from veilmark.workbench.report import report as run

    chosen: Sequence[str] | None = None
    if attacks is not None:
        words = {"all": ATTACKS, "none": ()}
        chosen = words[attacks] if attacks in words else [name.strip() for name in attacks.split(",")]
    file, release = _old_spelling(file, renamed("--id", old_id, "--release", release))
    wanted = Wanted(file, ledger, release, copies, key, auditor, chosen, require or (), title, seed)
    made = run(open_study(study, threads, memory), output, wanted)
    return print_json(made.to_dict()) if as_json else show_findings(made, output)


def _old_spelling(file: Path | None, release: str | None) -> tuple[Path | None, str | None]:
    """`--release FILE` is how the file was given before; `--release` now is a release's id in the ledger, as elsewhere."""
    if release is None or (IDENTIFIER.fullmatch(release) and not Path(release).exists()):
        return file, release
    if file is not None:
        raise OptionError(f"--release takes the id of a release in the ledger, such as r1a2b3c4d, not '{release}'.")
    warnings.warn(
        "--release now takes the id of a release in the ledger. Give the file after the study: veilmark report STUDY FILE.",
        VeilmarkWarning,
        stacklevel=2,
    )
    return Path(release), None


def show_findings(made: Report, output: Path, console: Console | None = None) -> None:
    """What the report says first, and where it is."""
    from rich import get_console

    from veilmark.cli.show import literal
    from veilmark.report.document import FAILS, HOLDS, findings

    console = console or get_console()
    marks = {HOLDS: ("✓", "green"), FAILS: ("✗", "bold red")}
    for status, text in findings(made):
        mark, style = marks.get(status, ("·", ""))
        console.print(literal(f"{mark} {text}", style))
    for note in made.notes:
        console.print(literal(note, "dim"))
    secret = " It names decoys. Protect it like the key." if made.decoys is not None else ""
    console.print(literal(f"Wrote {output}.{secret}", "bold"))

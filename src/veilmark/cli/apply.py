"""`veilmark apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veilmark.cli.anonymize import PANEL, PseudonymKeyOption
from veilmark.cli.options import OR_TABLE, JsonOption, MemoryOption, StudyArgument, ThreadsOption, print_json


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(apply)


def apply(
    study: StudyArgument,
    recoding: Annotated[Path, typer.Argument(help="The rules that `anonymize --recoding` wrote.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The release to write: .csv or .parquet.")],
    data: Annotated[
        str | None, typer.Option(metavar="TABLE", help=f"The new data, in place of the study's source: {OR_TABLE}.")
    ] = None,
    k: Annotated[
        int | None, typer.Option(metavar="N", help="Least size of a class, in place of the recoding's.")
    ] = None,
    no_suppress: Annotated[
        bool, typer.Option("--no-suppress", help="Keep classes that fail what the recoding was made for.")
    ] = False,
    unknown: Annotated[
        Literal["leave-out", "error"], typer.Option(help="What to do with records that the recoding does not know.")
    ] = "leave-out",
    pseudonym_key: PseudonymKeyOption = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Apply saved rules to new data of the same study.

    Records whose values the rules do not know are left out, and so are classes that are too small in the new data.
    The written file is measured anew before it is published.
    """
    from veilmark import workbench
    from veilmark.cli import show_anonymize
    from veilmark.workbench.applying import apply as apply_rules

    opened = workbench.open_study(study, threads, memory)
    result = apply_rules(opened, recoding, output, data, k, not no_suppress, unknown, pseudonym_key)
    return print_json(result.to_dict()) if as_json else show_anonymize.applied(result)

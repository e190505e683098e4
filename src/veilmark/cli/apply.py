"""`veilmark apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from veilmark.cli.anonymize import PANEL, OrderOption, PseudonymKeyOption, RowSeedOption
from veilmark.cli.options import OR_TABLE, JsonOption, MemoryOption, StudyArgument, ThreadsOption, print_json
from veilmark.defaults import ORDER
from veilmark.errors import OptionError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(apply)


def apply(
    study: StudyArgument,
    recoding: Annotated[
        Path, typer.Argument(help="The recoding that `anonymize --recoding` wrote.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The release to write: .csv or .parquet.")],
    data: Annotated[
        str | None, typer.Option(metavar="TABLE", help=f"The new data, instead of the study's source: {OR_TABLE}.")
    ] = None,
    k: Annotated[
        int | None, typer.Option(metavar="N", help="Smallest class allowed, instead of the k of the recoding.")
    ] = None,
    no_suppress: Annotated[
        bool, typer.Option("--no-suppress", help="Keep classes that do not meet the limits of the recoding.")
    ] = False,
    unknown: Annotated[
        Literal["leave-out", "error"],
        typer.Option(help="What to do with records whose values are not in the recoding."),
    ] = "leave-out",
    pseudonym_key: PseudonymKeyOption = None,
    order: OrderOption = None,
    seed: RowSeedOption = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Apply a saved recoding to new data of the same study.

    Records with values that are not in the recoding are suppressed. Classes that are too small in the new data are
    suppressed, too. veilmark measures the written file again before it publishes it.
    """
    from veilmark.cli import show_anonymize
    from veilmark.study.opening import open_study
    from veilmark.workbench.apply import apply as apply_rules

    if no_suppress and k is not None:
        raise OptionError(
            "--k and --no-suppress exclude each other: --k suppresses small classes, --no-suppress keeps all. Drop one."
        )
    opened = open_study(study, threads, memory)
    suppress = not no_suppress
    written: Any = {"order": order or ORDER, "seed": seed}
    result = apply_rules(opened, recoding, output, data, k, suppress, unknown, pseudonym_key, **written)
    return print_json(result.to_dict()) if as_json else show_anonymize.applied(result)

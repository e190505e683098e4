"""`veilmark utility`."""

from __future__ import annotations

from typing import Annotated

import typer

from veilmark.cli.options import (
    ChartOption,
    JsonOption,
    MemoryOption,
    SeedOption,
    StudyArgument,
    ThreadsOption,
    print_json,
)

PANEL = "2  Anonymize: meet your limits with the least loss"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(utility)


def utility(
    study: StudyArgument,
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="The release: a CSV or Parquet file.", show_default=False)
    ],
    data: Annotated[
        str | None,
        typer.Option(help="Compare with this table instead of the study's source.", show_default=False),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="ATTR",
            help="The attribute that the classifier predicts. Default: the first sensitive one.",
            show_default=False,
        ),
    ] = None,
    chart: ChartOption = None,
    seed: SeedOption = 1,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a release with its source: marginals, associations, loss, and the accuracy of a classifier.

    The release may come from another tool. Its labels may be values, labels of the study's hierarchies, ranges or sets.
    """
    from veilmark.cli import show_utility
    from veilmark.study.opening import open_study
    from veilmark.workbench.utility import view_utility

    opened = open_study(study, threads, memory)
    found = view_utility(opened, release, data, target, chart, seed)
    return print_json(found.to_dict()) if as_json else show_utility.utility(found, release)

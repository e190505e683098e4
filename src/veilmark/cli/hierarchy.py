"""`veilmark hierarchy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veilmark.cli.options import JsonOption, StudyArgument, print_json
from veilmark.cli.start import PANEL

SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(hierarchy)


def hierarchy(
    study: StudyArgument,
    column: Annotated[str, typer.Argument(help="The column.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the hierarchy in the ARX format: value;level1;level2;…")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the generalization levels of a column, check them, or write them for ARX."""
    from veilmark.study.opening import open_study
    from veilmark.workbench.init import hierarchy as run_hierarchy

    levels = run_hierarchy(open_study(study), column, output)
    labels = [levels.of_values(level) for level in range(levels.height + 1)]
    if as_json:
        sizes = [len(distinct) for distinct in levels.labels]
        print_json({"column": column, "height": levels.height, "labels": sizes, "output": output and str(output)})
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(*(f"level {i}" for i in range(len(labels))))
    for row in zip(*(of[:SHOWN].to_pylist() for of in labels), strict=True):
        table.add_row(*("(missing)" if label is None else escape(label) for label in row))
    console = Console()
    console.print(table)
    if len(labels[0]) > SHOWN:
        console.print(f"… and {len(labels[0]) - SHOWN:,} more values.")
    if output:
        console.print(f"Wrote {escape(str(output))}.")

"""`veilmark reproduce`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veilmark.cli.options import JsonOption, SeedOption, print_json

if TYPE_CHECKING:
    from veilmark.reproduce.comparison import Reproduced

PANEL = "Papers"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(reproduce)


def reproduce(
    paper: Annotated[
        Literal["tkl", "fslip", "anontokens"], typer.Argument(help="The paper to reproduce.", show_default=False)
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write an HTML page.", show_default=False)
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="anontokens: number of samples of each population.")] = 50,
    seed: SeedOption = 1,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="anontokens: the folder with zcta_combined.csv and county_sex_age7_fl_mi_co.csv; fslip: the table.",
            show_default=False,
        ),
    ] = None,
    write_populations: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="anontokens: also write the populations, one row per person.", show_default=False
        ),
    ] = None,
    experiment: Annotated[
        bool, typer.Option("--experiment", help="fslip: also repeat the experiment, which takes minutes.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Recompute the tables of a paper and compare them with the printed ones, row by row."""
    from veilmark.workbench import reproduce as reproducing

    found = reproducing.reproduce(paper, output, samples, seed, data, experiment)
    if write_populations is not None:
        reproducing.write_populations(write_populations, seed, data)
    return print_json({**found.to_dict(), "output": output and str(output)}) if as_json else _show(found, output)


def _show(found: Reproduced, page: Path | None) -> None:
    from rich.console import Console

    from veilmark.cli.show import literal, new_table, print_table

    console = Console()
    console.print()
    console.print(literal(found.title, "bold"))
    for name, rows in groupby(found.rows, key=lambda row: row.table):
        title = f"Table {name}" if name[:1].isdigit() else name
        table = new_table(title, "", "paper", "veilmark", "verdict")
        for row in rows:
            style = "" if row.holds else "bold"
            table.add_row(literal(row.what), literal(row.printed), literal(row.ours), literal(row.verdict, style))
        print_table(table, console)
    for note in found.notes:
        console.print(literal(note, "dim"))
    console.print(literal(found.in_words(), "bold"))
    if page is not None:
        console.print(literal(f"Page: {page}"))

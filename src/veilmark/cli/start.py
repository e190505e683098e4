"""`veilmark init`, `sample` and `demo`: where to begin."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from veilmark.cli.options import JsonOption, SeedOption, print_json

PANEL = "Begin"


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    for verb in (init, demo, sample):
        app.command(rich_help_panel=PANEL)(verb)


def init(
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The study file to write.")] = Path("study.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the study file if it exists.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Guess what each column of a table is, and write a study file that says why."""
    from veilmark import workbench

    guesses = workbench.init(data, output, force)
    if as_json:
        listed = [{"column": g.column, "role": g.role, "hierarchy": g.hierarchy, "reason": g.reason} for g in guesses]
        print_json({"output": str(output), "columns": listed})
        return
    from veilmark.cli import show

    show.guesses(guesses)
    typer.echo(f"Written to {output}. Read it, mend what is wrong, then: veilmark measure {shlex.quote(str(output))}")


def sample(
    kind: Annotated[Literal["hospital", "voters"], typer.Argument(help="What to make.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write: .csv or .parquet.")],
    size: Annotated[int, typer.Option(min=1, help="Patients of the hospital, or voters.")] = 10_000,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Make up a table to try things on: a hospital's visits or a voters' roll. Nobody in it is real."""
    from veilmark import workbench

    records = workbench.make_sample(kind, output, size, seed)
    if as_json:
        print_json({"output": str(output), "records": records})
    else:
        typer.echo(f"Wrote {records:,} records to {output}.")


def demo(
    folder: Annotated[Path, typer.Argument(help="Where to put the demo's files.")] = Path("veilmark-demo"),
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Run the whole story on made-up data, and write a report of it."""
    from veilmark.cli.story import tell

    result = tell(folder, seed, quiet=as_json)
    if as_json:
        print_json(result)

"""`veilmark init`, `sample` and `demo`: where to begin."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from veilmark.cli.options import JsonOption, SeedOption, print_json

PANEL = "Start"


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    for verb in (init, demo, sample):
        app.command(rich_help_panel=PANEL)(verb)


def init(
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The study file to write.")] = Path("study.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the study file if it exists.")] = False,
    header: Annotated[
        bool, typer.Option("--header", help="Treat the first line as column names, even if it looks like data.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Detect the role of each column and write a study file with the reasons.

    ARX hierarchy files next to the table (NAME_hierarchy_COLUMN.csv) are used.
    """
    from veilmark.errors import NoHeaderError
    from veilmark.messages import template_of
    from veilmark.workbench.init import init as run_init

    try:
        guesses = run_init(data, output, force, header)
    except NoHeaderError as error:
        raise NoHeaderError(f"{template_of(error)} If it holds the column names, add --header.") from None
    if as_json:
        fields = ("column", "role", "hierarchy", "missing", "fold", "reason", "warnings")
        listed = [{name: getattr(g, name) for name in fields} for g in guesses]
        print_json({"output": str(output), "columns": listed})
        return
    from veilmark.cli import show

    show.guesses(guesses)
    typer.echo(
        f"Wrote {output}. Review the roles, correct any that are wrong, then run: "
        f"veilmark measure {shlex.quote(str(output))}"
    )


def sample(
    kind: Annotated[Literal["hospital", "voters"], typer.Argument(help="The kind of table.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write: .csv or .parquet.")],
    size: Annotated[int, typer.Option(min=1, help="Number of patients, or of voters.")] = 10_000,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Generate a table to try things on: hospital visits or a voter roll. No person is real."""
    from veilmark.workbench.init import make_sample

    records = make_sample(kind, output, size, seed)
    if as_json:
        print_json({"output": str(output), "records": records})
    else:
        typer.echo(f"Wrote {records:,} records to {output}.")


def demo(
    folder: Annotated[Path, typer.Argument(help="The folder for the files of the demo.")] = Path("veilmark-demo"),
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Run all steps on generated data and write a report."""
    from veilmark.cli.story import tell

    result = tell(folder, seed, quiet=as_json)
    if as_json:
        print_json(result)

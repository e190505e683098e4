"""`veilmark weights`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veilmark.cli.options import ChartOption, JsonOption, print_json
from veilmark.cli.score import PANEL
from veilmark.errors import OptionError

app = typer.Typer(help="Find the weights of sensitive values, from experts' judgements.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    """Add the verb."""
    parent.add_typer(app, name="weights", rich_help_panel=PANEL)


@app.command("ahp")
def from_ahp(
    matrix: Annotated[
        list[Path], typer.Argument(help="A matrix of pairwise judgements (CSV); several are a panel of experts.")
    ],
    values: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ATTRIBUTE=CSV",
            help="The matrix compares attributes; this one the values of an attribute. Once for each attribute.",
        ),
    ] = None,
    method: Annotated[
        Literal["eigenvector", "geometric"], typer.Option(help="How priorities are found.")
    ] = "eigenvector",
    rescale: Annotated[bool, typer.Option("--rescale", help="Scale the largest weight to 1.")] = False,
    chart: ChartOption = None,
    as_json: JsonOption = False,
) -> None:
    """Weights from pairwise comparisons, by the Analytic Hierarchy Process.

    "How many times worse is it if HIV comes out than flu?" A cell may hold a number or a fraction; cells left empty
    are filled in from the others.
    """
    from veilmark import workbench
    from veilmark.cli import show

    if values and len(matrix) > 1:
        raise OptionError("A panel of several matrices and --values do not go together. Give one matrix of attributes.")
    result = workbench.weights_from_ahp(matrix, _pairs(values or []), method, rescale, chart)
    if as_json:
        print_json(result.to_dict())
    else:
        show.ahp(result)


@app.command("model")
def from_model(
    model: Annotated[Path, typer.Argument(help="A data model (YAML).", show_default=False)],
    chart: ChartOption = None,
    as_json: JsonOption = False,
) -> None:
    """Weights from a data model: a tree of concepts with sensitivities, and what can be inferred from what."""
    from veilmark import workbench
    from veilmark.cli import show

    result = workbench.weights_from_model(model, chart)
    if as_json:
        print_json(result.to_dict())
    else:
        show.data_model(result)


def _pairs(given: list[str]) -> dict[str, Path]:
    pairs = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not equals or not name or not file:
            raise OptionError(f"--values takes ATTRIBUTE=FILE, such as diagnosis=diagnosis.csv, not '{text}'.")
        pairs[name] = Path(file)
    return pairs

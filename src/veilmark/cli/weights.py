"""`veilmark weights`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veilmark.cli.options import ChartOption, JsonOption, print_json
from veilmark.cli.score import PANEL
from veilmark.errors import OptionError

app = typer.Typer(help="Compute weights of sensitive values from the judgements of experts.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    """Add the verb."""
    parent.add_typer(app, name="weights", rich_help_panel=PANEL)


@app.command("ahp")
def from_ahp(
    matrix: Annotated[
        list[Path],
        typer.Argument(help="A matrix of pairwise judgements (CSV). Several matrices form a panel of experts."),
    ],
    values: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ATTRIBUTE=CSV",
            help="A matrix for the values of one attribute; MATRIX then compares attributes. Repeat for each attribute.",
        ),
    ] = None,
    method: Annotated[
        Literal["eigenvector", "geometric"], typer.Option(help="How priorities are computed.")
    ] = "eigenvector",
    rescale: Annotated[bool, typer.Option("--rescale", help="Scale the largest weight to 1.")] = False,
    chart: ChartOption = None,
    as_json: JsonOption = False,
) -> None:
    """Weights from pairwise comparisons, by the Analytic Hierarchy Process.

    A judgement answers a question such as "How many times worse is the disclosure of HIV than of flu?" A cell may hold a
    number or a fraction. Empty cells are filled in from the others.
    """
    from veilmark.cli import show
    from veilmark.workbench.score import weights_from_ahp

    if values and len(matrix) > 1:
        raise OptionError("--values cannot be used with several matrices. Give one matrix of attributes.")
    result = weights_from_ahp(matrix, _pairs(values or []), method, rescale, chart)
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
    """Weights from a data model: a tree of concepts with sensitivities, and what can be inferred from each."""
    from veilmark.cli import show
    from veilmark.workbench.score import weights_from_model

    result = weights_from_model(model, chart)
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

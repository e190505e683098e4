"""`veilmark anonymize`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from veilmark.cli.options import JsonOption, MemoryOption, StudyArgument, ThreadsOption, print_json
from veilmark.errors import OptionError

PANEL = "2  Anonymize: the least change that makes it safe enough"
T = TypeVar("T")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(anonymize)


def anonymize(
    study: StudyArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="The release to write: .csv or .parquet.")],
    k: Annotated[int, typer.Option(help="Every class has at least so many records (persons, where known).")] = 5,
    method: Annotated[
        Literal["ola", "mondrian"],
        typer.Option(help="ola: one level for each column, optimal; mondrian: ranges that fit the data locally."),
    ] = "ola",
    l: Annotated[  # noqa: E741
        list[str] | None,
        typer.Option(metavar="ATTR=3", help="l-diversity of a sensitive attribute.", show_default=False),
    ] = None,
    l_kind: Annotated[Literal["distinct", "entropy", "recursive"], typer.Option(help="What --l counts.")] = "distinct",
    c: Annotated[float, typer.Option(help="The c of recursive (c, l)-diversity.")] = 3.0,
    t: Annotated[
        list[str] | None,
        typer.Option(metavar="ATTR=0.2", help="t-closeness of a sensitive attribute.", show_default=False),
    ] = None,
    alpha: Annotated[
        list[str] | None,
        typer.Option(metavar="ATTR=0.5", help="Largest share of one value in a class.", show_default=False),
    ] = None,
    suppress: Annotated[float, typer.Option(help="Share of the records that OLA may leave out.")] = 0.0,
    loss: Annotated[
        Literal["dm_star", "precision", "dm", "gcp", "entropy", "lm"], typer.Option(help="The loss that OLA minimizes.")
    ] = "dm_star",
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ATTR=LEVEL", help="Fix (sex=0) or bound (zip=0-3) an attribute's level.", show_default=False
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Take the best found after so long.", show_default=False)
    ] = None,
    recoding: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the rules that were applied, as JSON.", show_default=False),
    ] = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Generalize and suppress until every class is safe, with the least loss, and write the release.

    Direct identifiers and the person column are left out. The written file is measured anew before it is published.
    """
    from veilmark import workbench
    from veilmark.cli import show
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola

    opened = workbench.open_study(study, threads, memory)
    kinds = {"l": l_kind, "c": c}
    models = workbench.models_of(
        opened, k, _pairs("l", l, float), _pairs("t", t, float), _pairs("alpha", alpha, float), kinds
    )
    chosen: Any = Mondrian()
    if method == "ola":
        chosen = Ola(suppress, loss, levels=_pairs("level", level, _span), seconds=seconds)
    elif suppress or level or seconds:
        raise OptionError("--suppress, --level and --seconds belong to --method ola; mondrian suppresses nothing.")
    result = workbench.anonymize(opened, models, output, chosen, recoding)
    return print_json(result.to_dict()) if as_json else show.anonymized(result)


def _pairs(option: str, given: list[str] | None, read: Callable[[str], T]) -> dict[str, T]:
    """ATTR=NUMBER options as a mapping."""
    found = {}
    for text in given or []:
        name, equals, value = text.rpartition("=")
        try:
            if not equals or not name:
                raise ValueError
            found[name] = read(value)
        except ValueError:
            raise OptionError(
                f"--{option} takes an attribute and a number, such as diagnosis=3, not '{text}'."
            ) from None
    return found


def _span(text: str) -> int | tuple[int, int]:
    low, dash, high = text.partition("-")
    return (int(low), int(high)) if dash else int(low)

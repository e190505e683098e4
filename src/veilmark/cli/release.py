"""`veilmark release`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veilmark.cli.anonymize import Loss, PerAttribute, pairs
from veilmark.cli.options import OR_TABLE, JsonOption, MemoryOption, StudyArgument, ThreadsOption, print_json
from veilmark.errors import OptionError

if TYPE_CHECKING:
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola

PANEL = "3  Share: a copy for each recipient, with marks of its own"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(release)


def release(
    study: StudyArgument,
    population: Annotated[
        str, typer.Option(metavar="TABLE", help=f"Everybody whom an attacker could link to: {OR_TABLE}.")
    ],
    identity: Annotated[str, typer.Option(metavar="COL,COL", help="The population's columns that tell who one is.")],
    recipients: Annotated[str, typer.Option(metavar="A,B,C", help="Who gets a copy.")],
    ledger: Annotated[
        str | None,
        typer.Option(metavar="LEDGER", help="The ledger: an SQLite file or a PostgreSQL URL.", show_default=False),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="KEYFILE", help="The ledger's key, made where there is none.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="The folder of copies, a new one.", show_default=False),
    ] = None,
    k: Annotated[int, typer.Option(help="Every class has at least so many records (persons, where known).")] = 5,
    suppress: Annotated[float, typer.Option(help="Share of the records that may be left out.")] = 0.0,
    loss: Annotated[Loss, typer.Option(help="The loss that OLA minimizes.")] = "dm_star",
    method: Annotated[
        Literal["ola", "mondrian"], typer.Option(help="ola: a level for each column, optimal; mondrian: local ranges.")
    ] = "ola",
    l: Annotated[PerAttribute, typer.Option(metavar="ATTR=3", help="l-diversity.", show_default=False)] = None,  # noqa: E741
    t: Annotated[PerAttribute, typer.Option(metavar="ATTR=0.2", help="t-closeness.", show_default=False)] = None,
    decoys: Annotated[int, typer.Option(help="Decoy classes for each recipient.")] = 3,
    covers: Annotated[int, typer.Option(help="Real classes kept for each recipient alone.")] = 0,
    collusion: Annotated[
        int | None, typer.Option(help="Withhold classes by a code that finds one of so many who collude.")
    ] = None,
    false_accusation: Annotated[float, typer.Option(help="Probability of naming any innocent recipient.")] = 1e-6,
    risk: Annotated[
        str, typer.Option(metavar="LOW:HIGH", help="Decoys' risk, times the release's highest.")
    ] = "1.1:1.5",
    strategy: Annotated[
        Literal["size", "random", "risk"], typer.Option(help="Which classes are withheld: small, any, or risky ones.")
    ] = "size",
    budget: Annotated[float, typer.Option(help="At most this share of the classes is withheld from anybody.")] = 0.5,
    near: Annotated[
        float, typer.Option(metavar="SHARE", help="Of a biased sample: only the nearest share of the candidates.")
    ] = 1.0,
    seed: Annotated[
        int | None, typer.Option(help="The same seed, key and version give the same copies.", show_default=False)
    ] = None,
    form: Annotated[Literal["csv", "parquet"], typer.Option("--format", help="How copies are written.")] = "csv",
    terms: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML: by recipient, agreement, contact and consent.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost, and write nothing.")] = False,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give each recipient a copy of its own, and record it, so that an attack leads back to its source.

    A copy holds decoys (real persons of the population, none of them in the study) and lacks some real classes.
    """
    from veilmark import workbench
    from veilmark.cli import show_release
    from veilmark.mark.plan import Marking

    opened = workbench.open_study(study, threads, memory)
    limits = workbench.Limits(k=None, l=pairs("l", l, float), t=pairs("t", t, float))
    names = tuple(name.strip() for name in recipients.split(","))
    marking = Marking(names, k, decoys, covers, collusion, false_accusation, _range(risk), strategy, budget, near)
    job = workbench.Job(
        population,
        tuple(c.strip() for c in identity.split(",") if c.strip()),
        marking,
        tuple(workbench.models_of(opened, limits)),
        _method(method, suppress, loss),
        seed,
        form,
        workbench.read_terms(terms, names) if terms else {},
    )
    result = workbench.release(opened, job, ledger, key, output, dry_run)
    return print_json(result.to_dict()) if as_json else show_release.released(result)


def _method(name: str, suppress: float, loss: Loss) -> Ola | Mondrian:
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola

    if name == "ola":
        return Ola(suppress, loss)
    if suppress:
        raise OptionError("--suppress belongs to --method ola: Mondrian suppresses nothing.")
    return Mondrian()


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise OptionError(f"--risk takes a range such as 1.1:1.5, not '{text}'.") from None

"""`veilmark release`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veilmark.cli.anonymize import PerAttribute, pairs
from veilmark.cli.given import is_typed, refuse_foreign
from veilmark.cli.numbers import typed_share
from veilmark.cli.options import (
    OR_TABLE,
    AccusationOption,
    JsonOption,
    MemoryOption,
    StudyArgument,
    ThreadsOption,
    print_json,
)
from veilmark.defaults import BUDGET, COLLUSION, FALSE_ACCUSATION, LOSS, RISK, SUPPRESSION, K, Metric
from veilmark.errors import OptionError
from veilmark.shares import share

if TYPE_CHECKING:
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola

PANEL = "3  Share: a marked copy for each recipient"
LIMITS = "What the release must meet"
MARKS = "Decoys and withheld classes"
RECORDS = "Ledger and signatures"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(release)


def release(
    context: typer.Context,
    study: StudyArgument,
    recipients: Annotated[str, typer.Option(metavar="A,B,C", help="The recipients, separated by commas.")],
    population: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help=f"The population that an attacker could link to: {OR_TABLE}. Needed for decoys.",
            show_default=False,
            rich_help_panel=MARKS,
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(
            metavar="COL,COL",
            help="The columns of the population that identify a person. Needed for decoys.",
            show_default=False,
            rich_help_panel=MARKS,
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="LEDGER",
            help="The ledger: an SQLite file or a PostgreSQL URL.",
            show_default=False,
            rich_help_panel=RECORDS,
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="KEYFILE",
            help="The key of the ledger. If the file does not exist, it is created.",
            show_default=False,
            rich_help_panel=RECORDS,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="The folder for the copies. It must be new.", show_default=False
        ),
    ] = None,
    k: Annotated[
        int, typer.Option(help="Smallest class allowed, in persons (or records).", rich_help_panel=LIMITS)
    ] = K,
    suppress: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Share of records that may be suppressed, such as 0.05 or 5%.",
            parser=typed_share,
            rich_help_panel=LIMITS,
        ),
    ] = SUPPRESSION,
    loss: Annotated[Metric, typer.Option(help="The loss that OLA minimizes.", rich_help_panel=LIMITS)] = LOSS,
    method: Annotated[
        Literal["ola", "mondrian"],
        typer.Option(help="ola: one optimal level for each column. mondrian: local ranges.", rich_help_panel=LIMITS),
    ] = "ola",
    l: Annotated[  # noqa: E741
        PerAttribute,
        typer.Option(metavar="ATTR=3", help="l-diversity.", show_default=False, rich_help_panel=LIMITS),
    ] = None,
    t: Annotated[
        PerAttribute,
        typer.Option(metavar="ATTR=0.2", help="t-closeness.", show_default=False, rich_help_panel=LIMITS),
    ] = None,
    decoys: Annotated[
        int | None,
        typer.Option(
            help="Decoy classes for each recipient. 0 needs no population. Default: as many as claims need to name a "
            "recipient.",
            show_default=False,
            rich_help_panel=MARKS,
        ),
    ] = None,
    covers: Annotated[
        int | None,
        typer.Option(
            help="Cover classes of each recipient: real classes that only this recipient gets.",
            show_default=False,
            rich_help_panel=MARKS,
        ),
    ] = None,
    collusion: Annotated[
        int | None,
        typer.Option(
            help="Withhold classes by a code that finds one of this many recipients who collude. "
            f"Default: {COLLUSION}, without --covers.",
            show_default=False,
            rich_help_panel=MARKS,
        ),
    ] = None,
    false_accusation: AccusationOption = FALSE_ACCUSATION,
    risk: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            help="Risk of the decoys, as a multiple of the release's highest risk, such as 1.1:1.5. Riskier decoys "
            "attract attackers. Default: decoys that look like other classes.",
            show_default=False,
            rich_help_panel=MARKS,
        ),
    ] = None,
    strategy: Annotated[
        Literal["stratified", "size", "random", "risk"],
        typer.Option(
            help="Which classes are withheld: a stratified choice, small ones, random ones, or risky ones.",
            rich_help_panel=MARKS,
        ),
    ] = "stratified",
    marks: Annotated[
        Literal["classes", "rows", "both"],
        typer.Option(
            help="What the code withholds: whole classes, single records of larger classes, or both.",
            rich_help_panel=MARKS,
        ),
    ] = "classes",
    budget: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Largest share of classes that may be withheld from some recipient.",
            parser=typed_share,
            rich_help_panel=MARKS,
        ),
    ] = BUDGET,
    most_lost: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Largest share of a group's records that a copy may lack, such as 25%.",
            show_default=False,
            parser=typed_share,
            rich_help_panel=MARKS,
        ),
    ] = None,
    near: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="For a biased sample: use only this nearest share of the decoy candidates.",
            parser=typed_share,
            rich_help_panel=MARKS,
        ),
    ] = 1.0,
    seed: Annotated[
        int | None,
        typer.Option(help="The same seed, key and version give the same copies. Default: random.", show_default=False),
    ] = None,
    form: Annotated[Literal["csv", "parquet"], typer.Option("--format", help="The file format of the copies.")] = "csv",
    terms: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML with the agreement, contact and consent of each recipient.",
            show_default=False,
            rich_help_panel=RECORDS,
        ),
    ] = None,
    sign_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Sign the release with the private key of an operator.",
            show_default=False,
            rich_help_panel=RECORDS,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report the cost and write nothing.")] = False,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a marked copy for each recipient and record it in the ledger, so that a leak can be traced.

    A copy holds decoys (persons of the population who are not in the source) and lacks some real classes.
    """
    from veilmark.cli import show_release
    from veilmark.mark.marking import Marking
    from veilmark.mark.request import ReleaseRequest
    from veilmark.study.opening import open_study
    from veilmark.workbench.anonymize import Limits, models_of
    from veilmark.workbench.release import read_terms
    from veilmark.workbench.release import release as run_release

    refuse_foreign(context, method, ("suppress", "loss"))
    if decoys == 0 and is_typed(context, "risk"):
        raise OptionError("--risk is about decoys, and --decoys is 0. Drop --risk, or ask for decoys.")
    opened = open_study(study, threads, memory)
    limits = Limits(k=None, l=pairs("l", l), t=pairs("t", t, share))
    names = tuple(name.strip() for name in recipients.split(","))
    marking = Marking(
        decoys=decoys,
        covers=covers,
        collusion=collusion,
        false_accusation=false_accusation,
        risk=_range(risk),
        strategy=strategy,
        budget=budget,
        near=near,
        most_lost=most_lost,
        marks=marks,
    ).of_copies(names, k)
    job = ReleaseRequest(
        population,
        tuple(c.strip() for c in (identity or "").split(",") if c.strip()),
        marking,
        tuple(models_of(opened, limits)),
        _method(method, suppress, loss),
        seed,
        form,
        read_terms(terms, names) if terms else {},
    )
    result = run_release(opened, job, ledger, key, output, dry_run, sign_key)
    return print_json(result.to_dict()) if as_json else show_release.released(result)


def _method(name: str, suppress: float, loss: Metric) -> Ola | Mondrian:
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola

    return Ola(suppress, loss) if name == "ola" else Mondrian()


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return RISK
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise OptionError(f"--risk takes a range such as 1.1:1.5, not '{text}'.") from None

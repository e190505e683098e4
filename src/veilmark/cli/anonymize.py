"""`veilmark anonymize`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from veilmark.cli.given import PERSONS as OF_PERSONS
from veilmark.cli.given import refuse_foreign
from veilmark.cli.numbers import typed_share
from veilmark.cli.options import OR_TABLE, JsonOption, MemoryOption, StudyArgument, ThreadsOption, print_json
from veilmark.defaults import LOSS, ORDER, RECURSIVE_C, SECONDS, SUPPRESSION, K, Metric, Order
from veilmark.errors import OptionError
from veilmark.shares import number, share

if TYPE_CHECKING:
    from veilmark.veil.anonymize import Method

PANEL = "2  Anonymize: meet your limits with the least loss"
LIMITS = "What the release must meet"
METHOD = "Method"
SEARCH = "OLA search"
PERSONS = "Many records per person: --method fslip, onemany, rmr, anatomy, slicing"
FILES = "Files"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(anonymize)


def _option(panel: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(metavar=metavar, help=text, rich_help_panel=panel, show_default=metavar is None)


def _share_option(panel: str, text: str) -> Any:
    return typer.Option(metavar="SHARE", help=text, rich_help_panel=panel, parser=typed_share)


PerAttribute = list[str] | None
PseudonymKeyOption = Annotated[
    Path | None,
    _option(
        FILES,
        "The key of the pseudonyms. If the file does not exist, it is created. If omitted, a random key is used once "
        "and not saved.",
        "FILE",
    ),
]

OrderOption = Annotated[
    Order | None,
    _option(FILES, f"Order of the rows: shuffle, or keep (as in the source). Default: {ORDER}.", "NAME"),
]
RowSeedOption = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="The same seed gives the same file.", rich_help_panel=FILES, show_default=False
    ),
]


def anonymize(
    context: typer.Context,
    study: StudyArgument,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help="The release to write: .csv, .parquet, or a folder.", rich_help_panel=FILES
        ),
    ],
    k: Annotated[
        int | None,
        _option(
            LIMITS,
            f"Smallest class allowed, in persons (or records). Default: {K}; none with --k-map or --presence.",
            "N",
        ),
    ] = None,
    l: Annotated[  # noqa: E741
        PerAttribute, _option(LIMITS, "l-diversity of a sensitive attribute. For slices: one number.", "ATTR=3")
    ] = None,
    l_kind: Annotated[
        Literal["distinct", "entropy", "recursive"], _option(LIMITS, "The kind of l-diversity for --l.")
    ] = "distinct",
    c: Annotated[float, _option(LIMITS, "The c of recursive (c, l)-diversity.")] = RECURSIVE_C,
    t: Annotated[PerAttribute, _option(LIMITS, "t-closeness, with the distance from the study.", "ATTR=0.2")] = None,
    alpha: Annotated[
        PerAttribute, _option(LIMITS, "Largest allowed share of one value in a class.", "ATTR=0.5")
    ] = None,
    beta: Annotated[
        PerAttribute, _option(LIMITS, "β-likeness: largest allowed relative gain of a value's share.", "ATTR=1")
    ] = None,
    beta_kind: Annotated[Literal["basic", "enhanced"], _option(LIMITS, "The kind of β-likeness for --beta.")] = "basic",
    delta: Annotated[
        PerAttribute, _option(LIMITS, "δ-disclosure of a sensitive attribute. For rmr: one number.", "ATTR=1")
    ] = None,
    k_map: Annotated[
        int | None, _option(LIMITS, "Fewest people of the population that a class may link to.", "N")
    ] = None,
    presence: Annotated[
        str | None, _option(LIMITS, "δ-presence: smallest and largest share of these people in the table.", "0.1:0.5")
    ] = None,
    population: Annotated[
        str | None, _option(LIMITS, f"The population, for --k-map and --presence: {OR_TABLE}.", "TABLE")
    ] = None,
    method: Annotated[
        Literal["ola", "mondrian", "microaggregate", "fslip", "onemany", "rmr", "anatomy", "slicing"],
        _option(METHOD, "ola: one optimal level for each column. mondrian: local ranges. microaggregate: means."),
    ] = "ola",
    suppress: Annotated[
        float, _share_option(METHOD, "Share of records that OLA may suppress, such as 0.05 or 5%.")
    ] = SUPPRESSION,
    suppress_unit: Annotated[
        Literal["records", "persons"], _option(METHOD, "What --suppress counts: records, or persons who lose a record.")
    ] = "records",
    relaxed: Annotated[
        bool, typer.Option("--relaxed", help="Mondrian: ranges may overlap.", rich_help_panel=METHOD)
    ] = False,
    gamma: Annotated[
        float | None,
        _option(METHOD, "Microaggregation: groups of k to 2k-1. Use 0.2 for scattered, 1.1 for clustered data.", "G"),
    ] = None,
    loss: Annotated[Metric | None, _option(SEARCH, f"The loss to minimize. Default: {LOSS}.", "NAME")] = None,
    weight: Annotated[PerAttribute, _option(SEARCH, "Weight of an attribute in the loss.", "ATTR=2")] = None,
    level: Annotated[
        PerAttribute, _option(SEARCH, "Fix (sex=0) or bound (zip=0-3) an attribute's level.", "ATTR=LEVEL")
    ] = None,
    seconds: Annotated[
        float | None,
        _option(
            SEARCH,
            f"Time limit of the search, in seconds. Default: {SECONDS:g} if there are too many levels to try all.",
            "S",
        ),
    ] = None,
    preset: Annotated[
        Literal["strict", "paper"] | None,
        _option(PERSONS, "fslip: strict (sound) or paper (as printed). Default: strict.", "NAME"),
    ] = None,
    link: Annotated[
        Literal["none", "groups"] | None,
        _option(PERSONS, "Whether rows refer to their slices: none or groups.", "NAME"),
    ] = None,
    groups: Annotated[str | None, _option(PERSONS, "Sensitive attributes of each table.", '"A,B;C,D"')] = None,
    f: Annotated[
        str | None, _option(PERSONS, "Persons in a slice: one number for each table, or one for all.", "3,2")
    ] = None,
    m: Annotated[int | None, _option(PERSONS, "rmr: number of items that the attacker knows.", "N")] = None,
    form: Annotated[
        Literal["csv", "parquet"] | None,
        typer.Option(
            "--format", metavar="NAME", help="File format of the tables: csv or parquet.", rich_help_panel=PERSONS
        ),
    ] = None,
    chart: Annotated[
        Path | None, _option(PERSONS, "Write a chart of the correlations: .html, .svg, .png or .json.", "FILE")
    ] = None,
    order: OrderOption = None,
    seed: RowSeedOption = None,
    recoding: Annotated[
        Path | None, _option(FILES, "Write the recoding as JSON, for `veilmark apply`.", "FILE")
    ] = None,
    pseudonym_key: PseudonymKeyOption = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Generalize and suppress records until every class meets your limits, with the least loss, and write the release.

    The methods for many records per person make one row for each person and write a folder of tables. Direct
    identifiers and the person column are removed, or become pseudonyms if the study says so. veilmark measures the
    written file again before it publishes it.
    """
    from veilmark.cli import show_anonymize
    from veilmark.study.opening import open_study
    from veilmark.workbench.anonymize import Limits, models_of
    from veilmark.workbench.anonymize import anonymize as run_anonymize

    refuse_foreign(context, method)
    opened = open_study(study, threads, memory)
    if method in OF_PERSONS:
        from veilmark.cli.anonymize_persons import run_persons_method

        options = {"k": k, "l": l, "delta": delta, "preset": preset, "link": link, "groups": groups, "f": f, "m": m}
        return run_persons_method(method, opened, output, options | {"seed": seed}, form or "csv", chart, as_json)
    given = {"l": l, "beta": beta, "delta": delta}
    by_attribute: Any = {name: pairs(name, texts) for name, texts in given.items()}
    by_attribute |= {name: pairs(name, texts, share) for name, texts in {"t": t, "alpha": alpha}.items()}
    least = K if k is None and k_map is None and presence is None else k
    kinds: Any = {"l_kind": l_kind, "c": c, "beta_kind": beta_kind}
    limits = Limits(least, **by_attribute, **kinds, k_map=k_map, presence=_range(presence))
    models = models_of(opened, limits)
    _needs(l_kind != "distinct", "--l-kind", "--l", l)
    _needs(beta_kind != "basic", "--beta-kind", "--beta", beta)
    _needs(c != RECURSIVE_C, "--c", "--l-kind recursive", l_kind == "recursive")
    search: dict[str, Any] = {"suppression": suppress, "unit": suppress_unit, "seconds": seconds, "loss": loss or LOSS}
    search |= {"weights": pairs("weight", weight), "levels": pairs("level", level, _span)}
    chosen = _method(method, search, relaxed, gamma)
    result = run_anonymize(opened, models, output, chosen, recoding, population, pseudonym_key, order or ORDER, seed)
    return print_json(result.to_dict()) if as_json else show_anonymize.anonymized(result)


def _needs(given: bool, option: str, other: str, there: object) -> None:
    """An option that says how another is meant needs that one."""
    if given and not there:
        raise OptionError(f"{option} needs {other}, which is not given. Add {other}, or drop {option}.")


def _method(name: str, search: dict[str, Any], relaxed: bool, gamma: float | None) -> Method:
    """The method with its own options."""
    from veilmark.veil.anonymize import Microaggregation
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola

    if name == "ola":
        return Ola(**search)
    return Mondrian(relaxed) if name == "mondrian" else Microaggregation(gamma)


def pairs(option: str, given: list[str] | None, read: Callable[[str], Any] = number) -> dict[str, Any]:
    """ATTR=NUMBER options as a mapping; an attribute that is given twice is an error."""
    found: dict[str, Any] = {}
    for text in given or []:
        name, equals, value = text.rpartition("=")
        try:
            if not equals or not name:
                raise ValueError
            limit = read(value)
        except ValueError:
            raise OptionError(
                f"--{option} takes an attribute and a number, such as diagnosis=3, not '{text}'."
            ) from None
        if name in found:
            raise OptionError(f"--{option} is given twice for '{name}', the second time as '{text}'. Give it once.")
        found[name] = limit
    return found


def _span(text: str) -> int | tuple[int, int]:
    low, dash, high = text.partition("-")
    return (int(low), int(high)) if dash else int(low)


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    low, _, high = text.partition(":")
    try:
        return share(low), share(high)
    except ValueError:
        raise OptionError(f"--presence takes two shares, such as 0.1:0.5, not '{text}'.") from None

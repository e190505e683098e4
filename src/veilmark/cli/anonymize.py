"""`veilmark anonymize`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from veilmark.cli.options import OR_TABLE, JsonOption, MemoryOption, StudyArgument, ThreadsOption, print_json
from veilmark.errors import OptionError

if TYPE_CHECKING:
    from veilmark.veil.anonymize import Method

PANEL = "2  Anonymize: the least change that makes it safe enough"
LIMITS = "What the release must meet"
METHOD = "Method"
SEARCH = "Search of OLA"
PERSONS = "Many records a person: --method fslip, onemany, rmr, anatomy, slicing"
FILES = "Files"
DEFAULT_K = 5
RECURSIVE_C = 3.0


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(anonymize)


def _option(panel: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(metavar=metavar, help=text, rich_help_panel=panel, show_default=metavar is None)


PerAttribute = list[str] | None
Loss = Literal["dm_star", "precision", "dm", "gcp", "entropy", "lm"]
PseudonymKeyOption = Annotated[
    Path | None,
    _option(FILES, "The key of pseudonyms, made where there is none. Without, it is new and forgotten.", "FILE"),
]


def anonymize(
    study: StudyArgument,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help="The release to write: .csv or .parquet; or a folder.", rich_help_panel=FILES
        ),
    ],
    k: Annotated[
        int | None,
        _option(LIMITS, "Least persons (or records) of a class. Default: 5, none with --k-map or --presence.", "N"),
    ] = None,
    l: Annotated[  # noqa: E741
        PerAttribute, _option(LIMITS, "l-diversity of a sensitive attribute; a number alone for slices.", "ATTR=3")
    ] = None,
    l_kind: Annotated[Literal["distinct", "entropy", "recursive"], _option(LIMITS, "What --l counts.")] = "distinct",
    c: Annotated[float, _option(LIMITS, "The c of recursive (c, l)-diversity.")] = RECURSIVE_C,
    t: Annotated[PerAttribute, _option(LIMITS, "t-closeness, by the study's distance.", "ATTR=0.2")] = None,
    alpha: Annotated[PerAttribute, _option(LIMITS, "Largest share of one value in a class.", "ATTR=0.5")] = None,
    beta: Annotated[PerAttribute, _option(LIMITS, "β-likeness: largest gain of a value's share.", "ATTR=1")] = None,
    beta_kind: Annotated[Literal["basic", "enhanced"], _option(LIMITS, "Which β-likeness.")] = "basic",
    delta: Annotated[
        PerAttribute, _option(LIMITS, "δ-disclosure of a sensitive attribute; a number alone for rmr.", "ATTR=1")
    ] = None,
    k_map: Annotated[int | None, _option(LIMITS, "Least people of the population that a class links to.", "N")] = None,
    presence: Annotated[
        str | None, _option(LIMITS, "δ-presence: least and largest share of them in the table.", "0.1:0.5")
    ] = None,
    population: Annotated[
        str | None, _option(LIMITS, f"Everybody, for --k-map and --presence: {OR_TABLE}.", "TABLE")
    ] = None,
    method: Annotated[
        Literal["ola", "mondrian", "microaggregate", "fslip", "onemany", "rmr", "anatomy", "slicing"],
        _option(METHOD, "ola: a level for each column, optimal; mondrian: local ranges; microaggregate: means."),
    ] = "ola",
    suppress: Annotated[float, _option(METHOD, "Share that OLA may leave out, 0 to 1.")] = 0.0,
    suppress_unit: Annotated[
        Literal["records", "persons"], _option(METHOD, "Share of what: records, or persons who lose one.")
    ] = "records",
    relaxed: Annotated[
        bool, typer.Option("--relaxed", help="Mondrian's ranges may overlap.", rich_help_panel=METHOD)
    ] = False,
    gamma: Annotated[
        float | None, _option(METHOD, "Microaggregation in groups of k to 2k-1: 0.2 scattered, 1.1 clustered.", "G")
    ] = None,
    loss: Annotated[Loss | None, _option(SEARCH, "The loss to minimize. Default: dm_star.", "NAME")] = None,
    weight: Annotated[PerAttribute, _option(SEARCH, "How much an attribute counts in the loss.", "ATTR=2")] = None,
    level: Annotated[
        PerAttribute, _option(SEARCH, "Fix (sex=0) or bound (zip=0-3) an attribute's level.", "ATTR=LEVEL")
    ] = None,
    seconds: Annotated[float | None, _option(SEARCH, "Take the best found after so long.", "S")] = None,
    preset: Annotated[
        Literal["strict", "paper"] | None, _option(PERSONS, "fslip, sound or as printed. Default: strict.", "NAME")
    ] = None,
    link: Annotated[
        Literal["none", "groups"] | None, _option(PERSONS, "Whether rows say which slices are theirs.", "NAME")
    ] = None,
    groups: Annotated[str | None, _option(PERSONS, "Sensitive attributes by table.", '"A,B;C,D"')] = None,
    f: Annotated[str | None, _option(PERSONS, "Persons in a slice, one a table or one for all.", "3,2")] = None,
    m: Annotated[int | None, _option(PERSONS, "Items an attacker of rmr knows.", "N")] = None,
    seed: Annotated[int | None, _option(PERSONS, "The same seed gives the same result.", "N")] = None,
    form: Annotated[
        Literal["csv", "parquet"] | None,
        typer.Option("--format", metavar="NAME", help="Tables as csv or parquet.", rich_help_panel=PERSONS),
    ] = None,
    chart: Annotated[
        Path | None, _option(PERSONS, "Draw the correlations: .html, .svg, .png or .json.", "FILE")
    ] = None,
    recoding: Annotated[Path | None, _option(FILES, "Write the rules, for `veilmark apply`, as JSON.", "FILE")] = None,
    pseudonym_key: PseudonymKeyOption = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Generalize and suppress until every class is safe, with the least loss, and write the release.

    The methods for many records a person fold them to one row and write a folder of tables. Direct identifiers and the
    person column are left out, or become pseudonyms where the study says so. A written file is measured anew before it
    is published.
    """
    from veilmark import workbench
    from veilmark.cli import show_anonymize
    from veilmark.workbench.anonymizing import Limits

    opened = workbench.open_study(study, threads, memory)
    sliced = {"preset": preset, "link": link, "groups": groups, "f": f, "m": m, "seed": seed}
    written = {"format": form, "chart": chart}
    if method in ("fslip", "onemany", "rmr", "anatomy", "slicing"):
        from veilmark.cli.anonymize_persons import run_persons_method

        others: dict[str, Any] = {
            "t": t,
            "alpha": alpha,
            "beta": beta,
            "k-map": k_map,
            "presence": presence,
            "population": population,
        }
        others |= {"suppress": suppress, "relaxed": relaxed, "gamma": gamma, "weight": weight, "level": level}
        others |= {"seconds": seconds, "recoding": recoding, "pseudonym-key": pseudonym_key}
        options = {"k": k, "l": l, "delta": delta, **sliced, **{name: value or None for name, value in others.items()}}
        return run_persons_method(method, opened, output, options, form or "csv", chart, as_json)
    if wrong := [name for name, value in (sliced | written).items() if value is not None]:
        raise OptionError(f"--{wrong[0]} belongs to the methods for many records a person, such as --method fslip.")
    given = {"l": l, "t": t, "alpha": alpha, "beta": beta, "delta": delta}
    by_attribute: Any = {name: pairs(name, texts) for name, texts in given.items()}
    least = DEFAULT_K if k is None and k_map is None and presence is None else k
    kinds: Any = {"l_kind": l_kind, "c": c, "beta_kind": beta_kind}
    limits = Limits(least, **by_attribute, **kinds, k_map=k_map, presence=_range(presence))
    models = workbench.models_of(opened, limits)
    _needs(l_kind != "distinct", "--l-kind", "--l", l)
    _needs(beta_kind != "basic", "--beta-kind", "--beta", beta)
    _needs(c != RECURSIVE_C, "--c", "--l-kind recursive", l_kind == "recursive")
    search: dict[str, Any] = {"suppression": suppress, "unit": suppress_unit, "seconds": seconds}
    search |= {} if loss is None else {"loss": loss}
    search |= {"weights": pairs("weight", weight), "levels": pairs("level", level, _span)}
    chosen = _method(method, search, relaxed, gamma)
    result = workbench.anonymize(opened, models, output, chosen, recoding, population, pseudonym_key)
    return print_json(result.to_dict()) if as_json else show_anonymize.anonymized(result)


def _needs(given: bool, option: str, other: str, there: object) -> None:
    """An option that says how another is meant needs that one."""
    if given and not there:
        raise OptionError(f"{option} says how {other} is meant, which is not given. Add it, or drop {option}.")


def _method(name: str, search: dict[str, Any], relaxed: bool, gamma: float | None) -> Method:
    """The method with its own options; another's are an error."""
    from veilmark.veil.anonymize import Microaggregation
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola

    if relaxed and name != "mondrian":
        raise OptionError("--relaxed belongs to --method mondrian.")
    if gamma is not None and name != "microaggregate":
        raise OptionError("--gamma belongs to --method microaggregate.")
    if name == "ola":
        return Ola(**search)
    if any(search.get(option) for option in ("suppression", "seconds", "weights", "levels", "loss")):
        raise OptionError(
            "--suppress, --loss, --weight, --level and --seconds belong to --method ola; the others suppress nothing, and "
            "search no levels."
        )
    return Mondrian(relaxed) if name == "mondrian" else Microaggregation(gamma)


def pairs(option: str, given: list[str] | None, read: Callable[[str], Any] = float) -> dict[str, Any]:
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


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise OptionError(f"--presence takes two shares, such as 0.1:0.5, not '{text}'.") from None

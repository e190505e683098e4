"""`veilmark anonymize --method fslip|onemany|rmr|anatomy|slicing`: several tables with one row a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from veilmark.cli.given import BELONGS
from veilmark.cli.options import print_json
from veilmark.cli.show import literal, new_table, print_table
from veilmark.defaults import K
from veilmark.errors import OptionError
from veilmark.study.study import Study
from veilmark.veil.sliced import Form, Sliced

if TYPE_CHECKING:
    from veilmark.veil.sliced import PersonsMethod


def run_persons_method(
    name: str,
    study: Study,
    output: Path,
    options: Mapping[str, Any],
    form: Form = "csv",
    chart: Path | None = None,
    as_json: bool = False,
) -> None:
    """Anonymize by such a method and print the result; `options` are as typed, None where not given."""
    from veilmark.workbench.anonymize_persons import anonymize_persons

    result = anonymize_persons(study, persons_method(name, options), output, form, chart)
    if as_json:
        print_json({**result.to_dict(), "output": str(output)})
    else:
        show_sliced(result, output)


def persons_method(name: str, options: Mapping[str, Any]) -> PersonsMethod:
    """The method that options stand for."""
    from veilmark.veil.anatomy import Anatomy
    from veilmark.veil.fslip import FSlip
    from veilmark.veil.onemany import OneMany
    from veilmark.veil.rmr import Rmr
    from veilmark.veil.slicing import Slicing

    given = {option: value for option, value in options.items() if value is not None}
    if name in BELONGS["k"]:
        given.setdefault("k", K)
    readers: dict[str, Callable[[Any], Any]] = {"groups": _groups, "f": _sizes, "m": _whole("m")}
    readers |= {"l": _number("l") if name == "fslip" else _whole("l"), "delta": _number("delta")}
    read = {option: readers.get(option, lambda value: value)(value) for option, value in given.items()}
    methods: dict[str, Callable[..., PersonsMethod]] = {
        "fslip": FSlip,
        "onemany": OneMany,
        "rmr": Rmr,
        "anatomy": Anatomy,
        "slicing": Slicing,
    }
    return methods[name](**read)


def _number(option: str) -> Callable[[Any], float]:
    """Reads one plain number; where other methods take ATTR=3, the option arrives as a list."""

    def read(given: Any) -> float:
        texts = given if isinstance(given, list) else [given]
        try:
            (text,) = texts
            return int(float(text)) if float(text) == int(float(text)) else float(text)
        except (ValueError, OverflowError):
            shown = " ".join(map(str, texts))
            raise OptionError(f"--{option} takes one number for this method, such as 2, not '{shown}'.") from None

    return read


def _whole(option: str) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        number = _number(option)(given)
        if not isinstance(number, int):
            raise OptionError(f"--{option} must be a whole number for this method, not {number:g}.")
        return number

    return read


def _groups(text: str) -> tuple[tuple[str, ...], ...]:
    """`a,b;c,d`: groups of attributes."""
    groups = [tuple(name.strip() for name in group.split(",") if name.strip()) for group in text.split(";")]
    return tuple(group for group in groups if group)


def _sizes(text: str) -> int | tuple[int, ...]:
    """`3`, or `3,2` for one a group."""
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise OptionError(
            f"--f takes a number of persons, or one number for each group, such as 3,2, not '{text}'."
        ) from None
    return sizes[0] if len(sizes) == 1 else sizes


_L_WORDS = dict.fromkeys(
    ("anatomy", "onemany"),
    "in every class, no set of a person's sensitive values belongs to more than 1/l of the persons. A single value may",
)


def show_sliced(result: Sliced, output: Path | None, console: Console | None = None) -> None:
    """What a person reads of a release in several tables."""
    console = console or Console()
    facts = result.facts
    how = "linked by gid" if result.linked else "not linked"
    tables_made = f"{len(result.groups)} sensitive table{'s' if len(result.groups) > 1 else ''}"
    console.print(f"\n{len(result):,} persons; quasi-identifiers and {tables_made}, {how}.")
    for name, words in {
        "k": "the size of the smallest class, in persons",
        "bucket": "the size of the smallest bucket, in persons; sensitive values are mixed within a bucket",
        "l": _L_WORDS.get(facts["method"], "in every slice, no value belongs to more than 1/l of the persons"),
    }.items():
        if name in facts:
            console.print(f"[bold]{name} = {facts[name]:g}[/bold], {words}.")
    asked = facts.get("asked", {})
    missed = [n for n in ("k", "l") if n in facts and n in asked and asked[n] is not None and facts[n] < asked[n]]
    if missed:
        names = " and ".join(f"{n} = {asked[n]:g}" for n in missed)
        console.print(
            f"[bold]Note:[/bold] You asked for {names}. The release does not meet it: this method does not guarantee it."
        )
    tables = new_table("Sensitive tables", "table", "attributes", numbers=("f", "slices") if "f" in facts else ())
    for i, group in enumerate(result.groups):
        figures = [f"{facts[name][i]:,}" for name in ("f", "slices")] if "f" in facts else []
        tables.add_row(f"sensitive_{i + 1}", literal(", ".join(group)), *figures)
    console.print()
    print_table(tables, console)
    losses = new_table("Loss (lower is better)", "metric", numbers=("value",))
    for name, value in result.loss.items():
        losses.add_row(name, f"{value:.4f}")
    print_table(losses, console)
    if result.columns_left_out:
        named = ", ".join(result.columns_left_out)
        console.print(
            literal(
                f"Columns not published: {named}. The tables hold only quasi-identifiers and sensitive attributes. To "
                "publish a column, give it the role quasi or sensitive in the study."
            )
        )
    if output is not None:
        console.print(literal(f"Wrote {output}."))

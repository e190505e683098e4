"""Which options were typed, and whether the method uses them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import typer

from veilmark.errors import OptionError

PERSONS = ("fslip", "onemany", "rmr", "anatomy", "slicing")
"""Methods for many records a person."""
RECORDS = ("ola", "mondrian", "microaggregate")
_CLASSES = ("ola", "mondrian")

BELONGS: Mapping[str, Sequence[str]] = {
    "k": (*RECORDS, "fslip", "onemany", "rmr", "slicing"),
    "l": (*_CLASSES, "fslip", "onemany", "anatomy"),
    "delta": (*_CLASSES, "rmr"),
    **dict.fromkeys(("l_kind", "c", "t", "alpha", "beta", "beta_kind"), _CLASSES),
    **dict.fromkeys(("k_map", "presence", "population"), ("ola",)),
    **dict.fromkeys(("suppress", "suppress_unit", "loss", "weight", "level", "seconds"), ("ola",)),
    "relaxed": ("mondrian",),
    "gamma": ("microaggregate",),
    **dict.fromkeys(("preset", "link", "f"), ("fslip",)),
    "groups": ("fslip", "slicing"),
    "m": ("rmr",),
    **dict.fromkeys(("form", "chart"), PERSONS),
    **dict.fromkeys(("recoding", "pseudonym_key", "order"), RECORDS),
}
"""The methods that use an option of `anonymize`; one that is not listed is used by all."""


LIMITS = ("--k", "--k-map", "--presence", "--suppress")
"""What a release must meet, one value each."""


def typed(context: typer.Context) -> dict[str, str]:
    """The options that stand on the command line, by parameter, as they are spelled."""
    options = {param.name or "": param.opts[-1] for param in context.command.params}
    return {name: option for name, option in options.items() if is_typed(context, name)}


def is_typed(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_foreign(context: typer.Context, method: str, options: Collection[str] = BELONGS.keys()) -> None:
    """An option that the method does not use is an error, because the user expects an effect."""
    for name, option in typed(context).items():
        users = BELONGS.get(name) if name in options else None
        if users is not None and method not in users:
            raise OptionError(
                f"{option} does not belong to --method {method}. It belongs to --method {_either(users)}. Drop "
                f"{option}, or choose another method."
            )


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def refuse_twice(arguments: Sequence[str]) -> None:
    """A limit that is given twice is an error: else the last one would win, however weak it is."""
    if "anonymize" not in arguments[:1]:
        return
    spelled = [text.partition("=")[0] for text in arguments]
    for option in LIMITS:
        if spelled.count(option) > 1:
            raise OptionError(f"{option} is given twice. Give it once.")

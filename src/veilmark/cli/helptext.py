"""How help is laid out: paragraphs wrap once, flags have no type, and arguments stand without braces."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

KINDS = {int: "N", float: "NUMBER", Path: "FILE"}
"""What an option takes, by its type."""


class PlainCommand(TyperCommand):
    """A verb whose help is plain."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help = unwrapped(self.help)

    def get_params(self, ctx: Any) -> list[Any]:
        return [plain(parameter) for parameter in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]


class PlainGroup(TyperGroup):
    """Verbs whose help is plain."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [plain(parameter) for parameter in super().get_params(ctx)]


def lay_out(app: typer.Typer) -> None:
    """Give all verbs of an app plain help."""
    app.info.cls = PlainGroup
    for command in app.registered_commands:
        command.cls = PlainCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            lay_out(group.typer_instance)


def unwrapped(text: str | None) -> str | None:
    """A docstring with one line for each paragraph, which the terminal then wraps."""
    if text is None:
        return None
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in cleandoc(text).split("\n\n"))


def plain(parameter: Any) -> Any:
    """A parameter that says what it takes as users write it: FILE, N, a|b; a flag takes nothing."""
    if isinstance(parameter, TyperArgument):
        parameter.metavar = parameter.metavar or metavar(parameter)
        parameter.display_type_rich = _nothing  # type: ignore[method-assign]
    elif isinstance(parameter, TyperOption) and parameter.metavar is None:
        parameter.metavar = "" if parameter.is_flag else metavar(parameter)
    return parameter


def metavar(parameter: Any) -> str:
    """What stands for the value of an option, or for an argument."""
    if parameter.metavar:
        return str(parameter.metavar)
    annotation = parameter.type_descriptor.annotation
    kinds = [annotation, *get_args(annotation)]
    for kind in kinds:
        if get_origin(kind) is Literal:
            return "|".join(map(str, get_args(kind)))
    if isinstance(parameter, TyperArgument):
        return str(parameter.name).upper()
    return next((KINDS[kind] for kind in kinds if kind in KINDS), "TEXT")


def _nothing(ctx: Any) -> str:
    return ""

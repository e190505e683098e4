"""Write the pages that follow from other files: the reference, from the code, and the notebook, from the tutorial.

`python tools/docs.py` writes them into docs/. A test compares what is there with what would be written.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import veilmark
from veilmark.cli.helptext import metavar
from veilmark.cli.main import app
from veilmark.tables.framed import Framed

DOCS = Path(__file__).parents[1] / "docs"
MADE = "<!-- Made by `make docs` from the code. Do not edit. -->\n\n"
GROUPS = {
    "A study": "Study Settings PostgresTable SparkFiles Mask Intervals Dates",
    "A ledger": "Ledger Marking Terms",
    "Scores": "Options Monitor MonitorOptions",
    "Methods": "Ola Mondrian Microaggregation FSlip OneMany Rmr Anatomy Slicing",
    "Privacy models": (
        "KAnonymity KMap DeltaPresence DistinctL EntropyL RecursiveL TCloseness Alpha BasicBeta EnhancedBeta "
        "DeltaDisclosure"
    ),
    "Results": (
        "Measures ScoreResult RecordScore Ranking Breach Anonymized Sliced Recoding Applied UtilityView Attacked "
        "AttackResult Compared Tried Released Copy Release Verification Traced Suspect Report"
    ),
    "Errors": (
        "VeilmarkError InputError StudyError DataError HierarchyError WeightsError OptionError OutputError "
        "VeilmarkWarning"
    ),
}
NO_CHOICE = (None, False, (), [])
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.M | re.S)


def pages() -> dict[Path, str]:
    """All generated files with what belongs in them."""
    return {
        DOCS / "reference" / "cli.md": cli_page(),
        DOCS / "reference" / "api.md": api_page(),
        DOCS / "tutorial.ipynb": notebook((DOCS / "tutorial.md").read_text()),
    }


# The command line


def cli_page() -> str:
    """Every verb with its arguments and options, in the order and the groups of `veilmark --help`."""
    root = typer.main.get_command(app)
    lines = [MADE + "# Command line\n"]
    lines.append("Every verb with all of its options. `veilmark VERB --help` says the same in the terminal.\n")
    lines.append("Exit code 0 is done, 2 bad input (with a paragraph that says what to do), 1 anything else.\n")
    panels: dict[str, list[tuple[str, Any]]] = {}
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        if not command.hidden:
            panels.setdefault(command.rich_help_panel or "Others", []).append((name, command))
    for panel, commands in sorted(panels.items(), key=lambda panel: (panel[0] != "Start", panel[0])):
        lines.append(f"## {re.sub(r'^[0-9] +', '', panel)}\n")
        for name, command in commands:
            lines.extend(_verb(f"veilmark {name}", command))
    return "\n".join(lines).rstrip() + "\n"


def _verb(name: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    parameters = [] if inner else [p for p in command.params if not p.hidden and p.name != "help"]
    arguments = [p for p in parameters if p.param_type_name == "argument"]
    options = [p for p in parameters if p.param_type_name == "option"]
    yield f"### {name}\n"
    yield inspect.cleandoc(command.help or "") + "\n"
    if not inner:
        needed = [f"{p.opts[0]} {metavar(p)}" for p in options if p.required]
        given = [metavar(p) if p.required else f"[{metavar(p)}]" for p in arguments]
        words = [name, *given, *needed, "[OPTIONS]"]
        yield f"```text\n{' '.join(words)}\n```\n"
    if parameters:
        yield "| name | value | meaning |\n| --- | --- | --- |"
        for parameter in (*arguments, *options):
            yield _row(parameter)
        yield ""
    for part, command_ in inner.items():
        yield from _verb(f"{name} {part}", command_)


def _row(parameter: Any) -> str:
    argument = parameter.param_type_name == "argument"
    names = [metavar(parameter)] if argument else [*parameter.opts, *parameter.secondary_opts]
    value = "" if argument or parameter.is_flag else f"`{metavar(parameter)}`"
    said = [(parameter.help or "").strip()]
    if parameter.required and not argument:
        said.append("Required.")
    elif parameter.show_default and parameter.default not in NO_CHOICE:
        said.append(f"Default: `{parameter.default}`.")
    if getattr(parameter, "multiple", False) and "repeat" not in said[0]:
        said.append("May be repeated.")
    cells = (", ".join(f"`{name}`" for name in names), value, " ".join(said))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# The Python names


def api_page() -> str:
    """Every public name with its signature and docstring."""
    listed = {name for names in GROUPS.values() for name in names.split()}
    more = " ".join(name for name in veilmark.__all__ if name not in listed)
    lines = [MADE + "# Python\n", "All public names, to be imported from `veilmark`. Results explain themselves when"]
    lines.append("printed, and each has `to_dict()`.\n")
    for group, names in {**GROUPS, **({"More": more} if more else {})}.items():
        lines.append(f"## {group}\n")
        for name in names.split():
            lines.extend(_class(getattr(veilmark, name)))
    return "\n".join(lines).rstrip() + "\n"


def _class(kind: type) -> Iterator[str]:
    yield f"### {kind.__name__}\n"
    if issubclass(kind, BaseException):
        yield f"Kind of `{kind.__mro__[1].__name__}`.{_doc(kind, ' ')}\n"
        return
    yield f"```text\n{_signature(kind.__name__, kind)}\n```\n"
    yield f"{_doc(kind)}\n"
    framed = vars(Framed) if issubclass(kind, Framed) else {}
    for name, member in {**vars(kind), **{name: of for name, of in framed.items() if name not in vars(kind)}}.items():
        plain = member.__func__ if isinstance(member, classmethod) else member
        said = (inspect.isfunction(plain) or isinstance(plain, property)) and plain.__doc__
        if name.startswith("_") or not said or said.startswith("For the engine"):
            continue
        if isinstance(plain, property):
            yield f"**`{name}`** {_doc(plain)}\n"
        else:
            yield f"```text\n{kind.__name__}.{_signature(name, plain)}\n```\n\n{_doc(plain)}\n"


def _doc(thing: Any, before: str = "") -> str:
    """A docstring that is the thing's own: dataclasses and subclasses inherit texts that say nothing about them."""
    text = thing.__doc__ if not inspect.isclass(thing) else vars(thing).get("__doc__")
    return before + inspect.cleandoc(text) if text else ""


def _signature(name: str, thing: Any) -> str:
    """The call, a parameter a line where it is long; without `self`, and with the annotations as they were written."""
    given = [p for p in inspect.signature(thing).parameters.values() if p.name not in ("self", "cls")]
    parts = [_parameter(p) for p in given]
    only = next((i for i, p in enumerate(given) if p.kind is p.KEYWORD_ONLY), None)
    if only is not None and not any(p.kind is p.VAR_POSITIONAL for p in given):
        parts.insert(only, "*")
    line = f"{name}({', '.join(parts)})"
    return line if len(line) <= 100 else f"{name}(\n    " + ",\n    ".join(parts) + ",\n)"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_KEYWORD: "**", parameter.VAR_POSITIONAL: "*"}.get(parameter.kind, "")
    kind = "" if parameter.annotation in (parameter.empty, "Any") else f": {parameter.annotation}"
    default = parameter.default
    shown = "…" if repr(default).startswith("<") else repr(default)
    return f"{stars}{parameter.name}{kind}" + ("" if default is parameter.empty else f" = {shown}")


# The notebook


def notebook(markdown: str) -> str:
    """The tutorial as a Jupyter notebook: texts as texts, files as %%writefile, commands with `!`, Python as it is."""
    cells, at = [], 0
    for block in BLOCK.finditer(markdown):
        cells.append(_text(markdown[at : block.start()]))
        at = block.end()
        if block["file"]:
            cells.append(_code(f"%%writefile {block['file']}\n{block['body']}"))
        elif block["kind"] == "python":
            cells.append(_code(block["body"]))
        elif block["kind"] == "console":
            cells.append(_code("\n".join(f"!{line}" for line in re.findall(r"^\$ (.*)$", block["body"], re.M))))
        else:
            cells.append(_text(block[0]))
    cells.append(_text(markdown[at:]))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {
        "cells": [{"id": f"cell-{i}", **cell} for i, cell in enumerate(filter(None, cells))],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(book, ensure_ascii=False, indent=1) + "\n"


def _text(text: str) -> dict[str, Any] | None:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)} if text.strip() else None


def _code(text: str) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": _lines(text)}


def _lines(text: str) -> list[str]:
    return text.strip("\n").splitlines(keepends=True)


def main() -> None:
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(f"Wrote {path.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()

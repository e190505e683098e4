"""Write the manual page docs/veilmark.1 from the command line itself.

`python tools/man.py`. It is part of the wheel. A test compares what is there with what would be written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.markup import render

from veilmark import __version__
from veilmark.cli.main import app

PAGE = Path(__file__).parents[1] / "docs" / "veilmark.1"
END = r"""
.SH EXIT STATUS
0 done; 2 bad input (study, data, option); 1 anything else.
.SH ENVIRONMENT
.TP
.B VEILMARK_DEBUG
If set, an error inside veilmark shows where it happened.
.TP
.B TMPDIR
The folder for temporary files, which can take as much room as the source.
.SH SEE ALSO
The manual that comes with the source, in docs/.
"""


def page() -> str:
    """The manual page in roff."""
    root: Any = typer.main.get_command(app)
    context = typer.Context(root, info_name="veilmark")
    first, *more = _text(root.help).split("\n")
    lines = [f'.TH VEILMARK 1 "" "veilmark {__version__}" "User Commands"', ".SH NAME"]
    lines += [
        rf"veilmark \- {first.partition(':')[0].lower()}",
        ".SH SYNOPSIS",
        ".B veilmark",
        r"VERB .\|.\|. [\-\-json]",
    ]
    lines += [".SH DESCRIPTION", first, *_paragraphs(more), ".SH OPTIONS", *_options(root, context)]
    panels: dict[str, list[Any]] = {}
    for command in root.commands.values():
        panels.setdefault(command.rich_help_panel or "Other verbs", []).append(command)
    for panel, commands in sorted(panels.items(), key=lambda panel: (panel[0] != "Start", panel[0])):
        lines.append(f".SH {re.sub(r'^[0-9] +', '', panel).upper()}")
        for command in commands:
            lines += _verb(command, context)
    return "\n".join(lines) + END


def _verb(command: Any, above: typer.Context) -> Iterator[str]:
    context = typer.Context(command, info_name=command.name, parent=above)
    inner = getattr(command, "commands", {})
    yield f".SS {_escape(f'{context.command_path} ' + ' '.join(command.collect_usage_pieces(context)))}"
    yield from _paragraphs(_text(command.help).split("\n"))
    yield from () if inner else _options(command, context)
    for part in inner.values():
        yield from _verb(part, context)


def _options(command: Any, context: typer.Context) -> Iterator[str]:
    for parameter in command.params:
        if parameter.name != "help" and (record := parameter.get_help_record(context)):
            yield f".TP\n.B {_escape(record[0])}\n{_guarded(record[1])}"


def _paragraphs(lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield line or ".PP"


def _text(text: str | None) -> str:
    """Help without its colours."""
    return _guarded(render(text or "").plain)


def _guarded(text: str) -> str:
    """No line may begin with a dot or an apostrophe, which would make it a request."""
    return re.sub(r"^([.'])", r"\\&\1", _escape(text), flags=re.M)


def _escape(text: str) -> str:
    return text.replace("\\", r"\e").replace("-", r"\-")


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"Wrote {PAGE.relative_to(PAGE.parents[1])}")

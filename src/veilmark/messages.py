"""Messages that name parameters and commands, for each front end to spell in its own way.

    raise OptionError(f"The copies need marks, and you asked for none. Ask for {param('covers', 8)}.")

`param` and `command` put tokens into ordinary texts. Errors, warnings and `Message` keep them, and read as Python does:
`covers=8`. The front end that shows the text spells them: the command line `--covers 8`, the web app “Covers for each
recipient: 8”, a file that is kept “covers: 8”. Where one message becomes part of another, use `template_of(message)`, which
still has the tokens.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

Value = str | int | float | Sequence[str]

SHARES = ("most_lost", "suppress")
"""Parameters whose values people give in percent."""

START, END = "\ufdd0", "\ufdd1"
"""Characters that Unicode keeps free for use within a program: no text of a user has them."""
TOKEN = re.compile(f"( ?){START}([^{START}{END}]*){END}")


class Spelling(Protocol):
    """How a front end writes what messages name."""

    def param(self, name: str, value: Value | None) -> str: ...

    def command(self, name: str, sentence: str) -> str:
        """A sentence that leads to what a command does, from the command line's own; empty where there is no such thing."""
        ...


def param(name: str, value: Value | None = None) -> str:
    """A parameter, by the name that it has in Python and on the command line, perhaps with a value to give."""
    return _token("param", name, value)


def command(name: str, *arguments: str, lead: str = "Run", **options: str | bool) -> str:
    """A sentence that tells which command to run: `Run: veilmark ledger verify.` After arguments there is no full stop."""
    words = [*map(shlex.quote, arguments), *(_option(option, value) for option, value in options.items())]
    return _token("command", name, " ".join([f"{lead}: veilmark {name}", *words]) + ("" if words else "."))


def _option(name: str, value: str | bool) -> str:
    return f"--{name}" if value is True else f"--{name} {shlex.quote(str(value))}"


def _token(*parts: object) -> str:
    return f"{START}{json.dumps(parts)}{END}"


class Message(str):
    """A text for a person. It reads as Python spells parameters; the template has the tokens."""

    template: str

    def __new__(cls, text: object) -> Message:
        template = template_of(text)
        message = super().__new__(cls, spell(template, PYTHON))
        message.template = template
        return message

    def __getnewargs__(self) -> tuple[str]:
        return (self.template,)


def template_of(text: object) -> str:
    """A text with its tokens, as part of another one."""
    message = text.args[0] if isinstance(text, BaseException) and text.args else text
    return message.template if isinstance(message, Message) else str(text)


def spell(text: object, spelling: Spelling) -> str:
    """A text, an error or a warning, with parameters and commands as a front end spells them."""

    def spelled(token: re.Match[str]) -> str:
        try:
            kind, name, more = json.loads(token[2])
            words = {"param": spelling.param, "command": spelling.command}[kind](name, more)
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
            return f"{token[1]}{token[2]}"  # Not a token: the characters came with somebody's data.
        return f"{token[1]}{words}" if words else ""

    return TOKEN.sub(spelled, template_of(text))


def spell_all(content: Any, spelling: Spelling) -> Any:
    """What goes out as JSON, with all texts spelled."""
    if isinstance(content, str):
        return spell(content, spelling)
    if isinstance(content, Mapping):
        return {key: spell_all(value, spelling) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [spell_all(value, spelling) for value in content]
    return content


def said_by(spelling: Spelling) -> Callable[[Any], Any]:
    """What templates do with a value before it is shown (`finalize`)."""
    return lambda value: spell(value, spelling) if isinstance(value, Message) else value


class _Python:
    """Arguments: `covers=8`."""

    names: Mapping[str, str] = {"suppress": "suppression", "log_key": "key"}
    """Arguments with another name than the option."""
    objects: Mapping[str, str] = {"k_map": "KMap(…)", "presence": "DeltaPresence(…)"}
    """Options that are no arguments."""

    def param(self, name: str, value: Value | None) -> str:
        if name in self.objects:
            return self.objects[name]
        name = self.names.get(name, name)
        return f"{name}=" if value is None else f"{name}={value!r}"

    def command(self, name: str, sentence: str) -> str:
        return sentence


class _Plain:
    """Words, for reports and records, whose readers use one front end or another."""

    def param(self, name: str, value: Value | None) -> str:
        if name in SHARES and value is not None:
            value = f"{percent(value)} %"
        return labelled(name.replace("_", " "), value)

    def command(self, name: str, sentence: str) -> str:
        return sentence


def percent(share: Any) -> str:
    return f"{100 * share:g}"


def labelled(label: str, value: Value | None) -> str:
    """A label in quotes, with the value to give where there is one, as in “Covers: 8”."""
    if value is None or value is True:
        return f"“{label}”"
    return f"“{label}: {value if isinstance(value, str | int | float) else ', '.join(value)}”"


PYTHON: Spelling = _Python()
PLAIN: Spelling = _Plain()

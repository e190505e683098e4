"""The study file: each guess on a line of its own, with its reason beside it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import yaml

from veilmark.guess.roles import Guess

_HEADER = """\
# Made by `veilmark init`. Each role is a guess from the column's name and values; the comment gives the reason.
# Review each role and correct any that is wrong. Then run `veilmark measure` on this file. For `veilmark score`, give
# each sensitive attribute weights, such as weights: {Flu: 0.1, HIV: 0.9, default: 0.2}.
#
#   direct     identifies a person; not published
#   quasi      others may know it about a person; generalized, level by level of its hierarchy
#   sensitive  nobody should learn it about a person
#   other      published unchanged
#   missing    codes that mean "no value"
#   fold       which value counts if a person's records differ; for methods and attacks with one row per person"""
_HINTS = {
    "quasi": "No quasi-identifier was recognized. Give the role quasi to each column that others may know about a "
    "person.",
    "sensitive": "No sensitive column was recognized. Without one, only k is measured, and no attack can be "
    "tried. Give the role sensitive to each column that nobody should learn about a person.",
}

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_LONGEST_KEY = 1_000
"""YAML takes no longer key on a line of its own."""

_ALIGNED = 24


def study_text(source: str, guesses: Sequence[Guess]) -> str:
    """A study file with each guess on a line of its own and its reason beside it."""
    comments = [f"# {hint}" for hint in hints(guesses)]
    persons = [line for g in guesses if g.role == "person" for line in _person(g)]
    listed = [g for g in guesses if g.role != "person"]
    width = min(_ALIGNED, max((len(_scalar(g.column)) for g in listed), default=0)) + 1
    attributes = "attributes:" if any(g.usable for g in listed) else "attributes: {}"
    lines = ["version: 1", f"source: {_scalar(source)}", *persons, attributes]
    return "\n".join([_HEADER, *comments, "", *lines, *(_attribute(g, width) for g in listed)]) + "\n"


def study_content(guesses: Sequence[Guess]) -> dict[str, Any]:
    """What a study of the guesses holds beside its source."""
    person = next((g for g in guesses if g.role == "person"), None)
    attributes = {g.column: g.content for g in guesses if g.usable and g is not person}
    if person is None:
        return {"attributes": attributes}
    return {"person": person.column, "attributes": attributes} | ({"fold": person.fold} if person.fold else {})


def hints(guesses: Sequence[Guess]) -> list[str]:
    """What no column was recognized as, and what that means."""
    roles = {g.role for g in guesses}
    return [hint for role, hint in _HINTS.items() if role not in roles]


def _person(guess: Guess) -> list[str]:
    fold = [f"fold: {_dump(guess.fold, default_flow_style=True).removesuffix('...').strip()}"] if guess.fold else []
    return [f"person: {_scalar(guess.column)}{_comment(guess)}", *fold]


def _attribute(guess: Guess, width: int) -> str:
    """`  age: {role: quasi, hierarchy: {intervals: [5, 10, 20]}}  # reason`; a comment where not usable."""
    key = _scalar(guess.column)
    value = _dump(guess.content, default_flow_style=True, sort_keys=False) + _comment(guess)
    if not guess.usable:
        return f"  # {key}: {value}"
    if len(key) > _LONGEST_KEY:
        return f"  ? {key}\n  : {value}"
    return f"  {key + ':':<{width}} {value}"


def _comment(guess: Guess) -> str:
    """The reason and the warnings, at the end of a line."""
    return "  # " + "".join(c for c in " ".join(guess.why.split()) if c.isprintable())


def _scalar(text: str) -> str:
    """A text as YAML on one line, in quotes unless it is plain."""
    if _PLAIN.fullmatch(text) and yaml.safe_load(text) == text:
        return text
    return _dump(text, default_style='"')


def _dump(content: Any, **style: Any) -> str:
    return str(yaml.safe_dump(content, allow_unicode=True, width=sys.maxsize, **style)).strip("\n")

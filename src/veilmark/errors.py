"""Everything that veilmark raises or warns of.

VeilmarkError                   exit 1
├── InputError                  exit 2: the user can mend it, and the message says how
│   ├── StudyError              the study file
│   ├── DataError               a table: missing, broken, or without a column
│   │   └── NoHeaderError       a CSV that begins with data in place of column names
│   ├── HierarchyError          a hierarchy, or a value it does not cover
│   ├── WeightsError            weights of sensitive values, and what they are made from
│   └── OptionError             an option or argument
└── OutputError                 the result could not be written

VeilmarkWarning                 worth knowing, not fatal
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence

from veilmark.messages import Message

ADDRESS = re.compile(r"(^|[/\\])[a-z][a-z0-9+.-]+:[/\\]", re.IGNORECASE)
SECRET = re.compile(r"(:/+[^\s/:@]*:)\S*(?=@)|(\bpassword=)[^\s&']+", re.IGNORECASE)


class VeilmarkError(Exception):
    """Base of all errors; `exit_code` is what the command line ends with."""

    exit_code = 1

    def __init__(self, text: str = "") -> None:
        super().__init__(Message(text))


class InputError(VeilmarkError):
    """Something the user gave is not right."""

    exit_code = 2


class StudyError(InputError):
    pass


class DataError(InputError):
    pass


class NoHeaderError(DataError):
    pass


class HierarchyError(InputError):
    pass


class WeightsError(InputError):
    pass


class OptionError(InputError):
    pass


class TooManyClassesError(OptionError):
    """The driver would have to hold more classes than it may."""


class OutputError(VeilmarkError):
    pass


class VeilmarkWarning(UserWarning):
    def __init__(self, text: str = "") -> None:
        super().__init__(Message(text))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the nearest known word, or nothing."""
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean '{by_lower[close[0]]}'?" if close else ""


def is_address(given: str | os.PathLike[str]) -> bool:
    """Whether this is an address such as `postgresql://…`, also one that went through a `Path`, which drops a slash."""
    return ADDRESS.search(os.fspath(given)) is not None


def as_address(text: str) -> str:
    """An address with both slashes, of which a `Path` drops one."""
    return re.sub(r"^([a-z][a-z0-9+.-]+):/(?!/)", r"\1://", text, flags=re.IGNORECASE)


def without_password(text: str) -> str:
    """A text in which addresses have no passwords."""
    return SECRET.sub(lambda found: f"{found[1] or found[2]}…", text)


def listing(items: Sequence[object], limit: int = 5) -> str:
    """The first few items in quotes, and how many more there are."""
    shown = ", ".join(f"'{item}'" for item in items[:limit])
    return shown + (f" and {len(items) - limit} more" if len(items) > limit else "")

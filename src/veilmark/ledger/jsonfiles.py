"""Small JSON files that leave the ledger: written whole, for their owner alone, and never over another file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from veilmark.errors import DataError, OptionError
from veilmark.ledger.files import new_private_file
from veilmark.messages import command

VERSION = 1


def save_json(path: str | os.PathLike[str], kind: str, content: dict[str, Any]) -> None:
    """Write a file of some kind; its first field says which, and the version."""
    try:
        with new_private_file(Path(path)) as temporary:
            text = json.dumps({_field(kind): VERSION, **content}, indent=1)
            temporary.write_text(f"{text}\n", encoding="utf-8")
    except FileExistsError:
        raise OptionError(f"'{path}' exists already. Name a new file for the {kind}.") from None


def read_json(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """What `save_json` wrote; `ValueError` where it is something else."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"The {kind} '{path}' cannot be read: {error.strerror}.") from None
    if not isinstance(content, dict) or content.get(_field(kind)) != VERSION:
        raise ValueError(kind)
    return content


def not_a(kind: str, path: str | os.PathLike[str], verb: str) -> DataError:
    """What to say of another file."""
    article = "an" if kind[0] in "aeiou" else "a"
    return DataError(
        f"'{path}' is not {article} {kind}. Give {article} {kind}. {command(f'ledger {verb}', lead='Make one with')}"
    )


def _field(kind: str) -> str:
    return f"veilmark_{kind.replace(' ', '_')}"

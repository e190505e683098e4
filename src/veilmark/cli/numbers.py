"""Options that take a share."""

from __future__ import annotations

import typer

from veilmark.shares import share


def typed_share(text: object) -> float:
    """What an option that takes a share was given."""
    try:
        value = share(str(text))
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a share. Write a number from 0 to 1, or 5%") from None
    if 0 <= value <= 1:
        return value
    offer = f" Write {value:g}% if you mean {value / 100:g}" if 1 < value <= 100 else ""
    raise typer.BadParameter(f"a share must be between 0 and 1 (100%), but {text} is not.{offer}")

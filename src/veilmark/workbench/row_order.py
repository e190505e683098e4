"""The order of a release's rows."""

from __future__ import annotations

from veilmark.defaults import Order
from veilmark.engines.shuffle import Shuffle
from veilmark.errors import OptionError


def row_order(order: Order, seed: int | None, rows: int) -> Shuffle | None:
    """How to shuffle so many rows, or None where they keep the source's order."""
    return Shuffle(rows, seed) if order == "shuffle" else None


def check_order(order: Order, seed: int | None) -> None:
    """The order is one that there is, and the seed can be one."""
    if order not in ("shuffle", "keep"):
        raise OptionError(f"The order of rows must be 'shuffle' or 'keep', not {order!r}.")
    if seed is not None and seed < 0:
        raise OptionError(f"The seed must be 0 or more, not {seed}. Give a whole number, or none for a random order.")

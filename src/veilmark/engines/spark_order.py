"""A random order of rows, made in Spark: for tables that the driver does not shuffle by itself."""

from __future__ import annotations

import hashlib
import math
import secrets
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from veilmark.tables.pseudonyms import Pseudonyms

if TYPE_CHECKING:
    from veilmark.engines.shuffle import Shuffle
    from veilmark.engines.spark import Spark

ROW = "__veilmark_row"
"""A hidden column: the place of a row in the source, as the number of its file and its number in there."""

ORDER = "__veilmark_order"
PART_ROWS = 2_000_000
"""About so many rows are sorted and written by one task."""


def shuffle_key(order: Shuffle) -> bytes:
    """The key of a random order: by its seed, or one that nobody knows."""
    if order.seed is None:
        return secrets.token_bytes(32)
    return hashlib.sha256(f"veilmark rows {order.seed}".encode()).digest()


def in_keyed_order(engine: Spark, stack: ExitStack, frame: Any, key: bytes, records: int) -> Any:
    """About so many rows, in the order of a keyed hash of their places in the source."""
    pads = stack.enter_context(engine.holding(Pseudonyms((), key).pads()))
    place = engine.dialect.pseudonym(f"{ROW}.file || '.' || {ROW}.number", pads)
    ordered = engine.spark.sql(f"SELECT t.*, {place} AS {ORDER} FROM {engine.view(frame)} AS t CROSS JOIN {pads}")
    ordered = ordered.repartition(max(math.ceil(records / PART_ROWS), 1), ORDER).sortWithinPartitions(ORDER)
    return ordered.drop(ROW, ORDER)

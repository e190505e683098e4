"""How many decoys are enough, and how large their pool must be, so that claims can name a recipient."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cache

from veilmark.defaults import DECOYS
from veilmark.trace.tails import smallest_probability

SPARE = 1.5
"""A pool has so many times as many classes as are drawn from it, if it can."""
MOST = 10
"""A pool is not made larger than so many times what is drawn from it."""
MOST_DECOYS = 20


@cache
def pool_size(recipients: int, decoys: int, limit: float) -> int:
    """The classes that a pool should have: enough that claims can name a recipient at this limit."""
    drawn = recipients * decoys
    least = math.ceil(SPARE * drawn)
    most = max(MOST * drawn, least)
    return bisect_left(range(most), True, least, key=lambda n: smallest_probability(recipients, decoys, n) <= limit)


def enough_decoys(recipients: int, limit: float) -> int:
    """The decoy classes for each recipient by which claims can name one, with the smallest pool; at least `DECOYS`."""
    tried = [d for d in range(DECOYS, MOST_DECOYS + 1) if _reaches(recipients, d, limit)]
    return min(tried, key=lambda d: pool_size(recipients, d, limit), default=MOST_DECOYS)


def _reaches(recipients: int, decoys: int, limit: float) -> bool:
    size = pool_size(recipients, decoys, limit)
    return smallest_probability(recipients, decoys, size) <= limit

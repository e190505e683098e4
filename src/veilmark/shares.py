"""Numbers as people type them: 0.05 and 5% are one share, and nan is not a number."""

from __future__ import annotations

import math


def number(text: str) -> float:
    """A number; not-a-number and infinity are none."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def share(text: str) -> float:
    """A share: 0.05, or 5%."""
    bare = text.strip().removesuffix("%")
    return number(bare) if bare == text.strip() else number(bare) / 100

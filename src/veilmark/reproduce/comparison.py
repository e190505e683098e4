"""Ours beside theirs: rows with a verdict each, which the command line prints and a page shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

AGREES, SPREAD, NEAR, DIFFERS = "agrees", "within the spread", "near", "differs"
UNKNOWN = "nothing legible to compare with"
_WORST_LAST = (UNKNOWN, AGREES, SPREAD, NEAR, DIFFERS)

CLOSE, NOT_FAR = 0.10, 0.25
"""Agreeing figures are off by a tenth at most, near ones by a quarter."""
CHANCE, FACTOR, FEW = 2.0, 3.0, 10.0
"""Within the spread: off by so many standard deviations, of theirs and ours together, and no more than by this factor or by
so many. (Some of the printed deviations are as large as their means.)"""
ROUNDING = 0.5
"""Print rounds to whole numbers."""


@dataclass(frozen=True)
class Row:
    """Of a table of the paper, `what` was measured, the `printed` figures, ours, and what to say of them."""

    table: str
    what: str
    printed: str
    ours: str
    verdict: str

    @property
    def holds(self) -> bool:
        return not self.verdict.startswith(DIFFERS)

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Mean:
    """A figure over several samples, with its standard deviation."""

    value: float
    deviation: float = 0.0

    def __str__(self) -> str:
        spread = f" ({_short(self.deviation)})" if self.deviation else ""
        return f"{_short(self.value)}{spread}"

    def to_dict(self) -> dict[str, float]:
        return dict(vars(self))


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"


@dataclass(frozen=True, eq=False)
class Reproduced:
    """A paper's tables beside ours; `charts` are drawn when a page asks for them, `details` are for JSON only."""

    name: str
    title: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    charts: Mapping[str, Callable[[], Any]] = field(default_factory=dict)

    @property
    def verdicts(self) -> dict[str, int]:
        """How many rows hold, how many do not, and how many have nothing to compare with."""
        differ = sum(not row.holds for row in self.rows)
        unknown = sum(row.verdict == UNKNOWN for row in self.rows)
        return {"hold": len(self.rows) - differ - unknown, "differ": differ, "unknown": unknown}

    def in_words(self) -> str:
        """The same as a sentence."""
        counts = self.verdicts
        unknown = f", {counts['unknown']} have nothing to compare with" if counts["unknown"] else ""
        return f"{counts['hold']} rows hold, {counts['differ']} differ{unknown}."

    def to_dict(self) -> dict[str, Any]:
        return {
            "paper": self.name,
            "title": self.title,
            "verdicts": self.verdicts,
            "rows": [row.to_dict() for row in self.rows],
            "notes": list(self.notes),
            **self.details,
        }


def verdict(printed: Mean | None, ours: Mean) -> str:
    """Whether two figures agree; both may vary from sample to sample."""
    if printed is None:
        return UNKNOWN
    off = abs(ours.value - printed.value)
    if off <= max(CLOSE * abs(printed.value), ROUNDING):
        return AGREES
    alike = off <= FEW or printed.value <= FACTOR * ours.value <= FACTOR**2 * printed.value
    if alike and off <= CHANCE * math.hypot(printed.deviation, ours.deviation) + ROUNDING:
        return SPREAD
    return NEAR if off <= NOT_FAR * abs(printed.value) else DIFFERS


def compare(table: str, what: str, printed: Mapping[str, Mean | None], ours: Mapping[str, Mean]) -> Row:
    """A row of several figures, by name; its verdict is the worst of theirs, and says which figures are off."""
    found = {name: verdict(printed.get(name), ours[name]) for name in ours}
    worst = max(found.values(), key=_WORST_LAST.index)
    off = [f"{name} {_off(printed.get(name), ours[name])}".strip() for name, word in found.items() if word == worst]
    said = f"{worst}: {', '.join(off)}" if worst in (NEAR, DIFFERS) else worst
    texts = ["–" if printed.get(name) is None else str(printed[name]) for name in ours]
    return Row(table, what, " / ".join(texts), " / ".join(map(str, ours.values())), said)


def _off(printed: Mean | None, ours: Mean) -> str:
    if printed is None or not printed.value:
        return f"{ours.value:+,.0f}"
    return f"{ours.value / printed.value - 1:+.0%}"

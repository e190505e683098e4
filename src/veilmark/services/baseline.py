"""Baseline: the usual score over a window of recent ones, and how far a score lies above it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np

NORMAL = 1.4826
"""The standard deviation of a normal distribution in median absolute deviations."""

LEAST_SHARE, LEAST_RECORDS = 0.05, 0.25
"""The least deviation a baseline goes by: this share of its median, and this many mean records of the source.

Without it a user whose results are all alike would raise an alert over a rounding, and one whose results are empty
over a single record.
"""


@dataclass(frozen=True)
class Usual:
    """The middle of some scores, and how far they usually lie from it (as a standard deviation)."""

    median: float
    spread: float

    @classmethod
    def of(cls, scores: np.ndarray, floor: float) -> Usual:
        """Median and median absolute deviation, the latter not below `floor` and a share of the median."""
        median = _median(scores)
        deviation = max(_median(np.abs(scores - median)), LEAST_SHARE * median, floor)
        return cls(median, NORMAL * deviation)

    def times(self, score: float) -> float:
        """How many spreads a score lies above the median."""
        return (score - self.median) / self.spread

    def compare(self, score: float, whose: str) -> str:
        """How far a score is above what is usual, in words."""
        times = f"{self.times(score):,.1f} times the usual deviation"
        return f"score {_short(score)} is {times} above {whose} usual {_short(self.median)}"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.3g}"


def _median(values: np.ndarray) -> float:
    # np.median takes ten times as long for a few hundred values.
    ordered = np.sort(values)
    half = len(ordered) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)


class Baseline:
    """The usual score over a window of recent ones.

    It is taken anew once a twentieth of the window has come in (10 scores of 200), not with every score.
    """

    __slots__ = ("_floor", "_next", "_scores", "_wait", "_window", "usual")

    def __init__(self, window: int, min_history: int, floor: float) -> None:
        self.usual: Usual | None = None
        self._scores = array("d")
        self._next = 0
        self._window = window
        self._wait = min(min_history, window)
        self._floor = floor

    def add(self, score: float) -> None:
        """Remember a score, in place of the oldest where the window is full."""
        if len(self._scores) < self._window:
            self._scores.append(score)
        else:
            self._scores[self._next] = score
            self._next = (self._next + 1) % self._window
        self._wait -= 1
        if not self._wait:
            self._wait = max(1, self._window // 20)
            self.usual = Usual.of(np.array(self._scores), self._floor)

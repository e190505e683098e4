"""Run a job and its floor in processes of their own, by turns, and compare time and memory."""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

REPEAT = 5


@dataclass(frozen=True)
class Run:
    """One run: seconds without the imports, and the process's peak memory."""

    seconds: float
    mebibytes: float


@dataclass(frozen=True)
class Comparison:
    """The medians of a job and of its floor."""

    name: str
    floor: float
    job: float
    mebibytes: float
    limit: float | None = None

    @property
    def ratio(self) -> float:
        return self.job / self.floor

    def __str__(self) -> str:
        goal = f"  (goal {self.limit:g})" if self.limit else ""
        return (
            f"{self.name:44} floor {self.floor:6.2f} s   job {self.job:6.2f} s   "
            f"ratio {self.ratio:5.2f}{goal}   peak {self.mebibytes:6,.0f} MiB"
        )


def compare(
    name: str,
    floor: Callable[..., Any],
    job: Callable[..., Any],
    *arguments: Any,
    limit: float | None = None,
    repeat: int = REPEAT,
) -> Comparison:
    """Floor and job by turns, so that both meet the same machine."""
    runs = [(alone(floor, *arguments), alone(job, *arguments)) for _ in range(repeat)]
    return Comparison(
        name,
        statistics.median(f.seconds for f, _ in runs),
        statistics.median(j.seconds for _, j in runs),
        max(j.mebibytes for _, j in runs),
        limit,
    )


def alone(work: Callable[..., Any], *arguments: Any) -> Run:
    """Run in a fresh process. `work` imports what it needs, and returns the function to be timed."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_timed, (work, arguments))


def _timed(work: Callable[..., Any], arguments: tuple[Any, ...]) -> Run:
    ready = work(*arguments)
    start = time.perf_counter()
    ready()
    seconds = time.perf_counter() - start
    return Run(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

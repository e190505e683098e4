"""How far long work has come. Whoever shows it (the command line, the web app) sets a reporter; else nobody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

Poll = Callable[[], float | None]
"""The share done, 0 to 1, or None while that is not known."""

Reporter = Callable[[str, Poll], AbstractContextManager[object]]

_reporter: ContextVar[Reporter | None] = ContextVar("veilmark_progress", default=None)


def step(label: str, poll: Poll = lambda: None) -> AbstractContextManager[object]:
    """`with step("Reading voters.csv", share_done): …` shows a bar where somebody looks."""
    reporter = _reporter.get()
    return nullcontext() if reporter is None else reporter(label, poll)


@contextmanager
def reported_by(reporter: Reporter) -> Iterator[None]:
    """Within the block, steps are shown by this reporter."""
    token = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(token)

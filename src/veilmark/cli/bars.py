"""How far long work has come, on standard error: a bar where that is a terminal, else a plain line now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial

from veilmark import progress
from veilmark.progress import Poll

PATIENCE = 0.5
"""Seconds of work before a bar appears."""
FIRST, EVERY = 10.0, 30.0
"""Seconds of work before the first plain line, and between two."""


def show_progress() -> AbstractContextManager[None]:
    """Within the block, long steps show how far they are."""
    return progress.reported_by(partial(_watched, _bar if sys.stderr.isatty() else _lines))


@contextmanager
def _watched(watch: Callable[[str, Poll, threading.Event], None], label: str, poll: Poll) -> Iterator[None]:
    """Show the progress from another thread; the work itself does not know about the bar."""
    done = threading.Event()
    watcher = threading.Thread(target=watch, args=(label, poll, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _bar(label: str, poll: Poll, done: threading.Event) -> None:
    if done.wait(PATIENCE):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(label, total=None)
        while not done.wait(0.1):
            share = poll()
            if share is not None:
                bars.update(task, total=1.0, completed=share)


def _lines(label: str, poll: Poll, done: threading.Event) -> None:
    """`Searching the lattice: 42 % after 40 s`. Where nobody reads them any more, the work goes on."""
    began, wait = time.monotonic(), FIRST
    while not done.wait(wait):
        share, seconds = poll(), time.monotonic() - began
        with suppress(OSError, ValueError):
            print(
                f"{label}: {'' if share is None else f'{share:.0%} '}after {seconds:.0f} s", file=sys.stderr, flush=True
            )
        wait = EVERY

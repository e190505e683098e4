"""Progress bars on standard error, where that is a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from veilmark import progress
from veilmark.progress import Poll

PATIENCE = 0.5
"""Seconds of work before a bar appears."""


def show_progress() -> AbstractContextManager[None]:
    """Within the block, long steps show a bar."""
    return progress.reported_by(_bar) if sys.stderr.isatty() else nullcontext()


@contextmanager
def _bar(label: str, poll: Poll) -> Iterator[None]:
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(label, poll, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(label: str, poll: Poll, done: threading.Event) -> None:
    """Show the bar from another thread, so that the work itself knows nothing of it."""
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

"""A thread that waits for an engine, so that the main thread hears Ctrl-C; it does not keep the program from ending.

Futures will not do. A signal that arrives while their condition is entered leaves its lock held for ever, and the thread
that should finish them waits with it. And where the system hands the signal to another thread, a main thread that waits
without a limit never hears of it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
LOOK = 0.5
"""Seconds after which the main thread looks whether a signal came."""


class Task(Generic[T]):
    """Work that a thread was given. A bare lock wakes who waits; a flag says whether it is done."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._wake = threading.Lock()
        self._wake.acquire()
        self._outcome: Callable[[], T]
        self.done = False

    def run(self) -> None:
        """Do the work, and keep what it returns or raises."""
        work, self._work = self._work, None
        assert work is not None, "work is done once"
        try:
            value = work()
            self._outcome = lambda: value
        except BaseException as error:
            self._outcome = _raising(error)
        self.done = True
        self._wake.release()

    def wait(self, seconds: float) -> bool:
        """Whether it is done, after at most so many seconds."""
        return self.done or self._wake.acquire(timeout=seconds) or self.done

    def result(self) -> T:
        """What the work returns or raises, when it is done."""
        while not self.wait(LOOK):
            pass
        return self._outcome()


def _raising(error: BaseException) -> Callable[[], Any]:
    def outcome() -> Any:
        raise error

    return outcome


class Worker:
    """One thread that does what it is given, one after the other."""

    def __init__(self, name: str) -> None:
        self._tasks: queue.SimpleQueue[Task[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether this is the worker's own thread."""
        return threading.current_thread() is self._thread

    def submit(self, work: Callable[[], T]) -> Task[T]:
        """Have something done."""
        task = Task(work)
        self._tasks.put(task)
        return task

    def stop(self) -> None:
        """End the thread, when what it was given is done; nobody waits for it."""
        self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task.run()
            del task

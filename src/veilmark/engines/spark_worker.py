"""A thread that asks Spark, so that the main thread hears Ctrl-C; it does not keep the program from ending."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """One thread that does what it is given, one after the other."""

    def __init__(self, name: str) -> None:
        self._given: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether this is the worker's own thread."""
        return threading.current_thread() is self._thread

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Have something done."""
        done: Future[T] = Future()
        self._given.put((done, work))
        return done

    def stop(self) -> None:
        """End the thread, when what it was given is done; nobody waits for it."""
        self._given.put(None)

    def _work(self) -> None:
        while (given := self._given.get()) is not None:
            done, work = given
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)
            del done, work, given

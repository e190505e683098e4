"""What a thread does for the main thread, which hears signals meanwhile."""

import signal
import threading

import pytest

from veilmark.engines.worker import Task, Worker


def test_what_work_returns_and_raises():
    worker = Worker("test")
    assert worker.submit(lambda: 7).result() == 7
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda: 1 // 0).result()
    assert worker.submit(lambda: worker.is_here).result()
    assert not worker.is_here
    worker.stop()


def test_a_task_can_be_asked_more_than_once():
    task = Task(lambda: "x")
    assert not task.wait(0)
    task.run()
    assert task.done
    assert task.wait(0)
    assert task.wait(0)
    assert [task.result(), task.result()] == ["x", "x"]


def test_a_signal_that_another_thread_got_is_heard():
    """The system may wake any thread; the main one must not wait for ever."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread only")
    heard = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    worker, release = Worker("test"), threading.Event()

    def work():
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        release.wait()

    task = worker.submit(work)
    try:
        with pytest.raises(KeyboardInterrupt):
            task.result()
    finally:
        signal.signal(signal.SIGUSR1, heard)
        release.set()
        worker.stop()
    assert task.wait(60), "an interrupted wait leaves the task whole"

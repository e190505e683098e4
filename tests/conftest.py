import signal
import threading

import pytest
from hypothesis import settings

from postgres_server import postgres  # noqa: F401  (one server for all tests that want one)


@pytest.fixture
def ctrl_c():
    """What Ctrl-C does in a terminal, whatever handles it in pytest's workers."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


# Time depends on the machine and on what else it does; tests never judge it.
settings.register_profile("veilmark", deadline=None)
settings.load_profile("veilmark")

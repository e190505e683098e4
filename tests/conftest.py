import os
import signal
import threading

import pytest

from postgres_server import postgres  # noqa: F401  (one server for all tests that want one)
from schedule import Groups, rank
from strength import register_profiles

# Several processes share the cores; threads of their own would only wait for each other. Read when NumPy is imported.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


@pytest.fixture
def ctrl_c():
    """What Ctrl-C does in a terminal, whatever handles it in pytest's workers."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def pytest_xdist_make_scheduler(config, log):
    return Groups(config, log)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: rank(item.nodeid))


register_profiles()

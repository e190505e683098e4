"""`python -m veilmark` is the command line."""

from __future__ import annotations

import subprocess
import sys


def test_the_package_can_be_run():
    done = subprocess.run([sys.executable, "-m", "veilmark", "measure", "nosuch.yaml"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "nosuch.yaml" in done.stderr

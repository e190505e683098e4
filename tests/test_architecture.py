"""Who may import whom, the picture of it, and the examples in CONTRIBUTING."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
EXAMPLES = sorted((ROOT / "tests" / "extending").glob("test_*.py"))


def test_imports_keep_to_the_contracts():
    linter = str(Path(sys.executable).with_name("lint-imports"))
    done = subprocess.run([linter, "--no-cache", "--no-logo"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_the_picture_is_that_of_the_imports(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import architecture

    assert architecture.PICTURE.read_text() == architecture.draw(), "Run `make architecture`."


def test_what_is_excepted_stands_in_functions():
    """Loading all methods and `study` loads neither charts nor verbs."""
    below = ["attack", "guess", "hierarchy", "ledger", "mark", "privacy", "score", "trace", "utility", "veil"]
    code = f"""
import importlib, pkgutil, sys, veilmark.study.study
for part in {below}:
    package = importlib.import_module("veilmark." + part)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
print(*(m for m in sys.modules if m.startswith(("veilmark.report", "veilmark.workbench", "veilmark.cli", "veilmark.web"))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_contributing_shows_what_is_tested(file):
    """Each example has its block in CONTRIBUTING, word for word, of less than 60 lines."""
    blocks = BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text())
    shown = [block for block in blocks if block in file.read_text()]
    assert len(shown) == 1
    assert shown[0].count("\n") < 60
    assert len(blocks) == len(EXAMPLES)

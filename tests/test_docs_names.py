"""README and docs use the public names of veilmark, and no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import veilmark

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
KNOWN = {*veilmark.__all__, "__version__"}


def hidden_names(code):
    """What a block of Python takes out of veilmark that is not public."""
    tree = ast.parse(code)
    aliases = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = [n for n in node.names if n.name.partition(".")[0] == "veilmark"]
            aliases |= {n.asname or n.name for n in ours if n.name == "veilmark"}
            yield from (n.name for n in ours if n.name != "veilmark")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "veilmark":
            whole = node.module == "veilmark"
            yield from (f"{node.module}.{n.name}" for n in node.names if not whole or n.name not in KNOWN)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield from [] if node.attr in KNOWN else [f"veilmark.{node.attr}"]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_blocks_use_public_names_only(page):
    found = [name for block in PYTHON.findall(page.read_text()) for name in hidden_names(block)]
    assert not found, f"{page.name} uses names that are not public: {', '.join(found)}"


@pytest.mark.parametrize(
    "code",
    [
        "import veilmark.workbench",
        "import veilmark.workbench as w",
        "from veilmark.study.study import Study",
        "from veilmark import workbench",
        "import veilmark\nveilmark.workbench",
        "import veilmark as vm\nvm.study.Study.open('s.yaml')",
        "def f():\n    from veilmark.output import write_table",
    ],
)
def test_other_names_are_noticed(code):
    assert list(hidden_names(code))


def test_public_names_are_no_fault():
    code = "import veilmark as vm\nfrom veilmark import Study\nvm.Ola(k=5)\nvm.__version__\nimport numpy.linalg"
    assert not list(hidden_names(code))

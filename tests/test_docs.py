"""Every code block in the README and the docs runs, in the order it stands, in a folder of its own.

```python``` blocks are executed, the `$ ` lines of ```console``` blocks run in a shell, and a block after a comment
`<!-- file: NAME -->` is written to that file. docs/postgres.md has a server of its own, with the tables it speaks of.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from postgres_server import load_clinic

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.M | re.S)
SKIPPED = re.compile(r"^(make|git|pip|cd) ")


def shell(line, folder):
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    return subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_blocks_run(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    if page.name == "postgres.md":
        monkeypatch.setenv("DATABASE_URL", load_clinic(request.getfixturevalue("postgres")))
    names: dict[str, object] = {}
    for block in BLOCK.finditer(page.read_text()):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["body"])
        elif block["kind"] == "python":
            exec(compile(block["body"], str(page), "exec"), names)
        elif block["kind"] == "console":
            for line in re.findall(r"^\$ (.*)$", block["body"], re.M):
                if not SKIPPED.match(line):
                    done = shell(line, tmp_path)
                    assert done.returncode == 0, f"{line}\n{done.stderr}"

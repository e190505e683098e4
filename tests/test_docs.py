"""Every code block in the README and the docs runs, in the order it stands, in a folder of its own.

```python``` blocks are executed, the `$ ` lines of ```console``` blocks run, and a block after a comment
`<!-- file: NAME -->` is written to that file. Lines that are one veilmark command run in this process, which has the
packages loaded; what needs a shell runs in one. docs/postgres.md has a server, with the tables it speaks of; docs/spark.md
has a process of its own, since Java stays in the folder where it was started.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from engines.contract.spark_case import QUICK_JAVA
from postgres_server import load_clinic
from veilmark.cli.main import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.M | re.S)
SKIPPED = re.compile(r"^(make|git|pip|cd) ")
OF_THE_SHELL = frozenset("|&;<>$`*?~")


def run_page(page):
    """Run its blocks in the folder that is the current one."""
    names: dict[str, object] = {}
    for block in BLOCK.finditer(page.read_text()):
        if block["file"]:
            Path(block["file"]).write_text(block["body"])
        elif block["kind"] == "python":
            exec(compile(block["body"], str(page), "exec"), names)
        elif block["kind"] == "console":
            for line in re.findall(r"^\$ (.*)$", block["body"], re.M):
                if not SKIPPED.match(line):
                    assert run_line(line) == 0, line


def run_line(line):
    """The exit code of what a user types."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    if words[0] == "veilmark" and not any(set(word) & OF_THE_SHELL for word in words if word not in quoted(line)):
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            return main(words[1:])
    return subprocess.run(line, shell=True).returncode


def quoted(line):
    """What a line has in quotes, which the shell leaves as it is."""
    return {text for pair in re.findall(r"\"([^\"$`]*)\"|'([^']*)'", line) for text in pair}


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """A folder of its own, a terminal of usual width, and the commands of this environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_blocks_run(page, at_home, monkeypatch, request, tmp_path_factory):
    if page.name == "postgres.md":
        monkeypatch.setenv("DATABASE_URL", load_clinic(request.getfixturevalue("postgres")))
    if page.name == "spark.md":
        run_with_spark(page, monkeypatch, tmp_path_factory.mktemp("temporary"))
    else:
        run_page(page)


def run_with_spark(page, monkeypatch, temporary):
    """Several sessions in one process; each has a temporary folder of its own, which is gone afterwards."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK_JAVA)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    assert subprocess.run([sys.executable, __file__, page]).returncode == 0
    assert list(temporary.glob("veilmark-*")) == []


if __name__ == "__main__":
    run_page(Path(sys.argv[1]))

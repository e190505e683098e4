"""The documentation site: it builds without a warning, offline, and what is generated is in step with its source."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from strength import PATIENCE

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PEERS = re.compile(r"^\| \| veilmark .*?(?=\n\n)", re.M | re.S)


@pytest.fixture(scope="module")
def made():
    spec = importlib.util.spec_from_file_location("made_docs", ROOT / "tools" / "docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs")
    shutil.copytree(ROOT / "tools", folder / "tools")
    for name in ("zensical.toml", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


def pages_of(nav):
    for entry in nav:
        for target in entry.values():
            yield from [target] if isinstance(target, str) else pages_of(target)


def test_every_page_is_in_the_navigation_once():
    listed = list(pages_of(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    there = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    assert sorted(listed) == sorted(there)


@pytest.mark.parametrize("name", ["reference/cli.md", "reference/api.md", "tutorial.ipynb"])
def test_generated_pages_are_current(made, name):
    assert (DOCS / name).read_text() == made.pages()[DOCS / name], f"docs/{name} is out of date. Run: make docs"


def test_the_reference_has_every_verb_and_every_name(made):
    import veilmark
    from veilmark.cli.main import app

    verbs = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert all(f"### veilmark {verb.replace('_', '-')}\n" in made.cli_page() for verb in verbs)
    assert all(f"### {name}\n" in made.api_page() for name in veilmark.__all__)


def test_notebook_has_the_code_of_the_tutorial(made):
    book = json.loads(
        made.notebook(
            "Say\n\n```console\n$ a b\n$ c\n```\n\n<!-- file: f.csv -->\n```csv\nx\n```\n\n```python\ny\n```\n"
        )
    )
    assert (book["nbformat"], len({cell["id"] for cell in book["cells"]})) == (4, 4)
    found = [(cell["cell_type"], "".join(cell["source"])) for cell in book["cells"]]
    assert found == [("markdown", "Say"), ("code", "!a b\n!c"), ("code", "%%writefile f.csv\nx"), ("code", "y")]


class Loaded(HTMLParser):
    """The addresses of what a browser fetches to show the page, links to follow left out."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "link" and given.get("rel") in ("canonical", "next", "prev", "edit"):
            return
        if tag != "a":
            self.found += [given[name] for name in ("src", "srcset", "href", "data") if given.get(name)]


def test_pages_load_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) >= len(list(DOCS.rglob("*.md")))
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text())
        assert not [url for url in loaded.found if re.match(r"(\w+:)?//", url)], page
    styles = "".join(style.read_text() for style in site.rglob("*.css"))
    assert not re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", styles)


def test_code_blocks_that_tests_write_to_files_show_their_name(site):
    assert '<span class="filename">study.yaml</span>' in (site / "tutorial.html").read_text()


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_readme_and_page_compare_tools_in_the_same_words():
    assert PEERS.search((ROOT / "README.md").read_text())[0] == PEERS.search((DOCS / "peers.md").read_text())[0]


def test_every_note_of_the_comparison_is_there():
    text = (DOCS / "peers.md").read_text()
    notes = [int(n) for n in re.findall(r"^(\d+)\. ", text, re.M)]
    assert notes == sorted({int(n) for n in re.findall(r"\[(\d+)\]", PEERS.search(text)[0])})
    assert not re.search(r"part \|", text), "a part without its reason"

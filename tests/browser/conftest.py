"""A real server and a real browser. Pages fail a test by any error on the console; pictures go to build/screenshots/."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from browser.checks import check_page
from strength import PATIENCE

CHROMIUM = os.environ.get("VEILMARK_CHROMIUM", "/usr/bin/chromium")
SHOTS = Path(__file__).parents[2] / "build" / "screenshots"
WIDTHS = {"wide": 1280, "phone": 390}
WAIT = 1_000 * PATIENCE / 3


class Server:
    """`veilmark serve` on a workspace; `open()` lets the browser in."""

    def __init__(self, folder: Path) -> None:
        command = [Path(sys.executable).with_name("veilmark"), "serve", str(folder), "--port", "0"]
        self.folder = folder
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = iter(self.process.stdout.readline, "")
        self.link = next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
        self.url = self.link.partition("/open")[0]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)
        self.process.stdout.close()


@pytest.fixture(scope="session")
def browser():
    if not Path(CHROMIUM).exists():
        pytest.skip(f"there is no {CHROMIUM}; install chromium, or name it in VEILMARK_CHROMIUM")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT)
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def server(browser, tmp_path_factory):
    """A server on an empty workspace, for the tests of one module, in their order."""
    made = Server(tmp_path_factory.mktemp("workspace"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def entered(browser, server):
    """A browser's context that is in."""
    context = browser.new_context(viewport={"width": WIDTHS["wide"], "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(WAIT)
    page = context.new_page()
    page.goto(server.link)
    page.close()
    yield context
    context.close()


@pytest.fixture(params=WIDTHS)
def width(request):
    return request.param


@pytest.fixture
def page(entered, server, width):
    """A page of the server, at each width; an error on its console fails the test."""
    made = entered.new_page()
    made.set_viewport_size({"width": WIDTHS[width], "height": 900})
    errors = []
    # Answers that are meant to be errors are reported there too; what they say is tested, not that they are.
    expected = re.compile(r"Failed to load resource.*status of (400|403|404|413)")
    made.on("console", lambda m: errors.append(m.text) if m.type == "error" and not expected.search(m.text) else None)
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.goto(server.url)
    yield made
    made.close()
    assert errors == []


@pytest.fixture
def shot(page, width, request):
    """`shot("studies")` keeps a picture of the whole page and checks that everybody can use it."""

    def take(name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / f"{name}-{width}.png", full_page=True)
        assert check_page(page) == []

    return take

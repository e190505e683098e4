"""Whether everybody can use a page: what can be told by looking at it as the browser has it."""

from __future__ import annotations

from pathlib import Path

CHECK = Path(__file__).with_name("checks.js").read_text()


def check_page(page) -> list[str]:
    """What is wrong with a page: labels, alternatives, names, ids, headings, width, contrast; empty where nothing is."""
    return page.evaluate(CHECK)

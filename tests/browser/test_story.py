"""The whole story on the sample: open, roles, score, anonymize, pick a generalization, release, trace, report."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.hands import Keyboard, Mouse


def go(hand, title: str, heading: str) -> None:
    """To another page, by the navigation."""
    hand.press(hand.page.get_by_role("navigation", name="Main").get_by_role("link", name=title, exact=True))
    expect(hand.page.get_by_role("heading", level=1)).to_contain_text(heading)


def open_sample(hand, shot) -> str:
    page = hand.page
    hand.press(page.get_by_role("button", name="Open the register sample"))
    page.wait_for_url("**/studies/register*")
    name = page.url.rpartition("/")[2]
    expect(page.get_by_text("Each role below is a guess")).to_be_visible()
    hand.choose(page.get_by_label("Role of race"), "Other")
    hand.choose(page.get_by_label("Role of race"), "Quasi-identifier")
    hand.press(page.get_by_role("button", name="Save the roles"))
    expect(page.get_by_text("The roles are saved.")).to_be_visible()
    shot("story-1-roles")
    return name


def score(hand, shot, name: str) -> None:
    go(hand, "Score", name)
    hand.press(hand.page.get_by_role("button", name="Score", exact=True))
    expect(hand.page.get_by_role("heading", name="The worst records")).to_be_visible()
    shot("story-2-score")


def anonymize(hand, shot, name: str) -> None:
    page = hand.page
    go(hand, "Anonymize", name)
    hand.slide(page.get_by_label("Share that may be left out"), 10)
    hand.press(page.get_by_role("button", name="Anonymize", exact=True))
    expect(page.get_by_role("heading", name="The release", exact=True)).to_be_visible()
    shot("story-3-anonymize")
    listed = page.get_by_label("The best that meet what was asked")
    hand.choose(listed, listed.evaluate("e => e.options[1].label"))
    hand.press(page.get_by_role("button", name="Look at it"))
    hand.press(page.get_by_role("button", name="Use this one"))
    expect(page.get_by_text("at levels chosen by hand")).to_be_visible()
    shot("story-4-node")


def release(hand, shot, name: str) -> None:
    page = hand.page
    go(hand, "Release", f"Release {name}")
    expect(page.get_by_label("Fixed levels")).not_to_have_value("")
    hand.write(page.get_by_label("One a line"), "ada\nbob\ncyd")
    hand.write(page.get_by_label("Decoy classes for each recipient"), "8")
    hand.slide(page.get_by_label("How many may act together"), 1)
    hand.press(page.get_by_text("Risk of decoys, most that a group may lose, seed, format"))
    hand.write(page.get_by_label("Largest risk"), "20")
    expect(page.locator("[data-plan-here]").get_by_text("Added to a copy")).to_be_visible()
    hand.press(page.get_by_role("button", name="Make the copies"))
    heading = page.get_by_role("heading", name="The last release")
    expect(heading).to_be_visible()
    shot("story-5-release")
    hand.press(heading.get_by_role("link"))


def trace(hand, shot) -> None:
    page = hand.page
    hand.press(page.get_by_role("button", name="Show the decoys"))
    decoys = page.get_by_role("region", name="Decoys of bob")
    expect(decoys).to_be_visible()
    claimed = decoys.locator("tbody tr td:first-child").all_inner_texts()
    go(hand, "Trace", "Trace")
    hand.write(page.get_by_label("Or paste lines of CSV"), "\n".join(["voter_id", *claimed]))
    hand.press(page.get_by_role("button", name="Trace", exact=True))
    expect(page.get_by_text("Named: bob", exact=True)).to_be_visible()
    expect(page.locator("figure canvas")).to_be_visible()
    shot("story-6-trace")


def report(hand, shot, name: str) -> None:
    page = hand.page
    go(hand, "Report", "Reports")
    hand.choose(page.get_by_label("Study", exact=True), name)
    known = page.get_by_label("Release in the ledger")
    hand.choose(known, known.evaluate("e => e.options[1].label"))
    hand.press(page.get_by_role("button", name="Make the report"))
    hand.press(page.get_by_role("link", name="Look at it"))
    expect(page.locator("iframe")).to_be_visible()
    shot("story-7-report")


def tell(hand, shot) -> None:
    expect(hand.page.get_by_role("heading", level=1)).to_have_text("Studies")
    name = open_sample(hand, shot)
    score(hand, shot, name)
    anonymize(hand, shot, name)
    release(hand, shot, name)
    trace(hand, shot)
    report(hand, shot, name)


def test_by_clicking(page, shot):
    tell(Mouse(page), shot)


@pytest.mark.parametrize("width", ["wide"], indirect=True)
def test_with_the_keyboard_alone(page):
    tell(Keyboard(page), lambda name: None)

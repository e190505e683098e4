"""A custodian releases the register to three recipients, looks into the ledger, and traces what came back."""

from __future__ import annotations

import csv
import io

import pytest
from playwright.sync_api import expect

from veilmark.workbench import ledger


@pytest.fixture(scope="module", autouse=True)
def register(server, entered):
    """The sample, opened once."""
    page = entered.new_page()
    page.goto(server.url)
    page.get_by_role("button", name="Open the register sample").click()
    page.wait_for_url("**/studies/register")
    page.close()


def allow_suppression(page):
    """Without records left out, no class of the population is large enough for a decoy."""
    page.get_by_label("May be left out, in %").fill("10")


def test_before_the_first_release(page, server, shot, width):
    if width == "wide":  # At the other width there is one already.
        page.goto(f"{server.url}/ledger")
        shot("ledger-empty")
        page.goto(f"{server.url}/trace")
        shot("trace-empty")
    page.goto(f"{server.url}/studies/register/release")
    expect(page.get_by_label("Population")).to_have_value("data/register-voters.parquet")
    shot("release-start")


def test_plan_with_sliders(page, server, shot):
    (server.folder / ".veilmark" / "drafts" / "register.json").unlink(missing_ok=True)
    page.goto(f"{server.url}/studies/register/release")
    page.get_by_label("One a line").fill(
        "Ada Clinic\nBob & Sons\nA recipient with quite a long name, so that it must be broken"
    )
    allow_suppression(page)
    cost = page.locator("[data-plan-here]")
    expect(cost.get_by_text("Length of the code")).to_be_visible()
    page.get_by_label("Decoy classes for each recipient").fill("2")
    page.get_by_text("By covers: some real classes").click()
    expect(cost.get_by_text("classes kept for one recipient each")).to_be_visible()
    page.get_by_label("Covers for each recipient").fill("12")
    page.get_by_text("What the ledger notes of each").click()
    page.get_by_role("group", name="Ada Clinic").get_by_label("Agreement").fill("A-2024-7")
    expect(cost.locator("dd").get_by_text("36", exact=True)).to_be_visible()
    shot("release-plan")
    page.get_by_label("Decoy classes for each recipient").fill("10")
    page.get_by_text("Risk of decoys, most that a group may lose, seed, format").click()
    page.get_by_label("Largest risk").fill("1.2")
    expect(cost.get_by_text("decoy classes are needed")).to_be_visible()
    expect(cost.get_by_text("Widen or omit")).to_be_visible()
    shot("release-refused")
    page.get_by_label("Largest risk").fill("wide")
    expect(cost.get_by_text("The largest risk must be a number")).to_be_visible()
    page.get_by_role("button", name="Make the copies").click()
    expect(page.get_by_role("alert")).to_contain_text("The largest risk must be a number")


def test_copies_ledger_and_trace(page, server, shot):
    (server.folder / ".veilmark" / "drafts" / "register.json").unlink(missing_ok=True)
    page.goto(f"{server.url}/studies/register/release")
    page.get_by_label("One a line").fill("ada\nbob\ncyd")
    allow_suppression(page)
    page.get_by_label("Decoy classes for each recipient").fill("8")  # So many that claims of them are no chance.
    page.get_by_text("Risk of decoys, most that a group may lose, seed, format").click()
    page.get_by_label("Largest risk").fill("20")
    expect(page.locator("[data-plan-here]").get_by_text("Length of the code")).to_be_visible()
    page.get_by_role("button", name="Make the copies").click()
    heading = page.get_by_role("heading", name="The last release")
    expect(heading).to_be_visible()
    shot("release-made")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the copy of bob").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert set(rows[0]) == {"zip", "gender", "yob", "race", "condition"}

    heading.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("published")
    release = page.url.rpartition("/")[2]
    shot("ledger-release")
    page.get_by_role("button", name="Show the decoys").click()
    expect(page.get_by_text("That you looked is in the audit log")).to_be_visible()
    shot("ledger-decoys")

    page.get_by_role("link", name="Ledger", exact=True).first.click()
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("The ledger is whole")).to_be_visible()
    shot("ledger")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download a backup").click()
    assert download.value.suggested_filename.startswith("ledger-")

    claimed = ledger.decoys(server.folder / "ledger.db", release, server.folder / "ledger.key")["bob"]
    page.get_by_role("link", name="Trace", exact=True).click()
    page.get_by_label("Or paste lines of CSV").fill("voter_id\n" + "\n".join(row["voter_id"] for row in claimed))
    page.get_by_label("Release", exact=True).select_option(release)
    page.get_by_role("button", name="Trace", exact=True).click()
    expect(page.get_by_text("Named: bob")).to_be_visible()
    expect(page.locator("figure canvas")).to_be_visible()
    shot("trace-claims")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the report").click()
    assert "Named: bob" in download.value.path().read_text()


def test_a_leaked_file(page, server, shot):
    copy = next((server.folder / "releases").glob("*/cyd.csv"))
    page.goto(f"{server.url}/trace")
    page.get_by_label("A leaked file, whole or part").check()
    page.get_by_label("CSV or Parquet file").set_input_files(copy)
    page.get_by_role("button", name="Trace", exact=True).click()
    expect(page.get_by_text("Named: cyd")).to_be_visible()
    shot("trace-leak")


def test_without_scripts(browser, server, entered):
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(entered.cookies())
    page = context.new_page()
    page.goto(f"{server.url}/studies/register/release")
    page.get_by_label("One a line").fill("ada\nbob")
    allow_suppression(page)
    page.get_by_role("button", name="Work out the cost").click()
    for _ in range(200):
        if page.get_by_text("Added to a copy").count():
            break
        page.wait_for_timeout(200)
        page.reload()
    expect(page.get_by_text("Added to a copy")).to_be_visible()
    context.close()

"""A custodian opens the app, takes a sample, mends a role and a hierarchy, and measures, with mouse or keyboard alone."""

from __future__ import annotations

import yaml
from playwright.sync_api import expect


def test_empty_then_sample_then_roles(page, server, shot, width):
    expect(page.get_by_role("heading", level=1)).to_have_text("Studies")
    shot("studies-empty" if width == "wide" else "studies")
    page.get_by_role("button", name="Open the register sample").click()
    name = "register" if width == "wide" else "register-2"
    page.wait_for_url(f"**/studies/{name}")
    expect(page.get_by_text("Each role below is a guess")).to_be_visible()
    shot("study")
    page.get_by_label("Role of gender").select_option("other")
    page.get_by_role("button", name="Save the roles").click()
    expect(page.get_by_text("The roles are saved.")).to_be_visible()
    study = yaml.safe_load((server.folder / f"{name}.yaml").read_text())
    assert study["attributes"]["gender"] == {"role": "other"}


def test_hospital(page, shot, width):
    page.get_by_role("button", name="Open the hospital sample").click()
    page.wait_for_url("**/studies/hospital*")
    shot("study-hospital")
    page.get_by_label("Role of age").select_option("person")
    page.get_by_role("button", name="Save the roles").click()
    expect(page.get_by_text("Only one column can tell persons apart").first).to_be_visible()
    shot("study-wrong")


def test_hierarchy_with_live_preview(page, server, shot):
    page.goto(f"{server.url}/studies/register/column?column=yob")
    expect(page.get_by_text("8 is not")).to_have_count(0)
    shot("column")
    page.get_by_label("Widths, from fine to coarse").fill("5, 10, 20, 40")
    expect(page.get_by_role("columnheader", name="Level 5")).to_be_visible()
    page.get_by_label("Widths, from fine to coarse").fill("5, 7")
    expect(page.get_by_text("7 is not a multiple of 5")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("7 is not a multiple of 5")
    shot("column-wrong")
    page.get_by_label("Widths, from fine to coarse").fill("5, 10")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The column is saved.")).to_be_visible()


def test_weights(page, server, shot):
    page.goto(f"{server.url}/studies/register/column?column=condition")
    page.get_by_label("Weight of HIV").fill("0.8")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Weight of HIV")).to_have_value("0.8")
    shot("column-sensitive")


def test_measures_with_progress_and_charts(page, server, shot):
    page.goto(f"{server.url}/studies/register/measures")
    page.get_by_role("button", name="Measure").click()
    expect(page.get_by_role("heading", name="In a word")).to_be_visible()
    expect(page.locator("figure canvas")).not_to_have_count(0)
    shot("measures")


def test_with_the_keyboard(page):
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_jobs_audit_and_errors(page, server, shot):
    for path in ("jobs", "audit", "nowhere"):
        page.goto(f"{server.url}/{path}")
        shot(path)


def test_without_scripts(browser, server, entered):
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(entered.cookies())
    page = context.new_page()
    page.goto(f"{server.url}/studies/register")
    page.get_by_label("Role of race").select_option("quasi")
    page.get_by_role("button", name="Save the roles").click()
    expect(page.get_by_text("The roles are saved.")).to_be_visible()
    context.close()

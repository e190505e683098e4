"""A custodian weighs values by pairs and by a data model, scores the table, and compares extracts."""

from __future__ import annotations

import pytest
import yaml
from playwright.sync_api import expect

STUDY = """\
version: 1
source: people.csv
attributes:
  name: {role: direct}
  age: {role: quasi, hierarchy: {intervals: [5, 10]}}
  sex: {role: quasi}
  illness: {role: sensitive}
"""
LONG = "acute lymphoblastic leukaemia, in remission, with a very long name"
ILLNESSES = ("flu", "cold", "asthma", "HIV", LONG)
MODEL = f"""\
tree:
  Health:
    sensitivity: 0.8
    children:
      Disease:
        sensitivity: 0.9
        values: {{HIV: 1, "{LONG}": 0.9}}
  Visit:
    sensitivity: 0.7
    children:
      Diagnosis:
        attribute: illness
        sensitivity: 0.5
        values: {{HIV: 1, flu: 0.1, cold: 0.1, asthma: 0.3, "{LONG}": 0.8}}
infers:
  - {{from: Diagnosis, to: Disease, value: 0.5}}
"""


@pytest.fixture(scope="module", autouse=True)
def _people(server):
    rows = [f'person {i},{20 + i % 30},{"FM"[i % 2]},"{ILLNESSES[i % 5]}"' for i in range(300)]
    for file, kept in (
        ("people.csv", rows),
        ("men.csv", rows[1::2]),
        ("a-much-longer-name-of-an-extract.csv", rows[:90]),
    ):
        (server.folder / file).write_text("\n".join(["name,age,sex,illness", *kept]) + "\n")
    (server.folder / "people.yaml").write_text(STUDY)


def saved(server):
    return yaml.safe_load((server.folder / "people.yaml").read_text())["attributes"]["illness"].get("weights")


def go(page, server, path):
    page.goto(f"{server.url}/studies/people/{path}")


def test_nothing_is_weighed_yet(page, server, shot):
    (server.folder / "people.yaml").write_text(STUDY)
    page.get_by_role("link", name="people").click()
    page.get_by_role("link", name="Score", exact=True).click()
    expect(page.get_by_text("no weights yet")).to_be_visible()
    shot("score-empty")
    page.get_by_role("link", name="Weigh the values").click()
    expect(page.get_by_text("Not weighed yet")).to_be_visible()
    shot("weights-empty")


def test_pairs_with_the_keyboard(page, server, shot):
    (server.folder / "people.yaml").write_text(STUDY)
    go(page, server, "score/weights")
    page.get_by_role("link", name="Compare pairs of illness").click()
    made = page.get_by_role("region", name="What comes out")
    expect(made).to_contain_text("each value is judged just once")
    first = page.locator("input[type=range]").first
    first.focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-said]").first).to_have_text("HIV: clearly heavier, 5 times")
    expect(first).to_have_attribute("aria-valuetext", "HIV: clearly heavier, 5 times")
    opened = page.locator("li[data-pair='0 2']")
    expect(opened.locator("[data-said]")).to_contain_text("left open; the others make it HIV: clearly heavier")
    shot("pairs")
    opened.locator("[type=range]").focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    expect(opened.get_by_label("leave open")).not_to_be_checked()
    expect(made).to_contain_text("contradict each other. Think again about")
    shot("pairs-contradict")
    opened.get_by_label("leave open").check()
    expect(made).to_contain_text("each value is judged just once")
    page.get_by_label("They are scaled so that").select_option("the heaviest is 1")
    expect(made.get_by_text("1.000")).to_be_visible()
    page.get_by_role("button", name="Use these weights").click()
    expect(page.get_by_text("is weighed by your judgements")).to_be_visible()
    shot("weights")
    assert saved(server)["rescale"] is True
    page.get_by_role("link", name="Compare pairs of illness").click()
    expect(page.locator("[data-said]").first).to_have_text("HIV: clearly heavier, 5 times")


def test_choosing_values(page, server):
    go(page, server, "score/pairs?column=illness")
    choose = page.get_by_role("region", name="Values of illness")
    if not choose.is_visible():
        page.get_by_text("Which values to compare").click()
    choose.get_by_label("cold").uncheck()
    page.get_by_role("button", name="Compare these").click()
    expect(page.locator("input[type=range]")).to_have_count(6)
    page.get_by_role("button", name="Use these weights").click()
    expect(page.get_by_role("alert")).to_contain_text("cold")


def test_data_model_with_live_tree(page, server, shot):
    go(page, server, "score/model")
    page.get_by_label("As YAML").fill(MODEL)
    tree = page.get_by_role("region", name="The tree and its weights")
    expect(tree).to_contain_text("Diagnosis")
    expect(tree).to_contain_text("tells of Disease (0.5)")
    page.get_by_label("illness").check()
    shot("model")
    page.get_by_label("As YAML").fill(MODEL.replace("0.8", "8"))
    expect(tree).to_contain_text("line 3")
    page.get_by_role("button", name="Use this model").click()
    expect(page.get_by_role("alert")).to_be_visible()
    shot("model-wrong")
    page.get_by_label("Or a file").set_input_files(
        {"name": "m.yaml", "mimeType": "text/yaml", "buffer": MODEL.encode()}
    )
    expect(page.get_by_label("As YAML")).to_have_value(MODEL)
    page.get_by_role("button", name="Use this model").click()
    expect(page.get_by_text("come from the data model")).to_be_visible()
    assert saved(server)["model"].startswith("weights/people-model")


def test_scores_with_reasons_and_charts(page, server, shot):
    go(page, server, "score")
    page.get_by_role("button", name="Score").click()
    expect(page.get_by_role("heading", name="The worst records")).to_be_visible()
    expect(page.locator("figure canvas")).not_to_have_count(0)
    expect(page.locator("main")).not_to_contain_text("person 1")
    shot("score")


def test_compare(page, server, shot):
    go(page, server, "score")
    page.get_by_role("link", name="Compare tables").click()
    for box in page.get_by_role("region", name="Tables of the workspace").get_by_role("checkbox").all():
        box.uncheck()
    page.get_by_label("men.csv").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("alert")).to_contain_text("Tick 2 to 50 tables")
    expect(page.get_by_label("men.csv")).to_be_checked()
    page.get_by_label("a-much-longer-name-of-an-extract.csv").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Least harmful first")).to_be_visible()
    expect(page.locator("figure canvas")).to_have_count(1)
    shot("score-compare")

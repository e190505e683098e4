"""A custodian anonymizes, looks around in the lattice, uses another node, compares methods and attacks the release."""

from __future__ import annotations

import csv

import pytest
from playwright.sync_api import expect

STUDY = """\
version: 1
source: people.csv
person: id
attributes:
  name: {role: direct}
  age: {role: quasi, hierarchy: {intervals: [5, 10, 20]}}
  sex: {role: quasi}
  postal_code_of_the_main_residence: {role: quasi, hierarchy: {mask: 3}}
  illness: {role: sensitive}
  treatment: {role: sensitive}
"""


@pytest.fixture(scope="module", autouse=True)
def _study(server):
    with (server.folder / "people.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "name", "age", "sex", "postal_code_of_the_main_residence", "illness", "treatment"])
        for i in range(400):
            code = f"{100 + (i * i) % 37}"
            illness = ("flu", "cold", "asthma", "diabetes", "HIV")[(i * 7) % 5]
            out.writerow([i, f"Person {i}", 20 + (i * 13) % 47, "FM"[i % 2], code, illness, f"plan {i % 4}"])
    (server.folder / "people.yaml").write_text(STUDY)


def address(server, rest=""):
    return f"{server.url}/studies/people/anonymize{rest}"


def test_the_form_shows_what_belongs_to_the_method(page, server, shot):
    page.goto(address(server))
    expect(page.get_by_role("link", name="Anonymize").first).to_have_attribute("aria-current", "page")
    page.evaluate("document.querySelector('.settings').open = true")
    page.get_by_text("Limits on sensitive columns").click()
    page.get_by_text("Levels and weights by column").click()
    shot("anonymize-form")
    page.get_by_label("f-slip", exact=True).check()
    expect(page.get_by_label("Preset")).to_be_visible()
    expect(page.get_by_label("Loss to minimize")).to_be_hidden()
    shot("anonymize-form-persons")
    page.get_by_label("OLA", exact=True).check()
    page.get_by_label("l of illness").fill("2.5")
    page.get_by_role("button", name="Anonymize").click()
    expect(page.get_by_role("alert")).to_contain_text("l must be a whole number")
    expect(page.get_by_label("l of illness")).to_have_value("2.5")
    shot("anonymize-wrong")


def test_anonymize_explore_and_use_a_node(page, server, shot):
    page.goto(address(server))
    page.evaluate("document.querySelector('.settings').open = true")
    page.get_by_label("OLA", exact=True).check()
    page.get_by_label("k", exact=True).fill("4")
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    expect(page.locator("output")).to_have_text("10")
    page.get_by_label("Loss to minimize").select_option("gcp")
    page.get_by_role("button", name="Anonymize").click()
    expect(page.get_by_role("heading", name="The release")).to_be_visible()
    expect(page.locator("figure canvas").first).to_be_visible()
    shot("anonymize-result")

    # A click into the chart: on the ring, which is the chosen node.
    place = page.evaluate("""async () => {
      const canvas = document.querySelector("[data-lattice] canvas");
      canvas.scrollIntoView({ block: "center" });
      const box = canvas.getBoundingClientRect();
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let sum = [0, 0, 0];
      for (let y = 0; y < canvas.height; y++) for (let x = 0; x < canvas.width; x++) {
        const [r, g, b] = pixels.data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 3);
        if (r > 180 && g > 60 && g < 140 && b < 60) sum = [sum[0] + x, sum[1] + y, sum[2] + 1];
      }
      const scale = box.width / canvas.width;
      return [sum[0] / sum[2] * scale, sum[1] / sum[2] * scale];
    }""")
    canvas = page.locator("[data-lattice] canvas")
    canvas.hover(position={"x": place[0], "y": place[1]})
    expect(page.locator("#vg-tooltip-element.visible")).to_contain_text("suppressed")
    canvas.click(position={"x": place[0], "y": place[1]})
    expect(page.get_by_role("heading", name="Its first rows")).to_be_visible()
    expect(page.locator("[data-node-here] canvas")).to_be_visible()
    assert "node=" in page.url
    shot("anonymize-node")

    # The same by keyboard, with another one.
    chosen = page.get_by_label("The best that meet what was asked")
    chosen.select_option(index=1)
    page.get_by_role("button", name="Look at it").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-node-here]")).to_be_focused()
    page.reload()
    expect(page.get_by_role("heading", name="Its first rows")).to_be_visible()
    page.get_by_role("button", name="Use this one").click()
    expect(page.get_by_text("at levels chosen by hand")).to_be_visible()
    with page.expect_download() as download:
        page.locator(".files a").first.click()
    assert "Person" not in download.value.path().read_text()
    shot("anonymize-by-hand")
    page.get_by_role("link", name="Back to the generalizations that were tried").click()
    expect(page.get_by_label("The best that meet what was asked")).to_be_visible()


def test_f_slip(page, server, shot):
    page.goto(address(server))
    page.evaluate("document.querySelector('.settings').open = true")
    page.get_by_label("f-slip", exact=True).check()
    page.get_by_label("k", exact=True).fill("4")
    page.get_by_role("button", name="Anonymize").click()
    expect(page.get_by_role("heading", name="Its tables, and what was lost")).to_be_visible()
    shot("anonymize-persons")


def test_compare(page, server, shot, width):
    page.goto(address(server, "/compare"))
    if width == "wide":
        shot("compare-empty")
        for name in ("f-slip, linked", "1:M-Generalization"):
            page.get_by_label(name).uncheck()
        page.get_by_label("Persons to attack").fill("100")
        page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Loss and risk")).to_be_visible()
    expect(page.locator("figure canvas")).to_be_visible()
    shot("compare")


def test_attacks(page, server, shot, width):
    page.goto(address(server, "/attacks"))
    if width == "wide":
        shot("attacks-empty")
        page.get_by_label("Release", exact=True).select_option("anonymized/people-ola.csv")
        page.get_by_label("Persons to attack").fill("200")
        page.get_by_role("button", name="Attack").click()
    expect(page.get_by_role("heading", name="Attacks on anonymized/people-ola.csv")).to_be_visible()
    expect(page.locator("figure canvas")).to_be_visible()
    shot("attacks")


def test_a_search_that_cannot_succeed(page, server, shot):
    page.goto(address(server))
    page.evaluate("document.querySelector('.settings').open = true")
    page.get_by_label("OLA", exact=True).check()
    page.get_by_label("k", exact=True).fill("100000")
    page.get_by_role("button", name="Anonymize").click()
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    expect(page.get_by_label("k", exact=True)).to_have_value("100000")
    shot("anonymize-failed")

"""A custodian makes reports, looks at one in its frame, and makes the auditor's variant."""

from __future__ import annotations

import pyarrow as pa
import pytest
from playwright.sync_api import expect

from veilmark.mark.marking import CopyMarking
from veilmark.mark.request import ReleaseRequest
from veilmark.output import write_table
from veilmark.sample import voters
from veilmark.study.opening import open_study
from veilmark.veil.ola import Ola
from veilmark.workbench.anonymize import anonymize
from veilmark.workbench.release import release

STUDY = """\
version: 1
source: patients.csv
attributes:
  voter_id: {role: direct}
  zip: {role: quasi, hierarchy: {mask: 5}}
  gender: {role: quasi}
  yob: {role: quasi, hierarchy: {intervals: [2, 4, 8]}}
  diagnosis: {role: sensitive, weights: {u: 0.9, default: 0.1}}
"""


def test_nothing_to_report_on(page, server, shot, width):
    if width == "phone":
        pytest.skip("there is a study by now")
    page.get_by_role("link", name="Report", exact=True).click()
    expect(page.get_by_text("There is no study yet.")).to_be_visible()
    shot("reports-empty")


@pytest.fixture(scope="module")
def released(server):
    """A study, a release of it, and copies for two recipients."""
    folder = server.folder
    population = voters(8_000, 3)
    patients = population.slice(0, 1_200).select(["voter_id", "zip", "gender", "yob"])
    write_table(population, folder / "voters.csv")
    write_table(patients.append_column("diagnosis", pa.array([*"uvwxyz"] * 200)), folder / "patients.csv")
    (folder / "patients.yaml").write_text(STUDY)
    (folder / "anonymized").mkdir()
    (folder / "releases").mkdir()
    study = open_study(folder / "patients.yaml")
    anonymize(study, output=folder / "anonymized" / "patients.csv", method=Ola(0.1, k=5))
    marking = CopyMarking(("ada", "bob"), k=5, decoys=1, covers=3, risk=(1.0, 20.0))
    job = ReleaseRequest(folder / "voters.csv", ("voter_id",), marking, method=Ola(0.1), seed=7)
    made = release(study, job, folder / "ledger.db", folder / "ledger.key", folder / "releases" / "first")
    return made.release


def test_a_report_on_a_release(page, server, released, shot):
    page.goto(f"{server.url}/reports")
    page.get_by_label("Release", exact=True).select_option("anonymized/patients.csv")
    page.get_by_label("Title").fill("Patients, for the board")
    page.get_by_label("Try the attacks").uncheck()
    page.get_by_role("button", name="Make the report").click()
    page.get_by_role("link", name="Look at it").wait_for(timeout=120_000)
    shot("reports")
    page.get_by_role("link", name="Look at it").click()
    frame = page.frame_locator("iframe.report")
    expect(frame.get_by_role("heading", name="Patients, for the board")).to_be_visible()
    shot("report")
    with page.expect_download() as kept:
        page.get_by_role("link", name="Download").click()
    assert kept.value.suggested_filename.endswith(".html")


def test_the_auditors_variant(page, server, released, shot):
    page.goto(f"{server.url}/reports")
    page.get_by_role("button", name="Make the report").wait_for()
    page.get_by_label("Auditor’s variant").check()
    page.get_by_label("Try the attacks").uncheck()
    page.get_by_role("button", name="Make the report").click()
    expect(page.get_by_role("alert")).to_contain_text("belong to a release in the ledger")
    page.get_by_label("Release in the ledger").select_option(released)
    page.get_by_label("Compare the recipients’ copies with it").check()
    page.get_by_role("button", name="Make the report").click()
    page.get_by_role("link", name="Look at it").wait_for(timeout=120_000)
    shot("reports-auditor")
    page.get_by_role("link", name="Look at it").click()
    expect(page.frame_locator("iframe.report").get_by_text("Confidential: the auditor’s variant.")).to_be_visible()

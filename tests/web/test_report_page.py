"""The Report pages: what a report can be about, who may see which, and how it is shown."""

from __future__ import annotations

import re
import stat

import pyarrow as pa
import pytest

from veilmark.errors import OptionError
from veilmark.mark.marking import CopyMarking
from veilmark.mark.request import ReleaseRequest
from veilmark.output import write_table
from veilmark.sample import voters
from veilmark.study.opening import open_study
from veilmark.veil.ola import Ola
from veilmark.web.pages.report import _fitting, make_report
from veilmark.workbench import ledger as ledger_verbs
from veilmark.workbench.anonymize import anonymize
from veilmark.workbench.release import release as run_release
from web.helpers import Client, new_app, wait
from web.patients import STUDY


def made(client, **asked):
    """The result of making a report."""
    answer = client.post("/api/reports", json={"study": "people", "attacks": False, **asked})
    assert answer.status_code == 202, answer.text
    job = wait(client, answer.json())
    assert job["state"] == "done", job
    return client.get(f"/api/jobs/{job['id']}/result").json()


def test_a_report_on_the_source(workspace, analyst, auditor):
    assert "Make the report" in analyst.get("/reports").text
    result = made(analyst, title="For <the> board")
    assert result["file"].startswith("reports/people-source-")
    for client in (analyst, auditor):
        listed = client.get("/api/reports").json()["reports"]
        assert ("For <the> board", False) in [(r["title"], r["closed"]) for r in listed]
        assert "For &lt;the&gt; board" in client.get("/reports").text
    page = analyst.get(f"/reports/{result['file']}")
    assert re.search(r"<iframe[^>]*\ssandbox>", page.text)
    assert "frame-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    itself = analyst.get(f"/api/reports/{result['file']}")
    assert itself.headers["x-frame-options"] == "SAMEORIGIN"
    assert itself.headers["content-security-policy"].endswith("sandbox")
    assert "content-disposition" not in itself.headers
    kept = analyst.get(f"/api/reports/{result['file']}?download=true")
    assert kept.headers["content-disposition"].startswith("attachment")
    assert "person 3" not in kept.text


def test_a_release_file_with_limits(workspace, custodian):
    (workspace.folder / "anonymized").mkdir(exist_ok=True)
    anonymize(workspace.study("people"), output=workspace.folder / "anonymized" / "out.csv", method=Ola(k=2))
    form = {"study": "people", "release": "anonymized/out.csv", "require": "k=2, l.illness=50"}
    answer = custodian.post("/reports", data=form, follow_redirects=False)
    job = wait(custodian, {"id": answer.headers["location"].rpartition("=")[2]})
    assert job["state"] == "done", job
    page = custodian.get("/reports").text
    assert '<li class="fails">' in page
    assert '<li class="holds">' in page


@pytest.mark.parametrize("release", [None, "nothing.csv", "anonymized", "a\0b"])
def test_the_forms_limits_need_a_file(workspace, release):
    (workspace.folder / "anonymized").mkdir(exist_ok=True)
    assert _fitting(workspace, {"release": release, "require": ["k=5"]}) == []
    assert _fitting(workspace, {"release": "people.csv", "require": ["k=5"]}) == ["k=5"]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"study": "nothing"}, 404),
        ({"release": "nothing.csv"}, 404),
        ({"release": "../people.csv"}, 404),
        ({"release": "/etc/passwd"}, 404),
        ({"copies": True}, 400),
        ({"auditor": True}, 400),
        ({"ledger_release": "r1", "auditor": True}, 400),
    ],
)
def test_what_cannot_be(custodian, asked, status):
    assert custodian.post("/api/reports", json={"study": "people"} | asked).status_code == status


def test_a_failing_form_keeps_what_was_typed(custodian):
    answer = custodian.post("/reports", data={"study": "people", "copies": "on", "title": "My board"})
    assert answer.status_code == 400
    assert "belong to a release in the ledger" in answer.text
    assert "My board" in answer.text


def test_the_ledger_is_not_for_analysts(analyst):
    for asked in ({"ledger_release": "r1"}, {"copies": True}, {"auditor": True}):
        assert analyst.post("/api/reports", json={"study": "people"} | asked).status_code == 403
    assert "With whom" not in analyst.get("/reports").text


@pytest.mark.parametrize("path", ["confidential/x.html", "reports/x.html", "data/x.html", "reports/..%2Fx.html"])
def test_files_that_are_no_reports(workspace, custodian, path):
    (workspace.folder / "data").mkdir(exist_ok=True)
    (workspace.folder / "data" / "x.html").write_text("<title>x</title>")
    assert custodian.get(f"/api/reports/{path}").status_code == 404
    assert custodian.get(f"/reports/{path}").status_code == 404


def test_links_out_are_not_followed(workspace, custodian, tmp_path):
    (tmp_path / "secret.html").write_text("<title>secret</title>")
    (workspace.folder / "reports").mkdir(exist_ok=True)
    (workspace.folder / "reports" / "link.html").symlink_to(tmp_path / "secret.html")
    assert custodian.get("/api/reports/reports/link.html").status_code == 404
    assert "secret" not in custodian.get("/reports").text


def test_a_job_of_another_page_is_not_shown(custodian):
    job = custodian.post("/api/studies/people/measures").json()
    assert custodian.get(f"/reports?job={job['id']}").status_code == 404


# --- with a ledger ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """An app whose ledger has a release to two recipients, and the release's id."""
    app = new_app(tmp_path_factory.mktemp("released"))
    folder = app.state.workspace.folder
    assert "No release is in the ledger yet" in Client(app, "auditor").get("/reports").text
    population = voters(8_000, 3)
    patients = population.slice(0, 1_200).select(["voter_id", "zip", "gender", "yob"])
    patients = patients.append_column("diagnosis", pa.array([*"uvwxyz"] * 200))
    write_table(population, folder / "voters.csv")
    write_table(patients, folder / "patients.csv")
    (folder / "patients.yaml").write_text(STUDY)
    (folder / "releases").mkdir()
    marking = CopyMarking(("ada", "bob"), k=5, decoys=1, covers=3, risk=(1.0, 20.0))
    job = ReleaseRequest(folder / "voters.csv", ("voter_id",), marking, method=Ola(0.1), seed=7)
    study = open_study(folder / "patients.yaml")
    made = run_release(study, job, folder / "ledger.db", folder / "ledger.key", folder / "releases" / "first")
    return app, made.release


def asked(release, **more):
    return {"study": "patients", "attacks": False, "ledger_release": release, **more}


def decoys_of(workspace, release):
    found = ledger_verbs.decoys(workspace.ledger, release, workspace.key)
    return [row["voter_id"] for rows in found.values() for row in rows]


def test_a_release_in_the_ledger(released):
    app, release = released
    workspace = app.state.workspace
    assert [r["id"] for r in Client(app, "auditor").get("/api/reports").json()["ledger"]] == [release]
    assert Client(app, "analyst").get("/api/reports").json()["ledger"] == []
    result = make_report(workspace, **asked(release, copies=True))
    assert result["file"].startswith("confidential/")
    assert not result["confidential"]
    page = (workspace.folder / result["file"]).read_text()
    assert "ada" in page
    assert "as published" in page
    assert not any(decoy in page for decoy in decoys_of(workspace, release))


def test_the_auditors_variant_is_for_custodian_and_auditor(released):
    app, release = released
    workspace = app.state.workspace
    auditor, analyst, custodian = (Client(app, role) for role in ("auditor", "analyst", "custodian"))
    assert "name the decoys" in auditor.get("/reports").text
    answer = auditor.post("/api/reports", json=asked(release, auditor=True))
    assert answer.json()["roles"] == ["custodian", "auditor"]
    job = wait(auditor, answer.json())
    assert job["state"] == "done", job
    file = auditor.get("/api/reports").json()["result"]["file"]
    path = workspace.folder / file
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    decoys = decoys_of(workspace, release)
    for client in (auditor, custodian):
        assert all(decoy in client.get(f"/api/reports/{file}").text for decoy in decoys)
        assert "for custodian and auditor" in client.get(f"/reports/{file}").text
    assert not any(decoy in auditor.get("/reports").text for decoy in decoys)
    for url in (f"/api/reports/{file}", f"/reports/{file}", f"/api/jobs/{job['id']}/result", f"/download/{file}"):
        assert analyst.get(url).status_code == 404
    assert file not in analyst.get("/reports").text + analyst.get("/api/reports").text
    assert "looked at confidential/" in app.state.audit.last(20)[-1].what + str(app.state.audit.last(20))


def test_recipients_copies_are_not_for_analysts(released):
    app, _ = released
    copy = "releases/first/ada.csv"
    assert copy in Client(app, "custodian").get("/api/reports").json()["releases"]
    analyst = Client(app, "analyst")
    assert not any(r.startswith("releases") for r in analyst.get("/api/reports").json()["releases"])
    assert analyst.post("/api/reports", json={"study": "patients", "release": copy}).status_code == 404


def test_copies_that_are_elsewhere(released, tmp_path):
    app, release = released
    folder = app.state.workspace.folder / "releases" / "first"
    folder.rename(tmp_path / "first")
    try:
        with pytest.raises(OptionError, match="not in the workspace"):
            make_report(app.state.workspace, **asked(release, copies=True))
    finally:
        (tmp_path / "first").rename(folder)


def test_a_damaged_ledger_is_told(released):
    app, _ = released
    ledger = app.state.workspace.ledger
    content = ledger.read_bytes()
    ledger.write_bytes(b"no ledger at all" * 100)
    try:
        answer = Client(app, "auditor").get("/reports")
        assert answer.status_code == 200
        assert "notice bad" in answer.text
        assert str(app.state.workspace.folder) not in answer.text
    finally:
        ledger.write_bytes(content)

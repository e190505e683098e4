"""The Trace page: evidence in, who is named and why out; for the custodian and the auditor."""

from __future__ import annotations

import io
import os

import pytest

from veilmark.web.pages.trace import _tidy
from veilmark.workbench import ledger
from web.helpers import Client, wait
from web.patients import add_patients, make_release


def test_before_the_first_release(auditor):
    assert "Nothing was released yet" in auditor.get("/trace").text
    assert auditor.post("/api/trace", json={"text": "a\n1\n"}).status_code == 400


@pytest.fixture(scope="module")
def released(app):
    add_patients(app.state.workspace)
    return make_release(Client(app, "custodian"))


@pytest.fixture(scope="module")
def claims(app, released):
    """Bob's decoys, as somebody would claim to have found them."""
    workspace = app.state.workspace
    rows = ledger.decoys(workspace.ledger, released["release"], workspace.key)["bob"]
    return "voter_id\n" + "".join(f"{row['voter_id']}\n" for row in rows)


@pytest.fixture(scope="module")
def traced(app, claims):
    """The job that traced them, by the form."""
    client = Client(app, "auditor")
    page = client.post("/trace", data={"kind": "claims", "text": claims, "false_accusation": "0.001", "release": ""})
    assert page.status_code == 200
    done = wait(client, {"id": page.url.params["job"]})
    assert done["state"] == "done", done["error"]
    return done


def test_claims_lead_to_their_source(auditor, workspace, claims, traced):
    found = auditor.get("/api/trace", params={"job": traced["id"]}).json()["traced"]
    assert found["accused"] == ["bob"]
    assert [r["name"] for r in found["recipients"]] == ["bob", "ada"]
    shown = auditor.get("/trace", params={"job": traced["id"]}).text
    assert "Named: bob" in shown
    assert "decoy class claimed" in shown
    assert "secret key drew the decoy classes" in shown
    assert not any(person in shown for person in claims.split()[1:])
    assert traced["charts"]
    assert not list((workspace.private / "evidence").iterdir())


def test_the_report(auditor, app, traced):
    for url in ("/trace/report", "/api/trace/report"):
        answer = auditor.get(url, params={"job": traced["id"]})
        assert "Named: bob" in answer.text
        assert "attachment" in answer.headers["content-disposition"]
    assert app.state.audit.last(1)[0].what == "downloaded the report of a trace"
    assert auditor.get("/trace/report", params={"job": "nothing"}).status_code == 404
    assert auditor.get("/trace/report").status_code == 404
    assert auditor.get("/trace/marks", params={"job": traced["id"]}).status_code == 404


def test_a_leaked_file(custodian, workspace, released):
    copy = (workspace.folder / released["recipients"][0]["file"]).read_bytes()
    file = {"file": ("found on the web.csv", io.BytesIO(copy), "text/csv")}
    asked = {"release": released["release"], "false_accusation": 0.001}
    done = wait(custodian, custodian.post("/api/trace/file", files=file, params=asked).json())
    assert done["state"] == "done", done["error"]
    found = custodian.get("/api/trace").json()["traced"]
    assert (found["accused"], found["kind"]) == (["ada"], "leak")
    page = custodian.get("/trace", params={"release": released["release"]}).text
    assert "found-on-the-web.csv" in page
    assert "is, byte for byte, the copy of ada" in page
    assert "Recorded in the ledger before the evidence was compared" in page
    renamed = copy.replace(b"zip", b"region", 1)
    file = {"file": ("renamed.csv", io.BytesIO(renamed), "text/csv")}
    again = wait(
        custodian, custodian.post("/api/trace/file", files=file, params={**asked, "columns": "region=zip"}).json()
    )
    found = custodian.get("/api/trace").json()["traced"]
    assert (again["state"], found["accused"], found["columns"]["zip"]) == ("done", ["ada"], "region")
    assert "region as zip" in custodian.get("/trace").text
    refused = custodian.post("/api/trace/file", files=file, params={**asked, "columns": "region"})
    assert (refused.status_code, "THEIRS=OURS" in refused.text) == (400, True)
    for url in ("/trace/marks", "/api/trace/marks"):
        whole = custodian.get(url, params={"job": done["id"]})
        hidden = custodian.get(url, params={"job": done["id"], "redacted": True})
        assert whole.text.count("\n") == hidden.text.count("\n") > 1
        assert "holds: ada" in hidden.text.splitlines()[0]
        assert len(hidden.text.splitlines()[0].split(",")) < len(whole.text.splitlines()[0].split(","))
    assert f'<option value="{released["release"]}" selected>' in page


def test_nobody_is_named_by_claims_about_others(auditor, released):
    asked = {"text": "voter_id\nnobody-1\nnobody-2\n", "false_accusation": 0.001}
    assert wait(auditor, auditor.post("/api/trace", json=asked).json())["state"] == "done"
    assert auditor.get("/api/trace").json()["traced"]["accused"] == []
    page = auditor.get("/trace").text
    assert "Nobody is named" in page
    assert "That clears nobody" in page


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "Choose a file or paste"),
        ({"text": "a\n1"}, None),
        ({"text": "a\n1", "kind": "gossip"}, "Say what the evidence is"),
        ({"text": "a\n1", "release": "r12345678"}, "no published release"),
        ({"text": "a\n1", "false_accusation": "little"}, "must be a number"),
        ({"text": "a\n1", "false_accusation": "2"}, "between 0 and 1"),
    ],
)
def test_what_is_wrong_is_said_at_the_form(auditor, released, asked, says):
    page = auditor.post("/trace", data={"kind": "claims", "false_accusation": "1e-06"} | asked)
    if says is not None:
        assert page.status_code == 400
        assert says in page.text
    else:
        done = wait(auditor, {"id": page.url.params["job"]})
        assert done["state"] == "failed"
        assert "cannot be compared with any release" in done["error"]
        assert "cannot be compared with any release" in auditor.get("/trace").text


def test_evidence_that_was_never_traced_is_removed(tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    for file in (old, new):
        file.write_text("a\n1\n")
    os.utime(old, (0, 0))
    _tidy(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["new.csv"]


def test_a_file_that_is_no_table(auditor, released):
    file = {"file": ("evidence.exe", io.BytesIO(b"MZ"), "application/octet-stream")}
    assert auditor.post("/api/trace/file", files=file).status_code == 400
    page = auditor.post("/trace", data={"kind": "leak", "false_accusation": "1e-06"}, files=file)
    assert page.status_code == 400
    assert "neither CSV nor Parquet" in page.text


def test_the_analyst_sees_nothing(analyst, claims, traced):
    job = traced["id"]
    files = [f"{api}/trace/{file}?job={job}" for api in ("", "/api") for file in ("report", "marks")]
    for url in ("/trace", "/api/trace", *files):
        assert analyst.get(url).status_code == 403
    assert analyst.get(f"/api/jobs/{job}/result").status_code == 404
    assert analyst.get(f"/api/jobs/{job}/charts/chart-1.svg").status_code == 404
    assert analyst.post("/api/trace", json={"text": claims}).status_code == 403

"""The Ledger pages: releases, one release, its decoys on a click that is audited, checking, a backup."""

from __future__ import annotations

import pytest

from veilmark.workbench import ledger
from web.helpers import Client, wait
from web.patients import add_patients, make_release


def test_before_the_first_release(custodian, auditor):
    assert auditor.get("/api/ledger").json() == {"releases": [], "job": None, "verified": None, "problem": None}
    assert "The custodian makes releases" in auditor.get("/ledger").text
    assert "Nothing was released yet" in custodian.get("/ledger").text
    for url in ("/api/ledger/r00000000", "/api/ledger/backup", "/ledger/backup", "/ledger/anchor", "/ledger/r00000000"):
        assert auditor.get(url).status_code == 404
    assert auditor.post("/api/ledger/verify", json={}).status_code == 404


@pytest.fixture(scope="module")
def released(app):
    add_patients(app.state.workspace)
    return make_release(Client(app, "custodian"))


def test_the_list(custodian, auditor, released):
    found = auditor.get("/api/ledger").json()["releases"]
    assert [(r["id"], r["study"], r["recipients"], r["status"]) for r in found] == [
        (released["release"], "patients.yaml", ["ada", "bob"], "published")
    ]
    assert f"/ledger/{released['release']}" in custodian.get("/ledger").text


def test_a_release(custodian, auditor, released):
    url = f"/ledger/{released['release']}"
    found = auditor.get(f"/api{url}").json()
    ada = found["recipients"][0]
    assert (ada["name"], ada["agreement"], ada["contact"], ada["consent"]) == ("ada", "A-1", "ada@ada.example", "§ 4")
    assert len(ada["digest"]) == 64
    assert found["parameters"]["k"] == 5
    assert [entry["kind"] for entry in found["history"]] == ["started", "prepared", "published"]
    assert not found["folder"].startswith("/")
    assert f"/download/{ada['download']}" in custodian.get(url).text
    page = auditor.get(url).text
    assert "/download/" not in page
    assert ada["digest"] in page
    assert "Show the decoys" in page


def test_decoys_are_shown_on_a_click_and_the_audit_log_tells(app, auditor, released, workspace):
    url = f"/ledger/{released['release']}"
    persons = [row["voter_id"] for rows in _decoys(workspace, released).values() for row in rows]
    assert not any(person in auditor.get(url).text for person in persons)
    page = auditor.post(f"{url}/decoys")
    assert page.status_code == 200
    assert all(person in page.text for person in persons)
    entry = app.state.audit.last(1)[0]
    assert (entry.who, entry.what) == ("auditor", f"looked at the decoys of release {released['release']}")
    found = auditor.post(f"/api{url}/decoys").json()
    assert found["decoys"] == _decoys(workspace, released)


def _decoys(workspace, released):
    return ledger.decoys(workspace.ledger, released["release"], workspace.key)


def test_checking(auditor, released, workspace):
    job = auditor.post("/api/ledger/verify", json={}).json()
    assert wait(auditor, job)["state"] == "done"
    found = auditor.get("/api/ledger").json()["verified"]
    assert (found["ok"], found["entries"], found["secrets"], found["files"]) == (True, 3, 1, 2)
    whole = "The ledger is whole: 3 entries; sealed by the key: 3; secrets opened: 1; files compared: 2"
    assert whole in auditor.get("/ledger").text
    page = auditor.post("/ledger/verify", data={"head": found["head"]})
    assert wait(auditor, {"id": page.url.params["job"]})["state"] == "done"
    assert auditor.post("/ledger/verify", data={"head": "abc"}).status_code == 400
    assert auditor.post("/api/ledger/verify", json={"head": "abc"}).status_code == 422


def test_a_head_that_is_gone_and_a_copy_that_was_changed(auditor, released, workspace):
    copy = workspace.folder / released["recipients"][0]["file"]
    before = copy.read_bytes()
    copy.write_bytes(before + b"x")
    wait(auditor, auditor.post("/api/ledger/verify", json={}).json())
    page = auditor.get("/ledger").text
    copy.write_bytes(before)
    assert "some copies are not as they were published" in page
    assert released["recipients"][0]["file"] in page
    assert str(workspace.folder) not in page
    wait(auditor, auditor.post("/api/ledger/verify", json={"head": "0" * 63 + "1"}).json())
    assert "The ledger was changed" in auditor.get("/ledger").text


def test_an_anchor(app, auditor, released, workspace, tmp_path):
    for url in ("/ledger/anchor", "/api/ledger/anchor"):
        (tmp_path / "anchor.json").write_bytes(auditor.get(url).content)
        noted = ledger.Noted(anchors=(tmp_path / "anchor.json",))
        assert ledger.verify(workspace.ledger, noted=noted).ok
    assert app.state.audit.last(1)[0].what == "downloaded an anchor of the ledger"


def test_a_backup(app, auditor, released, tmp_path):
    for url in ("/ledger/backup", "/api/ledger/backup"):
        answer = auditor.get(url)
        assert answer.status_code == 200
        assert "attachment" in answer.headers["content-disposition"]
    assert app.state.audit.last(1)[0].what == "downloaded a backup of the ledger"
    (tmp_path / "backup.jsonl").write_bytes(answer.content)
    assert ledger.restore(tmp_path / "backup.jsonl", tmp_path / "other.db").entries == 3


def test_the_analyst_sees_nothing(analyst, released):
    url = f"/ledger/{released['release']}"
    files = [f"{api}/ledger/{file}" for api in ("", "/api") for file in ("anchor", "backup")]
    for path in ("/ledger", "/api/ledger", url, f"/api{url}", *files):
        assert analyst.get(path).status_code == 403
    assert analyst.post(f"/api{url}/decoys").status_code == 403


def test_without_the_key(auditor, released, workspace):
    kept = workspace.key.rename(workspace.folder / "elsewhere.key")
    try:
        answer = auditor.post(f"/api/ledger/{released['release']}/decoys")
        assert answer.status_code == 400
        assert "no key file" in answer.json()["error"]
        assert str(workspace.folder) not in answer.text
        job = wait(auditor, auditor.post("/api/ledger/verify", json={}).json())
        assert job["state"] == "done"
    finally:
        kept.rename(workspace.key)
    assert auditor.get("/api/ledger").json()["verified"]["secrets"] is None


def test_a_damaged_ledger(auditor, released, workspace):
    before = workspace.ledger.read_bytes()
    workspace.ledger.write_bytes(b"nothing of the kind" * 100)
    try:
        assert "is not a ledger" in auditor.get("/api/ledger").json()["problem"]
        assert "is not a ledger" in auditor.get("/ledger").text
        assert auditor.get("/trace").status_code == 200
    finally:
        workspace.ledger.write_bytes(before)

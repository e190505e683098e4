"""Nothing outside of the workspace is reached, uploads have limits, and the audit log tells who did what."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark.errors import OptionError, OutputError
from veilmark.web.access.audit import Audit
from veilmark.web.workspace import NotFoundError, Workspace, slug
from web.helpers import PASSWORD, Client, new_app, people

ESCAPES = [
    "../outside.csv",
    "../../etc/passwd",
    "/etc/passwd",
    "data/../../outside.csv",
    "..",
    ".",
    "",
    "link.csv",
    "linked/outside.csv",
    ".veilmark/users.json",
    ".veilmark/x.csv",
    "ledger.key",
    "ledger.db",
    "people.yaml",
    "people.csv\0",
    "x" * 5_000 + ".csv",
    "anonymized/../.veilmark/x.csv",
]


@pytest.fixture
def guarded(tmp_path):
    """A workspace beside a file that nobody may have, with links to it."""
    (tmp_path / "outside.csv").write_text("secret\n1\n")
    (tmp_path / "outside.yaml").write_text("source: outside.csv\n")
    workspace = Workspace.open(tmp_path / "work")
    (workspace.folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    (workspace.folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (workspace.folder / "linked").symlink_to(tmp_path)
    (workspace.private / "x.csv").write_text("secret\n1\n")
    for name in ("ledger.key", "ledger.db", "people.csv"):
        (workspace.folder / name).write_text("x")
    return workspace


@pytest.mark.parametrize("path", ESCAPES)
def test_no_path_leads_out(guarded, path):
    for find in (guarded.table, guarded.output):
        with pytest.raises(NotFoundError):
            find(path)


@given(
    st.text(max_size=30) | st.lists(st.sampled_from(["..", ".", "work", "/", "outside.csv", "\\", "~"])).map("/".join)
)
def test_no_name_leads_out(tmp_path_factory, name):
    folder = tmp_path_factory.getbasetemp() / "names"
    workspace = Workspace.open(folder / "work")
    (folder / "outside.csv").write_text("x")
    for find in (workspace.table, workspace.output, workspace.study_file):
        with pytest.raises(NotFoundError):
            find(name)
    assert workspace.new_study(name).parent == workspace.folder
    assert workspace.new_output("reports", name, ".html").parent == workspace.folder / "reports"


def test_links_out_are_not_listed(guarded):
    assert guarded.tables() == ["people.csv"]
    assert guarded.studies() == []
    with pytest.raises(NotFoundError):
        guarded.study_file("link")


def test_outputs(guarded):
    for name in ("anonymized/a.csv", "releases/r1/bob.csv"):
        (guarded.folder / name).parent.mkdir(parents=True)
        (guarded.folder / name).write_text("x")
        assert guarded.output(name).read_text() == "x"
    assert guarded.tables() == ["people.csv"]


@pytest.mark.parametrize(
    "path", ["../people.yaml", "%2e%2e/people.yaml", "..%2fpeople.yaml", "/etc/passwd", ".veilmark/users.json"]
)
def test_downloads_lead_nowhere_else(custodian, path):
    assert custodian.get(f"/download/{path}").status_code == 404
    assert custodian.get(f"/static/{path}").status_code == 404


def test_downloads_by_role(app, workspace, custodian, analyst, auditor):
    for name in ("anonymized/a.csv", "releases/r1/bob.csv", "reports/r.html"):
        (workspace.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace.folder / name).write_text("x")
    found = {
        name: [client.get(f"/download/{name}").status_code for client in (custodian, analyst, auditor)]
        for name in ("anonymized/a.csv", "releases/r1/bob.csv", "reports/r.html")
    }
    assert found == {
        "anonymized/a.csv": [200, 200, 403],
        "releases/r1/bob.csv": [200, 403, 403],
        "reports/r.html": [200] * 3,
    }
    answer = custodian.get("/download/reports/r.html")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "downloaded reports/r.html" in [entry.what for entry in app.state.audit.last(5)]


@pytest.mark.parametrize("hierarchy", [{"file": "/etc/passwd"}, {"file": "../outside.csv"}, {"file": "people.yaml"}])
def test_hierarchy_files_lie_in_the_workspace(custodian, hierarchy):
    answer = custodian.post("/api/studies/people/preview?column=age", json={"hierarchy": hierarchy})
    assert answer.status_code == 400
    assert "There is no table" in answer.json()["error"]
    edit = {"attributes": {"age": {"role": "quasi", "hierarchy": hierarchy}}}
    answer = custodian.put("/api/studies/people", json=edit)
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["age"]


@pytest.mark.parametrize("weights", [{"ahp": "/etc/passwd"}, {"ahp": ["../x.csv"]}, {"model": "/etc/passwd"}])
def test_weight_files_lie_in_the_workspace(custodian, weights):
    edit = {"attributes": {"illness": {"role": "sensitive", "weights": weights}}}
    assert custodian.put("/api/studies/people", json=edit).status_code == 400


def test_the_private_part_is_private(workspace):
    assert stat.S_IMODE(workspace.private.stat().st_mode) == 0o700
    for file in ("users.json", "audit.jsonl"):
        assert stat.S_IMODE((workspace.private / file).stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_a_workspace(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Name another"):
        Workspace.open(tmp_path / "file" / "work")


@given(st.text(max_size=100))
def test_slugs_are_plain(text):
    made = slug(text)
    assert made
    assert made == Path(made).name
    assert not made.startswith(".")


# --- uploads ---------------------------------------------------------------------------------------------------


def test_uploads_get_fresh_names(guarded):
    for _ in range(2):
        with guarded.upload("data", "../My Täble.CSV") as (_, file):
            file.write(b"a\n1\n")
    assert guarded.tables() == ["data/my-table-2.csv", "data/my-table.csv", "people.csv"]
    with pytest.raises(OptionError, match="neither CSV nor Parquet"):
        guarded.store("data", "evil.py", open(os.devnull, "rb"))  # noqa: SIM115


def test_an_upload_that_fails_leaves_nothing(guarded):
    def fail():
        with guarded.upload("data", "a.csv") as (_, file):
            file.write(b"x")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert guarded.tables() == ["people.csv"]


def test_upload_limit(tmp_path):
    app = new_app(tmp_path, upload_limit=10_000)
    client = Client(app, "custodian")
    small = {"file": ("a.csv", people(10).encode())}
    assert client.post("/api/uploads", files=small).status_code == 202
    large = {"file": ("b.csv", people(2_000).encode())}
    answer = client.post("/api/uploads", files=large)
    assert answer.status_code == 413
    assert "larger than" in answer.json()["error"]
    assert app.state.workspace.tables() == ["data/a.csv", "people.csv"]
    app.state.jobs.close()


def test_a_body_without_a_length_has_the_limit_too(custodian, stranger):
    def pieces():
        for _ in range(90):
            yield b"x" * 100_000

    kind = {"Content-Type": "application/json"}
    assert custodian.post("/api/samples", content=pieces(), headers=kind).status_code == 413
    assert (
        stranger.post(
            "/login", content=pieces(), headers={"Content-Type": "application/x-www-form-urlencoded"}
        ).status_code
        == 413
    )
    assert custodian.post("/api/samples", headers={"Content-Length": "-1"}).status_code == 400


# --- the audit log ---------------------------------------------------------------------------------------------


def test_the_audit_log_tells_who_did_what(app, custodian, stranger, auditor, analyst):
    custodian.post("/studies/people", data={"role:age": "quasi"})
    stranger.post("/login", data={"name": "custodian", "password": "a secret password"})
    stranger.post("/login", data={"name": "custodian", "password": PASSWORD})
    entries = auditor.get("/api/audit").json()["entries"]
    newest = [(e["who"], e["what"], e.get("study"), e.get("status")) for e in entries[:3]]
    assert newest == [
        ("custodian", "logged in", None, 303),
        ("custodian", "log-in refused", None, 403),
        ("custodian", "saved the roles", "people", 303),
    ]
    log = (app.state.workspace.private / "audit.jsonl").read_text()
    for secret in (
        "a secret password",
        PASSWORD,
        custodian.token,
        *custodian.cookies.values(),
        *stranger.cookies.values(),
    ):
        assert secret not in log
    assert analyst.get("/api/audit").status_code == 403
    assert "saved the roles" in auditor.get("/audit").text


def test_entries_stay(tmp_path):
    audit = Audit(tmp_path / "audit.jsonl")
    assert audit.last(5) == []
    for i in range(4):
        audit.write("eva\n", "analyst", "127.0.0.1", f"did {i}")
    assert [entry.what for entry in audit.last(2)] == ["did 3", "did 2"]
    assert len((tmp_path / "audit.jsonl").read_text().splitlines()) == 4

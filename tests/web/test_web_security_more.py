"""What attackers tried: other spellings of paths, halves of characters, bombs, floods, and damaged logs."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from veilmark.web.access.sessions import Access
from veilmark.web.app import create_app
from veilmark.web.pages.report import is_closed
from veilmark.web.tasks import jobs as jobs_module
from veilmark.web.workspace import NotFoundError, Workspace
from web.helpers import PASSWORD, Client, wait

HALF = "\ud800"
COPY = "releases/people-1/ada.csv"


@pytest.fixture
def copy(workspace):
    """A recipient's copy in the workspace."""
    file = workspace.folder / COPY
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("age,illness\n20-24,flu\n25-29,cold\n")
    return file


# --- recipients' copies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelled", ["", "%2e/", "%2e/%2e/"])
def test_copies_are_the_custodians_however_their_path_is_spelled(custodian, analyst, auditor, copy, spelled):
    address = f"http://127.0.0.1:8000/download/{spelled}{COPY}"
    assert analyst.get(address).status_code == auditor.get(address).status_code == 403
    assert custodian.get(address).status_code == 200


def test_no_study_is_made_of_a_copy(analyst, copy, workspace):
    link = workspace.folder / "link.csv"
    link.symlink_to(copy)
    try:
        for table in (COPY, f"./{COPY}", str(copy), "link.csv"):
            answer = analyst.post("/api/studies", json={"table": table})
            assert answer.status_code == 404, table
    finally:
        link.unlink()


def test_no_hierarchy_is_read_from_a_copy(analyst, copy):
    tried = analyst.post("/api/studies/people/preview?column=age", json={"hierarchy": {"file": COPY}})
    assert tried.status_code == 400
    assert "20-24" not in tried.text
    attribute = {"role": "quasi", "hierarchy": {"file": COPY}}
    saved = analyst.put("/api/studies/people", json={"attributes": {"age": attribute}})
    assert saved.status_code == 400


def test_outputs_are_not_reached_by_links_from_another_folder(workspace, copy):
    link = workspace.folder / "anonymized" / "link.csv"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(copy)
    try:
        with pytest.raises(NotFoundError):
            workspace.output("anonymized/link.csv")
    finally:
        link.unlink()


def test_a_report_on_a_copy_is_closed():
    assert is_closed(COPY, None)
    assert is_closed("./releases/x", None)
    assert is_closed(None, "r1")
    assert not is_closed("anonymized/x.csv", None)
    assert not is_closed(None, None)


def test_others_on_this_computer_cannot_look_into_a_new_workspace(tmp_path):
    made = Workspace.open(tmp_path / "new")
    made.new_output("releases", "x")
    for folder in (made.folder, made.folder / "releases"):
        assert os.stat(folder).st_mode & 0o077 == 0


# --- direct identifiers ----------------------------------------------------------------------------------------


def test_the_preview_shows_no_direct_identifier(analyst):
    by_api = analyst.post("/api/studies/people/preview?column=name", json={})
    by_form = analyst.post("/studies/people/preview?column=name", data={"kind": "none"})
    assert by_api.status_code == by_form.status_code == 404
    assert "person 1" not in by_api.text + by_form.text


# --- requests that broke something -----------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["http://[", "null", "", "http://127.0.0.1:8000@evil.example", "//127.0.0.1:8000"])
def test_odd_origins_are_refused(stranger, custodian, origin):
    for client, path in ((stranger, "/login"), (custodian, "/studies/people")):
        answer = client.post(path, headers={"Origin": origin})
        assert answer.status_code == 403
        assert "content-security-policy" in answer.headers


@pytest.mark.parametrize("charset", ["utf-7", "unicode_escape", "undefined", "UTF-16"])
def test_forms_are_utf8(stranger, analyst, charset):
    body = b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\n+2AA-\\ud800\r\n--x--\r\n'
    kind = {"Content-Type": f"multipart/form-data; boundary=x; Charset={charset}"}
    assert stranger.post("/login", content=body, headers=kind).status_code == 415
    assert analyst.post("/studies/people", content=body, headers=kind).status_code == 415


@pytest.mark.parametrize(
    ("method", "path", "content"),
    [
        ("POST", "/api/studies", {"table": HALF}),
        ("PUT", "/api/studies/people", {"person": HALF, "attributes": {}}),
        ("PUT", "/api/studies/people", {"attributes": {HALF: {"role": "direct"}}}),
        ("POST", "/api/studies/people/anonymize", {"l": {HALF: 1}}),
        ("POST", "/api/studies/people/release", {"population": HALF}),
    ],
)
def test_halves_of_characters_are_refused(custodian, workspace, method, path, content):
    before = workspace.study_file("people").read_text()
    kind = {"Content-Type": "application/json"}
    assert custodian.request(method, path, content=json.dumps(content), headers=kind).status_code == 422
    assert workspace.study_file("people").read_text() == before


def test_whole_characters_of_two_halves_are_taken(custodian):
    body = json.dumps({"table": "\U0001f600.csv"})  # JSON spells it \ud83d\ude00.
    answer = custodian.post("/api/studies", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 404


def test_a_damaged_line_hides_no_other_of_the_audit_log(auditor, app):
    app.state.audit.write("eva", "custodian", "-", "did something")
    with app.state.audit.path.open("ab") as log:
        log.write(b'{"time": "2026", "who": "\\ud800"}\n{"cut off\n\xff\xfe\n')
    assert "did something" in auditor.get("/audit").text
    entries = auditor.get("/api/audit?count=4").json()["entries"]
    assert [e["what"] for e in entries[1:]].count("did something") == 1


def test_jobs_of_other_pages_are_not_taken_for_new_studies(analyst):
    job = wait(analyst, analyst.post("/api/studies/people/measures").json())
    assert analyst.get(f"/studies?job={job['id']}").status_code == 404


def test_long_names_are_only_not_found(custodian, workspace):
    (workspace.folder / "reports").mkdir(exist_ok=True)
    assert custodian.get(f"/reports/reports/{'a' * 400}.html").status_code == 404
    assert custodian.post("/reports", data={"study": "people", "release": "a" * 400}).status_code == 400


def test_uploads_of_one_name_at_once_are_all_kept(workspace, tmp_path):
    contents = [f"a,b\n{i},{i}\n".encode() for i in range(20)]

    def store(content):
        with (tmp_path / f"{hash(content)}").open("w+b") as file:
            file.write(content)
            file.seek(0)
            return workspace.store("data", "same.csv", file)

    with ThreadPoolExecutor(8) as pool:
        stored = list(pool.map(store, contents))
    assert len(set(stored)) == len(contents)
    assert [(workspace.folder / path).read_bytes() for path in stored] == contents


# --- too much --------------------------------------------------------------------------------------------------


def test_a_model_that_repeats_itself_is_refused(analyst):
    """Seven levels of nine aliases each are millions of concepts."""
    lines = ["tree:", "  r0: &r0 {sensitivity: 1, values: {x: 1}}"]
    for i in range(1, 8):
        below = ", ".join(f"c{i}{j}: *r{i - 1}" for j in range(9))
        lines.append(f"  r{i}: &r{i} {{sensitivity: 1, children: {{{below}}}}}")
    answer = analyst.post("/api/studies/people/score/model", json={"text": "\n".join(lines)})
    assert answer.status_code == 400
    assert "refers to parts of itself" in answer.json()["error"]


def test_a_star_in_a_text_is_no_reference(analyst):
    text = "tree:\n  illness: {sensitivity: 1, values: {flu: 0.1, '*': 1}}\n"
    assert analyst.post("/api/studies/people/score/model", json={"text": text}).status_code == 200


@pytest.mark.parametrize("hierarchy", [{"mask": 10**9}, {"mask": "100000"}, {"levels": [{"1": "2"}] * 201}])
def test_hierarchies_of_very_many_levels_are_refused(analyst, hierarchy):
    tried = analyst.post("/api/studies/people/preview?column=age", json={"hierarchy": hierarchy})
    assert tried.status_code == 400
    attributes = {"age": {"role": "quasi", "hierarchy": hierarchy}}
    assert analyst.put("/api/studies/people", json={"attributes": attributes}).status_code == 400


def test_only_so_many_jobs_wait(analyst, monkeypatch):
    monkeypatch.setattr(jobs_module, "MOST_WAITING", 0)
    answer = analyst.post("/api/studies/people/measures")
    assert answer.status_code == 503
    assert "wait already" in answer.json()["error"]


# --- coming in -------------------------------------------------------------------------------------------------


def test_a_cookie_that_a_stranger_brings_is_never_taken_over(app):
    stranger = Client(app)
    stranger.cookies.set(app.state.access.cookie, "fixed")
    entered = stranger.post("/login", data={"name": "analyst", "password": PASSWORD}, follow_redirects=False)
    assert entered.status_code == 303
    given = entered.headers["set-cookie"].lower()
    assert "fixed" not in given
    assert "httponly" in given
    assert "samesite=lax" in given
    assert app.state.access.sessions.find("fixed") is None


def test_of_many_who_show_the_link_at_once_one_comes_in(tmp_path):
    access = Access(token="t" * 32)
    create_app(tmp_path / "w", access)
    with ThreadPoolExecutor(8) as pool:
        cookies = [c for c in pool.map(lambda _: access.redeem("t" * 32), range(50)) if c]
    assert len(cookies) == 1

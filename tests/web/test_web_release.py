"""The Release page: who gets a copy, what it costs, the copies; for the custodian alone."""

from __future__ import annotations

import io
import re

import pytest

from veilmark.messages import END, START
from veilmark.web.forms.release import ReleaseForm, from_form, kept_draft, to_form
from web.helpers import wait
from web.patients import ASKED, FORM, add_patients, make_release

URL, API = "/studies/patients/release", "/api/studies/patients/release"


@pytest.fixture(autouse=True, scope="module")
def _patients(app):
    add_patients(app.state.workspace)


@pytest.fixture(scope="module")
def released(app):
    from web.helpers import Client

    return make_release(Client(app, "custodian"))


# --- before anything is asked ----------------------------------------------------------------------------------


def test_the_population_is_found(custodian):
    found = custodian.get(API).json()
    assert found["asked"]["population"] == "data/patients-voters.csv"
    assert found["asked"]["identity"] == ["voter_id"]
    assert (found["asked"]["k"], found["live"], found["planned"]) == (5, True, None)
    page = custodian.get(URL).text
    assert "Name the recipients, and see here" in page
    assert 'value="voter_id" checked' in page


def test_another_population(custodian):
    found = custodian.get(API, params={"population": "people.csv"}).json()
    assert "illness" in found["columns"]
    assert found["asked"]["identity"] == []
    missing = custodian.get(API, params={"population": "../people.csv"}).json()
    assert "no table" in missing["problem"]
    assert "no table" in custodian.get(URL, params={"population": ".veilmark/users.json"}).text


def test_a_population_is_uploaded(custodian, workspace):
    file = {"file": ("Everybody ü.csv", io.BytesIO(b"voter_id,zip,gender,yob\n1,2,3,4\n"), "text/csv")}
    page = custodian.post("/studies/patients/population", files=file)
    assert "The table is uploaded." in page.text
    stored = custodian.post("/api/studies/patients/population", files=file)
    assert stored.status_code == 201
    assert workspace.table(stored.json()["table"]).is_file()
    assert custodian.post("/studies/patients/population").status_code == 400


def test_without_a_population(custodian):
    found = custodian.get("/api/studies/people/release").json()
    assert (found["asked"]["population"], found["columns"], found["asked"]["decoys"]) == ("", [], 0)
    assert found["live"]
    page = custodian.get("/studies/people/release").text
    assert "None: copies without decoys" in page
    assert "Who somebody is" not in page


def test_copies_without_a_population(custodian):
    chosen = custodian.get(API, params={"population": ""}).json()["asked"]
    assert (chosen["population"], chosen["decoys"]) == ("", 0)
    asked = FORM | {"population": "", "decoys": "0", "hiding": "covers", "covers": "6", "identity": []}
    answer = custodian.post(f"{URL}/try", data=asked).text
    job = answer.partition('data-plan-job="')[2].partition('"')[0]
    done = wait(custodian, {"id": job})
    assert done["state"] == "done", done["error"]
    shown = custodian.get(f"{URL}/plan", params={"job": job}).text
    assert "kept for one recipient each" in shown
    assert "Candidates" not in shown
    assert "persons of the population" not in shown
    kept = custodian.get(API).json()["asked"]
    assert (kept["population"], kept["decoys"]) == ("", 0)
    again = custodian.get(API, params={"population": "data/patients-voters.csv"}).json()["asked"]
    assert (again["decoys"], again["identity"]) == (None, ["voter_id"])


# --- the form --------------------------------------------------------------------------------------------------


def test_form_and_back():
    from starlette.datastructures import FormData

    asked = ReleaseForm(**(ASKED | {"levels": {"zip": 2}, "l": {"diagnosis": 2}, "t": {"diagnosis": 0.4}}))
    fields = to_form(asked)
    pairs = [(k, str(v)) for k, v in fields.items() if k != "identity"] + [("identity", c) for c in asked.identity]
    assert from_form(FormData(pairs)) == asked


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"recipients": " \n"}, "at least one recipient: “Recipients”."),
        ({"recipients": "ada\nada"}, "named twice"),
        ({"recipients": "a/b\na?b"}, "the same file"),
        ({"identity": []}, "Tick the columns"),
        ({"population": "nowhere.csv"}, "no table"),
        ({"population": ""}, "Choose a population"),
        ({"k": "five"}, "k must be a number, not &#39;five&#39;"),
        ({"k": "0"}, "K: input should be greater"),
        ({"suppress": "200"}, "Suppress: "),
        ({"collusion": "3"}, "must be from 1 to 2, the number of recipients"),
        (
            {"hiding": "none", "decoys": "0"},
            "The copies would be identical, so leaks could not be traced. Ask for “Decoy classes for each",
        ),
        ({"risk_low": "2", "risk_high": "1"}, "two increasing numbers"),
        ({"levels": "zip"}, "Levels are written as"),
        ({"t:diagnosis": "close"}, "t of diagnosis must be a number"),
        ({"seed": "-1"}, "Seed: "),
        ({"method": "magic"}, "Method: "),
    ],
)
def test_what_is_wrong_is_said_at_the_form(custodian, wrong, says):
    for place in (URL, f"{URL}/plan"):
        page = custodian.post(place, data=FORM | wrong, follow_redirects=False)
        assert page.status_code == 400
        assert says in page.text
        assert "--" not in page.text.partition('role="alert">')[2].partition("</p>")[0]
    tried = custodian.post(f"{URL}/try", data=FORM | wrong)
    assert tried.status_code == 200
    assert says in tried.text


def test_what_was_typed_stays(custodian):
    page = custodian.post(URL, data=FORM | {"recipients": "ada\nzoë & co", "k": "five", "contact:ada": "x@y"}).text
    assert "zoë &amp; co" in page
    assert 'value="five"' in page
    assert 'name="contact:ada" value="x@y"' in page


# --- planning --------------------------------------------------------------------------------------------------


def test_a_plan_by_the_form(custodian, workspace):
    page = custodian.post(f"{URL}/plan", data=FORM)
    job = page.url.params["job"]
    done = wait(custodian, {"id": job})
    assert done["state"] == "done", done["error"]
    shown = custodian.get(URL, params={"job": job}).text
    for text in (
        "Added to a copy",
        "Withheld from a copy",
        "Decoy, if seen once",
        "Length of the code",
        "Mean class size",
    ):
        assert text in shown
    assert shown.count("<textarea") == 1
    assert "ada\nbob" in shown
    draft = kept_draft(workspace, "patients")
    assert [r.name for r in draft.recipients] == ["ada", "bob"]
    assert draft.recipients[0].agreement == "A-1"
    assert not workspace.ledger.exists()


def test_a_plan_while_one_types(custodian, app):
    before = len(app.state.audit.last(1_000))
    answer = custodian.post(f"{URL}/try", data=FORM | {"hiding": "covers", "covers": "4"}).text
    job = answer.partition('data-plan-job="')[2].partition('"')[0]
    assert wait(custodian, {"id": job})["state"] == "done"
    shown = custodian.get(f"{URL}/plan", params={"job": job}).text
    assert "kept for one recipient each" in shown
    assert "<html" not in shown
    assert len(app.state.audit.last(1_000)) == before


def test_a_refusal_in_plain_words(custodian):
    job = custodian.post(f"{API}/plan", json=ASKED | {"decoys": 500}).json()
    done = wait(custodian, job)
    assert done["state"] == "failed"
    assert "decoy classes are needed" in done["error"]
    assert "--" not in done["error"]
    assert "Widen or omit “Risk of decoys”" in custodian.get(f"{URL}/plan", params={"job": job["id"]}).text


def test_advice_names_the_fields(custodian, workspace):
    weak = {"decoys": 1, "covers": 2, "collusion": None, "false_accusation": 1e-9}
    job = custodian.post(f"{API}/plan", json=ASKED | weak).json()
    assert wait(custodian, job)["state"] == "done"
    notes = " ".join(custodian.get(f"/api/jobs/{job['id']}/result").json()["notes"])
    page = custodian.get(f"{URL}/plan", params={"job": job["id"]}).text
    kept = (workspace.private / "jobs" / job["id"] / "result.json").read_text()
    for told in (notes, page, kept):
        assert re.search(r"(Ask for|or raise) “(Decoy classes|How many may|Probability of naming)", told), told
        assert "--" not in told.replace("<!--", "")
        assert not {START, END} & set(told)


# --- the copies ------------------------------------------------------------------------------------------------


def test_copies_and_downloads(custodian, workspace, released):
    assert [copy["name"] for copy in released["recipients"]] == ["ada", "bob"]
    texts = []
    for copy in released["recipients"]:
        file = custodian.get(f"/download/{copy['file']}")
        assert len(file.text.splitlines()) == copy["records"] + 1
        assert "voter_id" not in file.text
        texts.append(file.text)
    assert texts[0] != texts[1]
    page = custodian.get(URL).text
    assert f"/ledger/{released['release']}" in page
    assert released["recipients"][0]["file"] in page
    assert workspace.ledger.exists()
    assert workspace.key.stat().st_mode & 0o777 == 0o600


def test_the_form_makes_another_release(custodian, released):
    page = custodian.post(URL, data=FORM | {"format": "parquet", "recipients": "cyd\ndan"})
    done = wait(custodian, {"id": page.url.params["job"]})
    assert done["state"] == "done", done["error"]
    assert done["roles"] == ["custodian"]
    made = custodian.get(API, params={"job": done["id"]}).json()["released"]
    assert made["release"] != released["release"]
    assert made["recipients"][0]["file"].endswith("/cyd.parquet")


def test_settings_of_the_last_anonymization(custodian, app):
    """They are taken over once, until something else is asked for."""
    from veilmark.web.pages import release

    taken = release._taken_over(
        ReleaseForm(**ASKED),
        {"asked": {"method": "ola", "k": 9, "suppress": 0.02, "loss": "gcp"}, "levels": {"zip": 3, "yob": 1}},
    )
    assert (taken.k, taken.suppress, taken.loss, taken.levels) == (9, 0.02, "gcp", {"zip": 3, "yob": 1})
    assert taken.recipients[0].name == "ada"
    assert release._taken_over(ReleaseForm(), {"asked": {"method": "fslip", "k": 2}}) == ReleaseForm()


def test_nobody_else_sees_any_of_it(analyst, auditor, released):
    for client in (analyst, auditor):
        assert client.get(URL).status_code == 403
        assert client.get(API).status_code == 403
        assert client.post(API, json=ASKED).status_code == 403
        assert client.post(f"{API}/plan", json=ASKED).status_code == 403
        assert client.get(f"/download/{released['recipients'][0]['file']}").status_code == 403
        assert not [j for j in client.get("/api/jobs").json()["jobs"] if j["kind"] in ("plan_copies", "make_copies")]


def test_no_inline_script_or_style(custodian, released):
    for url in (URL, "/ledger", f"/ledger/{released['release']}", "/trace"):
        page = custodian.get(url).text
        assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son[a-z]+=|javascript:", page), url


def test_the_key_is_in_no_answer(custodian, workspace, released):
    key = workspace.key.read_text()
    secret = next(word for word in key.split('"') if len(word) > 30) if '"' in key else key.strip()
    for url in (URL, API, f"/ledger/{released['release']}", "/api/ledger", "/jobs"):
        assert secret not in custodian.get(url).text
    assert custodian.get("/download/ledger.key").status_code in (403, 404)

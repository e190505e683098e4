"""`veilmark report`, from files to a page: what it says, what it keeps secret, and what it refuses."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import stat
import sys

import pytest

from ledger.helpers import edit
from marked_release import make_release, read
from veilmark.cli.main import main
from veilmark.errors import OptionError
from veilmark.ledger import Ledger
from veilmark.ledger.files import digest
from veilmark.report import document
from veilmark.study.study import Study
from veilmark.utility import classifier
from veilmark.veil.fslip import FSlip
from veilmark.veil.ola import Ola
from veilmark.workbench import ledger as ledger_verbs
from veilmark.workbench.init import make_sample
from veilmark.workbench.report import Wanted, _slices, make_report, report
from veilmark.workbench.report import Wanted as run_Wanted
from veilmark.workbench.report import report as run_report

HOSTILE = "<script>alert(1)</script>"
STUDY = f"""version: 1
source: people.csv
attributes:
  name: {{role: direct}}
  "{HOSTILE}": {{role: quasi, hierarchy: {{intervals: [5, 10]}}}}
  sex: {{role: quasi}}
  illness: {{role: sensitive, weights: {{flu: 0.1, "{HOSTILE}": 0.9}}}}
"""


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A release to five recipients, and a study of people with hostile names, anonymized."""
    folder = tmp_path_factory.mktemp("report")
    made = make_release(folder, people=8_000, members=1_200, decoys=1, covers=3)
    rows = [(f"Somebody{i}", 20 + i % 17, "mf"[i % 2], HOSTILE if i % 3 else "flu", "as it is") for i in range(120)]
    with open(folder / "people.csv", "w", newline="") as file:
        csv.writer(file).writerows([("name", HOSTILE, "sex", "illness", "left"), *rows])
    (folder / "people.yaml").write_text(STUDY)
    Study.open(folder / "people.yaml").anonymize(Ola(k=5), folder / "anonymous.csv")
    ledger_verbs.open_to_publish(folder / "empty.db", folder / "other")
    return made


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch):
    """To draw and to train takes a while; one test does both."""
    monkeypatch.setattr(document, "_picture", lambda chart: "data:image/svg+xml;base64,")
    monkeypatch.setattr(classifier, "available", lambda: False)


@pytest.fixture
def run(case, monkeypatch, capsys):
    """Runs `veilmark report` there; gives the page and, of JSON, the content."""
    monkeypatch.chdir(case.folder)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments, code=0, mode=None):
        before = sorted(p.name for p in case.folder.iterdir())
        assert main(["report", *map(str, arguments)]) == code
        out, err = capsys.readouterr()
        if code:
            assert out == ""
            assert err.startswith("Error: ")
            assert err.count("\n") == 1
            assert sorted(p.name for p in case.folder.iterdir()) == before
            return err
        page = (case.folder / "report.html").read_text()
        assert mode in (None, stat.S_IMODE((case.folder / "report.html").stat().st_mode))
        (case.folder / "report.html").unlink()
        return page, json.loads(out) if "--json" in arguments else out

    return run


def inside(page):
    (found,) = re.findall(r'<script type="application/json" id="veilmark">(.*?)</script>', page, re.S)
    assert page.count("<script") == 1
    return json.loads(found)


def check(page, told):
    """The content is the one that was printed, and nothing is loaded."""
    assert inside(page) == told
    for target in re.findall(r'\b(?:src|href)="([^"]*)"', page):
        assert target.startswith(("#", "data:image/svg+xml;base64,"))
    assert not re.search(r"https?://|@import|url\(", page)


def test_the_source(run):
    page, told = run("study.yaml", "-o", "report.html", "--json")
    check(page, told)
    assert told["measures"]["records"] == 1_200
    assert told["release"] is told["attacks"] is told["ledger"] is told["scores"] is None
    assert told["notes"] == [
        "No scores: the study needs weights for its sensitive values; it has none for 'diagnosis'."
    ]
    roles = {a["name"]: (a["role"], a["hierarchy"], len(a["labels"])) for a in told["study"]["attributes"]}
    assert roles["zip"] == ("quasi", "mask", 6)
    assert roles["diagnosis"] == ("sensitive", None, 0)


def test_a_release_with_hostile_names(case, run, monkeypatch):
    monkeypatch.undo()
    monkeypatch.chdir(case.folder)
    page, told = run(
        "people.yaml",
        "anonymous.csv",
        "--require",
        "k=5",
        "--title",
        HOSTILE,
        "-o",
        "report.html",
        "--json",
    )
    check(page, told)
    release = told["release"]
    assert release["agreed"] is True
    assert release["exposed"] == release["lacking"] == []
    assert release["measures"]["k"] >= 5
    assert release["unnamed"] == []
    assert told["measures"]["unseen"] == ["left"]
    assert list(release["measures"]["unchanged"]) == ["illness"]
    assert "Columns published unchanged" in page
    assert told["findings"][0] == {"status": "holds", "text": "Every published column has a role in the study."}
    assert release["files"] == [
        {
            "name": "anonymous.csv",
            "bytes": os.path.getsize("anonymous.csv"),
            "sha256": digest(case.folder / "anonymous.csv"),
        }
    ]
    assert release["required"][0]["met"] is True
    assert set(told["attacks"]["attacks"]) == {"bk", "msacorr", "qicorr", "mcorr", "nmcorr", "linkage"}
    assert release["utility"]["loss"]["by_attribute"].keys() == {HOSTILE, "sex"}
    before, after = (of["scores"]["l_severity"]["value"] for of in (told["scores"], release["scores"]))
    assert 0 < after < before
    assert page.count('<img src="data:image/svg+xml;base64,PHN2Zy') == 6
    assert "Predicting <code>illness</code>" in page
    assert "Somebody" not in page


def test_scores_show_no_record(run):
    page, told = run("people.yaml", "-o", "report.html", "--json")
    assert told["scores"].keys() == {"records", "x", "normalize", "cap", "scores", "tkl_parts"}
    assert "Misuseability" in page


def test_the_release_scores_as_a_table_of_its_own(case):
    """The classes of the release hide somebody, not those of the source."""
    rows = read(case.folder / "anonymous.csv")
    sizes = {}
    for row in rows:
        key = (row[HOSTILE], row["sex"])
        sizes[key] = sizes.get(key, 0) + 1
    weights = {"flu": 0.1, HOSTILE: 0.9}
    expected = sum(weights[row["illness"]] / sizes[row[HOSTILE], row["sex"]] for row in rows)
    made = make_report(Study.open(case.folder / "people.yaml"), Wanted(case.folder / "anonymous.csv", attacks=()))
    assert made.shared.scores.scores["l_severity"].value == pytest.approx(expected)


def test_values_that_few_have_are_not_told(run, case):
    rare = (case.folder / "people.csv").read_text() + "Rare,99,m,flu,x\n"
    (case.folder / "rare.csv").write_text(rare)
    (case.folder / "rare.yaml").write_text(STUDY.replace("people.csv", "rare.csv"))
    _, told = run("rare.yaml", "anonymous.csv", "--attacks", "none", "-o", "report.html", "--json")
    assert told["attacks"] is None
    shares = told["release"]["utility"]["marginals"][HOSTILE]["shares"]
    assert "99" not in shares
    assert all(of["before"] >= 10 / 121 for of in shares.values())


def test_what_a_release_should_not_have(run, case):
    _, told = run("people.yaml", "people.csv", "--attacks", "none", "-o", "report.html", "--json")
    assert told["release"]["exposed"] == ["name"]
    assert told["release"]["unnamed"] == ["left"]
    assert set(told["release"]["measures"]["unchanged"]) == {"illness", "left"}
    assert told["findings"][0]["status"] == "fails"
    assert [f["text"] for f in told["findings"] if f["status"] == "fails"] == [
        "The published files have columns without a role in the study: left.",
        "The release still holds the direct identifiers name.",
    ]


def test_a_release_that_lacks_columns_and_one_of_another_form(run, case):
    lines = (case.folder / "anonymous.csv").read_text().splitlines()
    short = [line.rsplit(",", 1)[0].replace(",", ";") for line in lines]
    (case.folder / "short.csv").write_text("\n".join(short) + "\n")
    _, told = run("people.yaml", "short.csv", "-o", "report.html", "--json")
    assert told["release"]["lacking"] == ["illness"]
    assert told["release"]["agreed"] is None
    assert told["attacks"] is None
    assert any("Only one program measured" in note for note in told["notes"])
    assert any("No attacks" in note for note in told["notes"])


# Many records a person.


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("visits")
    make_sample("hospital", folder / "visits.csv", 150)
    text = "version: 1\nsource: visits.csv\nperson: patient_id\nattributes:\n"
    columns = {"name": "direct", "age": "quasi", "sex": "quasi", "diagnosis": "sensitive", "education": "sensitive"}
    (folder / "study.yaml").write_text(text + "".join(f"  {n}: {{role: {r}}}\n" for n, r in columns.items()))
    study = Study.open(folder / "study.yaml")
    study.anonymize(FSlip(k=3, groups=(("diagnosis",), ("education",))), folder / "sliced")
    return folder


@pytest.mark.filterwarnings("ignore::veilmark.errors.VeilmarkWarning")
def test_a_folder_of_tables(visits, monkeypatch, capsys):
    monkeypatch.chdir(visits)
    assert main(["report", "study.yaml", "sliced", "--attacks", "qicorr", "-o", "r.html", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    check((visits / "r.html").read_text(), told)
    slices = told["release"]["slices"]
    assert slices["persons"] == told["measures"]["persons"] == 150
    classes = [(r["age"], r["sex"]) for r in read("sliced/qi.csv")]
    assert slices["k"] == min(map(classes.count, classes)) >= 3
    assert slices["classes"] == len(set(classes))
    gids = [r["gid"] for r in read("sliced/sensitive_1.csv")]
    assert slices["groups"][0]["smallest"] == min(map(gids.count, gids))
    assert {f["name"] for f in told["release"]["files"]} == {"qi.csv", "sensitive_1.csv", "sensitive_2.csv"}
    assert told["release"]["utility"] is None
    assert set(told["attacks"]["attacks"]) == {"qicorr"}
    err = main(["report", "study.yaml", "sliced", "--require", "k=2", "-o", "r.html"])
    assert err == 2
    assert "--require needs a release in one file" in capsys.readouterr().err


def test_slices_without_quasi_identifiers(visits):
    from veilmark.veil.sliced import Sliced

    tables = Sliced.open(visits / "sliced")
    nobody = Study.of(str(visits / "visits.csv"), {"diagnosis": "sensitive"}, "patient_id")
    assert (_slices(nobody, tables).k, _slices(nobody, tables).classes) == (150, 1)


# A release in the ledger.


def secrets_of(case):
    """Whatever tells a decoy: who it is, and its row of the copy."""
    for name in case.names:
        for row in case.decoys(name):
            yield row["voter_id"]
            labels = [row[c] for c in ("zip", "gender", "yob")]
            yield from (", ".join(labels), "</td><td>".join(labels), json.dumps(labels)[1:-1])
            yield json.dumps({c: row[c] for c in ("zip", "gender", "yob")})[1:-1]


def test_the_public_report_keeps_the_ledgers_secrets(run, case, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        document, "_picture", lambda chart: drawn.append(chart.to_json()) or "data:image/svg+xml;base64,"
    )
    book = ("study.yaml", "--ledger", "ledger.db", "--copies", "copies", "-o", "report.html", "--json")
    with_key, _ = run(*book, "--key", "key")
    page, told = run(*book, "copies/ada.csv", "--attacks", "linkage")
    check(page, told)
    assert "decoys" not in told
    assert told["confidential"] is False
    key = case.key.read_text().strip()
    hidden = [*secrets_of(case), key, key.partition(":")[2], "unlinked_rows", str(case.folder)]
    said = "\n".join([page, with_key, *drawn])
    assert len(drawn) == 6
    assert not [secret for secret in hidden if secret in said]
    assert inside(with_key)["ledger"]["verified"]["secrets"] == 1
    shown = ledger_verbs.release(case.ledger, case.release).to_dict()
    assert told["ledger"]["release"] == {name: value for name, value in shown.items() if name != "folder"}
    assert told["release"]["copy_of"] == "ada"
    copies = told["ledger"]["copies"]
    assert [c["recipient"] for c in copies] == list(case.names)
    for copy in copies:
        assert copy["status"] == "as published"
        assert copy["records"] == len(read(case.copy(copy["recipient"])))
        assert copy["promises"] == [{"promise": "k ≥ 5", "found": copy["k"], "kept": True, "why": None}]


def test_the_auditors_report_names_decoys(run, case):
    arguments = ("study.yaml", "--ledger", "ledger.db", "--release", case.release, "--key", "key", "--auditor")
    page, out = run(*arguments, "-o", "report.html", mode=0o600)
    assert "Protect it like the key" in out
    content = inside(page)
    assert content["decoys"] == {name: case.decoys(name) for name in case.names}
    assert all(row["voter_id"] in page for name in case.names for row in case.decoys(name))
    assert page.count("Confidential") >= 2
    assert case.key.read_text().strip().partition(":")[2] not in page


def test_the_auditors_report_does_not_take_the_place_of_an_open_file(run, case):
    old = case.folder / "old.html"
    old.write_text("old")
    old.chmod(0o644)
    arguments = ("study.yaml", "--ledger", "ledger.db", "--key", "key", "--auditor", "-o", "old.html")
    assert "Other users can read" in run(*arguments, code=2)
    assert old.read_text() == "old"
    old.chmod(0o600)
    assert main(["report", *arguments]) == 0
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    assert inside(old.read_text())["decoys"]
    old.unlink()


def test_copies_that_changed_or_are_gone(run, case, tmp_path):
    shutil.copytree(case.folder / "copies", tmp_path / "copies")
    with open(tmp_path / "copies" / "bob.csv", "a") as file:
        file.write("1\n")
    (tmp_path / "copies" / "cyd.csv").unlink()
    page, out = run("study.yaml", "--ledger", "ledger.db", "--copies", tmp_path / "copies", "-o", "report.html")
    assert "✗ 3 of 5 copies are, byte for byte, as published." in out
    found = {c["recipient"]: c["status"] for c in inside(page)["ledger"]["copies"]}
    assert found == {
        "ada": "as published",
        "bob": "changed",
        "cyd": "not there",
        "dan": "as published",
        "eve": "as published",
    }


def test_a_broken_chain_is_said(run, case, tmp_path):
    ledger_verbs.export(case.ledger, tmp_path / "backup")
    ledger_verbs.restore(tmp_path / "backup", tmp_path / "changed.db")
    edit(Ledger.open(tmp_path / "changed.db"), "UPDATE veilmark_entries SET time = '2020' WHERE number = 3")
    page, out = run("study.yaml", "--ledger", tmp_path / "changed.db", "-o", "report.html")
    assert "✗ The ledger's chain is broken: entry 3" in out
    assert inside(page)["ledger"]["verified"]["ok"] is False


def test_another_study_is_noted(run):
    _, told = run("people.yaml", "--ledger", "ledger.db", "-o", "report.html", "--json")
    assert any("made with 'study.yaml', not 'people.yaml'" in note for note in told["notes"])


BAD = {
    "a page of another kind": (["-o", "report.pdf"], "ends in .html"),
    "no such folder": (["-o", "no/where/report.html"], "there is no folder"),
    "a source to be overwritten": (["-o", "people.html"], "is one of the input files"),
    "a release that is not there": (["gone.csv"], "no release 'gone.csv'"),
    "a folder that is no release": (["copies"], "not a release in several tables"),
    "a ledger that is not there": (["--ledger", "gone.db"], "gone.db"),
    "a ledger without releases": (["--ledger", "empty.db"], "no published release"),
    "an unknown release": (["--ledger", "ledger.db", "--release", "r0"], "no release 'r0'"),
    "an id without a ledger": (["--release", "r0"], "--release needs a release in a ledger"),
    "copies without a ledger": (["--copies", "copies"], "--copies needs a release"),
    "copies that are not there": (["--ledger", "ledger.db", "--copies", "gone"], "no folder 'gone'"),
    "an auditor without a key": (["--ledger", "ledger.db", "--auditor"], "--key"),
    "an auditor without a ledger": (["--auditor"], "--auditor needs a release"),
    "another key": (["--ledger", "ledger.db", "--key", "other"], "written with another key"),
    "a lost key": (["--ledger", "ledger.db", "--key", "lost"], "no key file"),
    "an unknown attack": (["anonymous.csv", "--attacks", "bkk"], "Did you mean 'bk'"),
    "attacks on nothing": (["--attacks", "bk"], "--attacks needs a release"),
    "a limit of nothing": (["--require", "k=5"], "--require needs a release"),
    "a limit that is none": (["anonymous.csv", "--require", "k"], "such as k=5"),
    "another table": (["population.csv"], "population.csv"),
}


@pytest.fixture(scope="module")
def bad_files(case):
    shutil.copy(case.folder / "people.csv", case.folder / "people.html")
    Ledger.open(case.folder / "empty.db").append("rotated", None, {})
    from veilmark.ledger import Key

    Key.open_or_make(case.folder / "other")


@pytest.mark.parametrize("fault", BAD)
def test_bad_input_is_refused_and_nothing_is_left(bad_files, run, fault):
    changes, word = BAD[fault]
    study = "people.yaml"
    if fault == "a source to be overwritten":
        study = "page.yaml"
        with open("page.yaml", "w") as file:
            file.write(STUDY.replace("people.csv", "people.html"))
    arguments = changes if "-o" in changes else [*changes, "-o", "report.html"]
    err = run(study, *arguments, code=2)
    assert word in err
    assert "Somebody" not in err


def test_without_the_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "pip install 'veilmark[report]'" in run("people.yaml", "-o", "report.html", code=1)


def test_from_python(case, tmp_path):
    study = Study.open(case.folder / "people.yaml")
    made = report(study, tmp_path / "r.html")
    assert inside((tmp_path / "r.html").read_text()) == made.to_dict()
    with pytest.raises(OptionError, match=r"ends in \.html"):
        run_report(study, tmp_path / "r.txt", run_Wanted())

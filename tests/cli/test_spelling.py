"""What messages name is spelled before anybody sees it: on the terminal, in JSON, and in every file that is written."""

from __future__ import annotations

import json

import pytest

from marked_release import make_release
from veilmark.cli.main import main
from veilmark.messages import END, START

RAW = [form for mark in (START, END) for form in (mark, json.dumps(mark)[1:-1])]
MARKED = ["--population", "population.csv", "--identity", "voter_id", "--k", "5", "--suppress", "0.1", "--risk", "1:20"]
BOOK = ["--ledger", "ledger.db", "--key", "key"]
FEW = ["--recipients", "ada,bob,cyd", "--covers", "2", "--decoys", "1"]
NO_VALUES = (
    "version: 1\nsource: patients.csv\nattributes: {zip: {role: quasi, hierarchy: {mask: 5}}, gender: {role: quasi}}\n"
)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    made = make_release(tmp_path_factory.mktemp("spelled"), people=20_000, members=3_000, decoys=1)
    (made.folder / "no-values.yaml").write_text(NO_VALUES)
    return made


@pytest.fixture
def run(case, monkeypatch, capsys):
    monkeypatch.chdir(case.folder)
    monkeypatch.setenv("COLUMNS", "10000")

    def run(*arguments, code=0):
        assert main(list(arguments)) == code
        out, err = capsys.readouterr()
        assert not [form for form in RAW if form in out + err]
        return out + err

    return run


def without_tokens(folder):
    """Whether no file of a folder holds a token, as it is or as JSON escapes it."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return files and not [file for file in files for form in RAW if form.encode() in file.read_bytes()]


def test_notes_on_the_terminal_and_as_json(run):
    text = run("release", "study.yaml", *MARKED, *FEW, "--dry-run")
    notes = json.loads(run("release", "study.yaml", *MARKED, *FEW, "--dry-run", "--json"))["notes"]
    for words in ("act together, use --collusion.", "Ask for --decoys "):
        assert words in text
        assert words in " ".join(notes)
    told = json.loads(run("utility", "no-values.yaml", "patients.csv", "--json"))["notes"]
    assert "No classifier: there is no sensitive attribute to predict. Name one with --target." in told
    assert "Name one with --target." in run("utility", "no-values.yaml", "patients.csv")


def test_files_that_are_written(run, case):
    run("release", "study.yaml", *MARKED, *FEW, *BOOK, "-o", "more-copies")
    run("trace", "--file", "more-copies/ada.csv", *BOOK, "-o", "evidence.html")
    run("report", "no-values.yaml", "patients.csv", "-o", "report.html")
    assert "Name one with “target”." in (case.folder / "report.html").read_text()
    assert without_tokens(case.folder)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            "release study.yaml --recipients ada --decoys 1 --ledger l.db --key k -o x",
            "--population and --identity are",
        ),
        ("release study.yaml --recipients ada --decoys 1 --dry-run", "--decoys 0, with --covers or --collusion."),
        ("release study.yaml --recipients ada --decoys 0 --covers 0 --dry-run", "Ask for --decoys, --covers or --coll"),
        (
            "release study.yaml --recipients ada --decoys 0 --covers 3",
            "publish: --ledger, --key and -o. Only a dry run (--dry",
        ),
        ("release study.yaml --recipients a,b --decoys 0 --collusion 9 --marks rows --dry-run", "1 to 2, the number"),
        (
            "release study.yaml --recipients a,b --decoys 0 --covers 1 --marks rows --dry-run",
            "Row marks (--marks rows)",
        ),
        ("anonymize study.yaml --k-map 5 -o x.csv", "Give one with --population."),
        (
            "anonymize study.yaml --k 5 --population population.csv -o x.csv",
            "Add --k-map or --presence, or omit the population.",
        ),
        ("measure study.yaml --require k", "--require takes a limit such as k=5"),
        ("measure patients.csv", "This is a table, not a study. Run: veilmark init patients.csv"),
        ("init study.yaml -o x.yaml", "This is a study, not a table. Run: veilmark measure study.yaml"),
        ("init patients.csv -o study.yaml", "Choose another name with -o, or replace it with --force."),
        (
            "report study.yaml --auditor -o x.html",
            "--auditor needs a release in a ledger. Name the ledger with --ledger",
        ),
        ("report study.yaml --require k=5 -o x.html", "--require needs a release, but none is named."),
        ("trace --ledger none.db --key key --file patients.csv", "Make one with: veilmark release."),
        ("ledger import patients.csv --ledger new.db", "Make one with: veilmark ledger export."),
        ("apply study.yaml none.json -o x.csv", "Name a file that anonymize wrote with --recoding."),
        ("serve . --host 0.0.0.0", "Make one first: veilmark users add NAME --role custodian --workspace ."),
    ],
)
def test_errors(run, arguments, words):
    assert words in run(*arguments.split(), code=2)


def test_a_key_that_is_open_to_others(run, case):
    (case.folder / "open").write_bytes(case.key.read_bytes())
    (case.folder / "open").chmod(0o644)
    said = run("trace", "--file", "patients.csv", "--ledger", "ledger.db", "--key", "open", code=2)
    assert "Change it with: veilmark ledger rotate." in said

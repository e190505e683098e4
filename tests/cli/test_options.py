"""One option means one thing in every verb; what cannot be meant so is refused."""

from __future__ import annotations

import json

import pytest

from veilmark import Ola, OptionError
from veilmark.cli.main import main
from veilmark.shares import number, share

STUDY = """
version: 1
source: people.csv
attributes:
  age: {role: quasi, hierarchy: {intervals: [5, 10]}}
  zip: {role: quasi, hierarchy: {mask: 2}}
  ill: {role: sensitive}
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{20 + i % 7},{10 + i % 3},{'uvw'[i % 3]}" for i in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["age,zip,ill", *rows, "99,99,u"]) + "\n")
    (tmp_path / "study.yaml").write_text(STUDY)

    def call(*words, code=0):
        assert main([*map(str, words)]) == code
        out, err = capsys.readouterr()
        return err if code == 2 else (out, err)

    return call


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), ("0.05", 0.05), (" 12.5% ", 0.125), ("0%", 0), ("1", 1)])
def test_shares(text, value):
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf%", "five", "", "%"])
def test_what_is_no_number(text):
    for read in (share, number):
        with pytest.raises(ValueError, match=r".*"):
            read(text)


def test_a_percentage_is_the_share(run):
    asked = ("anonymize", "study.yaml", "--k", "3", "-o", "out.csv", "--json")
    found = [json.loads(run(*asked, "--suppress", limit)[0]) for limit in ("0.05", "5%")]
    assert found[0]["levels"] == found[1]["levels"]
    assert found[0]["suppressed"] == found[1]["suppressed"] > 0
    diverse = [
        json.loads(run(*asked, "--t", f"ill={t}", "--suppress", "2%")[0])["models"][1]["t"] for t in ("0.9", "90%")
    ]
    assert diverse == [0.9, 0.9]
    assert (
        json.loads(run("measure", "study.yaml", "--require", "t.ill=90%", "--json")[0])["required"][0]["limit"] == 0.9
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--suppress", "5"], "5 is not. Write 5% if you mean 0.05"),
        (["--suppress", "nan"], "'nan' is not a share"),
        (["--suppress", "-1%"], "a share must be between 0 and 1"),
        (["--weight", "zip=nan"], "--weight takes an attribute and a number, such as diagnosis=3, not 'zip=nan'"),
        (["--weight", "zip=-1"], "The weight of 'zip' in the loss must be a number of 0 or more, not -1"),
        (["--l", "ill=3", "--l", "ill=2"], "--l is given twice for 'ill', the second time as 'ill=2'"),
        (["--level", "zip=1", "--level", "zip=2"], "--level is given twice for 'zip'"),
        (["--k", "5", "--k", "3"], "--k is given twice"),
        (["--suppress=5%", "--suppress", "1%"], "--suppress is given twice"),
    ],
)
def test_refused_with_the_reason(run, words, says):
    assert says in run("anonymize", "study.yaml", *words, "-o", "out.csv", code=2)


def test_a_weight_that_is_no_number_is_refused_in_python():
    for weight in (float("nan"), float("inf"), -1):
        with pytest.raises(OptionError, match="The weight of 'zip' in the loss must be a number of 0 or more"):
            Ola(weights={"zip": weight})


def test_other_verbs_refuse_what_they_do_not_use(run):
    run("anonymize", "study.yaml", "--k", "3", "--suppress", "5%", "--recoding", "rules.json", "-o", "out.csv")
    words = ("apply", "study.yaml", "rules.json", "--k", "3", "--no-suppress", "-o", "again.csv")
    assert "--k and --no-suppress exclude each other" in run(*words, code=2)
    words = ("compare", "study.yaml", "--methods", "mondrian", "--suppress", "5%")
    assert "--suppress belongs to OLA" in run(*words, code=2)


@pytest.mark.filterwarnings("always::veilmark.errors.VeilmarkWarning")
def test_notes_are_shown_where_a_requirement_does_not_hold(run, tmp_path):
    (tmp_path / "people.csv").write_bytes("age,zip,ill\n20,10,\xfcbel\n".encode("latin-1"))
    out, err = run("measure", "study.yaml", "--require", "k=50", code=1)
    assert "NOT met" in out
    assert err.startswith("Note: Not UTF-8, so read as")
    assert "Error" not in err


@pytest.mark.filterwarnings("always::veilmark.errors.VeilmarkWarning")
def test_old_spellings_work_and_say_what_is_new(run):
    run("anonymize", "study.yaml", "--k", "3", "--suppress", "5%", "-o", "out.csv")
    new = run("report", "study.yaml", "out.csv", "--attacks", "none", "-o", "new.html", "--json")
    old = run("report", "study.yaml", "--release", "out.csv", "--attacks", "none", "-o", "old.html", "--json")
    assert "--release now takes the id of a release in the ledger. Give the file after the study" in old[1]
    assert "--release" not in new[1]
    assert json.loads(old[0])["release"] == json.loads(new[0])["release"]
    err = run("report", "study.yaml", "out.csv", "--release", "out.csv", "-o", "old.html", code=2)
    assert "--release takes the id of a release in the ledger" in err
    assert "--release needs a release in a ledger" in run("report", "study.yaml", "--id", "r0", "-o", "r.html", code=2)


@pytest.mark.filterwarnings("always::veilmark.errors.VeilmarkWarning")
def test_the_log_s_key_has_another_name_than_the_ledger_s(run, tmp_path):
    (tmp_path / "study.yaml").write_text(
        STUDY.replace("{role: sensitive}", "{role: sensitive, weights: {default: 0.1}}")
    )
    (tmp_path / "log.jsonl").write_text('{"user": "ann", "time": "2026-01-02T03:04:05", "keys": ["20"]}\n')
    asked = ("monitor", "study.yaml", "--log", "log.jsonl", "--json")
    new, old = run(*asked, "--log-key", "age"), run(*asked, "--key", "age")
    assert new[0] == old[0]
    assert "--key is now called --log-key" in old[1]
    assert "--log-key" not in new[1]
    assert "both are given" in run(*asked, "--log-key", "age", "--key", "age", code=2)

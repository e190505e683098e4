"""Messages and notes that say what happened, with the value received and what to do."""

from __future__ import annotations

import json

import pytest

from veilmark.cli.main import main

ROWS = "".join(f"{20 + i % 7},{'fm'[i % 2]},{'uvw'[i % 3]}\n" for i in range(60))
STUDY = "version: 1\nsource: d.csv\nattributes:\n  age: {role: quasi}\n  sex: {role: quasi}\n  ill: {role: sensitive}\n"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "d.csv").write_text("age,sex,ill\n" + ROWS)
    (tmp_path / "s.yaml").write_text(STUDY)

    def run(*arguments, code=0):
        assert main(list(map(str, arguments))) == code
        out, err = capsys.readouterr()
        return out if code == 0 else err

    return run


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "s.yaml", "s3a://bucket/x.csv", "-o", "r.html"),
        ("anonymize", "s.yaml", "-o", "s3a://bucket/x.csv"),
        ("apply", "s.yaml", "s3a://bucket/x.csv", "-o", "o.csv"),
        ("attack", "s.yaml", "s3a://bucket/x.csv"),
        ("utility", "s.yaml", "s3a://bucket/x.csv"),
        ("measure", "s.yaml", "--data=s3a://bucket/x.csv"),
        ("hierarchy", "s.yaml", "age", "-o", "s3a://bucket/x.csv"),
    ],
)
def test_addresses_stay_whole(run, arguments):
    assert "'s3a://bucket/x.csv'" in run(*arguments, code=2)


def test_a_number_that_is_none_is_told(run):
    assert "--k takes a whole number, not '2.5'." in run("anonymize", "s.yaml", "--k", "2.5", "-o", "o.csv", code=2)


def test_only_options_that_are_alike_are_offered(run):
    assert "Possible" not in run("anonymize", "s.yaml", "--data", "x", "-o", "o.csv", code=2)
    assert "--threshold" in run("measure", "s.yaml", "--treshold", "1", code=2)


def test_a_weight_above_one_is_refused_by_measure(run, tmp_path):
    (tmp_path / "s.yaml").write_text(STUDY.replace("role: sensitive", "role: sensitive, weights: {u: 2, default: 0.1}"))
    assert "value 'u' is 2. A weight is a number from 0" in run("measure", "s.yaml", code=2)


def test_a_risk_without_decoys_is_refused(run):
    asked = ("release", "s.yaml", "--recipients", "a,b", "--decoys", "0", "--risk", "1:3", "--covers", "1")
    told = run(*asked, "--ledger", "l.db", "--key", "k", "-o", "copies", code=2)
    assert "--risk is about decoys, and --decoys is 0." in told


def test_a_population_without_a_quasi_identifier_is_told_with_what_to_do(run, tmp_path):
    (tmp_path / "voters.csv").write_text("age,name\n20,x\n")
    told = run("measure", "s.yaml", "--population", "voters.csv", code=2)
    assert "'voters.csv' has no column 'sex'" in told
    assert "add it there, or change its role in s.yaml" in told


def test_one_class_and_one_record_left_out(run, tmp_path):
    out = run("anonymize", "s.yaml", "--k", "60", "--recoding", "r.json", "-o", "o.csv")
    assert "60 records in 1 class;" in out
    (tmp_path / "s.yaml").write_text(
        STUDY.replace("sex: {role: quasi}", "sex: {role: quasi, hierarchy: {levels: [{f: woman, m: man}]}}")
    )
    run("anonymize", "s.yaml", "--k", "2", "--level", "sex=1", "--recoding", "r.json", "-o", "o.csv")
    (tmp_path / "new.csv").write_text("age,sex,ill\n" + ROWS + "20,x,u\n")
    out = run("apply", "s.yaml", "r.json", "--data", "new.csv", "-o", "n.csv")
    assert "1 record suppressed, because of values that are not in the recoding." in out


def test_attacks_without_targets_say_why(run):
    run("anonymize", "s.yaml", "--k", "2", "-o", "o.csv")
    assert "bk and msacorr have no targets" in run("attack", "s.yaml", "o.csv")


@pytest.mark.filterwarnings("default::veilmark.errors.VeilmarkWarning")
def test_a_search_that_cannot_try_all_does_not_say_that_it_was_cut_short(run, tmp_path):
    names = [f"c{i}" for i in range(30)]
    lines = [",".join(str((i * 7 + j) % 3) for j in range(30)) for i in range(40)]
    (tmp_path / "d.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
    (tmp_path / "s.yaml").write_text(
        "version: 1\nsource: d.csv\nattributes:\n" + "".join(f"  {name}: {{role: quasi}}\n" for name in names)
    )
    assert "cut short" not in run("anonymize", "s.yaml", "--k", "3", "-o", "o.csv")
    found = json.loads(run("anonymize", "s.yaml", "--k", "3", "-o", "o.csv", "--json"))
    assert found["k"] >= 3

from __future__ import annotations

import json

import pytest

from veilmark.cli.main import main

DATA = "City,Gender,Diagnosis\nCalgary,F,Flu\nCalgary,F,Migraine\nEdmonton,M,HIV\nEdmonton,M,Flu\n"
STUDY = """\
version: 1
source: d.csv
attributes:
  City: {role: quasi}
  Gender: {role: quasi}
  Diagnosis: {role: sensitive, weights: {Flu: 0.1, Migraine: 0.2, HIV: 0.9}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text(DATA)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "a.csv").write_text("City,Gender,Diagnosis\nEdmonton,M,HIV\n")
    (tmp_path / "b.csv").write_text("Gender;City;Diagnosis\nF;Calgary;Flu\n")
    (tmp_path / "ahp.csv").write_text(",a,b\na,1,4\nb,1/4,1\n")
    (tmp_path / "model.yaml").write_text("tree: {d: {sensitivity: 0.5, values: {x: 1, y: 0.2}}}\n")
    return tmp_path


def result(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def failure(capsys, *arguments):
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def test_score(folder, capsys):
    got = result(capsys, "score", "study.yaml", "--published", "a.csv", "--x", "inf")
    assert (got["records"], got["source_records"], got["x"]) == (1, 4, "inf")
    assert set(got["scores"]) == {"m", "l_severity", "tkl", "tkl_max"}
    assert got["scores"]["l_severity"]["value"] == pytest.approx(0.45)
    assert got["scores"]["l_severity"]["normalized"] == pytest.approx(0.45 / 0.65)


def test_compare_takes_tables_one_after_the_other(folder, capsys):
    got = result(capsys, "score", "study.yaml", "--compare", "a.csv", "b.csv", "--draws", "50")
    assert got["ranking"] == ["b.csv", "a.csv"]
    assert got["draws"] == 50


def test_breach(folder, capsys):
    got = result(capsys, "breach", "study.yaml", "--records", "a.csv")
    assert got["share_of_records"] == 0.25


def test_weights(folder, capsys):
    assert result(capsys, "weights", "ahp", "ahp.csv")["weights"] == pytest.approx({"a": 0.8, "b": 0.2})
    assert result(capsys, "weights", "ahp", "ahp.csv", "ahp.csv")["concordance"] == 1.0
    assert result(capsys, "weights", "model", "model.yaml")["weights"] == {"d": {"x": 0.5, "y": 0.1}}
    got = result(capsys, "weights", "ahp", "ahp.csv", "--values", "a=ahp.csv", "--values", "b=ahp.csv")
    assert got["weights"]["a"] == pytest.approx({"a": 0.64, "b": 0.16})


def test_charts(folder, capsys):
    assert main(["weights", "ahp", "ahp.csv", "--chart", "w.svg"]) == 0
    assert main(["score", "study.yaml", "--chart", "s.json"]) == 0
    assert (folder / "w.svg").read_text().startswith("<svg")
    assert "DF_l" in (folder / "s.json").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "study.yaml"),
        ("score", "study.yaml", "--compare", "a.csv", "b.csv"),
        ("breach", "study.yaml", "--records", "a.csv"),
        ("weights", "ahp", "ahp.csv"),
        ("weights", "model", "model.yaml"),
    ],
)
def test_text_for_a_person(folder, capsys, arguments):
    assert main(list(arguments)) == 0
    assert len(capsys.readouterr().out.splitlines()) > 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("score", "study.yaml", "--x", "0.5"), "x must be 1 or larger"),
        (("score", "study.yaml", "--x", "many"), "--x must be a number"),
        (("score", "study.yaml", "b.csv"), "one argument too many"),
        (("score", "study.yaml", "--compare", "a.csv", "--records", "r.csv"), "cannot be used with"),
        (("score", "study.yaml", "--published", "ahp.csv"), "no name for column 1"),
        (("score", "study.yaml", "--chart", "x.bmp"), "must end in"),
        (("weights", "ahp", "ahp.csv", "--values", "a"), "ATTRIBUTE=FILE"),
        (("weights", "model", "nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_bad_input(folder, capsys, arguments, words):
    assert words in failure(capsys, *arguments)


def test_a_value_without_a_weight(folder, capsys):
    (folder / "study.yaml").write_text(STUDY.replace(", HIV: 0.9", ""))
    assert "lack the values 'HIV'" in failure(capsys, "score", "study.yaml")


def test_records_not_in_the_source(folder, capsys):
    (folder / "a.csv").write_text("City,Gender,Diagnosis\nEdmonton,F,HIV\n")
    assert "1 of the 1 records" in failure(capsys, "score", "study.yaml", "--published", "a.csv")
    got = result(capsys, "score", "study.yaml", "--published", "a.csv", "--skip-unknown")
    assert got["unknown_records"] == 1

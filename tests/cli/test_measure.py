from __future__ import annotations

import json

import pytest

from veilmark.cli.main import main

DATA = "id,age,zip,s\np1,30,01234,u\np1,30,01234,v\np2,30,01234,u\np3,,1234,u\n"
STUDY = """\
version: 1
source: d.csv
person: id
attributes:
  age: {role: quasi}
  zip: {role: quasi}
  s: {role: sensitive}
"""


@pytest.fixture
def study(tmp_path):
    (tmp_path / "d.csv").write_text(DATA)
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path / "study.yaml"


def measured(capsys, *arguments):
    assert main(["measure", *map(str, arguments), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def test_json_has_the_contract_s_fields(study, capsys):
    got = measured(capsys, study)
    assert (got["records"], got["persons"], got["classes"], got["k"]) == (4, 3, 2, 1)
    assert got["l"]["s"]["distinct"] == 1
    assert got["l"]["s"]["entropy"] == 1.0
    assert got["t"]["s"] == pytest.approx(0.25)
    assert got["risk"]["prosecutor"]["max"] == 1.0
    assert got["risk"]["prosecutor"]["mean"] == pytest.approx((0.5 + 0.5 + 1) / 3)


def test_other_data_by_the_same_roles(study, capsys, tmp_path):
    (tmp_path / "other.csv").write_text("s;zip;age;id\nu;1;2;a\nu;1;2;b\n")
    assert measured(capsys, study, "--data", tmp_path / "other.csv")["k"] == 2


def test_a_population_gives_the_journalist_s_risk(study, capsys, tmp_path):
    people = "age,zip\n" + "30,01234\n" * 8 + ",1234\n" * 4
    (tmp_path / "people.csv").write_text(people)
    risk = measured(capsys, study, "--population", tmp_path / "people.csv")["risk"]
    assert risk["journalist"]["max"] == pytest.approx(1 / 4)
    assert risk["journalist"]["mean"] == pytest.approx((2 / 8 + 1 / 4) / 3)
    assert risk["unlinked_classes"] == 0


def test_requirements_decide_the_exit_code(study, capsys):
    limits = ["--require", "k=1", "--require", "t.s=0.25"]
    assert main(["measure", str(study), *limits, "--json"]) == 0
    assert [r["met"] for r in json.loads(capsys.readouterr().out)["required"]] == [True, True]
    assert main(["measure", str(study), *limits, "--require", "l.s=2", "--require", "risk=0.5", "--json"]) == 1
    assert [r["met"] for r in json.loads(capsys.readouterr().out)["required"]] == [True, True, False, False]
    assert main(["measure", str(study), "--require", "k=2"]) == 1
    assert "k: 1 measured, 2 required: NOT met" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("limit", "words"), [("k", "such as k=5"), ("q=3", "'q' is not a measure"), ("l.x=2", "'x' is not")]
)
def test_requirements_that_make_no_sense(study, capsys, limit, words):
    assert main(["measure", str(study), "--require", limit]) == 2
    assert words in capsys.readouterr().err


def test_text_for_a_person(study, capsys):
    assert main(["measure", str(study)]) == 0
    out = capsys.readouterr().out
    assert "4 records of 3 persons, 2 classes" in out
    assert "k = 1" in out
    assert "Missing values (each counts as a category of its own): age 1." in out


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("veilmark ")
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "measure" in out
    assert "trace" in out


def test_no_arguments_show_help(capsys):
    assert main([]) in (0, 2)
    assert "Usage" in "".join(capsys.readouterr())

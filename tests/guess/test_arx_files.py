"""ARX's hierarchy files beside the data are found by their names, and used where they fit."""

from __future__ import annotations

import json

import pytest

from veilmark import Study
from veilmark.cli.main import main

DATA = "age,job,pay\n" + "".join(f"{20 + i % 5},{'ab'[i % 2]},{i % 3}\n" for i in range(60))
AGE = "".join(f"{age};20-29;*\n" for age in range(20, 30))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "census_2020.csv").write_text(DATA)
    return tmp_path


def guessed(folder, capsys):
    """The columns as `init --json` has them, and the study that it wrote."""
    target = folder / "studies"
    target.mkdir(exist_ok=True)
    capsys.readouterr()
    assert main(["init", str(folder / "census_2020.csv"), "-o", str(target / "s.yaml"), "--force", "--json"]) == 0
    columns = json.loads(capsys.readouterr().out)["columns"]
    return {of["column"]: of for of in columns}, Study.open(target / "s.yaml")


def test_a_file_beside_the_data_is_used(folder, capsys):
    (folder / "census_hierarchy_age.csv").write_text(AGE)
    columns, study = guessed(folder, capsys)
    assert columns["age"]["hierarchy"] == {"file": "../census_hierarchy_age.csv"}
    assert columns["age"]["reason"].endswith("; hierarchy from census_hierarchy_age.csv")
    assert columns["job"]["hierarchy"] is None
    assert study.measure().records == 60


def test_a_file_in_the_folder_of_hierarchies_is_used_and_the_one_named_like_the_data_first(folder, capsys):
    (folder / "hierarchies").mkdir()
    (folder / "other_hierarchy_age.csv").write_text(AGE)
    (folder / "hierarchies" / "Census_hierarchy_AGE.csv").write_text(AGE)
    age = guessed(folder, capsys)[0]["age"]
    assert age["hierarchy"] == {"file": "../hierarchies/Census_hierarchy_AGE.csv"}


def test_files_of_another_table_in_another_folder_are_left_alone(folder, capsys):
    (folder / "adult").mkdir()
    (folder / "adult" / "adult_hierarchy_age.csv").write_text(AGE)
    (folder / "adult" / "hierarchy_age.csv").write_text(AGE)
    age = guessed(folder, capsys)[0]["age"]
    assert "file" not in (age["hierarchy"] or {})


def test_a_file_named_like_another_table_carries_a_check(folder, capsys):
    (folder / "adult_hierarchy_age.csv").write_text(AGE)
    age = guessed(folder, capsys)[0]["age"]
    assert age["hierarchy"] == {"file": "../adult_hierarchy_age.csv"}
    assert any("named after another table" in warning for warning in age["warnings"])


def test_a_file_that_lacks_a_few_values_is_used_and_that_is_said(folder, capsys):
    ages = [20 + i % 40 for i in range(400)]
    (folder / "census_2020.csv").write_text("age,job\n" + "".join(f"{age},{'ab'[age % 2]}\n" for age in ages))
    (folder / "census_hierarchy_age.csv").write_text("".join(f"{a};{a // 10}0-{a // 10}9;*\n" for a in range(20, 59)))
    columns, study = guessed(folder, capsys)
    assert columns["age"]["hierarchy"] == {"file": "../census_hierarchy_age.csv", "others": "*"}
    assert "values that the file does not have become * at level 1: 1" in columns["age"]["warnings"]
    assert study.measure().records == 400


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("20;20-29;*\n", "it has only 1 of the 5 values of this column"),
        ("20;a\n20;b\n", "not a hierarchy in the ARX format"),
    ],
)
def test_a_file_that_does_not_fit_is_not_used_and_that_is_said(folder, capsys, content, why):
    (folder / "census_hierarchy_age.csv").write_text(content)
    age = guessed(folder, capsys)[0]["age"]
    assert "intervals" in age["hierarchy"] or age["hierarchy"] is None
    assert any("census_hierarchy_age.csv is not used" in w and why in w for w in age["warnings"])


def test_a_column_with_a_file_is_a_quasi_identifier_unless_it_is_known_to_be_something_else(folder, capsys):
    (folder / "census_2020.csv").write_text(DATA.replace("age,job", "score,job"))
    for column, lines in (("score", AGE), ("pay", "0;x;*\n1;x;*\n2;x;*\n")):
        (folder / f"census_hierarchy_{column}.csv").write_text(lines)
    columns, _ = guessed(folder, capsys)
    assert (columns["score"]["role"], columns["pay"]["role"]) == ("quasi", "sensitive")
    assert columns["pay"]["hierarchy"] is None


def test_folders_whose_names_begin_with_hierarchies_are_looked_into(folder, capsys):
    (folder / "hierarchies_arx").mkdir()
    (folder / "hierarchies_arx" / "census_hierarchy_age.csv").write_text(AGE)
    assert guessed(folder, capsys)[0]["age"]["hierarchy"] == {"file": "../hierarchies_arx/census_hierarchy_age.csv"}

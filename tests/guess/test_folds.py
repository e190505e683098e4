"""Persons whose quasi-identifiers vary: the study says which value counts, so that one row a person can be made."""

from __future__ import annotations

import pyarrow as pa
import pytest
from guessing import guess_again

from veilmark import Study
from veilmark.sample import hospital
from veilmark.tables.persons import Folding


def of_person(**columns):
    return guess_again(pa.table({"patient_id": [f"p{i // 4}" for i in range(400)]} | columns))["patient_id"]


def test_nothing_varies():
    assert of_person(city=[f"c{i // 4 % 9}" for i in range(400)]).fold is None


@pytest.mark.parametrize("days", [lambda i: f"2020-01-{i % 28 + 1:02}", lambda i: f"2020-01-{i % 28 + 1:02} 09:30"])
def test_the_latest_record_counts_where_one_date_varies(days):
    found = of_person(visit_date=[days(i) for i in range(400)], city=[f"c{i % 9}" for i in range(400)])
    assert found.fold == {"latest": "visit_date"}
    assert "several values of 'visit_date', 'city'" in found.warnings[0]


def test_else_the_commonest_value_counts():
    assert of_person(city=[f"c{i % 9}" for i in range(400)]).fold == "mode"
    # Texts of this form are not in the order of the days.
    assert of_person(visit_date=[f"{i % 28 + 1:02}.01.2020" for i in range(400)]).fold == "mode"
    days = [f"2020-01-{i % 28 + 1:02}" for i in range(400)]
    assert of_person(visit_date=days, seen_date=days).fold == "mode"


def test_a_missing_value_does_not_vary():
    assert of_person(city=["a" if i % 2 else None for i in range(400)]).fold is None


def test_attacks_and_methods_run_on_a_guessed_study():
    study = Study.guess(hospital(120, 1))
    assert study.folding == Folding("latest", "visit_date")
    from veilmark.workbench.compare import CompareRequest, compare_methods

    found = compare_methods(study, ["mondrian"], CompareRequest(3), ["qicorr"], targets=20)
    assert found.persons == 120

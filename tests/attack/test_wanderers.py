"""Linkage where persons have several records with different quasi-identifiers: each person counts once, whichever fits."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark import Ola, Study
from veilmark.sample import hospital
from veilmark.workbench.attack import attack

ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 39), st.sampled_from("ab")), min_size=1, max_size=25)


def study_of(rows, fold):
    person, age, town = zip(*rows, strict=True)
    table = pa.table({"who": person, "age": age, "town": town, "ill": [str(i % 3) for i in range(len(rows))]})
    roles = {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}}, "town": "quasi", "ill": "sensitive"}
    made = Study.of(table, roles, person="who")
    return Study(made.spec.model_copy(update={"fold": fold}), data=table)


@given(ROWS, st.sampled_from(["first", "mode"]))
@settings(max_examples=examples(30), deadline=None)
def test_a_row_links_to_everybody_with_a_record_that_fits(rows, fold):
    tens = [f"{age // 10 * 10}-{age // 10 * 10 + 9}" for _, age, _ in rows]
    release = pa.table({"age": tens, "town": [town for *_, town in rows], "ill": ["0"] * len(rows)})
    found = attack(study_of(rows, fold), release, ["linkage"]).attacks["linkage"]
    linked = [len({who for who, a, t in rows if (a // 10, t) == (age // 10, town)}) for _, age, town in rows]
    assert found.success == pytest.approx(np.mean([1 / n for n in linked]))
    assert found.details["min_linked"] == min(linked)
    assert found.details["population"] == len({who for who, *_ in rows})


def test_people_are_linked_part_by_part(monkeypatch):
    rows = [(i % 50, i * 7 % 40, "ab"[i % 2]) for i in range(300)]
    release = pa.table({"age": ["*"] * 9, "town": ["a"] * 9, "ill": ["0"] * 9})
    whole = attack(study_of(rows, "mode"), release, ["linkage"]).to_dict()
    monkeypatch.setattr(sys.modules["veilmark.attack.linkage"], "PART", 7)
    assert attack(study_of(rows, "mode"), release, ["linkage"]).to_dict() == whole


def test_a_release_of_k_persons_links_to_k_at_least():
    study = Study.guess(hospital(300, 2))
    release = study.anonymize(Ola(k=5, suppression=0.1))
    found = attack(study, release.table(), ["linkage"], targets=50).attacks["linkage"]
    assert found.details["min_linked"] >= release.k >= 5
    assert found.success <= 1 / 5

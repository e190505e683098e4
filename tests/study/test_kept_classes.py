"""A study keeps the classes of its source until its files change."""

from __future__ import annotations

import os

import pytest

from veilmark import Study
from veilmark.tables.classes import ClassTable

STUDY = """version: 1
source: people.csv
attributes:
  age: {role: quasi}
  sex: {role: quasi}
  ill: {role: sensitive}
"""


@pytest.fixture
def study(tmp_path):
    (tmp_path / "people.csv").write_text(
        "age,sex,ill\n" + "".join(f"{20 + i % 4},{'fm'[i % 2]},{i % 3}\n" for i in range(40))
    )
    (tmp_path / "study.yaml").write_text(STUDY)
    return Study.open(tmp_path / "study.yaml")


@pytest.fixture
def reads(monkeypatch):
    """How often the rows were reduced to classes."""
    found = []
    build = ClassTable.build.__func__

    def counted(cls, *args, **more):
        found.append(args)
        return build(cls, *args, **more)

    monkeypatch.setattr(ClassTable, "build", classmethod(counted))
    return found


def test_several_verbs_read_the_rows_once(study, reads):
    assert study.measure().to_dict() == study.measure().to_dict()
    assert len(reads) == 1


def test_a_file_that_changed_is_read_again(study, reads, tmp_path):
    before = study.measure().records
    with (tmp_path / "people.csv").open("a") as file:
        file.write("90,f,1\n")
    os.utime(tmp_path / "people.csv", ns=(1, 1))
    assert study.measure().records == before + 1
    assert len(reads) == 2

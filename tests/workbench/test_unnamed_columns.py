"""Columns that the study does not name are left out of everything that is published, and every verb says so."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from register import ROLES, town
from veilmark.cli.main import main
from veilmark.errors import StudyError
from veilmark.mark.marking import CopyMarking
from veilmark.mark.request import ReleaseRequest
from veilmark.output import write_table
from veilmark.study.study import Study
from veilmark.veil.anatomy import Anatomy
from veilmark.veil.anonymize import Microaggregation
from veilmark.veil.fslip import FSlip
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.onemany import OneMany
from veilmark.veil.rmr import Rmr
from veilmark.veil.sliced import Sliced
from veilmark.veil.slicing import Slicing
from veilmark.workbench.preview import Explorer
from veilmark.workbench.release import release

ROWS = 120
VISITS = pa.table(
    {
        "id": [i % 60 for i in range(ROWS)],
        "name": [f"N{i}" for i in range(ROWS)],
        "age": [20 + i % 60 % 30 for i in range(ROWS)],
        "weight": [50 + i % 60 % 20 for i in range(ROWS)],
        "ill": ["uvwxyz"[i % 60 % 6] for i in range(ROWS)],
        "cost": [str(i) for i in range(ROWS)],
        "note": [f"secret {i}" for i in range(ROWS)],
    }
)
NAMED = {
    "name": "direct",
    "age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
    "weight": "quasi",
    "ill": "sensitive",
    "cost": "other",
}
KEPT = ["age", "weight", "ill", "cost"]


def study(unnamed="leave-out", person=None):
    return Study.of(VISITS, NAMED, person, unnamed=unnamed)


@pytest.mark.parametrize("method", [Ola(0.1, k=3), Mondrian(k=3), Microaggregation(k=3)])
@pytest.mark.parametrize("unnamed", ["leave-out", "other"])
def test_one_table_has_the_named_columns(method, unnamed):
    got = study(unnamed).anonymize(method)
    more = ["id", "note"]
    named = [c for c in VISITS.column_names if c in KEPT or (unnamed == "other" and c in more)]
    assert got.table().column_names == named
    told = got.to_dict()
    assert told["columns_left_out"] == (more if unnamed == "leave-out" else [])
    assert told["as_is"] == ([] if unnamed == "leave-out" else more)


def test_the_person_column_is_no_unnamed_one():
    got = study("other", "id").anonymize(Mondrian(k=3))
    assert got.table().column_names == [*KEPT, "note"]
    assert got.as_is == ("note",)
    assert study(person="id").anonymize(Mondrian(k=3)).columns_left_out == ("note",)


@pytest.mark.filterwarnings("ignore::veilmark.errors.VeilmarkWarning")
@pytest.mark.parametrize("method", [FSlip(k=3), OneMany(k=3), Rmr(k=3), Anatomy(), Slicing(k=3)])
@pytest.mark.parametrize("unnamed", ["leave-out", "other"])
def test_tables_a_person_hold_quasi_identifiers_and_sensitive_attributes(tmp_path, method, unnamed):
    got = study(unnamed, "id").anonymize(method, tmp_path / "out")
    assert got.to_dict()["columns_left_out"] == ["cost", "note"]
    back = Sliced.open(tmp_path / "out")
    held = {*back.quasi.column_names, *(c for table in back.sensitive for c in table.column_names)}
    assert {c for c in held if not c.startswith("gid")} == {"age", "weight", "ill"}


def test_rules_that_publish_unnamed_columns_lose_them():
    rules = study("other").anonymize(Mondrian(k=3)).plan.recoding
    assert "note" in rules.published
    got = study().apply(rules)
    assert got.table().column_names == KEPT
    assert got.to_dict()["columns_left_out"] == ["id", "note"]
    assert study("other").apply(rules).table().column_names == ["id", *KEPT, "note"]


def test_columns_that_only_new_data_have_are_left_out():
    rules = study().anonymize(Mondrian(k=3)).plan.recoding
    new = VISITS.append_column("phone", VISITS["note"])
    got = study("other").apply(rules, data=new)
    assert got.table().column_names == KEPT
    assert study().apply(rules, data=new).columns_left_out == ("id", "note", "phone")
    assert study().apply(rules, data=new.drop_columns(["id", "note"])).columns_left_out == ("phone",)


def test_a_preview_shows_the_published_columns():
    assert Explorer.open(study(), method=Ola(1.0, k=3)).at([1, 1]).rows.column_names == KEPT


@pytest.mark.parametrize("unnamed", ["leave-out", "other"])
def test_copies_have_the_named_columns(tmp_path, unnamed):
    marking = CopyMarking(("ada", "bob", "cyd"), 3, decoys=3, covers=8, false_accusation=1e-2, risk=(1, 20))
    job = ReleaseRequest(town().population, ("voter",), marking, method=Ola(0.2, "dm_star"), seed=5)
    roles = {name: role for name, role in ROLES.items() if name != "cost"}
    named = Study.of(town().source, roles, unnamed=unnamed)
    got = release(named, job, tmp_path / "ledger.db", tmp_path / "key", tmp_path / "copies")
    there = [c for c in town().source.column_names if c != "voter" and (c != "cost" or unnamed == "other")]
    assert [pa_csv.read_csv(copy.file).column_names for copy in got.copies] == [there] * 3
    assert got.to_dict()["columns_left_out"] == (["cost"] if unnamed == "leave-out" else [])


def test_a_saved_study_says_what_becomes_of_unnamed_columns(tmp_path):
    write_table(VISITS, tmp_path / "visits.csv")
    for unnamed in ("leave-out", "other"):
        Study.of(tmp_path / "visits.csv", NAMED, unnamed=unnamed).save(tmp_path / "s.yaml")
        assert Study.open(tmp_path / "s.yaml").spec.unnamed == unnamed
    with pytest.raises(StudyError, match="unnamed"):
        Study.of(VISITS, NAMED, unnamed="quasi")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    write_table(VISITS, tmp_path / "visits.csv")
    replace(Study.of("visits.csv", NAMED, "id"), folder=tmp_path).save("s.yaml")

    def run(*arguments):
        assert main(list(arguments)) == 0
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in arguments else out

    return run


def test_every_verb_that_writes_says_it(run):
    rules = ["--method", "mondrian", "--k", "3", "--recoding", "rules.json", "-o", "out.csv"]
    assert run("anonymize", "s.yaml", *rules, "--json")["columns_left_out"] == ["note"]
    how = "because the study does not name them: note. To publish one, give it a role in the study."
    assert how in run("anonymize", "s.yaml", *rules)
    assert how in run("apply", "s.yaml", "rules.json", "-o", "new.csv")
    assert "Columns not published: cost, note." in run("anonymize", "s.yaml", "--method", "anatomy", "-o", "tables")
    assert "because the study does not name them: note. They are not published." in run("measure", "s.yaml")

"""The same seed and key give the same decoys and copies on every engine, and the same trace."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from engines.contract.helpers import plain, read_rows, study_of
from register import ROLES, register
from veilmark.mark.marking import CopyMarking
from veilmark.mark.request import ReleaseRequest
from veilmark.output import write_table
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.workbench import ledger as ledger_verbs
from veilmark.workbench.release import release
from veilmark.workbench.trace import trace

TOWN = register(2, 3_000, 300, years=60, zips=tuple(f"{z:03d}" for z in range(0, 300, 17)))
MARKING = CopyMarking(k=3, decoys=2, covers=3, risk=(1.0, 40.0), recipients=("ada", "bob"))


def typed(table):
    """Years and costs as numbers."""
    for name, kind in {"yob": pa.int32(), "cost": pa.float64()}.items():
        if name in table.column_names:
            place = table.column_names.index(name)
            table = table.set_column(place, name, table.column(name).cast(kind))
    return table


def released(source, population, method, form, folder, number, marking=MARKING):
    """Copies as multisets, decoys, and whom a leaked copy points to."""
    copies, ledger = folder / f"copies{number}", str(folder / f"ledger{number}.db")
    identity = () if population is None else ("voter",)
    job = ReleaseRequest(population, identity, marking, method=method, seed=7, form=form)
    made = release(study_of(source, ROLES), job, ledger, folder / "key", copies)
    files = {name: read_rows(copies / f"{name}.{form}") for name in marking.recipients}
    decoys = ledger_verbs.decoys(ledger, made.release, folder / "key")
    traced = trace(ledger, folder / "key", file=copies / f"bob.{form}", false_accusation=0.01)
    scores = [(s["name"], s["score"], s["p_value"]) for s in plain(traced)["recipients"]]
    # Where Spark writes the copies, decoys are judged by labels and sizes alone.
    content = plain(made, "release", "recipients", "commitment", "told")
    content["notes"] = [note for note in content["notes"] if "AUC" not in note]
    return content, files, decoys, scores, traced.to_dict()["accused"]


@pytest.mark.parametrize("method", [Ola(0.2), Mondrian()], ids=["ola", "mondrian"])
def test_population_in_the_engine(case, duck, tmp_path, method):
    found, expected = (
        released(of.load(typed(TOWN.source)), of.load(typed(TOWN.population)), method, "csv", tmp_path, number)
        for number, of in enumerate((case, duck))
    )
    assert found == expected
    assert all(found[2].values())


@pytest.mark.parametrize("method", [Ola(0.2), Mondrian()], ids=["ola", "mondrian"])
def test_without_a_population(case, duck, tmp_path, method):
    marking = replace(MARKING, recipients=("ada", "bob", "cyd"), decoys=0, covers=6)
    found, expected = (
        released(of.load(typed(TOWN.source)), None, method, "csv", tmp_path, number, marking)
        for number, of in enumerate((case, duck))
    )
    assert found == expected
    assert found[-1] == ["bob"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_population_in_a_file(case, duck, tmp_path, form):
    write_table(TOWN.population, tmp_path / "people.csv")
    found, expected = (
        released(of.load(typed(TOWN.source)), tmp_path / "people.csv", Ola(0.2), form, tmp_path, number)
        for number, of in enumerate((case, duck))
    )
    assert found == expected

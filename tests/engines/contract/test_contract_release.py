"""The same seed and key give the same decoys and copies on every engine, and the same trace."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engines.contract.helpers import plain, read_rows, study_of
from register import ROLES, register
from veilmark import workbench
from veilmark.mark.plan import Marking
from veilmark.output import write_table
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola

TOWN = register(2, 3_000, 300, years=60, zips=tuple(f"{z:03d}" for z in range(0, 300, 17)))
MARKING = Marking(k=3, decoys=2, covers=3, risk=(1.0, 40.0), recipients=("ada", "bob"))


def typed(table):
    """Years and costs as numbers."""
    for name, kind in {"yob": pa.int32(), "cost": pa.float64()}.items():
        if name in table.column_names:
            place = table.column_names.index(name)
            table = table.set_column(place, name, table.column(name).cast(kind))
    return table


def released(source, population, method, form, folder, number):
    """Copies as multisets, decoys, and whom a leaked copy points to."""
    copies, ledger = folder / f"copies{number}", str(folder / f"ledger{number}.db")
    job = workbench.Job(population, ("voter",), MARKING, method=method, seed=7, form=form)
    made = workbench.release(study_of(source, ROLES), job, ledger, folder / "key", copies)
    files = {name: read_rows(copies / f"{name}.{form}") for name in MARKING.recipients}
    decoys = workbench.ledger.decoys(ledger, made.release, folder / "key")
    traced = workbench.trace(ledger, folder / "key", file=copies / f"bob.{form}", false_accusation=0.01)
    scores = [(s["name"], s["score"], s["p_value"]) for s in plain(traced)["recipients"]]
    return plain(made, "release", "recipients"), files, decoys, scores, traced.to_dict()["accused"]


@pytest.mark.parametrize("method", [Ola(0.2), Mondrian()], ids=["ola", "mondrian"])
def test_population_in_the_engine(case, duck, tmp_path, method):
    found, expected = (
        released(of.load(typed(TOWN.source)), of.load(typed(TOWN.population)), method, "csv", tmp_path, number)
        for number, of in enumerate((case, duck))
    )
    assert found == expected
    assert all(found[2].values())


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_population_in_a_file(case, duck, tmp_path, form):
    write_table(TOWN.population, tmp_path / "people.csv")
    found, expected = (
        released(of.load(typed(TOWN.source)), tmp_path / "people.csv", Ola(0.2), form, tmp_path, number)
        for number, of in enumerate((case, duck))
    )
    assert found == expected

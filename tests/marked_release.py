"""A small release with decoys, of made-up voters, for tests of what is done with one."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from veilmark.mark.marking import CopyMarking
from veilmark.mark.request import ReleaseRequest
from veilmark.output import write_table
from veilmark.sample import voters
from veilmark.study.opening import open_study
from veilmark.veil.ola import Ola
from veilmark.workbench import ledger as ledger_verbs
from veilmark.workbench.release import release as run_release

QUASI = ("zip", "gender", "yob")
STUDY = """version: 1
source: patients.csv
attributes:
  voter_id: {role: direct}
  zip: {role: quasi, hierarchy: {mask: 5}}
  gender: {role: quasi}
  yob: {role: quasi, hierarchy: {intervals: [2, 4, 8]}}
  diagnosis: {role: sensitive}
  cost: {role: other}
"""


@dataclass(frozen=True)
class Case:
    """Where a release's files are."""

    folder: Path
    release: str
    names: tuple[str, ...]

    @property
    def ledger(self):
        return str(self.folder / "ledger.db")

    @property
    def key(self):
        return self.folder / "key"

    def copy(self, name):
        return self.folder / "copies" / f"{name}.csv"

    def decoys(self, name):
        return ledger_verbs.decoys(self.ledger, self.release, self.key)[name]


def make_release(folder, people=20_000, members=3_000, seed=3, **marking):
    """Voters, some of whom are patients, and a release of the patients to five recipients."""
    random = np.random.default_rng(seed)
    population = voters(people, seed)
    patients = population.take(np.sort(random.choice(people, members, replace=False)))
    columns = ["voter_id", "zip", "gender", "yob"]
    patients = patients.select(columns).append_column("diagnosis", pa.array(random.choice(list("uvwxyz"), members)))
    patients = patients.append_column("cost", pa.array(random.integers(10, 999, members)))
    write_table(population.select(columns), folder / "population.csv")
    write_table(patients, folder / "patients.csv")
    (folder / "study.yaml").write_text(STUDY)
    wanted = {"k": 5, "decoys": 2, "covers": 6, "risk": (1.0, 20.0), "recipients": ("ada", "bob", "cyd", "dan", "eve")}
    plan = CopyMarking(**(wanted | marking))
    job = ReleaseRequest(folder / "population.csv", ("voter_id",), plan, method=Ola(0.1), seed=7)
    study = open_study(folder / "study.yaml")
    made = run_release(study, job, folder / "ledger.db", folder / "key", folder / "copies")
    return Case(folder, made.release, plan.recipients)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))

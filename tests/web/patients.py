"""Patients, the voters they were drawn from, and a release of them, for the pages that deal with copies."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from veilmark.output import write_table
from veilmark.sample import voters
from web.helpers import wait

STUDY = """\
version: 1
source: patients.csv
attributes:
  voter_id: {role: direct}
  zip: {role: quasi, hierarchy: {mask: 5}}
  gender: {role: quasi}
  yob: {role: quasi, hierarchy: {intervals: [2, 4, 8]}}
  diagnosis: {role: sensitive}
"""
COLUMNS = ["voter_id", "zip", "gender", "yob"]
ASKED = {
    "recipients": [
        {"name": "ada", "agreement": "A-1", "contact": "ada@ada.example", "consent": "§ 4"},
        {"name": "bob"},
    ],
    "population": "data/patients-voters.csv",
    "identity": ["voter_id"],
    "suppress": 0.1,
    "decoys": 2,
    "collusion": 1,
    "risk": [1, 20],
    "false_accusation": 0.001,
    "seed": 7,
}
FORM = {
    "recipients": "ada\n  bob  \n\n",
    "agreement:ada": "A-1",
    "population": "data/patients-voters.csv",
    "identity": ["voter_id"],
    "method": "ola",
    "k": "5",
    "suppress": "10",
    "loss": "dm_star",
    "levels": "",
    "l:diagnosis": "",
    "t:diagnosis": "",
    "decoys": "2",
    "hiding": "collusion",
    "collusion": "1",
    "covers": "20",
    "false_accusation": "0.001",
    "risk_low": "1",
    "risk_high": "20",
    "seed": "",
    "format": "csv",
}


@cache
def tables(people=60_000, members=6_000):
    """The population and the patients."""
    random = np.random.default_rng(3)
    population = voters(people, 3)
    patients = population.take(np.sort(random.choice(people, members, replace=False))).select(COLUMNS)
    return population.select(COLUMNS), patients.append_column(
        "diagnosis", pa.array(random.choice(list("uvwxyz"), members))
    )


def add_patients(workspace):
    """The study `patients`, and the voters, in a workspace."""
    population, patients = tables()
    (workspace.folder / "data").mkdir(exist_ok=True)
    write_table(population, workspace.folder / "data" / "patients-voters.csv")
    write_table(patients, workspace.folder / "patients.csv")
    (workspace.folder / "patients.yaml").write_text(STUDY)


def make_release(client, **asked):
    """The result of a release by the API."""
    started = client.post("/api/studies/patients/release", json=ASKED | asked)
    assert started.status_code == 202, started.text
    done = wait(client, started.json())
    assert done["state"] == "done", done["error"]
    return client.get(f"/api/jobs/{done['id']}/result").json()

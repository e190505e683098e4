"""Made-up tables to try the app on, ready for all of its pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veilmark.output import write_table
from veilmark.study.study import Study
from veilmark.web.tasks.guesses import keep_guesses
from veilmark.web.workspace import Workspace
from veilmark.workbench.init import guess_again, init, make_sample
from veilmark.workbench.score import with_weights

PATIENTS, VOTERS, MEMBERS = 5_000, 130_000, 6_500
CONDITIONS = {"none": 0.4, "hypertension": 0.3, "asthma": 0.2, "diabetes": 0.07, "HIV": 0.03}
REGISTER: dict[str, Any] = {
    "voter_id": "direct",
    "first_name": "direct",
    "last_name": "direct",
    "zip": {"role": "quasi", "hierarchy": {"mask": 5}},
    "gender": "quasi",
    "yob": {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8]}},
    "race": "quasi",
    "condition": {
        "role": "sensitive",
        "weights": {"none": 0, "hypertension": 0.1, "asthma": 0.1, "diabetes": 0.3, "HIV": 0.9, "default": 0.1},
    },
}
WEIGHTS: dict[str, dict[str, Any]] = {
    "diagnosis": {"042": 0.9, "295": 0.7, "303": 0.7, "304": 0.7, "default": 0.1},
    "income": {"ranges": [{"to": 20_000, "weight": 0.2}, {"from": 20_000, "weight": 0.1}]},
    "poverty": {"default": 0.2},
}


def open_sample(workspace: Workspace, kind: str, seed: int = 1) -> dict[str, Any]:
    """Make up a table and its study; a job."""
    file = workspace.new_study(kind)
    (workspace.folder / "data").mkdir(exist_ok=True)
    study = _hospital(workspace, file.stem, seed) if kind == "hospital" else _register(workspace, file.stem, seed)
    study.save(file)
    return {"study": file.stem}


def _hospital(workspace: Workspace, name: str, seed: int) -> Study:
    data = workspace.folder / "data" / f"{name}.csv"
    make_sample("hospital", data, PATIENTS, seed)
    guessed = workspace.folder / f"{name}.yaml"
    keep_guesses(workspace, name, init(data, guessed, force=True))
    study = workspace.study(name)
    return with_weights(study, {c: w for c, w in WEIGHTS.items() if c in study.sensitive})


def _register(workspace: Workspace, name: str, seed: int) -> Study:
    people, data = (workspace.folder / "data" / file for file in (f"{name}-voters.parquet", f"{name}.csv"))
    make_sample("voters", people, VOTERS, seed)
    write_table(_members(pq.read_table(people), seed), data)
    study = Study.of(data, REGISTER)
    keep_guesses(workspace, name, guess_again(study))
    return study


def _members(voters: pa.Table, seed: int) -> pa.Table:
    """Some of the voters, each with a condition."""
    rng = np.random.default_rng(seed)
    members = voters.take(np.sort(rng.choice(len(voters), MEMBERS, replace=False)))
    drawn = rng.choice(len(CONDITIONS), MEMBERS, p=[*CONDITIONS.values()])
    conditions = pa.array(np.array([*CONDITIONS])[drawn])
    columns = [name for name in REGISTER if name != "condition"]
    return members.select(columns).append_column("condition", conditions)

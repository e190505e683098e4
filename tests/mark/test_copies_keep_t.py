"""t-closeness holds in every copy by the copy's own values, whatever it lacks and whatever decoys it has."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest

from marked_release import QUASI, STUDY, read
from veilmark.errors import VeilmarkError
from veilmark.mark.marking import CopyMarking
from veilmark.mark.request import ReleaseRequest
from veilmark.output import write_table
from veilmark.privacy.models import TCloseness
from veilmark.sample import voters
from veilmark.study.opening import open_study
from veilmark.veil.ola import Ola
from veilmark.workbench.release import release

NAMES = ("ada", "bob", "cyd", "dan")
LIMIT = 0.25


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("close")
    rng, people = np.random.default_rng(1), voters(60_000, 3)
    patients = people.take(np.arange(0, 60_000, 10)).select(["voter_id", *QUASI])
    patients = patients.append_column(
        "diagnosis", pa.array(rng.choice(["flu", "asthma", "none"], 6_000, p=[0.3, 0.2, 0.5]))
    )
    patients = patients.append_column("cost", pa.array(rng.integers(1, 400, 6_000)))
    write_table(people.select(["voter_id", *QUASI]), folder / "population.csv")
    write_table(patients, folder / "patients.csv")
    (folder / "study.yaml").write_text(STUDY)
    return folder


def publish(place, run, limit=LIMIT, seed=None, dry_run=False, **marking):
    given = {"decoys": 2, "risk": (1.0, 40.0), "false_accusation": 1e-2, "budget": 0.9} | marking
    job = ReleaseRequest(
        place / "population.csv",
        ("voter_id",),
        CopyMarking(NAMES, 5, **given),
        (TCloseness("diagnosis", limit),),
        Ola(0.4),
        seed=seed,
    )
    study = open_study(place / "study.yaml")
    return release(study, job, place / f"{run}.db", place / f"{run}.key", place / run, dry_run=dry_run)


def farthest(path):
    """By definition, from the file alone."""
    classes, whole = defaultdict(Counter), Counter()
    for row in read(path):
        classes[tuple(row[c] for c in QUASI)][row["diagnosis"]] += 1
        whole[row["diagnosis"]] += 1
    return max(
        sum(abs(of[v] / of.total() - n / whole.total()) for v, n in whole.items()) / 2 for of in classes.values()
    )


@pytest.mark.parametrize(
    "marking", [{"covers": 10}, {"collusion": 2, "marks": "both"}, {"collusion": 2, "marks": "rows", "decoys": 0}]
)
def test_every_copy_keeps_t_by_its_own_values(place, marking):
    """Over several fresh keys."""
    for turn in range(3):
        made = publish(place, f"{'-'.join(map(str, marking.values()))}-{turn}", **marking)
        assert max(farthest(copy.file) for copy in made.copies) <= LIMIT + 1e-9


def test_the_same_seed_still_gives_the_same_plan(place):
    first, second = (publish(place, "again", seed=5, dry_run=True, covers=10) for _ in range(2))
    assert first.to_dict() == second.to_dict()


def test_a_t_that_no_copy_can_keep_is_refused(place):
    with pytest.raises(VeilmarkError):
        publish(place, "none", limit=0.0, covers=10)

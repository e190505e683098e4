"""Can decoys be told? Releases to ten recipients without options, attacked by whoever has one copy, or one and the register.

    python -m benchmarks.opponent_decoys [--trials 5] [--risk 1.1:1.5]

For each table: the AUC of the best of five classifiers on one copy (the decoys of all recipients judged together, ½ is
guessing), what the same classifiers reach by noise alone (as many classes, drawn at random, are taken for decoys), the AUC
with the population's links beside, each classifier's mean, decoy rows that no real row could be (pregnant men, children with
children), labels that only decoys have, and the share of the records that is given up for the decoys' sake.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veilmark import Study
from veilmark.attack.crosscopy import Scope, tell
from veilmark.mark import telling
from veilmark.mark.marking import Marking
from veilmark.mark.request import ReleaseRequest
from veilmark.sample import voters
from veilmark.veil.ola import Ola
from veilmark.workbench import ledger as ledger_verbs
from veilmark.workbench.crosscopy import cross_copy
from veilmark.workbench.release import release

NAMES = tuple(f"recipient {i}" for i in range(10))
SHUFFLES = 3
"""So often are random classes judged as if they were decoys."""
QUASI: Mapping[str, Any] = {
    "zip": {"role": "quasi", "hierarchy": {"mask": 5}},
    "gender": "quasi",
    "yob": {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8]}},
}


@dataclass(frozen=True)
class Case:
    """A population, the rows of a study, its roles, and which rows nobody can be."""

    population: pa.Table
    rows: pa.Table
    roles: Mapping[str, Any]
    impossible: Callable[[Mapping[str, Any]], bool]


def plain_voters(random: np.random.Generator, people: int = 1_300_000, members: int = 30_000) -> Case:
    """Voters with an illness that depends on nothing, and an amount."""
    population = voters(people, int(random.integers(1 << 30)))
    rows = population.take(np.sort(random.choice(people, members, replace=False)))
    rows = rows.select(["voter_id", "zip", "gender", "yob"])
    rows = rows.append_column("illness", pa.array(random.choice(list("uvwxyz"), members)))
    rows = rows.append_column("amount", pa.array(random.integers(10, 9_999, members)))
    roles = {"voter_id": "direct", **QUASI, "illness": "sensitive", "amount": "other"}
    return Case(population.select(["voter_id", "zip", "gender", "yob"]), rows, roles, lambda row: False)


def hospital(random: np.random.Generator, people: int = 400_000, members: int = 40_000) -> Case:
    """Patients whose illness depends on sex and age; pregnancy is a column of its own, published as it is."""
    case = plain_voters(random, people, members)
    gender = np.array(case.rows.column("gender").to_pylist())
    age = 2000 - case.rows.column("yob").to_numpy().astype(int)
    woman, young, old = gender == "F", (age >= 16) & (age <= 48), age > 60
    pregnant = woman & young & (random.random(members) < 0.15)
    ill = np.where(old, random.choice(["heart", "stroke", "none"], members), random.choice(["flu", "none"], members))
    ill = np.where(pregnant, "birth", np.where(old & ~woman & (random.random(members) < 0.2), "prostate", ill))
    rows = case.rows.set_column(4, "illness", pa.array(ill))
    rows = rows.append_column("pregnant", pa.array(np.where(pregnant, "yes", "no")))
    roles = {**case.roles, "pregnant": "other"}
    return Case(case.population, rows, roles, _impossible)


def _impossible(row: Mapping[str, Any]) -> bool:
    woman_only = row["pregnant"] == "yes" or row["illness"] == "birth"
    return (row["gender"] == "M" and woman_only) or (row["gender"] == "F" and row["illness"] == "prostate")


CASES = {"voters, 30,000 of 1.3 million": plain_voters, "hospital, 40,000 of 400,000": hospital}


@dataclass(frozen=True)
class Told:
    """Of one release."""

    alone: Mapping[str, float]
    noise: float
    with_register: float
    impossible: int
    rows: int
    new_labels: int
    given_up: float


class _Shuffled:
    """Stands in for `tell`, and judges random classes, too."""

    def __init__(self, seed: int) -> None:
        self.random, self.noise = np.random.default_rng([seed, 1]), float("nan")

    def __call__(self, found: Any, decoy: np.ndarray, chosen: np.ndarray, **options: Any) -> Scope:
        best = [tell(found, self.random.permutation(decoy), chosen, **options).best for _ in range(SHUFFLES)]
        self.noise = float(np.mean([of.auc for of in best if of]))
        return tell(found, decoy, chosen, **options)


def attacked(case: Case, seed: int, risk: tuple[float, float] | None) -> Told:
    """Release to all, then attack."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(case.population, folder / "population.parquet")
        pq.write_table(case.rows, folder / "rows.parquet")
        study = Study.of(folder / "rows.parquet", dict(case.roles))
        marking = Marking(risk=risk).of_copies(NAMES, 5)
        job = ReleaseRequest(folder / "population.parquet", ("voter_id",), marking, method=Ola(0.05), seed=seed)
        shuffled = _Shuffled(seed)
        with patch.object(telling, "tell", shuffled):
            made = release(study, job, folder / "ledger.db", folder / "key", folder / "copies")
        decoys = ledger_verbs.decoys(folder / "ledger.db", made.release, folder / "key")
        tables = {
            copy.name: pq.read_table(copy.file) if copy.file.endswith("parquet") else _csv(copy.file)
            for copy in made.copies
        }
        impossible, rows, new = _planted(case, tables, decoys)
        copies = [Path(copy.file) for copy in made.copies]
        linked = cross_copy(
            folder / "ledger.db", folder / "key", made.release, copies[:1], folder / "population.parquet", study
        )
        note = next((n for n in made.notes if "for the sake of decoys" in n), "(0.0%)")
        share = float(note.partition("(")[2].partition("%")[0]) / 100
        best = linked.whole.best
        alone = {name: of.auc for name, of in made.told.classifiers.items()}
        register = best.auc if best else float("nan")
        return Told(alone, shuffled.noise, register, impossible, rows, new, share)


def _csv(path: str) -> pa.Table:
    from pyarrow import csv

    return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=dict.fromkeys(("zip", "yob"), "string")))


def _planted(case: Case, tables: Mapping[str, pa.Table], decoys: Mapping[str, Any]) -> tuple[int, int, int]:
    """Decoy rows that nobody can be, of how many, and labels that only decoys have."""
    impossible = rows = new = 0
    columns = ("zip", "gender", "yob")
    for name, table in tables.items():
        planted = {tuple(d[c] for c in columns) for d in decoys[name]}
        content = table.to_pylist()
        own = [row for row in content if tuple(row[c] for c in columns) in planted]
        impossible += sum(map(case.impossible, own))
        rows += len(own)
        for column in columns:
            whole, mine = Counter(row[column] for row in content), Counter(row[column] for row in own)
            new += sum(whole[label] == count for label, count in mine.items())
    return impossible, rows, new


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--risk", help="decoys that attract, such as 1.1:1.5")
    parser.add_argument("--first", type=int, default=0, help="seed of the first trial")
    options = parser.parse_args()
    low, _, high = (options.risk or "").partition(":")
    risk = (float(low), float(high)) if high else None
    print(
        "| table | trials | one copy: AUC, mean | most | by noise alone | with the register | impossible rows "
        "| labels of decoys alone | given up |"
    )
    print("| --- " * 9 + "|")
    seeds, means = range(options.first, options.first + options.trials), {}
    for name, make in CASES.items():
        found = [attacked(make(np.random.default_rng(seed)), seed, risk) for seed in seeds]
        alone, linked = [max(of.alone.values()) for of in found], [of.with_register for of in found]
        impossible = f"{sum(of.impossible for of in found):,} of {sum(of.rows for of in found):,}"
        noise = f"{np.mean([of.noise for of in found]):.2f}"
        figures = (f"{np.mean(alone):.2f}", f"{max(alone):.2f}", noise, f"{np.nanmean(linked):.2f}", impossible)
        rest = (sum(of.new_labels for of in found), f"{np.mean([of.given_up for of in found]):.1%}")
        print("| " + " | ".join(map(str, (name, len(found), *figures, *rest))) + " |", flush=True)
        means[name] = {each: f"{np.mean([of.alone[each] for of in found]):.2f}" for each in found[0].alone}
    for name, each in means.items():
        print(f"{name}: " + ", ".join(f"{classifier} {mean}" for classifier, mean in each.items()))


if __name__ == "__main__":
    main()

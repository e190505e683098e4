"""The demo: each step of a custodian's day, said in plain words, done, and shown."""

from __future__ import annotations

import io
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from rich.console import Console

from veilmark import workbench
from veilmark.cli import show
from veilmark.errors import OutputError
from veilmark.output import write_table, write_text
from veilmark.study import Study

PATIENTS = 5_000
EXTRACT = 2_000
MATRIX = ",high,medium,low\nhigh,1,3,6\nmedium,,1,3\nlow,,,1\n"
WEIGHTS: dict[str, dict[str, Any]] = {
    "diagnosis": {"042": 0.9, "295": 0.7, "303": 0.7, "304": 0.7, "default": 0.1},
    "income": {"ranges": [{"to": 20_000, "weight": 0.2}, {"from": 20_000, "weight": 0.1}]},
    "poverty": {"ahp": "poverty.csv"},
}
CLERKS, GREEDY = ("ann", "bob", "cyd"), "cyd"
VOTERS, MEMBERS = 130_000, 6_500
RECIPIENTS, LEAKER = ("ada", "bob", "cyd"), "bob"
REGISTER: dict[str, Any] = {
    "voter_id": "direct",
    "zip": {"role": "quasi", "hierarchy": {"mask": 5}},
    "gender": "quasi",
    "yob": {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8]}},
    "race": "quasi",
    "condition": "sensitive",
}
DAYS, WARD, GRAB = 25, 20, 1_500
"""How many days the log has, how many patients a clerk looks after, and how many the greedy one takes at the end."""


def tell(folder: Path, seed: int, quiet: bool = False) -> dict[str, Any]:
    """Run the story, print it, and save what was printed as the report."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder '{folder}' cannot be made: {error.strerror}. Name another one.") from None
    console = Console(record=True, file=io.StringIO() if quiet else None, width=110 if quiet else None)
    report = folder / "report.html"
    story = Story(folder, console)
    told = {
        "records": story.make_up(seed),
        "measures": story.measure(),
        "weights": story.weigh(),
        "scores": story.score(),
        "ranking": story.compare(),
        "breach": story.leak(),
        "monitor": story.watch(),
        "release": story.anonymize(),
        "copies": story.share(seed),
        "trace": story.trace(),
    }
    write_text(report, console.export_html(clear=False))
    console.print("\n[bold]Done.[/bold] Open the report:", show.literal(report.resolve()), soft_wrap=True)
    return {"folder": str(folder), "report": str(report), **told}


class Story:
    """The steps in their order: each says what it is about, does it, shows it, and returns its numbers."""

    def __init__(self, folder: Path, console: Console) -> None:
        self.folder = folder
        self.console = console
        self.data = folder / "visits.csv"
        self.weighted = folder / "study-with-weights.yaml"
        self.ledger = folder / "demo-ledger.db"
        self.extracts = [folder / f"{name}.csv" for name in ("first", "young", "old")]

    def make_up(self, seed: int) -> int:
        self.console.rule("A hospital must share its visits")
        records = workbench.make_sample("hospital", self.data, PATIENTS, seed)
        self._say(f"Made {records:,} visits of {PATIENTS:,} patients, none of them real: {self.data}")
        return records

    def measure(self) -> dict[str, Any]:
        self.console.rule("What is each column?")
        file = self.folder / "study.yaml"
        self._command("init", self.data, "-o", file)
        show.guesses(workbench.init(self.data, file, force=True), self.console)

        self.console.rule("How exposed are the patients?")
        self._command("measure", file)
        study = workbench.open_study(file)
        measured = workbench.measure(study)
        show.measures(measured, study, console=self.console)
        workbench.with_weights(study, WEIGHTS).save(self.weighted)
        return measured.to_dict()

    def weigh(self) -> dict[str, float]:
        self.console.rule("How bad is it if a value comes out?")
        matrix = self.folder / "poverty.csv"
        write_text(matrix, MATRIX)
        self._say("An expert says how many times worse one degree of poverty is than another.")
        self._command("weights", "ahp", matrix)
        found = workbench.weights_from_ahp([matrix])
        show.ahp(found, self.console)
        weights: dict[str, float] = found.to_dict()["weights"]
        return weights

    def score(self) -> dict[str, Any]:
        self.console.rule("How badly could it be misused?")
        self._say(f"The study now says how bad each value is: {self.weighted}")
        self._command("score", self.weighted)
        study = self._study()
        scored = workbench.score(study)
        show.scores(scored, study, console=self.console)
        scores: dict[str, Any] = scored.to_dict()["scores"]
        return scores

    def compare(self) -> list[str]:
        self.console.rule("Which of three extracts is the least harmful?")
        for file, extract in zip(self.extracts, _extracts(self._visits()), strict=True):
            write_table(extract, file)
        self._command("score", self.weighted, "--compare", *self.extracts)
        ranking = workbench.compare_scores(self._study(), self.extracts)
        show.ranking(ranking, self.console)
        return list(ranking.candidates)

    def leak(self) -> dict[str, Any]:
        self.console.rule("An extract leaked: how bad is it?")
        leaked = self.extracts[0]
        self._command("breach", self.weighted, "--records", leaked)
        breach = workbench.breach(self._study(), leaked)
        show.breach_in_words(breach, self.console)
        return {"share_of_records": breach.share_of_records, "severity": breach.severity}

    def watch(self) -> dict[str, Any]:
        from veilmark.score.monitor import watch

        self.console.rule("Who is drawing too much?")
        log = self.folder / "queries.jsonl"
        write_text(log, "".join(f"{json.dumps(line)}\n" for line in _log(self._visits()["patient_id"])))
        self._command("monitor", self.weighted, "--log", log)
        with log.open("rb") as stream:
            summary = watch(self._study(), stream)
        for alert in summary.alerts:
            self._say(str(alert))
        for name, user in summary.users.items():
            self._say(f"{name}: {user.queries} queries, {user.exposure:.2%} of the source's score seen")
        return {"queries": summary.queries, "alerts": [alert.to_dict() for alert in summary.alerts]}

    def anonymize(self) -> dict[str, Any]:
        from veilmark.cli import show_anonymize
        from veilmark.veil.ola import Ola

        self.console.rule("What is the least change that makes it safe enough?")
        release = self.folder / "release.csv"
        self._command("anonymize", self.weighted, "--k", "5", "--suppress", "0.05", "--loss", "gcp", "-o", release)
        found = self._study().anonymize(Ola(suppression=0.05, loss="gcp", k=5), release)
        show_anonymize.anonymized(found, self.console)
        return found.to_dict()

    def share(self, seed: int) -> dict[str, Any]:
        from veilmark.cli import show_release
        from veilmark.mark.plan import Marking
        from veilmark.veil.ola import Ola

        self.console.rule("Three recipients are to get a register: who gets which copy?")
        people, members = self.folder / "voters.parquet", self.folder / "register.csv"
        workbench.make_sample("voters", people, VOTERS, seed)
        write_table(_register(pq.read_table(people), seed), members)
        study = Study.of(members, REGISTER)
        study.save(self.folder / "register.yaml")
        self._say(f"A register of {MEMBERS:,} persons, and the {VOTERS:,} voters whom an attacker could link it to.")
        options: list[str | Path] = [
            "--population",
            people,
            "--identity",
            "voter_id",
            "--recipients",
            ",".join(RECIPIENTS),
        ]
        options += ["--suppress", "0.05", "--collusion", "2", "--risk", "1:20"]
        ledger, key, copies = self.ledger, self.folder / "demo-ledger.key", self.folder / "copies"
        for old in (ledger, key):
            old.unlink(missing_ok=True)
        shutil.rmtree(copies, ignore_errors=True)
        self._command(
            "release", self.folder / "register.yaml", *options, "--ledger", ledger, "--key", key, "-o", copies
        )
        marking = Marking(RECIPIENTS, 5, collusion=2, risk=(1, 20))
        job = workbench.Job(people, ("voter_id",), marking, method=Ola(0.05), seed=seed)
        found = workbench.release(study, job, ledger, key, copies)
        show_release.released(found, self.console)
        return found.to_dict()

    def trace(self) -> dict[str, Any]:
        from veilmark.cli import show_release

        self.console.rule("A file has surfaced: whose copy is it?")
        leak = self.folder / "leak.csv"
        copy = pa_csv.read_csv(self.folder / "copies" / f"{LEAKER}.csv", convert_options=_as_texts("zip", "yob"))
        write_table(copy.slice(0, len(copy) * 7 // 10).drop_columns(["condition"]), leak)
        self._say("Somebody offers a file with seven tenths of the rows, one column short.")
        key = self.folder / "demo-ledger.key"
        self._command("trace", "--file", leak, "--ledger", self.ledger, "--key", key)
        found = workbench.trace(self.ledger, key, file=leak)
        show_release.traced(found, self.console)
        return {"accused": list(found.accused)}

    def _say(self, text: str) -> None:
        self.console.print(show.literal(text))

    def _command(self, *words: str | Path) -> None:
        command = shlex.join(["veilmark", *map(str, words)])
        self.console.print(show.literal(f"$ {command}", "dim"), soft_wrap=True)

    def _study(self) -> Study:
        return workbench.open_study(self.weighted)

    def _visits(self) -> pa.Table:
        return pa_csv.read_csv(self.data, convert_options=_as_texts("zip", "patient_id"))


def _as_texts(*columns: str) -> pa_csv.ConvertOptions:
    return pa_csv.ConvertOptions(strings_can_be_null=True, column_types=dict.fromkeys(columns, pa.string()))


def _register(voters: pa.Table, seed: int) -> pa.Table:
    """Some of the voters, each with a condition."""
    rng = np.random.default_rng(seed)
    members = voters.take(np.sort(rng.choice(len(voters), MEMBERS, replace=False)))
    conditions = np.array(["asthma", "diabetes", "hypertension", "none"])[
        rng.choice(4, MEMBERS, p=[0.2, 0.1, 0.3, 0.4])
    ]
    return members.select(["voter_id", "zip", "gender", "yob", "race"]).append_column("condition", pa.array(conditions))


def _extracts(visits: pa.Table) -> list[pa.Table]:
    """Three extracts of the same number of visits: the first, those of the young, those of the old."""
    by_age = visits.sort_by("age")
    return [visits.slice(0, EXTRACT), by_age.slice(0, EXTRACT), by_age.slice(len(visits) - EXTRACT)]


def _log(ids: pa.ChunkedArray) -> list[dict[str, Any]]:
    """Each clerk looks up two patients of the own ward a day; in the end one takes a good part of all patients."""
    patients = ids.unique().to_pylist()
    log = []
    for day in range(DAYS):
        for i, clerk in enumerate(CLERKS):
            ward = patients[i * WARD : (i + 1) * WARD]
            seen = [ward[day % WARD], ward[(day * 7 + 3) % WARD]]
            log.append({"user": clerk, "time": f"2026-01-{day + 1:02}T09:{i}0:00", "keys": seen})
    log.append({"user": GREEDY, "time": f"2026-01-{DAYS + 1:02}T03:00:00", "keys": patients[:GRAB]})
    return log

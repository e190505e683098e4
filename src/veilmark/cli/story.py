"""The demo: each step of a custodian's day, said in plain words, done, and shown."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
from rich.console import Console

from veilmark import workbench
from veilmark.cli import show
from veilmark.errors import OutputError
from veilmark.output import write_table, write_text
from veilmark.study import Study

PATIENTS = 5_000
EXTRACT = 2_000
TEXTS = {"zip": pa.string(), "patient_id": pa.string()}
MATRIX = ",high,medium,low\nhigh,1,3,6\nmedium,,1,3\nlow,,,1\n"
WEIGHTS: dict[str, dict[str, Any]] = {
    "diagnosis": {"042": 0.9, "295": 0.7, "303": 0.7, "304": 0.7, "default": 0.1},
    "income": {"ranges": [{"to": 20_000, "weight": 0.2}, {"from": 20_000, "weight": 0.1}]},
    "poverty": {"ahp": "poverty.csv"},
}
CLERKS, GREEDY = ("ann", "bob", "cyd"), "cyd"
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

    def _say(self, text: str) -> None:
        self.console.print(show.literal(text))

    def _command(self, *words: str | Path) -> None:
        command = shlex.join(["veilmark", *map(str, words)])
        self.console.print(show.literal(f"$ {command}", "dim"), soft_wrap=True)

    def _study(self) -> Study:
        return workbench.open_study(self.weighted)

    def _visits(self) -> pa.Table:
        options = pa_csv.ConvertOptions(strings_can_be_null=True, column_types=TEXTS)
        return pa_csv.read_csv(self.data, convert_options=options)


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

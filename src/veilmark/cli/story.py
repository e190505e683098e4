"""The demo: each step of a custodian's day, said in plain words, done, and shown."""

from __future__ import annotations

import io
import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from rich.console import Console

from veilmark.cli import show
from veilmark.errors import OutputError, VeilmarkError
from veilmark.mark.request import ReleaseRequest
from veilmark.output import refuse_address, write_table, write_text
from veilmark.study.opening import open_study
from veilmark.study.spec import VERSION, StudySpec
from veilmark.study.study import Study
from veilmark.workbench.init import init, make_sample
from veilmark.workbench.measure import measure as run_measure
from veilmark.workbench.release import release
from veilmark.workbench.score import breach as run_breach
from veilmark.workbench.score import compare_scores, weights_from_ahp, with_weights
from veilmark.workbench.score import score as run_score
from veilmark.workbench.trace import trace as run_trace

PATIENTS = 5_000
EXTRACT = 2_000
MATRIX = ",high,medium,low\nhigh,1,3,6\nmedium,,1,3\nlow,,,1\n"
WEIGHTS: dict[str, dict[str, Any]] = {
    "diagnosis": {"042": 0.9, "295": 0.7, "303": 0.7, "304": 0.7, "default": 0.1},
    "income": {"ranges": [{"to": 20_000, "weight": 0.2}, {"from": 20_000, "weight": 0.1}]},
    "poverty": {"ahp": "poverty.csv"},
}
HIERARCHIES: dict[str, dict[str, Any]] = {
    "diagnosis": {"builtin": "icd9"},
    "poverty": {"levels": [{"high": "poor", "medium": "poor", "low": "not poor"}]},
}
CLERKS, GREEDY = ("ann", "bob", "cyd"), "cyd"
VOTERS, MEMBERS = 130_000, 6_500
METHODS = ("ola", "mondrian", "fslip", "onemany", "anatomy")
RECIPIENTS, LEAKER = ("ada", "bob", "cyd"), "bob"
REGISTER: dict[str, Any] = {
    "voter_id": "direct",
    "zip": {"role": "quasi", "hierarchy": {"mask": 5}},
    "gender": "quasi",
    "yob": {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8]}},
    "race": "quasi",
    "condition": {
        "role": "sensitive",
        "weights": {"diabetes": 0.4, "asthma": 0.2, "hypertension": 0.2, "default": 0.05},
    },
}
DAYS, WARD, GRAB = 25, 20, 1_500
"""How many days the log has, how many patients a clerk looks after, and how many the greedy one takes at the end."""


def tell(folder: Path, seed: int, quiet: bool = False) -> dict[str, Any]:
    """Run the story, print it, save what was printed, and write the report of what was shared."""
    refuse_address(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder '{folder}' cannot be created: {error.strerror}. Give another one.") from None
    console = Console(record=True, file=io.StringIO() if quiet else None, width=110 if quiet else None)
    printed = folder / "story.html"
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
        "utility": story.look(),
        "attacks": story.attack(),
        "methods": story.try_methods(),
        "copies": story.share(seed),
        "trace": story.trace(),
    }
    report = story.report()
    write_text(printed, console.export_html(clear=False))
    last = report or printed
    console.print("\n[bold]Done.[/bold] Open the report:", show.literal(last.resolve()), soft_wrap=True)
    return {"folder": str(folder), "report": str(last), "story": str(printed), **told}


class Story:
    """The steps in their order: each says what it is about, does it, shows it, and returns its numbers."""

    def __init__(self, folder: Path, console: Console) -> None:
        self.folder = folder
        self.console = console
        self.data = folder / "visits.csv"
        self.weighted = folder / "study-with-weights.yaml"
        self.release = folder / "release.csv"
        self.register = folder / "register.yaml"
        self.ledger, self.key = folder / "demo-ledger.db", folder / "demo-ledger.key"
        self.copies = folder / "copies"
        self.extracts = [folder / f"{name}.csv" for name in ("first", "young", "old")]

    def make_up(self, seed: int) -> int:
        self.console.rule("A hospital must share its visits")
        records = make_sample("hospital", self.data, PATIENTS, seed)
        self._say(f"Generated {records:,} visits of {PATIENTS:,} patients. No patient is real. File: {self.data}")
        return records

    def measure(self) -> dict[str, Any]:
        self.console.rule("What is the role of each column?")
        file = self.folder / "study.yaml"
        self._command("init", self.data, "-o", file)
        show.guesses(init(self.data, file, force=True), self.console)

        self.console.rule("How high is the re-identification risk?")
        self._command("measure", file)
        study = open_study(file)
        measured = run_measure(study)
        show.measures(measured, study, console=self.console)
        _with_hierarchies(with_weights(study, WEIGHTS)).save(self.weighted)
        return measured.to_dict()

    def weigh(self) -> dict[str, float]:
        self.console.rule("How harmful is the disclosure of a value?")
        matrix = self.folder / "poverty.csv"
        write_text(matrix, MATRIX)
        self._say(
            "An expert compares degrees of poverty: how many times worse is the disclosure of one than of another?"
        )
        self._command("weights", "ahp", matrix)
        found = weights_from_ahp([matrix])
        show.ahp(found, self.console)
        weights: dict[str, float] = found.to_dict()["weights"]
        return weights

    def score(self) -> dict[str, Any]:
        self.console.rule("How much harm could misuse do?")
        self._say(f"The study now has a weight for each sensitive value: {self.weighted}")
        self._command("score", self.weighted)
        study = self._study()
        scored = run_score(study)
        show.scores(scored, study, console=self.console)
        scores: dict[str, Any] = scored.to_dict()["scores"]
        return scores

    def compare(self) -> list[str]:
        self.console.rule("Which of three extracts is the least harmful?")
        for file, extract in zip(self.extracts, _extracts(self._visits()), strict=True):
            write_table(extract, file)
        self._command("score", self.weighted, "--compare", *self.extracts)
        ranking = compare_scores(self._study(), self.extracts)
        show.ranking(ranking, self.console)
        return list(ranking.candidates)

    def leak(self) -> dict[str, Any]:
        self.console.rule("An extract leaked: how severe is it?")
        leaked = self.extracts[0]
        self._command("breach", self.weighted, "--records", leaked)
        breach = run_breach(self._study(), leaked)
        show.breach_in_words(breach, self.console)
        return {"share_of_records": breach.share_of_records, "severity": breach.severity}

    def watch(self) -> dict[str, Any]:
        from veilmark.services.monitor import watch

        self.console.rule("Who queries too much data?")
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

        self.console.rule("Anonymize with the least loss")
        self._command("anonymize", self.weighted, "--k", "5", "--suppress", "0.05", "-o", self.release)
        found = self._study().anonymize(Ola(suppression=0.05, k=5), self.release)
        show_anonymize.anonymized(found, self.console)
        return found.to_dict()

    def look(self) -> dict[str, Any]:
        from veilmark.cli import show_utility

        self.console.rule("How useful is the release?")
        self._command("utility", self.weighted, self.release)
        found = self._study().utility(self.release)
        show_utility.utility(found, self.release, self.console)
        return {"records": list(found.records), "loss": dict(found.loss.after) if found.loss else {}}

    def attack(self) -> dict[str, Any]:
        from veilmark.cli import show_attack

        self.console.rule("What can attackers learn from the release?")
        self._command("attack", self.weighted, self.release)
        found = self._study().attack(self.release)
        show_attack.attacked(found, self.console)
        return {name: of.to_dict() for name, of in found.attacks.items()}

    def try_methods(self) -> dict[str, Any]:
        from veilmark.cli import show_compare
        from veilmark.workbench.compare import CompareRequest, compare_methods

        self.console.rule("Does another method have less loss or less risk?")
        chart = self.folder / "frontier.svg"
        drawn: list[str | Path] = ["--chart", chart] if self._draws() else []
        self._command("compare", self.weighted, "--methods", ",".join(METHODS), "--k", "5", *drawn)
        found = compare_methods(self._study(), METHODS, CompareRequest(5), chart=chart if drawn else None)
        show_compare.compared(found, self.console)
        return {"frontier": found.frontier(), "below_k": found.below_k}

    def share(self, seed: int) -> dict[str, Any]:
        from veilmark.cli import show_release
        from veilmark.mark.marking import Marking
        from veilmark.veil.ola import Ola

        self.console.rule("Three recipients get a register, each a marked copy")
        people, members = self.folder / "voters.parquet", self.folder / "register.csv"
        make_sample("voters", people, VOTERS, seed)
        write_table(_register(pq.read_table(people), seed), members)
        Study.of(members, REGISTER).save(self.register)
        study = open_study(self.register)
        self._say(f"The register has {MEMBERS:,} persons. An attacker could link it to {VOTERS:,} voters.")
        options: list[str | Path] = [
            "--population",
            people,
            "--identity",
            "voter_id",
            "--recipients",
            ",".join(RECIPIENTS),
        ]
        options += ["--suppress", "10%"]
        for old in (self.ledger, self.key):
            old.unlink(missing_ok=True)
        shutil.rmtree(self.copies, ignore_errors=True)
        self._command("release", self.register, *options, *self._book(), "-o", self.copies)
        marking = Marking().of_copies(RECIPIENTS, 5)
        job = ReleaseRequest(people, ("voter_id",), marking, method=Ola(0.1), seed=seed)
        found = release(study, job, self.ledger, self.key, self.copies)
        show_release.released(found, self.console)
        return found.to_dict()

    def trace(self) -> dict[str, Any]:
        from veilmark.cli import show_release

        self.console.rule("A leaked file appears: whose copy is it?")
        leak = self.folder / "leak.csv"
        copy = pa_csv.read_csv(self.copies / f"{LEAKER}.csv", convert_options=_as_texts("zip", "yob"))
        write_table(copy.slice(0, len(copy) * 7 // 10).drop_columns(["condition"]), leak)
        self._say("The file has 70% of the rows of a copy and lacks one column.")
        self._command("trace", "--file", leak, *self._book())
        found = run_trace(self.ledger, self.key, file=leak)
        show_release.traced(found, self.console)
        return {"accused": list(found.accused)}

    def report(self) -> Path | None:
        """The page for a review board; None where nothing can draw it."""
        from veilmark.cli.report import show_findings
        from veilmark.workbench.report import Wanted, report

        self.console.rule("A report for the review board")
        if not self._draws():
            self._say("The report needs the extra `report`: pip install 'veilmark[report]'.")
            return None
        page, copy = self.folder / "report.html", self.copies / f"{RECIPIENTS[0]}.csv"
        self._command("report", self.register, copy, *self._book(), "--copies", self.copies, "-o", page)
        wanted = Wanted(copy, self.ledger, copies=self.copies, key=self.key)
        show_findings(report(open_study(self.register), page, wanted), page, self.console)
        return page

    def _draws(self) -> bool:
        """Whether charts and pages can be made: they need an extra."""
        from veilmark.report.document import check_packages

        try:
            check_packages()
        except VeilmarkError:
            return False
        return True

    def _book(self) -> list[str | Path]:
        return ["--ledger", self.ledger, "--key", self.key]

    def _say(self, text: str) -> None:
        self.console.print(show.literal(text))

    def _command(self, *words: str | Path) -> None:
        command = shlex.join(["veilmark", *map(str, words)])
        self.console.print(show.literal(f"$ {command}", "dim"), soft_wrap=True)

    def _study(self) -> Study:
        return open_study(self.weighted)

    def _visits(self) -> pa.Table:
        return pa_csv.read_csv(self.data, convert_options=_as_texts("zip", "patient_id"))


def _as_texts(*columns: str) -> pa_csv.ConvertOptions:
    return pa_csv.ConvertOptions(strings_can_be_null=True, column_types=dict.fromkeys(columns, pa.string()))


def _with_hierarchies(study: Study) -> Study:
    """The study with hierarchies of sensitive values, by which f-slip puts like ones together."""
    content = study.spec.model_dump(mode="json", exclude_defaults=True) | {"version": VERSION}
    for name, hierarchy in HIERARCHIES.items():
        content["attributes"][name]["hierarchy"] = hierarchy
    return replace(study, spec=StudySpec.model_validate(content))


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

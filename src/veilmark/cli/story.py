"""The demo: each step of a custodian's day, said in plain words, done, and shown."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
from rich.console import Console

from veilmark import workbench
from veilmark.cli import show
from veilmark.errors import OutputError
from veilmark.output import write_table, write_text

PATIENTS = 5_000
EXTRACT = 2_000
TEXTS = {"zip": pa.string(), "patient_id": pa.string()}
WEIGHTS: dict[str, dict[str, Any]] = {
    "diagnosis": {"042": 0.9, "295": 0.7, "303": 0.7, "304": 0.7, "default": 0.1},
    "income": {"ranges": [{"to": 20_000, "weight": 0.2}, {"from": 20_000, "weight": 0.1}]},
    "poverty": {"high": 0.2, "medium": 0.1, "low": 0.05},
}


def tell(folder: Path, seed: int, quiet: bool = False) -> dict[str, Any]:
    """Run the story, print it, and save what was printed as the report."""
    console = Console(record=True, file=io.StringIO() if quiet else None, width=110 if quiet else None)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder '{folder}' cannot be made: {error.strerror}. Name another one.") from None
    data, study_file, report = folder / "visits.csv", folder / "study.yaml", folder / "report.html"

    console.rule("A hospital must share its visits")
    records = workbench.make_sample("hospital", data, PATIENTS, seed)
    console.print(f"Made {records:,} visits of {PATIENTS:,} patients, none of them real: {data}\n")

    console.rule("What is each column?")
    console.print(f"[dim]$ veilmark init {data} -o {study_file}[/dim]")
    for guess in workbench.init(data, study_file, force=True):
        console.print(f"  {guess.column:12} [bold]{guess.role:10}[/bold] {guess.reason}")

    console.rule("How exposed are the patients?")
    console.print(f"[dim]$ veilmark measure {study_file}[/dim]")
    study = workbench.open_study(study_file)
    measured = workbench.measure(study)
    show.measures(measured, study, console=console)

    console.rule("How badly could it be misused?")
    weighted, candidates = folder / "study-with-weights.yaml", _candidates(data, folder)
    workbench.with_weights(study, WEIGHTS).save(weighted)
    console.print(f"The custodian says how bad each value is: {weighted}")
    console.print(f"[dim]$ veilmark score {weighted}[/dim]")
    study = workbench.open_study(weighted)
    scored = workbench.score(study)
    show.scores(scored, study, console=console)

    console.rule("Which of three extracts is the least harmful?")
    console.print(f"[dim]$ veilmark score {weighted} --compare {' '.join(map(str, candidates))}[/dim]")
    ranking = workbench.compare_scores(study, candidates)
    show.ranking(ranking, console)

    write_text(report, console.export_html(clear=False))
    console.print(f"\n[bold]Done.[/bold] Open the report: {report.resolve()}")
    return {
        "folder": str(folder),
        "report": str(report),
        "records": records,
        "measures": measured.to_dict(),
        "scores": scored.to_dict()["scores"],
        "ranking": list(ranking.candidates),
    }


def _candidates(data: Path, folder: Path) -> list[Path]:
    """Three extracts of the same number of visits: the first, those of the old, those of the young."""
    visits = pa_csv.read_csv(data, convert_options=pa_csv.ConvertOptions(strings_can_be_null=True, column_types=TEXTS))
    by_age = visits.sort_by("age")
    parts = {
        "first": visits.slice(0, EXTRACT),
        "young": by_age.slice(0, EXTRACT),
        "old": by_age.slice(len(visits) - EXTRACT),
    }
    for name, part in parts.items():
        write_table(part, folder / f"{name}.csv")
    return [folder / f"{name}.csv" for name in parts]

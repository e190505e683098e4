"""The demo: each step of a custodian's day, said in plain words, done, and shown."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from veilmark import workbench
from veilmark.cli import show
from veilmark.errors import OutputError
from veilmark.output import write_text

PATIENTS = 5_000


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

    write_text(report, console.export_html(clear=False))
    console.print(f"\n[bold]Done.[/bold] Open the report: {report.resolve()}")
    return {"folder": str(folder), "report": str(report), "records": records, "measures": measured.to_dict()}

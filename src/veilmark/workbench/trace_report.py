"""The report of a trace, written to a file."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from veilmark.errors import OptionError
from veilmark.ledger.files import check_new_file
from veilmark.output import refuse_address, refuse_inputs, write_table, write_text
from veilmark.report.trace_page import Exhibit, trace_page
from veilmark.trace.accuse import Traced
from veilmark.trace.bits import all_marks, redacted
from veilmark.workbench.ledger import note_shown, open_to_read, verify

File = str | os.PathLike[str]

PRIVATE = 0o600

SHOWN = (
    "The marks reveal who has which covers, in all releases with the same covers. The ledger records that they "
    "were written, and the next release has new covers."
)


def check_report_path(output: File, evidence: File) -> None:
    """A report can be written there; said before the work is done."""
    target = Path(output)
    refuse_address(target)
    if target.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"The report '{target}' is a web page: give it a name that ends in .html.")
    if not target.absolute().parent.is_dir():
        raise OptionError(
            f"'{target}' cannot be written: there is no folder '{target.parent}'. Create the folder first."
        )
    refuse_inputs(target, [Path(evidence)])


def check_marks_path(output: File, evidence: File) -> None:
    """The marks can be written there; said before the work is done."""
    target = Path(output)
    refuse_address(target)
    if target.suffix.lower() not in (".csv", ".json"):
        raise OptionError(f"'{target}' must end in .csv or .json.")
    check_new_file(target)
    refuse_inputs(target, [Path(evidence)])


def note_marks_shown(traced: Traced, ledger: File, key: File) -> None:
    """Write into the ledger that every mark behind a trace is shown, so that the next release has new covers."""
    releases = [str(marks.column("release")[0].as_py()) for marks in traced.marks if len(marks)]
    note_shown(ledger, key, releases, "marks")


def write_marks(traced: Traced, output: File, redact: bool = False) -> int:
    """Write every mark behind the probabilities, with or without the labels that tell decoys; says how many. A new file is
    for its owner alone."""
    if not traced.marks:
        raise OptionError(
            "Claims have no marks to write; only a leaked file has. The report lists the decoys of claims."
        )
    table = all_marks([redacted(marks) if redact else marks for marks in traced.marks])
    target = Path(output)
    if target.suffix.lower() == ".csv":
        write_table(table, target, PRIVATE)
    else:
        write_text(target, json.dumps({"marks": table.to_pylist()}, ensure_ascii=False, indent=1) + "\n", PRIVATE)
    return table.num_rows


def write_trace_report(traced: Traced, evidence: File, kind: str, ledger: File, output: File) -> None:
    """Write the page; `kind` is `claims` or `leak`. It names decoys, so a new one is for its owner alone."""
    check_report_path(output, evidence)
    found = verify(ledger)
    files = [(file["name"], file["bytes"], file["sha256"]) for file in traced.evidence]
    time = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    exhibit = Exhibit(kind, files, open_to_read(ledger).label, found.entries, found.head, found.what, time)
    write_text(Path(output), trace_page(traced, exhibit), PRIVATE)

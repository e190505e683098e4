"""The report of a trace, written to a file."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from veilmark.engines.files import find_files
from veilmark.errors import OptionError
from veilmark.ledger.files import digest
from veilmark.output import refuse_inputs, write_text
from veilmark.report.trace_page import Exhibit, trace_page
from veilmark.trace.accuse import Traced
from veilmark.workbench.ledger import open_to_read, verify

File = str | os.PathLike[str]


def check_report_path(output: File, evidence: File) -> None:
    """A report can be written there; said before the work is done."""
    target = Path(output)
    if target.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"The report '{target}' is a web page: give it a name that ends in .html.")
    if not target.absolute().parent.is_dir():
        raise OptionError(f"'{target}' cannot be written: there is no folder '{target.parent}'. Make it first.")
    refuse_inputs(target, [Path(evidence)])


def write_trace_report(traced: Traced, evidence: File, kind: str, ledger: File, output: File) -> None:
    """Write the page; `kind` is `claims` or `leak`. It names decoys, so a new one is for its owner alone."""
    check_report_path(output, evidence)
    found = verify(ledger)
    files = [(file.name, file.stat().st_size, digest(file)) for file in find_files(os.fspath(evidence))]
    time = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    exhibit = Exhibit(kind, files, open_to_read(ledger).label, found.entries, found.head, found.what, time)
    target = Path(output)
    is_new = not target.exists()
    write_text(target, trace_page(traced, exhibit))
    if is_new:
        target.chmod(0o600)

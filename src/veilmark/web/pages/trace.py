"""Trace: from claims or a leaked file to the recipient it came from, with probabilities and evidence."""

from __future__ import annotations

import io
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response, UploadFile
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from veilmark.errors import OptionError, VeilmarkError
from veilmark.web.here import Auditor, Here, Nav
from veilmark.web.jobs import Job
from veilmark.web.pages.ledger import ReleaseSummary, list_releases
from veilmark.web.releases import number_of
from veilmark.web.words import in_words, plainly
from veilmark.web.work import Outcome
from veilmark.web.workspace import NotFoundError, Workspace

router = APIRouter()
NAV = Nav("Trace", "/trace", 60, ("custodian", "auditor"))

EVIDENCE = ".veilmark/evidence"
"""Where evidence lies while it is traced; nobody is served from there."""
FORGOTTEN = 24 * 3600
"""Seconds after which evidence that was never traced is removed."""

Kind = Literal["claims", "leak"]
Chance = Annotated[float, Field(gt=0, lt=1)]


class TraceView(BaseModel):
    """The releases that can be traced, the latest trace, and what it found."""

    releases: list[ReleaseSummary]
    job: Job | None
    traced: dict[str, Any] | None
    problem: str | None = None


class Claims(BaseModel):
    """Evidence as CSV text: claims of re-identification, or a part of a leaked table."""

    text: Annotated[str, Field(max_length=4_000_000)]
    kind: Kind = "claims"
    release: str | None = None
    false_accusation: Chance = 1e-6


# --- looking ---------------------------------------------------------------------------------------------------


@router.get("/trace")
def page(here: Auditor) -> Response:
    return _page(here)


def _page(here: Here, status: int = 200, problem: str | None = None) -> Response:
    from veilmark.report.trace_page import probability

    fields = {"kind": "claims", "text": "", "false_accusation": "1e-06"}
    fields["release"] = here.request.query_params.get("release", "")
    fields |= {key: value for key, value in here.form.items() if isinstance(value, str)}
    found = view(here)
    context = {"view": found, "fields": fields, "problem": problem or found.problem, "probability": probability}
    return here.page("trace.html", status, **context)


@router.get("/api/trace")
def latest(here: Auditor) -> TraceView:
    """The releases that can be traced, and the latest trace."""
    return view(here)


def view(here: Here) -> TraceView:
    job = here.job(trace_evidence.__name__)
    found = TraceView(releases=[], job=job, traced=here.result(job))
    try:
        found.releases = [r for r in list_releases(here.workspace) if r.status == "published"]
    except VeilmarkError as error:
        found.problem = in_words(here.workspace.plain(str(error)))
    return found


@router.get("/trace/report")
def report(here: Auditor, job: str = "") -> Response:
    """The report of a trace, a web page that needs nothing else. It names decoys."""
    found = here.jobs.get(job, here.session.role)
    file = here.workspace.private / "traces" / str(here.jobs.result(found).get("report"))
    if found.kind != trace_evidence.__name__ or not file.is_file():
        raise NotFoundError("There is no report of this trace.")
    here.audit.write(here.session.name, here.session.role, "-", "downloaded the report of a trace")
    return FileResponse(file, filename=f"trace-{job}.html", headers={"Content-Security-Policy": "sandbox"})


@router.get("/api/trace/report", response_class=FileResponse)
def report_by_api(here: Auditor, job: str = Query()) -> Response:
    """The report of a trace, as a web page."""
    return report(here, job)


# --- tracing ---------------------------------------------------------------------------------------------------


@router.post("/trace")
def trace_by_form(here: Auditor) -> Response:
    try:
        return here.watch(_start_by_form(here))
    except VeilmarkError as error:
        return _page(here, 400, here.workspace.plain(str(error)))


def _start_by_form(here: Here) -> Job:
    kind, file, text = here.text("kind"), here.file("file"), here.text("text")
    if kind not in ("claims", "leak"):
        raise OptionError("Say what the evidence is: claims, or a leaked file.")
    chance = number_of(here.text("false_accusation"), "The probability of a false accusation")
    if (file is None) == (not text):
        raise OptionError("Choose a file or paste lines of CSV: one of the two.")
    content = io.BytesIO(text.encode()) if file is None else file.file
    name = f"{kind}.csv" if file is None else file.filename or ""
    return _start(here, kind, name, content, here.text("release") or None, chance)


@router.post("/api/trace", status_code=202)
def trace(here: Auditor, claims: Claims) -> Job:
    """Trace evidence that is given as CSV text, as a job."""
    content = io.BytesIO(claims.text.encode(errors="replace"))
    return _start(here, claims.kind, f"{claims.kind}.csv", content, claims.release, claims.false_accusation)


@router.post("/api/trace/file", status_code=202)
def trace_upload(
    here: Auditor,
    file: UploadFile,
    kind: Kind = "leak",
    release: str | None = None,
    false_accusation: Chance = 1e-6,
) -> Job:
    """Trace a file of claims or a leaked file, as a job."""
    return _start(here, kind, file.filename or "", file.file, release, false_accusation)


def _start(here: Here, kind: str, name: str, content: Any, release: str | None, chance: float) -> Job:
    """Keep the evidence until it is traced, and trace it."""
    known = [r.id for r in list_releases(here.workspace) if r.status == "published"]
    if not known or (release is not None and release not in known):
        which = "Nothing was released yet" if not known else f"There is no published release '{(release or '')[:40]}'"
        raise OptionError(f"{which}, so there is nothing to trace.")
    if not 0 < chance < 1:
        raise OptionError(f"The probability of a false accusation must lie between 0 and 1, not {chance:g}. Try 1e-6.")
    _tidy(here.workspace.folder / EVIDENCE)
    stored = here.workspace.store(EVIDENCE, name, content)
    given = {"evidence": Path(stored).name, "kind": kind, "release": release, "chance": chance}
    page = f"/trace?{urlencode({'release': release})}" if release else "/trace"
    return here.start(trace_evidence, f"Trace {Path(stored).name}", given, None, page, ("custodian", "auditor"))


def _tidy(folder: Path) -> None:
    """A place for evidence, without what was left there by jobs that never ran."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for file in folder.iterdir():
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > FORGOTTEN:
                file.unlink()


def trace_evidence(workspace: Workspace, evidence: str, kind: Kind, release: str | None, chance: float) -> Outcome:
    """Who is named by the evidence, and the report; a job. The evidence itself is removed afterwards."""
    from veilmark import workbench
    from veilmark.workbench.trace_report import write_trace_report

    file = workspace.folder / EVIDENCE / evidence
    given = {"claims": file} if kind == "claims" else {"file": file}
    report = workspace.private / "traces" / f"{secrets.token_hex(8)}.html"
    report.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        with plainly():
            found = workbench.trace(workspace.ledger, workspace.key, release=release, false_accusation=chance, **given)
            write_trace_report(found, file, kind, workspace.ledger, report)
    finally:
        file.unlink(missing_ok=True)
    told = {**found.to_dict(), "kind": kind, "evidence": evidence, "report": report.name}
    return Outcome(told, {"What speaks against each recipient": found.chart()})

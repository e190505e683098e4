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
from veilmark.web.forms.release import number_of
from veilmark.web.here import Auditor, Here, Nav
from veilmark.web.pages.ledger import ReleaseSummary, list_releases
from veilmark.web.tasks.jobs import Job
from veilmark.web.tasks.work import Outcome
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
    columns: Annotated[str, Field(max_length=10_000)] = ""


# --- looking ---------------------------------------------------------------------------------------------------


@router.get("/trace")
def page(here: Auditor) -> Response:
    return _page(here)


def _page(here: Here, status: int = 200, problem: str | None = None) -> Response:
    from veilmark.readable import probability

    fields = {"kind": "claims", "text": "", "columns": "", "false_accusation": "1e-06"}
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
        found.problem = here.workspace.plain(error)
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


@router.get("/trace/marks")
def marks(here: Auditor, job: str = "", redacted: bool = False) -> Response:
    """Every mark behind the probabilities of a leaked file, as CSV; redacted, without the labels that tell decoys."""
    from veilmark.workbench.ledger import note_shown

    found = here.jobs.get(job, here.session.role)
    result = here.jobs.result(found)
    name = str(result.get("report")).removesuffix(".html")
    file = here.workspace.private / "traces" / f"{name}{'-redacted' if redacted else ''}.csv"
    if found.kind != trace_evidence.__name__ or not file.is_file():
        raise NotFoundError("There are no marks of this trace: claims have none.")
    if not redacted:
        releases = dict.fromkeys(suspect["release"] for suspect in result["recipients"])
        note_shown(here.workspace.ledger, here.workspace.key, releases, "marks")
    here.audit.write(here.session.name, here.session.role, "-", "downloaded the marks of a trace")
    return FileResponse(file, media_type="text/csv", filename=f"trace-{job}-marks.csv")


@router.get("/api/trace/marks", response_class=FileResponse)
def marks_by_api(here: Auditor, job: str = Query(), redacted: bool = False) -> Response:
    """Every mark behind the probabilities of a leaked file, as CSV."""
    return marks(here, job, redacted)


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
        return _page(here, 400, here.workspace.plain(error))


def _start_by_form(here: Here) -> Job:
    kind, file, text = here.text("kind"), here.file("file"), here.text("text")
    if kind not in ("claims", "leak"):
        raise OptionError("Say what the evidence is: claims, or a leaked file.")
    chance = number_of(here.text("false_accusation"), "The probability of a false accusation")
    if (file is None) == (not text):
        raise OptionError("Choose a file or paste lines of CSV: one of the two.")
    content = io.BytesIO(text.encode()) if file is None else file.file
    name = f"{kind}.csv" if file is None else file.filename or ""
    return _start(here, kind, name, content, here.text("release") or None, chance, here.text("columns"))


@router.post("/api/trace", status_code=202)
def trace(here: Auditor, claims: Claims) -> Job:
    """Trace evidence that is given as CSV text, as a job."""
    content = io.BytesIO(claims.text.encode(errors="replace"))
    asked = claims.release, claims.false_accusation, claims.columns
    return _start(here, claims.kind, f"{claims.kind}.csv", content, *asked)


@router.post("/api/trace/file", status_code=202)
def trace_upload(
    here: Auditor,
    file: UploadFile,
    kind: Kind = "leak",
    release: str | None = None,
    false_accusation: Chance = 1e-6,
    columns: str = "",
) -> Job:
    """Trace a file of claims or a leaked file, as a job. `columns`: theirs=ours, with commas between."""
    return _start(here, kind, file.filename or "", file.file, release, false_accusation, columns)


def _start(
    here: Here, kind: str, name: str, content: Any, release: str | None, chance: float, columns: str = ""
) -> Job:
    """Keep the evidence until it is traced, and trace it."""
    from veilmark.workbench.trace import column_map

    renamed = column_map(pair for pair in columns.split(",") if pair.strip())
    if renamed and kind == "claims":
        raise OptionError("Columns are mapped for a leaked file. Rename the columns of the claims instead.")
    known = [r.id for r in list_releases(here.workspace) if r.status == "published"]
    if not known or (release is not None and release not in known):
        which = "Nothing was released yet" if not known else f"There is no published release '{(release or '')[:40]}'"
        raise OptionError(f"{which}, so there is nothing to trace.")
    if not 0 < chance < 1:
        raise OptionError(f"The probability of a false accusation must lie between 0 and 1, not {chance:g}. Try 1e-6.")
    _tidy(here.workspace.folder / EVIDENCE)
    stored = here.workspace.store(EVIDENCE, name, content)
    given: dict[str, Any] = {"evidence": Path(stored).name, "kind": kind, "release": release, "chance": chance}
    given |= {"who": here.session.name, "columns": renamed}
    page = f"/trace?{urlencode({'release': release})}" if release else "/trace"
    return here.start(trace_evidence, f"Trace {Path(stored).name}", given, None, page, ("custodian", "auditor"))


def _tidy(folder: Path) -> None:
    """A place for evidence, without what was left there by jobs that never ran."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for file in folder.iterdir():
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > FORGOTTEN:
                file.unlink()


def trace_evidence(
    workspace: Workspace,
    evidence: str,
    kind: Kind,
    release: str | None,
    chance: float,
    who: str | None = None,
    columns: dict[str, str] | None = None,
) -> Outcome:
    """Who is named by the evidence, and the report; a job. The evidence itself is removed afterwards."""
    from veilmark.workbench.trace import trace as run_trace
    from veilmark.workbench.trace_report import write_marks, write_trace_report

    file = workspace.folder / EVIDENCE / evidence
    claims, leak = (file, None) if kind == "claims" else (None, file)
    report = workspace.private / "traces" / f"{secrets.token_hex(8)}.html"
    report.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        asked = claims, leak, release, chance
        found = run_trace(workspace.ledger, workspace.key, *asked, who=who, columns=columns)
        write_trace_report(found, file, kind, workspace.ledger, report)
        for redact in (False, True) if found.marks else ():
            write_marks(found, report.with_name(f"{report.stem}{'-redacted' if redact else ''}.csv"), redact)
    finally:
        file.unlink(missing_ok=True)
    told = {**found.to_dict(), "kind": kind, "evidence": evidence, "report": report.name}
    return Outcome(told, {"What speaks against each recipient": found.chart()})

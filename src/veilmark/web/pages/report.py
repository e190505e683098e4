"""Report: one page for a review board on a study, its release and its recipients; made as a job, kept, looked at."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from veilmark.errors import OptionError, VeilmarkError
from veilmark.web.access.guard import HEADERS
from veilmark.web.access.users import ROLES, Role
from veilmark.web.forms.weights import FOLDER as WEIGHTS
from veilmark.web.forms.weights import Text
from veilmark.web.here import Anyone, Here, Nav
from veilmark.web.tasks.jobs import Job
from veilmark.web.workspace import TABLES, NotFoundError, Workspace

if TYPE_CHECKING:
    from veilmark.ledger import Release

router = APIRouter()
NAV = Nav("Report", "/reports", 70, ROLES)

OPEN, CLOSED = "reports", "confidential"
"""Where reports are kept: those on a study and a release file, and those on the ledger, which tell of recipients."""

TRUSTED: tuple[Role, ...] = ("custodian", "auditor")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.html")
MOST = 500
HEAD = 4096

POLICY = HEADERS["Content-Security-Policy"]
FRAMED = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"
    ),
    "X-Frame-Options": "SAMEORIGIN",
}
"""A report has its own styles and pictures within; it can run and load nothing, and stands in a frame of ours alone."""


class ReportFile(BaseModel):
    """A report that was made; a closed one is for custodian and auditor."""

    file: str
    title: str
    made: str
    bytes: int
    closed: bool


class LedgerRelease(BaseModel):
    id: str
    study: str | None
    time: str
    recipients: int


class ReportsView(BaseModel):
    """The reports that the role may see, newest first, what a new one can be about, and the latest job."""

    reports: list[ReportFile]
    studies: list[str]
    releases: list[str]
    ledger: list[LedgerRelease]
    key: bool
    problem: str | None = None
    job: Job | None = None
    result: dict[str, Any] | None = None


class ReportForm(BaseModel):
    """What a report is to be about, beside the study's source.

    `release` is a file or folder of the workspace, `require` are limits for it such as `k=5`; `ledger_release` is an id in
    the ledger, `copies` compares the recipients' files with it, `auditor` names the decoys.
    """

    study: Text
    release: Text | None = None
    require: list[Text] = Field(default=[], max_length=20)
    attacks: bool = True
    ledger_release: Text | None = None
    copies: bool = False
    auditor: bool = False
    title: Text | None = Field(default=None, max_length=200)


# --- all of them -----------------------------------------------------------------------------------------------


@router.get("/reports")
def page(here: Anyone) -> Response:
    fields = ReportForm(study=here.session.study or "", require=["k=5"]).model_dump()
    fields["ledger_release"] = here.request.query_params.get("ledger_release", "")[:80]
    return _page(here, fields)


def _page(here: Here, fields: dict[str, Any], status: int = 200, **more: Any) -> Response:
    return here.page("reports.html", status, **({"view": view(here), "fields": fields} | more))


@router.get("/api/reports")
def reports(here: Anyone) -> ReportsView:
    """The reports that were made, and what a new one can be about."""
    return view(here)


def view(here: Here) -> ReportsView:
    workspace, role = here.workspace, here.session.role
    job = here.job("make_report")
    listed, problem = _ledger_releases(workspace) if role in TRUSTED else ([], None)
    return ReportsView(
        reports=_files(workspace, role),
        studies=workspace.studies(),
        releases=release_choices(workspace, role),
        ledger=listed,
        key=role in TRUSTED and workspace.key.is_file(),
        problem=problem,
        job=job,
        result=here.result(job),
    )


def _files(workspace: Workspace, role: Role) -> list[ReportFile]:
    folders = (OPEN, CLOSED) if role in TRUSTED else (OPEN,)
    found = [(path, folder) for folder in folders for path in _pages(workspace.folder / folder)]
    found.sort(key=lambda entry: -entry[0].stat().st_mtime)
    return [_described(path, folder) for path, folder in found[:MOST]]


def _pages(folder: Path) -> Iterator[Path]:
    if folder.is_dir() and not folder.is_symlink():
        yield from (p for p in folder.iterdir() if NAME.fullmatch(p.name) and p.is_file() and not p.is_symlink())


def _described(path: Path, folder: str) -> ReportFile:
    with path.open("rb") as file:
        head = file.read(HEAD).decode("utf-8", "replace")
    title = re.search(r"<title>(.*?)</title>", head, re.S)
    known = path.stat()
    made = datetime.fromtimestamp(known.st_mtime, UTC).isoformat(timespec="seconds")
    name = html.unescape(title[1]).strip() if title else path.name
    return ReportFile(file=f"{folder}/{path.name}", title=name, made=made, bytes=known.st_size, closed=folder == CLOSED)


def release_choices(workspace: Workspace, role: Role) -> list[str]:
    """Files, and folders of tables, that a report can be about; recipients' copies not for the analyst."""
    folders = ("anonymized", "releases") if role in TRUSTED else ("anonymized",)
    made = [p for folder in folders for p in _tables_in(workspace.folder / folder, 2)]
    real = [p for p in made if p.resolve().is_relative_to(workspace.folder)]
    others = [table for table in workspace.tables() if not table.startswith(f"{WEIGHTS}/")]
    return [workspace.relative(p) for p in real][:MOST] + others


def _tables_in(folder: Path, depth: int) -> Iterator[Path]:
    """Tables, and folders that hold some."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in sorted(folder.iterdir(), key=lambda p: p.name.lower()):
        if path.name.startswith("."):
            continue
        if path.is_file() and path.suffix.lower() in TABLES:
            yield path
        elif path.is_dir() and depth > 1:
            within = list(_tables_in(path, depth - 1))
            yield from [path, *within] if within else []


def _ledger_releases(workspace: Workspace) -> tuple[list[LedgerRelease], str | None]:
    """The published releases of the ledger, newest first; or what is wrong with it."""
    from veilmark.workbench import ledger

    if not workspace.ledger.is_file():
        return [], None
    try:
        found = [r for r in ledger.releases(workspace.ledger) if r.status == "published"]
    except VeilmarkError as error:
        return [], workspace.plain(error)
    return [_summary(release) for release in reversed(found)], None


def _summary(release: Release) -> LedgerRelease:
    study = release.public.get("study")
    return LedgerRelease(
        id=release.id,
        study=None if study is None else str(study),
        time=release.time,
        recipients=len(release.recipients),
    )


# --- a new one -------------------------------------------------------------------------------------------------


@router.post("/reports")
def start_by_form(here: Anyone) -> Response:
    limits = [text for text in re.split(r"[,\s]+", here.text("require")) if text]
    fields = {
        "study": here.text("study"),
        "release": here.text("release") or None,
        "require": limits,
        "attacks": "attacks" in here.form,
        "ledger_release": here.text("ledger_release") or None,
        "copies": "copies" in here.form,
        "auditor": "auditor" in here.form,
        "title": here.text("title")[:200] or None,
    }
    try:
        return here.watch(
            start(here, ReportForm.model_validate(fields | {"require": _fitting(here.workspace, fields)}))
        )
    except (VeilmarkError, NotFoundError) as error:
        return _page(here, fields, 400, problem=here.workspace.plain(error))


def _fitting(workspace: Workspace, fields: dict[str, Any]) -> list[str]:
    """The form's limits, which stand there from the start, where there is a file to check them on."""
    named = fields["release"]
    is_file = named is not None and "\0" not in named and os.path.isfile(workspace.folder / named)
    return list(fields["require"][:20]) if is_file else []


@router.post("/api/reports", status_code=202)
def start(here: Anyone, asked: ReportForm) -> Job:
    """Make a report, as a job."""
    here.study(asked.study)
    closed = is_closed(asked.release, asked.ledger_release)
    _check(here, asked)
    what = "the auditor’s report" if asked.auditor else "a report"
    roles = TRUSTED if closed else ROLES
    return here.start(make_report, f"Make {what} on {asked.study}", asked.model_dump(), asked.study, "/reports", roles)


def is_closed(release: str | None, ledger_release: str | None) -> bool:
    """Whether a report tells of recipients: on the ledger, or on a recipient's copy."""
    return ledger_release is not None or Path(release or "").parts[:1] == ("releases",)


def _check(here: Here, asked: ReportForm) -> None:
    closed = asked.ledger_release is not None
    if (closed or asked.copies or asked.auditor) and here.session.role not in TRUSTED:
        raise HTTPException(403, "What the ledger says is for custodian and auditor. Make a report without it.")
    if (asked.copies or asked.auditor) and not closed:
        raise OptionError("Copies and decoys belong to a release in the ledger. Choose one, or leave them out.")
    if asked.auditor and not here.workspace.key.is_file():
        raise OptionError("The ledger’s key is not in the workspace, so decoys cannot be named. Leave them out.")
    if asked.release is not None and asked.release not in release_choices(here.workspace, here.session.role):
        raise NotFoundError(f"There is no release '{asked.release[:80]}' in the workspace.")


def make_report(
    workspace: Workspace,
    study: str,
    release: str | None = None,
    require: list[str] | None = None,
    attacks: bool = True,
    ledger_release: str | None = None,
    copies: bool = False,
    auditor: bool = False,
    title: str | None = None,
) -> dict[str, Any]:
    """A report, written to the workspace; a job."""
    from veilmark.workbench.report import Wanted
    from veilmark.workbench.report import report as run_report

    closed = is_closed(release, ledger_release)
    about = ledger_release or (Path(release).stem if release else "source")
    target = workspace.new_output(CLOSED if closed else OPEN, f"{study}-{about}-{datetime.now(UTC):%Y-%m-%d}", ".html")
    if closed:
        os.chmod(target.parent, 0o700)
    wanted = Wanted(
        release=None if release is None else workspace.folder / release,
        ledger=workspace.ledger if ledger_release is not None else None,
        id=ledger_release,
        copies=_copies(workspace, ledger_release) if copies and ledger_release else None,
        key=workspace.key if ledger_release is not None and workspace.key.is_file() else None,
        auditor=auditor,
        attacks=None if attacks else [],
        require=require or [],
        title=title,
    )
    made = run_report(workspace.study(study), target, wanted).to_dict()
    told = {name: made[name] for name in ("title", "time", "confidential", "findings", "notes")}
    return {"file": workspace.relative(target), **told}


def _copies(workspace: Workspace, release_id: str) -> Path:
    """The folder of a release's copies, where it lies in the workspace."""
    from veilmark.workbench import ledger

    named = Path(ledger.release(workspace.ledger, release_id).folder)
    folder = (workspace.folder / named).resolve()
    if not folder.is_relative_to(workspace.folder / "releases") or not folder.is_dir():
        raise OptionError(
            f"The copies of release {release_id} are not in the workspace, so they cannot be checked. Leave that out."
        )
    return folder


# --- one -------------------------------------------------------------------------------------------------------


@router.get("/reports/{folder}/{file}")
def look(here: Anyone, folder: str, file: str) -> Response:
    """A report in a frame that can neither run nor reach anything."""
    found = _described(_path(here, folder, file), folder)
    answer = here.page("report.html", report=found, address=f"/api/reports/{folder}/{quote(file)}")
    answer.headers["Content-Security-Policy"] = f"{POLICY}; frame-src 'self'"
    return answer


@router.get("/api/reports/{folder}/{file}", response_class=FileResponse)
def report(here: Anyone, folder: str, file: str, download: bool = False) -> Response:
    """The report itself, a web page; `download` to keep it."""
    path = _path(here, folder, file)
    did = "downloaded" if download else "looked at"
    here.audit.write(here.session.name, here.session.role, "-", f"{did} {here.workspace.relative(path)}")
    return FileResponse(path, media_type="text/html", headers=FRAMED, filename=path.name if download else None)


def _path(here: Here, folder: str, file: str) -> Path:
    allowed = (OPEN, CLOSED) if here.session.role in TRUSTED else (OPEN,)
    path = here.workspace.folder / folder / file
    if folder not in allowed or not NAME.fullmatch(file) or os.path.islink(path) or not os.path.isfile(path):
        raise NotFoundError(f"There is no report '{file[:80]}' in the workspace.")
    return path

"""Ledger: what was released to whom, whether the ledger is as it was written, who the decoys are, and a backup."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field
from starlette.background import BackgroundTask

from veilmark.errors import OptionError, VeilmarkError
from veilmark.messages import template_of
from veilmark.scratch import Scratch
from veilmark.web.here import Auditor, Here, Nav
from veilmark.web.tasks.jobs import Job
from veilmark.web.workspace import NotFoundError, Workspace

if TYPE_CHECKING:
    from veilmark.ledger import Release

router = APIRouter()
NAV = Nav("Ledger", "/ledger", 50, ("custodian", "auditor"))

Hash = Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]


class ReleaseSummary(BaseModel):
    """A release in the list."""

    id: str
    time: str
    study: str | None
    recipients: list[str]
    status: str


class LedgerView(BaseModel):
    """The releases, newest first, the latest check of the ledger, and what it found."""

    releases: list[ReleaseSummary]
    job: Job | None
    verified: dict[str, Any] | None
    problem: str | None = None


class RecipientView(BaseModel):
    """A recipient, the digest of its copy, and where the copy is, if it is still in the workspace."""

    name: str
    file: str | None = None
    records: int | None = None
    agreement: str | None = None
    contact: str | None = None
    consent: str | None = None
    digest: str | None = None
    download: str | None = None


class HistoryEntry(BaseModel):
    entry: int
    time: str
    kind: str


class ReleaseDetail(BaseModel):
    """All that is known of a release, but for its secrets."""

    id: str
    status: str
    time: str
    study: str | None
    source: str | None
    folder: str
    parameters: dict[str, Any]
    recipients: list[RecipientView]
    history: list[HistoryEntry]


class Decoys(BaseModel):
    """The decoys of a release, for each recipient: who they are, and what was published of them."""

    release: str
    decoys: dict[str, list[dict[str, Any]]]


class Check(BaseModel):
    """`head` is a hash that was noted earlier: the ledger must still hold it."""

    head: Hash = ""


# --- the list --------------------------------------------------------------------------------------------------


@router.get("/ledger")
def page(here: Auditor) -> Response:
    return here.page("ledger.html", view=view(here))


@router.get("/api/ledger")
def ledger(here: Auditor) -> LedgerView:
    """The releases, newest first, and the latest check of the ledger."""
    return view(here)


def view(here: Here) -> LedgerView:
    job = here.job(verify_ledger.__name__)
    found = LedgerView(releases=[], job=job, verified=here.result(job))
    try:
        found.releases = list_releases(here.workspace)
    except VeilmarkError as error:
        found.problem = here.workspace.plain(error)
    return found


def list_releases(workspace: Workspace) -> list[ReleaseSummary]:
    """The releases of the workspace's ledger, newest first; none where there is no ledger yet."""
    from veilmark.workbench import ledger as verbs

    if not workspace.ledger.exists():
        return []
    return [ReleaseSummary(**release.summary()) for release in reversed(verbs.releases(workspace.ledger))]


# --- a backup --------------------------------------------------------------------------------------------------


@router.get("/ledger/backup")
def backup(here: Auditor) -> Response:
    """The ledger as one file, its secrets still encrypted. The key is not in it."""
    from veilmark.workbench import ledger as verbs

    return _download(here, "ledger", "jsonl", "a backup of the ledger", verbs.export)


@router.get("/ledger/anchor")
def anchor(here: Auditor) -> Response:
    """The ledger's head for keeping elsewhere."""
    from veilmark.workbench import ledger as verbs

    return _download(here, "anchor", "json", "an anchor of the ledger", verbs.anchor)


@router.get("/api/ledger/anchor", response_class=FileResponse)
def anchor_by_api(here: Auditor) -> Response:
    """The ledger's head for keeping elsewhere: it shows later whether entries were cut off."""
    return anchor(here)


def _download(here: Here, name: str, suffix: str, what: str, write: Callable[[Path, Path], Any]) -> Response:
    """A file that is made of the ledger, and gone once it is sent."""
    folder = Scratch()
    file = folder.path / f"{name}-{datetime.now(UTC):%Y-%m-%d}.{suffix}"
    try:
        write(_there(here.workspace).ledger, file)
    except BaseException:
        folder.close()
        raise
    here.audit.write(here.session.name, here.session.role, "-", f"downloaded {what}")
    media = f"application/{suffix}"
    return FileResponse(file, media_type=media, filename=file.name, background=BackgroundTask(folder.close))


@router.get("/api/ledger/backup", response_class=FileResponse)
def backup_by_api(here: Auditor) -> Response:
    """The ledger as one file of JSON lines, its secrets still encrypted. The key is not in it."""
    return backup(here)


# --- checking --------------------------------------------------------------------------------------------------


@router.post("/ledger/verify")
def verify_by_form(here: Auditor) -> Response:
    head = here.text("head").lower()
    if head and (len(head) != 64 or set(head) - set("0123456789abcdef")):
        raise OptionError("A head has 64 digits and letters from a to f. Paste it as it was shown, or leave it out.")
    return here.watch(verify(here, Check(head=head)))


@router.post("/api/ledger/verify", status_code=202)
def verify(here: Auditor, check: Check) -> Job:
    """Check the chain, the secrets and the published files, as a job."""
    _there(here.workspace)
    given = {"head": check.head}
    return here.start(verify_ledger, "Check the ledger", given, page="/ledger", roles=("custodian", "auditor"))


def verify_ledger(workspace: Workspace, head: str) -> dict[str, Any]:
    """Whether the ledger is as it was written; a job. Without the key, its secrets are not looked into."""
    from veilmark.workbench import ledger as verbs

    key = workspace.key if workspace.key.exists() else None
    found = verbs.verify(workspace.ledger, key, True, verbs.Noted(head or None)).to_dict()
    files = {kind: [workspace.plain(file) for file in found[kind]] for kind in ("changed", "missing")}
    return {**found, **files}


# --- one release -----------------------------------------------------------------------------------------------


@router.get("/ledger/{release}")
def release_page(here: Auditor, release: str) -> Response:
    return here.page("ledger_release.html", view=detail(here.workspace, release), decoys=None)


@router.get("/api/ledger/{release}")
def one_release(here: Auditor, release: str) -> ReleaseDetail:
    """All that is known of a release, but for its secrets."""
    return detail(here.workspace, release)


def detail(workspace: Workspace, name: str) -> ReleaseDetail:
    found = _release(workspace, name)
    told = found.to_dict()
    return ReleaseDetail(
        id=found.id,
        status=found.status,
        time=found.time,
        study=told.get("study"),
        source=told.get("source"),
        folder=workspace.plain(found.folder),
        parameters=told.get("parameters", {}),
        recipients=[_recipient(workspace, found, listed) for listed in told["recipients"]],
        history=[HistoryEntry(**entry) for entry in told["history"]],
    )


def _recipient(workspace: Workspace, found: Release, listed: Any) -> RecipientView:
    known = dict(listed) if isinstance(listed, dict) else {"name": str(listed)}
    file = str(known.get("file") or "")
    seen = RecipientView.model_validate({**known, "digest": found.digests.get(file)})
    place = Path(found.folder, file)
    if file and place.is_relative_to(workspace.folder) and place.is_file():
        seen.download = workspace.relative(place)
    return seen


@router.post("/ledger/{release}/decoys")
def decoys_by_form(here: Auditor, release: str) -> Response:
    return here.page("ledger_release.html", view=detail(here.workspace, release), decoys=decoys(here, release).decoys)


@router.post("/api/ledger/{release}/decoys")
def decoys(here: Auditor, release: str) -> Decoys:
    """Who the decoys of a release are. The audit log tells who looked."""
    from veilmark.workbench import ledger as verbs

    here.did(f"looked at the decoys of release {release}")
    _release(here.workspace, release)
    found = verbs.decoys(here.workspace.ledger, release, here.workspace.key)
    return Decoys(release=release, decoys=found)


def _release(workspace: Workspace, name: str) -> Release:
    from veilmark.workbench import ledger as verbs

    _there(workspace)
    try:
        return verbs.release(workspace.ledger, name)
    except OptionError as error:
        raise NotFoundError(template_of(error)) from None


def _there(workspace: Workspace) -> Workspace:
    if not workspace.ledger.exists():
        raise NotFoundError("There is no ledger in the workspace yet: nothing was released.")
    return workspace

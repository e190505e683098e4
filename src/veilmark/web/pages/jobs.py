"""Jobs: all of them, one of them as it goes on, its result and its charts; and the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel

from veilmark.web.access.audit import Entry
from veilmark.web.access.users import ROLES
from veilmark.web.here import Anyone, Auditor, Here, Nav
from veilmark.web.tasks.jobs import Job, Jobs

router = APIRouter()
NAV = Nav("Jobs", "/jobs", 80, ROLES)

EVERY = 0.2
ALIVE = 15.0
"""Seconds between two looks at a job, and between two signs of life to a browser that waits."""


class JobList(BaseModel):
    jobs: list[Job]


class AuditView(BaseModel):
    entries: list[Entry]


@router.get("/jobs")
def page(here: Anyone) -> Response:
    return here.page(
        "jobs.html", jobs=_jobs(here).jobs, job=here.job("") if "job" in here.request.query_params else None
    )


@router.get("/api/jobs")
def jobs(here: Anyone) -> JobList:
    """The jobs that the role may see, newest first."""
    return _jobs(here)


def _jobs(here: Here) -> JobList:
    return JobList(jobs=here.jobs.all(here.session.role)[:200])


@router.get("/api/jobs/{job_id}")
def job(here: Anyone, job_id: str) -> Job:
    """One job as it stands."""
    return here.jobs.get(job_id, here.session.role)


@router.get("/api/jobs/{job_id}/result")
def result(here: Anyone, job_id: str) -> dict[str, Any]:
    """What a job that is done returned."""
    return here.jobs.result(here.jobs.get(job_id, here.session.role))


@router.post("/api/jobs/{job_id}/cancel")
def cancel(here: Anyone, job_id: str) -> Job:
    """Stop a job; what is unfinished is removed."""
    found = here.jobs.get(job_id, here.session.role)
    here.did(f"cancelled: {found.title}", found.study)
    here.jobs.cancel(found)
    return found


@router.post("/jobs/{job_id}/cancel")
def cancel_by_form(here: Anyone, job_id: str) -> Response:
    return here.go(cancel(here, job_id).url)


@router.get("/api/jobs/{job_id}/charts/{name}.{suffix}")
def chart(here: Anyone, job_id: str, name: str, suffix: Literal["svg", "json"]) -> Response:
    """A chart of a job, as a picture or as Vega-Lite."""
    file = here.jobs.chart(here.jobs.get(job_id, here.session.role), name, suffix)
    if suffix == "json":
        return FileResponse(file, media_type="application/json")
    # The picture's own styles are part of it; it can load and run nothing.
    return FileResponse(
        file,
        media_type="image/svg+xml",
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"},
    )


@router.get("/api/jobs/{job_id}/events")
async def events(here: Anyone, job_id: str) -> Response:
    """The job whenever it changes, as server-sent events; the first is how it stands now, the last when it is over."""
    found = here.jobs.get(job_id, here.session.role)
    return StreamingResponse(_events(here.jobs, found), media_type="text/event-stream")


async def _events(all_jobs: Jobs, found: Job) -> AsyncIterator[str]:
    seen, quiet = -1, 0.0
    while not all_jobs.closing:
        version = all_jobs.version(found)
        if version != seen:
            seen, quiet = version, 0.0
            yield f"data: {found.model_dump_json()}\n\n"
            if found.over and found.ended:
                return
        elif quiet >= ALIVE:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(EVERY)
        quiet += EVERY


@router.get("/audit")
def audit_page(here: Auditor) -> Response:
    return here.page("audit.html", entries=here.audit.last(200))


@router.get("/api/audit")
def audit(here: Auditor, count: int = Query(200, ge=1, le=10_000)) -> AuditView:
    """Who did what, newest first."""
    return AuditView(entries=here.audit.last(count))


@router.get("/api/openapi.json")
def openapi(here: Anyone) -> Response:
    """What the API offers, as OpenAPI."""
    return JSONResponse(here.request.app.openapi())


@router.get("/vega.js")
def vega(here: Anyone) -> Response:
    """Vega, as the chart library that is installed brings it; made once, then kept."""
    import vl_convert

    made = here.workspace.private / f"vega-{vl_convert.get_vega_version()}-{vl_convert.get_vega_embed_version()}.js"
    if not made.exists():
        script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed; window.vega = vega;")
        made.with_suffix(".new").write_text(script, encoding="utf-8")
        made.with_suffix(".new").replace(made)
    return FileResponse(made, media_type="text/javascript", headers={"Cache-Control": "private, max-age=86400"})


@router.get("/download/{path:path}")
def download(here: Anyone, path: str) -> Response:
    """A file that was made here: recipients' copies for the custodian, all else for the analyst too."""
    from fastapi import HTTPException

    allowed = {"releases": ("custodian",), "reports": ROLES}.get(_folder(path), ("custodian", "analyst"))
    if here.session.role not in allowed:
        raise HTTPException(403, f"This is not for the role {here.session.role}.")
    file = here.workspace.output(path)
    here.audit.write(here.session.name, here.session.role, "-", f"downloaded {here.workspace.relative(file)}")
    return FileResponse(file, filename=file.name, headers={"Content-Security-Policy": "sandbox"})


def _folder(path: str) -> str:
    """The folder that a path names first, as `Workspace.output` reads it: `./releases/x` is in releases."""
    return next(iter(Path(path).parts), "")

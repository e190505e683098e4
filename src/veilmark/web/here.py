"""Here: what a page works with. Who asks, the workspace, the jobs, and how to answer.

A page's function takes one argument, whose type says who may call it:

    @router.get("/studies")
    def page(here: Analyst) -> Response: ...
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from fastapi import Depends, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from veilmark.study.study import Study
from veilmark.web.access.audit import Audit
from veilmark.web.access.guard import SAFE
from veilmark.web.access.sessions import Access, Session
from veilmark.web.access.users import ROLES, Role
from veilmark.web.workspace import NotFoundError, Workspace

if TYPE_CHECKING:
    from veilmark.web.tasks.jobs import Job, Jobs, Work

MOST_FIELDS = 50_000
LARGEST_FIELD = 4 << 20
HALF = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class Here:
    """One request. `form` holds what a form sent."""

    request: Request
    session: Session
    form: FormData

    @property
    def workspace(self) -> Workspace:
        return self.request.app.state.workspace

    @property
    def jobs(self) -> Jobs:
        return self.request.app.state.jobs

    @property
    def access(self) -> Access:
        return self.request.app.state.access

    @property
    def audit(self) -> Audit:
        return self.request.app.state.audit

    def text(self, field: str, default: str = "") -> str:
        """A field of the form, without blanks around it."""
        value = self.form.get(field, default)
        return value.strip() if isinstance(value, str) else default

    def file(self, field: str) -> UploadFile | None:
        """An uploaded file, where one was chosen."""
        value = self.form.get(field)
        return value if isinstance(value, UploadFile) and value.filename else None

    def study(self, name: str) -> Study:
        """A study of the workspace, which also becomes the one that the navigation leads to."""
        self.workspace.study_file(name)
        self.session.study = name
        self.request.state.study = name
        return self.workspace.study(name)

    def did(self, what: str, study: str | None = None) -> None:
        """What the audit log says of this request, in place of its method and path."""
        self.request.state.did = what
        if study is not None:
            self.request.state.study = study

    def changed_nothing(self) -> None:
        """The audit log need not tell of this request, though it is a POST."""
        self.request.state.quiet = True

    def start(
        self,
        work: Work,
        title: str,
        given: Mapping[str, Any],
        study: str | None = None,
        page: str = "/jobs",
        roles: tuple[Role, ...] = ("custodian", "analyst"),
    ) -> Job:
        """Start a job, which only the roles may see; `page`, with `?job=…` added, shows its progress and its result."""
        self.did(title, study)
        return self.jobs.start(work, title, given, self.session, study, page, roles)

    def job(self, kind: str, study: str | None = None) -> Job | None:
        """The job that the address asks for with `?job=…`, which must be of the kind, else the latest of it."""
        asked = self.request.query_params.get("job")
        if not asked:
            return self.jobs.latest(kind, self.session.role, study)
        job = self.jobs.get(asked, self.session.role)
        if kind and (job.kind != kind or study not in (None, job.study)):
            raise NotFoundError(f"The job {asked[:16]!r} is not of this page.")
        return job

    def result(self, job: Job | None) -> dict[str, Any] | None:
        """What a job returned, None where it is not done."""
        return self.jobs.result(job) if job is not None and job.state == "done" else None

    def page(self, template: str, status: int = 200, **context: Any) -> Response:
        """A page; templates know `here`, `nav`, `csrf` and `notice` besides the context."""
        from veilmark.web.render import render

        return render(self, template, status, context)

    def go(self, url: str, notice: str | None = None) -> Response:
        """Lead the browser to another page of ours, which shows the notice once."""
        self.session.notice = notice or self.session.notice
        return RedirectResponse(url, 303)

    def watch(self, job: Job) -> Response:
        """Lead the browser to the page that shows a job."""
        return self.go(job.url)


class Needs:
    """The dependency that lets a request in: its session has one of the roles, and a change carries the token."""

    def __init__(self, roles: tuple[Role, ...]) -> None:
        self.roles = roles

    async def __call__(self, request: Request) -> Here:
        session: Session | None = request.state.session
        if session is None:
            raise HTTPException(401, "Log in first.")
        form = await _form(request) if request.method not in SAFE else FormData()
        if request.method not in SAFE and await _is_broken(request):
            raise HTTPException(422, "There is half a character in what was sent.")
        if request.method not in SAFE and not _has_token(request, form, session):
            raise HTTPException(403, "The page was too old, so nothing was done. Go back, load it again, and repeat.")
        if session.role not in self.roles:
            raise HTTPException(403, f"This is not for the role {session.role}, but for: {', '.join(self.roles)}.")
        return Here(request, session, form)


async def _form(request: Request) -> FormData:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("multipart/form-data", "application/x-www-form-urlencoded"):
        return FormData()
    return await request.form(max_fields=MOST_FIELDS, max_part_size=LARGEST_FIELD)


async def _is_broken(request: Request) -> bool:
    """JSON can spell halves of characters, which no file and no answer can hold."""
    if not request.headers.get("content-type", "").lower().startswith("application/json"):
        return False
    body = await request.body()
    if not HALF.search(body):
        return False
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):  # Not JSON at all, which is told elsewhere.
        return False
    return False


def _has_token(request: Request, form: FormData, session: Session) -> bool:
    given = request.headers.get("x-csrf-token") or form.get("csrf") or ""
    return isinstance(given, str) and hmac.compare_digest(given.encode(), session.csrf.encode())


Custodian = Annotated[Here, Depends(Needs(("custodian",)))]
Analyst = Annotated[Here, Depends(Needs(("custodian", "analyst")))]
Auditor = Annotated[Here, Depends(Needs(("custodian", "auditor")))]
Anyone = Annotated[Here, Depends(Needs(ROLES))]


@dataclass(frozen=True)
class Nav:
    """A page's place in the navigation; `{study}` in its path is the study at hand."""

    title: str
    path: str
    order: int
    roles: tuple[Role, ...]

    def url(self, study: str | None) -> str:
        if "{study}" not in self.path:
            return self.path
        return self.path.replace("{study}", quote(study)) if study else "/studies"

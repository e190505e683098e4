"""Coming in and going out: the one-time link, the log-in, the log-out, and the start page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from veilmark.web.access.sessions import LONGEST, Access
from veilmark.web.access.users import Role
from veilmark.web.here import Anyone
from veilmark.web.render import render_plain

router = APIRouter()


class SessionView(BaseModel):
    """Who is in. `csrf` goes into the header X-CSRF-Token of every POST, PUT and DELETE."""

    name: str
    role: Role
    csrf: str


@router.get("/")
def start(here: Anyone) -> Response:
    return RedirectResponse("/ledger" if here.session.role == "auditor" else "/studies", 303)


@router.get("/api/session")
def session(here: Anyone) -> SessionView:
    """Who is in, and the token that changes need."""
    return SessionView(name=here.session.name, role=here.session.role, csrf=here.session.csrf)


@router.get("/open")
def open_link(request: Request, token: str = "") -> Response:
    """The link that the terminal printed; it works once."""
    access: Access = request.app.state.access
    if request.state.session is not None:
        return RedirectResponse("/", 303)
    cookie = access.redeem(token)
    if cookie is None:
        return render_plain("login.html", 403, accounts=access.users is not None, wrong="used", wait=0, name="")
    request.app.state.audit.write("custodian", "custodian", _address(request), "opened the one-time link")
    return _enter(request, cookie)


@router.get("/login")
def login_page(request: Request) -> Response:
    access: Access = request.app.state.access
    if request.state.session is not None:
        return RedirectResponse("/", 303)
    return render_plain("login.html", accounts=access.users is not None, wrong="", wait=0, name="")


@router.post("/login")
async def login(request: Request) -> Response:
    access: Access = request.app.state.access
    form = await request.form()
    name, password = str(form.get("name", "")).strip()[:64], str(form.get("password", ""))
    request.state.tried, request.state.did = name or "-", "log-in refused"
    found = await run_in_threadpool(access.log_in, name, password, _address(request))
    if isinstance(found, str):
        request.state.did = "logged in"
        return _enter(request, found)
    wait = found or 0
    answer = render_plain("login.html", 429 if wait else 403, accounts=True, wrong="password", wait=wait, name=name)
    if wait:
        answer.headers["Retry-After"] = str(wait)
    return answer


@router.post("/logout")
def logout(here: Anyone) -> Response:
    here.did("logged out")
    here.access.sessions.end(here.request.state.cookie)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(here.access.cookie, httponly=True, samesite="lax")
    return answer


def _enter(request: Request, cookie: str) -> Response:
    access: Access = request.app.state.access
    answer = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(access.cookie, cookie, max_age=LONGEST, httponly=True, samesite="lax", secure=secure)
    return answer


def _address(request: Request) -> str:
    return request.client.host if request.client else "-"

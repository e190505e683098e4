"""The app: pages found in `pages/`, behind the guard."""

from __future__ import annotations

import importlib
import pkgutil
import secrets
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from veilmark import __version__
from veilmark.errors import InputError, VeilmarkError
from veilmark.messages import spell, spell_all
from veilmark.web import pages
from veilmark.web.access.audit import Audit
from veilmark.web.access.guard import UPLOAD, Guard
from veilmark.web.access.sessions import Access
from veilmark.web.forms.study import FieldsError
from veilmark.web.here import Here, Needs
from veilmark.web.render import FOLDER, render_plain
from veilmark.web.spelling import FIELDS
from veilmark.web.tasks.jobs import Jobs
from veilmark.web.workspace import NotFoundError, Workspace

OPEN = ("/login", "/open")
"""Routes for who is not in yet; all others must say by their `here` who may call them."""


def create_app(folder: Path, access: Access, upload_limit: int = UPLOAD) -> FastAPI:
    """The web app on a workspace folder."""
    workspace = Workspace.open(folder)
    app = FastAPI(
        title="veilmark",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=_lifespan,
        generate_unique_id_function=lambda route: f"{'_'.join(sorted(route.methods or ()))}{route.path}".lower(),
    )
    audit = Audit(workspace.private / "audit.jsonl")
    app.state.workspace, app.state.access, app.state.audit = workspace, access, audit
    app.state.jobs = Jobs(workspace.folder, workspace.private / "jobs")
    modules = list(page_modules())
    app.state.nav = sorted((m.NAV for m in modules if hasattr(m, "NAV")), key=lambda nav: nav.order)
    for module in modules:
        _include(app, module.router)
    app.mount("/static", StaticFiles(directory=FOLDER / "static"), name="static")
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.add_middleware(partial(Guard, access=access, audit=audit, upload_limit=upload_limit))
    return app


def page_modules() -> Iterator[ModuleType]:
    """The modules of `pages/`, each with its router."""
    for found in pkgutil.iter_modules(pages.__path__):
        yield importlib.import_module(f"{pages.__name__}.{found.name}")


def _include(app: FastAPI, router: APIRouter) -> None:
    for route in router.routes:
        if not isinstance(route, APIRoute) or (route.path not in OPEN and needs_of(route) is None):
            raise RuntimeError(f"The route {route} does not say who may call it: give its function a `here: …`.")
        route.include_in_schema = route.path.startswith("/api/")
    app.include_router(router)


def needs_of(route: APIRoute) -> Needs | None:
    """Who may call a route; None where it does not say."""
    return next((d.call for d in route.dependant.dependencies if isinstance(d.call, Needs)), None)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    threading.Thread(target=app.state.jobs.warm_up, daemon=True).start()
    yield
    app.state.jobs.close()


# --- errors --------------------------------------------------------------------------------------------------


def _answer(request: Request, status: int, message: object, headers: Any = None) -> Response:
    text = request.app.state.workspace.plain(message)
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": text}, status, headers)
    session = getattr(request.state, "session", None)
    if session is None:
        return render_plain("error.html", status, text=text)
    return Here(request, session, FormData()).page("error.html", status, text=text)


def _not_found(request: Request, error: Exception) -> Response:
    return _answer(request, 404, error)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {404: "There is no such page.", 405: "That cannot be done here."}
    plain = (
        error.detail
        if error.status_code not in known or error.detail not in ("Not Found", "Method Not Allowed")
        else ""
    )
    return _answer(request, error.status_code, plain or known[error.status_code], error.headers)


def _invalid(request: Request, error: Exception) -> Response:
    """What is wrong with a request to the API, in a sentence; values that were sent are not sent back."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return _answer(request, 422, f"{place}: {first['msg'].removeprefix('Value error, ')}")


def _veilmark(request: Request, error: Exception) -> Response:
    status = 400 if isinstance(error, InputError) else 503
    if isinstance(error, FieldsError) and request.url.path.startswith("/api/"):
        return JSONResponse({"error": spell(error, FIELDS), "fields": spell_all(error.fields, FIELDS)}, status)
    return _answer(request, status, error)


_HANDLERS: dict[type[Exception], Any] = {
    NotFoundError: _not_found,
    HTTPException: _http,
    RequestValidationError: _invalid,
    VeilmarkError: _veilmark,
}


def new_token() -> str:
    return secrets.token_urlsafe(24)

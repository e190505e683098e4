"""Guard: what every request passes before any page sees it, and every answer on its way out.

In: the Host header, the session, whether a change comes from a page of ours, the size of the body. Out: security headers,
an entry in the audit log for every change, and a reference number in place of an unexpected error.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import MutableMapping
from html import escape
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from veilmark.web.access.audit import Audit
from veilmark.web.access.sessions import Access, Session

log = logging.getLogger("veilmark.web")

PUBLIC = ("/login", "/open", "/static/")
"""What needs no session; a path that ends in / stands for all below it."""

SAFE = ("GET", "HEAD", "OPTIONS")
SMALL, BODY = 16 << 10, 8 << 20
UPLOAD = 4 << 30
"""How large a body may be: of somebody unknown, of a form or JSON, and of an upload."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class BodyTooLargeError(HTTPException):
    """More came than is allowed; FastAPI lets this kind through where it reads a body."""


class Guard:
    def __init__(self, app: ASGIApp, access: Access, audit: Audit, upload_limit: int = UPLOAD) -> None:
        self.app, self.access, self.audit, self.upload_limit = app, access, audit, upload_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        await _Passage(self, scope, receive, send).run()


class _Passage:
    """One request on its way through the guard."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send) -> None:
        self.guard, self.scope, self._receive, self._send = guard, scope, receive, send
        self.headers = Headers(scope=scope)
        self.path: str = scope["path"]
        self.changes = scope["method"] not in SAFE
        self.session: Session | None = None
        self.status = 0
        self.taken = 0
        self.limit = SMALL

    async def run(self) -> None:
        try:
            refusal = self._refusal()
            if refusal is not None:
                await refusal(self.scope, self._receive, self.send)
            else:
                await self.guard.app(self.scope, self.receive, self.send)
        except BodyTooLargeError:
            await self._say(413, _too_large(self.limit))
        except Exception:
            reference = secrets.token_hex(4)
            log.exception("%s %r failed, reference %s", self.scope["method"], self.path, reference)
            await self._say(
                500, f"Something went wrong inside veilmark, reference {reference}. The server's log says more."
            )
        if self.changes and (self.session is not None or self.path == "/login"):
            self._record()

    def _refusal(self) -> Response | None:
        """The answer to a request that goes no further."""
        access, host = self.guard.access, self.headers.get("host", "")
        if access.hosts is not None and _name(host) not in access.hosts:
            return self._answer(400, "This server has another name. Use the address that it printed when it started.")
        cookie = cookie_parser(self.headers.get("cookie", "")).get(access.cookie)
        self.session = access.sessions.find(cookie)
        state: MutableMapping[str, Any] = self.scope.setdefault("state", {})
        state.update(session=self.session, cookie=cookie)
        if self.session is None and not _is_public(self.path):
            return self._stranger()
        if self.changes and not self._from_our_pages(host):
            return self._answer(403, "This came from a page of another site, so nothing was done.")
        if self._is_upload() and "charset=" in self.headers["content-type"].lower():
            return self._answer(415, "Send forms in UTF-8, without naming a charset.")
        return self._oversized()

    def _is_upload(self) -> bool:
        return self.headers.get("content-type", "").lower().startswith("multipart/form-data")

    def _stranger(self) -> Response:
        if self.path.startswith("/api/") or self.changes:
            return self._answer(401, "Log in first.")
        return RedirectResponse("/login", 303)

    def _from_our_pages(self, host: str) -> bool:
        """Browsers say where a form or script that changes something stands; other programs need not."""
        origin = self.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return False
        return self.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")

    def _oversized(self) -> Response | None:
        if self.session is not None:
            self.limit = self.guard.upload_limit if self._is_upload() else BODY
        length = self.headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18:
            return self._answer(400, "The length of the body is not a number.")
        return self._answer(413, _too_large(self.limit)) if int(length) > self.limit else None

    async def receive(self) -> Message:
        message = await self._receive()
        self.taken += len(message.get("body", b""))
        if self.taken > self.limit:
            raise BodyTooLargeError(413, _too_large(self.limit))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)

    async def _say(self, status: int, text: str) -> None:
        if not self.status:  # Else part of an answer is out already, and there is no taking it back.
            await self._answer(status, text)(self.scope, self._receive, self.send)

    def _answer(self, status: int, text: str) -> Response:
        if self.path.startswith("/api/"):
            return JSONResponse({"error": text}, status)
        page = f"<!doctype html><html lang=en><title>veilmark</title><p>{escape(text)}</p><p><a href=/>To the start</a></p>"
        return Response(page, status, media_type="text/html")

    def _record(self) -> None:
        state = self.scope["state"]
        if state.get("quiet") and self.status < 400:
            return
        name, role = (self.session.name, self.session.role) if self.session else (state.get("tried", "-"), "-")
        address = (self.scope.get("client") or ("-", 0))[0]
        what = state.get("did") or f"{self.scope['method']} {self.path}"
        try:
            self.guard.audit.write(name, role, address, what, study=state.get("study"), status=self.status)
        except OSError:
            log.exception("The audit log cannot be written: %s", json.dumps([name, what]))


def _name(host: str) -> str:
    """The host's name or address without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_public(path: str) -> bool:
    return any(path.startswith(p) if p.endswith("/") else path == p for p in PUBLIC)


def _too_large(limit: int) -> str:
    size = f"{limit >> 20:,} MB" if limit >> 20 else f"{limit >> 10} kB"
    return f"This is larger than {size}, the most that is taken here. Put the file into the workspace folder instead."

"""What holds for every route: who may call it, the token, the headers. A new route is covered by being there."""

from __future__ import annotations

import re

import pytest
from fastapi import APIRouter, FastAPI

from veilmark.web.access.guard import SAFE
from veilmark.web.access.users import ROLES
from veilmark.web.app import OPEN, _include, needs_of, page_modules
from web.helpers import Client

ROUTES = [
    (method, route.path, needs_of(route))
    for m in page_modules()
    for route in m.router.routes
    for method in route.methods
]
CLOSED = [(method, path, needs) for method, path, needs in ROUTES if path not in OPEN]
NEVER = ("/logout", "/api/jobs/{job_id}/events", "/download/{path:path}")
"""Going out ends the session, events would be waited for, downloads differ by folder; they have tests of their own."""


def address(path):
    """A path with something in each place that is not there in the workspace."""
    return re.sub(r"\{[^}]*\}", "nothing", path)


def test_there_are_routes():
    assert len(CLOSED) > 20
    assert all(needs is not None and set(needs.roles) <= set(ROLES) for _, _, needs in CLOSED)
    assert all("custodian" in needs.roles for _, _, needs in CLOSED)


def test_a_route_that_does_not_say_who_may_call_it_is_refused():
    router = APIRouter()
    router.get("/secret")(lambda: None)
    with pytest.raises(RuntimeError, match="does not say who"):
        _include(FastAPI(), router)


@pytest.mark.parametrize(("method", "path", "needs"), CLOSED)
def test_strangers_get_nowhere(stranger, method, path, needs):
    answer = stranger.request(method, address(path), follow_redirects=False)
    if path.startswith("/api/") or method not in SAFE:
        assert answer.status_code == 401
    else:
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "path", "needs"), [r for r in CLOSED if r[1] not in NEVER])
def test_roles(app, method, path, needs, role):
    answer = Client(app, role).request(method, address(path), follow_redirects=False)
    assert answer.status_code < 500
    assert (answer.status_code == 403) == (role not in needs.roles), answer.text


@pytest.mark.parametrize("token", [None, "", "wrong"])
@pytest.mark.parametrize(("method", "path", "needs"), [r for r in CLOSED if r[0] not in SAFE])
def test_changes_need_the_token(custodian, method, path, needs, token):
    custodian.headers.pop("X-CSRF-Token")
    more = {} if token is None else {"headers": {"X-CSRF-Token": token}}
    answer = custodian.request(method, address(path), **more)
    assert answer.status_code == 403
    assert "too old" in answer.text


@pytest.mark.parametrize("url", ["/studies", "/api/studies", "/nowhere", "/api/nowhere", "/static/style.css", "/login"])
def test_headers(custodian, stranger, url):
    for client in (custodian, stranger):
        headers = client.get(url, follow_redirects=False).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


def test_pages_hold_no_inline_script_or_style(custodian):
    for url in (
        "/studies",
        "/studies/people",
        "/studies/people/column?column=age",
        "/studies/people/measures",
        "/jobs",
        "/audit",
    ):
        page = custodian.get(url).text
        assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son[a-z]+=|javascript:", page), url
        assert not re.search(r"""(src|href)=["']?(https?:)?//""", page), url


def test_an_unexpected_error_shows_a_reference_and_nothing_else(custodian, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("a secret of the data")

    monkeypatch.setattr("veilmark.web.pages.studies.list_studies", fail)
    for url in ("/studies", "/api/studies"):
        answer = custodian.get(url)
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert answer.headers["x-frame-options"] == "DENY"
        reference = re.search(r"reference ([0-9a-f]{8})", answer.text)[1]
        assert reference in caplog.text


def test_pages_that_are_not_there(custodian):
    assert custodian.get("/nowhere").status_code == 404
    assert "There is no such page" in custodian.get("/nowhere").text
    assert custodian.get("/api/nowhere").json() == {"error": "There is no such page."}
    assert custodian.put("/studies").status_code == 405
    assert custodian.get("/docs").status_code == 404

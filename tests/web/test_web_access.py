"""Coming in: the one-time link, log-in, sessions that end, back-off after wrong passwords, hosts and origins."""

from __future__ import annotations

import json
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from veilmark.errors import OptionError
from veilmark.web.access import sessions as access_module
from veilmark.web.access.sessions import FREE_TRIES, IDLE, LONGEST, LONGEST_WAIT, Access, Sessions, Throttle
from veilmark.web.access.users import Users
from veilmark.web.app import create_app
from web.helpers import PASSWORD, Client

BASE = "http://127.0.0.1:8000"


class Clock:
    now = 1_000.0

    def __call__(self):
        return self.now


# --- the one-time link -----------------------------------------------------------------------------------------


@pytest.fixture
def local(tmp_path):
    return create_app(tmp_path, Access(token="abc", hosts=frozenset(["127.0.0.1"])))


def test_the_link_works_once(local):
    first, second = TestClient(local, base_url=BASE), TestClient(local, base_url=BASE)
    assert first.get("/studies", follow_redirects=False).headers["location"] == "/login"
    assert "from the terminal" in first.get("/login").text
    assert first.get("/open?token=wrong").status_code == 403
    assert first.get("/open?token=abc").url.path == "/studies"
    assert second.get("/open?token=abc").status_code == 403
    assert second.get("/api/studies").status_code == 401
    assert first.get("/open?token=abc").url.path == "/studies"
    assert first.get("/api/session").json()["role"] == "custodian"


def test_without_accounts_nobody_logs_in(local):
    answer = TestClient(local, base_url=BASE).post("/login", data={"name": "custodian", "password": "custodian"})
    assert answer.status_code == 403


def test_the_cookie(local):
    answer = TestClient(local, base_url=BASE).get("/open?token=abc", follow_redirects=False)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie


def test_the_cookie_over_https(tmp_path):
    app = create_app(tmp_path, Access(token="abc"))
    answer = TestClient(app, base_url="https://veilmark.example").get("/open?token=abc", follow_redirects=False)
    assert "Secure" in answer.headers["set-cookie"]


# --- log-in ----------------------------------------------------------------------------------------------------


def test_log_in_and_out(stranger):
    page = stranger.post("/login", data={"name": "analyst", "password": PASSWORD})
    assert page.url.path == "/studies"
    session = stranger.get("/api/session").json()
    assert (session["name"], session["role"]) == ("analyst", "analyst")
    cookie = dict(stranger.cookies)
    assert stranger.post("/logout", data={"csrf": session["csrf"]}).url.path == "/login"
    stranger.cookies.update(cookie)
    assert stranger.get("/api/session").status_code == 401


def test_wrong_passwords_cost_time(app, stranger, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(app.state.access, "throttle", Throttle(clock))
    for _ in range(FREE_TRIES):
        assert stranger.post("/login", data={"name": "auditor", "password": "wrong"}).status_code == 403
    answer = stranger.post("/login", data={"name": "auditor", "password": PASSWORD})
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "2"
    assert "Try again in 2 seconds" in answer.text
    clock.now += 2
    page = stranger.post("/login", data={"name": "auditor", "password": PASSWORD})
    assert (page.status_code, page.url.path) == (200, "/ledger")


def test_wrong_passwords_for_many_accounts_from_one_address(app, stranger, monkeypatch):
    monkeypatch.setattr(app.state.access, "throttle", Throttle(Clock()))
    for i in range(FREE_TRIES):
        stranger.post("/login", data={"name": f"guess{i}", "password": "wrong"})
    assert stranger.post("/login", data={"name": "custodian", "password": PASSWORD}).status_code == 429


@given(st.lists(st.sampled_from(["fail", "wait"]), max_size=40), st.floats(0, 5_000))
def test_the_wait_grows_and_ends(events, pause):
    clock = Clock()
    throttle, fails, waits = Throttle(clock), 0, [0]
    for event in events:
        if event == "fail":
            throttle.fail("a")
            fails += 1
            waits.append(throttle.wait("a", "b"))
        else:
            clock.now += pause
            assert throttle.wait("a") <= LONGEST_WAIT
    assert waits == sorted(waits)
    assert (throttle.wait("b"), throttle.wait()) == (0, 0)
    clock.now += LONGEST_WAIT
    assert throttle.wait("a") <= 0
    if fails >= FREE_TRIES:
        assert max(waits) == min(2 ** (fails - FREE_TRIES + 1), LONGEST_WAIT)


def test_only_so_many_failures_are_remembered(monkeypatch):
    monkeypatch.setattr(access_module, "MOST_REMEMBERED", 10)
    throttle = Throttle()
    for i in range(50):
        throttle.fail(str(i))
    assert len(throttle._failed) == 10


# --- sessions --------------------------------------------------------------------------------------------------


def test_sessions_end():
    clock = Clock()
    sessions = Sessions(None, clock)
    cookie = sessions.begin("custodian", "custodian")
    for _ in range(LONGEST // IDLE * 2):
        clock.now += IDLE / 2
        assert sessions.find(cookie)
    clock.now += IDLE / 2
    assert sessions.find(cookie) is None
    idle = sessions.begin("custodian", "custodian")
    clock.now += IDLE + 1
    assert sessions.find(idle) is None
    assert sessions.find(None) is sessions.find("nonsense") is None


def test_an_account_that_changes_is_out_at_once(tmp_path):
    users = Users(tmp_path / "users.json")
    sessions = Sessions(users)
    users.add("eva", "analyst", PASSWORD)
    cookie = sessions.begin("eva", "analyst", users.known("eva").hash)
    assert sessions.find(cookie).role == "analyst"
    users.set_password("eva", PASSWORD + "!")
    assert sessions.find(cookie) is None
    cookie = sessions.begin("eva", "analyst", users.known("eva").hash)
    users.remove("eva")
    assert sessions.find(cookie) is None


def test_the_cookie_is_not_kept():
    sessions = Sessions(None)
    assert sessions.begin("custodian", "custodian") not in repr(vars(sessions))


# --- accounts --------------------------------------------------------------------------------------------------


def test_accounts(tmp_path):
    users = Users(tmp_path / "users.json")
    users.add("eva", "auditor", PASSWORD)
    text = users.path.read_text()
    assert PASSWORD not in text
    assert json.loads(text)["users"][0]["hash"].startswith("$argon2id$")
    assert stat.S_IMODE(users.path.stat().st_mode) == 0o600
    assert users.check("eva", PASSWORD).role == "auditor"
    assert users.check("eva", PASSWORD + "x") is users.check("adam", PASSWORD) is None
    assert PASSWORD not in repr(users.known("eva"))
    assert "argon2" not in repr(users.known("eva"))


@pytest.mark.parametrize(
    ("name", "role", "password", "says"),
    [
        ("eva", "auditor", PASSWORD, "already"),
        ("../x", "auditor", PASSWORD, "cannot be a name"),
        ("bob", "boss", PASSWORD, "not a role"),
        ("bob", "auditor", "short", "12 to 200"),
    ],
)
def test_accounts_that_cannot_be(tmp_path, name, role, password, says):
    users = Users(tmp_path / "users.json")
    users.add("eva", "auditor", PASSWORD)
    with pytest.raises(OptionError, match=says) as error:
        users.add(name, role, password)
    assert password not in str(error.value)


def test_a_damaged_accounts_file_lets_nobody_in(tmp_path):
    users = Users(tmp_path / "users.json")
    users.path.write_text("{")
    with pytest.raises(OptionError, match="damaged"):
        users.check("eva", PASSWORD)


# --- where a request comes from --------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "evil.example:8000"])
def test_other_names_of_the_server_are_refused(custodian, host):
    assert custodian.get("/api/studies", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1234"])
def test_its_own_names(custodian, host):
    assert custodian.get("/api/studies", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8001"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_forms_of_other_sites_do_nothing(custodian, stranger, headers):
    assert custodian.post("/api/samples", headers=headers).status_code == 403
    answer = stranger.post("/login", data={"name": "custodian", "password": PASSWORD}, headers=headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_our_own_forms(custodian):
    headers = {"Origin": BASE, "Sec-Fetch-Site": "same-origin"}
    answer = custodian.post("/studies/people", data={"role:age": "quasi"}, headers=headers, follow_redirects=False)
    assert answer.status_code == 303


def test_a_token_of_another_session_does_not_count(app, custodian, analyst):
    answer = custodian.post("/api/samples", headers={"X-CSRF-Token": analyst.token})
    assert answer.status_code == 403
    assert Client(app, "custodian").token != custodian.token

"""An app on a small workspace, and clients that are in."""

from __future__ import annotations

import time

from starlette.testclient import TestClient

from strength import PATIENCE
from veilmark.web.access.sessions import Access
from veilmark.web.access.users import ROLES, Users
from veilmark.web.app import create_app

PASSWORD = "correct horse battery"
STUDY = """\
version: 1
source: people.csv
attributes:
  name: {role: direct}
  age: {role: quasi, hierarchy: {intervals: [5, 10]}}
  sex: {role: quasi}
  illness: {role: sensitive, weights: {flu: 0.1, default: 0.2}}
"""


def people(rows: int = 60) -> str:
    lines = (f"person {i},{20 + i % 30},{'FM'[i % 2]},{('flu', 'cold', 'HIV')[i % 3]},note" for i in range(rows))
    return "\n".join(["name,age,sex,illness,extra", *lines]) + "\n"


class Client(TestClient):
    """A browser that is in: it keeps its cookie, and sends the token with every change."""

    def __init__(self, app, role=None, **more):
        super().__init__(app, base_url="http://127.0.0.1:8000", **more)
        if role is not None:
            user = app.state.access.users.get(role)
            self.cookies.set(app.state.access.cookie, app.state.access.sessions.begin(role, role, user.hash))
            self.headers["X-CSRF-Token"] = self.get("/api/session").json()["csrf"]

    @property
    def token(self):
        return self.headers["X-CSRF-Token"]


def new_app(folder, **more):
    """An app with an account for each role, on a folder with a study `people`."""
    (folder / ".veilmark").mkdir(parents=True, mode=0o700, exist_ok=True)
    (folder / "people.csv").write_text(people())
    (folder / "people.yaml").write_text(STUDY)
    users = Users(folder / ".veilmark" / "users.json")
    for role in ROLES:
        if users.get(role) is None:
            users.add(role, role, PASSWORD)
    return create_app(folder, Access(users, hosts=frozenset(["127.0.0.1", "localhost"])), **more)


def wait(client, job):
    """The job, once it is over."""
    for _ in range(20 * PATIENCE):
        found = client.get(f"/api/jobs/{job['id']}").json()
        if found["ended"]:
            return found
        time.sleep(0.05)
    raise AssertionError(f"the job does not end: {found}")

"""An app on a small workspace, and clients that are in, one a role."""

from __future__ import annotations

import pytest
from argon2 import PasswordHasher
from starlette.testclient import TestClient

from web.helpers import STUDY, Client, new_app, people


@pytest.fixture(scope="session", autouse=True)
def _cheap_hashes():
    """Argon2 as it is, with less work for each password."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "veilmark.web.access.users._hasher", lambda: PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
        )
        yield


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    made = new_app(tmp_path_factory.mktemp("workspace"))
    with TestClient(made):  # Runs its start and its end.
        yield made


@pytest.fixture
def workspace(app):
    return app.state.workspace


@pytest.fixture
def custodian(app):
    return Client(app, "custodian")


@pytest.fixture
def analyst(app):
    return Client(app, "analyst")


@pytest.fixture
def auditor(app):
    return Client(app, "auditor")


@pytest.fixture
def stranger(app):
    return Client(app)


@pytest.fixture(autouse=True)
def _study_as_it_was(request):
    """Each test finds the study as it was."""
    if "app" in request.fixturenames:
        folder = request.getfixturevalue("app").state.workspace.folder
        (folder / "people.yaml").write_text(STUDY)
        (folder / "people.csv").write_text(people())

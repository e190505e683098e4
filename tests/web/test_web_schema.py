"""The API keeps to its own description, whatever is sent, and never fails inside."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from strength import examples
from web.helpers import Client, new_app

FEW = settings(
    max_examples=examples(8),
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """A custodian's client of an app whose jobs stay in the queue."""
    app = new_app(tmp_path_factory.mktemp("api"))
    app.state.jobs.closing = True
    return Client(app, "custodian")


@pytest.fixture(scope="module")
def schema(described):
    return described.get("/api/openapi.json").json()


def test_the_api_is_described(schema):
    assert "/api/studies/{name}" in schema["paths"]
    assert all(path.startswith("/api/") for path in schema["paths"])


def test_no_request_makes_it_fail(described, schema):
    for found in schemathesis.openapi.from_dict(schema).get_all_operations():
        operation = found.ok()

        @FEW
        @given(operation.as_strategy())
        def run(case):
            sent = case.as_transport_kwargs(base_url=str(described.base_url), headers={"X-CSRF-Token": described.token})
            known = ("method", "url", "params", "headers", "json", "data", "files", "content")
            answer = described.request(**{key: value for key, value in sent.items() if key in known})
            assert answer.status_code < 500, answer.text

        run()

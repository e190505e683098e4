"""Jobs: their life, progress, cancelling, a crash, and what a restart finds."""

from __future__ import annotations

import json
import os
import signal
import time
import warnings

import pytest

from strength import PATIENCE
from veilmark import progress
from veilmark.errors import DataError, VeilmarkWarning
from veilmark.web.access.sessions import Session
from veilmark.web.tasks.jobs import Jobs
from veilmark.web.tasks.work import Outcome
from veilmark.web.workspace import NotFoundError
from web.helpers import wait

EVA = Session("eva", "analyst", "", 0, 0)


def work(workspace, rows):
    (workspace.folder / "ran").write_text("yes")
    with progress.step("Counting", lambda: 0.5):
        time.sleep(0.3)
    warnings.warn("mind the gap", VeilmarkWarning, stacklevel=1)
    return {"rows": rows, "odd": float("nan"), "file": str(workspace.folder)}


def draw(workspace):
    import altair as alt

    bars = alt.Chart(alt.Data(values=[{"a": 1}])).mark_bar().encode(x="a:Q")
    return Outcome({}, {"One bar": bars})


def refuse(workspace):
    raise DataError(f"'{workspace.folder}{os.sep}people.csv' is odd. Mend it.")


def fail(workspace):
    raise RuntimeError("a secret of the data")


def die(workspace):
    os.kill(os.getpid(), signal.SIGKILL)


def linger(workspace):
    (workspace.folder / "began").write_text("yes")
    try:
        time.sleep(60)
    finally:
        (workspace.folder / "cleaned").write_text("yes")


def stubborn(workspace):
    (workspace.folder / "began").write_text("yes")
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            continue


@pytest.fixture
def jobs(tmp_path):
    made = Jobs(tmp_path, tmp_path / "jobs", at_once=1)
    yield made
    made.close()


def start(jobs, function, roles=("custodian", "analyst"), **given):
    return jobs.start(function, function.__name__, given, EVA, None, "/page", roles)


def ended(job):
    for _ in range(20 * PATIENCE):
        if job.ended:
            return job
        time.sleep(0.05)
    raise AssertionError(f"the job does not end: {job}")


def running(folder):
    while not (folder / "began").exists():
        time.sleep(0.05)
    time.sleep(0.1)


def test_a_job(jobs, tmp_path):
    job = start(jobs, work, rows=3)
    assert (job.state, job.url) == ("running", f"/page?job={job.id}")
    ended(job)
    assert (job.state, job.error, job.notes) == ("done", None, ["mind the gap"])
    assert [(s.label, s.share, s.done) for s in job.steps] == [("Counting", 1.0, True)]
    assert jobs.result(job) == {"rows": 3, "odd": None, "file": str(tmp_path)}
    assert (tmp_path / "ran").exists()


def test_charts(jobs):
    job = ended(start(jobs, draw))
    assert [(c.name, c.title) for c in job.charts] == [("chart-1", "One bar")]
    assert jobs.chart(job, "chart-1", "svg").read_text().startswith("<svg")
    assert json.loads(jobs.chart(job, "chart-1", "json").read_text())["mark"]["type"] == "bar"
    with pytest.raises(NotFoundError):
        jobs.chart(job, "../record", "json")


def test_errors_of_ours_are_told_in_their_words(jobs):
    job = ended(start(jobs, refuse))
    assert (job.state, job.error) == ("failed", "'people.csv' is odd. Mend it.")
    with pytest.raises(NotFoundError, match="failed"):
        jobs.result(job)


def test_other_errors_get_a_reference(jobs, caplog):
    job = ended(start(jobs, fail))
    assert job.state == "failed"
    assert "secret" not in job.error
    reference = job.error.partition("reference ")[2][:8]
    assert reference in caplog.text
    assert "a secret of the data" in caplog.text


def test_a_crash_harms_nobody(jobs):
    job, after = start(jobs, die), start(jobs, work, rows=1)
    assert ended(job).state == "failed"
    assert "without a word" in job.error
    assert ended(after).state == "done"


def test_cancelling(jobs, tmp_path):
    job, waiting = start(jobs, linger), start(jobs, work, rows=1)
    running(tmp_path)
    assert (job.state, waiting.state) == ("running", "queued")
    jobs.cancel(waiting)
    assert (waiting.state, bool(waiting.ended)) == ("cancelled", True)
    jobs.cancel(job)
    assert ended(job).state == "cancelled"
    assert (tmp_path / "cleaned").exists()
    assert not (tmp_path / "ran").exists()
    jobs.cancel(job)


def test_a_job_that_does_not_listen(jobs, tmp_path, monkeypatch):
    monkeypatch.setattr("veilmark.web.tasks.jobs.PATIENCE", 0.3)
    job = start(jobs, stubborn)
    running(tmp_path)
    jobs.cancel(job)
    assert ended(job).state == "cancelled"


def test_a_restart_remembers(tmp_path):
    first = Jobs(tmp_path, tmp_path / "jobs", at_once=1)
    done = ended(start(first, work, rows=1))
    job, waiting = start(first, linger), start(first, work, rows=2)
    running(tmp_path)
    record = tmp_path / "jobs" / job.id / "record.json"
    before = record.read_text()
    first.close()
    ended(job)
    assert (job.state, waiting.state) == ("interrupted", "interrupted")
    record.write_text(before)  # As a server leaves it that was killed.
    (tmp_path / "jobs" / waiting.id / "record.json").write_text("{")
    again = Jobs(tmp_path, tmp_path / "jobs")
    assert {j.id: j.state for j in again.all("custodian")} == {done.id: "done", job.id: "interrupted"}
    assert again.result(again.get(done.id, "custodian"))["rows"] == 1
    assert json.loads(record.read_text())["state"] == "interrupted"


def test_only_the_roles_see_a_job(jobs):
    job = ended(start(jobs, work, ("custodian",), rows=1))
    assert jobs.get(job.id, "custodian") is job
    for role in ("analyst", "auditor"):
        assert jobs.all(role) == []
        assert jobs.latest("work", role) is None
        with pytest.raises(NotFoundError):
            jobs.get(job.id, role)


# --- through the web -------------------------------------------------------------------------------------------


def test_measuring_as_a_job(custodian, analyst, auditor):
    answer = custodian.post("/studies/people/measures", data={"csrf": custodian.token}, follow_redirects=False)
    url = answer.headers["location"]
    job = {"id": url.rpartition("=")[2]}
    assert url == f"/studies/people/measures?job={job['id']}"
    with custodian.stream("GET", f"/api/jobs/{job['id']}/events") as events:
        told = [json.loads(line.removeprefix("data: ")) for line in events.iter_lines() if line.startswith("data:")]
    assert told[-1]["state"] == "done"
    assert wait(custodian, job)["study"] == "people"
    result = analyst.get(f"/api/jobs/{job['id']}/result").json()
    assert result["records"] == 60
    assert analyst.get("/api/studies/people/measures").json()["result"] == result
    page = custodian.get(url).text
    assert "In a word" in page
    assert "data-job=" not in page
    for chart in told[-1]["charts"]:
        picture = custodian.get(f"/api/jobs/{job['id']}/charts/{chart['name']}.svg")
        assert picture.headers["content-type"] == "image/svg+xml"
        assert custodian.get(f"/api/jobs/{job['id']}/charts/{chart['name']}.json").json()["$schema"]
    assert auditor.get(f"/api/jobs/{job['id']}").status_code == 404
    # A page that is loaded again is told at once how things stand.
    again = custodian.get(f"/api/jobs/{job['id']}/events").text
    assert json.loads(again.removeprefix("data: "))["state"] == "done"


def test_no_such_job(custodian):
    for url in ("/api/jobs/0", "/api/jobs/0/events", "/api/jobs/0/result", "/jobs?job=0", "/api/jobs/..%2f..%2fx"):
        assert custodian.get(url).status_code == 404

"""Jobs: long work in a process of its own, with progress, that can be cancelled and outlives the page that started it.

Each has a folder in `.veilmark/jobs/`: `record.json`, `result.json` when done, and its charts. A job that was running when
the server stopped is found as interrupted at the next start.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from veilmark.errors import VeilmarkError
from veilmark.web.access.audit import now
from veilmark.web.access.sessions import Session
from veilmark.web.access.users import Role
from veilmark.web.tasks.work import Chart, run
from veilmark.web.workspace import NotFoundError

log = logging.getLogger("veilmark.web")

State = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]
Work = Callable[..., Any]
"""A function at the top of a module: takes the workspace and what was given, returns a dict or a work.Outcome."""

PATIENCE = 10.0
"""Seconds from asking a job to end until it is ended."""

KEPT = 500
MOST_WAITING = 50
"""So many jobs may wait; who asks for more is told to come later."""


class Step(BaseModel):
    """A part of the work: what it does, and how far it is, where that is known."""

    label: str
    share: float | None = None
    done: bool = False


class Job(BaseModel):
    """A job as its record has it."""

    id: str
    kind: str
    title: str
    study: str | None
    who: str
    roles: list[Role]
    page: str
    state: State = "queued"
    created: str
    started: str | None = None
    ended: str | None = None
    steps: list[Step] = []
    notes: list[str] = []
    charts: list[Chart] = []
    error: str | None = None

    @property
    def over(self) -> bool:
        return self.state not in ("queued", "running")

    @property
    def url(self) -> str:
        return f"{self.page}{'&' if '?' in self.page else '?'}job={self.id}"


class Jobs:
    """All jobs of a workspace. At most `at_once` run; the others wait in their order."""

    def __init__(self, workspace: Path, folder: Path, at_once: int = 2) -> None:
        self.workspace, self.folder, self.at_once = workspace, folder, at_once
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["__main__", "veilmark.web.tasks.work", "veilmark.web.tasks.preload"])
        self._jobs: dict[str, Job] = {}
        self._version: dict[str, int] = {}
        self._waiting: list[tuple[Job, Work, Mapping[str, Any]]] = []
        self._processes: dict[str, ForkServerProcess] = {}
        self._followers: set[threading.Thread] = set()
        self._lock = threading.RLock()
        self.closing = False
        self._load()

    # --- asking ----------------------------------------------------------------------------------------------

    def get(self, job_id: str, role: Role) -> Job:
        """A job that the role may see."""
        job = self._jobs.get(job_id)
        if job is None or role not in job.roles:
            raise NotFoundError(f"There is no job '{job_id[:16]}'.")
        return job

    def all(self, role: Role) -> list[Job]:
        """The jobs that the role may see, newest first."""
        with self._lock:
            return [job for job in reversed(self._jobs.values()) if role in job.roles]

    def latest(self, kind: str, role: Role, study: str | None = None) -> Job | None:
        """The newest job of a kind, of the study where one is named."""
        return next((j for j in self.all(role) if j.kind == kind and (study is None or j.study == study)), None)

    def result(self, job: Job) -> dict[str, Any]:
        """What a job that is done returned."""
        if job.state != "done":
            raise NotFoundError(f"The job is {job.state}, so it has no result.")
        found: dict[str, Any] = json.loads((self._home(job) / "result.json").read_text(encoding="utf-8"))
        return found

    def chart(self, job: Job, name: str, suffix: str) -> Path:
        """The file of one of the job's charts."""
        if all(chart.name != name for chart in job.charts):
            raise NotFoundError("The job has no such chart.")
        return self._home(job) / f"{name}.{suffix}"

    def version(self, job: Job) -> int:
        """A number that grows with every change of the job."""
        return self._version[job.id]

    # --- doing -----------------------------------------------------------------------------------------------

    def start(
        self,
        work: Work,
        title: str,
        given: Mapping[str, Any],
        session: Session,
        study: str | None,
        page: str,
        roles: Sequence[Role],
    ) -> Job:
        """Put a job in the queue. Only the roles may see it and its result."""
        if len(self._waiting) >= MOST_WAITING:
            raise VeilmarkError(
                f"{MOST_WAITING} jobs wait already. Cancel some that are not needed, or try again later."
            )
        job = Job(
            id=secrets.token_hex(8),
            kind=work.__name__,
            title=title,
            study=study,
            who=session.name,
            roles=list(roles),
            page=page,
            created=now(),
        )
        self._home(job).mkdir(parents=True, mode=0o700)
        with self._lock:
            self._jobs[job.id] = job
            self._waiting.append((job, work, given))
            self._changed(job)
            self._next()
        return job

    def cancel(self, job: Job) -> None:
        """Stop a job as Ctrl-C stops a command: what is unfinished is removed."""
        with self._lock:
            if job.state == "queued":
                self._waiting = [entry for entry in self._waiting if entry[0] is not job]
                self._end(job, "cancelled")
            elif job.state == "running":
                job.state = "cancelled"
                self._stop(self._processes[job.id])

    def close(self) -> None:
        """Stop all jobs; they are recorded as interrupted."""
        with self._lock:
            self.closing = True
            for job, _, _ in self._waiting:
                self._end(job, "interrupted")
            self._waiting = []
            for job_id, process in self._processes.items():
                self._jobs[job_id].state = "interrupted"
                self._stop(process)
            followers = list(self._followers)
        for follower in followers:
            follower.join(PATIENCE)

    def warm_up(self) -> None:
        """Start the process that jobs are forked from, so that the first need not wait for it."""
        process = self._context.Process(target=_nothing)
        process.start()
        process.join()

    # --- within ----------------------------------------------------------------------------------------------

    def _next(self) -> None:
        while self._waiting and len(self._processes) < self.at_once and not self.closing:
            job, work, given = self._waiting.pop(0)
            ours, theirs = self._context.Pipe(duplex=False)
            arguments = (theirs, work.__module__, work.__qualname__, self.workspace, self._home(job), dict(given))
            process = self._context.Process(target=run, args=arguments, name=f"veilmark {job.kind}")
            job.state, job.started = "running", now()
            self._processes[job.id] = process
            self._changed(job)
            follower = threading.Thread(target=self._follow, args=(job, process, ours, theirs), daemon=True)
            self._followers.add(follower)
            follower.start()

    def _follow(self, job: Job, process: ForkServerProcess, ours: Connection, theirs: Connection) -> None:
        """Start the process, listen to it until it ends, and say how it ended."""
        process.start()
        theirs.close()
        told: dict[str, Any] = {}
        try:
            while True:
                told = json.loads(ours.recv_bytes()) or told
                self._hear(job, told)
        except (EOFError, OSError):
            pass
        process.join()
        with self._lock:
            del self._processes[job.id]
            self._followers.discard(threading.current_thread())
            stopped = job.state in ("cancelled", "interrupted")
            if "end" in told and not (stopped and told["end"] != "done"):
                job.error, job.charts = told.get("error"), [Chart(**c) for c in told.get("charts", [])]
                self._end(job, told["end"])
            elif stopped:
                self._end(job, job.state)
            else:
                job.error = "The job's process ended without a word, perhaps because memory ran out. Nothing was left."
                self._end(job, "failed")
            self._next()

    def _hear(self, job: Job, told: Mapping[str, Any]) -> None:
        if "log" in told:  # For the server's log alone: it may show data.
            log.error("Job %s failed. %s", job.id, told["log"])
        with self._lock:
            if "note" in told and told["note"] not in job.notes:
                job.notes = [*job.notes, told["note"]]
            if "step" in told:
                others = [step for step in job.steps if step.label != told["step"]]
                job.steps = [*others, Step(label=told["step"], share=told["share"], done=told["done"])]
            self._changed(job, save=False)

    def _end(self, job: Job, state: State) -> None:
        job.state, job.ended = state, now()
        job.steps = [step.model_copy(update={"done": step.done or state == "done"}) for step in job.steps]
        self._changed(job)

    def _changed(self, job: Job, save: bool = True) -> None:
        self._version[job.id] = self._version.get(job.id, 0) + 1
        if save:
            target = self._home(job) / "record.json"
            try:
                target.with_suffix(".new").write_text(job.model_dump_json(indent=1), encoding="utf-8")
                target.with_suffix(".new").replace(target)
            except OSError:
                log.exception("The record of job %s cannot be written.", job.id)

    def _stop(self, process: ForkServerProcess) -> None:
        threading.Thread(target=_end_process, args=(process,), daemon=True).start()

    def _home(self, job: Job) -> Path:
        return self.folder / job.id

    def _load(self) -> None:
        """The records of earlier runs; the oldest are removed where there are very many."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = []
        for record in self.folder.glob("*/record.json"):
            try:
                found.append(Job.model_validate_json(record.read_text(encoding="utf-8")))
            except (OSError, ValueError):
                log.warning("The record of job %s is damaged and left out.", record.parent.name)
        found.sort(key=lambda job: job.created)
        for job in found[:-KEPT]:
            shutil.rmtree(self._home(job), ignore_errors=True)
        for job in found[-KEPT:]:
            self._jobs[job.id] = job
            self._version[job.id] = 0
            if not job.over:
                self._end(job, "interrupted")


def _nothing() -> None:
    pass


def _end_process(process: ForkServerProcess) -> None:
    """Ask as Ctrl-C does, then insist."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        waited = 0.0
        while process.pid is None and waited < PATIENCE:  # It is just about to start.
            time.sleep(0.05)
            waited += 0.05
        try:
            if process.pid is not None and process.exitcode is None:
                os.kill(process.pid, number)
        except ProcessLookupError:
            return
        process.join(PATIENCE)
        if process.exitcode is not None:
            return

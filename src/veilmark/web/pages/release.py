"""Release: who gets a copy, what its marks cost, and the copies themselves with their entry in the ledger."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Response, UploadFile
from pydantic import BaseModel
from starlette.datastructures import UploadFile as Uploaded

from veilmark.defaults import LOSS, SUPPRESSION, K
from veilmark.errors import OptionError, VeilmarkError
from veilmark.study.study import Study
from veilmark.web.forms.release import (
    ReleaseForm,
    columns_of,
    draft_file,
    from_form,
    is_live,
    keep_draft,
    kept_draft,
    likely_population,
    make_copies,
    names_of,
    plan_copies,
    release_job,
    to_form,
)
from veilmark.web.here import Custodian, Here, Nav
from veilmark.web.tasks.jobs import Job
from veilmark.web.workspace import NotFoundError

router = APIRouter()
NAV = Nav("Release", "/studies/{study}/release", 40, ("custodian",))

ANONYMIZED = "anonymize_source"
"""The job whose settings are taken over."""


class ReleaseView(BaseModel):
    """What a release of the study could be made of, what was asked for last, what it would cost, and the last one made.

    `taken_over`: settings are those of the last anonymization, which is newer than what was asked for last.
    """

    study: str
    asked: ReleaseForm
    tables: list[str]
    columns: list[str]
    sensitive: list[str]
    taken_over: bool
    live: bool
    plan: Job | None
    planned: dict[str, Any] | None
    job: Job | None
    released: dict[str, Any] | None
    problem: str | None = None


class Stored(BaseModel):
    """An upload's path in the workspace."""

    table: str


# --- looking ---------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/release")
def page(here: Custodian, name: str) -> Response:
    return _page(here, view(here, name))


def _page(here: Here, found: ReleaseView, status: int = 200, problem: str | None = None) -> Response:
    given = {key: value for key, value in here.form.items() if isinstance(value, str)}
    fields = to_form(found.asked) | given
    fields["identity"] = [str(c) for c in here.form.getlist("identity")] if given else found.asked.identity
    return here.page(
        "release.html",
        status,
        view=found,
        fields=fields,
        names=names_of(fields["recipients"]),
        tables=[(table, table) for table in found.tables],
        problem=problem or found.problem,
    )


@router.get("/api/studies/{name}/release")
def release(here: Custodian, name: str, population: str | None = None) -> ReleaseView:
    """What was asked for last, what it would cost, the last release of the study, and the columns of the population."""
    return view(here, name)


def view(here: Here, name: str) -> ReleaseView:
    study = here.study(name)
    asked, taken = _asked(here, name, study)
    plan, job = _latest(here, plan_copies.__name__, name), _latest(here, make_copies.__name__, name)
    found = ReleaseView(
        study=name,
        asked=asked,
        tables=here.workspace.tables(),
        columns=[],
        sensitive=study.sensitive,
        taken_over=taken,
        live=False,
        plan=plan,
        planned=here.result(plan),
        job=job,
        released=here.result(job),
    )
    try:
        found.columns = columns_of(here.workspace, asked.population) if asked.population else []
        found.live = is_live(here.workspace, study, asked.population)
    except VeilmarkError as error:
        found.problem = here.workspace.plain(error)
    except NotFoundError as error:
        found.problem = here.workspace.plain(error)
    if not asked.identity:
        asked.identity = [c for c in study.direct if c in found.columns]
    return found


def _asked(here: Here, name: str, study: Study) -> tuple[ReleaseForm, bool]:
    """The draft, or what stands there first, with a population just chosen; and whether what was anonymized since is taken
    over."""
    workspace = here.workspace
    kept = kept_draft(workspace, name)
    asked = kept or ReleaseForm()
    job = here.jobs.latest(ANONYMIZED, here.session.role, name)
    newer = job is not None and job.state == "done" and (kept is None or _since(job, draft_file(workspace, name)))
    taken = _taken_over(asked, here.jobs.result(job)) if newer and job else asked
    return _with_population(here, taken, study), taken is not asked


def _with_population(here: Here, asked: ReleaseForm, study: Study) -> ReleaseForm:
    """With the population just chosen, or one that fits. Without one there are no decoys."""
    posted = here.form.get("population")
    chosen = here.request.query_params.get("population", posted if isinstance(posted, str) else None)
    gone = bool(asked.population) and asked.population not in here.workspace.tables()
    if chosen is None and (gone or (not asked.population and asked.decoys != 0)):
        chosen = likely_population(here.workspace, study)
    if chosen is None or chosen == asked.population != "":
        return asked
    decoys = (asked.decoys or None) if chosen else 0
    return asked.model_copy(update={"population": chosen, "identity": [], "decoys": decoys})


def _since(job: Job, draft: os.PathLike[str]) -> bool:
    try:
        written = datetime.fromtimestamp(os.stat(draft).st_mtime, UTC)
    except OSError:
        return True
    return datetime.fromisoformat(job.ended or job.created) >= written


def _taken_over(asked: ReleaseForm, anonymized: dict[str, Any]) -> ReleaseForm:
    """With the settings of the last anonymization, as far as copies can keep to them; with its very levels, too."""
    given = anonymized.get("asked", {})
    method = given.get("method", "ola")
    if method not in ("ola", "mondrian"):
        return asked
    plain_l = given.get("l_kind", "distinct") == "distinct"
    taken = {
        "method": method,
        "k": given.get("k", K) or K,
        "suppress": given.get("suppress", SUPPRESSION) if method == "ola" else 0.0,
        "loss": given.get("loss", LOSS),
        "levels": anonymized.get("levels", {}) if method == "ola" else {},
        "l": given.get("l", {}) if plain_l else {},
        "t": given.get("t", {}),
    }
    try:
        return ReleaseForm.model_validate(asked.model_dump() | taken)
    except ValueError:
        return asked


def _latest(here: Here, kind: str, study: str) -> Job | None:
    """The job that the address asks for, if it is of the kind, else the latest that nobody cancelled."""
    asked = here.request.query_params.get("job")
    fitting = [j for j in here.jobs.all(here.session.role) if j.kind == kind and j.study == study]
    return next((j for j in fitting if j.id == asked), None) or next(
        (j for j in fitting if j.state != "cancelled"), None
    )


# --- the population --------------------------------------------------------------------------------------------


@router.post("/studies/{name}/population")
def upload_by_form(here: Custodian, name: str) -> Response:
    file = here.file("file")
    if file is None:
        raise OptionError("No file was chosen. Choose a CSV or Parquet file, then upload it.")
    chosen = urlencode({"population": _store(here, name, file)})
    return here.go(f"{_address(name)}?{chosen}", "The table is uploaded.")


@router.post("/api/studies/{name}/population", status_code=201)
def upload(here: Custodian, name: str, file: UploadFile) -> Stored:
    """Upload a table of everybody whom an attacker could link to."""
    return Stored(table=_store(here, name, file))


def _store(here: Here, name: str, file: Uploaded) -> str:
    here.study(name)
    here.did("uploaded a population", name)
    return here.workspace.store("data", file.filename or "", file.file)


# --- planning --------------------------------------------------------------------------------------------------


@router.post("/api/studies/{name}/release/plan", status_code=202)
def plan(here: Custodian, name: str, asked: ReleaseForm) -> Job:
    """Work out what the copies would cost, as a job; nothing is written."""
    return _start_plan(here, name, asked)


@router.post("/studies/{name}/release/plan")
def plan_by_form(here: Custodian, name: str) -> Response:
    here.study(name)
    try:
        return here.watch(_start_plan(here, name, from_form(here.form)))
    except VeilmarkError as error:
        return _refused(here, name, error)


@router.post("/studies/{name}/release/try")
def try_by_form(here: Custodian, name: str) -> Response:
    """The cost alone, for the page that is being edited: what is wrong, or which job to wait for."""
    here.study(name)
    here.changed_nothing()
    try:
        job = _start_plan(here, name, from_form(here.form))
    except VeilmarkError as error:
        return here.page("_plan.html", plan=None, planned=None, problem=here.workspace.plain(error))
    return here.page("_plan.html", plan=job, planned=None)


@router.get("/studies/{name}/release/plan")
def plan_alone(here: Custodian, name: str) -> Response:
    """The cost alone, once its job is over."""
    here.study(name)
    found = _latest(here, plan_copies.__name__, name)
    return here.page("_plan.html", plan=found, planned=here.result(found))


def _start_plan(here: Here, name: str, asked: ReleaseForm) -> Job:
    given = _checked(here, name, asked)
    return here.start(plan_copies, f"Plan copies of {name}", given, name, _address(name), ("custodian",))


def _checked(here: Here, name: str, asked: ReleaseForm) -> dict[str, Any]:
    """What a job is given; what is asked for becomes the draft, if it can be done as far as one can see."""
    release_job(here.workspace, here.study(name), asked)
    keep_draft(here.workspace, name, asked)
    return {"study": name, "asked": asked.model_dump()}


def _address(name: str) -> str:
    return f"/studies/{quote(name)}/release"


def _refused(here: Here, name: str, error: VeilmarkError) -> Response:
    return _page(here, view(here, name), 400, here.workspace.plain(error))


# --- making ----------------------------------------------------------------------------------------------------


@router.post("/api/studies/{name}/release", status_code=202)
def make(here: Custodian, name: str, asked: ReleaseForm) -> Job:
    """Write a copy for each recipient and record all of it in the ledger, as a job."""
    given = _checked(here, name, asked)
    return here.start(make_copies, f"Make copies of {name}", given, name, _address(name), ("custodian",))


@router.post("/studies/{name}/release")
def make_by_form(here: Custodian, name: str) -> Response:
    here.study(name)
    try:
        return here.watch(make(here, name, from_form(here.form)))
    except VeilmarkError as error:
        return _refused(here, name, error)

"""Anonymize: models and limits as a form, the release as a job, and the lattice to look around in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from veilmark.errors import OptionError, VeilmarkError
from veilmark.messages import template_of
from veilmark.study.study import Study
from veilmark.web.forms import anonymize as anonymizing
from veilmark.web.forms.anonymize import LOSSES, METHODS, OF_PERSONS, AnonymizeForm
from veilmark.web.here import Analyst, Here, Nav
from veilmark.web.pages.study import ROWS
from veilmark.web.tasks.anonymize import anonymize_source
from veilmark.web.tasks.jobs import Job
from veilmark.web.tasks.lattice import NodeView, preview
from veilmark.web.workspace import NotFoundError, Workspace
from veilmark.workbench.values import are_amounts, first_rows

router = APIRouter()
NAV = Nav("Anonymize", "/studies/{study}/anonymize", 30, ("custodian", "analyst"))

LEVELS = r"^\d{1,3}(,\d{1,3})*$"


class Offer(BaseModel):
    """A method, in a sentence; `why_not` says why it does not suit the study."""

    name: str
    title: str
    words: str
    of_persons: bool
    why_not: str | None = None


class MadeFile(BaseModel):
    """A file of a release, to download."""

    path: str
    name: str
    size: int


class AnonymizeView(BaseModel):
    """What can be asked of the study, what was asked last, the latest anonymization, and what it made."""

    study: str
    quasi: list[str]
    sensitive: list[str]
    person: str | None
    methods: list[Offer]
    asked: AnonymizeForm
    job: Job | None
    result: dict[str, Any] | None
    files: list[MadeFile]
    problem: str | None = None


class Node(BaseModel):
    """Levels, one for each quasi-identifier; the rest is as the job was asked, by default the latest."""

    levels: list[Annotated[int, Field(ge=0, le=999)]] = Field(max_length=1000)
    job: str | None = None


# --- the page --------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/anonymize")
def page(here: Analyst, name: str) -> Response:
    return _page(here, view(here, name))


def _page(here: Here, found: AnonymizeView, status: int = 200, **more: Any) -> Response:
    fields = anonymizing.to_fields(found.asked)
    tables = [(table, table) for table in here.workspace.tables()]
    looked_at = _node_context(here, found, here.request.query_params.get("node"))
    context = {"view": found, "fields": fields, "losses": LOSSES, "titles": METHODS, "tables": tables, **looked_at}
    return here.page("anonymize.html", status, **(context | more))


@router.get("/api/studies/{name}/anonymize")
def anonymization(here: Analyst, name: str) -> AnonymizeView:
    """What can be asked of the study, and the latest anonymization (or the one of `?job=…`) with its result."""
    return view(here, name)


def view(here: Here, name: str) -> AnonymizeView:
    study = here.study(name)
    job = _job(here, name)
    result = here.result(job)
    methods, problem = _offers(study)
    asked = AnonymizeForm(**result["asked"]) if result else anonymizing.last_asked(here.workspace, name)
    return AnonymizeView(
        study=name,
        quasi=study.quasi,
        sensitive=study.sensitive,
        person=study.person,
        methods=methods,
        asked=asked,
        job=job,
        result=result,
        files=_files(here.workspace, result) if result else [],
        problem=None if problem is None else here.workspace.plain(problem),
    )


def _job(here: Here, name: str) -> Job | None:
    """The anonymization that is asked for, else the latest."""
    job = here.job("anonymize_source", name)
    return None if job is None else _checked(job, name)


def _checked(job: Job, name: str) -> Job:
    if (job.kind, job.study) != ("anonymize_source", name):
        raise NotFoundError(f"The job '{job.id}' is not an anonymization of {name}.")
    return job


def _offers(study: Study) -> tuple[list[Offer], str | None]:
    """The methods, and why the study's source cannot be read, where it cannot."""
    why_not = {}
    if study.person is None:
        why_not = dict.fromkeys(OF_PERSONS, "Needs a column that tells persons apart.")
    try:
        problem = None
        numeric = are_amounts(study, first_rows(study, ROWS)[1])
    except VeilmarkError as error:
        problem, numeric = template_of(error), True
    if not numeric:
        why_not["microaggregate"] = "Needs quasi-identifiers that are all numbers."
    offers = [
        Offer(name=name, title=title, words=words, of_persons=name in OF_PERSONS, why_not=why_not.get(name))
        for name, (title, words) in METHODS.items()
    ]
    return offers, problem


def _files(workspace: Workspace, result: Mapping[str, Any]) -> list[MadeFile]:
    """The files of a release that are still there."""
    found = []
    for path in result["files"]:
        try:
            file = workspace.output(path)
        except NotFoundError:
            continue
        found.append(MadeFile(path=path, name=file.name, size=file.stat().st_size))
    return found


# --- anonymizing -----------------------------------------------------------------------------------------------


@router.post("/api/studies/{name}/anonymize", status_code=202)
def start(here: Analyst, name: str, asked: AnonymizeForm) -> Job:
    """Anonymize the study's source, as a job; the release is kept in the workspace, to download."""
    anonymizing.check(here.workspace, here.study(name), asked)
    anonymizing.keep_asked(here.workspace, name, asked)
    return _begin(here, name, anonymizing.title(name, asked), {"asked": asked.given()})


def _begin(here: Here, name: str, title: str, given: Mapping[str, Any]) -> Job:
    return here.start(anonymize_source, title, {"study": name, **given}, name, f"/studies/{quote(name)}/anonymize")


@router.post("/studies/{name}/anonymize")
def start_by_form(here: Analyst, name: str) -> Response:
    given = {key: value.strip() for key, value in here.form.items() if isinstance(value, str)}
    here.study(name)
    try:
        return here.watch(start(here, name, anonymizing.from_fields(given)))
    except VeilmarkError as error:
        found = view(here, name)
        fields = anonymizing.to_fields(AnonymizeForm()) | given
        problem = here.workspace.plain(error)
        return _page(here, found, 400, fields=fields, problem=problem, wrong=True)


# --- looking around in the lattice -----------------------------------------------------------------------------


@router.get("/api/studies/{name}/anonymize/node")
def node(here: Analyst, name: str, levels: str = Query(pattern=LEVELS, examples=["1,0,2"])) -> NodeView:
    """What OLA's release would be at other levels, one for each quasi-identifier; nothing is written."""
    return _node(here, view(here, name), levels)


@router.get("/studies/{name}/anonymize/node")
def node_by_page(here: Analyst, name: str, levels: str = Query(pattern=LEVELS)) -> Response:
    """The preview alone, for the page that shows the lattice."""
    found = view(here, name)
    return here.page("_node.html", view=found, **_node_context(here, found, levels))


def _node_context(here: Here, found: AnonymizeView, levels: str | None) -> dict[str, Any]:
    """The preview for a template, or what is wrong with what was asked."""
    if not levels or not found.result:
        return {"node": None, "node_problem": None}
    try:
        return {"node": _node(here, found, levels), "node_problem": None}
    except (VeilmarkError, NotFoundError) as error:
        return {"node": None, "node_problem": here.workspace.plain(error)}


def _node(here: Here, found: AnonymizeView, levels: str) -> NodeView:
    job, result = _searched(found.job, found.result)
    if result["quasi"] != found.quasi:
        raise OptionError("The study has other quasi-identifiers now than when this was made. Anonymize again.")
    return preview(here.workspace, found.study, job.id, AnonymizeForm(**result["asked"]), _levels(levels))


def _searched(job: Job | None, result: Mapping[str, Any] | None) -> tuple[Job, Mapping[str, Any]]:
    """A job that searched a lattice, and what it found."""
    if job is None or result is None or not result.get("nodes"):
        raise NotFoundError("There is no lattice to look around in. Anonymize by OLA first.")
    return job, result


def _levels(text: str) -> list[int]:
    if not re.fullmatch(LEVELS, text):
        raise OptionError(f"'{text[:40]}' is not a list of levels, such as 1,0,2.")
    return [int(level) for level in text.split(",")]


@router.post("/api/studies/{name}/anonymize/node", status_code=202)
def use_node(here: Analyst, name: str, chosen: Node) -> Job:
    """Make the release at these levels, as a job; all else is as it was asked before."""
    here.study(name)
    job = _job(here, name) if chosen.job is None else _checked(here.jobs.get(chosen.job, here.session.role), name)
    job, result = _searched(job, here.result(job))
    if len(chosen.levels) != len(result["quasi"]):
        raise OptionError(f"{len(result['quasi'])} levels are needed, not {len(chosen.levels)}.")
    title = (
        f"{anonymizing.title(name, AnonymizeForm(**result['asked']))}, at levels {', '.join(map(str, chosen.levels))}"
    )
    return _begin(here, name, title, {"asked": result["asked"], "node": chosen.levels, "lattice": job.id})


@router.post("/studies/{name}/anonymize/node")
def use_node_by_form(here: Analyst, name: str) -> Response:
    return here.watch(use_node(here, name, Node(levels=_levels(here.text("levels")), job=here.text("job") or None)))

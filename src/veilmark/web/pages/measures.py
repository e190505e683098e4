"""Measures of a study's source: k, l, t and the risk of re-identification, as a job."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Response
from pydantic import BaseModel

from veilmark.web.here import Analyst, Here
from veilmark.web.tasks.jobs import Job
from veilmark.web.tasks.work import Outcome
from veilmark.web.workspace import Workspace

router = APIRouter()


class MeasuresView(BaseModel):
    """The latest measuring of the study's source, and what it found once done."""

    study: str
    job: Job | None
    result: dict[str, Any] | None


@router.get("/studies/{name}/measures")
def page(here: Analyst, name: str) -> Response:
    return here.page("measures.html", view=view(here, name))


@router.get("/api/studies/{name}/measures")
def measures(here: Analyst, name: str) -> MeasuresView:
    """The latest measures of the study's source."""
    return view(here, name)


def view(here: Here, name: str) -> MeasuresView:
    here.study(name)
    job = here.job("measure_source", name)
    return MeasuresView(study=name, job=job, result=here.result(job))


@router.post("/studies/{name}/measures")
def start_by_form(here: Analyst, name: str) -> Response:
    return here.watch(start(here, name))


@router.post("/api/studies/{name}/measures", status_code=202)
def start(here: Analyst, name: str) -> Job:
    """Measure the study's source, as a job."""
    here.study(name)
    address = f"/studies/{quote(name)}/measures"
    return here.start(measure_source, f"Measure {name}", {"study": name}, name, address)


def measure_source(workspace: Workspace, study: str) -> Outcome:
    """k, l, t and the risks of the study's source; a job."""
    from veilmark.workbench.measure import measure

    found = measure(workspace.study(study))
    draw = getattr(found, "chart", None)
    return Outcome(found.to_dict(), {"Sizes of the classes, and the risk of being found again": draw()} if draw else {})

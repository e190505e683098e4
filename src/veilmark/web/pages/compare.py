"""Compare methods: each on the same persons, what it loses and what attackers learn, as a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from veilmark.errors import OptionError, StudyError, VeilmarkError
from veilmark.study.study import Study
from veilmark.web.forms.anonymize import checked, read_number
from veilmark.web.here import Analyst, Here
from veilmark.web.tasks.jobs import Job
from veilmark.web.tasks.work import Outcome
from veilmark.web.workspace import Workspace

router = APIRouter()

Compared = Literal["ola", "mondrian", "fslip", "fslip-linked", "fslip-paper", "onemany", "rmr", "anatomy", "slicing"]
WORDS: dict[str, str] = {
    "ola": "OLA",
    "mondrian": "Mondrian",
    "fslip": "f-slip",
    "fslip-linked": "f-slip, linked",
    "fslip-paper": "f-slip as printed",
    "onemany": "1:M-Generalization",
    "rmr": "RMR",
    "anatomy": "Anatomy",
    "slicing": "Slicing",
}
USUAL: list[Compared] = ["ola", "mondrian", "fslip", "fslip-linked", "onemany"]


class CompareAsked(BaseModel):
    """Methods, and what each is asked for, as far as it knows of it; `targets` persons are attacked."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    methods: list[Compared] = Field(default=USUAL, min_length=1, max_length=20)
    k: int = Field(default=5, ge=1, le=10**9)
    l: float | None = Field(default=None, ge=1, le=10**9)  # noqa: E741
    suppress: float = Field(default=0.05, ge=0, le=1)
    targets: int = Field(default=2_000, ge=1, le=100_000)


class CompareView(BaseModel):
    """What was asked last, the latest comparison, and what it found once done."""

    study: str
    person: str | None
    asked: CompareAsked
    job: Job | None
    result: dict[str, Any] | None
    problem: str | None = None


@router.get("/studies/{name}/anonymize/compare")
def page(here: Analyst, name: str) -> Response:
    return _page(here, view(here, name))


def _page(here: Here, found: CompareView, status: int = 200, **more: Any) -> Response:
    asked = found.asked
    fields = {"k": asked.k, "l": "" if asked.l is None else f"{asked.l:g}", "targets": asked.targets}
    fields |= {"suppress": f"{100 * asked.suppress:g}"}
    context = {"view": found, "words": WORDS, "fields": fields, "chosen": asked.methods}
    return here.page("compare.html", status, **(context | more))


@router.get("/api/studies/{name}/anonymize/compare")
def comparison(here: Analyst, name: str) -> CompareView:
    """The latest comparison of methods on the study, or the one of `?job=…`."""
    return view(here, name)


def view(here: Here, name: str) -> CompareView:
    study = here.study(name)
    job = here.job("compare_source", name)
    result = here.result(job)
    asked = CompareAsked(**result["given"]) if result else CompareAsked(methods=usual_methods(study))
    return CompareView(study=name, person=study.person, asked=asked, job=job, result=result, problem=lacking(study))


def usual_methods(study: Study) -> list[Compared]:
    """Those ticked at first: without a person column, none that needs one."""
    return USUAL if study.person is not None else ["ola", "mondrian"]


def lacking(study: Study) -> str | None:
    """Why nothing can be attacked, where it cannot."""
    if study.quasi and study.sensitive:
        return None
    return (
        "The study needs at least one quasi-identifier (what an attacker may know) and one sensitive column (what an "
        "attacker wants to know). Give columns these roles first."
    )


@router.post("/api/studies/{name}/anonymize/compare", status_code=202)
def start(here: Analyst, name: str, asked: CompareAsked) -> Job:
    """Try the methods on the study and attack what each would publish, as a job; no release is kept."""
    problem = lacking(here.study(name))
    if problem:
        raise StudyError(problem)
    title = f"Compare {len(asked.methods)} methods on {name}, k = {asked.k}"
    given = {"study": name, "asked": asked.model_dump()}
    return here.start(compare_source, title, given, name, f"/studies/{quote(name)}/anonymize/compare")


@router.post("/studies/{name}/anonymize/compare")
def start_by_form(here: Analyst, name: str) -> Response:
    here.study(name)
    methods = [method for method in WORDS if here.text(f"method:{method}")]
    try:
        return here.watch(start(here, name, _asked(here, methods)))
    except VeilmarkError as error:
        fields = {field: here.text(field) for field in ("k", "l", "suppress", "targets")}
        problem = here.workspace.plain(error)
        return _page(here, view(here, name), 400, fields=fields, chosen=methods, problem=problem)


def _asked(here: Here, methods: Sequence[str]) -> CompareAsked:
    if not methods:
        raise OptionError("Choose at least one method to compare.")
    given = {field: read_number(here.text(field), field) for field in ("k", "l", "targets") if here.text(field)}
    given |= {"suppress": read_number(here.text("suppress", "5"), "The suppression limit") / 100}
    return checked(CompareAsked, {"methods": methods, **given})


def compare_source(workspace: Workspace, study: str, asked: dict[str, Any]) -> Outcome:
    """Loss, time and risk of several methods; a job."""
    from veilmark.workbench.compare import CompareRequest, compare_methods

    wanted = CompareAsked(**asked)
    terms = CompareRequest(wanted.k, wanted.l, wanted.suppress)
    found = compare_methods(workspace.study(study), list(dict.fromkeys(wanted.methods)), terms, targets=wanted.targets)
    return Outcome({**found.to_dict(), "given": asked}, {"Risk and loss of the methods": found.chart()})

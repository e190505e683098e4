"""Studies: the list of them, and how a new one comes to be: a sample, an upload, or a table in the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Response, UploadFile
from pydantic import BaseModel, Field

from veilmark.errors import OptionError, VeilmarkError
from veilmark.web.here import Analyst, Here, Nav
from veilmark.web.tasks.guesses import keep_guesses
from veilmark.web.tasks.jobs import Job
from veilmark.web.workspace import NotFoundError, Workspace

router = APIRouter()
NAV = Nav("Studies", "/studies", 10, ("custodian", "analyst"))

SAMPLES = {
    "register": "6,500 persons, one row each, and the 130,000 voters they were drawn from. Good for every page.",
    "hospital": "20,500 visits of 5,000 patients: many rows a person, with dates, diagnoses and incomes.",
}


class StudySummary(BaseModel):
    """A study in the list; `problem` says why its file cannot be read, where it cannot."""

    name: str
    source: str | None = None
    person: str | None = None
    direct: list[str] = []
    quasi: list[str] = []
    sensitive: list[str] = []
    problem: str | None = None


class StudyList(BaseModel):
    """The studies, and the tables of the workspace that one could be made of."""

    studies: list[StudySummary]
    tables: list[str]


class Chosen(BaseModel):
    """A table of the workspace, by its path in it, and what the study is to be called."""

    table: str
    name: Annotated[str, Field(max_length=80)] = ""


class Sample(BaseModel):
    sample: Literal["register", "hospital"] = "register"


# --- the list --------------------------------------------------------------------------------------------------


@router.get("/studies")
def page(here: Analyst) -> Response:
    job = here.job("") if "job" in here.request.query_params else None
    if job is not None and job.page != "/studies":
        raise NotFoundError(f"The job '{job.title}' belongs to another page.")
    result = here.result(job)
    if result is not None:
        notice = "Each role below is a guess. Read the reasons, and mend what is wrong."
        return here.go(f"/studies/{quote(result['study'])}", notice)
    return here.page("studies.html", found=list_studies(here.workspace), samples=SAMPLES, job=job)


@router.get("/api/studies")
def studies(here: Analyst) -> StudyList:
    """The studies of the workspace, and the tables in it."""
    return list_studies(here.workspace)


def list_studies(workspace: Workspace) -> StudyList:
    return StudyList(studies=[_summary(workspace, n) for n in workspace.studies()], tables=workspace.tables())


def _summary(workspace: Workspace, name: str) -> StudySummary:
    try:
        study = workspace.study(name)
    except VeilmarkError as error:
        return StudySummary(name=name, problem=workspace.plain(error))
    return StudySummary(
        name=name,
        source=study.label,
        person=study.person,
        direct=study.direct,
        quasi=study.quasi,
        sensitive=study.sensitive,
    )


# --- a new one -------------------------------------------------------------------------------------------------


@router.post("/samples")
def sample_by_form(here: Analyst) -> Response:
    kind = here.text("sample")
    if kind not in SAMPLES:
        raise OptionError(f"There is no sample '{kind[:40]}'. The samples are {', '.join(SAMPLES)}.")
    return here.watch(_start_sample(here, kind))


@router.post("/api/samples", status_code=202)
def sample(here: Analyst, asked: Sample) -> Job:
    """Make up a table and a study of it, as a job."""
    return _start_sample(here, asked.sample)


def _start_sample(here: Here, kind: str) -> Job:
    from veilmark.web.tasks.samples import open_sample

    return here.start(open_sample, f"Make up the {kind} sample", {"kind": kind}, page="/studies")


@router.post("/uploads")
def upload_by_form(here: Analyst) -> Response:
    file = here.file("file")
    if file is None:
        raise OptionError("No file was chosen. Choose a CSV or Parquet file, then upload it.")
    stored = here.workspace.store("data", file.filename or "", file.file)
    return here.watch(_start_study(here, stored, here.text("name"), fresh=True))


@router.post("/api/uploads", status_code=202)
def upload(here: Analyst, file: UploadFile) -> Job:
    """Upload a CSV or Parquet file, and guess what its columns are, as a job."""
    return _start_study(here, here.workspace.store("data", file.filename or "", file.file), "", fresh=True)


@router.post("/studies")
def create_by_form(here: Analyst) -> Response:
    return here.watch(create(here, Chosen(table=here.text("table"), name=here.text("name")[:80])))


@router.post("/api/studies", status_code=202)
def create(here: Analyst, chosen: Chosen) -> Job:
    """Make a study of a table in the workspace: guess what its columns are, as a job."""
    here.workspace.table(chosen.table)
    return _start_study(here, chosen.table, chosen.name, fresh=False)


def _start_study(here: Here, table: str, name: str, fresh: bool) -> Job:
    given = {"table": table, "name": name or Path(table).stem, "fresh": fresh}
    return here.start(create_study, f"Look at {Path(table).name}", given, page="/studies")


def create_study(workspace: Workspace, table: str, name: str, fresh: bool) -> dict[str, Any]:
    """Guess what the columns of a table are, and write its study; a job. A `fresh` upload that is no table is removed."""
    from veilmark.workbench.init import init

    data, file = workspace.table(table), workspace.new_study(name)
    try:
        guesses = init(data, file)
    except VeilmarkError:
        if fresh:
            data.unlink(missing_ok=True)
        raise
    keep_guesses(workspace, file.stem, guesses)
    return {"study": file.stem}

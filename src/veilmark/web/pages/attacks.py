"""Attacks: what somebody could find out from a release, beside guessing, as a job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from veilmark.attack import RULE
from veilmark.errors import OptionError, StudyError, VeilmarkError
from veilmark.web.forms.anonymize import checked, read_number
from veilmark.web.here import Analyst, Here
from veilmark.web.pages.compare import lacking
from veilmark.web.tasks.jobs import Job
from veilmark.web.tasks.work import Outcome
from veilmark.web.workspace import TABLES, NotFoundError, Workspace

router = APIRouter()

Attack = Literal["bk", "msacorr", "qicorr", "mcorr", "nmcorr", "linkage"]
ALL: list[Attack] = ["bk", "msacorr", "qicorr", "mcorr", "nmcorr", "linkage"]


class Story(BaseModel):
    """An attack in words: its name, who attacks, and what to change where it succeeds."""

    title: str
    attacker: str
    remedy: str


STORIES: dict[str, Story] = {
    "bk": Story(
        title="Background knowledge",
        attacker="A colleague knows the quasi-identifiers and some sensitive values, and wants the rest.",
        remedy="Raise k, ask for l-diversity of every sensitive column, or publish the sensitive columns in separate "
        "tables (f-slip, not linked).",
    ),
    "msacorr": Story(
        title="Sensitive columns tell each other",
        attacker="Somebody heard one sensitive value, and wants the other columns.",
        remedy="Publish the columns in separate tables (f-slip), or give rare values a hierarchy so that they can be "
        "generalized. Some of it is how the world is: a useful release says so.",
    ),
    "qicorr": Story(
        title="Quasi-identifiers tell sensitive values",
        attacker="A neighbour knows the quasi-identifiers, and wants the sensitive values.",
        remedy="Ask for more l or less t of the column that is guessed best, generalize the quasi-identifiers that go "
        "with it, or do not link the tables.",
    ),
    "mcorr": Story(
        title="Is the person in it?",
        attacker="Somebody knows quasi-identifiers and some values, and asks whether the person is in the release.",
        remedy="Make classes and slices larger, so that others fit too. Where being in it is the secret, release a "
        "sample, and say so.",
    ),
    "nmcorr": Story(
        title="Can a person be ruled out?",
        attacker="The same of somebody who is not in the release.",
        remedy="Make classes and slices larger and more diverse; rather generalize rare values than suppress them.",
    ),
    "linkage": Story(
        title="Who is this row?",
        attacker="A journalist has a table of everybody, and looks up whom a row fits.",
        remedy="Raise k; where a population is known, ask for k-map.",
    ),
}


class AttackAsked(BaseModel):
    """A release: a file or a folder of `anonymized/`, or another table of the workspace; and how it is attacked."""

    model_config = ConfigDict(extra="forbid")

    release: str = Field(min_length=1, max_length=500)
    attacks: list[Attack] = Field(default=ALL, min_length=1, max_length=20)
    known: int = Field(default=1, ge=1, le=100)
    targets: int = Field(default=10_000, ge=1, le=1_000_000)
    population: str | None = Field(default=None, max_length=500, description="A table of everybody, for linkage.")


class AttackView(BaseModel):
    """The releases that can be attacked, and the latest attack with what it found once done."""

    study: str
    person: str | None
    releases: list[str]
    tables: list[str]
    stories: dict[str, Story]
    job: Job | None
    result: dict[str, Any] | None
    problem: str | None = None


# --- the page --------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/anonymize/attacks")
def page(here: Analyst, name: str) -> Response:
    return _page(here, view(here, name))


def _page(here: Here, found: AttackView, status: int = 200, **more: Any) -> Response:
    given = AttackAsked(**found.result["given"]) if found.result else AttackAsked(release="-")
    wanted = here.request.query_params.get("release") or given.release
    fields = {"release": wanted, "known": given.known, "targets": given.targets, "population": given.population or ""}
    pairs = [(table, table) for table in found.tables]
    context = {"view": found, "fields": fields, "chosen": given.attacks, "pairs": pairs}
    return here.page("attacks.html", status, **(context | more))


@router.get("/api/studies/{name}/anonymize/attacks")
def attacks(here: Analyst, name: str) -> AttackView:
    """What can be attacked, and the latest attack on a release of the study, or the one of `?job=…`."""
    return view(here, name)


def view(here: Here, name: str) -> AttackView:
    study = here.study(name)
    job = here.job("attack_release", name)
    return AttackView(
        study=name,
        person=study.person,
        releases=releases(here.workspace, name),
        tables=here.workspace.tables(),
        stories=STORIES,
        job=job,
        result=here.result(job),
        problem=lacking(study),
    )


def releases(workspace: Workspace, study: str) -> list[str]:
    """The files and folders of `anonymized/`, those named after the study first, the newest first."""
    folder = workspace.folder / "anonymized"
    found = [path for path in folder.iterdir() if _is_release(path)] if folder.is_dir() else []
    found.sort(key=lambda path: (not path.name.startswith(f"{study}-"), -path.stat().st_mtime))
    return [workspace.relative(path) for path in found]


def _is_release(path: Path) -> bool:
    if path.is_dir():
        return any((path / f"qi{suffix}").is_file() for suffix in (".csv", ".parquet"))
    return path.suffix in TABLES and path.is_file() and path.stat().st_size > 0 and not path.name.startswith(".")


def release_path(workspace: Workspace, name: str) -> Path:
    """A release that a request names: a table of the workspace, or a folder of tables in `anonymized/`."""
    for table in ("qi.csv", "qi.parquet"):
        try:
            if Path(name).parts[:1] == ("anonymized",):
                return workspace.output(f"{name}/{table}").parent
        except NotFoundError:
            continue
    return workspace.table(name)


# --- attacking -------------------------------------------------------------------------------------------------


@router.post("/api/studies/{name}/anonymize/attacks", status_code=202)
def start(here: Analyst, name: str, asked: AttackAsked) -> Job:
    """Attack a release of the study's source, as a job."""
    problem = lacking(here.study(name))
    if problem:
        raise StudyError(problem)
    release_path(here.workspace, asked.release)
    if asked.population is not None:
        here.workspace.table(asked.population)
    given = {"study": name, "asked": asked.model_dump()}
    title = f"Attack {asked.release}"
    return here.start(attack_release, title, given, name, f"/studies/{quote(name)}/anonymize/attacks")


@router.post("/studies/{name}/anonymize/attacks")
def start_by_form(here: Analyst, name: str) -> Response:
    here.study(name)
    chosen = [attack for attack in STORIES if here.text(f"attack:{attack}")]
    try:
        return here.watch(start(here, name, _asked(here, chosen)))
    except (VeilmarkError, NotFoundError) as error:
        fields = {field: here.text(field) for field in ("release", "known", "targets", "population")}
        problem = here.workspace.plain(error)
        return _page(here, view(here, name), 400, fields=fields, chosen=chosen, problem=problem)


def _asked(here: Here, chosen: Sequence[str]) -> AttackAsked:
    if not here.text("release"):
        raise OptionError("Choose the release to attack.")
    if not chosen:
        raise OptionError("Choose at least one attack.")
    numbers = {field: read_number(here.text(field), field) for field in ("known", "targets") if here.text(field)}
    texts = {field: here.text(field) for field in ("release", "population") if here.text(field)}
    return checked(AttackAsked, {"attacks": chosen, **texts, **numbers})


def attack_release(workspace: Workspace, study: str, asked: dict[str, Any]) -> Outcome:
    """What attackers find out from a release; a job."""
    from veilmark.workbench.attack import attack as run_attack

    wanted = AttackAsked(**asked)
    population = None if wanted.population is None else workspace.table(wanted.population)
    found = run_attack(
        workspace.study(study),
        release_path(workspace, wanted.release),
        list(dict.fromkeys(wanted.attacks)),
        wanted.targets,
        wanted.known,
        population,
    )
    notes = [workspace.plain(note) for note in found.notes]
    result = {**found.to_dict(), "release": wanted.release, "notes": notes, "rule": RULE, "given": asked}
    return Outcome(result, {"Attacks on the release, beside guessing": found.chart()})

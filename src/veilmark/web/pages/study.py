"""A study: its first rows, and the role of each column with the reasons for the guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from fastapi import APIRouter, Response
from pydantic import BaseModel

from veilmark.errors import OptionError, VeilmarkError
from veilmark.study.spec import Unnamed
from veilmark.study.study import Study
from veilmark.web.forms.study import PERSON, Attributes, FieldsError, attributes_of, save_study, with_roles
from veilmark.web.here import Analyst, Custodian, Here
from veilmark.web.tasks.guesses import GuessView, keep_guesses, kept_guesses
from veilmark.web.tasks.jobs import Job
from veilmark.web.workspace import Workspace
from veilmark.workbench.init import guess_again as guess_columns_again
from veilmark.workbench.values import first_rows, texts_of

router = APIRouter()

ROWS = 10
EXAMPLES = 3
LONGEST = 60
MASKED = "•••••"


class ColumnView(BaseModel):
    """A column; its role is `person` where it tells persons apart, and None where the study does not name it."""

    name: str
    kind: str
    role: str | None
    attribute: dict[str, Any]
    examples: list[str]
    guess: GuessView | None
    warnings: list[str]


class StudyView(BaseModel):
    """A study and the first rows of its source, direct identifiers masked; `problem` says why it cannot be read."""

    name: str
    source: str
    person: str | None
    columns: list[ColumnView]
    rows: list[list[str | None]]
    masked: bool
    unnamed: Unnamed = "leave-out"
    problem: str | None = None


class StudyEdit(BaseModel):
    """The person column and all attributes, as in a study file."""

    person: str | None = None
    attributes: dict[str, dict[str, Any]]


# --- looking ---------------------------------------------------------------------------------------------------


@router.get("/studies/{name}")
def page(here: Analyst, name: str) -> Response:
    """The study; `?show=direct` shows direct identifiers to the custodian, and the audit log tells."""
    unmask = here.request.query_params.get("show") == "direct" and here.session.role == "custodian"
    if unmask:
        here.audit.write(here.session.name, here.session.role, "-", "looked at direct identifiers", study=name)
    return _page(here, name, view_study(here, name, unmask))


def _page(here: Here, name: str, view: StudyView, status: int = 200, **more: Any) -> Response:
    job = here.job("guess_again", name)
    context = {"view": view, "job": None if job and job.state == "done" else job, "fields": {}} | more
    return here.page("study.html", status, **context)


@router.get("/api/studies/{name}")
def study(here: Analyst, name: str) -> StudyView:
    """A study, its columns with the guesses, and the first rows of its source, direct identifiers masked."""
    return view_study(here, name)


def view_study(here: Here, name: str, unmask: bool = False, chosen: Mapping[str, str] | None = None) -> StudyView:
    found = here.study(name)
    guesses = kept_guesses(here.workspace, name)
    try:
        kinds, rows = first_rows(found, ROWS)
        problem = None
    except VeilmarkError as error:
        kinds, rows, problem = (
            dict.fromkeys(named_columns(found), "unknown"),
            pa.table({}),
            here.workspace.plain(error),
        )
    texts = {c: _texts(rows[c]) if c in rows.column_names else [] for c in kinds}
    roles = {c: role_of(found, c) for c in kinds}
    hidden = set() if unmask else {c for c in kinds if _identifies(roles[c], guesses.get(c))}
    attributes = attributes_of(found)
    columns = [
        ColumnView(
            name=c,
            kind=kind,
            role=(chosen or {}).get(c, roles[c]),
            attribute=attributes.get(c, {}),
            examples=[MASKED] if c in hidden and texts[c] else _examples(texts[c]),
            guess=guesses.get(c),
            warnings=_warnings(roles[c], guesses.get(c)),
        )
        for c, kind in kinds.items()
    ]
    shown = [[MASKED if c in hidden and text is not None else text for text in texts[c]] for c in kinds]
    listed = [list(row) for row in zip(*shown, strict=True)]
    return StudyView(
        name=name,
        source=found.label,
        person=found.person,
        columns=columns,
        rows=listed,
        masked=not unmask,
        unnamed=found.spec.unnamed,
        problem=problem,
    )


def named_columns(study: Study) -> list[str]:
    return list(dict.fromkeys([*([study.person] if study.person else []), *study.spec.attributes]))


def role_of(study: Study, column: str) -> str | None:
    attribute = study.spec.attributes.get(column)
    return PERSON if column == study.person else attribute.role if attribute else None


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    return [text if text is None or len(text) <= LONGEST else f"{text[:LONGEST]}…" for text in texts_of(column)]


def _examples(texts: Sequence[str | None]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text is not None))[:EXAMPLES]


def _identifies(role: str | None, guess: GuessView | None) -> bool:
    return role in (PERSON, "direct") or (guess is not None and guess.role in (PERSON, "direct"))


def _warnings(role: str | None, guess: GuessView | None) -> list[str]:
    """What the custodian should look at before going on."""
    if guess is None:
        return []
    published = role not in ("direct", PERSON)
    alarm = ["looks like a direct identifier, and would be published"] if guess.role == "direct" and published else []
    person = ["looks like an id that tells persons apart"] if guess.role == PERSON and published else []
    return [*alarm, *person, *guess.warnings]


# --- saving ----------------------------------------------------------------------------------------------------


@router.put("/api/studies/{name}")
def save(here: Analyst, name: str, edit: StudyEdit) -> StudyView:
    """Replace the person column and the attributes. What is wrong is told for each column, under `fields`."""
    here.did("saved the study", name)
    save_study(here.workspace, name, here.study(name), edit.person, edit.attributes)
    return view_study(here, name)


@router.post("/studies/{name}")
def save_roles(here: Analyst, name: str) -> Response:
    """The form of roles: one field `role:COLUMN` a column."""
    here.did("saved the roles", name)
    found = here.study(name)
    chosen = {f.removeprefix("role:"): str(v) for f, v in here.form.items() if f.startswith("role:") and v}
    try:
        _save_roles(here.workspace, name, found, chosen)
    except VeilmarkError as error:
        fields = error.fields if isinstance(error, FieldsError) else {}
        problem = "Nothing was saved. Mend the columns that are marked." if fields else here.workspace.plain(error)
        return _page(here, name, view_study(here, name, chosen=chosen), 400, problem=problem, fields=fields)
    return here.go(f"/studies/{quote(name)}", "The roles are saved.")


def _save_roles(workspace: Workspace, name: str, study: Study, chosen: Mapping[str, str]) -> None:
    person, attributes = with_roles(attributes_of(study), study.person, chosen, kept_guesses(workspace, name))
    save_study(workspace, name, study, person, attributes)


def save_attribute(workspace: Workspace, name: str, study: Study, column: str, attribute: dict[str, Any]) -> None:
    """Replace one attribute of a study."""
    attributes: Attributes = attributes_of(study) | {column: attribute}
    save_study(workspace, name, study, study.person, attributes)


# --- guessing again, removing ----------------------------------------------------------------------------------


@router.post("/studies/{name}/guess")
def guess_by_form(here: Analyst, name: str) -> Response:
    return here.watch(guess(here, name))


@router.post("/api/studies/{name}/guess", status_code=202)
def guess(here: Analyst, name: str) -> Job:
    """Guess again what the columns are, as a job; the study itself stays as it is."""
    here.study(name)
    title = f"Look at the columns of {name}"
    return here.start(guess_again, title, {"study": name}, name, f"/studies/{quote(name)}")


def guess_again(workspace: Workspace, study: str) -> dict[str, Any]:
    """The reasons for each column's role, looked up again; a job."""
    guesses = guess_columns_again(workspace.study(study))
    keep_guesses(workspace, study, guesses)
    return {"study": study, "columns": len(guesses)}


@router.post("/studies/{name}/remove")
def remove_by_form(here: Custodian, name: str) -> Response:
    if here.text("confirm") != name:
        raise OptionError(f"To remove the study, type its name: {name}. Nothing was removed.")
    remove(here, name)
    return here.go("/studies", f"The study {name} is removed. Its data are still in the workspace.")


@router.delete("/api/studies/{name}")
def remove(here: Custodian, name: str) -> dict[str, str]:
    """Remove a study's file. The table that it describes stays."""
    here.did("removed the study", name)
    here.workspace.study_file(name).unlink()
    for kept in ("guesses", "asked"):
        (here.workspace.private / kept / f"{name}.json").unlink(missing_ok=True)
    here.session.study = None
    return {"removed": name}

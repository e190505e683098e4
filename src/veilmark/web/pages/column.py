"""A column of a study: its hierarchy with a live preview, codes for missing values, and how bad each value is."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from veilmark.errors import DataError, OptionError, VeilmarkError, WeightsError
from veilmark.hierarchy.spec import UNITS
from veilmark.score.weights import KINDS as FROM_FILES
from veilmark.study.study import Study
from veilmark.web.forms.hierarchy import KINDS, Preview, from_form, preview, to_form
from veilmark.web.forms.study import FITTING, PERSON, attributes_of, check_hierarchy, check_paths
from veilmark.web.here import Analyst, Here
from veilmark.web.pages.study import named_columns, role_of, save_attribute
from veilmark.web.tasks.guesses import GuessView, kept_guesses
from veilmark.web.workspace import NotFoundError
from veilmark.workbench.values import frequent_values

router = APIRouter()

MOST_VALUES = 60
"""So many values get a field for their weight; a default stands for the others."""


class Value(BaseModel):
    """A value of a sensitive column, how many records have it, and its weight where one is given."""

    value: str
    records: int
    weight: float | None = None


class ColumnDetail(BaseModel):
    """A column as the study has it, what its hierarchy makes of its values, and the values of a sensitive one."""

    study: str
    column: str
    role: str | None
    attribute: dict[str, Any]
    guess: GuessView | None = None
    preview: Preview | None = None
    values: list[Value] = []
    distinct: int | None = None
    problem: str | None = None


class ColumnForm(BaseModel):
    """A hierarchy to try, as in a study file; None is the value and then `*`."""

    hierarchy: dict[str, Any] | None = None
    missing: list[str] = []


# --- looking ---------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/column")
def page(here: Analyst, name: str, column: str) -> Response:
    found = detail(here, name, column)
    return _page(here, found, fields=_fields(found.attribute))


def _page(here: Here, found: ColumnDetail, status: int = 200, **more: Any) -> Response:
    context = {"kinds": KINDS, "units": UNITS, "files": [(f, f) for f in here.workspace.hierarchies()]}
    weights = found.attribute.get("weights") or {}
    made = next((kind for kind in FROM_FILES if kind in weights), None)
    return here.page("column.html", status, found=found, made=made, **(context | more))


@router.get("/api/studies/{name}/column")
def column(here: Analyst, name: str, column: str = Query()) -> ColumnDetail:
    """A column of a study: its attribute, its hierarchy's levels, and the commonest values where it is sensitive."""
    return detail(here, name, column)


def detail(here: Here, name: str, column: str) -> ColumnDetail:
    study = here.study(name)
    role = role_of(study, column)
    if column not in named_columns(study):
        raise NotFoundError(f"The study {name} names no column '{column[:80]}'. Give it a role first.")
    attribute = attributes_of(study).get(column, {})
    guess = kept_guesses(here.workspace, name).get(column)
    found = ColumnDetail(study=name, column=column, role=role, attribute=attribute, guess=guess)
    try:
        if role in ("quasi", "sensitive"):
            found.preview = preview(study, column, attribute.get("hierarchy"), attribute.get("missing") or ())
        if role == "sensitive":
            found.values, found.distinct = _values(study, column, attribute.get("weights") or {})
    except VeilmarkError as error:
        found.problem = here.workspace.plain(error)
    return found


def _values(study: Study, column: str, weights: Mapping[str, Any]) -> tuple[list[Value], int]:
    listed, distinct = frequent_values(study, column, MOST_VALUES)
    given = {} if any(kind in weights for kind in FROM_FILES) else weights
    return [Value(value=v, records=n, weight=_float(given.get(v))) for v, n in listed], distinct


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _fields(attribute: Mapping[str, Any]) -> dict[str, Any]:
    """What the form shows."""
    weights = attribute.get("weights") or {}
    return to_form(attribute.get("hierarchy")) | {
        "missing": _joined(attribute.get("missing")),
        "distance": attribute.get("distance", "equal"),
        "order": _joined(attribute.get("order")),
        "default": weights.get("default", ""),
    }


# --- trying ----------------------------------------------------------------------------------------------------


@router.post("/api/studies/{name}/preview")
def try_hierarchy(here: Analyst, name: str, asked: ColumnForm, column: str = Query()) -> Preview:
    """What a hierarchy would make of a column's values; nothing is saved."""
    here.changed_nothing()
    return _tried(here, _study_to_try(here, name, column), column, asked.hierarchy, asked.missing)


def _study_to_try(here: Here, name: str, column: str) -> Study:
    """The study, where the column may have a hierarchy; values of direct identifiers are not shown by this way."""
    study = here.study(name)
    if column not in named_columns(study) or role_of(study, column) in (PERSON, "direct"):
        raise NotFoundError(f"The study {name} has no column '{column[:80]}' that could have a hierarchy.")
    return study


def _tried(here: Here, study: Study, column: str, spec: dict[str, Any] | None, missing: list[str]) -> Preview:
    before = attributes_of(study).get(column, {})
    problem = check_hierarchy(spec) or check_paths(here.workspace, {"hierarchy": spec}, before)
    if problem:
        raise DataError(problem)
    return preview(study, column, spec, missing)


@router.post("/studies/{name}/preview")
def try_by_form(here: Analyst, name: str, column: str) -> Response:
    """The preview alone, for the page that is being edited."""
    here.changed_nothing()
    study = _study_to_try(here, name, column)
    try:
        tried = _tried(here, study, column, from_form(here.form), _split(here.text("missing")))
        return here.page("_preview.html", preview=tried)
    except VeilmarkError as error:
        return here.page("_preview.html", preview=None, problem=here.workspace.plain(error))


# --- saving ----------------------------------------------------------------------------------------------------


@router.post("/studies/{name}/column")
def save(here: Analyst, name: str, column: str) -> Response:
    here.did(f"saved column {column}", name)
    found = detail(here, name, column)
    study = here.study(name)
    try:
        attribute = _attribute(here, found)
        if found.role in ("quasi", "sensitive"):
            _tried(here, study, column, attribute.get("hierarchy"), attribute.get("missing", []))
        save_attribute(here.workspace, name, study, column, attribute)
    except VeilmarkError as error:
        given = {key: value for key, value in here.form.items() if isinstance(value, str)}
        shown = _fields(found.attribute) | dict.fromkeys((f"unit:{u}" for u in UNITS), "") | {"others": ""} | given
        return _page(here, found, 400, fields=shown, problem=here.workspace.plain(error))
    address = urlencode({"column": column})
    return here.go(f"/studies/{quote(name)}/column?{address}", "The column is saved.")


def _attribute(here: Here, found: ColumnDetail) -> dict[str, Any]:
    """The attribute that the form describes; what the form does not show stays."""
    role = found.role or "other"
    if role not in FITTING:
        raise OptionError(f"'{found.column}' tells persons apart, so there is nothing to set. Change its role first.")
    content = {k: v for k, v in found.attribute.items() if k in ("role", "keep", "fill")} | {"role": role}
    missing = _split(here.text("missing"))
    if role in ("quasi", "sensitive"):
        content["hierarchy"] = _hierarchy(here, found)
    if role == "sensitive":
        content |= {"distance": here.text("distance") or "equal", "order": _split(here.text("order"))}
        content["weights"] = _weights(here, found)
    content["missing"] = missing
    return {key: value for key, value in content.items() if value not in (None, [], {}, "")}


def _hierarchy(here: Here, found: ColumnDetail) -> dict[str, Any] | None:
    """The hierarchy, an uploaded file stored first."""
    form: dict[str, Any] = dict(here.form)
    file = here.file("file")
    if form.get("kind") == "file" and file is not None:
        form["path"] = here.workspace.store("hierarchies", file.filename or "", file.file)
    return from_form(form)


def _weights(here: Here, found: ColumnDetail) -> dict[str, Any] | None:
    """The weights by value: those with a field as the form says, the others as they were."""
    before = found.attribute.get("weights") or {}
    if any(kind in before for kind in FROM_FILES) and not here.form.get("by_value"):
        return dict(before)
    plain = {} if any(kind in before for kind in FROM_FILES) else before
    shown = {v.value for v in found.values}
    kept = {k: v for k, v in plain.items() if k not in shown and k != "default"}
    filled = {k.removeprefix("weight:"): str(v) for k, v in here.form.items() if k.startswith("weight:")}
    given = {k: _weight(v, k or "the missing value") for k, v in filled.items() if v.strip()}
    default = here.text("default")
    return kept | given | ({"default": _weight(default, "all other values")} if default else {})


def _weight(text: str, value: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight < float("inf"):
        raise WeightsError(f"The weight of {value} must be a number from 0 up, such as 0.2, not '{text[:40]}'.")
    return weight


def _split(text: str) -> list[str]:
    """Values separated by commas; one that holds a comma stands in quotes."""
    row = next(csv.reader(io.StringIO(text.replace("\n", ",").replace("\r", "")), skipinitialspace=True), [])
    return [value.strip() for value in row if value.strip()]


def _joined(values: list[str] | None) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(values or [])
    return out.getvalue().replace(",", ", ") if values and not any("," in v for v in values) else out.getvalue()

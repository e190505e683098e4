"""Editing a study: what a page or the API sends, checked column by column, and saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from veilmark.errors import InputError, StudyError
from veilmark.messages import Message
from veilmark.study.spec import Attribute, StudySpec
from veilmark.study.study import Study
from veilmark.web.tasks.guesses import GuessView
from veilmark.web.workspace import NotFoundError, Workspace
from veilmark.yamlfile import explain

Attributes = dict[str, dict[str, Any]]
PERSON = "person"
HIGHEST = 200
"""The most levels of a hierarchy."""

FITTING = {
    "direct": ("missing", "keep"),
    "quasi": ("hierarchy", "missing", "fill"),
    "sensitive": ("hierarchy", "missing", "fill", "distance", "order", "weights"),
    "other": ("missing",),
}
"""What an attribute keeps, beside its role, when it is given that role."""


class FieldsError(InputError):
    """Some columns are not right; `fields` says what is wrong with each."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        super().__init__(" ".join(f"{column}: {message}" for column, message in self.fields.items()))


def attributes_of(study: Study) -> Attributes:
    """The study's attributes as its file has them."""
    return {n: a.model_dump(mode="json", exclude_defaults=True) for n, a in study.spec.attributes.items()}


def save_study(workspace: Workspace, name: str, study: Study, person: str | None, attributes: Attributes) -> None:
    """Check the attributes, each by itself and then together, and write the study's file."""
    before = attributes_of(study)
    problems = {c: p for c, a in attributes.items() if (p := _problem(workspace, a, before.get(c, {})))}
    if problems:
        raise FieldsError(problems)
    content = study.spec.model_dump(mode="json", exclude_defaults=True)
    content |= {"version": 1, "person": person, "attributes": attributes}
    try:
        spec = StudySpec.model_validate(content)
    except ValidationError as problem:
        raise StudyError(explain(problem, StudySpec)) from None
    Study(spec, study.folder, name=study.name).save(workspace.study_file(name))


def _problem(workspace: Workspace, given: Mapping[str, Any], before: Mapping[str, Any]) -> str | None:
    try:
        Attribute.model_validate(given)
    except ValidationError as problem:
        return explain(problem, Attribute)
    return check_hierarchy(given.get("hierarchy")) or check_paths(workspace, given, before)


def check_hierarchy(spec: Mapping[str, Any] | None) -> str | None:
    """A hierarchy of very many levels would keep the server busy for hours; what is wrong, in words."""
    hidden, maps = (spec or {}).get("mask"), (spec or {}).get("levels")
    levels = int(str(hidden)) if str(hidden).isdecimal() else len(maps) if isinstance(maps, list) else 0
    return (
        f"The hierarchy has {levels:,} levels; the most that is taken here is {HIGHEST}." if levels > HIGHEST else None
    )


def check_paths(workspace: Workspace, given: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str | None:
    """Files that an attribute newly names must be in the workspace; what is wrong, in words."""
    try:
        for path in _paths(given) - _paths(before or {}):
            workspace.table(path)
    except NotFoundError as error:
        return Message(error)
    return None


def _paths(attribute: Mapping[str, Any]) -> set[str]:
    hierarchy, weights = attribute.get("hierarchy") or {}, attribute.get("weights") or {}
    by_file = "ahp" in weights or "model" in weights
    named = [hierarchy.get("file"), *(weights.get(k) for k in ("ahp", "model", "attributes") if by_file)]
    listed = [p for entry in named for p in (entry if isinstance(entry, list) else [entry])]
    return {str(path) for path in listed if path is not None}


def with_roles(
    before: Attributes, person: str | None, chosen: Mapping[str, str], guesses: Mapping[str, GuessView]
) -> tuple[str | None, Attributes]:
    """The person column and the attributes once each column has the role that was chosen for it."""
    persons = [column for column, role in chosen.items() if role == PERSON]
    if len(persons) > 1:
        raise FieldsError(dict.fromkeys(persons, "Only one column can tell persons apart. Choose one of these."))
    kept = {c: a for c, a in before.items() if c not in chosen}
    new = {c: _with_role(before.get(c, {}), role, guesses.get(c)) for c, role in chosen.items() if role != PERSON}
    if persons and before.get(persons[0], {}).get("role") == "direct":
        new[persons[0]] = before[persons[0]]  # It may be kept as a pseudonym.
    order = [*before, *(c for c in chosen if c not in before)]
    both = kept | new
    left = None if person in chosen else person
    return (persons[0] if persons else left), {c: both[c] for c in order if c in both}


def _with_role(before: Mapping[str, Any], role: str, guess: GuessView | None) -> dict[str, Any]:
    if before.get("role") == role:
        return dict(before)
    content = {"role": role} | {key: before[key] for key in FITTING.get(role, ()) if key in before}
    if role == "quasi" and "hierarchy" not in content and guess and guess.hierarchy:
        content["hierarchy"] = guess.hierarchy
    return content

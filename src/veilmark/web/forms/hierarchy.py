"""Hierarchies in the browser: from a form's fields to what a study file holds and back, and what each level looks like."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ValidationError

from veilmark.errors import HierarchyError
from veilmark.hierarchy import Levels, resolve
from veilmark.hierarchy.spec import UNITS, parse_spec
from veilmark.study.study import Study
from veilmark.workbench.values import values_of

KINDS = {
    "none": "Value, then *",
    "intervals": "Intervals of numbers",
    "mask": "Hide characters one by one",
    "dates": "Dates in coarser units",
    "levels": "Groups that you name",
    "file": "A hierarchy file (ARX’s form)",
    "builtin": "ICD-9 diagnosis codes",
}
EXAMPLES, ROWS = 8, 12
MOST_LINES = 2_000


class Group(BaseModel):
    """A label of a level: how many values and records fall under it."""

    label: str | None
    values: int
    records: int


class LevelView(BaseModel):
    """A level: how many labels it has, the fewest records under one, and the labels with most records."""

    level: int
    labels: int
    smallest: int
    groups: list[Group]


class Preview(BaseModel):
    """What a hierarchy makes of a column: its levels, and some values on their way up."""

    levels: list[LevelView]
    rows: list[list[str | None]]


# --- the form --------------------------------------------------------------------------------------------------


def from_form(form: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the study file would hold, of the fields `kind` and those of that kind; None without a hierarchy."""
    kind = str(form.get("kind", "none"))
    if kind not in KINDS:
        raise HierarchyError(f"'{kind[:40]}' is not a kind of hierarchy. Choose one of the list.")
    if kind == "none":
        return None
    others = {"others": "*"} if form.get("others") and kind != "mask" else {}
    return _FORMS[kind](form) | others


def _intervals(form: Mapping[str, Any]) -> dict[str, Any]:
    offset = str(form.get("offset", "")).strip()
    return {"intervals": _words(form.get("widths"))} | ({"offset": offset} if offset not in ("", "0") else {})


def _mask(form: Mapping[str, Any]) -> dict[str, Any]:
    side = {"side": "left"} if form.get("side") == "left" else {}
    return {"mask": str(form.get("characters", "")).strip()} | side


def _dates(form: Mapping[str, Any]) -> dict[str, Any]:
    formats = [part.strip() for part in str(form.get("format", "")).split(";") if part.strip()]
    written = {"format": formats[0] if len(formats) == 1 else formats} if formats else {}
    return {"dates": [unit for unit in UNITS if form.get(f"unit:{unit}")]} | written


def _levels(form: Mapping[str, Any]) -> dict[str, Any]:
    """Lines such as `Bachelors; Higher; Any`: a value, then its label at each level."""
    text = str(form.get("groups", ""))
    lines = [[cell.strip() for cell in line] for line in csv.reader(io.StringIO(text), delimiter=";") if any(line)]
    if not lines:
        raise HierarchyError("No groups are given. Write a line for each value: value; its group; a wider group.")
    if len(lines) > MOST_LINES:
        raise HierarchyError(f"These are {len(lines):,} lines. Upload them as a hierarchy file instead.")
    height = len(lines[0])
    odd = next((line for line in lines if len(line) != height or height < 2 or not all(line[1:])), None)
    if odd is not None:
        raise HierarchyError(
            f"The line of '{odd[0]}' has {len([c for c in odd[1:] if c])} groups, where the first line has {height - 1}. "
            "Give each value as many, separated by semicolons, and at least one."
        )
    return {"levels": [_map(lines, i) for i in range(height - 1)]}


def _map(lines: Sequence[Sequence[str]], level: int) -> dict[str, str]:
    made: dict[str, str] = {}
    for line in lines:
        if made.setdefault(line[level], line[level + 1]) != line[level + 1]:
            both = f"'{made[line[level]]}' and '{line[level + 1]}'"
            raise HierarchyError(f"'{line[level]}' stands under both {both}. Give it one of them.")
    return made


def _file(form: Mapping[str, Any]) -> dict[str, Any]:
    chosen = str(form.get("path", "")).strip()
    if not chosen:
        raise HierarchyError("No hierarchy file is chosen. Upload one, or choose one that was uploaded before.")
    return {"file": chosen}


def _builtin(form: Mapping[str, Any]) -> dict[str, Any]:
    return {"builtin": "icd9"}


def _words(text: Any) -> list[str]:
    return str(text or "").replace(",", " ").replace(";", " ").split()


_FORMS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "intervals": _intervals,
    "mask": _mask,
    "dates": _dates,
    "levels": _levels,
    "file": _file,
    "builtin": _builtin,
}


def _formats(given: str | Sequence[str]) -> str:
    return given if isinstance(given, str) else "; ".join(given)


def to_form(spec: Mapping[str, Any] | None) -> dict[str, Any]:
    """The fields that a hierarchy of a study file fills in."""
    kind = next((k for k in KINDS if spec and k in spec), "none")
    filled = {
        "kind": kind,
        "widths": "",
        "offset": "",
        "characters": "",
        "side": "right",
        "format": "",
        "groups": "",
        "path": "",
        "others": "",
        **{f"unit:{unit}": "" for unit in UNITS},
    }
    if not spec:
        return filled
    return filled | {
        "widths": ", ".join(map(str, spec.get("intervals", ()))),
        "offset": str(spec.get("offset", "")),
        "characters": str(spec.get("mask", "")),
        "side": spec.get("side", "right"),
        "format": _formats(spec.get("format") or ()),
        "groups": _lines(spec.get("levels", ())),
        "path": spec.get("file", ""),
        "others": "on" if spec.get("others") else "",
        **{f"unit:{unit}": "on" for unit in spec.get("dates", ())},
    }


def _lines(maps: Sequence[Mapping[str, str]]) -> str:
    """The lines of `_levels`; a label that the map above lacks stays as it is."""
    if not maps:
        return ""
    columns = [list(maps[0])]
    for level in maps:
        columns.append([level.get(label, "*") for label in columns[-1]])
    out = io.StringIO()
    csv.writer(out, delimiter=";", lineterminator="\n").writerows(zip(*columns, strict=True))
    return out.getvalue() if '"' in out.getvalue() else out.getvalue().replace(";", "; ")


# --- the preview -----------------------------------------------------------------------------------------------


def preview(study: Study, column: str, spec: Mapping[str, Any] | None, missing: Sequence[str] = ()) -> Preview:
    """What the hierarchy makes of the column's values. Labels come with counts, values with nothing else of their rows."""
    cells = values_of(study, column, missing)
    domain = cells.domains[0]
    try:
        parsed = parse_spec(spec) if spec is not None else None
    except ValidationError as problem:
        raise HierarchyError(problem.errors()[0]["msg"].removeprefix("Value error, ")) from None
    levels = resolve(parsed, domain, column, study.folder)
    records = np.bincount(cells.codes[0], weights=cells.records, minlength=len(domain))
    return Preview(levels=[_level(levels, i, records) for i in range(levels.height + 1)], rows=_rows(levels))


def _level(levels: Levels, number: int, records: np.ndarray) -> LevelView:
    labels, codes = levels.labels[number], levels.codes[number]
    counts = np.bincount(codes, weights=records, minlength=len(labels)).astype(np.int64)
    values = levels.leaves(number)
    most = np.argsort(-counts, kind="stable")[:EXAMPLES]
    groups = [Group(label=labels[int(i)].as_py(), values=int(values[i]), records=int(counts[i])) for i in most]
    return LevelView(level=number, labels=len(labels), smallest=int(counts.min()) if len(counts) else 0, groups=groups)


def _rows(levels: Levels) -> list[list[str | None]]:
    """Values from all over the domain, each with its labels."""
    count = len(levels.labels[0])
    chosen = (
        pa.array(np.unique(np.linspace(0, count - 1, ROWS).astype(np.int64))) if count else pa.array([], pa.int64())
    )
    columns = [levels.of_values(level).take(chosen).to_pylist() for level in range(levels.height + 1)]
    return [list(row) for row in zip(*columns, strict=True)]

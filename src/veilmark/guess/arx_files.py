"""ARX's hierarchy files beside the data: `…_hierarchy_COLUMN.csv`, in the folder of the data or in `hierarchies…` there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veilmark.errors import HierarchyError
from veilmark.guess.facts import many
from veilmark.hierarchy import parse_spec, resolve
from veilmark.tables.domain import Domain

MARK = "hierarchy_"
FOLDERS = "hierarchies*"
"""Folders beside the data that are looked into as well."""

COVERED = 0.95
"""So much of a column's values a file must have to be used."""


@dataclass(frozen=True)
class HierarchyFile:
    """A file that may be a column's hierarchy; `own` where it is named like the data."""

    path: Path
    own: bool


@dataclass(frozen=True)
class Coverage:
    """How many of a column's `values` a file has, or the `fault` for which it cannot be its hierarchy."""

    values: int = 0
    covered: int = 0
    fault: str | None = None

    @property
    def all(self) -> bool:
        return self.fault is None and self.covered == self.values

    @property
    def enough(self) -> bool:
        return self.fault is None and self.covered >= COVERED * self.values

    @property
    def why_not(self) -> str:
        """Why the file is not used; no value of the data is in it."""
        return self.fault or f"it has only {self.covered:,} of the {many(self.values, 'value')} of this column"

    @property
    def lacking(self) -> str:
        return f"values that the file does not have become * at level 1: {self.values - self.covered:,}"


def find_files(data: Path, columns: Iterable[str]) -> dict[str, list[HierarchyFile]]:
    """The files that may be a column's hierarchy, the likeliest first: named like the data, then nearest."""
    folder, stem = data.resolve().parent, data.stem.lower()
    places = [folder, *sorted(place for place in folder.glob(FOLDERS) if place.is_dir())]
    wanted = {column.lower(): column for column in columns}
    found: dict[str, list[HierarchyFile]] = {}
    for file in [file for place in places for file in sorted(place.glob(f"*{MARK}*.csv"))]:
        before, mark, name = file.stem.lower().rpartition(MARK)
        if mark and name in wanted and (not before or before.endswith(("_", "-"))):
            table = before.rstrip("_-")
            own = stem.startswith(table) or table.startswith(stem)
            found.setdefault(wanted[name], []).append(HierarchyFile(file, own))
    return {column: sorted(files, key=lambda file: not file.own) for column, files in found.items()}


def coverage(file: Path, domain: Domain, column: str) -> Coverage:
    """How much of a column a file covers."""
    try:
        levels = resolve(parse_spec({"file": str(file), "others": "*"}), domain, column)
    except HierarchyError:
        return Coverage(fault="it is not a hierarchy in the ARX format")
    present = np.asarray(domain.text.is_valid())
    try:
        resolve(parse_spec({"file": str(file)}), domain, column)
        covered = present
    except HierarchyError:
        covered = present & ~np.asarray([label == "*" for label in levels.of_values(1).to_pylist()])
    return Coverage(int(present.sum()), int(covered.sum()))

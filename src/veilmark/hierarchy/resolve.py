"""From what the study file holds to the levels of a column's domain."""

from __future__ import annotations

from pathlib import Path

from veilmark.hierarchy.arx import file_levels
from veilmark.hierarchy.dates import date_levels
from veilmark.hierarchy.icd9 import icd9_levels
from veilmark.hierarchy.intervals import interval_levels
from veilmark.hierarchy.levels import Levels, nest
from veilmark.hierarchy.maps import map_levels
from veilmark.hierarchy.masks import mask_levels, mask_top
from veilmark.hierarchy.spec import BuiltinSpec, DateSpec, FileSpec, HierarchySpec, IntervalSpec, MapSpec, MaskSpec
from veilmark.tables.domain import Domain


def resolve(spec: HierarchySpec | None, domain: Domain, column: str, folder: Path | None = None) -> Levels:
    """The levels of a column's domain; files are relative to `folder`. None gives the value and `*`."""
    match spec:
        case None:
            return nest(domain, [], column)
        case IntervalSpec():
            return nest(domain, interval_levels(spec, domain, column), column)
        case MaskSpec():
            return nest(domain, mask_levels(spec, domain), column, top=mask_top(spec, domain))
        case DateSpec():
            return nest(domain, date_levels(spec, domain, column), column)
        case FileSpec():
            return nest(domain, file_levels(spec, domain, column, folder or Path()), column)
        case MapSpec():
            return nest(domain, map_levels(spec, domain, column), column)
        case BuiltinSpec():
            return nest(domain, icd9_levels(spec, domain, column), column)

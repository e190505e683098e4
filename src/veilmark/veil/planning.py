"""Planning a release: from a study's classes to a recoding, with hints where the request is likely not what was meant."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import yaml

from veilmark.defaults import SECONDS
from veilmark.engines.base import Engine
from veilmark.errors import DataError, HierarchyError, OptionError, VeilmarkWarning
from veilmark.hierarchy import Levels
from veilmark.hierarchy.intervals import nested_widths
from veilmark.messages import template_of
from veilmark.privacy.measures import Sensitive
from veilmark.privacy.models import PrivacyModel, TCloseness
from veilmark.study.opening import class_table, compare_by, is_number, open_other, resolve_quasi
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable
from veilmark.veil.anonymize import Method, Plan, link, plan
from veilmark.veil.ola import LARGEST_LATTICE, Ola, level_bounds
from veilmark.veil.possible import refuse_impossible

MANY_NUMBERS = 1_000
"""More different numbers than that need a hierarchy."""
STEPS = 200
"""Intervals are offered for a range of at least so many units."""
FEW_VALUES, NEARLY_UNIQUE = 100, 0.5
"""A quasi-identifier with more values than these, and than this share of the records, tells records apart by itself."""


def follow_distances(study: Study, classes: ClassTable, models: Sequence[PrivacyModel]) -> list[PrivacyModel]:
    """The models, t-closeness by the study's distances where it is not given how to compare."""
    if not any(isinstance(m, TCloseness) for m in models):
        return list(models)
    hows = compare_by(study, classes)
    return [replace(m, how=hows[m.attribute]) if isinstance(m, TCloseness) and _is_plain(m.how) else m for m in models]


def _is_plain(how: Sensitive) -> bool:
    return how.distance == "equal" and how.rank is None and how.levels is None


def planned(
    engine: Engine, study: Study, classes: ClassTable, models: Sequence[PrivacyModel], method: Method, population: Any
) -> Plan:
    levels = resolve_quasi(study, classes)
    hints = [*_hints(study, classes, method), *_too_many(classes, levels, method)]
    table = classes
    if population is not None:
        table = link(classes, people_classes(engine, study, population))
        try:
            levels = resolve_quasi(study, table)
        except HierarchyError as error:
            raise HierarchyError(f"In the population: {template_of(error)}") from None
    refuse_impossible(table, models)
    numeric = [is_number(study, name, domain) for name, domain in zip(table.columns, table.domains, strict=True)]
    try:
        made = plan(table, levels, numeric, models, method)
    except OptionError as error:
        raise OptionError(" ".join([template_of(error), *(hints if isinstance(method, Ola) else [])])) from None
    if not len(made.sizes):
        raise OptionError("Every record would have to be suppressed. Relax the limits.")
    for hint in hints:
        warnings.warn(hint, VeilmarkWarning, stacklevel=4)
    return made if population is None else replace(made, recoding=made.recoding.on(classes.domains))


def people_classes(engine: Engine, study: Study, population: Any) -> ClassTable:
    """The classes of a population table; persons are counted where it has the study's person column."""
    other = open_other(engine, study, population, study.quasi)
    if study.person not in other.columns:
        return ClassTable.build(other, study.quasi)
    people = class_table(other, study, sensitive=False)
    if len(people.tally.wander_group):
        raise DataError(
            f"Some persons of '{other.label}' have records with different quasi-identifiers, so their class is "
            "ambiguous. Keep one record of each person."
        )
    return people


def _hints(study: Study, classes: ClassTable, method: Method) -> list[str]:
    """What is likely not meant so: numbers that OLA can only keep or hide, and columns that are nearly unique."""
    hints = []
    for name, domain in zip(classes.columns, classes.domains, strict=True):
        bare = study.spec.attributes[name].hierarchy is None
        if bare and isinstance(method, Ola) and domain.numbers is not None and len(domain) > MANY_NUMBERS:
            hints.append(
                f"'{name}' has {len(domain):,} different numbers and no hierarchy, so OLA can only keep all or "
                f"replace all by *. Add this to attributes: in {study.name}: {_offer(name, domain.numbers)}"
            )
        elif len(domain) > max(FEW_VALUES, NEARLY_UNIQUE * classes.total_records):
            hints.append(
                f"'{name}' has {len(domain):,} values in {classes.total_records:,} records, so most records are "
                "unique by it. If it identifies persons by itself, give it the role direct."
            )
    return hints


def _too_many(classes: ClassTable, levels: Sequence[Levels], method: Method) -> list[str]:
    """What becomes of a search that cannot try all."""
    if not isinstance(method, Ola) or method.seconds is not None:
        return []
    size = level_bounds(classes, levels, method).size
    if size <= LARGEST_LATTICE:
        return []
    return [
        f"{len(classes.columns)} quasi-identifiers have about 10^{len(str(size)) - 1} combinations of "
        "generalization levels, too many to try all. The search starts at the top, goes down step by step for at "
        f"most {SECONDS:g} seconds, and takes the best result. To keep more of each column, make fewer columns "
        "quasi-identifiers."
    ]


def _offer(name: str, numbers: np.ndarray) -> str:
    """A line of a study file, with intervals that fit the numbers' range."""
    span = float(np.nanmax(numbers) - np.nanmin(numbers))
    finer = max(0, math.ceil(math.log10(STEPS / span)))
    widths = [width if not finer else float(f"{width / 10**finer:g}") for width in nested_widths(span * 10**finer)]
    line = {name: {"role": "quasi", "hierarchy": {"intervals": widths}}}
    return yaml.safe_dump(line, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1000).strip()[1:-1]

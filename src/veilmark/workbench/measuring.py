"""The verb measure."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from veilmark.classes import ClassTable
from veilmark.errors import OptionError, VeilmarkWarning
from veilmark.privacy.measures import Measures, measure_classes
from veilmark.privacy.require import Requirement, check_requirements
from veilmark.study import Study
from veilmark.workbench.sources import class_table, compare_by, engine_of, open_other, open_source, resolve_quasi


def measure(
    study: Study,
    data: Any = None,
    population: Any = None,
    population_size: int | None = None,
    threshold: float = 0.2,
) -> Measures:
    """Measure the study's source, or other data of the same columns, against a population where one is given."""
    if not 0 < threshold <= 1:
        raise OptionError(f"The risk threshold must lie above 0 and at most at 1, not {threshold}. Try 0.2.")
    if population is not None and population_size is not None:
        raise OptionError("Give a population table or a population size, not both.")
    with engine_of(study) as engine:
        needed = [*study.quasi, *study.sensitive]
        table = open_source(engine, study) if data is None else open_other(engine, study, data, needed)
        if study.person and study.person not in table.columns:
            warnings.warn(
                f"'{table.label}' has no column '{study.person}', as releases have not, so that records are counted and not "
                "persons.",
                VeilmarkWarning,
                stacklevel=2,
            )
            study = without_person(study)
        classes = class_table(table, study)
        if data is None:
            resolve_quasi(study, classes)
        people = None
        if population is not None:
            other = open_other(engine, study, population, study.quasi)
            people = ClassTable.build(
                other, study.quasi, person=study.person if study.person in other.columns else None
            )
        found = measure_classes(classes, compare_by(study, classes), people, population_size, threshold)
        unseen = [c for c in table.columns if c not in study.spec.attributes and c != study.person]
        return replace(found, unseen=tuple(unseen))


def without_person(study: Study) -> Study:
    """The study, every record a person."""
    return replace(study, spec=study.spec.model_copy(update={"person": None}))


def require(measured: Measures, limits: Sequence[str]) -> list[Requirement]:
    """Whether a measured table meets limits such as `k=5`, `l.diagnosis=2` or `t.diagnosis=0.2`."""
    return check_requirements(measured, limits)

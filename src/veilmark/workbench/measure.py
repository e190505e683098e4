"""The verb measure."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from veilmark.defaults import THRESHOLD
from veilmark.engines.base import Table
from veilmark.errors import OptionError, VeilmarkWarning
from veilmark.privacy.measures import Measures, Sensitive, measure_classes
from veilmark.privacy.missing import missing_counted
from veilmark.privacy.models import DistinctL, PrivacyModel, TCloseness
from veilmark.privacy.require import Requirement, check_requirements
from veilmark.privacy.unchanged import Unchanged, count_unique, worst_first
from veilmark.score.weights import check_weights
from veilmark.study.columns import unchanged_columns, unnamed_columns
from veilmark.study.opening import (
    class_table,
    compare_by,
    engine_of,
    open_other,
    open_source,
    resolve_quasi,
    source_classes,
)
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable


def measure(
    study: Study,
    data: Any = None,
    population: Any = None,
    population_size: int | None = None,
    threshold: float = THRESHOLD,
) -> Measures:
    """Measure the study's source, or other data of the same columns, against a population where one is given."""
    if not 0 < threshold <= 1:
        raise OptionError(f"The risk threshold must be above 0 and at most 1, not {threshold}. Try 0.2.")
    if population is not None and population_size is not None:
        raise OptionError("Give a population table or a population size, not both.")
    for name in study.sensitive:
        check_weights(name, study.spec.attributes[name].weights, study.folder)
    with engine_of(study) as engine:
        needed = [*study.quasi, *study.sensitive]
        table = open_source(engine, study) if data is None else open_other(engine, study, data, needed)
        if study.person and study.person not in table.columns:
            warnings.warn(
                f"'{table.label}' has no column '{study.person}' (releases do not have it), so records are "
                "counted, not persons.",
                VeilmarkWarning,
                stacklevel=2,
            )
            study = without_person(study)
        classes = source_classes(table, study) if data is None else class_table(table, study)
        if data is None:
            resolve_quasi(study, classes)
        people = None
        if population is not None:
            other = open_other(engine, study, population, study.quasi)
            people = ClassTable.build(
                other, study.quasi, person=study.person if study.person in other.columns else None
            )
        hows = compare_by(study, classes)
        found = measure_classes(classes, hows, people, population_size, threshold)
        found = replace(found, missing_counted=missing_counted(classes, _measured_limits(found, hows)))
        unchanged = worst_first(_unchanged(study, table, classes))
        return replace(found, unseen=unnamed_columns(study, table.columns), unchanged=unchanged)


def _measured_limits(found: Measures, hows: Mapping[str, Sensitive]) -> list[PrivacyModel]:
    """The l and t that were measured, as limits; an l of 1 is none."""
    diverse = {name: of.diversity.distinct for name, of in found.attributes.items()}
    limits: list[PrivacyModel] = [DistinctL(name, l) for name, l in diverse.items() if l > 1]  # noqa: E741
    return limits + [TCloseness(name, of.t, hows[name]) for name, of in found.attributes.items()]


def _unchanged(study: Study, table: Table, classes: ClassTable) -> dict[str, Unchanged]:
    """How many records each column that is published unchanged makes unique; of sensitive attributes that is counted
    already."""
    records, plain = classes.total_records, [c for c, kind in table.columns.items() if kind != "nested"]
    named = unchanged_columns(study, plain)
    sensitive = {c: int((classes.histograms[c].records == 1).sum()) for c in study.sensitive if c in named}
    others = [c for c in named if c not in sensitive]
    already = int((classes.records == 1).sum())
    found = {name: Unchanged(n, records, already=already, sensitive=True) for name, n in sensitive.items()}
    if not others:
        return found
    dialect = table.engine.dialect
    keys, columns = ({c: dialect.clean(c, table.columns[c]) for c in of} for of in (study.quasi, others))

    def ask(statement: str) -> list[Any]:
        return [column[0].as_py() for column in table.query(statement).columns]

    counted = count_unique(
        ask, table.name, list(keys.values()), columns, records, dialect.hash, already, len(classes.records)
    )
    return found | counted


def without_person(study: Study) -> Study:
    """The study, every record a person."""
    return replace(study, spec=study.spec.model_copy(update={"person": None}))


def require(measured: Measures, limits: Sequence[str]) -> list[Requirement]:
    """Whether a measured table meets limits such as `k=5`, `l.diagnosis=2` or `t.diagnosis=0.2`."""
    return check_requirements(measured, limits)

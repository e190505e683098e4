"""The verb feasible: what decoys releases of a source could have, whether they would stand out, whom they could serve."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from veilmark.cells import encode
from veilmark.classes import ClassTable
from veilmark.domain import Domain
from veilmark.engines import sql
from veilmark.engines.duckdb import DIALECT, DuckDB, DuckTable
from veilmark.errors import DataError, HierarchyError, OptionError, StudyError
from veilmark.hierarchy import Levels, resolve
from veilmark.mark.discover import feasibility, link, union_domain
from veilmark.mark.plan import Marking
from veilmark.mark.reports import Reports, detectability, scalability
from veilmark.privacy.models import KAnonymity
from veilmark.study import Study
from veilmark.veil.ola import Ola
from veilmark.workbench.anonymizing import planned
from veilmark.workbench.releasing import check_identity
from veilmark.workbench.sources import class_table, engine_of, open_other, open_source

MOST_SETTINGS = 100


@dataclass(frozen=True)
class Feasible:
    """The three reports at every setting asked for."""

    population: str
    people: int
    members_known: bool
    """Whether it is known who of the population is in the source."""
    settings: tuple[Reports, ...]

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "settings": [of.to_dict() for of in self.settings]}


def feasible(
    study: Study,
    population: Any,
    marking: Marking,
    ks: Sequence[int] = (5,),
    suppressions: Sequence[float] = (0.0,),
    identity: Sequence[str] = (),
    method: Ola | None = None,
    seed: int = 1,
    chart: str | os.PathLike[str] | None = None,
) -> Feasible:
    """Anonymize with every k and limit of suppression, link to the population, and report; nothing is released.

    `marking` says for how many recipients, with how many decoys and covers; its k is not used. Where the source has the
    `identity` columns too, its persons are left out as decoys.
    """
    _check(study, ks, suppressions, chart)
    with engine_of(study) as engine:
        source = open_source(engine, study)
        classes = class_table(source, study)
        everybody = open_other(engine, study, population, study.quasi)
        people = ClassTable.build(everybody, study.quasi)
        if not people.total_records:
            raise DataError(f"'{everybody.label}' has column names but no records.")
        domains = [union_domain(*both) for both in zip(classes.domains, people.domains, strict=True)]
        levels = _levels(study, classes, domains)
        members = _members(engine, study, source, everybody, people, identity)
        found = []
        for k, suppression in product(ks, suppressions):
            made = planned(
                engine, study, classes, [KAnonymity(k)], replace(method or Ola(), suppression=suppression), None
            )
            linked = link(classes, made.recoding, people, levels, domains)
            if members is not None:
                inside = np.bincount(linked.of_people, weights=members, minlength=len(linked)).astype(np.int64)
                linked = replace(linked, outside=linked.population - inside)
            reports = (
                feasibility(linked, k),
                detectability(linked, k),
                scalability(linked, replace(marking, k=k), seed),
            )
            kept = classes.total_records - made.suppressed
            found.append(Reports(k, suppression, made.recoding.levels, kept, made.suppressed, *reports))
    result = Feasible(everybody.label, people.total_records, members is not None, tuple(found))
    if chart is not None:
        _draw(result, Path(chart))
    return result


def _check(study: Study, ks: Sequence[int], suppressions: Sequence[float], chart: Any) -> None:
    if not study.quasi:
        raise StudyError(f"{study.name} names no quasi-identifier, so there is nothing to link by. Give one its role.")
    if not ks or not suppressions or len(ks) * len(suppressions) > MOST_SETTINGS:
        raise OptionError(
            f"Give at least one k and one limit of suppression, and no more than {MOST_SETTINGS} settings."
        )
    if chart is not None:
        from veilmark.report.charts import check_path

        check_path(Path(chart))


def _levels(study: Study, classes: ClassTable, domains: Sequence[Domain]) -> list[Levels]:
    """The hierarchies on the values of source and population."""
    found = []
    for name, domain, own in zip(classes.columns, domains, classes.domains, strict=True):
        spec = study.spec.attributes[name].hierarchy
        try:
            found.append(resolve(spec, domain, name, study.folder))
        except HierarchyError as error:
            raise HierarchyError(f"With the population's values: {error}") from None
        if found[-1].height != resolve(spec, own, name, study.folder).height:
            raise DataError(
                f"The population has longer values of '{name}' than the source, so that its hierarchy has more levels "
                "there. Bring both to one form."
            )
    return found


def _members(
    engine: DuckDB, study: Study, source: DuckTable, population: DuckTable, people: ClassTable, identity: Sequence[str]
) -> np.ndarray | None:
    """Of each of the population's classes, how many persons are in the source; None where nobody can tell."""
    if identity:
        check_identity(population, identity)
    if not identity or not set(identity) <= set(source.columns):
        return None
    kinds = {name: population.columns[name] for name in study.quasi}
    statement = sql.members(DIALECT, population.name, source.name, kinds, identity)
    with engine.joins_as_written():
        inside = ClassTable.of_cells(encode(population.query(statement), study.quasi), len(study.quasi))
    members = np.zeros(len(people), dtype=np.int64)
    members[inside.find_in(people)] = inside.records
    return members


def _draw(found: Feasible, path: Path) -> None:
    from veilmark.report import decoy_charts
    from veilmark.report.charts import save

    save(decoy_charts.reports(found.settings), path)

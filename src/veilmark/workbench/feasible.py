"""The verb feasible: what decoys releases of a source could have, whether they would stand out, whom they could serve."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from veilmark.charted import Charted
from veilmark.errors import DataError, OptionError, StudyError
from veilmark.mark.discover import Linked, feasibility, link, union_domain
from veilmark.mark.linking import Ground, check_identity, union_levels
from veilmark.mark.marking import CopyMarking
from veilmark.mark.members import Recognized, check_telling, recognize
from veilmark.mark.reports import Reports, detectability, scalability
from veilmark.privacy.models import KAnonymity
from veilmark.study.opening import class_table, engine_of, open_other, open_source
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable
from veilmark.veil.anonymize import Plan
from veilmark.veil.ola import Ola
from veilmark.veil.planning import planned

MOST_SETTINGS = 100


@dataclass(frozen=True)
class Feasible(Charted):
    """The three reports at every setting asked for."""

    population: str
    people: int
    members_known: bool
    """Whether it is known who of the population is in the source."""
    settings: tuple[Reports, ...]
    recognized: Recognized | None = None
    """How many of the source's persons are in the population, where that is known."""
    identity: tuple[str, ...] = ()

    def chart(self) -> Any:
        """The candidates' risks, and the sizes of the release's classes."""
        from veilmark.report.decoy_charts import reports

        return reports(self.settings)

    def to_dict(self) -> dict[str, Any]:
        known = None if self.recognized is None else self.recognized.to_dict()
        settings = [of.to_dict() for of in self.settings]
        return {**vars(self), "settings": settings, "recognized": known, "identity": list(self.identity)}


def feasible(
    study: Study,
    population: Any,
    marking: CopyMarking,
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
        everybody = open_other(engine, study, population, study.quasi, joined=bool(identity))
        if identity:
            check_identity(everybody, identity)
            check_telling(everybody, identity)
        classes = class_table(source, study)
        people = ClassTable.build(everybody, study.quasi)
        if not people.total_records:
            raise DataError(f"'{everybody.label}' has column names but no records.")
        domains = tuple(union_domain(*both) for both in zip(classes.domains, people.domains, strict=True))
        levels = tuple(union_levels(study, classes, domains))
        recognized = recognize(source, everybody, identity, study.quasi)
        found = []
        for k, suppression in product(ks, suppressions):
            tuned = replace(method or Ola(), suppression=suppression)
            made = planned(engine, study, classes, [KAnonymity(k)], tuned, None)
            linked = link(classes, made.recoding, people, levels, domains)
            if identity:
                tables = (source, everybody, tuple(identity), classes, people, domains, levels)
                linked = Ground(engine, study, *tables, made, linked, pa.table({}))._with_persons(k).linked
            found.append(_reports(linked, made, replace(marking, k=k), suppression, seed))
    known = bool(identity) and set(identity) <= set(source.columns)
    result = Feasible(everybody.label, people.total_records, known, tuple(found), recognized, tuple(identity))
    if chart is not None:
        _draw(result, Path(chart))
    return result


def _reports(linked: Linked, made: Plan, marking: CopyMarking, suppression: float, seed: int) -> Reports:
    return Reports(
        marking.k,
        suppression,
        made.recoding.levels,
        int(linked.published.sum()),
        made.suppressed,
        feasibility(linked, marking.k),
        detectability(linked, marking.k),
        scalability(linked, marking, seed),
    )


def _check(study: Study, ks: Sequence[int], suppressions: Sequence[float], chart: Any) -> None:
    if not study.quasi:
        raise StudyError(
            f"{study.name} has no quasi-identifier, so records cannot be linked. Give at least one column the "
            "role quasi."
        )
    if not ks or not suppressions or len(ks) * len(suppressions) > MOST_SETTINGS:
        raise OptionError(
            f"Give at least one k and one suppression limit, and at most {MOST_SETTINGS} combinations of them."
        )
    if chart is not None:
        from veilmark.report.charts import check_path

        check_path(Path(chart))


def _draw(found: Feasible, path: Path) -> None:
    from veilmark.report import decoy_charts
    from veilmark.report.charts import save

    save(decoy_charts.reports(found.settings), path)

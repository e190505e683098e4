"""The verb anonymize for methods that fold the records to one row a person and publish several tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from veilmark.hierarchy import Levels, resolve
from veilmark.output import refuse_address, refuse_inputs
from veilmark.report import charts
from veilmark.study.opening import engine_of, fold_table, open_source
from veilmark.study.study import Study
from veilmark.tables.persons import PersonTable
from veilmark.utility.sliced import amounts
from veilmark.veil.correlation import correlations
from veilmark.veil.sliced import Form, PersonsMethod, Sliced


def anonymize_persons(
    study: Study,
    method: PersonsMethod,
    output: str | os.PathLike[str] | None = None,
    form: Form = "csv",
    chart: str | os.PathLike[str] | None = None,
) -> Sliced:
    """The study's source as several tables with one row a person.

    They are written to the folder `output`, where one is given; `chart` is a file for a heat map of how the sensitive
    attributes go together.
    """
    if output is not None:
        refuse_address(Path(output))
    if output is not None and os.path.isdir(output):
        for name in os.listdir(output):
            refuse_inputs(Path(output) / name, [study.source()[0]])
    if chart is not None:
        charts.check_path(Path(chart))
        refuse_inputs(Path(chart), [study.source()[0]])
    with engine_of(study) as engine:
        table = open_source(engine, study)
        persons = fold_table(table, study)
    levels = resolve_all(study, persons)
    release = method.slice_persons(persons, levels)
    named = {*study.quasi, *study.sensitive, *study.direct, study.person}
    release = replace(release, columns_left_out=tuple(c for c in table.columns if c not in named))
    with nullcontext() if chart is None else charts.saved(_heat_map(persons, levels), Path(chart)):
        if output is not None:
            release.write(output, form)
    return release


def _heat_map(persons: PersonTable, levels: Mapping[str, Levels]) -> Any:
    from veilmark.report.correlation_chart import heat_map

    return heat_map(correlations(persons, amounts(persons, levels)))


def resolve_all(study: Study, persons: PersonTable) -> dict[str, Levels]:
    """The hierarchies of all quasi-identifiers and sensitive attributes, on the values that the persons have."""
    columns = {**persons.quasi, **persons.sensitive}
    return {
        name: resolve(study.spec.attributes[name].hierarchy, column.domain, name, study.folder)
        for name, column in columns.items()
    }

"""The verb utility: a release beside its source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veilmark.engines.base import Table
from veilmark.errors import DataError, OptionError, did_you_mean, listing
from veilmark.hierarchy import resolve
from veilmark.messages import Message, param
from veilmark.report import charts, utility_charts
from veilmark.study.opening import engine_of, open_other, open_source
from veilmark.study.study import Study
from veilmark.tables.cells import Cells
from veilmark.tables.domain import Domain
from veilmark.utility import classifier
from veilmark.utility.classifier import Classified
from veilmark.utility.columns import MANY, Column
from veilmark.utility.covers import read_labels
from veilmark.utility.view import ReleaseLoss, UtilityView, associations, marginal, release_loss

FEW_ROWS = 1_000_000
"""Tables of up to so many records are grouped once, by all columns; larger ones by two columns at a time."""

MOST_VALUES = 10_000
"""A column without a role that has more values (an identifier, a free text) is left out."""


def view_utility(
    study: Study,
    release: Any,
    data: Any = None,
    target: str | None = None,
    chart: str | os.PathLike[str] | None = None,
    seed: int = 1,
) -> UtilityView:
    """Compare a release (a file or a frame) with the study's source, or with `data`.

    `target` is what a classifier is to predict, by default the first sensitive attribute; `chart` a file to draw to.
    """
    if chart is not None:
        charts.check_path(Path(chart))
    with engine_of(study) as engine:
        source = open_source(engine, study) if data is None else open_other(engine, study, data, study.quasi)
        other = open_other(engine, study, release, ())
        found = _Comparison(study, source, other).view(target, seed)
    if chart is not None:
        charts.save(utility_charts.utility(found), Path(chart))
    return found


class _Comparison:
    """Two tables, and what has been found out about them."""

    def __init__(self, study: Study, source: Table, release: Table) -> None:
        self.study, self.source, self.release = study, source, release
        self.notes: list[str] = []
        names = self._common()
        self.before, self.after = _Counts(source, names), _Counts(release, names)
        self.columns = {name: self._column(name) for name in names}

    def view(self, target: str | None, seed: int) -> UtilityView:
        marginals = {name: marginal(column) for name, column in self.columns.items()}
        for column in self.columns.values():
            if column.unread:
                self.notes.append(
                    f"{column.unread:,} records of '{column.name}' have an unknown label: not a value, not in its "
                    "hierarchy, not a range or set of values. Its numbers ignore these records."
                )
        related = [c for c in self.columns.values() if c.role != "other" or len(c.domain) <= MANY]
        return UtilityView(
            (self.before.records, self.after.records),
            self._loss() if self.study.quasi else None,
            marginals,
            associations(related, self.before.of, self.after.of),
            self._classified(target, seed),
            tuple(self.notes),
        )

    def _common(self) -> list[str]:
        """The columns to compare: those in both tables that are no identifiers."""
        unwanted = {*self.study.direct, self.study.person}
        known = {*self.study.quasi, *self.study.sensitive}
        shared = [c for c in self.source.columns if c in self.release.columns and c not in unwanted]
        if not shared:
            raise DataError(
                f"'{self.release.label}' and '{self.source.label}' have no column in common, so there is nothing "
                "to compare. Name a release of this study, with its column names in the first line."
            )
        long = [c for c in shared if c not in known and self._too_long(c)]
        if long:
            self.notes.append(
                f"Not compared, because they have more than {MOST_VALUES:,} values, or lists: {listing(long)}."
            )
        return [c for c in shared if c not in long]

    def _too_long(self, column: str) -> bool:
        if "nested" in (self.source.columns[column], self.release.columns[column]):
            return True
        name = self.source.engine.dialect.name(column)
        statement = f"SELECT count(DISTINCT {name}) AS n FROM {self.source.name}"
        return int(self.source.query(statement)["n"][0].as_py()) > MOST_VALUES

    def _column(self, name: str) -> Column:
        attribute = self.study.spec.attributes.get(name)
        (domain, records), (labels, released) = self.before.values(name), self.after.values(name)
        levels = resolve(attribute.hierarchy if attribute else None, domain, name, self.study.folder)
        role = attribute.role if attribute else "other"
        return Column(name, role, domain, levels, records, read_labels(labels.text, domain, levels), released)

    def _loss(self) -> ReleaseLoss | None:
        quasi = [self.columns[name] for name in self.study.quasi if name in self.columns]
        dropped = [name for name in self.study.quasi if name not in self.columns]
        names = [c.name for c in quasi]
        loss = release_loss(quasi, dropped, *(t.group(names).records for t in (self.source, self.release)))
        if loss is None:
            self.notes.append(
                "The loss cannot be computed: the release has more records than the source, or labels that are "
                "not in the source or its hierarchies."
            )
        if dropped:
            self.notes.append(f"The release lacks the quasi-identifiers {listing(dropped)}.")
        return loss

    def _classified(self, target: str | None, seed: int) -> Classified | None:
        chosen = self._target(target)
        if chosen is None:
            return None
        columns = [self.columns[n] for n in self.study.quasi if n in self.columns and n != chosen.name]
        if not columns or len(chosen.groups) < 2 or chosen.unread == self.after.records:
            self.notes.append(
                f"No classifier: there is nothing to predict '{chosen.name}' from, or it has only one value."
            )
            return None
        if not classifier.available():
            self.notes.append("No classifier: it needs scikit-learn, pip install 'veilmark[utility]'.")
            return None
        names = [*(c.name for c in columns), chosen.name]
        return classifier.classify(columns, chosen, self.source.group(names), self.release.group(names), seed)

    def _target(self, name: str | None) -> Column | None:
        """What is to be predicted, where there is something."""
        if name is None:
            known = [c for c in self.study.sensitive if c in self.columns]
            if not known:
                self.notes.append(
                    Message(
                        f"No classifier: there is no sensitive attribute to predict. Name one with {param('target')}."
                    )
                )
            return self.columns[known[0]] if known else None
        if name not in self.columns:
            raise OptionError(
                f"The target '{name}' is not a column that both tables have.{did_you_mean(name, self.columns)}"
            )
        return self.columns[name]


class _Counts:
    """Counts a table's columns by ones and twos: from one grouping by all of them, where records are few."""

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        self.table, self.records = table, table.count()
        if not self.records:
            raise DataError(f"'{table.label}' has column names but no records.")
        self._whole = table.group(columns) if self.records <= FEW_ROWS else None

    def of(self, *columns: str) -> Cells:
        """The columns' combinations; one may occur more than once."""
        whole = self._whole
        if whole is None:
            return self.table.group(columns)
        places = [whole.columns.index(c) for c in columns]
        return Cells(columns, tuple(whole.domains[p] for p in places), whole.codes[places], whole.records)

    def values(self, column: str) -> tuple[Domain, np.ndarray]:
        """A column's domain, and the records of each value."""
        cells = self.of(column)
        domain = cells.domains[0]
        return domain, np.bincount(cells.codes[0], weights=cells.records, minlength=len(domain))

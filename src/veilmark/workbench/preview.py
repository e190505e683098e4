"""Previews of a generalization: what its rows look like and how the columns change, before anything is written.

An `Explorer` reads a study's source once; then any node of the lattice costs no more than rolling its classes up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veilmark.charted import Charted
from veilmark.engines import engine_for
from veilmark.errors import OptionError
from veilmark.hierarchy import Levels, resolve
from veilmark.privacy.models import PrivacyModel
from veilmark.study.columns import published_columns
from veilmark.study.opening import class_table, engine_of, open_source, resolve_quasi
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable
from veilmark.tables.domain import Domain, as_text
from veilmark.tables.recoding import Recoding, counted
from veilmark.utility.columns import Column
from veilmark.utility.covers import read_labels
from veilmark.utility.view import UtilityView, marginal
from veilmark.veil.anonymize import all_models, link, plan
from veilmark.veil.ola import Ola
from veilmark.veil.planning import follow_distances, people_classes
from veilmark.veil.published import published_labels
from veilmark.workbench.anonymize import pseudonyms_of

LOOKED_AT = 500
"""First rows of the source, of which the first that are not suppressed are shown."""
ROWS = 10


@dataclass(frozen=True, eq=False)
class NodePreview(Charted):
    """What a release at some levels would be: whether it stays within the suppression limit (`passes`), its loss by every
    metric and by attribute, its first `rows`, and its columns beside the source's. `k` is None where nothing is left."""

    levels: Mapping[str, int]
    heights: Mapping[str, int]
    records: int
    suppressed: int
    passes: bool
    k: int | None
    classes: int
    metric: str
    loss: Mapping[str, float]
    by_attribute: Mapping[str, Mapping[str, float]]
    rows: pa.Table
    view: UtilityView

    def chart(self) -> Any:
        """Each column before and after."""
        from veilmark.report.utility_charts import marginals

        return marginals(self.view)

    def to_dict(self) -> dict[str, Any]:
        texts = [as_text(column.combine_chunks()).to_pylist() for column in self.rows.columns]
        return {
            "levels": dict(self.levels),
            "heights": dict(self.heights),
            "records": self.records,
            "suppressed": self.suppressed,
            "passes": self.passes,
            "k": self.k,
            "classes": self.classes,
            "metric": self.metric,
            "loss": dict(self.loss),
            "loss_by_attribute": {name: dict(of) for name, of in self.by_attribute.items()},
            "columns": self.rows.column_names,
            "rows": [list(row) for row in zip(*texts, strict=True)],
            "marginals": {name: of.to_dict() for name, of in self.view.marginals.items()},
        }


@dataclass(frozen=True, eq=False)
class Explorer:
    """A study's classes (`linked`: with the population's, where there is one) and first rows, to be tried at any levels."""

    study: Study
    method: Ola
    models: tuple[PrivacyModel, ...]
    classes: ClassTable
    linked: ClassTable
    levels: tuple[Levels, ...]
    columns: tuple[str, ...]
    sample: pa.Table

    @classmethod
    def open(
        cls, study: Study, models: Sequence[PrivacyModel] = (), method: Ola | None = None, population: Any = None
    ) -> Explorer:
        """Read the study's source; the models are those given and those that the method carries."""
        method = method or Ola()
        with engine_of(study) as engine:
            table = open_source(engine, study)
            classes = class_table(table, study)
            wanted = follow_distances(study, classes, all_models(models, method))
            linked = classes if population is None else link(classes, people_classes(engine, study, population))
            columns, sample = published_columns(study, table), table.sample(LOOKED_AT)
        levels = resolve_quasi(study, linked)
        return cls(study, method, tuple(wanted), classes, linked, tuple(levels), tuple(columns), sample)

    def at(self, node: Sequence[int]) -> NodePreview:
        """The release at these levels, one for each quasi-identifier, with all failing classes suppressed."""
        names = self.classes.columns
        if len(node) != len(names):
            raise OptionError(f"Give {len(names)} levels, one for each of {', '.join(names)}; you gave {len(node)}.")
        fixed = dict(zip(names, map(int, node), strict=True))
        made = plan(self.linked, self.levels, [], self.models, replace(self.method, levels=fixed, suppression=1.0))
        recoding = made.recoding.on(self.classes.domains)
        _, kept = published_labels(self.classes, recoding)
        unit, tally = self.method.unit, self.classes.tally
        return NodePreview(
            levels=fixed,
            heights={name: of.height for name, of in zip(names, self.levels, strict=True)},
            records=self.classes.total_records,
            suppressed=made.suppressed,
            passes=counted(tally.take(~kept), unit) <= self.method.suppression * counted(tally, unit) + 1e-9,
            k=int(made.sizes.min()) if len(made.sizes) else None,
            classes=len(made.sizes),
            metric=self.method.loss,
            loss=made.loss,
            by_attribute=made.by_attribute,
            rows=self._rows(recoding),
            view=_view(self.study, self.classes, recoding),
        )

    def _rows(self, recoding: Recoding) -> pa.Table:
        """The first rows as they would be published, written and read as a release is."""
        settings = self.study.settings
        with engine_for(self.sample, settings.threads, settings.memory) as engine:
            path = engine.scratch(".parquet")
            engine.open(self.sample).write_recoded(recoding, self.columns, path, pseudonyms_of(self.study, None))
            return pq.read_table(path).slice(0, ROWS)


def view_marginals(study: Study, recoding: Recoding) -> UtilityView:
    """The quasi-identifiers and sensitive attributes of the study's source, before and after a recoding."""
    with engine_of(study) as engine:
        classes = class_table(open_source(engine, study), study)
    return _view(study, classes, recoding)


def _view(study: Study, classes: ClassTable, recoding: Recoding) -> UtilityView:
    labelled, kept = published_labels(classes, recoding)
    columns = [
        _column(study, name, domain, codes, classes.records, labels, groups, kept)
        for name, domain, codes, (labels, groups) in zip(
            classes.columns, classes.domains, classes.codes, labelled, strict=True
        )
    ]
    for name, of in classes.histograms.items():
        stays = kept[of.owner]
        columns.append(_column(study, name, of.domain, of.value, of.tally.records, of.domain.text, of.value, stays))
    records = (classes.total_records, int(classes.records[kept].sum()))
    return UtilityView(records, None, {column.name: marginal(column) for column in columns}, (), None, ())


def _column(
    study: Study,
    name: str,
    domain: Domain,
    codes: np.ndarray,
    records: np.ndarray,
    labels: pa.Array,
    groups: np.ndarray,
    kept: np.ndarray,
) -> Column:
    """A column out of cells: each has a value, records, a published label and whether it is kept."""
    attribute = study.spec.attributes[name]
    levels = resolve(attribute.hierarchy, domain, name, study.folder)
    before = np.bincount(codes, weights=records, minlength=len(domain))
    after = np.bincount(groups[kept], weights=records[kept], minlength=len(labels))
    return Column(name, attribute.role, domain, levels, before, read_labels(as_text(labels), domain, levels), after)

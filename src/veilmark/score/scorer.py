"""Scorer: a source's factors, read once, against which any number of published tables are scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from veilmark.errors import DataError
from veilmark.messages import param
from veilmark.score import scores
from veilmark.score.factors import Factors, source_factors, table_factors
from veilmark.score.scores import Options, RecordScore, Scored, ScoreResult
from veilmark.score.weights import WeightTable
from veilmark.tables.cells import CellIndex, Cells
from veilmark.tables.classes import ClassTable

SHOWN = 5


@dataclass(frozen=True, eq=False)
class Scorer:
    """The source's distinct records (quasi-identifiers first), their classes, and the weights of their values.

    `distances` gives, by attribute, how far each class's values lie from the table's; `sizes` each class's persons.
    """

    cells: Cells
    classes: ClassTable
    tables: Mapping[str, WeightTable]
    distances: Mapping[str, Callable[[], np.ndarray]]
    sizes: np.ndarray | None = None
    _sources: dict[Options, dict[str, float]] = field(default_factory=dict)

    @property
    def quasi(self) -> int:
        """How many quasi-identifiers there are."""
        return len(self.classes.columns)

    @cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """The weight of each code of each sensitive attribute."""
        names = self.cells.columns[self.quasi :]
        return {n: self.tables[n].of(self.cells.domains[self.quasi + i]) for i, n in enumerate(names)}

    @property
    def stated(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """For each sensitive attribute, which statement each code's weight comes from, and the statements' weights."""
        names = self.cells.columns[self.quasi :]
        return {n: self.tables[n].stated(self.cells.domains[self.quasi + i]) for i, n in enumerate(names)}

    @cached_property
    def factors(self) -> Factors:
        """The factors in the source; without quasi-identifiers, of the source as a published table."""
        if not self.quasi:
            return table_factors(self.cells, self.weights)
        return source_factors(self.cells, self.classes, self.weights, self.distances, self.sizes)

    @cached_property
    def index(self) -> CellIndex:
        return CellIndex(self.cells.codes, self.cells.domains)

    @cached_property
    def whole(self) -> Scored:
        """The source itself, as published."""
        return Scored(self.factors, None, self.cells.records)

    def find(self, published: Cells, label: str, skip_unknown: bool = False) -> tuple[Scored, int]:
        """A published table by the source's distinct records, and how many of its records are not there.

        Records that are not there are an error, unless skipped. Without quasi-identifiers the factors are the
        table's own.
        """
        place = self.index.find(published.codes, published.domains)
        known = place >= 0
        chosen, index = np.unique(place[known], return_inverse=True)
        copies = np.bincount(index, weights=published.records[known], minlength=len(chosen)).astype(np.int64)
        counts = np.minimum(copies, self.cells.records[chosen])
        everyone = int(published.records.sum())
        unknown = everyone - int(counts.sum())
        if unknown and not skip_unknown:
            raise DataError(
                f"{unknown:,} of the {everyone:,} records of '{label}' are not in the source: it has too few "
                "records with the same quasi-identifiers and sensitive values. Only records of the source can be "
                f"scored. To skip the unknown records and score the others, use {param('skip_unknown', True)}."
            )
        return self.table(chosen, counts), unknown

    def table(self, chosen: np.ndarray, counts: np.ndarray) -> Scored:
        """A table that has `counts` records of each `chosen` distinct record of the source."""
        if self.quasi:
            return Scored(self.factors, chosen, counts)
        part = Cells(self.cells.columns, self.cells.domains, self.cells.codes[:, chosen], counts)
        return Scored(table_factors(part, self.weights), None, counts)

    def score(self, published: Scored | None = None, options: Options | None = None, unknown: int = 0) -> ScoreResult:
        """Scores of a published table (by default of the whole source), normalized and explained."""
        options = options or Options()
        published = published or self.whole
        table = capped(published, options)
        source = self._source_values(options)
        values = source if published is self.whole else scores.score_values(table, options)
        records = int(table.counts.sum())
        from_closeness = scores.closeness_part(table)
        return ScoreResult(
            records=records,
            source_records=int(self.cells.records.sum()),
            unknown_records=unknown,
            options=options,
            scores=scores.normalize(values, self._normalizers(source, options, records)),
            from_weights=values["tkl"] - from_closeness,
            from_closeness=from_closeness,
            top_classes=scores.top_classes(table, SHOWN),
            top_values=scores.top_values(table, SHOWN),
            worst=scores.worst_records(table, self.weights, SHOWN),
            distribution=scores.distribution(table),
        )

    def _source_values(self, options: Options) -> dict[str, float]:
        """The whole source's scores, found once for all tables scored against it."""
        if options not in self._sources:
            self._sources[options] = scores.score_values(capped(self.whole, options), options)
        return self._sources[options]

    def _normalizers(self, source: dict[str, float], options: Options, records: int) -> dict[str, float | None]:
        worst = {"m": float(self.factors.m.max()), "tkl_max": source["tkl_max"]}
        return scores.normalizers(source, worst, records, [t.largest for t in self.tables.values()], options)

    def explain(self, record: Mapping[str, object]) -> RecordScore:
        """One record of the source, taken apart."""
        codes = np.empty((len(self.cells.columns), 1), dtype=np.int32)
        for i, (name, domain) in enumerate(zip(self.cells.columns, self.cells.domains, strict=True)):
            codes[i] = domain.code_of(record.get(name))
        place = int(self.index.find_codes(codes)[0])
        if place < 0:
            raise DataError("No record of the source has these quasi-identifiers and sensitive values.")
        return scores.describe_record(self.factors, place, self.weights)


def capped(table: Scored, options: Options) -> Scored:
    """The table with every record's weight held to 1 in tkl, where the options say so."""
    return replace(table, factors=replace(table.factors, cap=True)) if options.cap else table

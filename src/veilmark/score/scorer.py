"""Scorer: a source's factors, read once, against which any number of published tables are scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from veilmark.cells import CellIndex, Cells
from veilmark.classes import ClassTable
from veilmark.errors import DataError
from veilmark.score import scores
from veilmark.score.factors import Factors, source_factors, table_factors
from veilmark.score.scores import Options, RecordScore, ScoreResult
from veilmark.score.weights import WeightTable

SHOWN = 5


@dataclass(frozen=True, eq=False)
class Published:
    """A table's distinct records as positions in the source's, with their counts; `unknown` has no such position."""

    chosen: np.ndarray
    counts: np.ndarray
    unknown: int = 0


@dataclass(frozen=True, eq=False)
class Scorer:
    """The source's distinct records (quasi-identifiers first), their classes, and the weights of their values.

    `distances` gives, by attribute, how far each class's values lie from the table's; `sizes` the persons of each class.
    """

    cells: Cells
    classes: ClassTable
    tables: Mapping[str, WeightTable]
    distances: Mapping[str, Callable[[], np.ndarray]]
    sizes: np.ndarray | None = None

    @property
    def quasi(self) -> int:
        """How many quasi-identifiers there are."""
        return len(self.classes.columns)

    @cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """The weight of each code of each sensitive attribute."""
        names = self.cells.columns[self.quasi :]
        return {n: self.tables[n].of(self.cells.domains[self.quasi + i]) for i, n in enumerate(names)}

    @cached_property
    def factors(self) -> Factors:
        """The factors in the source; without quasi-identifiers, of the source as a published table."""
        if not self.quasi:
            return table_factors(self.cells, self.weights)
        return source_factors(self.cells, self.classes, self.weights, self.distances, self.sizes)

    @cached_property
    def index(self) -> CellIndex:
        return CellIndex(self.cells.codes, self.cells.domains)

    @property
    def whole(self) -> Published:
        """The source itself, as published."""
        return Published(np.arange(len(self.cells)), self.cells.records)

    def find(self, published: Cells, label: str, skip_unknown: bool = False) -> Published:
        """A published table's records in the source; one that is not there is an error, unless skipped."""
        place = self.index.find(published.codes, published.domains)
        known = place >= 0
        unknown = int(published.records[~known].sum())
        if unknown and not skip_unknown:
            raise DataError(
                f"{unknown:,} of the {published.records.sum():,} records of '{label}' are not in the source: no record "
                "there has the same quasi-identifiers and sensitive values. Scores are of subsets of the source. To "
                "score the rest, use --skip-unknown."
            )
        order = np.argsort(place[known], kind="stable")
        return Published(place[known][order], published.records[known][order], unknown)

    def factors_of(self, published: Published) -> tuple[Factors, np.ndarray]:
        """The factors that hold for a published table, and where its distinct records stand in them."""
        if self.quasi:
            return self.factors, published.chosen
        part = Cells(self.cells.columns, self.cells.domains, self.cells.codes[:, published.chosen], published.counts)
        return table_factors(part, self.weights), np.arange(len(published.chosen))

    def values(self, published: Published, options: Options) -> dict[str, float]:
        """The four scores of a published table."""
        factors, chosen = self.factors_of(published)
        return scores.score_cells(factors, chosen, published.counts, options)

    def score(self, published: Published | None = None, options: Options | None = None) -> ScoreResult:
        """Scores of a published table (by default of the whole source), normalized and explained."""
        options = options or Options()
        published = published or self.whole
        factors, chosen = self.factors_of(published)
        counts = published.counts
        values = scores.score_cells(factors, chosen, counts, options)
        exposed = np.minimum(1.0, factors.weight[chosen]) if options.cap else factors.weight[chosen]
        return ScoreResult(
            records=int(counts.sum()),
            source_records=int(self.cells.records.sum()),
            unknown_records=published.unknown,
            options=options,
            scores=scores.normalize(values, self._normalizers(options, int(counts.sum()))),
            from_weights=float((counts * exposed / factors.df_l[chosen]).sum()),
            from_closeness=float((counts * factors.df_t[chosen] / factors.df_l[chosen]).sum()),
            top_classes=scores.top_classes(factors, chosen, counts, SHOWN),
            top_values=scores.top_values(factors, chosen, counts, SHOWN),
            worst=scores.worst_records(factors, chosen, self.weights, SHOWN),
        )

    def _normalizers(self, options: Options, records: int) -> dict[str, float | None]:
        source = self.values(self.whole, options)
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

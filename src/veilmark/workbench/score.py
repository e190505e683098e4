"""The verbs score, compare, breach, explain and weights."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from veilmark.defaults import DRAWS, SPREAD
from veilmark.engines.base import Engine, Table
from veilmark.errors import DataError, StudyError
from veilmark.output import check_table_path, refuse_inputs, written_batches
from veilmark.privacy.models import class_distance
from veilmark.report import charts
from veilmark.score import ahp, datamodel
from veilmark.score.breach import Breach, assess
from veilmark.score.ranking import Ranking, rank
from veilmark.score.scorer import Scorer, capped
from veilmark.score.scores import Options, RecordScore, Scored, ScoreResult
from veilmark.score.weights import read_weights
from veilmark.study.opening import compare_by, engine_of, open_other, open_source, source_classes
from veilmark.study.study import Study
from veilmark.tables.cells import CellIndex, row_codes
from veilmark.tables.classes import ClassTable


def with_weights(study: Study, weights: Mapping[str, Mapping[str, Any]]) -> Study:
    """The study with other weights for some of its sensitive attributes."""
    attributes = dict(study.spec.attributes)
    for name, given in weights.items():
        attributes[name] = attributes[name].model_copy(update={"weights": dict(given)})
    return replace(study, spec=study.spec.model_copy(update={"attributes": attributes}))


def score(
    study: Study,
    published: Any = None,
    options: Options | None = None,
    records: str | os.PathLike[str] | None = None,
    skip_unknown: bool = False,
    chart: str | os.PathLike[str] | None = None,
) -> ScoreResult:
    """Score a published table, by default the whole source.

    `records` is a file for each record's score, `chart` one for a picture of the worst record's.
    """
    options = options or Options()
    if records is not None:
        check_table_path(Path(records))
        refuse_inputs(Path(records), [study.source()[0], published])
    if chart is not None:
        charts.check_path(Path(chart))
    with engine_of(study) as engine:
        table = open_source(engine, study)
        scorer = scorer_of(table, study)
        part, unknown = scorer.whole, 0
        if published is not None:
            table, part, unknown = find_published(engine, study, scorer, published, skip_unknown)
        result = scorer.score(part, options, unknown)
        with ExitStack() as outputs:
            if records is not None:
                rows = scored_batches(table, capped(part, options))
                outputs.enter_context(written_batches(rows, Path(records), scored_schema(table)))
            if chart is not None and result.worst:
                outputs.enter_context(charts.saved(charts.waterfall(result.worst[0]), Path(chart)))
    return result


def find_published(
    engine: Engine, study: Study, scorer: Scorer, published: Any, skip_unknown: bool
) -> tuple[Table, Scored, int]:
    """A published table, its records in the source, and how many of them are not there."""
    table = open_other(engine, study, published, scorer.cells.columns)
    return table, *scorer.find(table.group(scorer.cells.columns), table.label, skip_unknown)


def compare_scores(
    study: Study,
    published: Sequence[Any],
    options: Options | None = None,
    spread: float = SPREAD,
    draws: int = DRAWS,
    seed: int = 1,
    skip_unknown: bool = False,
) -> Ranking:
    """Rank candidate releases, and see how far the order survives when weights move."""
    with engine_of(study) as engine:
        scorer = scorer_of(open_source(engine, study), study)
        results, tables = {}, {}
        for i, data in enumerate(published):
            name = str(data) if isinstance(data, str | os.PathLike) else f"table {i + 1}"
            _, part, unknown = find_published(engine, study, scorer, data, skip_unknown)
            results[name], tables[name] = scorer.score(part, options, unknown), part
        return rank(results, tables, scorer.stated, spread, draws, seed)


def breach(study: Study, leaked: Any) -> Breach:
    """How bad a leak is; records that the source does not have are counted and left out."""
    with engine_of(study) as engine:
        scorer = scorer_of(open_source(engine, study), study)
        _, part, unknown = find_published(engine, study, scorer, leaked, skip_unknown=True)
        return assess(part, scorer.score(part, unknown=unknown))


def weights_from_ahp(
    matrices: Sequence[str | os.PathLike[str]],
    values: Mapping[str, str | os.PathLike[str]] | None = None,
    method: ahp.Method = "eigenvector",
    rescale: bool = False,
    chart: str | os.PathLike[str] | None = None,
) -> ahp.AhpResult | ahp.PanelResult | ahp.HierarchyResult:
    """Weights from one matrix, a panel of several, or attributes and the `values` within each."""
    read = [ahp.read_matrix(path) for path in matrices]
    result: ahp.AhpResult | ahp.PanelResult | ahp.HierarchyResult
    if values:
        within = {name: ahp.read_matrix(path) for name, path in values.items()}
        result = ahp.hierarchical(read[0], within, method, rescale)
    elif len(read) > 1:
        result = ahp.aggregate(read, method, rescale)
    else:
        result = ahp.priorities(read[0], method, rescale)
    if chart is not None:
        result.save_chart(chart)
    return result


def weights_from_model(
    path: str | os.PathLike[str], chart: str | os.PathLike[str] | None = None
) -> datamodel.DataModel:
    """Weights from a data model."""
    model = datamodel.read_model(path)
    if chart is not None:
        charts.save(charts.weights(model.weights()), Path(chart))
    return model


def scorer_of(table: Table, study: Study) -> Scorer:
    """The study's source, read and made ready to score against."""
    if not study.sensitive:
        raise StudyError(
            f"{study.name} has no sensitive attribute, so there is nothing to score. Give at least one column "
            "the role sensitive."
        )
    tables = {n: read_weights(n, study.spec.attributes[n].weights, study.folder) for n in study.sensitive}
    cells = table.group([*study.quasi, *study.sensitive])
    if not len(cells):
        raise DataError(f"'{table.label}' has column names but no records.")
    sizes = source_classes(table, study).size if study.person else None
    classes = ClassTable.of_cells(cells, len(study.quasi))
    hows = compare_by(study, classes)
    distances = {name: lambda name=name, how=how: class_distance(classes, name, how) for name, how in hows.items()}
    return Scorer(cells, classes, tables, distances, sizes)


def explain(study: Study, record: Mapping[str, object]) -> RecordScore:
    """One record of the source (its quasi-identifiers and sensitive values), its score taken apart."""
    with engine_of(study) as engine:
        return scorer_of(open_source(engine, study), study).explain(record)


SCORE_COLUMNS = ("weight", "df_k", "df_l", "df_t", "m", "l_severity", "tkl")


def scored_schema(table: Table) -> pa.Schema:
    """The columns of a table with its records' scores."""
    clash = [name for name in SCORE_COLUMNS if name in table.columns]
    if clash:
        raise DataError(
            f"'{table.label}' already has a column '{clash[0]}', which is needed for the scores. Rename it."
        )
    schema = table.sample(0).schema
    for name in SCORE_COLUMNS:
        schema = schema.append(pa.field(name, pa.int64() if name in ("df_k", "df_l") else pa.float64()))
    return schema


def scored_batches(table: Table, part: Scored) -> Iterator[pa.RecordBatch]:
    """The table's rows in their order, each with its factors and record scores."""
    factors = part.factors
    index = CellIndex(factors.cells.codes, factors.cells.domains)
    for batch in table.batches():
        place = index.find_codes(row_codes(batch, factors.cells.columns, factors.cells.domains))
        for name in SCORE_COLUMNS:
            batch = batch.append_column(name, pa.array(getattr(factors, name)[place], mask=place < 0))
        yield batch

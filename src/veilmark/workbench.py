"""The verbs. The command line and the web app call these and nothing below them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from veilmark import sample
from veilmark.cells import CellIndex, row_codes
from veilmark.classes import ClassTable
from veilmark.engines.duckdb import DuckDB, DuckTable
from veilmark.errors import DataError, OptionError, StudyError, did_you_mean
from veilmark.hierarchy import resolve
from veilmark.output import write_batches, write_table, write_text
from veilmark.privacy.closeness import equal_distance, hierarchical_distance, ordered_distance
from veilmark.privacy.measures import Measures, Sensitive, measure_classes, rank_values
from veilmark.report import charts
from veilmark.score import ahp, datamodel
from veilmark.score.breach import Breach, assess
from veilmark.score.ranking import Ranking, rank
from veilmark.score.scorer import Scorer
from veilmark.score.scores import Options, Scored, ScoreResult
from veilmark.score.weights import read_weights
from veilmark.study import Settings, Study

if TYPE_CHECKING:
    from veilmark.guess import Guess


@contextmanager
def engine_of(study: Study) -> Iterator[DuckDB]:
    """The study's engine, closed at the end."""
    with DuckDB(study.settings.threads, study.settings.memory) as engine:
        yield engine


def open_source(engine: DuckDB, study: Study) -> DuckTable:
    """The study's source table, with all the columns that the study names."""
    data, csv = study.source()
    table = engine.open(data, csv)
    named = [*study.spec.attributes, *([study.person] if study.person else [])]
    check_columns(table, named, study.name)
    return table


def open_other(engine: DuckDB, data: Any, needed: Sequence[str], why: str) -> DuckTable:
    """Another table (a file or a frame) that must have some columns."""
    table = engine.open(os.fspath(data) if isinstance(data, os.PathLike) else data)
    check_columns(table, needed, why)
    return table


def check_columns(table: DuckTable, needed: Sequence[str], why: str) -> None:
    """Every needed column is there, and holds plain values."""
    for name in needed:
        if name not in table.columns:
            raise DataError(
                f"'{table.label}' has no column '{name}', which {why} names.{did_you_mean(name, table.columns)} "
                f"Its columns are: {', '.join(list(table.columns)[:30])}."
            )
        if table.columns[name] == "nested":
            raise DataError(
                f"Column '{name}' of '{table.label}' holds lists, records or bytes. Veilmark compares plain values: "
                "flatten the column, or give it no role."
            )


def class_table(table: DuckTable, study: Study, sensitive: bool = True) -> ClassTable:
    """A table's classes by the study's quasi-identifiers, with or without its sensitive attributes."""
    who = study.person
    if who and (lacking := table.missing(who)):
        raise DataError(
            f"The person column '{who}' of '{table.label}' is empty in {lacking:,} records, so it is not known whose "
            "they are. Fill it in, remove those records, or drop `person` from the study."
        )
    classes = ClassTable.build(table, study.quasi, study.sensitive if sensitive else (), who)
    if not classes.total_records:
        raise DataError(f"'{table.label}' has column names but no records.")
    return classes


def compare_by(study: Study, classes: ClassTable) -> dict[str, Sensitive]:
    """How each sensitive attribute of the study is compared."""
    result = {}
    for name in study.sensitive:
        spec = study.spec.attributes[name]
        rank = rank_values(classes, name, spec.order)
        if spec.distance == "ordered" and rank is None:
            raise StudyError(
                f"'{name}' has distance: ordered, but its values are not all numbers. List them from low to high: "
                "order: [low, medium, high]."
            )
        domain = classes.histograms[name].domain
        levels = resolve(spec.hierarchy, domain, name, study.folder) if spec.hierarchy else None
        result[name] = Sensitive(spec.distance, rank, levels)
    return result


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
        needed = [*study.quasi, *study.sensitive, *([study.person] if study.person else [])]
        table = open_source(engine, study) if data is None else open_other(engine, data, needed, study.name)
        classes = class_table(table, study)
        people = None
        if population is not None:
            other = open_other(engine, population, study.quasi, study.name)
            people = ClassTable.build(other, study.quasi)
        return measure_classes(classes, compare_by(study, classes), people, population_size, threshold)


def open_study(path: str | os.PathLike[str], threads: int | None = None, memory: str | None = None) -> Study:
    """Read a study file; `threads` and `memory` limit the engine."""
    return Study.open(path, Settings(threads, memory))


def with_weights(study: Study, weights: Mapping[str, Mapping[str, Any]]) -> Study:
    """The study with other weights for some of its sensitive attributes."""
    attributes = dict(study.spec.attributes)
    for name, given in weights.items():
        attributes[name] = attributes[name].model_copy(update={"weights": dict(given)})
    return replace(study, spec=study.spec.model_copy(update={"attributes": attributes}))


def init(data: str | os.PathLike[str], output: str | os.PathLike[str], force: bool = False) -> list[Guess]:
    """Guess each column's role and hierarchy, and write the study file."""
    from veilmark.guess import guess_columns, study_text

    target = Path(output)
    if target.exists() and not force:
        raise OptionError(f"'{target}' exists already. Choose another name with -o, or replace it with --force.")
    with DuckDB() as engine:
        guesses = guess_columns(engine.open(os.fspath(data)))
    source = os.path.relpath(data, target.resolve().parent)
    write_text(target, study_text(source, guesses))
    return guesses


def make_sample(kind: str, output: str | os.PathLike[str], size: int, seed: int = 1) -> int:
    """Write a made-up table, and say how many records it has."""
    target = Path(output)
    if kind == "voters" and target.suffix == ".parquet":
        sample.write_voters(target, size, seed)
        return size
    table = sample.hospital(size, seed) if kind == "hospital" else sample.voters(size, seed)
    write_table(table, target)
    return len(table)


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
    with engine_of(study) as engine:
        table = open_source(engine, study)
        scorer = scorer_of(table, study)
        part, unknown = scorer.whole, 0
        if published is not None:
            table = open_other(engine, published, scorer.cells.columns, study.name)
            part, unknown = scorer.find(table.group(scorer.cells.columns), table.label, skip_unknown)
        result = scorer.score(part, options, unknown)
        if records is not None:
            write_batches(scored_batches(table, scorer, part), Path(records))
    if chart is not None:
        charts.save(charts.waterfall(result.worst[0]), Path(chart))
    return result


def compare_scores(
    study: Study,
    published: Sequence[Any],
    options: Options | None = None,
    spread: float = 0.2,
    draws: int = 1000,
    seed: int = 1,
    skip_unknown: bool = False,
) -> Ranking:
    """Rank candidate releases, and see how far the order survives when weights move."""
    with engine_of(study) as engine:
        scorer = scorer_of(open_source(engine, study), study)
        results, tables = {}, {}
        for i, data in enumerate(published):
            name = str(data) if isinstance(data, str | os.PathLike) else f"table {i + 1}"
            table = open_other(engine, data, scorer.cells.columns, study.name)
            part, unknown = scorer.find(table.group(scorer.cells.columns), table.label, skip_unknown)
            results[name], tables[name] = scorer.score(part, options, unknown), part
        return rank(results, tables, scorer.weights, spread, draws, seed)


def breach(study: Study, leaked: Any) -> Breach:
    """How bad a leak is; records that the source does not have are counted and left out."""
    with engine_of(study) as engine:
        scorer = scorer_of(open_source(engine, study), study)
        table = open_other(engine, leaked, scorer.cells.columns, study.name)
        part, unknown = scorer.find(table.group(scorer.cells.columns), table.label, skip_unknown=True)
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
        drawn: Mapping[str, Mapping[str, float]] = result
    elif len(read) > 1:
        result = ahp.aggregate(read, method, rescale)
        drawn = {"weights": result.result.by_name}
    else:
        result = ahp.priorities(read[0], method, rescale)
        drawn = {"weights": result.by_name}
    if chart is not None:
        charts.save(charts.weights(drawn), Path(chart))
    return result


def weights_from_model(
    path: str | os.PathLike[str], chart: str | os.PathLike[str] | None = None
) -> datamodel.DataModel:
    """Weights from a data model."""
    model = datamodel.read_model(path)
    if chart is not None:
        charts.save(charts.weights(model.weights()), Path(chart))
    return model


def scorer_of(table: DuckTable, study: Study) -> Scorer:
    """The study's source, read and made ready to score against."""
    if not study.sensitive:
        raise StudyError(
            f"{study.name} names no sensitive attribute, so there is nothing to misuse. Give one its role."
        )
    tables = {n: read_weights(n, study.spec.attributes[n].weights, study.folder) for n in study.sensitive}
    cells = table.group([*study.quasi, *study.sensitive])
    if not len(cells):
        raise DataError(f"'{table.label}' has column names but no records.")
    sizes = class_table(table, study, sensitive=False).size if study.person else None
    classes = ClassTable.of_cells(cells, len(study.quasi))
    hows = compare_by(study, classes)
    distances = {name: lambda name=name, how=how: class_distance(classes, name, how) for name, how in hows.items()}
    return Scorer(cells, classes, tables, distances, sizes)


def class_distance(classes: ClassTable, name: str, how: Sensitive) -> np.ndarray:
    """The distance of each class's values to the table's, as the study compares them."""
    if how.distance == "ordered" and how.rank is not None:
        return ordered_distance(classes, name, how.rank)
    if how.distance == "hierarchical" and how.levels is not None:
        return hierarchical_distance(classes, name, how.levels)
    return equal_distance(classes, name)


def scored_batches(table: DuckTable, scorer: Scorer, part: Scored) -> Iterator[pa.RecordBatch]:
    """The table's rows in their order, each with its factors and record scores."""
    factors = part.factors
    index = CellIndex(factors.cells.codes, factors.cells.domains)
    columns = {
        "weight": factors.weight,
        "df_k": factors.df_k,
        "df_l": factors.df_l,
        "df_t": factors.df_t,
        "m": factors.m,
        "l_severity": factors.l_severity,
        "tkl": factors.tkl,
    }
    for batch in table.batches():
        place = index.find_codes(row_codes(batch, factors.cells.columns, factors.cells.domains))
        for name, values in columns.items():
            batch = batch.append_column(name, pa.array(values[place], mask=place < 0))
        yield batch

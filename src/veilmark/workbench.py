"""The verbs. The command line and the web app call these and nothing below them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from veilmark import sample
from veilmark.classes import ClassTable
from veilmark.engines.duckdb import DuckDB, DuckTable
from veilmark.cells import row_codes
from veilmark.errors import DataError, OptionError, StudyError, did_you_mean
from veilmark.hierarchy import resolve
from veilmark.output import write_batches, write_table, write_text
from veilmark.privacy.closeness import equal_distance, hierarchical_distance, ordered_distance
from veilmark.privacy.measures import Measures, Sensitive, measure_classes, rank_values
from veilmark.score.scorer import Published, Scorer
from veilmark.score.scores import Options, ScoreResult
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
) -> ScoreResult:
    """Score a published table, by default the whole source; `records` writes each record's score to a file."""
    with engine_of(study) as engine:
        table = open_source(engine, study)
        scorer = scorer_of(table, study)
        part = scorer.whole
        if published is not None:
            table = open_other(engine, published, scorer.cells.columns, study.name)
            part = scorer.find(table.group(scorer.cells.columns), table.label, skip_unknown)
        result = scorer.score(part, options)
        if records is not None:
            write_batches(scored_batches(table, scorer, part), Path(records))
        return result


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


def scored_batches(table: DuckTable, scorer: Scorer, part: Published) -> Iterator[pa.RecordBatch]:
    """The table's rows in their order, each with its factors and record scores."""
    factors, chosen = scorer.factors_of(part)
    where = np.full(len(scorer.cells), -1)
    where[part.chosen] = chosen
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
        place = scorer.index.find_codes(row_codes(batch, scorer.cells.columns, scorer.cells.domains))
        place = np.where(place >= 0, where[place], -1)
        for name, values in columns.items():
            batch = batch.append_column(name, pa.array(values[place], mask=place < 0))
        yield batch

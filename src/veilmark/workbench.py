"""The verbs. The command line and the web app call these and nothing below them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from veilmark import sample
from veilmark.cells import CellIndex, row_codes
from veilmark.classes import ClassTable
from veilmark.domain import Domain
from veilmark.engines.duckdb import DuckDB, DuckTable
from veilmark.engines.files import find_files
from veilmark.errors import DataError, OptionError, StudyError, VeilmarkError, did_you_mean
from veilmark.hierarchy import IntervalSpec, Levels, resolve, write_arx
from veilmark.output import check_table_path, refuse_inputs, whole_file, write_table, write_text, written_batches
from veilmark.privacy.measures import Measures, Sensitive, measure_classes, rank_values
from veilmark.privacy.models import (
    Alpha,
    DistinctL,
    EntropyL,
    KAnonymity,
    PrivacyModel,
    RecursiveL,
    TCloseness,
    check_attributes,
    class_distance,
)
from veilmark.privacy.require import Requirement, check_requirements
from veilmark.report import charts
from veilmark.score import ahp, datamodel
from veilmark.score.breach import Breach, assess
from veilmark.score.ranking import Ranking, rank
from veilmark.score.scorer import Scorer, capped
from veilmark.score.scores import Options, RecordScore, Scored, ScoreResult
from veilmark.score.weights import read_weights
from veilmark.study import Settings, Study
from veilmark.veil.anonymize import Anonymized, Method, Plan, plan
from veilmark.veil.ola import Ola
from veilmark.veil.verify import Verified, verify

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


def open_other(engine: DuckDB, study: Study, data: Any, needed: Sequence[str]) -> DuckTable:
    """Another table (a file or a frame) that must have some columns; a CSV may be written as the study's source is."""
    source = os.fspath(data) if isinstance(data, os.PathLike) else data
    table = engine.open(source)
    form = study.source()[1]
    if form is not None and isinstance(source, str) and not set(needed) <= set(table.columns):
        table = engine.open(source, form)
    check_columns(table, needed, study.name)
    return table


def check_columns(table: DuckTable, needed: Sequence[str], why: str) -> None:
    """Every needed column is there, and holds plain values."""
    lacking = [name for name in needed if name not in table.columns]
    if lacking and len(lacking) == len(needed) > 1:
        raise DataError(
            f"'{table.label}' has none of the columns that {why} names, such as '{lacking[0]}'. Its first line must hold "
            "the column names; perhaps it holds data, or this is another table."
        )
    if lacking:
        raise DataError(
            f"'{table.label}' has no column '{lacking[0]}', which {why} names.{did_you_mean(lacking[0], table.columns)} "
            "Check its spelling, capital letters included."
        )
    nested = [name for name in needed if table.columns[name] == "nested"]
    if nested:
        raise DataError(
            f"Column '{nested[0]}' of '{table.label}' holds lists, records or bytes. Veilmark compares plain values: "
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


def resolve_quasi(study: Study, classes: ClassTable) -> list[Levels]:
    """The hierarchies of the quasi-identifiers on the data's values; what they do not cover is an error."""
    pairs = zip(classes.columns, classes.domains, strict=True)
    return [resolve(study.spec.attributes[name].hierarchy, domain, name, study.folder) for name, domain in pairs]


def hierarchy(study: Study, column: str, output: str | os.PathLike[str] | None = None) -> Levels:
    """An attribute's hierarchy on the data's values; `output` is a file for it in ARX's form."""
    if column not in study.spec.attributes:
        raise OptionError(f"{study.name} names no attribute '{column}'.{did_you_mean(column, study.spec.attributes)}")
    with engine_of(study) as engine:
        domain = open_source(engine, study).domain(column)
    levels = resolve(study.spec.attributes[column].hierarchy, domain, column, study.folder)
    if output is not None:
        write_arx(levels, output)
    return levels


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
        table = open_source(engine, study) if data is None else open_other(engine, study, data, needed)
        classes = class_table(table, study)
        if data is None:
            resolve_quasi(study, classes)
        people = None
        if population is not None:
            other = open_other(engine, study, population, study.quasi)
            people = ClassTable.build(
                other, study.quasi, person=study.person if study.person in other.columns else None
            )
        found = measure_classes(classes, compare_by(study, classes), people, population_size, threshold)
        unseen = [c for c in table.columns if c not in study.spec.attributes and c != study.person]
        return replace(found, unseen=tuple(unseen))


def require(measured: Measures, limits: Sequence[str]) -> list[Requirement]:
    """Whether a measured table meets limits such as `k=5`, `l.diagnosis=2` or `t.diagnosis=0.2`."""
    return check_requirements(measured, limits)


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
    refuse_inputs(target, find_files(os.fspath(data)))
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
    engine: DuckDB, study: Study, scorer: Scorer, published: Any, skip_unknown: bool
) -> tuple[DuckTable, Scored, int]:
    """A published table, its records in the source, and how many of them are not there."""
    table = open_other(engine, study, published, scorer.cells.columns)
    return table, *scorer.find(table.group(scorer.cells.columns), table.label, skip_unknown)


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


def explain(study: Study, record: Mapping[str, object]) -> RecordScore:
    """One record of the source (its quasi-identifiers and sensitive values), its score taken apart."""
    with engine_of(study) as engine:
        return scorer_of(open_source(engine, study), study).explain(record)


SCORE_COLUMNS = ("weight", "df_k", "df_l", "df_t", "m", "l_severity", "tkl")


def scored_schema(table: DuckTable) -> pa.Schema:
    """The columns of a table with its records' scores."""
    clash = [name for name in SCORE_COLUMNS if name in table.columns]
    if clash:
        raise DataError(
            f"'{table.label}' has a column '{clash[0]}' already, which the records' scores would stand under. Rename it."
        )
    schema = table.sample(0).schema
    for name in SCORE_COLUMNS:
        schema = schema.append(pa.field(name, pa.int64() if name in ("df_k", "df_l") else pa.float64()))
    return schema


def scored_batches(table: DuckTable, part: Scored) -> Iterator[pa.RecordBatch]:
    """The table's rows in their order, each with its factors and record scores."""
    factors = part.factors
    index = CellIndex(factors.cells.codes, factors.cells.domains)
    for batch in table.batches():
        place = index.find_codes(row_codes(batch, factors.cells.columns, factors.cells.domains))
        for name in SCORE_COLUMNS:
            batch = batch.append_column(name, pa.array(getattr(factors, name)[place], mask=place < 0))
        yield batch


def models_of(
    study: Study,
    k: int,
    l: Mapping[str, float],  # noqa: E741
    t: Mapping[str, float],
    alpha: Mapping[str, float],
    kinds: Mapping[str, Any],
) -> list[PrivacyModel]:
    """Privacy models from limits by attribute; `kinds` says what l counts, and the c of recursive l."""
    check = [*l, *t, *alpha]
    unknown = [name for name in check if name not in study.sensitive]
    if unknown:
        raise OptionError(
            f"'{unknown[0]}' is not a sensitive attribute of {study.name}.{did_you_mean(unknown[0], study.sensitive)} "
            "Limits such as l and t are about sensitive attributes."
        )
    with engine_of(study) as engine:
        hows = compare_by(study, class_table(open_source(engine, study), study)) if t else {}
    models: list[PrivacyModel] = [KAnonymity(k)]
    models += [_l_model(name, limit, kinds) for name, limit in l.items()]
    models += [TCloseness(name, limit, hows[name]) for name, limit in t.items()]
    return models + [Alpha(name, limit) for name, limit in alpha.items()]


def _l_model(name: str, limit: float, kinds: Mapping[str, Any]) -> PrivacyModel:
    if kinds["l"] == "entropy":
        return EntropyL(name, limit)
    if limit != int(limit):
        raise OptionError(f"l must be a whole number of values, not {limit:g}, unless it counts entropy.")
    return DistinctL(name, int(limit)) if kinds["l"] == "distinct" else RecursiveL(name, kinds["c"], int(limit))


def anonymize(
    study: Study,
    models: Sequence[PrivacyModel],
    output: str | os.PathLike[str],
    method: Method | None = None,
    recoding: str | os.PathLike[str] | None = None,
) -> Anonymized:
    """Find the least change that meets all models, write the release, and measure the written file.

    `recoding` is a file for the rules that were applied.
    """
    target = Path(output)
    check_table_path(target)
    refuse_inputs(target, [study.source()[0], recoding])
    check_attributes(models, study.sensitive)
    if not study.quasi:
        raise StudyError(
            f"{study.name} names no quasi-identifier, so there is nothing to generalize. Give one its role."
        )
    with engine_of(study) as engine:
        table = open_source(engine, study)
        classes = class_table(table, study)
        levels = resolve_quasi(study, classes)
        numeric = [
            is_number(study, name, domain) for name, domain in zip(classes.columns, classes.domains, strict=True)
        ]
        made = plan(classes, levels, numeric, models, method or Ola())
        if not len(made.sizes):
            raise OptionError("Every record would have to be suppressed. Relax the limits.")
        columns = [c for c in table.columns if c not in study.direct and c != study.person]
        with whole_file(target) as temporary:
            table.write_recoded(made.recoding, columns, temporary)
            found = verify(temporary, study.quasi, study.sensitive)
            check_release(found, classes, made, models)
            if recoding is not None:
                made.recoding.save(recoding)
    k = int(made.sizes.min()) if study.person else found.k
    return Anonymized(made, tuple(models), found.records, k, found, str(target), study.person is not None)


def is_number(study: Study, name: str, domain: Domain) -> bool:
    """Whether Mondrian cuts an attribute as numbers: they are numbers, and no hierarchy of categories is given."""
    spec = study.spec.attributes[name].hierarchy
    return domain.numbers is not None and (spec is None or isinstance(spec, IntervalSpec))


def check_release(found: Verified, classes: ClassTable, made: Plan, models: Sequence[PrivacyModel]) -> None:
    """The written file holds what was promised; if not, it is not published."""
    promised = {m.name: m for m in models}
    faults = []
    if found.records != classes.total_records - made.suppressed:
        faults.append(f"{found.records:,} records where {classes.total_records - made.suppressed:,} were to be written")
    if found.classes != len(made.sizes):
        faults.append(f"{found.classes:,} classes where there should be {len(made.sizes):,}")
    k = promised.get("k")
    if isinstance(k, KAnonymity) and found.k < k.k:
        faults.append(f"a class of {found.k}")
    for m in models:
        if isinstance(m, DistinctL) and found.distinct[m.attribute] < m.l:
            faults.append(f"a class with {found.distinct[m.attribute]} values of {m.attribute}")
        if isinstance(m, TCloseness) and m.how.distance == "equal" and found.t[m.attribute] > m.t + 1e-9:
            faults.append(f"t {found.t[m.attribute]:.4f} for {m.attribute}")
    if faults:
        raise VeilmarkError(
            f"The written file was measured anew and does not keep the promise ({'; '.join(faults)}), so it was not "
            "published. This should not happen: please report it."
        )

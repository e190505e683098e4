"""The verb anonymize: search, write, and measure what was written."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veilmark.defaults import ORDER, RECURSIVE_C, K, Order
from veilmark.errors import (
    OptionError,
    StudyError,
    VeilmarkError,
    VeilmarkWarning,
    did_you_mean,
)
from veilmark.messages import param
from veilmark.output import check_table_path, refuse_inputs, whole_file
from veilmark.privacy.missing import MissingCounted, missing_counted
from veilmark.privacy.models import (
    Alpha,
    BasicBeta,
    DeltaDisclosure,
    DeltaPresence,
    DistinctL,
    EnhancedBeta,
    EntropyL,
    KAnonymity,
    KMap,
    PrivacyModel,
    RecursiveL,
    TCloseness,
    check_attributes,
)
from veilmark.scratch import Scratch
from veilmark.study.columns import left_out_columns, published_columns, unchanged_columns, unnamed_columns
from veilmark.study.opening import (
    engine_of,
    open_source,
)
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable, Tally
from veilmark.tables.pseudonyms import Pseudonyms, read_key, write_key
from veilmark.tables.recoding import Recoding
from veilmark.veil.anonymize import Anonymized, Method, all_models
from veilmark.veil.ola import Ola
from veilmark.veil.planning import follow_distances, planned
from veilmark.veil.published import published_classes
from veilmark.veil.starting_classes import starting_classes
from veilmark.veil.verify import Verified, check_release, verify
from veilmark.workbench.anonymize_offer import local_offer, suppression_offer
from veilmark.workbench.row_order import check_order, row_order

File = str | os.PathLike[str]


@dataclass(frozen=True)
class Limits:
    """What a release must meet, as the command line takes it: of its classes, or by sensitive attribute."""

    k: int | None = K
    l: Mapping[str, float] = field(default_factory=dict)  # noqa: E741
    l_kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: float = RECURSIVE_C
    t: Mapping[str, float] = field(default_factory=dict)
    alpha: Mapping[str, float] = field(default_factory=dict)
    beta: Mapping[str, float] = field(default_factory=dict)
    beta_kind: Literal["basic", "enhanced"] = "basic"
    delta: Mapping[str, float] = field(default_factory=dict)
    k_map: int | None = None
    presence: tuple[float, float] | None = None


def models_of(study: Study, limits: Limits) -> list[PrivacyModel]:
    """The privacy models that limits stand for."""
    for name in (*limits.l, *limits.t, *limits.alpha, *limits.beta, *limits.delta):
        if name not in study.sensitive:
            raise OptionError(
                f"'{name}' is not a sensitive attribute of {study.name}.{did_you_mean(name, study.sensitive)} "
                "Limits such as l and t apply to sensitive attributes."
            )
    models: list[PrivacyModel] = [] if limits.k is None else [KAnonymity(limits.k)]
    models += [] if limits.k_map is None else [KMap(limits.k_map)]
    models += [] if limits.presence is None else [DeltaPresence(*limits.presence)]
    models += [_l_model(name, limit, limits) for name, limit in limits.l.items()]
    models += [TCloseness(name, limit) for name, limit in limits.t.items()]
    models += [Alpha(name, limit) for name, limit in limits.alpha.items()]
    beta = BasicBeta if limits.beta_kind == "basic" else EnhancedBeta
    models += [beta(name, limit) for name, limit in limits.beta.items()]
    return models + [DeltaDisclosure(name, limit) for name, limit in limits.delta.items()]


def _l_model(name: str, limit: float, limits: Limits) -> PrivacyModel:
    if limits.l_kind == "entropy":
        return EntropyL(name, limit)
    if limit != int(limit):
        raise OptionError(f"l must be a whole number, not {limit:g}. Only entropy l takes fractions.")
    return DistinctL(name, int(limit)) if limits.l_kind == "distinct" else RecursiveL(name, limits.c, int(limit))


def anonymize(
    study: Study,
    models: Sequence[PrivacyModel] = (),
    output: File | None = None,
    method: Method | None = None,
    recoding: File | None = None,
    population: Any = None,
    pseudonym_key: File | None = None,
    order: Order = ORDER,
    seed: int | None = None,
) -> Anonymized:
    """Find the least change that meets all models, write the release, and measure the written file.

    Models are those given and those that the method carries; t-closeness that names no distance of its own follows the
    study's. Without `output` the release is in the result. `recoding` is a file for the rules that were applied,
    `population` a file or a frame of everybody, `pseudonym_key` a file with the key of pseudonyms, made where there is
    none. Rows are shuffled, with a `seed` in the same way each time; `order` "keep" leaves them in the source's order.
    """
    method = method or Ola()
    wanted = all_models(models, method)
    _check(study, wanted, method, population)
    check_order(order, seed)
    check_paths([output, recoding, pseudonym_key], [study.source()[0], population])
    hidden = pseudonyms_of(study, pseudonym_key)
    with engine_of(study) as engine, release_path(output) as target:
        table = open_source(engine, study)
        classes, method = starting_classes(table, study, method)
        wanted = follow_distances(study, classes, wanted)
        made = planned(engine, study, classes, wanted, method, population)
        if population is None:
            asked = (study, classes, made, wanted, method)
            made = replace(made, local=local_offer(*asked), suppression=suppression_offer(*asked))
        columns = published_columns(study, table)
        made = replace(
            made, recoding=replace(made.recoding, models=tuple(m.to_dict() for m in wanted), published=tuple(columns))
        )
        kept_as = tuple(c for c in study.pseudonyms if c in columns)
        made = replace(made, recoding=replace(made.recoding, pseudonyms=kept_as))
        expected = (classes.total_records - made.suppressed, len(made.sizes))
        with whole_file(target) as temporary:
            rows = row_order(order, seed, expected[0])
            table.write_recoded(made.recoding, columns, temporary, hidden, rows)
            unchanged = unchanged_columns(study, columns)
            found = measure_release(temporary, study, wanted, classes, expected, made.people, columns, unchanged)
            keep_key(hidden, pseudonym_key)
            if recoding is not None:
                made.recoding.save(recoding)
        by_missing = counted_as_values(classes, made.recoding, wanted)
        warn_of_wanderers(study, made.tally)
        kept = None if output is not None else pq.read_table(target)
    k = int(made.sizes.min()) if study.person else found.k
    written = None if output is None else str(output)
    as_is, left_out = unnamed_columns(study, columns), left_out_columns(study, table.columns)
    of_persons = study.person is not None
    columns_told = (as_is, left_out, by_missing)
    return Anonymized(made, tuple(wanted), found.records, k, found, written, of_persons, kept, *columns_told)


def counted_as_values(classes: ClassTable, recoding: Recoding, models: Sequence[PrivacyModel]) -> MissingCounted:
    """The published classes that meet a limit only because a missing value counts as a value."""
    lacking = [name for name, of in classes.histograms.items() if of.domain.missing is not None]
    doubtful = [m for m in models if m.attribute in lacking]
    return missing_counted(published_classes(classes, recoding), doubtful) if doubtful else {}


# What is asked for.


def _check(study: Study, models: Sequence[PrivacyModel], method: Method, population: Any) -> None:
    check_attributes(models, study.sensitive)
    if not study.quasi:
        raise StudyError(
            f"{study.name} has no quasi-identifier, so there is nothing to generalize. Give at least one "
            "column the role quasi."
        )
    compared = [m for m in models if isinstance(m, KMap | DeltaPresence)]
    if compared and population is None:
        raise OptionError(
            f"'{compared[0]}' needs a population, but none is given. Give one with {param('population')}."
        )
    if population is not None and not compared:
        raise OptionError(
            f"A population is given, but no condition uses it. Add {param('k_map')} or {param('presence')}, "
            "or omit the population."
        )
    if isinstance(method, Ola) and method.weights and method.loss in ("dm", "dm_star"):
        raise OptionError(
            f"The loss {method.loss} depends on class sizes and ignores weights of attributes. Choose another "
            "loss, such as gcp, or omit the weights."
        )
    if isinstance(method, Ola) and method.unit == "persons" and study.person is None:
        raise StudyError(f"Suppression cannot count persons: {study.name} has no person column (person: …).")


def check_paths(outputs: Sequence[File | None], inputs: Sequence[Any]) -> None:
    """The first output is a table; no output is an input, nor another output."""
    paths = [Path(path) for path in outputs if path is not None]
    if outputs[0] is not None:
        check_table_path(Path(outputs[0]))
    for i, path in enumerate(paths):
        refuse_inputs(path, inputs)
        if any(os.path.realpath(path) == os.path.realpath(other) for other in paths[:i]):
            raise OptionError(f"'{path}' is used for two outputs. Name another file for one of them.")


def pseudonyms_of(study: Study, key_file: File | None) -> Pseudonyms | None:
    """The columns to be published as pseudonyms, with the key in the file, where there is one, or a new one."""
    columns = tuple(study.pseudonyms)
    if not columns:
        if key_file is not None:
            raise OptionError(
                f"A key for pseudonyms is given, but {study.name} has no pseudonyms. Say which direct identifier "
                "to keep as a pseudonym: {role: direct, keep: pseudonym}."
            )
        return None
    if key_file is not None and Path(key_file).exists():
        return Pseudonyms(columns, read_key(Path(key_file)))
    return Pseudonyms(columns)


def keep_key(hidden: Pseudonyms | None, key_file: File | None) -> None:
    """Write a key that is to be kept and was not read from there."""
    if hidden is not None and key_file is not None and not Path(key_file).exists():
        write_key(Path(key_file), hidden.key)


# What is written.


@contextmanager
def release_path(output: File | None) -> Iterator[Path]:
    """Where to write a release: the file asked for, or one that is gone afterwards."""
    if output is not None:
        yield Path(output)
        return
    with Scratch() as folder:
        yield folder / "release.parquet"


def measure_release(
    path: Path,
    study: Study,
    models: Sequence[PrivacyModel],
    classes: ClassTable,
    expected: tuple[int, int],
    people: pa.Table | None = None,
    columns: Sequence[str] | None = None,
    unchanged: Sequence[str] = (),
) -> Verified:
    """Measure a written file, which must meet the models and have the records, classes and columns expected; `unchanged`
    columns are looked at for the records that each makes unique."""
    if columns is not None and written_columns(path) != list(columns):
        raise VeilmarkError(
            "The written file does not have the expected columns, so it was not published. This is a bug in "
            "veilmark. Please report it."
        )
    limits = [_limit(m, classes) for m in models]
    persons, settings = study.person is not None, study.settings
    others = [c for c in unchanged if c not in study.sensitive]
    resources = (settings.threads, settings.memory)
    found = verify(path, study.quasi, study.sensitive, limits, people, persons, *resources, others)
    check_release(found, *expected, limits)
    return found


def written_columns(path: Path) -> list[str]:
    """The columns of a file, as it names them itself."""
    if path.suffix == ".parquet":
        parts = sorted(path.iterdir()) if path.is_dir() else [path]
        found = {tuple(pq.read_schema(part).names) for part in parts}
        return list(found.pop()) if len(found) == 1 else []
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file), [])


def _limit(model: PrivacyModel, classes: ClassTable) -> dict[str, Any]:
    """A model as `verify` takes it: plain values, with the order or the hierarchy that t compares by."""
    limit = model.to_dict()
    if not isinstance(model, TCloseness):
        return limit
    text, how = classes.histograms[model.attribute].domain.text, model.how
    if how.distance == "ordered" and how.rank is not None:
        limit["order"] = text.take(pa.array(how.rank.argsort())).to_pylist()
    if how.distance == "hierarchical" and how.levels is not None:
        above = (how.levels.of_values(level).to_pylist() for level in range(1, how.levels.height + 1))
        limit["paths"] = dict(zip(text.to_pylist(), map(list, zip(*above, strict=True)), strict=True))
    return limit


def warn_of_wanderers(study: Study, published: Tally) -> None:
    """Persons in several classes, whom a published pseudonym links together."""
    wanderers = int((np.unique(published.wander_person, return_counts=True)[1] > 1).sum())
    if wanderers and study.person in study.pseudonyms:
        warnings.warn(
            f"{wanderers:,} persons have records in several classes, linked by their pseudonym in "
            f"'{study.person}'. Anyone who knows several of these classes may identify the person, whatever k is. "
            "Remove the pseudonym, or give each person one value of each quasi-identifier.",
            VeilmarkWarning,
            stacklevel=4,
        )

"""The verb anonymize: search, write, and measure what was written."""

from __future__ import annotations

import csv
import math
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
import yaml

from veilmark.classes import ClassTable, Tally
from veilmark.defaults import ORDER, RECURSIVE_C, SECONDS, K, Order
from veilmark.engines.base import Engine
from veilmark.errors import (
    DataError,
    HierarchyError,
    OptionError,
    StudyError,
    VeilmarkError,
    VeilmarkWarning,
    did_you_mean,
)
from veilmark.hierarchy import Levels
from veilmark.messages import param, template_of
from veilmark.output import check_table_path, refuse_inputs, whole_file
from veilmark.privacy.measures import Sensitive
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
from veilmark.study import Study
from veilmark.veil.anonymize import Anonymized, Method, Plan, all_models, link, plan
from veilmark.veil.ola import LARGEST_LATTICE, Ola, level_bounds
from veilmark.veil.possible import refuse_impossible
from veilmark.veil.pseudonyms import Pseudonyms, read_key, write_key
from veilmark.veil.published import published_classes
from veilmark.veil.recoding import Recoding
from veilmark.veil.verify import Verified, check_release, verify
from veilmark.workbench.columns import left_out_columns, published_columns, unchanged_columns, unnamed_columns
from veilmark.workbench.offering import local_offer, suppression_offer
from veilmark.workbench.ordering import check_order, row_order
from veilmark.workbench.rolling import starting_classes
from veilmark.workbench.sources import (
    class_table,
    compare_by,
    engine_of,
    is_number,
    open_other,
    open_source,
    resolve_quasi,
)

File = str | os.PathLike[str]

MANY_NUMBERS = 1_000
"""More different numbers than that need a hierarchy."""
FEW_VALUES, NEARLY_UNIQUE = 100, 0.5
"""A quasi-identifier with more values than these, and than this share of the records, tells records apart by itself."""
STEPS = 200
"""Intervals are offered for a range of at least so many units."""


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


def follow_distances(study: Study, classes: ClassTable, models: Sequence[PrivacyModel]) -> list[PrivacyModel]:
    """The models, t-closeness by the study's distances where it is not given how to compare."""
    if not any(isinstance(m, TCloseness) for m in models):
        return list(models)
    hows = compare_by(study, classes)
    return [replace(m, how=hows[m.attribute]) if isinstance(m, TCloseness) and _is_plain(m.how) else m for m in models]


def _is_plain(how: Sensitive) -> bool:
    return how.distance == "equal" and how.rank is None and how.levels is None


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


# The search.


def planned(
    engine: Engine, study: Study, classes: ClassTable, models: Sequence[PrivacyModel], method: Method, population: Any
) -> Plan:
    levels = resolve_quasi(study, classes)
    hints = [*_hints(study, classes, method), *_too_many(classes, levels, method)]
    table = classes
    if population is not None:
        table = link(classes, people_classes(engine, study, population))
        try:
            levels = resolve_quasi(study, table)
        except HierarchyError as error:
            raise HierarchyError(f"In the population: {template_of(error)}") from None
    refuse_impossible(table, models)
    numeric = [is_number(study, name, domain) for name, domain in zip(table.columns, table.domains, strict=True)]
    try:
        made = plan(table, levels, numeric, models, method)
    except OptionError as error:
        raise OptionError(" ".join([template_of(error), *(hints if isinstance(method, Ola) else [])])) from None
    if not len(made.sizes):
        raise OptionError("Every record would have to be suppressed. Relax the limits.")
    for hint in hints:
        warnings.warn(hint, VeilmarkWarning, stacklevel=4)
    return made if population is None else replace(made, recoding=made.recoding.on(classes.domains))


def people_classes(engine: Engine, study: Study, population: Any) -> ClassTable:
    """The classes of a population table; persons are counted where it has the study's person column."""
    other = open_other(engine, study, population, study.quasi)
    if study.person not in other.columns:
        return ClassTable.build(other, study.quasi)
    people = class_table(other, study, sensitive=False)
    if len(people.tally.wander_group):
        raise DataError(
            f"Some persons of '{other.label}' have records with different quasi-identifiers, so their class is "
            "ambiguous. Keep one record of each person."
        )
    return people


def _hints(study: Study, classes: ClassTable, method: Method) -> list[str]:
    """What is likely not meant so: numbers that OLA can only keep or hide, and columns that are nearly unique."""
    hints = []
    for name, domain in zip(classes.columns, classes.domains, strict=True):
        bare = study.spec.attributes[name].hierarchy is None
        if bare and isinstance(method, Ola) and domain.numbers is not None and len(domain) > MANY_NUMBERS:
            hints.append(
                f"'{name}' has {len(domain):,} different numbers and no hierarchy, so OLA can only keep all or "
                f"replace all by *. Add this to attributes: in {study.name}: {_offer(name, domain.numbers)}"
            )
        elif len(domain) > max(FEW_VALUES, NEARLY_UNIQUE * classes.total_records):
            hints.append(
                f"'{name}' has {len(domain):,} values in {classes.total_records:,} records, so most records are "
                "unique by it. If it identifies persons by itself, give it the role direct."
            )
    return hints


def _too_many(classes: ClassTable, levels: Sequence[Levels], method: Method) -> list[str]:
    """What becomes of a search that cannot try all."""
    if not isinstance(method, Ola) or method.seconds is not None:
        return []
    size = level_bounds(classes, levels, method).size
    if size <= LARGEST_LATTICE:
        return []
    return [
        f"{len(classes.columns)} quasi-identifiers have about 10^{len(str(size)) - 1} combinations of "
        "generalization levels, too many to try all. The search starts at the top, goes down step by step for at "
        f"most {SECONDS:g} seconds, and takes the best result. To keep more of each column, make fewer columns "
        "quasi-identifiers."
    ]


def _offer(name: str, numbers: np.ndarray) -> str:
    """A line of a study file, with intervals that fit the numbers' range."""
    from veilmark.guess.hierarchies import nested_widths

    span = float(np.nanmax(numbers) - np.nanmin(numbers))
    finer = max(0, math.ceil(math.log10(STEPS / span)))
    widths = [width if not finer else float(f"{width / 10**finer:g}") for width in nested_widths(span * 10**finer)]
    line = {name: {"role": "quasi", "hierarchy": {"intervals": widths}}}
    return yaml.safe_dump(line, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1000).strip()[1:-1]


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

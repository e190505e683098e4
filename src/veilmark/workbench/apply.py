"""The verb apply: a saved recoding on new data of the same study.

What the recoding does not know is left out. What it knows may be too rare in the new data, so that classes are counted
again, and those that fail the recoding's models are left out too.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veilmark.defaults import ORDER, Order
from veilmark.errors import DataError, HierarchyError, OptionError, StudyError, VeilmarkWarning, listing
from veilmark.hierarchy import TOP, HierarchySpec, Levels, resolve
from veilmark.hierarchy.levels import UncoveredError
from veilmark.messages import param
from veilmark.output import whole_file
from veilmark.privacy import models as known_models
from veilmark.privacy.models import KAnonymity, PrivacyModel, failing_classes
from veilmark.readable import Grid, Readable, Summary
from veilmark.study.columns import is_published, left_out_columns, unchanged_columns
from veilmark.study.opening import check_columns, class_table, engine_of, open_other, open_source
from veilmark.study.study import Study
from veilmark.tables import recoding as recodings
from veilmark.tables.cells import CellIndex
from veilmark.tables.classes import ClassTable, Tally
from veilmark.tables.domain import Domain
from veilmark.tables.framed import Framed
from veilmark.tables.recoding import Recoding
from veilmark.veil.anonymize import read_release
from veilmark.veil.planning import follow_distances
from veilmark.veil.verify import Verified
from veilmark.workbench.anonymize import (
    File,
    check_paths,
    keep_key,
    measure_release,
    pseudonyms_of,
    release_path,
    warn_of_wanderers,
)
from veilmark.workbench.row_order import check_order, row_order

Unknown = Literal["leave-out", "error"]

MAKE_ANEW = f"Make a new one: run anonymize with {param('recoding')}."

MODELS: dict[str, Any] = {
    m.name: m
    for m in (
        known_models.KAnonymity,
        known_models.DistinctL,
        known_models.EntropyL,
        known_models.RecursiveL,
        known_models.Alpha,
        known_models.TCloseness,
        known_models.BasicBeta,
        known_models.EnhancedBeta,
        known_models.DeltaDisclosure,
    )
}
"""The models that data can be held to without a population, by the name under which they are saved."""


@dataclass(frozen=True, eq=False)
class Applied(Readable, Framed):
    """New data with a recoding applied, and what the written file says of itself.

    `left_out` are the records that are not in the file, `unknown` those of them whose values the recoding does not know.
    Where the study names persons, `k` counts them, as in the data; the file shows only `verified.k` records.
    """

    records: int
    left_out: int
    unknown: int
    k: int
    models: tuple[PrivacyModel, ...]
    verified: Verified
    output: str | None
    of_persons: bool = False
    data: pa.Table | None = None
    columns_left_out: tuple[str, ...] = ()
    """Columns of the data that are not published because the study does not name them."""

    def __repr__(self) -> str:
        return f"Applied({self.records:,} records, k = {self.k}; {self.left_out:,} left out, {self.unknown:,} unknown)"

    def summary(self) -> Summary:
        rows = [
            ("records", self.records),
            ("left out", self.left_out),
            ("of which with unknown values", self.unknown),
            ("classes", self.verified.classes),
        ]
        headline = f"A recoding applied: k = {self.k:,}, in {'persons' if self.of_persons else 'records'}."
        return Summary(headline, (Grid(("", "count"), rows),), [f"Written to {self.output}."] if self.output else ())

    def table(self) -> pa.Table:
        """The release; of a CSV file all columns are texts."""
        return read_release(self.output, self.data)

    def to_dict(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "left_out": self.left_out,
            "unknown": self.unknown,
            "classes": self.verified.classes,
            "k": self.k,
            "k_records": self.verified.k,
            "models": [m.to_dict() for m in self.models],
            "columns_left_out": list(self.columns_left_out),
            "unchanged": {name: of.to_dict() for name, of in self.verified.unchanged.items()},
            "output": self.output,
        }


def apply(
    study: Study,
    recoding: Recoding | File,
    output: File | None = None,
    data: Any = None,
    k: int | None = None,
    suppress: bool = True,
    unknown: Unknown = "leave-out",
    pseudonym_key: File | None = None,
    order: Order = ORDER,
    seed: int | None = None,
) -> Applied:
    """Write `data` (by default the study's source) as the recoding says, and measure the file.

    Classes that fail the models of the recoding in this data are left out; `k` takes the place of the recoding's own, and
    without `suppress` they stay. Values that the recoding does not know are generalized by the study's hierarchy, where
    the recoding has levels; records for which that cannot be are left out or, with `unknown` "error", refused.
    `order` and `seed` are those of `anonymize`.
    """
    saved = None if isinstance(recoding, Recoding) else recoding
    rules = recoding if isinstance(recoding, Recoding) else Recoding.open(recoding)
    check_order(order, seed)
    check_paths([output, pseudonym_key], [study.source()[0], data, saved])
    _check_study(study, rules)
    hidden = pseudonyms_of(study, pseudonym_key)
    with engine_of(study) as engine, release_path(output) as target:
        columns = [c for c in rules.published if is_published(study, c)]
        needed = [*columns, *([study.person] if study.person else [])]
        table = open_source(engine, study) if data is None else open_other(engine, study, data, needed)
        check_columns(table, needed, "the recoding")
        classes = class_table(table, study)
        models = follow_distances(study, classes, _models(rules, k) if suppress else [])
        fitted = _fit(study, rules, classes)
        if unknown == "error":
            fitted.refuse_unknown(classes)
        made, tally = _kept(fitted, classes, models)
        with whole_file(target) as temporary:
            expected = (int(tally.records.sum()), len(tally))
            table.write_recoded(made, columns, temporary, hidden, row_order(order, seed, expected[0]))
            unchanged = unchanged_columns(study, columns)
            found = measure_release(temporary, study, models, classes, expected, None, columns, unchanged)
            keep_key(hidden, pseudonym_key)
        warn_of_wanderers(study, tally)
        kept = None if output is not None else pq.read_table(target)
    return Applied(
        found.records,
        classes.total_records - found.records,
        int(classes.records[~fitted.known].sum()),
        int(tally.size.min()) if study.person else found.k,
        tuple(models),
        found,
        None if output is None else str(output),
        study.person is not None,
        kept,
        left_out_columns(study, table.columns),
    )


def _check_study(study: Study, rules: Recoding) -> None:
    """The recoding is of this study's quasi-identifiers."""
    if set(rules.columns) != set(study.quasi):
        raise DataError(
            f"The recoding is for {listing(rules.columns)}, but the quasi-identifiers in {study.name} are "
            f"{listing(study.quasi)}. Use the study that the recoding was made with."
        )
    if not rules.published:
        raise DataError(f"The recoding does not say which columns to publish. {MAKE_ANEW}")
    if lost := [c for c in rules.pseudonyms if c not in study.pseudonyms]:
        raise StudyError(
            f"The recoding publishes '{lost[0]}' as a pseudonym, but {study.name} no longer does. Add `{lost[0]}: "
            "{role: direct, keep: pseudonym}` to it again."
        )
    bare = [c for c in rules.published if c in (*study.direct, study.person) and c not in study.pseudonyms]
    if bare:
        raise StudyError(f"The recoding publishes {listing(bare)}, but {study.name} does not. Make the recoding again.")


def _models(rules: Recoding, k: int | None) -> list[PrivacyModel]:
    """The models that the recoding was made for, k replaced where it is given."""
    try:
        found = [_model(saved) for saved in rules.models if saved["model"] in MODELS]
        beyond = [str(saved["model"]) for saved in rules.models if saved["model"] not in MODELS]
    except (KeyError, TypeError):
        raise DataError(f"The recoding's models cannot be read. {MAKE_ANEW}") from None
    if beyond:
        warnings.warn(
            f"The recoding was made for {listing(beyond)}, which needs a population and is not checked here. To "
            f"check it, run measure on the output with {param('population')}.",
            VeilmarkWarning,
            stacklevel=4,
        )
    if k is None:
        return found
    return [KAnonymity(k), *(m for m in found if not isinstance(m, KAnonymity))]


def _model(saved: Mapping[str, Any]) -> PrivacyModel:
    limits = {key: value for key, value in saved.items() if key not in ("model", "distance")}
    made: PrivacyModel = MODELS[saved["model"]](**limits)
    return made


# What becomes of each class of the data.


@dataclass(frozen=True, eq=False)
class _Fitted:
    """The classes that the recoding knows, those of them that it leaves out (masks), and the labels of all classes,
    attribute by attribute; of those unknown the labels mean nothing. `strange` are the values by column that are at
    fault."""

    known: np.ndarray
    suppressed: np.ndarray
    labels: tuple[pa.Array, ...]
    strange: Mapping[str, list[Any]]

    def refuse_unknown(self, classes: ClassTable) -> None:
        lost = int(classes.records[~self.known].sum())
        if not lost:
            return
        column, values = next(iter(self.strange.items()), (None, []))
        what = f"combinations of values without a class: {lost:,} records"
        if column is not None:
            what = (
                f"values of '{column}' that are neither in the recoding nor in the study's hierarchy: {listing(values)}"
            )
        raise DataError(
            f"The recoding does not fit the data, which have {what}. Correct the data, make a new recoding from "
            f"them, or suppress these records with {param('unknown', 'leave-out')}."
        )


def _fit(study: Study, rules: Recoding, classes: ClassTable) -> _Fitted:
    order = [rules.columns.index(c) for c in classes.columns]
    if rules.local:
        return _fit_local(rules, order, classes)
    known, labels, groups, strange = np.ones(len(classes), dtype=bool), [], [], {}
    for i, name, domain, codes in zip(order, classes.columns, classes.domains, classes.codes, strict=True):
        values = _value_labels(study, rules, i, domain)
        fits = values.known[codes]
        if not fits.all():
            strange[name] = domain.text.filter(pa.array(~values.known)).to_pylist()
        known &= fits
        labels.append(values.labels.take(pa.array(codes)))
        groups.append(values.groups[codes])
    places = CellIndex(rules.classes[order], [Domain(rules.labels[i], rules.labels[i]) for i in order])
    return _Fitted(known, places.find_codes(np.array(groups)) >= 0, tuple(labels), strange)


def _fit_local(rules: Recoding, order: Sequence[int], classes: ClassTable) -> _Fitted:
    """A local recoding knows the classes that it was made of, and no others."""
    index = CellIndex(rules.classes[order], [rules.domains[i] for i in order])
    place = index.find(classes.codes, classes.domains)
    known = place >= 0
    empty = pa.array(np.where(known, place, 0), mask=~known)
    labels = tuple((rules.class_labels or ())[i].take(empty) for i in order)
    return _Fitted(known, np.zeros(len(classes), dtype=bool), labels, {})


@dataclass(frozen=True, eq=False)
class _Values:
    """For each value of a domain: its label, the recoding's number of it (-1 where it is a new label), and whether the
    value is known."""

    labels: pa.Array
    groups: np.ndarray
    known: np.ndarray


def _value_labels(study: Study, rules: Recoding, i: int, domain: Domain) -> _Values:
    """The labels of a column's values; those that the recoding has not seen get theirs from the study's hierarchy."""
    name, old, codes = rules.columns[i], rules.domains[i], rules.codes[i]
    place = old.codes_of(domain.text)
    seen = place >= 0
    groups = np.full(len(domain), -1, dtype=np.int32)
    groups[seen] = codes[place[seen]]
    if seen.all():
        return _Values(rules.labels[i].take(pa.array(groups)), groups, seen)
    if _at_the_top(study, rules, i):
        groups[:] = codes[0]
        return _Values(rules.labels[i].take(pa.array(groups)), groups, np.ones(len(domain), dtype=bool))
    new = domain.text.filter(pa.array(~seen)).cast(pa.string())
    union = Domain.of(pa.concat_arrays([old.text.cast(pa.string()), new]), name)
    levels, covered = _tolerant(study.spec.attributes[name].hierarchy, union, name, study, rules.levels[name])
    at = levels.codes[rules.levels[name]]
    group_of = _same_groups(at[union.codes_of(old.text)], codes, len(levels.labels[rules.levels[name]]), name, study)
    fresh = union.codes_of(new)
    groups[~seen] = group_of[at[fresh]]
    labels = rules.labels[i].take(pa.array(groups, mask=groups < 0))
    own = levels.labels[rules.levels[name]].take(pa.array(at[union.codes_of(domain.text)]))
    known = seen.copy()
    known[~seen] = covered[fresh]
    return _Values(pc.if_else(pa.array(groups >= 0), labels, own), groups, known)


def _at_the_top(study: Study, rules: Recoding, i: int) -> bool:
    """Whether the recoding hides a column: then every value has its one label, also one that makes the hierarchy higher."""
    name, codes = rules.columns[i], rules.codes[i]
    if not len(codes) or (codes != codes[0]).any():
        return False
    try:
        levels = resolve(study.spec.attributes[name].hierarchy, rules.domains[i], name, study.folder)
    except HierarchyError:
        return False
    return rules.levels[name] == levels.height


def _tolerant(
    spec: HierarchySpec | None, domain: Domain, name: str, study: Study, level: int
) -> tuple[Levels, np.ndarray]:
    """The levels of values of which some may not be covered, and a mask of those that are."""
    try:
        levels = resolve(spec, domain, name, study.folder)
        covered = np.ones(len(domain), dtype=bool)
    except UncoveredError as lacking:
        if spec is None or not hasattr(spec, "others"):
            raise
        levels = resolve(spec.model_copy(update={"others": TOP}), domain, name, study.folder)
        covered = lacking.covered
    if level > levels.height:
        raise _changed(name, study)
    return levels, covered if level < levels.height else np.ones(len(domain), dtype=bool)


def _same_groups(now: np.ndarray, then: np.ndarray, labels: int, name: str, study: Study) -> np.ndarray:
    """For each label of the study's level the recoding's number of it, or -1; both must group the values alike."""
    group_of = np.full(labels, -1, dtype=np.int32)
    group_of[now] = then
    if (group_of[now] != then).any() or len(np.unique(now)) != len(np.unique(then)):
        raise _changed(name, study)
    return group_of


def _changed(name: str, study: Study) -> StudyError:
    return StudyError(
        f"The hierarchy of '{name}' in {study.name} differs from the one that the recoding was made with. Restore "
        "it, or make the recoding again."
    )


def _kept(fitted: _Fitted, classes: ClassTable, models: Sequence[PrivacyModel]) -> tuple[Recoding, Tally]:
    """The recoding of just these data, and the sizes of the classes that it publishes."""
    stay = fitted.known & ~fitted.suppressed
    coded = [labels.filter(pa.array(stay)).dictionary_encode(null_encoding="encode") for labels in fitted.labels]
    codes = np.array([c.indices.to_numpy() for c in coded], dtype=np.int32).reshape(len(coded), -1)
    domains = [Domain(c.dictionary, c.dictionary) for c in coded]
    merged = classes.take(stay).merge(codes, domains)
    failing = failing_classes(models, merged)
    if failing.all():
        raise OptionError(
            "All records would be suppressed: their values are not in the recoding, or every class is too small. "
            f"Make a new recoding from these data, or lower {param('k')}."
        )
    part = CellIndex(merged.codes, domains).find_codes(codes)
    stay[stay] = ~failing[part]
    chosen = pa.array(stay)
    made = recodings.local(
        classes.take(stay), np.arange(int(stay.sum())), [labels.filter(chosen) for labels in fitted.labels]
    )
    return made, merged.tally.take(~failing)

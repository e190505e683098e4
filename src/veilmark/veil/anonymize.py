"""Anonymize: from classes to a recoding, by the method asked for, and what became of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.charted import Charted
from veilmark.classes import ClassTable, Tally
from veilmark.domain import Domain
from veilmark.engines import engine_for
from veilmark.errors import DataError, OptionError, StudyError, listing
from veilmark.hierarchy import Levels
from veilmark.privacy.measures import count_sizes
from veilmark.privacy.models import KAnonymity, PrivacyModel
from veilmark.utility.local import local_by_attribute, local_losses
from veilmark.utility.loss import NodeLoss, untouched
from veilmark.veil import mondrian, ola, recoding
from veilmark.veil.microaggregate import mdav, means, v_mdav
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Evaluated, Ola
from veilmark.veil.recoding import Recoding
from veilmark.veil.verify import Verified

MOST_GROUPED = 200_000
"""Microaggregation of several attributes takes time with the square of the classes: minutes for so many."""

DIGITS = 6
"""Digits of a mean, counted from the first one of the attribute's largest number."""


@dataclass(frozen=True)
class Microaggregation:
    """Numbers in groups of at least k that are as alike as can be, each replaced by its group's mean.

    `gamma` None gives groups of k (MDAV), a number groups of k to 2k-1 (V-MDAV): 0.2 suits scattered data, 1.1 clustered.
    """

    gamma: float | None = None
    k: int | None = field(default=None, kw_only=True)
    models: tuple[PrivacyModel, ...] = field(default=(), kw_only=True)


Method = Ola | Mondrian | Microaggregation


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to become of a table: the recoding, how many records it leaves out, the loss by every metric, the `tally` of
    the classes it publishes, of OLA the nodes it tried, out of how many (`lattice`) and by which `metric`, and the labels
    and number of `people` of each of the population's classes, where there is one."""

    method: str
    recoding: Recoding
    suppressed: int
    loss: Mapping[str, float]
    tally: Tally
    gap: float = 0.0
    explored: tuple[Evaluated, ...] = ()
    people: pa.Table | None = None
    by_attribute: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    before: Mapping[str, float] = field(default_factory=dict)
    metric: str = ""
    lattice: int = 0

    @property
    def sizes(self) -> np.ndarray:
        """Of the published classes, in persons where they are known."""
        return self.tally.size


@dataclass(frozen=True, eq=False)
class Anonymized(Charted):
    """A release: its plan, and what the written file says of itself.

    Where the study names persons, `k` counts them, as planned: their column is not in the file, which can only show that
    its classes have `verified.k` records.
    """

    plan: Plan
    models: tuple[PrivacyModel, ...]
    records: int
    k: int
    verified: Verified
    output: str | None
    of_persons: bool = False
    data: pa.Table | None = None
    as_is: tuple[str, ...] = ()
    """Columns that the study does not name, published as they are."""

    def __repr__(self) -> str:
        left = f"{self.records:,} records in {self.verified.classes:,} classes, {self.plan.suppressed:,} suppressed"
        return f"Anonymized({self.plan.method}: k = {self.k}; {left})"

    def chart(self) -> Any:
        """The lattice that OLA searched; of other methods the sizes of the published classes."""
        if self.plan.explored:
            from veilmark.report.lattice_chart import lattice

            return lattice(self.plan)
        from veilmark.report.class_charts import class_sizes

        return class_sizes(count_sizes(self.plan.sizes), "persons" if self.of_persons else "records")

    def table(self) -> pa.Table:
        """The release; of a CSV file all columns are texts."""
        return read_release(self.output, self.data)

    def to_dict(self) -> dict[str, Any]:
        found = self.verified
        return {
            "method": self.plan.method,
            "levels": dict(self.plan.recoding.levels),
            "records": self.records,
            "suppressed": self.plan.suppressed,
            "classes": found.classes,
            "k": self.k,
            "k_records": found.k,
            "l": {name: {"distinct": found.distinct[name], "entropy": found.entropy[name]} for name in found.distinct},
            "t": dict(found.t),
            "loss": dict(self.plan.loss),
            "loss_before": dict(self.plan.before),
            "loss_by_attribute": {name: dict(of) for name, of in self.plan.by_attribute.items()},
            "models": [m.to_dict() for m in self.models],
            "verified": [limit.to_dict() for limit in found.limits],
            "gap": self.plan.gap,
            "explored": len(self.plan.explored),
            "as_is": list(self.as_is),
            "output": self.output,
        }


def read_release(output: str | None, data: pa.Table | None) -> pa.Table:
    """A release that was written to a file, or kept where there was none."""
    if data is not None or output is None:
        return data
    with engine_for(output) as engine:
        table = engine.open(output)
        return table.query(f"SELECT * FROM {table.name}")


def all_models(models: Sequence[PrivacyModel], method: Method) -> list[PrivacyModel]:
    """The models given, and those that the method carries."""
    of_k = [] if method.k is None else [KAnonymity(method.k)]
    wanted = [*of_k, *models, *method.models]
    if not wanted:
        raise OptionError("Say what the release must meet, such as Ola(k=5) or --k 5.")
    return wanted


def link(classes: ClassTable, people: ClassTable) -> ClassTable:
    """The classes with how many of the population each has; classes that only the population has hold no record.

    Domains become the union of both, as texts.
    """
    domains, mine, theirs = [], [], []
    for i, (domain, other) in enumerate(zip(classes.domains, people.domains, strict=True)):
        found = domain.codes_of(other.text)
        new = other.text.filter(pa.array(found < 0))
        union = Domain.of(pa.concat_arrays([domain.text.cast(pa.string()), new.cast(pa.string())]), classes.columns[i])
        place = union.codes_of(domain.text)
        found[found >= 0] = place[found[found >= 0]]
        found[found < 0] = union.codes_of(new)
        domains.append(union)
        mine.append(place[classes.codes[i]])
        theirs.append(found[people.codes[i]])
    codes = np.array([np.concatenate(pair) for pair in zip(mine, theirs, strict=True)], dtype=np.int32)
    nobody = np.zeros(len(people), dtype=np.int64)
    tally = classes.tally
    both = Tally(
        np.append(tally.records, nobody),
        None if tally.settled is None else np.append(tally.settled, nobody),
        tally.wander_group,
        tally.wander_person,
    )
    linked = np.append(np.zeros(len(classes), dtype=np.int64), people.size)
    return replace(classes, codes=codes, tally=both, population=linked).merge(codes, domains)


def plan(
    classes: ClassTable,
    levels: Sequence[Levels],
    numeric: Sequence[bool],
    models: Sequence[PrivacyModel],
    method: Method,
) -> Plan:
    """The recoding that the method finds."""
    if isinstance(method, Mondrian):
        found = mondrian.partition(classes, levels, numeric, models, method)
        return _local(
            "mondrian", classes, levels, numeric, found.part, [pa.array(of) for of in found.labels], method.sets
        )
    if isinstance(method, Microaggregation):
        part, labels = _by_means(classes, models, method)
        return _local("microaggregate", classes, levels, [True] * len(labels), part, labels)
    return _by_ola(classes, levels, models, method)


def _by_ola(classes: ClassTable, levels: Sequence[Levels], models: Sequence[PrivacyModel], method: Ola) -> Plan:
    found = ola.search(classes, levels, models, method)
    table, failing = found.table, found.failing
    kept = ~failing & (table.records > 0)
    reckon = NodeLoss(classes, levels, method.weights)
    losses = reckon.all_of(table, found.node, failing)
    own = reckon.by_attribute(table, found.node, failing)
    losses["average_class"] = float(table.records[kept].mean()) if kept.any() else 0.0
    made = recoding.full_domain(classes.columns, classes.domains, levels, found.node, table.codes[:, failing])
    suppressed = int(table.records[failing].sum())
    tally = table.tally.take(kept)
    people = None if table.population is None else _people(table, levels, found.node)
    before = untouched(classes)
    search = (found.gap, found.explored, people, own, before, method.loss, found.lattice_size)
    return Plan("ola", made, suppressed, losses, tally, *search)


def _people(table: ClassTable, levels: Sequence[Levels], node: Sequence[int]) -> pa.Table:
    """The labels of each class, attribute by attribute, and how many of the population it has."""
    rows = zip(levels, node, table.codes, strict=True)
    labels = [of.labels[level].take(pa.array(codes)) for of, level, codes in rows]
    return pa.table([*labels, pa.array(table.population)], [*table.columns, "people"])


def _local(
    method: str,
    classes: ClassTable,
    levels: Sequence[Levels],
    numeric: Sequence[bool],
    part: np.ndarray,
    labels: Sequence[pa.Array],
    sets: bool = True,
) -> Plan:
    """Classes in parts that are published under the labels of each; nothing is left out."""
    parts = len(labels[0])
    own = local_by_attribute(classes, levels, numeric, part, parts, sets)
    losses = local_losses(classes, levels, numeric, part, parts, own)
    tally = classes.tally.merge(part, parts)
    losses["average_class"] = float(tally.records.mean())
    made = recoding.local(classes, part, labels)
    return Plan(method, made, 0, losses, tally, by_attribute=own, before=untouched(classes))


def _by_means(
    classes: ClassTable, models: Sequence[PrivacyModel], method: Microaggregation
) -> tuple[np.ndarray, list[pa.Array]]:
    """The part of each class and, attribute by attribute, the mean of each part."""
    numbers = _numbers(classes, models)
    k = max(m.k for m in models if isinstance(m, KAnonymity))
    fixed = method.gamma is None
    group = mdav(numbers, k, classes.size) if fixed else v_mdav(numbers, k, method.gamma or 0.0, classes.size)
    mean = means(numbers, group, classes.records)
    for column, of in zip(mean.T, numbers.T, strict=True):
        largest = float(np.abs(of).max(initial=0)) or 1.0
        column[:] = np.round(column, DIGITS - 1 - int(np.floor(np.log10(largest)))) + 0.0  # no -0
    published, part = np.unique(mean, axis=0, return_inverse=True)
    return part.reshape(-1), [pa.array(column) for column in published.T]


def _numbers(classes: ClassTable, models: Sequence[PrivacyModel]) -> np.ndarray:
    """The values of each class as numbers; what microaggregation cannot do is an error."""
    beyond = [m for m in models if not isinstance(m, KAnonymity)]
    if beyond:
        raise OptionError(f"Microaggregation meets k alone. Drop {listing(beyond)}, or use Mondrian or OLA.")
    columns = []
    for name, domain, codes in zip(classes.columns, classes.domains, classes.codes, strict=True):
        if domain.numbers is None:
            raise StudyError(
                f"Microaggregation publishes means, and '{name}' does not hold numbers alone. Use Mondrian or OLA, or "
                "give it another role than quasi."
            )
        if domain.missing is not None:
            raise DataError(f"'{name}' is missing in some records, which so have no mean. Fill it in, or use Mondrian.")
        columns.append(domain.numbers[codes])
    if len(columns) > 1 and len(classes) > MOST_GROUPED:
        raise OptionError(
            f"Microaggregation would take too long for {len(classes):,} classes; up to {MOST_GROUPED:,} will do. Use "
            "Mondrian, which takes no longer than reading the table."
        )
    if len(classes.tally.wander_group):
        raise DataError(
            "Some persons have records with different quasi-identifiers, and microaggregation would count them more "
            "than once. Use Mondrian or OLA."
        )
    return np.array(columns).T

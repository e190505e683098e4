"""Anonymize: from classes to a recoding, by the method asked for, and what became of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.charted import Charted
from veilmark.engines import engine_for
from veilmark.errors import DataError, OptionError, StudyError, listing
from veilmark.hierarchy import Levels
from veilmark.messages import param
from veilmark.privacy.measures import count_sizes, missing_counted_lines
from veilmark.privacy.models import KAnonymity, PrivacyModel
from veilmark.privacy.unchanged import unchanged_grid
from veilmark.readable import Grid, Summary, count
from veilmark.tables import recoding
from veilmark.tables.classes import ClassTable, Tally
from veilmark.tables.domain import Domain
from veilmark.tables.framed import Framed
from veilmark.tables.recoding import Recoding
from veilmark.utility.local import local_by_attribute, local_losses
from veilmark.utility.loss import NodeLoss, untouched
from veilmark.veil import mondrian, ola
from veilmark.veil.generalized import Generalized, generalized_columns
from veilmark.veil.microaggregate import mdav, means, v_mdav
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Evaluated, Ola
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
    models: Sequence[PrivacyModel] = field(default=(), kw_only=True)


Method = Ola | Mondrian | Microaggregation


@dataclass(frozen=True)
class LocalOffer:
    """A local method that would lose `loss` where the release loses `instead_of` (both GCP), judged on so many of the
    classes."""

    method: str
    loss: float
    instead_of: float
    judged: int
    classes: int

    def __str__(self) -> str:
        name = self.method.capitalize()
        sample = "" if self.judged == self.classes else f" (estimated from {self.judged:,} of {self.classes:,} classes)"
        return f"{name} would lose {_percent(self.loss)} instead of {_percent(self.instead_of)}{sample}"


@dataclass(frozen=True)
class SuppressionOffer:
    """That the release would lose `loss` instead of `instead_of` (both GCP) if this `share` might be suppressed."""

    share: float
    unit: str
    loss: float
    instead_of: float

    def __str__(self) -> str:
        losses = f"{_percent(self.loss)} instead of {_percent(self.instead_of)}"
        return f"With up to {self.share * 100:g} % of the {self.unit} suppressed, the loss would be {losses}"


def _percent(share: float) -> str:
    """`4.5 %`, `25 %`: two digits."""
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


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
    generalized: Mapping[str, Generalized] = field(default_factory=dict)
    """Each column's level and an example, where all its labels are of one level."""
    local: LocalOffer | None = None
    """A local method that would lose clearly less."""
    suppression: SuppressionOffer | None = None
    """A share of suppressed records with which OLA would lose clearly less."""

    @property
    def sizes(self) -> np.ndarray:
        """Of the published classes, in persons where they are known."""
        return self.tally.size


@dataclass(frozen=True, eq=False)
class Anonymized(Charted, Framed):
    """A release: its plan, and what the written file says of itself. `to_pandas()`, `to_polars()` and `to_arrow()` are its
    rows, `write("out.parquet")` writes them.

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
    columns_left_out: tuple[str, ...] = ()
    """Columns that are not published because the study does not name them."""
    missing_counted: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By sensitive attribute and model, the classes that meet it only because a missing value counts as a value."""

    def __repr__(self) -> str:
        left = f"{self.records:,} records in {self.verified.classes:,} classes, {self.plan.suppressed:,} suppressed"
        return f"Anonymized({self.plan.method}: k = {self.k}; {left})"

    @property
    def recoding(self) -> Recoding:
        """Which value became what: `recoding.save("recoding.json")`, `study.apply(recoding, new_data)`."""
        return self.plan.recoding

    @property
    def levels(self) -> Mapping[str, int]:
        """The generalization level of each quasi-identifier; empty where there is no one level, as with Mondrian."""
        return self.plan.recoding.levels

    @property
    def suppressed(self) -> int:
        """How many records were left out."""
        return self.plan.suppressed

    @property
    def loss(self) -> Mapping[str, float]:
        """The loss by every metric."""
        return self.plan.loss

    def summary(self) -> Summary:
        who = "persons" if self.of_persons else "records"
        headline = (
            f"{self.plan.method}: {count(self.records, 'record')} in {count(self.verified.classes, 'class')}, "
            f"{self.plan.suppressed:,} suppressed. k = {self.k:,}, in {who}."
        )
        rows = [(name, f"{of.level} of {of.height}", of.after) for name, of in self.plan.generalized.items()]
        levels = Grid(("quasi-identifier", "generalization level", "for example"), rows)
        loss = Grid(("loss", "value"), [(name, f"{value:.5g}") for name, value in self.plan.loss.items()])
        held = [f"Promised: {', '.join(map(str, self.models))}."] if self.models else []
        held += missing_counted_lines(self.missing_counted)
        if self.columns_left_out:
            held.append(f"Not published, because the study does not name them: {', '.join(self.columns_left_out)}.")
        held += [f"{self.plan.local}. To use it, choose Mondrian instead of Ola."] if self.plan.local else []
        if self.plan.suppression:
            held.append(
                f"{self.plan.suppression}. To allow that, use Ola(suppression={self.plan.suppression.share:g})."
            )
        written = [f"Written to {self.output}."] if self.output else []
        return Summary(headline, (levels, loss, unchanged_grid(self.verified.unchanged)), [*held, *written])

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
            "generalized": {name: of.to_dict() for name, of in self.plan.generalized.items()},
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
            "local": asdict(self.plan.local) if self.plan.local else None,
            "suppression_offer": asdict(self.plan.suppression) if self.plan.suppression else None,
            "gap": self.plan.gap,
            "explored": len(self.plan.explored),
            "as_is": list(self.as_is),
            "columns_left_out": list(self.columns_left_out),
            "missing_counted": {name: dict(of) for name, of in self.missing_counted.items()},
            "unchanged": {name: of.to_dict() for name, of in found.unchanged.items()},
            "output": self.output,
        }


def read_release(output: Any, data: pa.Table | None) -> pa.Table:
    """A release that was written to a file, or is a frame, or was kept where there was neither."""
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
        raise OptionError(f"Say what the release must meet, such as {param('k', 5)}.")
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
    told = generalized_columns(table, levels, found.node, kept)
    search = (found.gap, found.explored, people, own, before, method.loss, found.lattice_size, told)
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
        raise OptionError(f"Microaggregation guarantees only k. Drop {listing(beyond)}, or use Mondrian or OLA.")
    columns = []
    for name, domain, codes in zip(classes.columns, classes.domains, classes.codes, strict=True):
        if domain.numbers is None:
            raise StudyError(
                f"Microaggregation publishes means, but '{name}' contains values that are not numbers. Use "
                "Mondrian or OLA, or give it another role."
            )
        if domain.missing is not None:
            raise DataError(
                f"'{name}' is missing in some records, so their mean cannot be computed. Fill it in, or use Mondrian."
            )
        columns.append(domain.numbers[codes])
    if len(columns) > 1 and len(classes) > MOST_GROUPED:
        raise OptionError(
            f"Microaggregation would take too long for {len(classes):,} classes (the limit is {MOST_GROUPED:,}). "
            "Use Mondrian, which is much faster."
        )
    if len(classes.tally.wander_group):
        raise DataError(
            "Some persons have records with different quasi-identifiers. Microaggregation would count them more "
            "than once. Use Mondrian or OLA."
        )
    return np.array(columns).T

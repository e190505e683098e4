"""What a release is made from: the source, how it is to be anonymized, and the population that it links to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veilmark.engines import sql
from veilmark.engines.base import Engine, Table
from veilmark.errors import DataError, HierarchyError, OptionError, StudyError, did_you_mean
from veilmark.hierarchy import Levels, resolve
from veilmark.mark.boxes import link_boxes
from veilmark.mark.discover import Linked, link, relabel, suppressed_classes, union_domain
from veilmark.mark.marking import CopyMarking
from veilmark.mark.members import Recognized, check_telling, recognize
from veilmark.mark.plan import Marks, keyed_order
from veilmark.mark.plant import Rows
from veilmark.mark.pool import affordable_decoys, blending, given_up, partners, sharing_labels
from veilmark.messages import param, template_of
from veilmark.privacy.models import PrivacyModel
from veilmark.study.columns import published_columns
from veilmark.study.opening import is_number, open_other, open_source, resolve_quasi
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable, Histogram, Tally
from veilmark.tables.domain import Domain
from veilmark.tables.recoding import Recoding, full_domain
from veilmark.utility.association import contingency, cramers_v
from veilmark.utility.covers import read_labels
from veilmark.utility.local import local_by_attribute, local_losses
from veilmark.utility.loss import NodeLoss
from veilmark.veil.anonymize import Plan
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.planning import follow_distances, planned
from veilmark.veil.starting_classes import starting_classes

MANY_VALUES = 100


@dataclass(frozen=True, eq=False)
class Ground:
    """A release's source, its plan, and the population linked to it, if there is one; `persons` has everybody who can serve
    as a decoy: the identity columns (`i0`, `i1`, …) and the `class`, in a fixed order."""

    engine: Engine
    study: Study
    source: Table
    population: Table | None
    identity: tuple[str, ...]
    classes: ClassTable
    people: ClassTable
    domains: tuple[Domain, ...]
    levels: tuple[Levels, ...]
    plan: Plan
    linked: Linked
    persons: pa.Table
    spared: int = 0
    """Records that are suppressed, beyond what the plan says, so that there are candidates."""
    marking: CopyMarking | None = None
    """What is asked of the marks, settled by what the data can carry."""
    recognized: Recognized | None = None
    """Who of the source is in the population, where the source, too, tells who somebody is."""
    everyone: pa.Table = field(default_factory=lambda: pa.table({"class": pa.array([], pa.int64())}))
    """All persons of the candidates, those who cannot serve included; columns as in `persons`."""

    @classmethod
    def prepare(
        cls,
        engine: Engine,
        study: Study,
        population: Any,
        identity: tuple[str, ...],
        marking: CopyMarking,
        models: Sequence[PrivacyModel],
        method: Ola | Mondrian,
        seed: str = "",
    ) -> Ground:
        """Plan the release and link it; what cannot be released is refused first. Which classes are given up for decoys
        follows from the seed."""
        source = open_source(engine, study)
        everybody = _open_population(engine, study, population, identity)
        check_hidden(study, source, identity)
        classes, method = starting_classes(source, study, method)
        made = planned(engine, study, classes, follow_distances(study, classes, models), method, None)
        people = _people(everybody, classes)
        domains = [union_domain(*both) for both in zip(classes.domains, people.domains, strict=True)]
        levels = union_levels(study, classes, domains)
        numeric = [is_number(study, name, domain) for name, domain in zip(classes.columns, domains, strict=True)]
        if made.recoding.local:
            own = resolve_quasi(study, classes)
            least = (marking.k, math.inf if marking.risk is None else marking.risk[1])
            linked = link_boxes(classes, made.recoding, people, own, levels, domains, numeric, least)
        else:
            linked = link(classes, made.recoding, people, levels, domains, numeric)
        nobody = pa.table({"class": pa.array([], pa.int64())})
        values = (tuple(domains), tuple(levels), made, linked, nobody)
        ground = cls(engine, study, source, everybody, identity, classes, people, *values)
        if everybody is None or not identity:
            return ground
        ground = replace(ground, recognized=recognize(source, everybody, identity, study.quasi))
        return ground._with_candidates(marking, method, seed)._with_persons(marking.k)

    def _with_candidates(self, marking: CopyMarking, method: Ola | Mondrian, seed: str) -> Ground:
        """With the classes that decoys may come from, of which some are given up for their sake."""
        linked = replace(self.linked, weights=self._weights())
        chance = np.random.default_rng(list(f"pool {seed}".encode())).random(int((linked.published > 0).sum()))
        may_go = self.members_known & (np.ones(len(linked), dtype=bool) if linked.local else sharing_labels(linked))
        marking = replace(marking, decoys=affordable_decoys(linked, marking, chance, may_go))
        settled = replace(self, marking=marking)
        if not marking.decoys or (isinstance(method, Ola) and method.unit != "records"):
            return replace(settled, linked=self._allowing(linked, marking))
        limit = method.suppression if isinstance(method, Ola) else 0.0
        allowance = int(limit * self.classes.total_records + 1e-9) - self.plan.suppressed
        chosen = given_up(linked, marking, allowance, chance, may_go)
        spared = int(linked.published[chosen].sum())
        if spared:
            linked = replace(linked.without(chosen), given_up=np.isin(np.arange(len(linked)), chosen))
            linked = linked if marking.risk else replace(linked, partner=partners(linked, chosen))
        changed = replace(settled, linked=self._allowing(linked, marking), spared=spared)
        if not spared:
            return changed
        made = replace(self.plan, suppressed=self.plan.suppressed + spared, loss=changed._loss(method))
        return replace(changed, plan=made)

    def _allowing(self, linked: Linked, marking: CopyMarking) -> Linked:
        """With the classes that decoys may come from, if they are to blend in."""
        if marking.risk is not None:
            return linked
        local = self.plan.recoding.local  # Each class has labels of its own there.
        return replace(linked, allowed=np.ones(len(linked), dtype=bool) if local else blending(linked, marking))

    def _weights(self) -> tuple[float, ...]:
        """How much each quasi-identifier, as it is published, says about the sensitive attributes: the largest of Cramér's
        V, corrected."""
        if self.plan.recoding.local:
            return ()
        node = [self.plan.recoding.levels[c] for c in self.classes.columns]
        at = [of.codes[level] for of, level in zip(self.levels, node, strict=True)]
        labels = relabel(self.classes, self.domains, at)
        return tuple(
            max((_says(label, of) for of in self.classes.histograms.values()), default=0.0) for label in labels
        )

    def _loss(self, method: Ola | Mondrian) -> dict[str, float]:
        """The loss of what is released, by every metric."""
        levels = resolve_quasi(self.study, self.classes)
        if isinstance(method, Mondrian):
            return self._local_loss(levels, method)
        node = [self.plan.recoding.levels[c] for c in self.study.quasi]
        table = self.classes.roll_up(levels, node)
        labels = {
            c: d.text.take(pa.array(code)) for c, d, code in zip(table.columns, table.domains, table.codes, strict=True)
        }
        gone = self.linked.published[self.linked.find(pa.table(labels))] == 0
        found = NodeLoss(self.classes, levels, method.weights).all_of(table, node, gone)
        return {**found, "average_class": float(table.records[~gone].mean())}

    def _local_loss(self, levels: Sequence[Levels], method: Mondrian) -> dict[str, float]:
        labels = self.plan.recoding.class_labels
        assert labels is not None
        part = self.linked.find(pa.table(dict(zip(self.classes.columns, labels, strict=True))))
        gone, parts = self.linked.published == 0, len(self.linked)
        pairs = zip(self.classes.columns, self.classes.domains, strict=True)
        numeric = [is_number(self.study, name, domain) for name, domain in pairs]
        own = local_by_attribute(self.classes, levels, numeric, part, parts, method.sets, gone)
        found = local_losses(self.classes, levels, numeric, part, parts, own, gone)
        return {**found, "average_class": float(self.linked.published[~gone].mean())}

    # Who can serve as a decoy.

    @property
    def members_known(self) -> bool:
        """Whether the source, too, tells who somebody is."""
        return set(self.identity) <= set(self.source.columns)

    def _with_persons(self, k: int) -> Ground:
        """Look up the persons of all candidates. Those in the source cannot serve, nor those whom the identity columns do
        not tell from others, nor anybody of a class with suppressed persons who were not recognized."""
        linked = self.linked
        found = self._look_up(np.flatnonzero(linked.found(k)))
        inside = found.column("inside").to_numpy()
        owner = found.column("class").to_numpy()
        told = np.ones(len(found), dtype=bool)
        for i in range(len(self.identity)):
            told &= found.column(f"i{i}").is_valid().to_numpy()
        members = np.bincount(owner[inside], minlength=len(linked))
        lost = linked.suppressed if linked.lost is None else linked.lost
        doubtful = (members < lost) if self.members_known else (lost > 0)
        candidates = found.filter(pa.array(told & ~inside & ~doubtful[owner])).drop_columns("inside")
        persons = self._without_namesakes(candidates)
        outside = np.bincount(persons.column("class").to_numpy(), minlength=len(linked))
        everyone = found.drop_columns("inside")
        return replace(self, persons=persons, everyone=everyone, linked=replace(linked, outside=outside))

    def _look_up(self, chosen: np.ndarray) -> pa.Table:
        """Everybody in some classes."""
        raw = np.flatnonzero(np.isin(self.linked.of_people, chosen))
        names = [f"v{i}" for i in range(len(self.study.quasi))]
        pairs = zip(self.people.domains, self.people.codes, strict=True)
        values = [domain.values.take(pa.array(code[raw])) for domain, code in pairs]
        wanted = pa.table([*values, pa.array(self.linked.of_people[raw].astype(np.int64))], [*names, "class"])
        assert self.population is not None
        kinds = {c: self.population.columns[c] for c in self.study.quasi}
        known = self.source.name if self.members_known else None
        with self.engine.holding(wanted) as name:
            statement = sql.persons(self.engine.dialect, self.population.name, name, kinds, self.identity, known)
            return self.population.query(statement)

    def _without_namesakes(self, persons: pa.Table) -> pa.Table:
        names = [f"i{i}" for i in range(len(self.identity))]
        counted = self.namesakes(persons.select(names), self.identity)
        once = counted.filter(pa.array(counted.column("n").to_numpy() == 1)).select(names)
        alone = persons.join(once, names, join_type="left semi", use_threads=False)
        order = [("class", "ascending"), *((name, "ascending") for name in names)]
        return alone.sort_by(order).combine_chunks()

    def namesakes(self, names: pa.Table, columns: Sequence[str]) -> pa.Table:
        """How many of the population have each of some identities, by some of the identity columns."""
        assert self.population is not None
        distinct = names.group_by(names.column_names, use_threads=False).aggregate([])
        with self.engine.holding(distinct.rename_columns([f"i{i}" for i in range(len(columns))])) as name:
            return self.population.query(sql.namesakes(self.engine.dialect, self.population.name, name, columns))

    def decoys(self, marks: Marks, recipient: int, key: bytes) -> pa.Table:
        """The identity columns of a recipient's decoys, class by class, in the numbers that are planned."""
        owner = self.persons.column("class").to_numpy()
        chosen = [np.empty(0, dtype=np.int64)]
        for name, size in zip(marks.decoys[recipient].tolist(), marks.sizes[recipient].tolist(), strict=True):
            first, last = np.searchsorted(owner, [name, name + 1])
            chosen.append(first + keyed_order(key, f"people {name}", int(last - first))[:size])
        found = self.persons.take(pa.array(np.concatenate(chosen)))
        return found.drop_columns("class").rename_columns(list(self.identity))

    # Rows and labels.

    def released(self, attribute: str) -> np.ndarray:
        """How many records of the release, as planned, have each value of a sensitive attribute."""
        recoding, histogram = self.plan.recoding, self.classes.histograms[attribute]
        gone = np.zeros(len(self.classes), dtype=bool) if recoding.local else suppressed_classes(self.classes, recoding)
        return histogram.take(~gone).overall

    def whole_recoding(self) -> Recoding:
        """The release's labels for all of the source's rows, suppressed ones too."""
        recoding = self.plan.recoding
        if recoding.local:
            return recoding
        node = [recoding.levels[c] for c in self.study.quasi]
        nothing = np.empty((len(node), 0), dtype=np.int32)
        return full_domain(self.study.quasi, self.domains, self.levels, node, nothing).on(self.classes.domains)

    def rows(self) -> Rows:
        """All of the source's rows, suppressed ones too; they are read once."""
        return self._rows

    @cached_property
    def _rows(self) -> Rows:
        columns = published_columns(self.study, self.source)
        file = self.engine.scratch(".parquet")
        self.source.write_recoded(self.whole_recoding(), columns, file)
        owner = self.linked.find(pq.read_table(file, columns=self.study.quasi))
        if (owner < 0).any():
            raise DataError(f"'{self.source.label}' changed while it was being read. Try again.")
        others = [f for f in pq.read_schema(file) if f.name not in self.study.quasi]
        texts = [f.name for f in others if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
        table = pq.read_table(file, columns=[f.name for f in others], read_dictionary=texts)
        return Rows(tuple(columns), table.unify_dictionaries().combine_chunks(), owner)

    def above(self) -> dict[str, list[list[str | None]]]:
        """For each column the labels of the release and, level by level, what they become further up."""
        recoding, found = self.plan.recoding, {}
        for name, of, labels in zip(self.linked.columns, self.levels, self.linked.labels, strict=True):
            level = of.height if recoding.local else recoding.levels[name]
            ways = [of.labels[upper].take(pa.array(of.up(level, upper))) for upper in range(level + 1, of.height + 1)]
            found[name] = [labels.to_pylist(), *(up.to_pylist() for up in ways)]
        return found

    def covered(self, column: int, labels: np.ndarray) -> list[np.ndarray]:
        """The values of source and population, by their codes, that each of some labels stands for."""
        if self.plan.recoding.local:
            cover = read_labels(self.linked.labels[column], self.domains[column], self.levels[column])
            runs = [np.flatnonzero(cover.owner == label) for label in labels]
            return [np.concatenate([np.arange(cover.low[r], cover.high[r] + 1) for r in of]) for of in runs]
        codes = self.levels[column].codes[self.plan.recoding.levels[self.linked.columns[column]]]
        return [np.flatnonzero(codes == label) for label in labels]


def _says(label: np.ndarray, values: Histogram) -> float:
    """How much a label of each class says about a sensitive attribute, whose values are taken by twentieths where there are
    many."""
    many = len(values.domain) > MANY_VALUES
    value = values.value.astype(np.int64) * 20 // len(values.domain) if many else values.value
    return cramers_v(contingency(label[values.owner], value, values.records))


def _open_population(engine: Engine, study: Study, population: Any, identity: Sequence[str]) -> Table | None:
    """The population, where there is one; its identity columns must be there and must tell persons apart."""
    if population is None:
        return None
    table = open_other(engine, study, population, study.quasi, joined=bool(identity))
    if identity:
        check_identity(table, identity)
        check_telling(table, identity)
    return table


def _people(population: Table | None, classes: ClassTable) -> ClassTable:
    """The classes of the population; none where there is no population."""
    if population is None:
        return ClassTable(classes.columns, classes.domains, classes.codes[:, :0], Tally(np.zeros(0, dtype=np.int64)))
    people = ClassTable.build(population, list(classes.columns))
    if not people.total_records:
        raise DataError(f"'{population.label}' has column names but no records.")
    return people


def check_identity(population: Table, identity: Sequence[str]) -> None:
    """The columns that say who somebody is."""
    if not identity:
        raise OptionError(
            f"Name the columns that identify a person in the population: {param('identity', ['name', 'birthday'])}."
        )
    for i, name in enumerate(identity):
        if name not in population.columns:
            raise OptionError(
                f"'{population.label}' has no column '{name}' to identify "
                f"persons.{did_you_mean(name, population.columns)}"
            )
        if name in identity[:i]:
            raise OptionError(f"{param('identity')} names '{name}' twice. Name each column once.")


def check_hidden(study: Study, source: Table, identity: Sequence[str]) -> None:
    """No copy may tell who somebody is, by an identity column or by a pseudonym."""
    if study.pseudonyms:
        raise StudyError(
            f"{study.name} keeps '{study.pseudonyms[0]}' as a pseudonym, but pseudonyms would reveal the decoys "
            "in the copies. Remove `keep: pseudonym`."
        )
    shown = [c for c in identity if c in published_columns(study, source) and c not in study.quasi]
    if shown:
        raise StudyError(
            f"The copies would contain '{shown[0]}', which identifies persons. Give it the role direct in {study.name}."
        )


def union_levels(study: Study, classes: ClassTable, domains: Sequence[Domain]) -> list[Levels]:
    """The hierarchies on the values of source and population; the source's values must have the labels that they have by
    themselves."""
    levels = []
    for name, domain, own in zip(classes.columns, domains, classes.domains, strict=True):
        spec = study.spec.attributes[name].hierarchy
        alone = resolve(spec, own, name, study.folder)
        try:
            levels.append(resolve(spec, domain, name, study.folder))
        except HierarchyError as error:
            raise HierarchyError(f"With the population's values: {template_of(error)}") from None
        place = pa.array(domain.codes_of(own.text))
        same = levels[-1].height == alone.height and all(
            levels[-1].of_values(level).take(place).equals(alone.of_values(level))
            for level in range(1, alone.height + 1)
        )
        if not same:
            raise DataError(
                f"The values of '{name}' in the source get other labels together with those of the population, "
                "which may be longer. Write both in one format."
            )
    return levels

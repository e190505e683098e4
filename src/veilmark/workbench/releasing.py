"""The verb release: anonymize, plan decoys and covers, write each recipient's copy, and record it in the ledger."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veilmark import progress
from veilmark.cells import encode
from veilmark.classes import ClassTable
from veilmark.domain import as_text
from veilmark.engines import sql
from veilmark.engines.duckdb import DIALECT, DuckDB, DuckTable
from veilmark.errors import DataError, HierarchyError, OptionError, did_you_mean
from veilmark.hierarchy import Levels, resolve
from veilmark.ledger.publish import check_target, publishing
from veilmark.mark.code import derive
from veilmark.mark.discover import Feasibility, Linked, feasibility, link, union_domain
from veilmark.mark.plan import Marking, Marks, keyed_order, plan_marks, sizes_like
from veilmark.mark.plant import Decoys, Rows, copies, donors
from veilmark.output import write_table
from veilmark.privacy.models import KAnonymity, PrivacyModel
from veilmark.study import Study
from veilmark.veil.anonymize import Plan, all_models
from veilmark.veil.ola import Ola
from veilmark.veil.recoding import full_domain
from veilmark.workbench.anonymizing import follow_distances, measure_release, planned, published_columns
from veilmark.workbench.ledger import open_to_publish
from veilmark.workbench.sources import class_table, engine_of, open_other, open_source
from veilmark.yamlfile import read_yaml

File = str | os.PathLike[str]


@dataclass(frozen=True)
class Copy:
    """One recipient's copy."""

    name: str
    file: str
    records: int
    decoy_classes: int
    decoy_records: int
    withheld_classes: int
    withheld_records: int

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Released:
    """A release to several recipients, or, of a dry run, what it would be; `release` is its name in the ledger."""

    release: str | None
    feasible: Feasibility
    copies: tuple[Copy, ...]
    cost: Mapping[str, Any]
    loss: Mapping[str, float]
    levels: Mapping[str, int]
    suppressed: int
    folder: str | None = None

    def to_dict(self) -> dict[str, Any]:
        found = self.feasible
        return {
            "release": self.release,
            "min_link": found.min_link,
            "candidates": {"classes": found.classes, "records": found.records, "excluded": found.excluded},
            "feasibility": found.to_dict(),
            "cost": dict(self.cost),
            "levels": dict(self.levels),
            "suppressed": self.suppressed,
            "loss": dict(self.loss),
            "recipients": [copy.to_dict() for copy in self.copies],
            "output": self.folder,
        }


@dataclass(frozen=True)
class Terms:
    """What the ledger notes of an agreement: its reference, a contact, and on what basis persons serve as decoys."""

    agreement: str | None = None
    contact: str | None = None
    consent: str | None = None

    def to_dict(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class Job:
    """All that `release` is asked for; `identity` are the columns that tell who somebody in the population is."""

    population: Any
    identity: tuple[str, ...]
    marking: Marking
    models: tuple[PrivacyModel, ...] = ()
    method: Ola = field(default_factory=Ola)
    seed: int | None = None
    form: str = "csv"
    terms: Mapping[str, Terms] = field(default_factory=dict)


def release(study: Study, job: Job, ledger: File, key: File, output: File, dry_run: bool = False) -> Released:
    """Write a copy for each recipient, with decoys of its own, and record all of it in the ledger.

    A dry run draws everything and writes nothing. The same seed and key give the same copies.
    """
    models = all_models([KAnonymity(job.marking.k), *job.models], job.method)
    files = file_names(job.marking.recipients, job.form)
    check_target(output)
    seed = str(secrets.randbits(64) if job.seed is None else job.seed)
    with engine_of(study) as engine:
        work = _Work.prepare(engine, study, job, models)
        # What cannot be carried is refused before a ledger or a key is made.
        marks = plan_marks(work.linked, job.marking, secrets.token_bytes(32))
        if dry_run:
            return _result(None, work, marks, [_planned_copy(marks, i, file) for i, file in enumerate(files)], None)
        book, secret_key = open_to_publish(ledger, key)
        own = derive(secret_key.subkey("release"), seed)
        marks = plan_marks(work.linked, job.marking, own)
        decoys = work.decoys(marks, own)
        rows = work.rows()
    borrowed = _borrow(rows, marks, decoys, own, whole=any(m.attribute is not None for m in models))
    tables = copies(rows, marks, decoys, borrowed, own)
    made = [_copy(marks, decoys[i], i, files[i], len(table)) for i, table in enumerate(tables)]
    public = _public(study, job, work, made, seed)
    with publishing(book, secret_key, output, public, _secret(work, marks, decoys, job)) as doing:
        done = 0
        with progress.step("Writing copies", lambda: done / len(made)):
            for copy, table in zip(made, tables, strict=True):
                _write(table, doing.folder / copy.file, study, models, work.classes)
                done += 1
    finished = [replace(copy, file=str(Path(output) / copy.file)) for copy in made]
    return _result(doing.release, work, marks, finished, str(output))


def file_names(recipients: Sequence[str], form: str) -> list[str]:
    """A file name for each recipient: its name, less what file systems do not take."""
    if form not in ("csv", "parquet"):
        raise OptionError(f"Copies are written as csv or parquet, not '{form}'.")
    names = [re.sub(r"[^\w.-]+", "_", name).strip("._") or "recipient" for name in recipients]
    taken = [name for i, name in enumerate(names) if name.lower() in [n.lower() for n in names[:i]]]
    if taken:
        raise OptionError(f"Two recipients would have the same file '{taken[0]}.{form}'. Rename one of them.")
    return [f"{name}.{form}" for name in names]


@dataclass(frozen=True, eq=False)
class _Work:
    """A release's source, its plan, and the population linked to it."""

    engine: DuckDB
    study: Study
    source: DuckTable
    population: DuckTable
    identity: tuple[str, ...]
    classes: ClassTable
    people: ClassTable
    levels: tuple[Levels, ...]
    plan: Plan
    linked: Linked

    @classmethod
    def prepare(cls, engine: DuckDB, study: Study, job: Job, models: Sequence[PrivacyModel]) -> _Work:
        source = open_source(engine, study)
        classes = class_table(source, study)
        wanted = follow_distances(study, classes, models)
        made = planned(engine, study, classes, wanted, job.method, None)
        population = open_other(engine, study, job.population, study.quasi)
        check_identity(population, job.identity)
        people = ClassTable.build(population, study.quasi)
        if not people.total_records:
            raise DataError(f"'{population.label}' has column names but no records.")
        domains = [union_domain(*both) for both in zip(classes.domains, people.domains, strict=True)]
        levels = _levels(study, classes, domains, made)
        linked = link(classes, made.recoding, people, levels, domains)
        work = cls(engine, study, source, population, job.identity, classes, people, tuple(levels), made, linked)
        return replace(work, linked=replace(linked, outside=work.outside()))

    def outside(self) -> np.ndarray | None:
        """Of each class, the persons of the population who are not in the source; None where nobody can tell."""
        if not set(self.identity) <= set(self.source.columns):
            return None
        statement = sql.members(DIALECT, self.population.name, self.source.name, self._kinds, self.identity)
        with self.engine.joins_as_written():
            found = self.population.query(statement)
        inside = ClassTable.of_cells(encode(found, self.study.quasi), len(self.study.quasi))
        members = np.zeros(len(self.people), dtype=np.int64)
        members[inside.find_in(self.people)] = inside.records
        lost = np.bincount(self.linked.of_people, weights=members, minlength=len(self.linked)).astype(np.int64)
        return self.linked.population - lost

    @property
    def _kinds(self) -> dict[str, str]:
        return {c: self.population.columns[c] for c in self.study.quasi}

    def decoys(self, marks: Marks, key: bytes) -> list[Decoys]:
        """The persons who serve as each recipient's decoys."""
        chosen = np.concatenate([np.empty(0, dtype=np.int64), *marks.decoys])
        persons = self._persons(chosen)
        owner = persons.column("class").to_numpy()
        room = np.bincount(owner, minlength=len(self.linked))
        sizes = sizes_like(self.linked, marks.marking.k, room[chosen], key)
        wanted = dict(zip(chosen.tolist(), sizes.tolist(), strict=True))
        who = persons.select(range(len(self.identity))).rename_columns(list(self.identity))
        values = persons.select(range(len(self.identity), persons.num_columns - 1)).rename_columns(self.study.quasi)
        found = []
        for classes in marks.decoys:
            rows = [
                np.flatnonzero(owner == c)[keyed_order(key, f"people {c}", int(room[c]))][: wanted[c]]
                for c in classes.tolist()
            ]
            places = np.concatenate([np.empty(0, dtype=np.int64), *rows])
            found.append(Decoys(classes, who.take(places), values.take(places), owner[places]))
        return found

    def _persons(self, chosen: np.ndarray) -> pa.Table:
        """The identity of everybody in the chosen classes who is not in the source, and the class, in a fixed order."""
        raw = np.flatnonzero(np.isin(self.linked.of_people, chosen))
        names = [f"v{i}" for i in range(len(self.study.quasi))]
        values = [
            d.values.take(pa.array(code[raw])) for d, code in zip(self.people.domains, self.people.codes, strict=True)
        ]
        wanted = pa.table([*values, pa.array(self.linked.of_people[raw])], names=[*names, "class"])
        known = self.source.name if self.linked.outside is not None else None
        name = f"{self.population.name}_wanted"
        statement = sql.persons(DIALECT, self.population.name, name, self._kinds, self.identity, known)
        self.engine.connection.register(name, wanted)
        try:
            with self.engine.joins_as_written():
                found = self.population.query(statement)
        finally:
            self.engine.connection.unregister(name)
        texts = [as_text(column.combine_chunks()) for column in found.columns[:-1]]
        named = [*(f"i{i}" for i in range(len(self.identity))), *names, "class"]
        table = pa.table([*texts, found.column(found.num_columns - 1)], names=named)
        unique = table.group_by(named, use_threads=False).aggregate([])
        return unique.sort_by([(c, "ascending") for c in ("class", *named[:-1])]).combine_chunks()

    def rows(self) -> Rows:
        """All of the source's rows at the release's labels."""
        node = [self.plan.recoding.levels[c] for c in self.study.quasi]
        nothing = np.empty((len(node), 0), dtype=np.int32)
        domains = [union_domain(*both) for both in zip(self.classes.domains, self.people.domains, strict=True)]
        recoding = full_domain(self.study.quasi, domains, self.levels, node, nothing).on(self.classes.domains)
        file = self.engine.scratch(".parquet")
        self.source.write_recoded(recoding, published_columns(self.study, self.source), file)
        table = pq.read_table(file)
        return Rows(table, self.linked.find(table))


def read_terms(path: File, recipients: Sequence[str]) -> dict[str, Terms]:
    """The terms of each recipient, from a YAML file: `ada: {agreement: …, contact: …, consent: …}`."""
    content = read_yaml(Path(path), OptionError).data
    known = set(Terms.__dataclass_fields__)
    if not isinstance(content, dict) or not all(isinstance(v, dict) and set(v) <= known for v in content.values()):
        raise OptionError(f"'{path}' must hold, for each recipient, some of {', '.join(sorted(known))}.")
    strangers = [name for name in content if str(name) not in recipients]
    if strangers:
        raise OptionError(
            f"'{path}' has terms for '{strangers[0]}', who is no recipient.{did_you_mean(str(strangers[0]), recipients)}"
        )
    return {str(name): Terms(**{k: str(v) for k, v in given.items()}) for name, given in content.items()}


def check_identity(population: DuckTable, identity: Sequence[str]) -> None:
    """The columns that say who somebody is."""
    if not identity:
        raise OptionError("Say which columns of the population tell who somebody is: --identity name,birthday.")
    for name in identity:
        if name not in population.columns:
            raise OptionError(
                f"'{population.label}' has no column '{name}' to tell persons by.{did_you_mean(name, population.columns)}"
            )


def _levels(study: Study, classes: ClassTable, domains: Sequence[Any], made: Plan) -> list[Levels]:
    """The hierarchies on the values of source and population."""
    levels = []
    for name, domain, own in zip(classes.columns, domains, classes.domains, strict=True):
        spec = study.spec.attributes[name].hierarchy
        try:
            levels.append(resolve(spec, domain, name, study.folder))
        except HierarchyError as error:
            raise HierarchyError(f"With the population's values: {error}") from None
        if levels[-1].height != resolve(spec, own, name, study.folder).height:
            raise DataError(
                f"The population has longer values of '{name}' than the source, so that its hierarchy has more levels "
                "there. Bring both to one form."
            )
    return levels


def _borrow(rows: Rows, marks: Marks, decoys: Sequence[Decoys], key: bytes, whole: bool) -> list[np.ndarray]:
    """The donor row of each decoy, recipient by recipient."""
    wanted = np.concatenate([np.empty(0, dtype=np.int64), *(d.owner for d in decoys)])
    chosen = donors(rows, marks, wanted, key, whole)
    return np.split(chosen, np.cumsum([len(d.owner) for d in decoys])[:-1])


def _planned_copy(marks: Marks, i: int, file: str) -> Copy:
    """What a dry run can say of a copy: of its decoys, at least k a class."""
    published = marks.linked.published
    withheld = marks.withheld(i)
    decoys = marks.marking.k * len(marks.decoys[i])
    records = int(published.sum() - published[withheld].sum()) + decoys
    return Copy(
        marks.marking.recipients[i],
        file,
        records,
        len(marks.decoys[i]),
        decoys,
        len(withheld),
        int(published[withheld].sum()),
    )


def _copy(marks: Marks, decoys: Decoys, i: int, file: str, records: int) -> Copy:
    withheld = marks.withheld(i)
    lost = int(marks.linked.published[withheld].sum())
    return Copy(marks.marking.recipients[i], file, records, len(decoys.classes), len(decoys.owner), len(withheld), lost)


def _write(table: pa.Table, path: Path, study: Study, models: Sequence[PrivacyModel], classes: ClassTable) -> None:
    """A copy's file, measured anew: it must keep what the release promises, decoys included."""
    write_table(table, path)
    keys = table.select(study.quasi).group_by(study.quasi, use_threads=False).aggregate([])
    measure_release(path, study, follow_distances(study, classes, models), classes, (len(table), len(keys)))


def _result(name: str | None, work: _Work, marks: Marks, made: Sequence[Copy], folder: str | None) -> Released:
    found = feasibility(work.linked, marks.marking.k)
    plan = work.plan
    return Released(name, found, tuple(made), marks.cost(), plan.loss, plan.recoding.levels, plan.suppressed, folder)


def _public(study: Study, job: Job, work: _Work, made: Sequence[Copy], seed: str) -> dict[str, Any]:
    """What the ledger shows to anybody: no decoys, no covers."""
    marking = job.marking
    return {
        "study": study.name,
        "source": study.label,
        "parameters": {
            "k": marking.k,
            "models": [m.to_dict() for m in all_models([KAnonymity(marking.k), *job.models], job.method)],
            "levels": dict(work.plan.recoding.levels),
            "suppressed": work.plan.suppressed,
            "decoys": marking.decoys,
            "covers": marking.covers,
            "collusion": marking.collusion,
            "false_accusation": marking.false_accusation,
            "risk": list(marking.risk),
            "seed": seed,
            "format": job.form,
        },
        "recipients": [
            {
                "name": copy.name,
                "file": copy.file,
                "records": copy.records,
                **job.terms.get(copy.name, Terms()).to_dict(),
            }
            for copy in made
        ],
    }


def _secret(work: _Work, marks: Marks, decoys: Sequence[Decoys], job: Job) -> dict[str, Any]:
    """What tracing needs, encrypted in the ledger."""
    linked, names = marks.linked, job.marking.recipients
    released = np.flatnonzero(linked.published > 0)
    position = {int(c): i for i, c in enumerate(released)}
    return {
        "columns": list(linked.columns),
        "identity": list(job.identity),
        "above": _above(work, linked),
        "classes": linked.texts(released),
        "sizes": linked.published[released].tolist(),
        "covers": [position[int(c)] for c in marks.covers],
        "holds": {name: "".join("1" if held else "0" for held in marks.holds[i]) for i, name in enumerate(names)},
        "code": None if marks.code is None else {**marks.code.to_dict(), "p": marks.code.p.tolist()},
        "pool": linked.texts(marks.pool),
        "population": int(linked.population.sum()),
        "decoys": {name: _decoy_rows(linked, found) for name, found in zip(names, decoys, strict=True)},
        "values": {name: found.values.to_pylist() for name, found in zip(names, decoys, strict=True)},
        "linked": {
            name: int(linked.population[found.classes].sum()) for name, found in zip(names, decoys, strict=True)
        },
    }


def _above(work: _Work, linked: Linked) -> dict[str, list[list[str | None]]]:
    """For each column the labels of the release and, level by level, what they become further up."""
    found = {}
    for name, of in zip(linked.columns, work.levels, strict=True):
        level = work.plan.recoding.levels[name]
        found[name] = [
            of.labels[upper].take(pa.array(of.up(level, upper))).to_pylist() for upper in range(level, of.height + 1)
        ]
    return found


def _decoy_rows(linked: Linked, decoys: Decoys) -> list[dict[str, str | None]]:
    labels = linked.texts(decoys.owner)
    people = decoys.people.to_pylist()
    return [
        {**person, **dict(zip(linked.columns, label, strict=True))}
        for person, label in zip(people, labels, strict=True)
    ]

"""The verb crosscopy: how well a coalition tells the decoys in its copies from real classes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.attack.compatible import fitting_classes
from veilmark.attack.crosscopy import Scope, Sight, features, look, tell, truth
from veilmark.attack.labels import Labels
from veilmark.attack.view import View
from veilmark.engines.duckdb import DuckDB
from veilmark.errors import DataError, OptionError, StudyError, listing
from veilmark.hierarchy import resolve
from veilmark.ledger import Release
from veilmark.ledger.files import digest
from veilmark.mark.discover import union_domain
from veilmark.messages import param
from veilmark.readable import Readable
from veilmark.study.opening import check_columns, engine_of, open_other, open_source
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable
from veilmark.trace.evidence import Marked
from veilmark.workbench.ledger import key_of, open_to_read

File = str | os.PathLike[str]


@dataclass(frozen=True)
class CrossCopy(Readable):
    """What a coalition can tell. `recipients` are those whose copies they are, where the files are as published;
    `seen_once` is of the classes in one of its copies alone, `whole` of all; `foreign` classes are in copies but not in the
    release, and left out."""

    release: str
    copies: tuple[str, ...]
    recipients: tuple[str | None, ...]
    seen_once: Scope
    whole: Scope
    foreign: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "release": self.release,
            "copies": list(self.copies),
            "recipients": list(self.recipients),
            "seen_once": self.seen_once.to_dict(),
            "all": self.whole.to_dict(),
            "foreign": self.foreign,
        }


def cross_copy(
    ledger: File,
    key: File,
    release: str,
    copies: Sequence[File],
    population: Any = None,
    study: Study | None = None,
    seed: int = 1,
) -> CrossCopy:
    """Give the attacker some copies of a release and, if it has one, a `population`; `study` then says how values become
    labels."""
    if not copies:
        raise OptionError(f"Name at least one copy: {param('copies', ['ada.csv', 'bob.csv'])}.")
    if population is not None and study is None:
        raise OptionError(
            f"With {param('population')}, give the study too: {param('study', 'study.yaml')}. The study defines "
            "how values become labels."
        )
    book = open_to_read(ledger)
    found = book.release(release)
    marked = Marked.of(found.id, book.secrets(found.id, key_of(book, key)))
    names = tuple(os.fspath(copy) for copy in copies)
    whose = _recipients(found, book.releases(), names)
    sight = look(_read(copies, marked), marked.columns)
    kind = truth(
        sight, marked.classes, [[row[c] for c in marked.columns] for of in marked.decoys.values() for row in of]
    )
    if (kind < 0).all():
        raise DataError(f"The copies have no class of release {found.id}. Give copies of that release.")
    linked = None if population is None or study is None else _linked(study, population, sight, marked.columns)
    seen = features(sight, linked)
    known = kind >= 0
    once = tell(seen, kind, known & (sight.presence == 1), seed)
    return CrossCopy(found.id, names, whose, once, tell(seen, kind, known, seed), int((~known).sum()))


def _read(copies: Sequence[File], marked: Marked) -> list[pa.Table]:
    tables = []
    with DuckDB() as engine:
        for copy in copies:
            table = engine.open(os.fspath(copy))
            check_columns(table, marked.columns, f"release {marked.release}")
            tables.append(table.query(f"SELECT * FROM {table.name}"))
            if not len(tables[-1]):
                raise DataError(f"'{copy}' has column names but no records.")
    return tables


def _recipients(release: Release, every: Sequence[Release], copies: Sequence[str]) -> tuple[str | None, ...]:
    """Whose copies these are, by their digests; copies of other releases are refused."""
    who = {
        release.digests.get(Path(str(given["file"])).name): str(given["name"])
        for given in release.public.get("recipients", [])
    }
    for copy in copies:
        if not Path(copy).is_file():
            raise DataError(f"There is no file '{copy}'. Give copies of release {release.id}.")
    found = [digest(Path(copy)) for copy in copies]
    elsewhere = {one: other.id for other in every for one in other.digests.values()}
    for copy, one in zip(copies, found, strict=True):
        if one in elsewhere and one not in release.digests.values():
            raise OptionError(
                f"'{copy}' is a copy of release {elsewhere[one]}, not of {release.id}. Give copies of one release, and name "
                f"it with {param('release')}."
            )
    twice = [copy for i, copy in enumerate(copies) if found[i] in found[:i]]
    if twice:
        raise OptionError(f"{listing(twice)} is given more than once. Give each copy once.")
    return tuple(who.get(one) for one in found)


def _linked(study: Study, population: Any, sight: Sight, columns: Sequence[str]) -> np.ndarray:
    """How many of the population each class links to."""
    lacking = [name for name in columns if name not in study.quasi]
    if lacking:
        raise StudyError(
            f"The release has the quasi-identifier {listing(lacking)}, but {study.name} does not. Give the study "
            "that the release was made with."
        )
    with engine_of(study) as engine:
        table = open_other(engine, study, population, columns)
        people = ClassTable.build(table, columns)
        source = open_source(engine, study)
        domains = [union_domain(own, source.domain(c)) for c, own in zip(columns, people.domains, strict=True)]
    view, values = _view(study, sight, columns, people, domains)
    sets = fitting_classes(view, values, len(people))
    persons = np.bincount(sets.of, weights=people.size, minlength=len(sets))
    return np.bincount(sets.members, weights=np.repeat(persons, np.diff(sets.starts)), minlength=len(sight))


def _view(
    study: Study, sight: Sight, columns: Sequence[str], people: ClassTable, domains: Sequence[Any]
) -> tuple[View, Mapping[str, np.ndarray]]:
    """The copies' classes, their labels read by the study's hierarchies, and the population's values."""
    quasi, codes, values = {}, [], {}
    for i, (name, domain) in enumerate(zip(columns, domains, strict=True)):
        levels = resolve(study.spec.attributes[name].hierarchy, domain, name, study.folder)
        labels = sight.labels[i].unique()
        quasi[name] = Labels.read(labels, domain, levels)
        codes.append(np.asarray(pc.index_in(sight.labels[i], labels)))
        values[name] = domain.codes_of(people.domains[i].text)[people.codes[i]]
    size = sight.size
    everybody = np.arange(len(sight))[None, :]
    return View(quasi, np.array(codes), everybody, size, (), {}, False), values

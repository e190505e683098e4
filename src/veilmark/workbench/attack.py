"""The verb attack: try on a release what an attacker would."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.attack import ATTACKS, RULE, AttackResult, Population, View, attack_view, verdict, without_targets
from veilmark.attack.view import view_of_sliced, view_of_table
from veilmark.charted import Charted
from veilmark.defaults import KNOWN, TARGETS
from veilmark.engines.base import Engine, Table
from veilmark.errors import DataError, OptionError, StudyError, VeilmarkWarning, did_you_mean, listing
from veilmark.hierarchy import Levels, resolve
from veilmark.readable import Grid, Summary, count, share
from veilmark.report import attack_chart
from veilmark.report.charts import check_path, save
from veilmark.study.opening import engine_of, fold_persons, open_other, open_source
from veilmark.study.study import Study
from veilmark.tables.cells import BatchCoder, pack
from veilmark.tables.classes import ClassTable
from veilmark.tables.domain import Domain
from veilmark.tables.persons import Fingerprints, PersonTable, row_codes
from veilmark.veil.sliced import Sliced, is_folder_of_tables
from veilmark.workbench.anonymize_persons import resolve_all


@dataclass(frozen=True)
class Attacked(Charted):
    """What the attacks on a release came to."""

    release: str
    persons: int
    rows: int
    classes: int
    attacks: Mapping[str, AttackResult]
    known: int
    seed: int
    tolerances: Mapping[str, float]
    """How far a guessed number may be off to count as right, by attribute."""
    notes: tuple[str, ...]

    def chart(self) -> Any:
        """What each attack found out."""
        return attack_chart.attacks(self.attacks)

    def summary(self) -> Summary:
        headings = ("attack", "success", "95 % interval", "control", "gain", "that is", "targets")
        grid = Grid(headings, [(name, *_figures(of)) for name, of in self.attacks.items()])
        headline = f"Attacks on {self.release}: {count(self.rows, 'row')} in {count(self.classes, 'class')}, "
        headline += f"from {count(self.persons, 'person')}."
        return Summary(headline, (grid,), (verdict(self.attacks), *without_targets(self.attacks), RULE, *self.notes))

    def to_dict(self) -> dict[str, Any]:
        return {
            "release": self.release,
            "persons": self.persons,
            "rows": self.rows,
            "classes": self.classes,
            "attacks": {name: result.to_dict() for name, result in self.attacks.items()},
            "known": self.known,
            "seed": self.seed,
            "tolerances": dict(self.tolerances),
            "notes": list(self.notes),
        }


def _figures(found: AttackResult) -> tuple[object, ...]:
    if not found.targets:
        return "-", "-", "-", "-", "-", 0
    low, high = found.interval
    points = f"{100 * found.gain:+.1f}"
    interval = f"{share(low)} to {share(high)}"
    return share(found.success), interval, share(found.control), points, found.amount, found.targets


def attack(
    study: Study,
    release: Any,
    attacks: Sequence[str] = ATTACKS,
    targets: int = TARGETS,
    known: int = KNOWN,
    population: Any = None,
    seed: int = 1,
    chart: str | os.PathLike[str] | None = None,
) -> Attacked:
    """Attack a release of the study's source: a file, a frame, a folder of tables, or a `Sliced`.

    `population` is a table of everybody (a file or a frame) for the attack `linkage`; without it, that is the source.
    `chart` is a file to draw the result to.
    """
    check_attacks(study, attacks, targets, known)
    if chart is not None:
        check_path(Path(chart))
    with engine_of(study) as engine:
        persons = fold_persons(engine, study) if study.person else persons_of_records(engine, study)
        levels = resolve_all(study, persons)
        view, label, notes = _view(engine, study, release, persons, levels)
        everybody = _everybody(engine, study, population, view, persons) if "linkage" in attacks else None
    found = attack_view(view, persons, levels, attacks, targets, known, everybody, seed)
    if chart is not None:
        save(attack_chart.attacks(found), Path(chart))
    tolerances = {name: meaning.tolerance for name, meaning in view.meanings.items() if meaning.tolerance}
    return Attacked(label, len(persons), view.rows, len(view), found, known, seed, tolerances, (*notes, *view.notes))


def check_attacks(study: Study, attacks: Sequence[str], targets: int, known: int) -> None:
    for name in attacks:
        if name not in ATTACKS:
            raise OptionError(
                f"'{name}' is not an attack.{did_you_mean(name, ATTACKS)} Use one of: {', '.join(ATTACKS)}."
            )
    if not attacks or targets < 1 or known < 1:
        raise OptionError("Give at least one attack, one target and one known value.")
    if not study.quasi or not study.sensitive:
        raise StudyError(
            "An attack needs at least one quasi-identifier (which the attacker may know) and one sensitive "
            f"attribute (which the attacker wants to know), but {study.name} lacks one of them. Give columns "
            "these roles."
        )


def persons_of_records(engine: Engine, study: Study) -> PersonTable:
    """The study's source without a person column: every record is a person."""
    columns = _read(open_source(engine, study), [*study.quasi, *study.sensitive])
    for name, column in columns.items():
        fill = study.spec.attributes[name].fill
        columns[name] = column.filled(fill) if fill else column
    quasi, sensitive = ({name: columns[name] for name in names} for names in (study.quasi, study.sensitive))
    return PersonTable(quasi, sensitive, len(columns[study.quasi[0]]))


def _read(table: Table, names: Sequence[str]) -> dict[str, Fingerprints]:
    """Some columns of all rows, coded."""
    table = table.spooled(names)
    domains = {name: table.domain(name) for name in names}
    coders = [BatchCoder(domain, 1, np.int32) for domain in domains.values()]
    codes: list[list[np.ndarray]] = [[np.empty(0, np.int32)] for _ in names]
    for batch in table.rows(names):
        for i, coder in enumerate(coders):
            codes[i].append(coder.shares(batch.column(i)))
    columns = zip(names, codes, strict=True)
    found = {name: Fingerprints.of_codes(domains[name], np.concatenate(parts)) for name, parts in columns}
    if not len(found[names[0]]):
        raise DataError(f"'{table.label}' has column names but no records.")
    return found


def _view(
    engine: Engine, study: Study, release: Any, persons: PersonTable, levels: Mapping[str, Levels]
) -> tuple[View, str, list[str]]:
    """What an attacker sees of a release, its name, and what it lacks."""
    if isinstance(release, str | os.PathLike) and is_folder_of_tables(Path(release)):
        label, release = os.fspath(release), Sliced.open(release)
    else:
        label = os.fspath(release) if isinstance(release, str | os.PathLike) else "the release"
    if isinstance(release, Sliced):
        names = [*release.quasi.column_names, *(name for group in release.groups for name in group)]
        _check_published(names, study, label)
        return view_of_sliced(release, persons, levels), label, _lacking(names, study)
    table = open_other(engine, study, release, [])
    _check_published(list(table.columns), study, label)
    if kept := [c for c in study.pseudonyms if c in table.columns]:
        warnings.warn(
            f"'{label}' has pseudonyms ('{kept[0]}'), which link all records of a person. These attacks do not "
            "use them. Real attackers can succeed more often than shown.",
            VeilmarkWarning,
            stacklevel=3,
        )
    columns = _read(table, [name for name in (*study.quasi, *study.sensitive) if name in table.columns])
    return view_of_table(columns, persons, levels), label, _lacking(list(table.columns), study)


def _check_published(names: Sequence[str], study: Study, label: str) -> None:
    if not set(names) & set(study.sensitive):
        raise DataError(
            f"'{label}' has none of the sensitive attributes that {study.name} names, such as '{study.sensitive[0]}', so "
            "there is nothing to attack. Name a release of this study's source."
        )


def _lacking(names: Sequence[str], study: Study) -> list[str]:
    lost = [name for name in (*study.quasi, *study.sensitive) if name not in names]
    return [f"Not attacked, because the release does not have them: {listing(lost)}."] if lost else []


def _everybody(engine: Engine, study: Study, population: Any, view: View, persons: PersonTable) -> Population | None:
    """The population, where it is another than the persons: a table that is given, or the source before it was folded."""
    if population is not None:
        return _population(engine, study, population, view, persons)
    if study.person is None or study.folding.rule == "error" or not view.quasi:
        return None
    return _unfolded(open_source(engine, study), study.person, study, view)


def _unfolded(table: Table, person: str, study: Study, view: View) -> Population:
    """Everybody with all their combinations of quasi-identifiers: a row of a release may be of any of a person's records."""
    names = list(view.quasi)
    visits = table.spooled([person, *names]).visits(names, person)
    domains = {name: table.domain(name) for name in names}
    codes = row_codes(visits.columns, domains)
    keys, _ = pack([codes[name] for name in names], [len(domains[name]) for name in names])
    _, first, combination = np.unique(keys, return_index=True, return_inverse=True)
    who = np.unique(visits.hashes, return_inverse=True)[1]
    pairs = np.unique(who.astype(np.int64) * len(first) + combination)
    holdings = (pairs // len(first), pairs % len(first))
    levels = {c: resolve(study.spec.attributes[c].hierarchy, domains[c], c, study.folder) for c in names}
    count = np.bincount(holdings[1], minlength=len(first))
    return Population(domains, levels, {name: codes[name][first] for name in names}, count, holdings)


def _population(engine: Engine, study: Study, data: Any, view: View, persons: PersonTable) -> Population:
    """A table of everybody, by the quasi-identifiers that the release has."""
    names = list(view.quasi)
    table = open_other(engine, study, data, names)
    classes = ClassTable.build(table, names, (), study.person if study.person in table.columns else None)
    if not len(classes):
        raise DataError(f"'{table.label}' has column names but no records.")
    domains, levels, codes = {}, {}, {}
    for i, name in enumerate(names):
        both = [persons.quasi[name].domain.text, classes.domains[i].text]
        domains[name] = Domain.of(pa.concat_arrays([text.cast(pa.string()) for text in both]), name)
        levels[name] = resolve(study.spec.attributes[name].hierarchy, domains[name], name, study.folder)
        codes[name] = domains[name].codes_of(classes.domains[i].text)[classes.codes[i]]
    return Population(domains, levels, codes, classes.size)

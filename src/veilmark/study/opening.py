"""Opening: a study, its engine, its tables, and the classes in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from veilmark.engines import engine_for
from veilmark.engines.base import Engine, Table
from veilmark.engines.files import SUFFIXES, find_files, only_files
from veilmark.engines.sources import PostgresTable, SparkFiles, is_spark_frame
from veilmark.errors import DataError, StudyError, did_you_mean
from veilmark.hierarchy import IntervalSpec, Levels, resolve
from veilmark.privacy.measures import Sensitive, rank_values
from veilmark.study.study import Settings, Study
from veilmark.tables.classes import ClassTable
from veilmark.tables.domain import NUMBER, Domain
from veilmark.tables.persons import PersonTable, fold


def open_study(path: str | os.PathLike[str], threads: int | None = None, memory: str | None = None) -> Study:
    """Read a study file; `threads` and `memory` limit the engine."""
    return Study.open(path, Settings(threads, memory))


@contextmanager
def engine_of(study: Study) -> Iterator[Engine]:
    """The study's engine, closed at the end."""
    with engine_for(study.source()[0], study.settings.threads, study.settings.memory) as engine:
        yield engine


def open_source(engine: Engine, study: Study) -> Table:
    """The study's source table, with all the columns that the study names."""
    data, csv = study.source()
    table = engine.open(data, csv)
    named = [*study.spec.attributes, *([study.person] if study.person else [])]
    check_columns(table, named, study.name)
    declare_missing(table, study)
    return table


def declare_missing(table: Table, study: Study) -> None:
    """The study's codes for missing values mean missing in the table."""
    codes = {name: given for name, given in study.missing.items() if name in table.columns}
    for name, given in codes.items():
        wrong = [
            code for code in given if table.columns[name] in ("number", "float") and not re.fullmatch(NUMBER, code)
        ]
        if wrong:
            raise StudyError(
                f"'{name}' holds numbers, so '{wrong[0]}' cannot be one of its codes for missing values. Remove "
                f"'{wrong[0]}' from the codes in the study ({name}: missing)."
            )
    if codes:
        table.declare_missing(codes)


def fold_persons(engine: Engine, study: Study) -> PersonTable:
    """The study's source, one row a person."""
    return fold_table(open_source(engine, study), study)


def fold_table(table: Table, study: Study) -> PersonTable:
    """The study's source, which is open already, one row a person."""
    if study.person is None:
        raise StudyError(f"{study.name} has no person column. Add a line such as `person: patient_id`.")
    folding = study.folding
    if folding.date is not None:
        check_columns(table, [folding.date], study.name)
    chosen = [study.person, *study.quasi, *study.sensitive, *([folding.date] if folding.date else [])]
    table = table.spooled(list(dict.fromkeys(chosen)))
    fill = {name: a.fill for name, a in study.spec.attributes.items() if a.fill is not None}
    return fold(table, study.person, study.quasi, study.sensitive, folding, fill)


def open_other(engine: Engine, study: Study, data: Any, needed: Sequence[str], joined: bool = False) -> Table:
    """Another table (a file or a frame) that must have some columns; a CSV may be written as the study's source is.

    `joined` says that it will be joined with the study's source.
    """
    source = os.fspath(data) if isinstance(data, os.PathLike) else data
    _check_place(study.source()[0], source)
    table = engine.open(source, joined=joined)
    form = study.source()[1]
    if form is not None and isinstance(source, str) and not set(needed) <= set(table.columns):
        table = engine.open(source, form, joined)
    advice = f"{SPELLING} If the table does not have it, add it there, or change its role in {study.name}."
    check_columns(table, needed, study.name, advice)
    declare_missing(table, study)
    return table


def _check_place(own: Any, other: Any) -> None:
    """Another table is where the source's engine can read it; a table of the database is named as one."""
    elsewhere = isinstance(other, PostgresTable) and not isinstance(own, PostgresTable)
    if elsewhere or (isinstance(other, SparkFiles) and not (isinstance(own, SparkFiles) or is_spark_frame(own))):
        raise DataError(only_files(str(other)))
    if isinstance(own, PostgresTable) and isinstance(other, str) and _looks_like_table(other):
        raise DataError(f"There is no file '{other}'. For a table of the database, write table:{other}.")


def _looks_like_table(name: str) -> bool:
    """Whether a name is that of a table, `voters` or `clinic.voters`, and of no file."""
    file = Path(name)
    return bool(re.fullmatch(r"[\w.$]+", name)) and file.suffix.lower() not in SUFFIXES and not file.exists()


SPELLING = "Check its spelling, capital letters included."


def check_columns(table: Table, needed: Sequence[str], why: str, advice: str = SPELLING) -> None:
    """Every needed column is there, and holds plain values; `advice` says what to do about one that is not."""
    lacking = [name for name in needed if name not in table.columns]
    if lacking and len(lacking) == len(needed) > 1:
        raise DataError(
            f"'{table.label}' has none of the columns that {why} names, such as '{lacking[0]}'. Check that this "
            "is the right table and that its first line has the column names."
        )
    if lacking:
        raise DataError(
            f"'{table.label}' has no column '{lacking[0]}', which {why} names.{did_you_mean(lacking[0], table.columns)} "
            f"{advice}"
        )
    nested = [name for name in needed if table.columns[name] == "nested"]
    if nested:
        raise DataError(
            f"Column '{nested[0]}' of '{table.label}' has lists, records or bytes, but veilmark compares only "
            "plain values. Flatten the column, or remove it from the study; then it is not published."
        )


def class_table(table: Table, study: Study, sensitive: bool = True) -> ClassTable:
    """A table's classes by the study's quasi-identifiers, with or without its sensitive attributes."""
    who = study.person
    if who and (lacking := table.missing(who)):
        raise DataError(
            f"The person column '{who}' of '{table.label}' is empty in {lacking:,} records, so their person is "
            "unknown. Fill it in, remove those records, or remove `person` from the study."
        )
    classes = ClassTable.build(table, study.quasi, study.sensitive if sensitive else (), who)
    if not classes.total_records:
        raise DataError(f"'{table.label}' has column names but no records.")
    return classes


def source_classes(table: Table, study: Study) -> ClassTable:
    """The classes of the study's own source. A study keeps those of files until the files change, so that several verbs
    read the rows once."""
    stamp = _stamp(study)
    if stamp is None:
        return class_table(table, study)
    key = (
        stamp,
        repr(study.spec.source),
        study.person,
        tuple(study.quasi),
        tuple(study.sensitive),
        repr(study.missing),
    )
    if study._kept.get("key") != key:
        study._kept.update(key=key, classes=class_table(table, study))
    classes: ClassTable = study._kept["classes"]
    return classes


def _stamp(study: Study) -> object:
    """What changes when the source's files do; None for sources that are not files of this machine."""
    path = study.source()[0]
    if not isinstance(path, str):
        return None
    return tuple((str(f), f.stat().st_mtime_ns, f.stat().st_size) for f in find_files(path))


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


def is_number(study: Study, name: str, domain: Domain) -> bool:
    """Whether Mondrian cuts an attribute as numbers: they are numbers, and no hierarchy of categories is given."""
    spec = study.spec.attributes[name].hierarchy
    return domain.numbers is not None and (spec is None or isinstance(spec, IntervalSpec))

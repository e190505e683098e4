"""The study file: what study.yaml may hold, checked as it is read, and written again."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from veilmark.engines.files import SUFFIXES, CsvFormat
from veilmark.engines.sources import PostgresTable, SparkFiles, from_environment
from veilmark.errors import StudyError, did_you_mean, is_address
from veilmark.hierarchy import HierarchySpec
from veilmark.hierarchy.kinds import HierarchyLike, hierarchy_content
from veilmark.messages import command
from veilmark.tables.persons import Fill
from veilmark.yamlfile import Document, read_yaml, validate

Role = Literal["direct", "quasi", "sensitive", "other"]
Distance = Literal["equal", "ordered", "hierarchical"]
Unnamed = Literal["leave-out", "other"]
"""What becomes of columns that the study does not name: they are not published, or have the role other."""

VERSION = 1
"""Of the study file, as it is written."""

UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""For each older version of the study file, what makes its content that of the next one. Version 1 is the first."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FileSource(_Strict):
    """A source file whose form is given rather than found out."""

    engine: Literal["duckdb"] = "duckdb"
    path: str
    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None


class PostgresSource(_Strict):
    """A table in a database; the address is given, or named as `env:DATABASE_URL`."""

    engine: Literal["postgres"]
    url: str
    table: str


class SparkSource(_Strict):
    """Files that Spark reads (Parquet, CSV), or a table that it knows."""

    engine: Literal["spark"]
    path: str | None = None
    table: str | None = None
    format: Literal["parquet", "csv", "orc", "delta"] | None = None
    remote: str | None = None
    master: str | None = None
    most_classes: int | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _one_of_them(self) -> SparkSource:
        if (self.path is None) == (self.table is None):
            raise ValueError("give either path or table")
        return self


def _kind_of_source(given: Any) -> str:
    """Which of the kinds of source is meant."""
    if isinstance(given, str):
        return "text"
    return str(given.get("engine", "duckdb") if isinstance(given, dict) else getattr(given, "engine", "duckdb"))


ENGINES = ("duckdb", "spark", "postgres")


def _lacking_engine(given: Any) -> list[str]:
    """The engines that a source is for, by its keys, where it names none and the embedded one does not know them."""
    if not isinstance(given, dict) or "engine" in given:
        return []
    beyond = set(given) - set(FileSource.model_fields)
    shared = {"postgres": beyond & set(PostgresSource.model_fields), "spark": beyond & set(SparkSource.model_fields)}
    most = max(map(len, shared.values()))
    return [engine for engine, keys in shared.items() if keys and len(keys) == most]


Source = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[FileSource, Tag("duckdb")]
    | Annotated[PostgresSource, Tag("postgres")]
    | Annotated[SparkSource, Tag("spark")],
    Discriminator(_kind_of_source),
]


class Attribute(_Strict):
    """One column: its role and, by role, its hierarchy, distance and weights, or how it is kept."""

    role: Role
    hierarchy: HierarchySpec | None = None
    distance: Distance = "equal"
    order: list[str] | None = None
    weights: dict[str, Any] | None = None
    keep: Literal["pseudonym"] | None = None
    missing: list[str] | None = None
    fill: Fill | None = None

    @field_validator("order", "missing", mode="before")
    @classmethod
    def _texts(cls, given: Any) -> Any:
        return [str(v) for v in given] if isinstance(given, list) else given

    @model_validator(mode="after")
    def _fits_role(self) -> Attribute:
        if self.role != "sensitive" and (self.weights or self.order or self.distance != "equal"):
            raise ValueError(f"weights, distance and order need the role sensitive, but the role here is {self.role}")
        if self.keep and self.role != "direct":
            raise ValueError(f"keep: {self.keep} needs the role direct, but the role here is {self.role}")
        if self.distance == "hierarchical" and self.hierarchy is None:
            raise ValueError("distance: hierarchical needs a hierarchy")
        return self


class Latest(_Strict):
    """Of a person's records, the one with the latest date counts."""

    latest: str


class StudySpec(_Strict):
    """The study file."""

    version: Literal[1]
    source: Source | None = None
    person: str | None = None
    fold: Literal["error", "first", "mode"] | Latest = "error"
    unnamed: Unnamed = "leave-out"
    attributes: dict[str, Attribute] = Field(default_factory=dict)

    @field_validator("source", mode="before")
    @classmethod
    def _known_engine(cls, given: Any) -> Any:
        if given is not None and (engine := _kind_of_source(given)) not in ("text", *ENGINES):
            raise ValueError(f"engine '{engine}' is not known. Known engines: {', '.join(ENGINES)}")
        if engines := _lacking_engine(given):
            raise ValueError(f"the engine is missing. Add {' or '.join(f'engine: {name}' for name in engines)}")
        if isinstance(given, str) and is_address(given):
            raise ValueError(
                "this is a URL, not a file path. Write {engine: postgres, url: env:DATABASE_URL, table: …} for a "
                "table in PostgreSQL, {engine: spark, path: …} for files that Spark reads"
            )
        return given

    @model_validator(mode="after")
    def _person_is_no_attribute(self) -> StudySpec:
        role = self.attributes[self.person].role if self.person in self.attributes else None
        if role in ("quasi", "sensitive"):
            raise ValueError(f"'{self.person}' is the person column (person: …), so its role cannot be {role}")
        return self


def resolve_source(source: Source, folder: Path) -> tuple[Any, CsvFormat | None]:
    """What an engine opens, as a study file in a folder names it, and how a CSV is written where that is said."""
    if isinstance(source, str):
        return str(folder / source), None
    if isinstance(source, PostgresSource):
        return PostgresTable(from_environment(source.url), source.table), None
    if isinstance(source, SparkSource):
        path = source.path and (source.path if "://" in source.path else str(folder / source.path))
        remote = source.remote and from_environment(source.remote)
        given = (source.table, source.format, remote, source.master, source.most_classes)
        return SparkFiles(path, *given), None
    return str(folder / source.path), CsvFormat(source.delimiter, source.quote, source.encoding)


def attributes_of(
    attributes: Mapping[str, Any],
    roles: Mapping[str, Sequence[str]],
    hierarchies: Mapping[str, HierarchyLike],
    weights: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """What a study file would hold under `attributes:`, from columns as it describes them, columns by role, and what is
    known of some of them."""
    columns = {name: {"role": of} if isinstance(of, str) else dict(of) for name, of in attributes.items()}
    for role, names in roles.items():
        if isinstance(names, str):
            raise StudyError(f"{role}='{names}' is a text. List the columns: {role}=['{names}'].")
        for name in names:
            if columns.setdefault(name, {"role": role})["role"] != role:
                raise StudyError(f"'{name}' has two roles: {columns[name]['role']} and {role}. Give it one role.")
    known = {
        "hierarchy": {name: hierarchy_content(of) for name, of in hierarchies.items()},
        "weights": {name: dict(of) for name, of in weights.items()},
    }
    for key, by_column in known.items():
        for name, of in by_column.items():
            if name not in columns:
                raise StudyError(
                    f"The column '{name}' has {key}, but no role.{did_you_mean(name, columns)} Add it to "
                    "the quasi-identifiers or the sensitive attributes."
                )
            columns[name][key] = of
    return columns


def read_spec(file: Path) -> StudySpec:
    """What a study file says."""
    _refuse_table(file)
    document = read_yaml(file, StudyError)
    _upgrade(document)
    return validate(document, StudySpec, StudyError)


def spec_text(spec: StudySpec, folder: Path, new_folder: Path) -> str:
    """The study file's text, in a folder from which relative paths mean what they mean from `folder`."""
    content = spec.model_dump(mode="json", exclude_defaults=True) | {"version": VERSION}
    ordered = {key: content[key] for key in StudySpec.model_fields if key in content}
    _move_paths(ordered, folder.resolve(), new_folder.resolve())
    return yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True)


def _refuse_table(file: Path) -> None:
    """A table given in place of a study is told by its name, unless it begins as a study does."""
    if file.suffix.lower() not in SUFFIXES or not file.is_file():
        return
    with file.open("rb") as stream:
        named_so = re.search(rb"^version\s*:", stream.read(1 << 16), re.MULTILINE)
    if not named_so:
        raise StudyError(f"This is a table, not a study. {command('init', str(file))}")


def _upgrade(document: Document) -> None:
    """Make a study file's content that of the present version; one of a later veilmark is not read by half."""
    while isinstance(document.data, dict) and isinstance(version := document.data.get("version"), int):
        if version > VERSION:
            raise StudyError(
                f"{document.place(('version',))}: this study file has version {version}, but this veilmark reads "
                f"versions up to {VERSION}. Update veilmark."
            )
        if version not in UPGRADES:
            return
        document.data = UPGRADES[version](document.data)


PATH_KEYS = ("source", "path", "file", "ahp", "attributes", "model")


def _move_paths(content: Any, old: Path, new: Path) -> None:
    """Relative paths in a study's content, so that they mean the same from another folder."""
    if old == new or not isinstance(content, dict):
        return
    for key, value in content.items():
        if key in PATH_KEYS and isinstance(value, str) and "://" not in value:
            content[key] = os.path.relpath(old / value, new)
        elif key in PATH_KEYS and isinstance(value, list):
            content[key] = [os.path.relpath(old / v, new) for v in value]
        else:
            _move_paths(value, old, new)

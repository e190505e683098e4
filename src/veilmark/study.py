"""Study: what a table is, who is in it, and what each column means. Reads and writes study.yaml."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from veilmark.engines.files import CsvFormat
from veilmark.engines.sources import PostgresTable, SparkFiles, from_environment
from veilmark.errors import StudyError, is_address
from veilmark.hierarchy import HierarchySpec
from veilmark.output import write_text
from veilmark.persons import Fill, Folding
from veilmark.yamlfile import Document, explain, read_yaml, validate

if TYPE_CHECKING:
    from veilmark.privacy.measures import Measures
    from veilmark.score.breach import Breach
    from veilmark.score.ranking import Ranking
    from veilmark.score.scores import Options, RecordScore, ScoreResult
    from veilmark.utility.view import UtilityView
    from veilmark.veil.anonymize import Anonymized, Method
    from veilmark.veil.recoding import Recoding
    from veilmark.veil.sliced import Sliced
    from veilmark.workbench.applying import Applied
    from veilmark.workbench.attacking import Attacked
    from veilmark.workbench.slicing import PersonsMethod

Path_ = str | os.PathLike[str]
Role = Literal["direct", "quasi", "sensitive", "other"]
Distance = Literal["equal", "ordered", "hierarchical"]

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
            raise ValueError("give path or table, one of them")
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
            raise ValueError(
                f"weights, distance and order belong to role sensitive, and this one's role is {self.role}"
            )
        if self.keep and self.role != "direct":
            raise ValueError(f"keep: {self.keep} belongs to role direct, and this one's role is {self.role}")
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
    attributes: dict[str, Attribute] = Field(default_factory=dict)

    @field_validator("source", mode="before")
    @classmethod
    def _known_engine(cls, given: Any) -> Any:
        if given is not None and (engine := _kind_of_source(given)) not in ("text", *ENGINES):
            raise ValueError(f"engine '{engine}' is not known; there are {', '.join(ENGINES)}")
        if engines := _lacking_engine(given):
            raise ValueError(f"the engine is missing. Add {' or '.join(f'engine: {name}' for name in engines)}")
        if isinstance(given, str) and is_address(given):
            raise ValueError(
                "an address is no file. Write {engine: postgres, url: env:DATABASE_URL, table: …} for a table in "
                "PostgreSQL, {engine: spark, path: …} for files that Spark reads"
            )
        return given

    @model_validator(mode="after")
    def _person_is_no_attribute(self) -> StudySpec:
        role = self.attributes[self.person].role if self.person in self.attributes else None
        if role in ("quasi", "sensitive"):
            raise ValueError(f"'{self.person}' tells persons apart (person: …), so its role cannot be {role}")
        return self


@dataclass(frozen=True)
class Settings:
    """How much of the machine the engine may use; None: what it finds."""

    threads: int | None = None
    memory: str | None = None


@dataclass(frozen=True)
class Study:
    """A table and what its columns mean. `data` is a frame where the source is no file."""

    spec: StudySpec
    folder: Path = field(default_factory=Path)
    data: Any = None
    name: str = "the study"
    settings: Settings = field(default_factory=Settings)

    @classmethod
    def open(cls, path: str | os.PathLike[str], settings: Settings | None = None) -> Study:
        """Read a study file."""
        file = Path(path)
        document = read_yaml(file, StudyError)
        _upgrade(document)
        spec = validate(document, StudySpec, StudyError)
        if spec.source is None:
            raise StudyError(f"{file.name} names no source. Add a line such as `source: patients.csv`.")
        return cls(spec, file.resolve().parent, name=file.name, settings=settings or Settings())

    @classmethod
    def of(
        cls,
        data: Any,
        attributes: Mapping[str, Any],
        person: str | None = None,
        settings: Settings | None = None,
    ) -> Study:
        """A study of a frame (pandas, polars, Arrow, a DuckDB relation) or of a file.

        An attribute is a role, or a mapping as in the study file.
        """
        listed = {c: {"role": a} if isinstance(a, str) else a for c, a in attributes.items()}
        path = data if isinstance(data, str | os.PathLike) else None
        content = {"version": VERSION, "source": path and os.fspath(path), "person": person, "attributes": listed}
        try:
            spec = StudySpec.model_validate(content)
        except ValidationError as problem:
            raise StudyError(explain(problem, StudySpec)) from None
        return cls(spec, data=None if path else data, settings=settings or Settings())

    def __repr__(self) -> str:
        roles = ", ".join(f"{role}: {' '.join(self._with_role(role)) or '-'}" for role in ("quasi", "sensitive"))
        return f"Study({self.label}; {roles}{f'; person: {self.person}' if self.person else ''})"

    @property
    def label(self) -> str:
        """What messages call the source."""
        source = self.spec.source
        if source is None:
            return str(self.data) if isinstance(self.data, PostgresTable | SparkFiles) else "the frame"
        if isinstance(source, str):
            return source
        return source.path if isinstance(source, FileSource) else str(getattr(source, "path", None) or source.table)

    @property
    def person(self) -> str | None:
        return self.spec.person

    @property
    def quasi(self) -> list[str]:
        return self._with_role("quasi")

    @property
    def sensitive(self) -> list[str]:
        return self._with_role("sensitive")

    @property
    def direct(self) -> list[str]:
        return self._with_role("direct")

    @property
    def pseudonyms(self) -> list[str]:
        """The direct identifiers that are published as pseudonyms."""
        return [name for name, attribute in self.spec.attributes.items() if attribute.keep == "pseudonym"]

    @property
    def folding(self) -> Folding:
        """Which value of a quasi-identifier counts where a person's records differ."""
        given = self.spec.fold
        return Folding("latest", given.latest) if isinstance(given, Latest) else Folding(given)

    @property
    def missing(self) -> dict[str, list[str]]:
        """The codes that mean missing, of the columns that have some."""
        return {name: list(a.missing) for name, a in self.spec.attributes.items() if a.missing}

    def _with_role(self, role: str) -> list[str]:
        return [name for name, attribute in self.spec.attributes.items() if attribute.role == role]

    def source(self) -> tuple[Any, CsvFormat | None]:
        """What an engine opens, and how a CSV is written where the study says so."""
        source = self.spec.source
        if source is None:
            return self.data, None
        if isinstance(source, str):
            return str(self.folder / source), None
        if isinstance(source, PostgresSource):
            return PostgresTable(from_environment(source.url), source.table), None
        if isinstance(source, SparkSource):
            path = source.path and (source.path if "://" in source.path else str(self.folder / source.path))
            remote = source.remote and from_environment(source.remote)
            given = (source.table, source.format, remote, source.master, source.most_classes)
            return SparkFiles(path, *given), None
        return str(self.folder / source.path), CsvFormat(source.delimiter, source.quote, source.encoding)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the study file."""
        if self.spec.source is None:
            raise StudyError("A study of a frame has no source file to name. Write the frame to Parquet first.")
        content = self.spec.model_dump(mode="json", exclude_defaults=True) | {"version": VERSION}
        ordered = {key: content[key] for key in StudySpec.model_fields if key in content}
        _move_paths(ordered, self.folder.resolve(), Path(path).resolve().parent)
        write_text(Path(path), yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True))

    def measure(self, data: Any = None, **options: Any) -> Measures:
        """k, l, t, α, β, δ and re-identification risk; of `data`, where given, by this study's roles."""
        from veilmark import workbench

        return workbench.measure(self, data, **options)

    @overload
    def anonymize(self, method: Method, output: Path_ | None = None, **more: Any) -> Anonymized: ...

    @overload
    def anonymize(self, method: PersonsMethod, output: Path_ | None = None, **more: Any) -> Sliced: ...

    def anonymize(
        self, method: Method | PersonsMethod, output: Path_ | None = None, **more: Any
    ) -> Anonymized | Sliced:
        """The least change by which the table meets what the method asks for, such as `Ola(k=5, suppression=0.05)`.

        The release is written to `output`; without one it is the result's `table()`. More: `population` (a file or a
        frame, for models that compare with one), `recoding` and `pseudonym_key`, files. Methods for many records a person,
        such as `FSlip(k=5)`, write a folder of tables; more: `form` and `chart`.
        """
        from veilmark.veil.anonymize import Method as OneTable
        from veilmark.workbench.anonymizing import anonymize
        from veilmark.workbench.slicing import anonymize_persons

        if isinstance(method, OneTable):
            return anonymize(self, (), output, method, **more)
        return anonymize_persons(self, method, output, **more)

    def attack(self, release: Any, **more: Any) -> Attacked:
        """What adversaries find out from a release, a file or a folder; more: `attacks`, `targets`, `known`, `seed`."""
        from veilmark.workbench.attacking import attack

        return attack(self, release, **more)

    def utility(self, release: Any, **more: Any) -> UtilityView:
        """What a release still tells, beside the source; more: `data`, `target`, `chart`, `seed`."""
        from veilmark.workbench.utility import view_utility

        return view_utility(self, release, **more)

    def apply(self, recoding: Recoding | str | os.PathLike[str], output: Path_ | None = None, **more: Any) -> Applied:
        """A recoding applied to `data` of this study, by default its source.

        More: `data`, `k`, `suppress`, `unknown` and `pseudonym_key`.
        """
        from veilmark.workbench.applying import apply

        return apply(self, recoding, output, **more)

    def score(self, published: Any = None, options: Options | None = None, **more: Any) -> ScoreResult:
        """M-Score, L-Severity and tkl-Score of a published table, by default of the whole source.

        More: `records` and `chart`, files to write; `skip_unknown`.
        """
        from veilmark import workbench

        return workbench.score(self, published, options, **more)

    def compare(self, published: Sequence[Any], options: Options | None = None, **more: Any) -> Ranking:
        """Candidate releases ranked; more: `spread`, `draws`, `seed`, `skip_unknown`."""
        from veilmark import workbench

        return workbench.compare_scores(self, published, options, **more)

    def explain(self, record: Mapping[str, object]) -> RecordScore:
        """One record of the source, its score taken apart."""
        from veilmark import workbench

        return workbench.explain(self, record)

    def breach(self, leaked: Any) -> Breach:
        """How bad it is that these records leaked."""
        from veilmark import workbench

        return workbench.breach(self, leaked)


def _upgrade(document: Document) -> None:
    """Make a study file's content that of the present version; one of a later veilmark is not read by half."""
    while isinstance(document.data, dict) and isinstance(version := document.data.get("version"), int):
        if version > VERSION:
            raise StudyError(
                f"{document.place(('version',))}: this study file is of version {version}, and this veilmark reads versions "
                f"up to {VERSION}. Update veilmark (pip install --upgrade veilmark)."
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

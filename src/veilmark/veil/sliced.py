"""A release in several tables: the persons' quasi-identifiers, and their sensitive attributes by groups.

On disk it is a folder: `qi.csv` (one row a person; where linked, with `gid_1`, `gid_2`, …), `sensitive_1.csv`,
`sensitive_2.csv`, … (one row a person: `gid`, then the group's attributes); or the same names in Parquet.

A fingerprint is written as its labels in ascending order, joined by `|`: `B|D|D`. A `|` or `\\` within a label has a
`\\` before it; a missing value among others is an empty item, a missing value alone an empty cell.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from veilmark.charted import Charted
from veilmark.errors import DataError, OptionError, OutputError
from veilmark.output import refuse_address, write_table
from veilmark.readable import Grid, Summary, count
from veilmark.scratch import PART
from veilmark.tables.framed import as_pandas, as_polars, plain_columns
from veilmark.tables.persons import Fingerprints

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from veilmark.hierarchy import Levels
    from veilmark.tables.persons import PersonTable

Form = Literal["csv", "parquet"]

GID = "gid"

_TABLE = re.compile(r"(qi|sensitive_[1-9]\d*)\.(csv|parquet)")


@dataclass(frozen=True, eq=False)
class Sliced(Charted):
    """The published tables; each has one row a person, in an order of its own.

    `quasi` holds the quasi-identifiers as text or numbers, then `gid_1`, … where it is linked; `sensitive` a table for
    each group: `gid`, then text (fingerprints) or numbers. Text may be dictionary-encoded. `facts` are the method and
    what it was told or chose (k, l, f, link, …), `loss` the metrics by name.
    """

    quasi: pa.Table
    sensitive: tuple[pa.Table, ...]
    groups: tuple[tuple[str, ...], ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    loss: Mapping[str, float] = field(default_factory=dict)
    columns_left_out: tuple[str, ...] = ()
    """Columns of the source that no table has: the tables hold quasi-identifiers and sensitive attributes alone."""

    def __post_init__(self) -> None:
        for table in (self.quasi, *self.sensitive):
            names = table.column_names
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise OptionError(
                    f"An attribute has the name '{twice}', which the release uses for group numbers. Rename that "
                    "column."
                )

    def __len__(self) -> int:
        return len(self.quasi)

    def __repr__(self) -> str:
        parts = "; ".join(", ".join(group) for group in self.groups)
        return f"Sliced({len(self):,} persons; {parts}; {'linked' if self.linked else 'not linked'})"

    def summary(self) -> Summary:
        tables = [("qi", ", ".join(self.quasi.column_names))]
        tables += [(f"sensitive_{i}", ", ".join(group)) for i, group in enumerate(self.groups, 1)]
        loss = [(name, f"{value:.4g}") for name, value in self.loss.items()]
        method = f"{self.facts['method']}: " if "method" in self.facts else ""
        headline = f"{method}{count(len(self), 'person')} in {count(len(tables), 'table')}, "
        headline += "linked by groups." if self.linked else "not linked."
        return Summary(headline, (Grid(("table", "columns"), tables), Grid(("loss", "value"), loss)))

    @property
    def linked(self) -> bool:
        """Whether a person's row in `quasi` says which rows of the sensitive tables may be theirs."""
        return "gid_1" in self.quasi.column_names

    def chart(self) -> Any:
        """How the sensitive attributes go together, where the method looked at it; else the sizes of the classes."""
        if "correlations" in self.facts:
            from veilmark.report.correlation_chart import correlations_of, heat_map

            return heat_map(correlations_of(self.facts["correlations"]))
        from veilmark.privacy.measures import count_sizes
        from veilmark.report.class_charts import class_sizes

        return class_sizes(count_sizes(self._sizes()), "persons")

    def _sizes(self) -> np.ndarray:
        """How many persons share each combination of the published quasi-identifiers."""
        names = [name for name in self.quasi.column_names if not is_gid(name)]
        counted = self.quasi.group_by(names).aggregate([([], "count_all")]) if names else None
        return np.array([len(self)]) if counted is None else counted.column("count_all").to_numpy()

    def to_arrow(self) -> dict[str, pa.Table]:
        """The tables by the names of their files, `qi`, `sensitive_1`, …, as Arrow tables."""
        names = ["qi", *(f"sensitive_{i}" for i in range(1, len(self.sensitive) + 1))]
        return {name: plain_columns(of) for name, of in zip(names, (self.quasi, *self.sensitive), strict=True)}

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """The tables by the names of their files, as pandas DataFrames."""
        return {name: as_pandas(of) for name, of in self.to_arrow().items()}

    def to_polars(self) -> dict[str, pl.DataFrame]:
        """The tables by the names of their files, as polars DataFrames."""
        return {name: as_polars(of) for name, of in self.to_arrow().items()}

    def to_dict(self) -> dict[str, Any]:
        """What is known of the release, without its rows."""
        return {
            **self.facts,
            "persons": len(self),
            "groups": [list(g) for g in self.groups],
            "loss": dict(self.loss),
            "columns_left_out": list(self.columns_left_out),
        }

    def write(self, folder: str | os.PathLike[str], form: Form = "csv") -> None:
        """Write the folder, whole or not at all; an earlier release there is replaced, anything else is not."""
        refuse_address(Path(folder))
        target = Path(os.path.realpath(folder))
        _check_target(target)
        try:
            temporary = Path(tempfile.mkdtemp(prefix=PART, dir=target.parent))
        except (FileNotFoundError, NotADirectoryError):
            raise OptionError(
                f"'{folder}' cannot be written: there is no folder '{target.parent}'. Make it first."
            ) from None
        except OSError as error:
            raise OutputError(f"'{folder}' cannot be written: {error.strerror}.") from None
        try:
            write_table(self.quasi, temporary / f"qi.{form}")
            for i, table in enumerate(self.sensitive, 1):
                write_table(table, temporary / f"sensitive_{i}.{form}")
            _publish(temporary, target)
        except OSError as error:
            raise OutputError(f"'{folder}' cannot be written: {error.strerror or error}.") from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Sliced:
        """Read a release's folder; out of CSV all columns but the gid are text."""
        where = Path(folder)
        files = {match[1]: where / match[0] for match in _tables(where)}
        count = len(files) - 1
        names = [f"sensitive_{i}" for i in range(1, count + 1)]
        if "qi" not in files or not count or not set(names) <= set(files):
            raise DataError(
                f"'{folder}' is not a release in several tables. Such a folder contains qi.csv, sensitive_1.csv "
                "and so on (or .parquet)."
            )
        sensitive = tuple(_read(files[name]) for name in names)
        for name, table in zip(names, sensitive, strict=True):
            if table.column_names[0] != GID:
                raise DataError(f"'{files[name]}' must begin with the column '{GID}'.")
        groups = tuple(tuple(table.column_names[1:]) for table in sensitive)
        return cls(_read(files["qi"]), sensitive, groups)


def is_gid(column: str) -> bool:
    """Whether a column holds the numbers of groups."""
    return re.fullmatch(r"gid(_\d+)?", column) is not None


def is_folder_of_tables(path: Path) -> bool:
    """Whether a release is in several tables; a folder called .parquet is one table in several files."""
    return path.is_dir() and path.suffix != ".parquet"


def _tables(folder: Path) -> list[re.Match[str]]:
    """The files in a folder that are tables of a release."""
    if not folder.is_dir():
        raise DataError(f"There is no folder '{folder}'.")
    found = [_TABLE.fullmatch(name) for name in sorted(os.listdir(folder))]
    return [match for match in found if match]


def _read(path: Path) -> pa.Table:
    """A table of a release; an empty cell is missing."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with path.open(encoding="utf-8") as file:
        head = pa_csv.read_csv(pa.BufferReader(file.readline().encode()))
    numbers = [name for name in head.schema.names if is_gid(name)]
    kinds = dict.fromkeys(head.schema.names, pa.string()) | dict.fromkeys(numbers, pa.int64())
    options = pa_csv.ConvertOptions(column_types=kinds, strings_can_be_null=True, null_values=[""])
    try:
        return pa_csv.read_csv(path, convert_options=options)
    except pa.ArrowInvalid as error:
        raise DataError(f"'{path}' cannot be read: {error}") from None


def _check_target(target: Path) -> None:
    """A release may take the place of nothing, an empty folder, or another release."""
    if not target.exists():
        return
    if not target.is_dir():
        raise OptionError(f"'{target}' is a file. The release is several tables: name a folder.")
    other = [name for name in os.listdir(target) if not _TABLE.fullmatch(name)]
    if other:
        raise OptionError(
            f"The folder '{target}' contains other files, such as '{sorted(other)[0]}'. Name a new folder."
        )


def _publish(temporary: Path, target: Path) -> None:
    """Put the finished folder in its place; what was there is removed only then."""
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o777 & ~mask)
    if not target.exists():
        temporary.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=PART, dir=target.parent))
    try:
        target.rename(old / "old")
        try:
            temporary.rename(target)
        except OSError:
            (old / "old").rename(target)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def shuffled(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    """The rows in random order."""
    return table.take(pa.array(rng.permutation(len(table))))


def fingerprint_texts(fingerprints: Fingerprints) -> pa.Array:
    """Each person's fingerprint as it is published; missing where it holds nothing but a missing value."""
    labels = fingerprints.domain.text.cast(pa.string())
    labels = pc.replace_substring(pc.replace_substring(labels, "\\", "\\\\"), "|", "\\|")
    if fingerprints.single:
        return labels.take(pa.array(fingerprints.values))
    items = labels.fill_null("").take(pa.array(fingerprints.values))
    lists = pa.ListArray.from_arrays(pa.array(fingerprints.starts, pa.int32()), items)
    texts = pc.binary_join(lists, "|")
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def parse_fingerprints(texts: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Where each person's labels start (and, at the end, stop), and the labels; a missing value is null."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    texts = texts.cast(pa.string()).fill_null("")
    escaped = pc.any(pc.match_substring(texts, "\\")).as_py()
    if escaped:  # no label holds a NUL, so that it can stand for what is escaped
        texts = pc.replace_substring(pc.replace_substring(texts, "\\\\", "\0b"), "\\|", "\0p")
    lists = pc.split_pattern(texts, "|")
    labels = lists.flatten()
    if escaped:
        labels = pc.replace_substring(pc.replace_substring(labels, "\0p", "|"), "\0b", "\\")
    starts = np.asarray(lists.offsets, dtype=np.int64)
    return starts - starts[0], pc.if_else(pc.equal(labels, ""), pa.scalar(None, pa.string()), labels)


class PersonsMethod(Protocol):
    """A method that publishes one row a person, in several tables."""

    def slice_persons(self, persons: PersonTable, levels: Mapping[str, Levels]) -> Sliced:
        """The release of persons; `levels` has the hierarchy of every quasi-identifier and sensitive attribute."""

"""A table in Spark: grouped, folded, joined and written there."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veilmark.engines import sql
from veilmark.engines.base import Visits
from veilmark.engines.files import check_columns
from veilmark.engines.shuffle import Shuffle
from veilmark.engines.spark_order import ROW, in_keyed_order, shuffle_key
from veilmark.engines.writing import write_rows
from veilmark.errors import DataError, OptionError, TooManyClassesError
from veilmark.scratch import PART
from veilmark.tables import cells
from veilmark.tables.cells import Cells
from veilmark.tables.domain import Domain

if TYPE_CHECKING:
    from veilmark.engines.spark import Spark
    from veilmark.engines.spark_copies import HeldClasses
    from veilmark.engines.spark_levels import LeveledTable
    from veilmark.tables.pseudonyms import Pseudonyms
    from veilmark.tables.recoding import Recoding

FILE = "regexp_replace(_metadata.file_path, '^file:/+', '/')"
"""The file of a row; Spark's versions differ in how many slashes they write."""

BROADCAST_ROWS = 5_000_000
"""Tables of ours with no more rows go to every executor, so that the rows they are joined with stay where they are."""

ONE_FILE_ROWS = 5_000_000
"""A release of no more rows is one file, as other engines write it; a larger one is a folder of Parquet files."""

KINDS = {
    "string": "text",
    "float": "float",
    "double": "float",
    "date": "date",
    "timestamp": "date",
    "timestamp_ntz": "date",
    "boolean": "other",
}
NESTED = ("array", "map", "struct", "binary", "variant", "udt")


class SparkTable:
    """A frame of Spark's. The study's own source (`guarded`) must not change until what is made of it is published; of most
    tables (`bounded`), the driver takes no more classes than it may hold."""

    def __init__(
        self,
        engine: Spark,
        frame: Any,
        label: str,
        guarded: bool = False,
        files: Sequence[str] = (),
        bounded: bool = True,
    ) -> None:
        self.engine = engine
        self.label = label
        self._guarded = guarded
        self._bounded = bounded
        self._digest: tuple[tuple[str, ...], tuple[int, ...]] | None = None
        self._rows: int | None = None
        fields = engine.doing(lambda: frame.schema.fields, label)
        names = [field.name for field in fields if field.name != ROW]
        check_columns(names, label)
        self.columns = {field.name: _kind(field.dataType) for field in fields if field.name != ROW}
        chosen = [_plain(engine.dialect, field) for field in fields if field.name != ROW]
        place = ROW if len(names) < len(fields) else f"{_place(files)} AS {ROW}"
        self._show(engine.doing(lambda: frame.selectExpr(*chosen, place), label))

    def _show(self, frame: Any) -> None:
        """Make the frame known to statements: `name` has the table's columns, `ordered` the place of each row too."""
        self._frame = frame
        self.ordered = self.engine.view(frame)
        self.name = self.engine.view(frame.drop(ROW))

    def _run(self, statement: str, what: str = "Reading") -> pa.Table:
        return self.engine.run(statement, self.label, what)

    def query(self, statement: str) -> pa.Table:
        """Run a statement on the table (its SQL name is `name`)."""
        return self._run(statement)

    def count(self) -> int:
        """How many records there are."""
        return int(self._run(sql.count(self.name))["n"][0].as_py())

    def sample(self, rows: int) -> pa.Table:
        """The first rows as Arrow."""
        return self._run(sql.head(self.name, rows))

    def missing(self, column: str) -> int:
        """How many records lack a value of the column."""
        statement = sql.count_missing(self.engine.dialect, self.name, column, self.columns[column])
        return int(self._run(statement)["n"][0].as_py())

    def domain(self, column: str) -> Domain:
        """The distinct values of a column."""
        values = self._run(sql.distinct(self.engine.dialect, self.name, column)).column(0)
        return Domain.of(values.combine_chunks(), column)

    def declare_missing(self, codes: Mapping[str, Sequence[str]]) -> None:
        """From now on, these values of some columns are missing."""
        chosen = []
        for field in self._frame.schema.fields:
            column, own = field.name, self.engine.dialect.name(field.name)
            test = self._is_code(codes.get(column, ()), field)
            chosen.append(f"CASE WHEN {test} THEN NULL ELSE {own} END AS {own}" if test else own)
        self._show(self._frame.selectExpr(*chosen))

    def _is_code(self, codes: Sequence[str], field: Any) -> str | None:
        """Whether a column's value is one of some codes for what is missing."""
        own, kind = self.engine.dialect.name(field.name), self.columns.get(field.name, "other")
        if kind == "number":
            return f"{own} IN ({', '.join(codes)})" if codes else None
        if kind == "float":
            floats = [f"try_cast({_literal(code)} AS {field.dataType.simpleString()})" for code in codes]
            return f"{own} IN ({', '.join(floats)})" if floats else None
        return sql.is_code(self.engine.dialect, own, kind, codes, _literal)

    def _kinds(self, columns: Sequence[str]) -> dict[str, str]:
        return {c: self.columns[c] for c in columns}

    # Classes.

    def group(self, columns: Sequence[str]) -> Cells:
        """The distinct combinations of the columns, coded and counted."""
        self._note(columns)
        self.check_size(columns)
        statement = sql.group(self.engine.dialect, self.name, self._kinds(columns))
        return cells.encode(self._run(statement, "Grouping"), columns)

    def group_persons(
        self, quasi: Sequence[str], sensitive: Sequence[str], person: str
    ) -> list[tuple[Cells, pa.Table]]:
        """Cells with persons over `quasi`, then over `quasi` and each sensitive attribute; the rows are read once."""
        columns = [*quasi, *sensitive]
        self._note([*columns, person])
        self.check_size(columns)
        visits = sql.visits(self.engine.dialect, self.name, self._kinds(columns), person)
        with ExitStack() as stack:
            spark = self.engine.spark
            seen = self.engine.view(stack.enter_context(self.engine.kept(spark.sql(visits))))
            several = spark.sql(sql.wander(seen, len(quasi)))
            wander = self.engine.view(stack.enter_context(self.engine.kept(several)))
            base = list(range(len(quasi)))
            chosen = [base, *([*base, len(quasi) + i] for i in range(len(sensitive)))]
            return [self._group_visits(seen, wander, columns, places) for places in chosen]

    def _group_visits(
        self, visits: str, wander: str, columns: Sequence[str], places: Sequence[int]
    ) -> tuple[Cells, pa.Table]:
        found = self._run(sql.group_visits(visits, wander, places), "Grouping")
        wanderers = sql.wanderers(visits, wander, places)
        self._check_wanderers(wanderers)
        return cells.encode(found, [columns[i] for i in places]), self._run(wanderers)

    def _check_wanderers(self, statement: str) -> None:
        """The driver can hold who has several combinations of the quasi-identifiers."""
        most = self.engine.most_classes
        several = int(self._run(f"SELECT count(*) FROM ({statement}) AS w").column(0)[0].as_py())
        if several > most:
            raise OptionError(
                f"In '{self.label}', persons with several combinations of the quasi-identifiers have {several:,} "
                f"of them, but the driver holds at most {most:,}. Give each person one value (for example by a "
                "view that keeps the latest), or raise most_classes in the study's source. Each class needs "
                "about 200 bytes of the driver's memory."
            )

    def check_size(self, columns: Sequence[str]) -> None:
        """The driver can hold the classes, as far as an estimate tells."""
        most = self.engine.most_classes
        if not self._bounded or not columns:
            return
        if self._rows is None:
            self._rows = self.count()
        if self._rows <= most:
            return
        about = self.estimate([", ".join(map(self.engine.dialect.name, columns))])[0]
        if about > most:
            raise TooManyClassesError(
                f"'{self.label}' has about {about:,} different combinations of {', '.join(columns)}, but the "
                f"driver holds at most {most:,}. OLA then starts at higher levels by itself. Other commands need "
                "fewer or coarser columns, or a higher most_classes in the study's source. Each class needs "
                "about 200 bytes of the driver's memory."
            )

    def estimate(self, lists: Sequence[str], table: str | None = None) -> list[int]:
        """About how many combinations of some columns, given as lists, there are, in this table or one made of it."""
        counts = ", ".join(f"approx_count_distinct(xxhash64({columns})) AS c{i}" for i, columns in enumerate(lists))
        found = self._run(f"SELECT {counts} FROM {table or self.name}", "Estimating")
        return [int(column[0].as_py()) for column in found.columns]

    def class_sizes(self, columns: Sequence[str]) -> tuple[int, float]:
        """The number of combinations of some columns, and the sum of their sizes squared, which the driver need not hold."""
        grouped = sql.group(self.engine.dialect, self.name, self._kinds(columns))
        sums = "count(*), coalesce(sum(CAST(records AS DOUBLE) * records), 0)"
        found = self._run(f"SELECT {sums} FROM ({grouped}) AS c", "Grouping")
        return int(found.column(0)[0].as_py()), float(found.column(1)[0].as_py())

    # Whether the table stays as it is. Two sums of halves of the rows' hashes, which do not depend on their order and cannot
    # overflow.

    def _note(self, columns: Sequence[str]) -> None:
        """Remember what the table is now, by the columns that all numbers rest on."""
        if self._guarded and self._digest is None and columns:
            self._digest = (tuple(columns), self._sums(columns))
            self._rows = self._digest[1][0]

    def _sums(self, columns: Sequence[str]) -> tuple[int, ...]:
        names = map(self.engine.dialect.name, columns)
        listed = ", ".join(f"isnull({name}), {name}" for name in names)  # a hash of its own skips what is missing
        hashed = f"SELECT xxhash64({listed}) AS h FROM {self.name}"
        sums = "count(*), coalesce(sum(h & 16777215), 0), coalesce(sum(shiftright(h, 24) & 16777215), 0)"
        return tuple(int(column[0].as_py()) for column in self._run(f"SELECT {sums} FROM ({hashed}) AS r").columns)

    def check_unchanged(self) -> None:
        """The table is what it was when its classes were counted."""
        if self._digest is not None and self._sums(self._digest[0]) != self._digest[1]:
            raise DataError(
                f"'{self.label}' changed while veilmark worked on it, so nothing was published. Try again when "
                "nobody writes to it."
            )

    # Rows.

    def spooled(self, columns: Sequence[str]) -> SparkTable:
        """Some columns as a table that is quick to read again and again: Spark keeps them on its disks."""
        kept = self._frame.select(*(self.engine.dialect.name(c) for c in columns), ROW)
        return SparkTable(self.engine, self.engine.spool(kept), self.label)

    def visits(self, columns: Sequence[str], person: str, part: tuple[int, int] = (0, 1)) -> Visits:
        """The distinct rows with their persons, in the source's order; of several parts, those of the persons in one."""
        statement = _visits(self.engine.dialect, self.ordered, self._kinds(columns), person, part)
        found = self._run(statement, "Folding")
        order = np.lexsort([found.column(name).to_numpy() for name in ("number", "file")])
        found = found.take(pa.array(order))
        hashes, checks = (found.column(name).to_numpy().view(np.uint64) for name in ("h0", "h1"))
        values = found.select([f"c{i}" for i in range(len(columns))])
        return Visits(hashes, checks, found.column("n").to_numpy(), iter(values.to_batches()))

    def rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of all rows in their order, in this order."""
        dialect = self.engine.dialect
        cleaned = (f"{dialect.clean(c, self.columns[c])} AS {dialect.name(c)}" for c in columns)
        yield from self._streamed(self._frame.selectExpr(*cleaned, ROW))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in their order."""
        yield from self._streamed(self._frame)

    def _streamed(self, frame: Any) -> Iterator[pa.RecordBatch]:
        """A frame's rows in their order, over files where we see Spark's, so that the driver does not hold them."""
        ordered = frame.sort(ROW).drop(ROW)
        if not self.engine.session.local:
            yield from self.engine.collect(ordered, self.label).to_batches()
            return
        folder = self.engine.scratch("")
        try:
            for part in self.engine.write_parts(ordered, folder, self.label):
                yield from pq.ParquetFile(part).iter_batches()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # What is written.

    def recoded(
        self, stack: ExitStack, recoding: Recoding, columns: Sequence[str], pseudonyms: Pseudonyms | None = None
    ) -> Any:
        """The rows with the recoding applied, as a frame with the place of each row; `stack` holds what it rests on."""
        types = {field.name: field.dataType.simpleString() for field in self._frame.schema.fields}
        for column in pseudonyms.columns if pseudonyms else ():
            if types[column] in ("float", "double", "timestamp"):
                raise OptionError(
                    f"'{column}' is of the type {types[column]}, which Spark formats differently from other "
                    "engines. Its pseudonyms would differ between engines. Convert the column to text."
                )
        maps = {}
        for i, c in enumerate(recoding.columns):
            own_type = (f"CAST(value AS {types[c]}) AS value", "label", "share")
            maps[c] = stack.enter_context(self.engine.holding(recoding.map_table(i), own_type))
        last = stack.enter_context(self.engine.holding(recoding.class_table()))
        pads = stack.enter_context(self.engine.holding(pseudonyms.pads())) if pseudonyms else ""
        full = [c for c, domain in zip(recoding.columns, recoding.domains, strict=True) if domain.missing is None]
        kinds = {**self._kinds(columns), ROW: "other"}
        hidden = pseudonyms.columns if pseudonyms else ()
        given = (kinds, maps, full, recoding.key_columns(), last, recoding.local, hidden, pads)
        return self.engine.spark.sql(sql.recode(self.engine.dialect, self.ordered, *given))

    def write_recoded(
        self,
        recoding: Recoding,
        columns: Sequence[str],
        path: Path,
        pseudonyms: Pseudonyms | None = None,
        order: Shuffle | None = None,
    ) -> None:
        """Write the columns with the recoding applied: one CSV or Parquet file or, of a large table, a folder of Parquet.

        Without an order rows stay in the source's. The driver shuffles a small table as other engines do; a large one Spark
        puts into a random order. A table that has changed since its classes were counted is an error.
        """
        with ExitStack() as stack:
            frame = self.recoded(stack, recoding, columns, pseudonyms)
            if order is not None and order.rows > ONE_FILE_ROWS:
                ordered = in_keyed_order(self.engine, stack, frame, shuffle_key(order), order.rows)
                self.write_frame(ordered, path, self._merge)
            else:
                # A join by shuffling leaves rows in the order of what is to be hidden.
                settled = frame if order is not None and order.seed is None else frame.sort(ROW)
                self.write_frame(settled.drop(ROW), path, partial(self._merge, order=order))
        self.check_unchanged()

    def write_frame(self, frame: Any, path: Path, merge: Callable[[Sequence[Path], Path], None]) -> None:
        """Have Spark write a frame as Parquet files beside a path. A large one becomes the path itself, as a folder of such
        files; else `merge` makes one file of them."""
        beside = Path(tempfile.mkdtemp(prefix=PART, dir=path.parent))
        try:
            parts = self.engine.write_parts(frame, beside / "parts", path.name)
            rows = sum(pq.read_metadata(part).num_rows for part in parts)
            if path.suffix == ".parquet" and rows > ONE_FILE_ROWS:
                path.unlink(missing_ok=True)
                (beside / "parts").rename(path)
            else:
                merge(parts, path)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _merge(self, parts: Sequence[Path], path: Path, order: Shuffle | None = None) -> None:
        """Spark's files as one, read by the embedded engine, which gives values the types that its own have."""
        rows = self.engine.inner.stored_rows(parts)
        write_rows(rows, path, order, folder=self.engine.scratch("").parent)

    def leveled(self, maps: Mapping[str, pa.Table]) -> LeveledTable:
        """The rows with their labels at every level; `maps` has the values of
        each column, and the numbers of their labels."""
        from veilmark.engines.spark_levels import LeveledTable

        return LeveledTable(self, maps)

    def hold_classes(
        self, recoding: Recoding, columns: Sequence[str], classes: pa.Table, records: int
    ) -> AbstractContextManager[HeldClasses]:
        """The recoded rows with the class of each, from which copies are written."""
        from veilmark.engines.spark_copies import HeldClasses

        return HeldClasses.made(self, recoding, columns, classes, records)


def _visits(dialect: sql.Dialect, table: str, columns: Mapping[str, str], person: str, part: tuple[int, int]) -> str:
    """Distinct combinations of columns and person (two hashes), how many records each has, and where the first stands."""
    cleaned = "".join(f"{dialect.clean(name, kind)} AS c{i}, " for i, (name, kind) in enumerate(columns.items()))
    who = dialect.name(person)
    hashes = f"xxhash64({who}) AS h0, xxhash64(CAST({who} AS STRING) || '~') AS h1"
    where = f" WHERE pmod(xxhash64({who}), {part[1]}) = {part[0]}" if part[1] > 1 else ""
    by = ", ".join(str(i + 1) for i in range(len(columns) + 2))
    distinct = f"SELECT {cleaned}{hashes}, count(*) AS n, min({ROW}) AS first FROM {table}{where} GROUP BY {by}"
    return f"SELECT *, first.file, first.number FROM ({distinct}) AS visits"


def _place(files: Sequence[str]) -> str:
    """The place of a row: Spark numbers the rows of a file in their order, but takes large files before small ones."""
    names = (re.sub("^file:/+", "/", name) for name in files)
    listed = ", ".join(map(_literal, names))
    file = f"coalesce(array_position(array({listed}), {FILE}), 0)" if len(files) > 1 else "0L"
    return f"named_struct('file', CAST({file} AS BIGINT), 'number', monotonically_increasing_id())"


def _literal(text: str) -> str:
    """A text as Spark writes it; what backslashes mean in a literal is a setting of the session."""
    plain = "\\" not in text and "'" not in text
    return f"'{text}'" if plain else f"decode(unhex('{text.encode().hex()}'), 'UTF-8')"


def _kind(kind: Any) -> str:
    """Spark's type as one of the kinds that engines share."""
    name = kind.typeName()
    if name.endswith("int") or name in ("integer", "long", "short", "byte", "decimal"):
        return "number"
    if name.startswith(NESTED):
        return "nested"
    return KINDS.get(name.split("(")[0].split(" ")[0], "text")


def _plain(dialect: sql.Dialect, field: Any) -> str:
    """A column as it is compared: texts byte by byte and without the padding of CHAR, unusual types as text."""
    own, kind = dialect.name(field.name), field.dataType.typeName().split(" ")[0]
    if field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", "").startswith("char"):
        return f"rtrim({own}) AS {own}"
    if kind.startswith("string") and "collate" in field.dataType.simpleString():
        return f"collate({own}, 'UTF8_BINARY') AS {own}"
    known = kind in KINDS or _kind(field.dataType) in ("number", "nested") or kind.startswith("string")
    return own if known else f"CAST({own} AS STRING) AS {own}"

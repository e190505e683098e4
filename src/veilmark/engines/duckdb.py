"""The embedded engine: CSV, Parquet, globs and frames, out of core, on the cores and memory it is given."""

from __future__ import annotations

import codecs
import math
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from veilmark import cells, progress
from veilmark.cells import Cells
from veilmark.domain import Domain
from veilmark.engines import sql
from veilmark.engines.files import FALLBACK, CsvFormat, CsvHead, check_columns, find_files, is_parquet, read_head
from veilmark.engines.frames import is_relation, to_arrow
from veilmark.errors import DataError, OptionError, VeilmarkError, VeilmarkWarning

if TYPE_CHECKING:
    from veilmark.veil.recoding import Recoding

DIALECT = sql.Dialect()
NATIVE_ENCODINGS = ("utf-8", FALLBACK)
BATCH_ROWS = 1 << 17
PROBE_ROWS = 5_000
FEW_VALUES = 1 << 16


class DuckDB:
    """An embedded DuckDB. `threads` and `memory` (such as "2GB") limit it; beyond the memory it spills to disk."""

    def __init__(self, threads: int | None = None, memory: str | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="veilmark-"))
        settings: dict[str, Any] = {
            "temp_directory": str(self._folder),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        settings |= {"threads": threads} if threads else {}
        settings |= {"memory_limit": memory} if memory else {}
        try:
            self.connection = duckdb.connect(config=settings)
            self.connection.execute("SET enable_progress_bar=true; SET enable_progress_bar_print=false")
        except duckdb.Error as error:
            self._drop_folder()
            raise OptionError(
                f"DuckDB does not take threads={threads}, memory={memory}: {str(error).splitlines()[0]} "
                "Give threads as a whole number and memory as a size such as 2GB."
            ) from None
        self.threads = threads
        self._tables = 0
        self._worker = ThreadPoolExecutor(1, "veilmark-duckdb")

    def __enter__(self) -> DuckDB:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop everything, the temporary files too."""
        self._worker.shutdown()
        self.connection.close()
        self._drop_folder()

    def _drop_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def open(self, source: Any, csv: CsvFormat | None = None) -> DuckTable:
        """A path or glob of CSV or Parquet files, or a frame: pandas, polars, Arrow, a DuckDB relation."""
        if is_relation(source):
            file = self._folder / f"relation{self._next()}.parquet"
            source.write_parquet(str(file))
            return ParquetTable(self, [file], "the DuckDB relation")
        if not isinstance(source, str | Path):
            return FrameTable(self, to_arrow(source))
        files = find_files(source)
        if all(is_parquet(f) for f in files):
            return ParquetTable(self, files, str(source))
        return CsvTable(self, files, str(source), csv)

    def transcoded(self, path: Path, encoding: str) -> Path:
        """A copy in UTF-8, in the engine's own folder."""
        target = self._folder / f"{self._next()}.csv"
        with (
            pa.input_stream(str(path), compression="detect") as stream,
            codecs.getreader(encoding)(stream) as text,
            target.open("w", encoding="utf-8", newline="") as out,
        ):
            try:
                shutil.copyfileobj(text, out, 1 << 20)
            except UnicodeError as error:
                raise DataError(
                    f"'{path}' is not written in {encoding}: {error}. Name its encoding in the study: "
                    "source: {path: …, encoding: …}."
                ) from None
        return target

    def run(self, statement: str) -> pa.Table:
        """Run a query and fetch its result as Arrow."""
        return self._interruptible(lambda: self.connection.sql(statement).to_arrow_table())

    def execute(self, statement: str) -> None:
        """Run a statement that yields nothing."""
        self._interruptible(lambda: self.connection.execute(statement).fetchall())

    def _interruptible(self, work: Callable[[], Any]) -> Any:
        """Ctrl-C stops the work, which needs a thread to wait in."""
        running = self._worker.submit(work)
        try:
            return running.result()
        except BaseException:
            self.connection.interrupt()
            running.exception()
            raise

    def share_done(self) -> float | None:
        """How much of the running query is done, as DuckDB reckons."""
        percent = self.connection.query_progress()
        return percent / 100 if percent > 0 else None

    def _next(self) -> int:
        self._tables += 1
        return self._tables


class DuckTable:
    """A table that DuckDB can read; the kinds of source differ in how they are opened and scanned."""

    label: str

    def __init__(self, engine: DuckDB, label: str) -> None:
        self.engine = engine
        self.label = label
        self.name = f"source_{engine._next()}"
        self._create()
        described = self._run(f"SELECT column_name, column_type FROM (DESCRIBE {self.name})")
        self.columns = {row["column_name"]: _kind(row["column_type"]) for row in described.to_pylist()}

    def _create(self) -> None:
        """Make `self.name` readable in the engine."""
        raise NotImplementedError

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        """The rows as Arrow batches, texts as dictionaries; None where only the engine can read them."""
        return None

    def _run(self, statement: str, doing: str = "Reading") -> pa.Table:
        try:
            with progress.step(f"{doing} {self.label}", self.engine.share_done):
                return self.engine.run(statement)
        except duckdb.Error as error:
            raise _explain(error, self.label) from None

    def query(self, statement: str) -> pa.Table:
        """Run a statement on the table (its SQL name is `name`)."""
        return self._run(statement)

    def count(self) -> int:
        """How many records there are."""
        return int(self._run(sql.count(self.name))["n"][0].as_py())

    def sample(self, rows: int) -> pa.Table:
        """The first rows as Arrow."""
        return self._run(sql.head(self.name, rows))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in their order."""
        reader = self.engine.connection.sql(f"FROM {self.name}").to_arrow_reader(BATCH_ROWS)
        yield from reader

    def write_recoded(self, recoding: Recoding, columns: Sequence[str], path: Path) -> None:
        """Write the columns with the recoding applied, in one streaming pass; CSV or Parquet by the suffix."""
        names = {c: f"{self.name}_map_{i}" for i, c in enumerate(recoding.columns)}
        last = f"{self.name}_classes"
        tables = {name: recoding.map_table(i) for i, name in enumerate(names.values())} | {last: recoding.class_table()}
        kinds = self._kinds(columns)
        statement = sql.recode(DIALECT, self.name, kinds, names, last, recoding.local)
        form = "FORMAT parquet" if path.suffix == ".parquet" else "FORMAT csv, HEADER"
        for name, table in tables.items():
            self.engine.connection.register(name, table)
        try:
            with progress.step(f"Writing {path.name}", self.engine.share_done):
                self.engine.execute(f"COPY ({statement}) TO {sql.literal(str(path))} ({form})")
        except duckdb.Error as error:
            raise _explain(error, self.label) from None
        finally:
            for name in tables:
                self.engine.connection.unregister(name)

    def missing(self, column: str) -> int:
        """How many records lack a value of the column."""
        statement = sql.count_missing(DIALECT, self.name, column, self.columns[column])
        return int(self._run(statement)["n"][0].as_py())

    def group(self, columns: Sequence[str]) -> Cells:
        """The distinct combinations of the columns, coded and counted."""
        if self._looks_small(columns):
            domains = [self.domain(c) for c in columns]
            batches = self._batches(columns) if _small([len(d) for d in domains]) else None
            if batches is not None:
                with progress.step(f"Grouping {self.label}"):
                    return cells.count_batches(batches, domains, columns)
        return cells.encode(self._run(sql.group(DIALECT, self.name, self._kinds(columns)), "Grouping"), columns)

    def domain(self, column: str) -> Domain:
        """The distinct values of a column."""
        values = self._run(sql.distinct(DIALECT, self.name, column))[column]
        return Domain.of(values.combine_chunks(), column)

    def _looks_small(self, columns: Sequence[str]) -> bool:
        """Whether a few rows leave hope that each column has few values, so that rows pack into one number."""
        if not columns or self._batches(()) is None:
            return False
        counts = ", ".join(f"count(DISTINCT {DIALECT.name(c)})" for c in columns)
        found = self._run(f"SELECT {counts} FROM ({sql.head(self.name, PROBE_ROWS)})")
        return _small([column[0].as_py() for column in found.columns])

    def group_persons(self, columns: Sequence[str], quasi: Sequence[str], person: str) -> Cells:
        """The distinct combinations, with the distinct persons who have no second combination of `quasi`."""
        statement = sql.group_persons(DIALECT, self.name, self._kinds(columns), quasi, person)
        return cells.encode(self._run(statement, "Grouping"), columns)

    def wanderers(self, columns: Sequence[str], quasi: Sequence[str], person: str) -> pa.Table:
        """The distinct (columns, `person`) of those who have several combinations of `quasi`."""
        return self._run(sql.wanderers(DIALECT, self.name, self._kinds(columns), quasi, person), "Grouping")

    def _kinds(self, columns: Sequence[str]) -> dict[str, str]:
        return {c: self.columns[c] for c in columns}


class FrameTable(DuckTable):
    """An Arrow table in memory."""

    def __init__(self, engine: DuckDB, data: pa.Table, label: str = "the frame") -> None:
        check_columns(data.column_names, label)
        self._data = data
        super().__init__(engine, label)

    def _create(self) -> None:
        self.engine.connection.register(self.name, self._data)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        return iter(self._data.select(list(columns)).to_batches(max_chunksize=BATCH_ROWS))


class ParquetTable(DuckTable):
    """One or more Parquet files."""

    def __init__(self, engine: DuckDB, files: Sequence[Path], label: str) -> None:
        self._files = [str(f) for f in files]
        try:
            self._schema = pq.read_schema(self._files[0])
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"'{files[0]}' cannot be read as Parquet: {str(error).splitlines()[0]}") from None
        check_columns(self._schema.names, files[0])
        super().__init__(engine, label)

    def _create(self) -> None:
        listed = ", ".join(sql.literal(f) for f in self._files)
        try:
            self.engine.connection.execute(f"CREATE TEMP VIEW {self.name} AS FROM read_parquet([{listed}])")
        except duckdb.Error as error:
            raise _explain(error, self.label) from None

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        if not set(columns) <= set(self._schema.names):
            return None
        texts = {c for c in columns if _is_text(self._schema.field(c).type)}
        options = ds.ParquetReadOptions(dictionary_columns=texts)
        data = ds.dataset(self._files, format=ds.ParquetFileFormat(read_options=options))
        threads = self.engine.threads != 1
        return iter(data.to_batches(columns=list(columns), batch_size=BATCH_ROWS, use_threads=threads))


class CsvTable(DuckTable):
    """One or more CSV files with the same columns; every value is kept as the text it is."""

    def __init__(self, engine: DuckDB, files: Sequence[Path], label: str, given: CsvFormat | None) -> None:
        self._files = list(files)
        self._given = given or CsvFormat()
        self._head = read_head(files[0], given)
        for file in files[1:]:
            _check_same(files[0], self._head, file, read_head(file, given))
        self._encoding = self._head.encoding
        super().__init__(engine, label)
        if self._encoding == FALLBACK and not self._given.encoding:
            self._warn_of_fallback()

    def _create(self) -> None:
        files = self._files
        if self._encoding not in NATIVE_ENCODINGS:
            files = [self.engine.transcoded(f, self._encoding) for f in files]
        head = self._head
        options = {
            "columns": "{" + ", ".join(f"{sql.literal(c)}: 'VARCHAR'" for c in head.columns) + "}",
            "delim": sql.literal(head.delimiter),
            "quote": sql.literal(head.quote),
            "escape": sql.literal(head.quote),
            "encoding": sql.literal(self._encoding if self._encoding in NATIVE_ENCODINGS else "utf-8"),
        }
        listed = ", ".join(sql.literal(str(f)) for f in files)
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        self.engine.connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {self.name} AS "
            f"FROM read_csv([{listed}], auto_detect=false, header=true, strict_mode=true, {given})"
        )

    def _run(self, statement: str, doing: str = "Reading") -> pa.Table:
        try:
            return super()._run(statement, doing)
        except NotUtf8Error:
            if self._given.encoding:
                raise
            self._warn_of_fallback()
            self._encoding = FALLBACK
            self._create()
            return super()._run(statement, doing)

    def _warn_of_fallback(self) -> None:
        warnings.warn(
            f"'{self.label}' is not UTF-8, so it was read as Latin-1. Where letters look wrong, name its "
            "encoding in the study: source: {path: …, encoding: cp1252}.",
            VeilmarkWarning,
            stacklevel=3,
        )


class NotUtf8Error(DataError):
    """A CSV file has bytes that are not UTF-8."""


def _small(sizes: Sequence[int]) -> bool:
    """Whether rows of these domains pack into one number, and looking values up batch by batch is cheap."""
    return max(sizes) <= FEW_VALUES and math.prod(max(size, 1) for size in sizes) < 1 << 62


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)


def _kind(column_type: str) -> str:
    """DuckDB's type as one of the kinds that engines share."""
    if column_type == "VARCHAR" or column_type.startswith("ENUM"):
        return "text"
    if column_type in ("FLOAT", "DOUBLE"):
        return "float"
    if column_type.startswith("DECIMAL") or column_type.endswith("INT") or column_type == "INTEGER":
        return "number"
    if column_type == "DATE" or column_type.startswith("TIMESTAMP"):
        return "date"
    return "nested" if column_type.endswith("]") or "(" in column_type or column_type == "BLOB" else "other"


def _check_same(first: Path, head: CsvHead, file: Path, other: CsvHead) -> None:
    if other.columns != head.columns or other.delimiter != head.delimiter:
        raise DataError(
            f"'{file}' does not have the same columns as '{first}': {', '.join(other.columns)} against "
            f"{', '.join(head.columns)}. Files that one pattern names must have the same columns in one order."
        )


CSV_ROW = re.compile(r"CSV Error on Line: (\d+)")
CSV_WIDTH = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")


def _explain(error: duckdb.Error, label: str) -> VeilmarkError:
    """DuckDB's error as a paragraph that shows no row of the data."""
    text = str(error)
    row = CSV_ROW.search(text)
    line = f"line {row.group(1)} of '{label}'" if row else f"'{label}'"
    width = CSV_WIDTH.search(text)
    if width:
        return DataError(
            f"The {line} has {width.group(2)} fields where the first line names {width.group(1)} columns. Mend the "
            "line (a stray delimiter, or a quote that is not closed, is the usual cause), or export the table again."
        )
    if "not utf-8 encoded" in text:
        return NotUtf8Error(f"The {line} is not UTF-8 text. Name the file's encoding in the study: encoding: cp1252.")
    if "aximum line size" in text:
        return DataError(f"The {line} is longer than 2 MB: probably a quote is not closed, or it is not a CSV file.")
    if "unterminated quote" in text and row:
        return DataError(f"The {line} has a quote that is opened and not closed rightly. Mend it and try again.")
    if isinstance(error, duckdb.OutOfMemoryException):
        return VeilmarkError(
            f"Reading '{label}' needs more memory, or more disk for temporary files, than there is: "
            f"{text.splitlines()[0]} Give --memory a larger size, or free space in the temporary folder."
        )
    where = line if row is None else f"The {line}"
    return DataError(f"{where} cannot be read: {_first_sentence(text)}")


def _first_sentence(text: str) -> str:
    return re.sub(r"^[\w ]+ Error: ", "", text.splitlines()[0])[:300]

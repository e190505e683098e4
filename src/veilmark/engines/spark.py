"""Spark: tables that are too large for one machine. The driver holds class tables; rows stay with Spark.

Only what Spark 3.5, Spark 4 and Spark Connect share is used here.
"""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from veilmark import progress
from veilmark.engines import sql
from veilmark.engines.duckdb import DuckDB, DuckTable
from veilmark.engines.files import CsvFormat
from veilmark.engines.frames import is_relation, known_type, to_arrow
from veilmark.engines.sources import SparkFiles, is_spark_frame
from veilmark.engines.spark_files import is_for_spark, named, read
from veilmark.engines.spark_session import TIMEOUT, close_session, forget, open_session, quiet, settings_of
from veilmark.engines.spark_table import BROADCAST_ROWS, SparkTable
from veilmark.engines.worker import Task, Worker
from veilmark.errors import DataError, VeilmarkError
from veilmark.messages import param
from veilmark.scratch import Scratch

T = TypeVar("T")
FRAME = "the Spark frame"

MOST_CLASSES = 20_000_000
"""So many classes the driver holds, unless the study says otherwise (most_classes)."""


@dataclass(frozen=True)
class SparkDialect(sql.Dialect):
    """How Spark spells things."""

    quote: str = "`"
    text_type: str = "STRING"
    nan: str = "isnan({})"

    def hash(self, expressions: Sequence[str]) -> str:
        listed = ", ".join(f"isnull({of}), {of}" for of in expressions)  # a hash of its own skips what is missing
        return f"(xxhash64({listed}) & {2**63 - 1})"

    def pseudonym(self, expression: str, pads: str) -> str:
        inner = f"sha2({pads}.inner_pad || encode(CAST({expression} AS STRING), 'UTF-8'), 256)"
        return f"substr(sha2({pads}.outer_pad || unhex({inner}), 256), 1, 32)"


class Spark:
    """A Spark session as an engine. Files that only the driver needs are read by an embedded DuckDB."""

    dialect = SparkDialect()

    def __init__(self, source: Any, threads: int | None = None, memory: str | None = None) -> None:
        scratch = Scratch()
        self._folder = scratch.path
        self._mark = f"veilmark_{secrets.token_hex(4)}"
        self._count = 0
        self._open = ExitStack()
        self._open.callback(scratch.close)
        try:
            self.session = open_session(source, threads, memory, self._folder)
            self.spark = self.session.spark
            self._open.callback(close_session, self.session)
            self._frame = None if isinstance(source, SparkFiles) else self._as_it_was(source)
            self._open.enter_context(settings_of(self.session))
        except BaseException:
            self._open.close()
            raise
        self.most_classes = (source.most_classes if isinstance(source, SparkFiles) else None) or MOST_CLASSES
        self._source = source
        self._worker = Worker(self._mark)
        self._open.callback(self._worker.stop)
        self._limits = (threads, memory)
        self._inner: DuckDB | None = None

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()
        if isinstance(error, Exception) and type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise explain(error, str(self._source) if isinstance(self._source, SparkFiles) else FRAME) from None

    def close(self) -> None:
        """Drop everything: the views, what Spark keeps for them, the temporary files, and a session of our own."""
        with quiet():
            self._open.close()
        forget(self.session)

    @property
    def inner(self) -> DuckDB:
        """The embedded engine, for files that the driver reads."""
        if self._inner is None:
            self._inner = DuckDB(*self._limits)
            self._open.callback(self._inner.close)
        return self._inner

    def open(self, source: Any, csv: CsvFormat | None = None, joined: bool = False) -> SparkTable | DuckTable:
        """The study's source, a frame of Spark's, or a table that is joined with it, in Spark; any other file or frame,
        which only the driver needs, in the embedded engine."""
        own = (
            source is self._source or source == self._source
            if isinstance(source, SparkFiles)
            else source is self._source
        )
        if own and self._frame is not None:
            return SparkTable(self, self._frame, FRAME, own)
        if is_spark_frame(source):
            return SparkTable(self, source, FRAME, own)
        if isinstance(source, Path):
            source = str(source)
        if isinstance(source, str) and (joined or is_for_spark(self, source)):
            source = named(source)
        if isinstance(source, SparkFiles):
            found = self.doing(lambda: read(self, source, csv), str(source))
            return SparkTable(self, found.frame, str(source), own, found.files)
        if not joined:
            return self.inner.open(source, csv)
        table = to_arrow(source.to_arrow_table() if is_relation(source) else source)
        return SparkTable(self, self.frame_of(table), "the frame")

    # What is done in Spark.

    def doing(self, work: Callable[[], T], label: str, what: str = "Reading") -> T:
        """Do something in Spark: Ctrl-C ends its jobs, and what it says of an error becomes a paragraph."""
        try:
            with progress.step(f"{what} {label}"), quiet():
                return self._interruptible(work)
        except (VeilmarkError, OSError, KeyboardInterrupt):
            raise
        except Exception as error:
            self.session.lost |= is_lost(error)
            raise explain(error, label) from None

    def _interruptible(self, work: Callable[[], T]) -> T:
        """Ctrl-C ends the jobs, which needs a thread to wait in: Spark itself would wait for them to finish."""
        if self._worker.is_here:
            return work()
        running = self._worker.submit(lambda: self._tagged(work))
        try:
            return running.result()
        except BaseException:
            self._end(running)
            raise

    def _end(self, running: Task[Any]) -> None:
        """End the jobs, and wait until they are; a server that does not answer is left to itself."""
        ending = Worker(f"{self._mark}_end")
        since = time.monotonic()
        while not running.done:
            if self._inner is not None:
                self._inner.connection.interrupt()
            ending.submit(lambda: self._tidy(lambda: self.session.tagging[2](self._mark)))
            running.wait(0.5)
            if self.session.remote and time.monotonic() - since > TIMEOUT:
                self.session.lost = True
                break
        ending.stop()

    def _tagged(self, work: Callable[[], T]) -> T:
        """Jobs are marked as ours, so that ending them ends no others of the session."""
        add, remove, _ = self.session.tagging
        add(self._mark)
        try:
            return work()
        finally:
            self._tidy(lambda: remove(self._mark))

    def _as_it_was(self, frame: Any) -> Any:
        """A frame that means what it means under its session's own settings: a Connect server would work it out anew, under
        ours, at every use."""
        return self.spark.table(self.view(frame))

    def collect(self, frame: Any, label: str, what: str = "Reading") -> pa.Table:
        """A frame's rows on the driver, as Arrow."""
        return self.doing(lambda: _to_arrow(frame), label, what)

    def run(self, statement: str, label: str, what: str = "Reading") -> pa.Table:
        """Run a query and fetch its result as Arrow."""
        return self.doing(lambda: _to_arrow(self.spark.sql(statement)), label, what)

    def view(self, frame: Any, name: str | None = None) -> str:
        """The name by which statements know a frame, until the engine is closed."""
        name = name or f"{self._mark}_{self._next()}"
        with quiet():
            frame.createOrReplaceTempView(name)
        self._open.callback(self.drop, name)
        return name

    def drop(self, name: str) -> None:
        self._tidy(lambda: self.spark.catalog.dropTempView(name))

    def _tidy(self, work: Callable[[], Any]) -> None:
        """Drop something, as far as Spark is still there: a lost session keeps nothing, and is not asked."""
        if self.session.lost:
            return
        try:
            with quiet():
                work()
        except Exception as error:
            self.session.lost |= is_lost(error)

    @contextmanager
    def kept(self, frame: Any) -> Iterator[Any]:
        """A frame that Spark computes once and keeps on the executors' disks."""
        from pyspark import StorageLevel

        stored = frame.persist(StorageLevel.DISK_ONLY)
        try:
            yield stored
        finally:
            self._tidy(stored.unpersist)

    def spool(self, frame: Any) -> Any:
        """The same until the engine is closed."""
        return self._open.enter_context(self.kept(frame))

    @contextmanager
    def holding(self, table: pa.Table, chosen: Sequence[str] = ("*",)) -> Iterator[str]:
        """A table of our own that statements can name; a small one goes to every executor."""
        with quiet():
            frame = self.frame_of(table).selectExpr(*chosen)
            name = self.view(frame.hint("broadcast") if len(table) <= BROADCAST_ROWS else frame)
        try:
            yield name
        finally:
            self.drop(name)

    def frame_of(self, table: pa.Table) -> Any:
        """An Arrow table as a frame of Spark's."""
        plain = _plain_types(table)
        with quiet():
            from pyspark.sql.pandas.types import from_arrow_schema

            if self.session.version >= (4, 0) and len(plain):
                return self.spark.createDataFrame(plain)
            # Spark 3.5 takes no Arrow, and no Spark an empty table; rows of Python's keep every type and what is missing.
            rows = list(zip(*(column.to_pylist() for column in plain.columns), strict=True))
            return self.spark.createDataFrame(rows, from_arrow_schema(plain.schema, prefer_timestamp_ntz=True))

    def scratch(self, suffix: str) -> Path:
        """A new file's path in the engine's own folder."""
        return self._folder / f"{self._next()}{suffix}"

    def _next(self) -> int:
        self._count += 1
        return self._count

    def write_parts(self, frame: Any, folder: Path, label: str) -> list[Path]:
        """Write a frame as Parquet files into a new folder, which Spark and we must both see; the files in their order."""
        try:
            self.doing(lambda: frame.write.parquet(folder.absolute().as_uri()), label, "Writing")
            parts = sorted(folder.glob("part-*.parquet"))
            if not parts:
                raise VeilmarkError(
                    f"Spark wrote its part of '{label}', but this machine does not see it: the folder is not "
                    "shared with Spark's machine. Write to a shared folder, or run veilmark on Spark's machine."
                )
            for other in set(folder.iterdir()) - set(parts):
                other.unlink()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return parts


def _to_arrow(frame: Any) -> pa.Table:
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    if hasattr(frame, "_collect_as_arrow"):
        from pyspark.sql.pandas.types import to_arrow_schema

        batches = frame._collect_as_arrow()
        return pa.Table.from_batches(batches, None if batches else to_arrow_schema(frame.schema))
    client = frame._session.client
    return client.to_table(frame._plan.to_proto(client))[0]


def _plain_types(table: pa.Table) -> pa.Table:
    """Types that Spark has too."""
    for i, field in enumerate(table.schema):
        kind = known_type(field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
        if pa.types.is_unsigned_integer(kind):
            kind = pa.int64() if kind != pa.uint64() else pa.decimal128(20)
        elif pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
            kind = pa.string()
        elif pa.types.is_large_binary(kind):
            kind = pa.binary()
        elif pa.types.is_timestamp(kind) and kind.unit == "ns":
            kind = pa.timestamp("us", kind.tz)
        elif pa.types.is_time(kind):
            kind = pa.string()
        if kind != field.type:
            table = table.set_column(i, field.name, pc.cast(table.column(i), kind))
    return table


LOST = ("Connection re", "UNAVAILABLE", "Py4JNetworkError", "SparkContext was shut down", "stopped SparkContext")
NO_MEMORY = ("maxResultSize", "OutOfMemoryError", "SparkOutOfMemory", "ENOMEM")
MALFORMED = ("MALFORMED_RECORD_IN_PARSING", "MALFORMED_CSV_RECORD", "CSV header", "Malformed CSV")


def is_lost(error: Exception) -> bool:
    """Whether Spark is gone, or cannot be reached any more."""
    return any(mark in _text(error) for mark in LOST)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def explain(error: Exception, label: str) -> VeilmarkError:
    """Spark's error as a paragraph. Its own words may show rows, so that only its name for the error is repeated."""
    text, kind = _text(error), _condition(error)
    if is_lost(error):
        return VeilmarkError(
            f"The connection to Spark was lost while it worked on '{label}'. Nothing was published. Find out why "
            "Spark ended (often because of memory), and try again."
        )
    if any(mark in text for mark in NO_MEMORY):
        return VeilmarkError(
            f"Spark ran out of memory while it worked on '{label}'. Give it more ({param('memory')}, or "
            "spark.driver.memory and spark.executor.memory of the session), or let the driver hold fewer classes "
            "(most_classes in the study)."
        )
    if any(mark in text for mark in MALFORMED):
        return DataError(
            f"'{label}' has a line that does not match the first one: it has a different number of fields, or an "
            "unclosed quote. Correct it, or write the table as Parquet."
        )
    if "PATH_NOT_FOUND" in text or "TABLE_OR_VIEW_NOT_FOUND" in text:
        return DataError(f"Spark does not find '{label}'. Check its name, and that Spark's machines have it.")
    if "AccessControl" in text or "Permission denied" in text or "PERMISSION" in kind or "AccessDenied" in text:
        return DataError(
            f"Spark has no permission to read '{label}'. Ask for the permission, or run Spark as a user who has it."
        )
    if "FileNotFound" in text or "FILE_NOT_EXIST" in text:
        return DataError(f"'{label}' changed while it was being read. Try again when nobody writes to it.")
    return DataError(f"Spark could not work on '{label}': {kind}. Its log says more.")


def _condition(error: Exception) -> str:
    """Spark's name for an error, such as PARQUET_TYPE_ILLEGAL, or the kind of exception: brackets elsewhere may be rows'."""
    named = re.match(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]", str(error).lstrip())
    return named.group(1) if named else type(error).__name__

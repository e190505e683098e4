"""The embedded engine: CSV, Parquet, globs and frames, out of core, on the cores and memory it is given."""

from __future__ import annotations

import codecs
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from veilmark import progress
from veilmark.engines import files as paths
from veilmark.engines import sql
from veilmark.engines.base import Visits
from veilmark.engines.duckdb_errors import CsvError, EncodingError, explain
from veilmark.engines.files import CsvFormat, check_columns, find_files, is_parquet, read_head
from veilmark.engines.frames import is_plain, is_relation, to_arrow
from veilmark.engines.recoder import Recoder
from veilmark.engines.shuffle import Shuffle
from veilmark.engines.worker import Worker
from veilmark.engines.writing import write_rows
from veilmark.errors import DataError, OptionError, VeilmarkError, VeilmarkWarning, listing
from veilmark.scratch import Scratch
from veilmark.tables import cells
from veilmark.tables.cells import Cells
from veilmark.tables.domain import Domain

if TYPE_CHECKING:
    from veilmark.tables.pseudonyms import Pseudonyms
    from veilmark.tables.recoding import Recoding

DIALECT = sql.Dialect()
BATCH_ROWS = 1 << 17
PROBE_ROWS = 5_000
FEW_VALUES = 1 << 16
FILE = "veilmark_file"
PADS = "getvariable('veilmark_pads')"


class DuckDB:
    """An embedded DuckDB. `threads` and `memory` (such as "2GB") limit it; beyond the memory it spills to disk."""

    dialect = DIALECT

    def __init__(self, threads: int | None = None, memory: str | None = None) -> None:
        self._scratch = Scratch()
        self.folder = self._scratch.path
        settings: dict[str, Any] = {
            "temp_directory": str(self.folder),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        settings |= {"threads": threads} if threads else {}
        settings |= {"memory_limit": memory} if memory else {}
        try:
            self.connection = duckdb.connect(config=settings)
            self.connection.execute(
                "SET enable_progress_bar=true; SET enable_progress_bar_print=false; SET TimeZone='UTC'"
            )
        except duckdb.Error as error:
            self._scratch.close()
            raise OptionError(
                f"DuckDB does not accept threads={threads}, memory={memory}: {str(error).splitlines()[0]} Give "
                "threads as a whole number and memory as a size such as 2GB."
            ) from None
        self.threads = threads
        self._tables = 0
        self._worker = Worker("veilmark-duckdb")

    def __enter__(self) -> DuckDB:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop everything, the temporary files too."""
        self._worker.stop()
        self.connection.close()
        self._scratch.close()

    def open(self, source: Any, csv: CsvFormat | None = None, joined: bool = False) -> DuckTable:
        """A path or glob of CSV or Parquet files, or a frame: pandas, polars, Arrow, a DuckDB relation."""
        if is_relation(source):
            file = self.scratch(".parquet")
            source.write_parquet(str(file))
            return ParquetTable(self, [file], "the DuckDB relation")
        if not isinstance(source, str | Path):
            return FrameTable(self, to_arrow(source))
        files = find_files(source)
        if all(is_parquet(f) for f in files):
            return ParquetTable(self, files, str(source), paths.base_of(source))
        return CsvTable(self, files, str(source), csv)

    def transcoded(self, path: Path, encoding: str, one_line_end: bool = False) -> Path:
        """A copy in UTF-8, unpacked, in the engine's own folder; with `one_line_end` every line ends in a newline."""
        target = self.scratch(".csv")
        letters = codecs.getincrementaldecoder(encoding)()
        decoder = io.IncrementalNewlineDecoder(letters, translate=True) if one_line_end else letters
        try:
            with target.open("wb") as out:
                for chunk in chain(paths.chunks(path), [b""]):
                    out.write(decoder.decode(chunk, final=not chunk).encode())
        except UnicodeError:
            raise EncodingError(
                f"'{path}' is not written in {encoding}: it holds bytes that mean nothing there. Name its encoding "
                "in the study: source: {path: …, encoding: …}."
            ) from None
        except OSError as error:
            raise VeilmarkError(
                f"'{path}' must be copied to a temporary folder to be read, and that failed: "
                f"{error.strerror or error}. Free space there, or set TMPDIR to a folder with more."
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
        try:
            return self._worker.submit(work).result()
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        """End the work, and wait until it is. While it begins, an interrupt is lost or refused, so one follows another."""
        idle = self._worker.submit(lambda: None)
        while not idle.wait(0.05):
            with suppress(duckdb.Error):
                self.connection.interrupt()

    @contextmanager
    def joins_as_written(self) -> Iterator[None]:
        """Tables are joined in the order they are named, the later ones held in memory.

        The engine cannot know how long a CSV file is, and would at times hold that; and rows would come out in the order
        of a joined table.
        """
        self.execute("SET disabled_optimizers='join_order,build_side_probe_side'")
        try:
            yield
        finally:
            self.execute("RESET disabled_optimizers")

    @contextmanager
    def holding(self, table: pa.Table) -> Iterator[str]:
        """A table of our own that statements can name; it is held in memory when others are joined with it."""
        name = f"held_{self._next()}"
        self.connection.register(name, table)
        try:
            with self.joins_as_written():
                yield name
        finally:
            self.connection.unregister(name)

    def stored_rows(self, files: Sequence[Path]) -> Iterator[pa.RecordBatch]:
        """The rows of Parquet files of our own, file after file."""
        listed = ", ".join(sql.literal(paths.as_pattern(file)) for file in files)
        yield from self.connection.sql(f"FROM read_parquet([{listed}], hive_partitioning=false)").to_arrow_reader(
            BATCH_ROWS
        )

    def share_done(self) -> float | None:
        """How much of the running query is done, as DuckDB reckons."""
        percent = self.connection.query_progress()
        return percent / 100 if percent > 0 else None

    def scratch(self, suffix: str) -> Path:
        """A new file's path in the engine's own folder."""
        return self.folder / f"{self._next()}{suffix}"

    def _next(self) -> int:
        self._tables += 1
        return self._tables


class DuckTable:
    """A table that DuckDB can read; the kinds of source differ in how they are opened and scanned."""

    label: str

    def __init__(self, engine: DuckDB, label: str) -> None:
        self.engine = engine
        self.label = label
        self.raw = self.name = f"source_{engine._next()}"
        self._declared: dict[str, Sequence[str]] = {}
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
                quiet = statement.startswith(("CREATE", "COPY"))
                return self.engine.execute(statement) if quiet else self.engine.run(statement)
        except duckdb.Error as error:
            raise explain(error, self.label) from None

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

    def write_recoded(
        self,
        recoding: Recoding,
        columns: Sequence[str],
        path: Path,
        pseudonyms: Pseudonyms | None = None,
        order: Shuffle | None = None,
    ) -> None:
        """Write the columns with the recoding applied, in one streaming pass; CSV or Parquet by the suffix. Without an order
        rows stay in the source's."""
        recoder = Recoder(recoding, columns)
        with progress.step(f"Writing {path.name}"), self._hidden(columns, pseudonyms) as rows:
            write_rows(recoder.batches(rows), path, order, recoder.labels, self.engine.folder)

    @contextmanager
    def _hidden(self, columns: Sequence[str], pseudonyms: Pseudonyms | None) -> Iterator[Iterator[pa.RecordBatch]]:
        """Some columns of all rows in their order, those of direct identifiers as pseudonyms.

        The key is a variable of the engine and no part of a statement, which an error might show; and a join with a table of
        it would not keep the rows in their order.
        """
        hidden = [c for c in columns if pseudonyms and c in pseudonyms.columns]
        direct = None if hidden else self._direct(columns)
        if direct is not None:
            yield direct
            return
        chosen = {c: DIALECT.name(c) for c in columns}
        chosen |= {c: f"{DIALECT.pseudonym(DIALECT.clean(c, self.columns[c]), PADS)} AS {chosen[c]}" for c in hidden}
        if pseudonyms:
            self.engine.connection.execute(
                "SET VARIABLE veilmark_pads = $pads", {"pads": pseudonyms.pads().to_pylist()[0]}
            )
        try:
            yield self._reader(f"SELECT {', '.join(chosen.values())} FROM {self.name}")
        finally:
            self.engine.connection.execute("RESET VARIABLE veilmark_pads")

    def declare_missing(self, codes: Mapping[str, Sequence[str]]) -> None:
        """From now on, these values of some columns are missing too."""
        self.name = f"{self.raw}_declared"
        self._declared |= {name: (*self._declared.get(name, ()), *given) for name, given in codes.items()}
        statement = sql.declare_missing(DIALECT, self.raw, self.columns, self._declared)
        self.engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW {self.name} AS {statement}")

    def spooled(self, columns: Sequence[str]) -> DuckTable:
        """Some columns as a table that is quick to read again and again: a CSV is read once."""
        if self._batches(()) is not None and not self._declared:
            return self
        file = self.engine.scratch(".parquet")
        self._run(sql.spool(DIALECT, self.name, self._kinds(columns), str(file)))
        return ParquetTable(self.engine, [file], self.label)

    def visits(self, columns: Sequence[str], person: str, part: tuple[int, int] = (0, 1)) -> Visits:
        """The rows with their persons; of several parts, the rows of the persons in one."""
        return Visits(*self.person_keys(person, part), None, self.rows(columns, person, part))

    def rows(
        self, columns: Sequence[str], person: str = "", part: tuple[int, int] = (0, 1)
    ) -> Iterator[pa.RecordBatch]:
        """Some columns of all rows in their order; of several parts, the rows of the persons in one."""
        direct = self._direct(columns) if part[1] == 1 else None
        if direct is not None:
            yield from direct
            return
        statement = sql.rows(DIALECT, self.name, self._kinds(columns), person, part)
        yield from self._reader(statement)

    def person_keys(self, person: str, part: tuple[int, int] = (0, 1)) -> tuple[np.ndarray, np.ndarray]:
        """Two independent hashes of each row's person, the rows as `rows` has them."""
        found = list(self._reader(sql.person_hashes(DIALECT, self.name, person, part)))
        first, second = ([batch.column(i).to_numpy() for batch in found] for i in range(2))
        return np.concatenate([np.empty(0, np.uint64), *first]), np.concatenate([np.empty(0, np.uint64), *second])

    def _reader(self, statement: str) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.engine.connection.sql(statement).to_arrow_reader(BATCH_ROWS)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise explain(error, self.label) from None

    def _direct(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        """The rows without the engine, where it need not change them."""
        return None if self._declared.keys() & set(columns) else self._batches(columns)

    def missing(self, column: str) -> int:
        """How many records lack a value of the column."""
        statement = sql.count_missing(DIALECT, self.name, column, self.columns[column])
        return int(self._run(statement)["n"][0].as_py())

    def group(self, columns: Sequence[str]) -> Cells:
        """The distinct combinations of the columns, coded and counted."""
        if self._looks_small(columns):
            domains = [self.domain(c) for c in columns]
            batches = self._direct(columns) if _small([len(d) for d in domains]) else None
            if batches is not None:
                with progress.step(f"Grouping {self.label}"):
                    return cells.count_batches(batches, domains, columns)
        return cells.encode(self._run(sql.group(DIALECT, self.name, self._kinds(columns)), "Grouping"), columns)

    def domain(self, column: str) -> Domain:
        """The distinct values of a column."""
        values = self._run(sql.distinct(DIALECT, self.name, column)).column(0)
        return Domain.of(values.combine_chunks(), column)

    def _looks_small(self, columns: Sequence[str]) -> bool:
        """Whether a few rows leave hope that each column has few values, so that rows pack into one number."""
        if not columns or self._direct(columns) is None:
            return False
        counts = ", ".join(f"count(DISTINCT {DIALECT.name(c)})" for c in columns)
        found = self._run(f"SELECT {counts} FROM ({sql.head(self.name, PROBE_ROWS)})")
        return _small([column[0].as_py() for column in found.columns])

    def group_persons(
        self, quasi: Sequence[str], sensitive: Sequence[str], person: str
    ) -> list[tuple[Cells, pa.Table]]:
        """Cells with persons over `quasi`, then over `quasi` and each sensitive attribute; the rows are read once."""
        visits, wander = f"{self.name}_visits", f"{self.name}_wander"
        columns = [*quasi, *sensitive]
        statements = {
            visits: sql.visits(DIALECT, self.name, self._kinds(columns), person),
            wander: sql.wander(visits, len(quasi)),
        }
        try:
            for name, statement in statements.items():
                self._run(f"CREATE TEMP TABLE {name} AS {statement}", "Grouping")
            base = list(range(len(quasi)))
            chosen = [base, *([*base, len(quasi) + i] for i in range(len(sensitive)))]
            return [self._group_visits(visits, wander, columns, places) for places in chosen]
        finally:
            for name in statements:
                self.engine.execute(f"DROP TABLE IF EXISTS {name}")

    def _group_visits(
        self, visits: str, wander: str, columns: Sequence[str], places: Sequence[int]
    ) -> tuple[Cells, pa.Table]:
        found = cells.encode(self._run(sql.group_visits(visits, wander, places)), [columns[i] for i in places])
        return found, self._run(sql.wanderers(visits, wander, places))

    def _kinds(self, columns: Sequence[str]) -> dict[str, str]:
        return {c: self.columns[c] for c in columns}


class FrameTable(DuckTable):
    """An Arrow table in memory."""

    def __init__(self, engine: DuckDB, data: pa.Table, label: str = "the frame") -> None:
        check_columns(data.column_names, label)
        self._data = data
        super().__init__(engine, label)

    def _create(self) -> None:
        try:
            self.engine.connection.register(self.raw, self._data)
        except duckdb.Error:
            raise self._unreadable() from None

    def _unreadable(self) -> DataError:
        """What to say of a frame that the engine does not take: the column at fault."""
        for field in self._data.schema:
            try:
                self.engine.connection.register(f"{self.raw}_tried", pa.table([pa.array([], field.type)], [field.name]))
            except duckdb.Error:
                return DataError(
                    f"Column '{field.name}' of {self.label} has the type {field.type}, which cannot be read. Convert it to "
                    "text or to numbers, or drop it."
                )
        return DataError(f"{self.label.capitalize()} cannot be read. Convert its columns to text, numbers or dates.")

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        chosen = self._data.select(list(columns))
        return iter(chosen.to_batches(max_chunksize=BATCH_ROWS)) if all(map(is_plain, chosen.schema.types)) else None


class ParquetTable(DuckTable):
    """One or more Parquet files with the same columns; folders below `base`, such as `state=FL`, may hold more."""

    def __init__(self, engine: DuckDB, files: Sequence[Path], label: str, base: Path | None = None) -> None:
        self._files = [str(f) for f in files]
        self._schema = paths.read_schema(files[0])
        check_columns(self._schema.names, files[0])
        for file in files[1:]:
            paths.check_types(files[0], self._schema, file, paths.read_schema(file))
        self._held = paths.folder_columns(files, base, self._schema.names) if base is not None else []
        self._ids: list[str] = []
        super().__init__(engine, label)

    def _create(self) -> None:
        listed = ", ".join(sql.literal(paths.as_pattern(Path(f))) for f in self._files)
        options = "hive_partitioning=false" + (f", filename={sql.literal(FILE)}" if self._held else "")
        scan = f"read_parquet([{listed}], {options})"
        try:
            described = self.engine.connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE FROM {scan})")
            self._ids = [name for name, kind in described.fetchall() if kind == "UUID"]
            self.engine.connection.execute(f"CREATE TEMP VIEW {self.raw} AS SELECT {self._chosen()} FROM {scan}")
        except duckdb.Error as error:
            raise explain(error, self.label) from None

    def _chosen(self) -> str:
        """All columns, UUIDs as texts, and those that folders hold, as texts too."""
        texts = ", ".join(f"CAST({DIALECT.name(c)} AS VARCHAR) AS {DIALECT.name(c)}" for c in self._ids)
        chosen = "*" + (f" EXCLUDE ({FILE})" if self._held else "") + (f" REPLACE ({texts})" if texts else "")
        return ", ".join([chosen, *(f"{_in_folder(c.written)} AS {DIALECT.name(c.name)}" for c in self._held)])

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        if not all(c in self._schema.names and is_plain(self._schema.field(c).type) for c in columns):
            return None
        import pyarrow.dataset as ds  # here, because it loads pandas where that is installed

        texts = {c for c in columns if _is_text(self._schema.field(c).type)}
        options = ds.ParquetReadOptions(dictionary_columns=texts, coerce_int96_timestamp_unit="us")
        data = ds.dataset(self._files, format=ds.ParquetFileFormat(read_options=options))
        threads = self.engine.threads != 1
        return iter(data.to_batches(columns=list(columns), batch_size=BATCH_ROWS, use_threads=threads))


class CsvTable(DuckTable):
    """One or more CSV files with the same columns; every value is kept as the text it is."""

    def __init__(self, engine: DuckDB, files: Sequence[Path], label: str, given: CsvFormat | None) -> None:
        self._given = given or CsvFormat()
        heads = [read_head(f, given) for f in files]
        self._head = heads[0]
        self._encodings = {f: head.encoding for f, head in zip(files, heads, strict=True)}
        for file, head in zip(files, heads, strict=True):
            paths.check_alike(files[0], self._head, file, head)
        self._one_line_end = any(head.mixed_ends for head in heads)
        super().__init__(engine, label)
        self._tell_fallback(files)

    def _create(self) -> None:
        head = self._head
        options = {
            "columns": "{" + ", ".join(f"{sql.literal(c)}: 'VARCHAR'" for c in head.columns) + "}",
            "delim": sql.literal(head.delimiter),
            "quote": sql.literal(head.quote),
            "escape": sql.literal(head.quote),
            "skip": str(head.skip),
            "hive_partitioning": "false",
        }
        readable = [self._readable(f) for f in self._encodings]
        for file in readable:
            paths.check_last_line(file, self.label)
        listed = ", ".join(sql.literal(paths.as_pattern(file)) for file in readable)
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        try:
            self.engine.connection.execute(
                f"CREATE OR REPLACE TEMP VIEW {self.raw} AS "
                f"FROM read_csv([{listed}], auto_detect=false, header=true, strict_mode=true, {given})"
            )
        except duckdb.Error as error:
            raise explain(error, self.label) from None

    def _readable(self, file: Path) -> Path:
        """The file where the engine can read it as it is, else a copy."""
        encoding = self._encodings[file]
        if encoding == "utf-8" and not self._one_line_end and file.suffix not in paths.UNPACKED_HERE:
            return file
        try:
            return self.engine.transcoded(file, encoding, self._one_line_end)
        except EncodingError:
            if encoding != "utf-8" or self._given.encoding:
                raise
            self._encodings[file] = paths.whole_encoding(file)
            return self._readable(file)

    def _run(self, statement: str, doing: str = "Reading") -> pa.Table:
        try:
            return super()._run(statement, doing)
        except CsvError as error:
            self._mend(error)
            return self._run(statement, doing)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in their order; an error is too late to read the file otherwise."""
        try:
            yield from super().batches()
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise explain(error, self.label) from None

    def _mend(self, error: CsvError) -> None:
        """Have the files read otherwise after the engine refused them; raise the error where nothing is left to try."""
        before = dict(self._encodings)
        if isinstance(error, EncodingError):
            doubtful = [] if self._given.encoding else [f for f, encoding in before.items() if encoding == "utf-8"]
            self._encodings |= {f: paths.whole_encoding(f) for f in doubtful}
            mended = self._encodings != before
        else:
            mended = not self._one_line_end and any(paths.has_mixed_ends(f) for f in before)
            self._one_line_end |= mended
        if not mended:
            raise error
        self._create()
        self._tell_fallback([f for f in before if self._encodings[f] != before[f]])

    def _tell_fallback(self, files: Sequence[Path]) -> None:
        for encoding, name in paths.FALLBACKS.items():
            read = [f for f in files if self._encodings[f] == encoding]
            if read and not self._given.encoding:
                warnings.warn(
                    f"Not UTF-8, so read as {name}: {listing(read)}. If letters look wrong, name the encoding in "
                    "the study: source: {path: …, encoding: …}.",
                    VeilmarkWarning,
                    stacklevel=3,
                )


def _small(sizes: Sequence[int]) -> bool:
    """Whether rows of these domains pack into one number, and looking values up batch by batch is cheap."""
    return max(sizes) <= FEW_VALUES and math.prod(max(size, 1) for size in sizes) < 1 << 62


def _in_folder(name: str) -> str:
    """The value in the last folder `name=…` of a file's path. DuckDB's own way takes folders above the table too."""
    pattern = sql.literal(f"(?s).*/{re.escape(name)}=([^/]*)/")
    return f"nullif(url_decode(regexp_extract('/' || {FILE}, {pattern}, 1)), {sql.literal(paths.MISSING_FOLDER)})"


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

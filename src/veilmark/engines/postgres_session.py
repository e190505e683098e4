"""Sessions with PostgreSQL: one snapshot for all of them, Arrow in and out by COPY, and errors in plain words."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from veilmark.engines.postgres_types import arrow_type, column_type
from veilmark.errors import DataError, OptionError, VeilmarkError

if TYPE_CHECKING:
    import psycopg
    from psycopg import Connection
    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGconn

OLDEST = 14
BLOCK = 8 << 20
"""Rows are parsed about so many bytes at a time."""

SETTINGS = {
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    # A scan that joins another one half-way would not start at the first row.
    "synchronize_seqscans": "off",
    # The snapshot must live while we compute.
    "idle_in_transaction_session_timeout": "0",
}
WORK_MEMORY = "128MB"
LOCK_WAIT = "30s"
"""An ALTER TABLE that waits for one of our sessions would keep the next one waiting for ever, and no server sees that."""
IN_ORDER = "SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL enable_indexonlyscan = off"
"""So that a table's rows come as they are stored."""

CONNECTION = {
    "connect_timeout": 10,
    "fallback_application_name": "veilmark",
    # So that a server that is gone without a word is noticed within two minutes.
    "keepalives": 1,
    "keepalives_idle": 60,
    "keepalives_interval": 10,
    "keepalives_count": 6,
}
"""What an address does not say itself."""


class Session:
    """One connection in one transaction, which is never committed: what it makes is gone when it is closed.

    All sessions of an engine read the same snapshot, so that a table that others write to stays as it was at the start.
    Its locks (ACCESS SHARE) keep the tables read so far from being truncated or altered meanwhile.
    """

    def __init__(self, url: str, snapshot: str | None = None, read_only: bool = True) -> None:
        self.place = place(url)
        self._connection = _connect(url, self.place)
        try:
            self._begin(snapshot, read_only)
        except BaseException:
            self.close()
            raise

    def _begin(self, snapshot: str | None, read_only: bool) -> None:
        """Settings are the transaction's, since a pooler may give the next one to another server process."""
        self.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ {'READ ONLY' if read_only else 'READ WRITE'}")
        if snapshot is not None:
            self.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        self.execute("; ".join(f"SET LOCAL {name} = '{value}'" for name, value in SETTINGS.items()))
        self.execute(
            f"SELECT set_config('work_mem', '{WORK_MEMORY}', true) "
            f"WHERE pg_size_bytes(current_setting('work_mem')) < pg_size_bytes('{WORK_MEMORY}')"
        )
        self.execute(
            f"SELECT set_config('lock_timeout', '{LOCK_WAIT}', true) WHERE current_setting('lock_timeout') = '0'"
        )
        self.snapshot = snapshot or str(self.value("SELECT pg_export_snapshot()"))

    def close(self) -> None:
        """Stop what runs and forget what was made."""
        from psycopg.pq import TransactionStatus

        if self._connection.info.transaction_status == TransactionStatus.ACTIVE:
            with suppress(Exception):
                self._connection.cancel_safe(timeout=5)
        self._connection.close()

    def execute(self, statement: str, label: str = "") -> None:
        """Run statements that yield nothing."""
        with self._explained(label):
            self._connection.execute(statement)

    def value(self, statement: str, *parameters: object) -> Any:
        """The one value of a small result."""
        [row] = self.rows(statement, *parameters)
        return row[0]

    def rows(self, statement: str, *parameters: object, label: str = "") -> list[tuple[Any, ...]]:
        """A small result as Python values."""
        with self._explained(label):
            return self._connection.execute(statement, parameters or None).fetchall()

    def describe(self, statement: str, label: str = "") -> Sequence[psycopg.Column]:
        """The columns that a statement yields, found without running it."""
        with self._explained(label):
            return self._connection.execute(f"SELECT * FROM ({statement}) AS described LIMIT 0").description or ()

    def fetch(self, statement: str, label: str) -> pa.Table:
        """A result as Arrow."""
        reader = self.stream(statement, label)
        return pa.Table.from_batches(list(reader), reader.schema)

    def stream(self, statement: str, label: str) -> pa.RecordBatchReader:
        """A result as Arrow batches; the session must do nothing else until all are read."""
        columns = self.describe(statement, label)
        schema = pa.schema([(c.name, arrow_type(c.type_code, c.precision, c.scale)) for c in columns])
        return pa.RecordBatchReader.from_batches(schema, self._batches(statement, schema, label))

    def _batches(self, statement: str, schema: pa.Schema, label: str) -> Iterator[pa.RecordBatch]:
        with self._explained(label):
            self._connection.wait(_start(self._connection.pgconn, f"COPY ({statement}) TO STDOUT (FORMAT csv)"))
            done = False
            while not done:
                block, done = self._connection.wait(_read_block(self._connection.pgconn))
                if block:
                    yield from _parse(block, schema, label)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Within the block nothing but temporary tables can be written to, whatever functions a view may call.

        A transaction that is to make temporary tables cannot be read only as a whole; a part of it can. That part ends
        with the block, also where it fails or is interrupted.
        """
        self.execute("SAVEPOINT guarded; SET TRANSACTION READ ONLY")
        try:
            yield
        except BaseException:
            self._leave_guarded()
            raise
        self.execute("RELEASE SAVEPOINT guarded")

    def _leave_guarded(self) -> None:
        """Undo the part that failed, unless the connection is lost or a result still comes."""
        from psycopg.pq import TransactionStatus

        if self._connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with suppress(VeilmarkError):
                self.execute("ROLLBACK TO SAVEPOINT guarded; RELEASE SAVEPOINT guarded")

    def make(self, name: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        """A temporary table of Arrow rows."""
        columns = ", ".join(f"{quoted(f.name)} {column_type(f.type)}" for f in schema)
        self.make_temporary(f"TABLE {name} ({columns})")
        with self._explained(""), self._connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for batch in batches:
                if batch.num_rows and batch.num_columns:
                    copy.write(_as_lines(batch))
        self.execute(f"ANALYZE {name}")

    def make_temporary(self, definition: str, label: str = "") -> None:
        """CREATE TEMPORARY …, which a user may lack the right to."""
        self.execute(f"CREATE TEMPORARY {definition}", label)

    def drop(self, name: str) -> None:
        """Drop a temporary table, where that is possible: all are gone when the session is closed."""
        from psycopg.pq import TransactionStatus

        if self._connection.info.transaction_status == TransactionStatus.INTRANS:
            with suppress(VeilmarkError):
                self.execute(f"DROP TABLE IF EXISTS {name}")

    @contextmanager
    def _explained(self, label: str) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            lost = self._connection.closed or self._connection.broken
            raise _explain(error, label, self.place, bool(lost)) from None


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def place(url: str) -> str:
    """What messages call a database: never its address, which may hold a password."""
    psycopg = _psycopg()
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
        split = _is_split(psycopg.conninfo.conninfo_to_dict(url.replace("%40", "-"))) and "://" in url
    except psycopg.Error:
        split = True
    if split:
        raise OptionError(
            "The database's address cannot be read. Write it as postgresql://user@host:port/database, with "
            "special characters as % codes, or name an environment variable that contains it: url: "
            "env:DATABASE_URL."
        )
    name = given.get("dbname") or given.get("user") or "default"
    return f"the database '{name}'" + (f" on {given['host']}" if given.get("host") else "")


def _is_split(given: Mapping[str, Any]) -> bool:
    """Whether an address was cut within its password, which has a bare @ or / in it."""
    return any("@" in str(given.get(part, "")) for part in ("host", "port", "dbname"))


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise OptionError(
            "Tables in PostgreSQL need the package psycopg. Install it: pip install 'veilmark[postgres]'."
        ) from None
    return psycopg


def _connect(url: str, where: str) -> Connection:
    psycopg = _psycopg()
    given = psycopg.conninfo.conninfo_to_dict(url)
    more = {name: value for name, value in CONNECTION.items() if name not in given}
    try:
        connection: Connection = psycopg.connect(url, autocommit=True, **more)
    except psycopg.Error as error:
        raise OptionError(
            f"Veilmark cannot connect to {where}: {_reason(error)}. Check the address, the user, the password and "
            "the network, and that the server is running."
        ) from None
    if connection.info.server_version < OLDEST * 10_000:
        version = connection.info.server_version // 10_000
        connection.close()
        raise OptionError(f"The server is PostgreSQL {version}. Veilmark needs {OLDEST} or newer.")
    return connection


def _reason(error: Exception) -> str:
    """The last thing that libpq says of a failed connection, which has no password in it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "failed" in line or "FATAL" in line]
    return (told or lines or ["the database gave no reason"])[0].rstrip(".")


# --- COPY ------------------------------------------------------------------------------------------------------
#
# libpq hands rows out one by one. psycopg's own reader takes a round through Python's waiting machinery for each, five
# times as long as these generators, which wait only where nothing has come.


def _start(pgconn: PGconn, statement: str) -> PQGen[None]:
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus
    from psycopg.waiting import Ready, Wait

    pgconn.send_query(statement.encode())
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()
    while pgconn.is_busy():
        if (yield Wait.R):
            pgconn.consume_input()
    result = pgconn.get_result()
    if result is None or result.status != ExecStatus.COPY_OUT:
        _finish(pgconn)
        raise error_from_result(result) if result is not None else VeilmarkError("The database gave no answer.")


def _read_block(pgconn: PGconn) -> Generator[Any, Any, tuple[bytes, bool]]:
    """Whole rows of some megabytes, and whether they are the last."""
    from psycopg.waiting import Wait

    rows: list[bytes] = []
    size = 0
    while size < BLOCK:
        count, data = pgconn.get_copy_data(1)
        if count > 0:
            rows.append(bytes(data))
            size += count
        elif count == 0:
            if (yield Wait.R):
                pgconn.consume_input()
        else:
            _finish(pgconn)
            return b"".join(rows), True
    return b"".join(rows), False


def _finish(pgconn: PGconn) -> None:
    """Take the last results, of which one may be an error."""
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    failed = None
    while (result := pgconn.get_result()) is not None:
        if result.status != ExecStatus.COMMAND_OK:
            failed = failed or result
    if failed is not None:
        raise error_from_result(failed)


def _parse(block: bytes, schema: pa.Schema, label: str) -> Iterator[pa.RecordBatch]:
    """Rows in CSV, in which an empty text is quoted and a missing value is not."""
    names = [f"c{i}" for i in range(len(schema))]
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(block),
            pa_csv.ReadOptions(column_names=names, block_size=len(block) + 1),
            pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            pa_csv.ConvertOptions(
                column_types=dict(zip(names, schema.types, strict=True)),
                null_values=[""],
                true_values=["t"],
                false_values=["f"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:
        raise DataError(
            f"A value in '{label}' does not fit the type of its column, or is not UTF-8. Use a view that has such "
            "columns as text."
        ) from None
    yield from table.rename_columns(schema.names).to_batches()


ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def _as_lines(batch: pa.RecordBatch) -> bytes:
    """Rows as COPY reads them."""
    tab, end = (pa.scalar(letter, pa.large_string()) for letter in "\t\n")
    lines = pc.binary_join_element_wise(*(_as_field(column) for column in batch.columns), tab)
    [joined] = pc.binary_join(pa.LargeListArray.from_arrays([0, len(lines)], lines), end)
    return bytes(joined.as_buffer()) + b"\n"


def _as_field(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_binary(column.type):
        column = pa.array([f"\\x{value.hex()}" for value in column.to_pylist()])
    text = pc.cast(column, pa.large_string())
    for letter, written in ESCAPES.items():
        text = pc.replace_substring(text, letter, written)
    return text.fill_null("\\N")


# --- Errors ----------------------------------------------------------------------------------------------------


def _explain(error: psycopg.Error, label: str, where: str, lost: bool) -> VeilmarkError:
    """What went wrong, with no value of the data: PostgreSQL quotes them in errors of conversion."""
    code, said = error.sqlstate or "", (error.diag.message_primary or "").rstrip(".")
    table = f"'{label}'" if label else "a table"
    # A snapshot is gone with the session that exported it.
    if lost or code.startswith(("57P", "08")) or (code in ("22023", "42704") and "snapshot" in said):
        return VeilmarkError(
            f"The connection to {where} was lost. The work there was rolled back, and no file was written here. "
            "Try again when the server is up."
        )
    if (code in ("42501", "25006") and "create temporary" in said) or (code == "25006" and not label):
        return OptionError(
            f"Veilmark needs temporary tables in {where}, but has no permission to create them: {said}. Ask for "
            "the permission (GRANT TEMPORARY ON DATABASE …), and use a primary server, not a standby."
        )
    if code == "42501":
        return DataError(
            f"The database does not let you read {table}: {said}. Ask for the permission (GRANT SELECT ON …)."
        )
    if code == "25006":
        return DataError(f"Reading {table} would write to the database: {said}. Veilmark only reads. Correct the view.")
    if code == "57014":
        return VeilmarkError(f"{where.capitalize()} stopped the work: {said}. Ask for a longer statement_timeout.")
    if code == "55P03":
        return VeilmarkError(
            f"{table} is locked in {where}: another session changes it, or waits to change it (ALTER TABLE, "
            "TRUNCATE, VACUUM FULL …). Try again later, or set a longer lock_timeout."
        )
    if code.startswith("53"):
        return VeilmarkError(
            f"{where.capitalize()} has too few resources for this: {said}. Try again when more are free."
        )
    if code in ("22021", "22P05"):
        return DataError(
            "A text contains a NUL byte (\\0) or invalid UTF-8, which the database does not accept. Correct it."
        )
    if code.startswith("22"):
        return DataError(
            f"A value in {table} does not fit the type of its column. Use a view that has the column as text."
        )
    if code.startswith("42"):
        return DataError(f"Reading {table} in {where} failed: {said}.")
    return DataError(
        f"Reading {table} in {where} failed: {f'SQLSTATE {code}' if code else type(error).__name__}. The "
        "database's own message may contain values and is not shown. Read the table with psql to see it."
    )

"""PostgreSQL: the rows stay in the database; what leaves it are class tables and releases.

Statements see a table as a part of their WITH clause, in which its columns have types that all engines share. Nothing is
made in the database but temporary tables, in a transaction that is never committed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from veilmark import progress
from veilmark.engines import sql
from veilmark.engines.base import Table, Visits
from veilmark.engines.duckdb import BATCH_ROWS, DuckDB
from veilmark.engines.files import CsvFormat, check_columns
from veilmark.engines.postgres_session import IN_ORDER, Session, quoted
from veilmark.engines.postgres_types import (
    Column,
    as_nested,
    as_text,
    code_literal,
    has_text,
    is_nested,
    probe,
    read_as,
    read_probed,
)
from veilmark.engines.shuffle import Shuffle
from veilmark.engines.sources import PostgresTable
from veilmark.engines.writing import write_rows
from veilmark.errors import DataError, OptionError, did_you_mean
from veilmark.tables import cells
from veilmark.tables.cells import Cells
from veilmark.tables.domain import Domain

if TYPE_CHECKING:
    from veilmark.tables.pseudonyms import Pseudonyms
    from veilmark.tables.recoding import Recoding

TABLE_PREFIX = "table:"
"""`table:voters` names a table of the database where a file is asked for."""

STORED = ("r", "m")
"""Relations (pg_class.relkind) whose rows have a place of their own, the ctid: tables and materialized views."""


COMPARED_AS = {
    "number": ("numeric", "NaN"),
    "float": ("double precision", "NaN"),
    "date": ("timestamp", "infinity"),
}
"""The type that holds all values of a kind, and a value of it that is none of theirs; the rest is compared as text."""

LONGEST_NAME = 63
"""Bytes of a column's name; what is longer would be cut."""


@dataclass(frozen=True)
class PostgresDialect(sql.Dialect):
    """How PostgreSQL spells things."""

    nan: str = "{} = 'NaN'"

    def same(self, left: str, right: str, kind: str) -> str:
        """As one type, with a value that nothing has for what is missing: IS NOT DISTINCT FROM would compare each row with
        each."""
        form, nothing = COMPARED_AS.get(kind, ("text", ""))
        sides = (side if kind == "text" else f"CAST({side} AS {form})" for side in (left, right))
        return " = ".join(f"COALESCE({side}, '{nothing}')" for side in sides)

    def hash(self, expressions: Sequence[str]) -> str:
        return f"(hashtextextended(CAST(ROW({', '.join(expressions)}) AS text), 0) & {2**63 - 1})"

    def pseudonym(self, expression: str, pads: str) -> str:
        inner = f"sha256({pads}.inner_pad || convert_to(CAST({expression} AS text), 'UTF8'))"
        return f"substr(encode(sha256({pads}.outer_pad || {inner}), 'hex'), 1, 32)"


DIALECT = PostgresDialect()


class Postgres:
    """A database, and an embedded engine for the files that are not joined with its tables."""

    dialect = DIALECT

    def __init__(self, source: PostgresTable, threads: int | None = None, memory: str | None = None) -> None:
        self._url = source.url
        self._files = DuckDB(threads, memory)
        try:
            self._reading = Session(source.url)
        except BaseException:
            self._files.close()
            raise
        self._making: Session | None = None
        self._defined: dict[str, str] = {}
        self._numbers = 0
        self._in_order = False

    def __enter__(self) -> Postgres:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop everything, the temporary tables and files too."""
        self._files.close()
        for session in (self._making, self._reading):
            if session is not None:
                session.close()

    def open(self, source: Any, csv: CsvFormat | None = None, joined: bool = False) -> Table:
        """A table of the database (`table:NAME`, a `PostgresTable`), or a file or frame: these are read here or, where they
        are to be joined with the source, copied into a temporary table."""
        if isinstance(source, PostgresTable):
            if source.url != self._url:
                raise OptionError(
                    f"'{source}' is in a different database from the study's source. Copy it to that database."
                )
            return StoredTable(self, source.table)
        if isinstance(source, str) and source.startswith(TABLE_PREFIX):
            return StoredTable(self, source.removeprefix(TABLE_PREFIX))
        table = self._files.open(source, csv)
        return CopiedTable(self, table) if joined else table

    def scratch(self, suffix: str) -> Path:
        """A new file's path in the engine's own folder."""
        return self._files.scratch(suffix)

    @contextmanager
    def holding(self, table: pa.Table) -> Iterator[str]:
        """A table of our own that statements can name."""
        name = self.next_name("held")
        self.making.make(name, iter(table.to_batches(max_chunksize=BATCH_ROWS)), table.schema)
        try:
            yield name
        finally:
            self.making.drop(name)

    @property
    def making(self) -> Session:
        """The session that has the temporary tables. It is made when the first is, since not every user may."""
        if self._making is None:
            self._making = Session(self._url, self._reading.snapshot, read_only=False)
            if self._in_order:
                self._making.execute(IN_ORDER)
        return self._making

    @property
    def session(self) -> Session:
        """The session that sees all tables that there are."""
        return self._making or self._reading

    def keep_order(self) -> None:
        """Have all statements read rows in one order: of views it is the only one that there is."""
        self._in_order = True
        self.session.execute(IN_ORDER)

    def reader(self) -> Session:
        """A session of its own for rows that are read while other work goes on; it gives them as they are stored."""
        session = Session(self._url, self._reading.snapshot)
        session.execute(IN_ORDER)
        return session

    def define(self, name: str, statement: str) -> None:
        """From now on, statements know the result of this one by a name."""
        self._defined[name] = statement

    def whole(self, statement: str) -> str:
        """A statement with what it needs to know."""
        known = ", ".join(f"{name} AS NOT MATERIALIZED ({of})" for name, of in self._defined.items())
        return f"WITH {known} {statement}" if known else statement

    def fetch(self, statement: str, label: str) -> pa.Table:
        """A result as Arrow, of a statement that can write nothing."""
        with self.session.guarded():
            return self.session.fetch(self.whole(statement), label)

    def next_name(self, what: str) -> str:
        self._numbers += 1
        return f"veilmark_{what}_{self._numbers}"


class PgTable:
    """A table or view of the database, or a temporary table in it."""

    label: str
    stored: bool

    def __init__(self, engine: Postgres, relation: str) -> None:
        """`relation` is what SQL calls it."""
        self.engine = engine
        self.name = engine.next_name("source")
        self._relation = relation
        self._read, self.columns = self._look(relation)
        check_columns(list(self.columns), self.label)
        self._place = "place"
        while self._place in self.columns:
            self._place += "_"
        if not self.stored:
            engine.keep_order()
        self._define({})

    def _look(self, relation: str) -> tuple[dict[str, Column], dict[str, str]]:
        """How each column is read, and all kinds."""
        session = self.engine.session
        found = {c.name: c for c in session.describe(f"SELECT * FROM {relation}", self.label)}
        codes = sorted({c.type_code for c in found.values()})
        listed = session.rows(
            "SELECT oid, typname, typtype::text, typcategory::text FROM pg_type WHERE oid = ANY(%s::oid[])", codes
        )
        nested = {code for code, *facts in listed if is_nested(*facts)}
        plain = {name: c for name, c in found.items() if c.type_code not in nested}
        parts = {name: as_nested(quoted(name)) for name in found if name not in plain}
        read = {name: read_as(quoted(name), c.type_code, c.precision, c.scale) for name, c in plain.items()}
        doubtful = {name: plain[name].type_code for name, column in read.items() if column is None}
        known = {name: column for name, column in read.items() if column is not None} | self._probed(relation, doubtful)
        known |= parts
        return {name: known[name] for name in found}, {name: known[name].kind for name in found}

    def _probed(self, relation: str, codes: Mapping[str, int]) -> dict[str, Column]:
        if not codes:
            return {}
        asked = ", ".join(probe(quoted(name), code) for name, code in codes.items())
        with progress.step(f"Looking at {self.label}"), self.engine.session.guarded():
            [row] = self.engine.session.rows(f"SELECT {asked} FROM {relation}", label=self.label)
        answers = zip(codes.items(), row[::3], row[1::3], row[2::3], strict=True)
        return {name: read_probed(quoted(name), code, *answer) for (name, code), *answer in answers}

    def _define(self, codes: Mapping[str, Sequence[str]]) -> None:
        """What statements read under the table's name, and the same with each row's place (`_place`)."""
        chosen = ", ".join(f"{self._value(name, codes)} AS {quoted(name)}" for name in self._read)
        place = "ctid" if self.stored else "row_number() OVER ()"
        self.engine.define(self.name, f"SELECT {chosen} FROM {self._relation}")
        self.engine.define(f"{self.name}_placed", f"SELECT {place} AS {self._place}, {chosen} FROM {self._relation}")

    def _value(self, name: str, codes: Mapping[str, Sequence[str]]) -> str:
        column = self._read[name]
        test = self._is_code(column, codes.get(name, ()))
        if test is None:
            return column.expression
        kept = f"CASE WHEN {test} THEN NULL ELSE {column.expression} END"
        return f"CAST({kept} AS {column.type})"  # or a number would lose its precision

    @staticmethod
    def _is_code(column: Column, codes: Sequence[str]) -> str | None:
        """Whether a column's value is one of some codes for what is missing; None where none can be."""
        if column.kind not in ("number", "float"):
            return sql.is_code(DIALECT, column.expression, column.kind, codes)
        listed = [code for given in codes if (code := code_literal(column, given)) is not None]
        return f"{column.expression} IN ({', '.join(listed)})" if listed else None

    def declare_missing(self, codes: Mapping[str, Sequence[str]]) -> None:
        """From now on, these values of some columns are missing."""
        self._define(codes)

    def query(self, statement: str) -> pa.Table:
        """Run a statement on the table (its SQL name is `name`)."""
        return self._run(statement)

    def _run(self, statement: str, doing: str = "Reading") -> pa.Table:
        with progress.step(f"{doing} {self.label}"):
            return self.engine.fetch(statement, self.label)

    def count(self) -> int:
        """How many records there are."""
        return int(self._run(sql.count(self.name))["n"][0].as_py())

    def missing(self, column: str) -> int:
        """How many records lack a value of the column."""
        return int(self._run(sql.count_missing(DIALECT, self.name, column, self.columns[column]))["n"][0].as_py())

    def domain(self, column: str) -> Domain:
        """The distinct values of a column."""
        values = self._run(sql.distinct(DIALECT, self.name, column)).column(0)
        return Domain.of(values.combine_chunks(), column)

    def sample(self, rows: int) -> pa.Table:
        """The first rows as Arrow."""
        return self._run(sql.head(self.name, rows))

    def spooled(self, columns: Sequence[str]) -> PgTable:
        """The table itself: its rows stay where they are."""
        return self

    def group(self, columns: Sequence[str]) -> Cells:
        """The distinct combinations of the columns, coded and counted."""
        return cells.encode(self._run(sql.group(DIALECT, self.name, self._kinds(columns)), "Grouping"), columns)

    def group_persons(
        self, quasi: Sequence[str], sensitive: Sequence[str], person: str
    ) -> list[tuple[Cells, pa.Table]]:
        """Cells with persons over `quasi`, then over `quasi` and each sensitive attribute; the rows are read once."""
        visits, wander = self.engine.next_name("visits"), self.engine.next_name("wander")
        columns = [*quasi, *sensitive]
        base = list(range(len(quasi)))
        chosen = [base, *([*base, len(quasi) + i] for i in range(len(sensitive)))]
        making = self.engine.making
        try:
            with progress.step(f"Grouping {self.label}"):
                grouped = sql.visits(DIALECT, self.name, self._kinds(columns), person)
                making.make_temporary(f"TABLE {visits} AS {self.engine.whole(grouped)}; ANALYZE {visits}", self.label)
                making.make_temporary(f"TABLE {wander} AS {sql.wander(visits, len(quasi))}; ANALYZE {wander}")
            return [self._group_visits(visits, wander, columns, places) for places in chosen]
        finally:
            making.drop(visits)
            making.drop(wander)

    def _group_visits(
        self, visits: str, wander: str, columns: Sequence[str], places: Sequence[int]
    ) -> tuple[Cells, pa.Table]:
        found = cells.encode(self._run(sql.group_visits(visits, wander, places)), [columns[i] for i in places])
        return found, self._run(sql.wanderers(visits, wander, places))

    def visits(self, columns: Sequence[str], person: str, part: tuple[int, int] = (0, 1)) -> Visits:
        """The distinct rows of each person with their counts, in the order of their first rows."""
        kinds = self._kinds(columns)
        found = self._run(visits_in_order(f"{self.name}_placed", self._place, kinds, person, part), "Folding")
        hashes, checks = (found.column(name).to_numpy().view(np.uint64) for name in ("h0", "h1"))
        counts = found.column("n").to_numpy()
        return Visits(hashes, checks, counts, iter(found.drop_columns(["h0", "h1", "n"]).to_batches()))

    def rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of all rows as they are stored."""
        return self._stream(sql.rows(DIALECT, self.name, self._kinds(columns), "", (0, 1)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows as they are stored."""
        return self._stream(f"SELECT * FROM {self.name}")

    def _stream(self, statement: str) -> Iterator[pa.RecordBatch]:
        reader = self.engine.reader()
        try:
            yield from reader.stream(self.engine.whole(statement), self.label)
        finally:
            reader.close()

    def write_recoded(
        self,
        recoding: Recoding,
        columns: Sequence[str],
        path: Path,
        pseudonyms: Pseudonyms | None = None,
        order: Shuffle | None = None,
    ) -> None:
        """Write the columns with the recoding applied; CSV or Parquet by the suffix. Without an order rows stay in the
        source's."""
        kinds, keys = self._kinds(columns), recoding.key_columns()
        hidden = pseudonyms.columns if pseudonyms else ()
        self._check_hidden([c for c in hidden if kinds.get(c) == "float"])
        full = [c for c, domain in zip(recoding.columns, recoding.domains, strict=True) if domain.missing is None]
        with progress.step(f"Writing {path.name}"), ExitStack() as held:

            def hold(table: pa.Table) -> str:
                return held.enter_context(self.engine.holding(table))

            maps = {c: hold(recoding.map_table(i)) for i, c in enumerate(recoding.columns)}
            last = hold(recoding.class_table())
            pads = hold(pseudonyms.pads()) if pseudonyms else ""
            placed = f"{self.name}_placed"
            statement = sql.recode(DIALECT, placed, kinds, maps, full, keys, last, recoding.local, hidden, pads)
            # The order of a join would tell what is to be hidden, and a seed needs one that is the same each time.
            statement = self.engine.whole(f"{statement} ORDER BY s.{self._place}")
            with self.engine.making.guarded():
                reader = self.engine.making.stream(statement, self.label)
                nothing = pa.RecordBatch.from_pylist([], reader.schema)
                write_rows(chain([nothing], reader), path, order, folder=self.engine.scratch("").parent)

    def _check_hidden(self, floats: Sequence[str]) -> None:
        """Databases and files write the same number with other digits, so that it would have other pseudonyms."""
        if floats:
            raise OptionError(
                f"Column '{floats[0]}' of '{self.label}' holds floating-point numbers, which PostgreSQL formats "
                "differently from other engines. Its pseudonyms would differ between engines. Use a view that "
                "has the column as text or as whole numbers."
            )

    def _kinds(self, columns: Sequence[str]) -> dict[str, str]:
        return {c: self.columns[c] for c in columns}


class StoredTable(PgTable):
    """A table, a view, or anything that can be selected from."""

    def __init__(self, engine: Postgres, given: str) -> None:
        self.label = given
        parts = [part.strip('"').replace('""', '"') for part in re.findall(r'"(?:[^"]|"")+"|[^."]+', given)]
        names = [quoted(given.replace("\0", "")), ".".join(quoted(part) for part in parts)]
        found = engine.session.rows(
            "SELECT c.oid::regclass::text, c.relkind::text, c.relhassubclass "
            "FROM unnest(%s::text[]) WITH ORDINALITY AS n (name, i) "
            "JOIN pg_class AS c ON c.oid = to_regclass(n.name) ORDER BY n.i LIMIT 1",
            names,
            label=given,
        )
        if not found:
            raise self._unknown(engine)
        [(relation, kind, has_parts)] = found
        self.stored = kind in STORED and not has_parts
        super().__init__(engine, relation)

    def _unknown(self, engine: Postgres) -> DataError:
        there = engine.session.rows(
            "SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
            "WHERE relkind IN ('r', 'v', 'm', 'p', 'f') AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"
        )
        close = did_you_mean(self.label, [name for (name,) in there])
        return DataError(
            f"There is no table '{self.label}' in {engine.session.place}, or you do not have permission to see "
            f"it.{close} If it is not in your search path, write schema.table."
        )


class CopiedTable(PgTable):
    """A file or a frame, copied into a temporary table to be joined."""

    stored = True

    def __init__(self, engine: Postgres, table: Table) -> None:
        self.label = table.label
        schema = table.sample(0).schema
        plain = [f.name for f in schema if table.columns[f.name] != "nested" and has_text(f.type)]
        self._check_names(plain)
        relation = engine.next_name("copied")
        chosen = (batch.select(plain) for batch in table.batches())
        with progress.step(f"Copying {table.label}"):
            engine.making.make(relation, chosen, pa.schema([schema.field(name) for name in plain]))
        super().__init__(engine, relation)
        self.columns = {name: self.columns.get(name, "nested") for name in table.columns}

    def _check_names(self, names: Sequence[str]) -> None:
        long = [name for name in names if len(name.encode()) > LONGEST_NAME]
        if long:
            raise DataError(
                f"The column '{long[0]}' of '{self.label}' has a name of more than {LONGEST_NAME} bytes, which "
                "the database would truncate. Rename it, or leave it out."
            )

    def _stream(self, statement: str) -> Iterator[pa.RecordBatch]:
        """No other session sees a temporary table."""
        yield from self._run(statement).to_batches()


def visits_in_order(placed: str, place: str, columns: Mapping[str, str], person: str, part: tuple[int, int]) -> str:
    """Distinct combinations of columns and person, with two hashes of the person, how many records (`n`) each has, in the
    order of their first records."""
    cleaned = "".join(f"{DIALECT.clean(name, kind)} AS c{i}, " for i, (name, kind) in enumerate(columns.items()))
    who = as_text(DIALECT.name(person)).expression
    of_part = f" WHERE ({_hash(who, 0)} & {2**63 - 1}) % {part[1]} = {part[0]}" if part[1] > 1 else ""
    by = ", ".join(str(i + 1) for i in range(len(columns) + 1))
    grouped = (
        f"SELECT {cleaned}{who} AS who, count(*) AS n, min({place}) AS first_at FROM {placed}{of_part} GROUP BY {by}"
    )
    listed = "".join(f"c{i}, " for i in range(len(columns)))
    return f"SELECT {listed}{_hash('who', 0)} AS h0, {_hash('who', 1)} AS h1, n FROM ({grouped}) AS v ORDER BY first_at"


def _hash(expression: str, seed: int) -> str:
    return f"COALESCE(hashtextextended({expression}, {seed}), {seed})"

"""The engines that the contract is tested on. A case loads an Arrow table into its engine, and says how a study names it."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.contract.spark_case import ConnectCase, SparkCase

HEAVY = pytest.mark.heavy
NUMBERS = itertools.count(1)


class DuckCase:
    """Parquet files; what all others are compared with."""

    name = "duckdb"

    def __init__(self, folder):
        self._folder = folder

    def load(self, table, name="rows"):
        """What `Study.of` takes as its data, and `release` as a population; the rows stay in their order."""
        file = self._folder / f"{name}{next(NUMBERS)}.parquet"
        pq.write_table(table, file)
        return str(file)

    def described(self, source):
        """The same as a study file names it."""
        return source


class PostgresCase:
    """Tables in a schema of a PostgreSQL server."""

    name = "postgres"

    def __init__(self, postgres):
        import psycopg

        self.url = postgres.url()
        self._connection = psycopg.connect(self.url, autocommit=True)
        self._connection.execute("CREATE SCHEMA IF NOT EXISTS contract")

    def load(self, table, name="rows"):
        from veilmark.engines.sources import PostgresTable

        target = f"contract.{name}{next(NUMBERS)}"
        quoted = {c: '"' + c.replace('"', '""') + '"' for c in table.column_names}
        columns = ", ".join(f"{quoted[f.name]} {_postgres_type(f.type)}" for f in table.schema)
        self._connection.execute(f"CREATE TABLE {target} ({columns})")
        with self._connection.cursor().copy(f"COPY {target} FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)
        return PostgresTable(self.url, target)

    def described(self, source):
        return {"engine": "postgres", "url": source.url, "table": source.table}

    def close(self):
        self._connection.execute("DROP SCHEMA contract CASCADE")
        self._connection.close()


def _postgres_type(kind):
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    return {
        pa.int8(): "smallint",
        pa.int16(): "smallint",
        pa.int32(): "integer",
        pa.int64(): "bigint",
        pa.float32(): "real",
        pa.float64(): "double precision",
        pa.bool_(): "boolean",
        pa.date32(): "date",
    }.get(kind, "text")


@pytest.fixture(scope="session")
def fast_folder():
    """A folder in memory where there is one."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="veilmark-", dir=memory if os.access(memory, os.W_OK) else None))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def duck(fast_folder):
    """The reference."""
    return DuckCase(fast_folder)


@pytest.fixture(scope="session", params=["duckdb", "postgres", "spark", pytest.param("connect", marks=HEAVY)])
def case(request, fast_folder):
    """Each engine in turn; `connect` is Spark on a server."""
    if request.param == "duckdb":
        yield DuckCase(fast_folder)
    elif request.param == "spark":
        request.getfixturevalue("one_spark")
        yield SparkCase(fast_folder)
    else:
        postgres = request.param == "postgres"
        made = PostgresCase(request.getfixturevalue("postgres")) if postgres else ConnectCase(fast_folder)
        yield made
        made.close()

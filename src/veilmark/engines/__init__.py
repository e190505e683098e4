"""Engines: they read and write rows. DuckDB is embedded; Spark and PostgreSQL are where the data are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veilmark.engines.sources import PostgresTable, SparkFiles, is_spark_frame

if TYPE_CHECKING:
    from veilmark.engines.base import Engine


def engine_for(source: Any, threads: int | None = None, memory: str | None = None) -> Engine:
    """The engine that reads a study's source."""
    if isinstance(source, PostgresTable):
        from veilmark.engines.postgres import Postgres

        return Postgres(source, threads, memory)
    if isinstance(source, SparkFiles) or is_spark_frame(source):
        from veilmark.engines.spark import Spark

        return Spark(source, threads, memory)
    from veilmark.engines.duckdb import DuckDB

    return DuckDB(threads, memory)

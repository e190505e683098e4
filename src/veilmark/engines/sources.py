"""Sources that are no files on this machine: a table in PostgreSQL, files or a table in Spark."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from veilmark.errors import StudyError


@dataclass(frozen=True)
class PostgresTable:
    """A table of a PostgreSQL database; `schema.table` where it is in a schema of its own."""

    url: str = field(repr=False)
    table: str

    def __str__(self) -> str:
        return self.table


@dataclass(frozen=True)
class SparkFiles:
    """Files that Spark reads, or a table of its catalog. `remote` is a Spark Connect address, `master` a cluster's; without
    either, Spark runs on this machine. `most_classes` is how many classes the driver will hold."""

    path: str | None = None
    table: str | None = None
    format: str | None = None
    remote: str | None = field(default=None, repr=False)
    master: str | None = None
    most_classes: int | None = None

    def __str__(self) -> str:
        return self.path or self.table or "the Spark table"


def is_spark_frame(data: Any) -> bool:
    """Whether this is a DataFrame of Spark, or of Spark Connect."""
    return type(data).__name__ == "DataFrame" and type(data).__module__.startswith("pyspark.sql")


def from_environment(text: str) -> str:
    """A setting, or `env:NAME` for the environment variable of that name, so that no password stands in a study."""
    if not text.startswith("env:"):
        return text
    name = text.removeprefix("env:")
    if not os.environ.get(name):
        raise StudyError(f"The study takes its URL from the environment variable {name}, but it is not set. Set it.")
    return os.environ[name]

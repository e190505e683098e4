"""Spark on this machine: one session for all tests, which engines find and leave open."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from veilmark.engines.sources import SparkFiles
from veilmark.engines.spark_session import close_session, open_session

NUMBERS = itertools.count(1)
FOR_SMALL_TABLES = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class SparkCase:
    """Parquet files that Spark reads."""

    name = "spark"

    def __init__(self, folder: Path):
        self._folder = folder / "spark"
        self._folder.mkdir(exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            self._session = open_session(SparkFiles("none"), 2, "1GB", self._folder)
        for name, value in FOR_SMALL_TABLES.items():
            self._session.spark.conf.set(name, value)

    def load(self, table, name="rows"):
        file = self._folder / f"{name}{next(NUMBERS)}.parquet"
        pq.write_table(table, file)
        return SparkFiles(str(file))

    def described(self, source):
        return {"engine": "spark", "path": source.path}

    def close(self):
        close_session(self._session)

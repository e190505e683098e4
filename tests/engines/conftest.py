"""One Spark for all tests, which engines find and leave open."""

from __future__ import annotations

import pytest

from engines.contract.spark_case import FOR_SMALL_TABLES, QUICK_JAVA
from veilmark.engines.sources import SparkFiles
from veilmark.engines.spark_session import close_session, open_session

PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.fixture(scope="session")
def one_spark(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", QUICK_JAVA)
        opened = open_session(SparkFiles("none"), 2, "1GB", tmp_path_factory.mktemp("spark"))
    for name, value in FOR_SMALL_TABLES.items():
        opened.spark.conf.set(name, value)
    yield opened
    close_session(opened)


@pytest.fixture(scope="module")
def session(one_spark):
    """With two partitions, so that rows come from more than one."""
    before = one_spark.spark.conf.get(PARTITIONS)
    one_spark.spark.conf.set(PARTITIONS, "2")
    yield one_spark
    one_spark.spark.conf.set(PARTITIONS, before)

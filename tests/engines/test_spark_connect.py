"""Spark on a server, by Spark Connect: the same numbers, Ctrl-C, and a server that is lost. `make test-heavy` runs the whole
contract on one."""

from __future__ import annotations

import datetime as dt
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.contract.conftest import DuckCase
from engines.contract.helpers import opened, plain, read_rows, study_of
from engines.contract.spark_case import ConnectCase
from engines.contract.test_contract_release import TOWN, released, typed
from veilmark.engines import spark_session
from veilmark.engines.spark import Spark
from veilmark.errors import VeilmarkError
from veilmark.veil.ola import Ola

pytestmark = pytest.mark.heavy  # a server to start, and one to lose

ROLES = {
    "zip": {"role": "quasi", "hierarchy": {"mask": 3}},
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
    "ill": "sensitive",
}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    made = ConnectCase(tmp_path_factory.mktemp("server"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def duck(tmp_path_factory):
    return DuckCase(tmp_path_factory.mktemp("files"))


def people(rows=400):
    rng = np.random.default_rng(1)
    ages = pa.array(rng.integers(18, 60, rows), mask=rng.random(rows) < 0.05)
    zips = [f"{z:03}" for z in rng.integers(0, 60, rows)]
    return pa.table({"zip": zips, "age": ages, "ill": rng.choice(list("abcd"), rows)})


def anonymized(source, path):
    made = study_of(source, ROLES).anonymize(Ola(k=3, suppression=0.02), path)
    return plain(made), read_rows(path), plain(study_of(source, ROLES).measure())


def test_a_table_on_a_server(case, duck, tmp_path):
    sources = [of.load(people()) for of in (case, duck)]
    found, expected = (anonymized(source, tmp_path / f"{i}.parquet") for i, source in enumerate(sources))
    assert found == expected


def test_copies_made_on_a_server(case, duck, tmp_path):
    found, expected = (
        released(of.load(typed(TOWN.source)), of.load(typed(TOWN.population)), Ola(0.2), "parquet", tmp_path, number)
        for number, of in enumerate((case, duck))
    )
    assert found == expected


def test_a_frame_means_what_it_means_in_its_own_session(case, tmp_path):
    """Days and hours of New York, though veilmark works in UTC."""
    from pyspark.sql.connect.session import SparkSession

    with spark_session.quiet():
        spark = SparkSession.builder.remote(case.load(people()).remote).create()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    times = pa.array([dt.datetime(2024, 1, 1, hour, tzinfo=dt.UTC) for hour in (3, 4, 5, 6)])
    pq.write_table(pa.table({"z": times}), tmp_path / "z.parquet")
    frame = spark.read.parquet(str(tmp_path / "z.parquet")).selectExpr("hour(z) AS hour")
    found = opened(study_of(frame, {"hour": "quasi"}), lambda table: table.domain("hour"))
    assert found.values.to_pylist() == [0, 1, 22, 23]
    assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    spark.stop()


def test_interrupting_ends_what_the_server_does(case, ctrl_c):
    with Spark(case.load(people())) as engine:
        threading.Timer(3, ctrl_c).start()
        with pytest.raises(KeyboardInterrupt):
            engine.run("SELECT sum(id % 7) FROM range(1000000000000)", "numbers")
        assert engine.run("SELECT 1 AS one", "numbers")["one"].to_pylist() == [1]


@pytest.mark.parametrize("step", ["view", "write_parts"])
def test_a_server_that_is_lost_half_way(tmp_path, monkeypatch, step):
    """Nothing is published, and what is said shows neither rows nor the address."""
    (tmp_path / "server").mkdir()
    case = ConnectCase(tmp_path / "server")
    study = study_of(case.load(people()), ROLES)
    done = getattr(Spark, step)

    def lose(*given):
        case.close()
        return done(*given)

    monkeypatch.setattr(Spark, step, lose)
    monkeypatch.setattr(spark_session, "RETRIES", 2)
    (tmp_path / "out").mkdir()
    with pytest.raises(VeilmarkError, match="connection to Spark was lost") as caught:
        study.anonymize(Ola(k=3, suppression=0.02), tmp_path / "out" / "release.parquet")
    assert "sc://" not in str(caught.value)
    assert not list((tmp_path / "out").iterdir())

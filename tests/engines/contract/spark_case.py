"""Spark on this machine, and Spark on a server."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from veilmark.engines.sources import SparkFiles
from veilmark.engines.spark_session import java_of

NUMBERS = itertools.count(1)
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
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

    def load(self, table, name="rows"):
        file = self._folder / f"{name}{next(NUMBERS)}.parquet"
        pq.write_table(table, file)
        return SparkFiles(str(file))

    def described(self, source):
        return {"engine": "spark", "path": source.path}


class ConnectCase:
    """Parquet files that a Spark Connect server reads. Every engine has a session of its own there."""

    name = "connect"

    def __init__(self, folder: Path):
        self._folder = folder / "connect"
        self._folder.mkdir(exist_ok=True)
        self._server = ConnectServer(self._folder)

    def load(self, table, name="rows"):
        file = self._folder / f"{name}{next(NUMBERS)}.parquet"
        pq.write_table(table, file)
        return SparkFiles(str(file), remote=self._server.address)

    def described(self, source):
        return {"engine": "spark", "path": source.path, "remote": source.remote}

    def close(self):
        self._server.stop()


class ConnectServer:
    """A Spark Connect server in a process of its own, on this machine only."""

    def __init__(self, folder: Path):
        pytest.importorskip("grpc", reason="pip install 'pyspark[connect]'")
        home = Path(importlib.util.find_spec("pyspark").origin).parent
        if not list(home.glob("jars/spark-connect_*.jar")):
            pytest.skip("this Spark brings no Connect server")
        port = free_port()
        self.address = f"sc://127.0.0.1:{port}"
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": port,
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": folder / "warehouse",
            "spark.sql.session.timeZone": "Asia/Tokyo",
            "spark.ui.enabled": "false",
            **FOR_SMALL_TABLES,
        }
        listed = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        command = [
            home / "bin/spark-submit",
            "--class",
            SERVER,
            "--master",
            "local[2]",
            "--driver-memory",
            "1g",
            *listed,
        ]
        with pytest.MonkeyPatch.context() as patch, java_of(folder), (folder / "log").open("w") as log:
            patch.setenv("JDK_JAVA_OPTIONS", QUICK_JAVA)
            self._process = subprocess.Popen(
                [*command, "spark-internal"], stdout=log, stderr=log, start_new_session=True
            )
        self._wait(port, folder / "log")

    def _wait(self, port: int, log: Path):
        end = time.monotonic() + 120
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                pytest.fail(f"The server did not start: {log.read_text()[-2_000:]}")
            time.sleep(0.2)

    def stop(self):
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]

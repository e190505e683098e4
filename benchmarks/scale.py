"""Time and memory against rows, on DuckDB with 2 GiB and on Spark on this machine: class table, OLA, and a written file.

python -m benchmarks.scale --rows 1,3,10,30 --engines duckdb,spark      (millions of rows)
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data import HIERARCHIES, QUASI, voters

JOBS = ("class table", "ola", "anonymize")
MEMORY = "2GB"


@dataclass(frozen=True)
class Scale:
    """One job of one engine: seconds and peak memory at several sizes, and the slope of the seconds' logarithms."""

    engine: str
    job: str
    rows: list[int]
    seconds: list[float]
    mebibytes: list[float]

    @property
    def exponent(self) -> float:
        return float(np.polyfit(np.log(self.rows), np.log(self.seconds), 1)[0]) if len(self.rows) > 1 else float("nan")

    def __str__(self) -> str:
        points = ", ".join(
            f"{n / 1e6:g} M: {s:.1f} s {m:,.0f} MiB"
            for n, s, m in zip(self.rows, self.seconds, self.mebibytes, strict=True)
        )
        return f"{self.engine:7} {self.job:12} exponent {self.exponent:5.2f}  ({points})"


def run(rows: int, engines: tuple[str, ...] = ("duckdb", "spark"), sizes: list[int] | None = None) -> list[Scale]:
    """Every engine and job at sizes up to `rows`."""
    sizes = sizes or [n * 1_000_000 for n in (1, 3, 10, 30, 100) if n * 1_000_000 <= rows]
    files = {n: str(voters(n)) for n in sizes}
    found = []
    for engine in engines:
        measured = {n: _alone(engine, file) for n, file in files.items()}
        for job in JOBS:
            seconds, mebibytes = zip(*(measured[n][job] for n in sizes), strict=True)
            found.append(Scale(engine, job, sizes, list(seconds), list(mebibytes)))
    return found


def _alone(engine: str, file: str) -> dict[str, tuple[float, float]]:
    """All jobs in a process of their own."""
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (engine, file))


def _measured(engine: str, file: str) -> dict[str, tuple[float, float]]:
    """Seconds and peak memory of each job; Spark is started before, and what it reads is warm for both."""
    from veilmark.engines.sources import SparkFiles
    from veilmark.study.spec import StudySpec
    from veilmark.study.study import Settings, Study

    listed = {c: {"role": "quasi", "hierarchy": HIERARCHIES.get(c)} for c in QUASI}
    spec = StudySpec.model_validate({"version": 1, "attributes": {**listed, "condition": {"role": "sensitive"}}})
    spark = engine == "spark"
    source = SparkFiles(file) if spark else file
    study = Study(spec, data=source, settings=Settings(2, None if spark else MEMORY))
    with _spark() if spark else _nothing():
        return {job: _timed(lambda job=job: work(study, job)) for job in JOBS}


def _nothing():
    from contextlib import nullcontext

    return nullcontext()


def _spark():
    """A session that the jobs find, with the memory that DuckDB has."""
    from contextlib import contextmanager

    from veilmark.engines.sources import SparkFiles
    from veilmark.engines.spark_session import close_session, open_session

    @contextmanager
    def opened():
        folder = Path(tempfile.mkdtemp())
        session = open_session(SparkFiles("none"), 2, MEMORY, folder)
        session.spark.range(10).count()
        try:
            yield
        finally:
            close_session(session)
            shutil.rmtree(folder, ignore_errors=True)

    return opened()


def work(study, job: str) -> None:
    """The class table; the class table and the search; all that `anonymize` does, with the file written and measured."""
    from veilmark.privacy.models import KAnonymity
    from veilmark.study.opening import class_table, engine_of, open_source
    from veilmark.veil.ola import Ola
    from veilmark.veil.planning import planned

    method = Ola(k=10, suppression=0.01)
    if job == "anonymize":
        with tempfile.TemporaryDirectory() as folder:
            study.anonymize(method, Path(folder) / "release.parquet")
        return
    with engine_of(study) as engine:
        classes = class_table(open_source(engine, study), study)
        if job == "ola":
            planned(engine, study, classes, [KAnonymity(10)], method, None)


def _timed(job: Callable[[], None]) -> tuple[float, float]:
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            peak[0] = max(peak[0], _memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    try:
        job()
    finally:
        seconds = time.perf_counter() - start
        done.set()
        watcher.join()
    return seconds, peak[0]


def _memory() -> float:
    """What this process and those that it started hold, in MiB."""
    wanted, total = {os.getpid()}, 0
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda p: int(p.name)):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if int(folder.name) in wanted or parent in wanted:
                wanted.add(int(folder.name))
                total += int((folder / "statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1,3,10,30", help="millions of rows")
    parser.add_argument("--engines", default="duckdb,spark")
    options = parser.parse_args()
    sizes = [int(float(n) * 1_000_000) for n in options.rows.split(",")]
    for result in run(max(sizes), tuple(options.engines.split(",")), sizes):
        print(result, flush=True)


if __name__ == "__main__":
    main()

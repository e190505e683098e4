"""Watching a log of query results on a voters' roll: 100,000 queries of 200 users, up to 10 records each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds

from benchmarks.data import QUASI, voters
from benchmarks.harness import alone

KEY = "voter_id"
COLUMNS = [*QUASI, "condition", "severity"]
QUERIES = 100_000
USERS = 200
MOST = 10
GOAL = 10_000


@dataclass(frozen=True)
class Throughput:
    """Queries a second, from a line of text to its alerts, and the process's peak memory."""

    name: str
    queries: int
    seconds: float
    mebibytes: float

    def __str__(self) -> str:
        rate = self.queries / self.seconds
        return f"{self.name:44} {rate:9,.0f} queries a second  (goal {GOAL:,})   peak {self.mebibytes:6,.0f} MiB"


def log_of(path: Path, by: str) -> Path:
    """A log of the source by keys or by rows, made once."""
    target = path.with_suffix(f".{by}.jsonl")
    if not target.exists():
        rng = np.random.default_rng(1)
        sizes = rng.integers(1, MOST + 1, QUERIES)
        source = ds.dataset(path)
        chosen = rng.integers(0, source.count_rows(), sizes.sum())
        returned = source.to_table(columns=[KEY, *COLUMNS]).take(chosen).to_pylist()
        users = rng.integers(0, USERS, QUERIES)
        ends = np.cumsum(sizes)
        with target.open("w") as file:
            for i, (end, size, user) in enumerate(zip(ends, sizes, users, strict=True)):
                file.write(_line(f"user {user}", i, returned[end - size : end], by))
    return target


def _line(user: str, i: int, records: list[dict[str, object]], by: str) -> str:
    time = f"2026-01-02T{i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02}"
    rows = [{name: r[name] for name in COLUMNS} for r in records]
    result = {"keys": [r[KEY] for r in records]} if by == "keys" else {"rows": rows}
    return json.dumps({"user": user, "time": time, **result}) + "\n"


def watch(path: str, log: str, key: str | None) -> Callable[[], object]:
    from veilmark.services.monitor import Monitor, read_log
    from veilmark.study.study import Settings, Study

    sensitive = {name: {"role": "sensitive", "weights": {"default": 0.1}} for name in COLUMNS[len(QUASI) :]}
    study = Study.of(path, {**dict.fromkeys(QUASI, "quasi"), **sensitive}, settings=Settings(threads=2))
    monitor = Monitor(study, key)

    def read() -> None:
        with open(log, "rb") as stream:
            read_log(monitor, stream)

    return read


def run(rows: int) -> list[Throughput]:
    rows = min(rows, 1_000_000)
    path = voters(rows)
    results = []
    for by, key in (("keys", KEY), ("rows", None)):
        log = log_of(path, by)
        run = alone(watch, str(path), str(log), key)
        name = f"monitor {rows:,} records, results by {by}"
        results.append(Throughput(name, QUERIES, run.seconds, run.mebibytes))
    return results

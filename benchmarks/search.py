"""OLA's search on Adult and on 130,000 voters, beside ARX 3.9.2's as measured on a machine of the same kind.

ARX's figures are of its search alone, warmed up, by loss metric; a cold process adds 2 to 4 seconds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.data import ADULT, HIERARCHIES, QUASI, voters

ARX = {
    ("Adult, 8", 0.02): "0.48-0.86",
    ("Adult, 8", 0.05): "0.61-0.80",
    ("Adult, 9", 0.02): "0.93-1.32",
    ("Adult, 9", 0.05): "1.38-1.98",
}
ARX_VOTERS = {"precision": "0.04", "dm": "0.09", "lm": "0.11", "entropy": "0.16"}
REPEAT = 3


@dataclass(frozen=True)
class Searched:
    """The median time of one search, the nodes it tried, and ARX's time."""

    name: str
    metric: str
    suppression: float
    seconds: float
    nodes: int
    lattice: int
    arx: str

    def __str__(self) -> str:
        tried = f"{self.nodes:,} of {self.lattice:,} nodes tried"
        return (
            f"{self.name:14} {self.suppression:4.0%} {self.metric:10} search {self.seconds:6.3f} s   {tried:32} "
            f"ARX {self.arx} s"
        )


def run(rows: int) -> list[Searched]:
    found = [s for count in (8, 9) for s in _adult(count)] if ADULT.exists() else []
    return [*found, *_voters(max(rows // 100, 10_000))]


def _adult(count: int) -> list[Searched]:
    from veilmark.engines.duckdb import DuckDB

    with DuckDB(threads=2) as engine:
        table = engine.open(next(ADULT.glob("*.csv")))
        names = list(table.columns)[:count]
        specs = {n: {"file": str(next(ADULT.rglob(f"*hierarchy_{n}.csv")))} for n in names}
        return _search(f"Adult, {count}", table, specs, (0.02, 0.05))


def _voters(rows: int) -> list[Searched]:
    from veilmark.engines.duckdb import DuckDB

    with DuckDB(threads=2) as engine:
        table = engine.open(voters(rows))
        return _search(f"{rows:,} voters", table, {n: HIERARCHIES.get(n) for n in QUASI}, (0.05,))


def _search(
    name: str, table: object, specs: dict[str, dict[str, object] | None], limits: Sequence[float]
) -> list[Searched]:
    from veilmark.hierarchy import parse_spec, resolve
    from veilmark.privacy.models import KAnonymity
    from veilmark.tables.classes import ClassTable
    from veilmark.utility.loss import METRICS
    from veilmark.veil.ola import Ola, search

    classes = ClassTable.build(table, list(specs))  # type: ignore[arg-type]
    read = [parse_spec(spec) if spec else None for spec in specs.values()]
    levels = [resolve(s, d, c) for s, d, c in zip(read, classes.domains, classes.columns, strict=True)]
    results = []
    for limit in limits:
        for metric in METRICS:
            times = []
            for _ in range(REPEAT):
                start = time.perf_counter()
                found = search(classes, levels, [KAnonymity(5)], Ola(suppression=limit, loss=metric))
                times.append(time.perf_counter() - start)
            arx = ARX.get((name, limit)) or ARX_VOTERS.get(metric, "-")
            nodes, lattice = len(found.explored), found.lattice_size
            results.append(Searched(name, metric, limit, statistics.median(times), nodes, lattice, arx))
    return results

"""Mondrian's time against rows and against quasi-identifiers: the growth exponent, and a chart in build/bench."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.data import ADULT, FOLDER, HIERARCHIES, QUASI, voters


@dataclass(frozen=True)
class Growth:
    """Times at several sizes, and the slope of their logarithms."""

    name: str
    sizes: list[int]
    seconds: list[float]

    @property
    def exponent(self) -> float:
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])

    def __str__(self) -> str:
        points = ", ".join(f"{size:,}: {seconds:.2f} s" for size, seconds in zip(self.sizes, self.seconds, strict=True))
        return f"{self.name}: exponent {self.exponent:.2f} ({points})"


def run(rows: int) -> list[Growth]:
    found = [_by_rows([rows // 100, rows // 10, rows])]
    if ADULT.exists():
        found.append(_by_attributes())
    for growth in found:
        _draw(growth)
    return found


def _by_rows(sizes: list[int]) -> Growth:
    from veilmark.engines.duckdb import DuckDB

    times = []
    for size in sizes:
        path = voters(size)
        start = time.perf_counter()
        with DuckDB(threads=2) as engine:
            _partition(engine.open(path), {n: HIERARCHIES.get(n) for n in QUASI}, 10)
        times.append(time.perf_counter() - start)
    return Growth("Mondrian against rows (4 quasi-identifiers, k=10)", sizes, times)


def _by_attributes() -> Growth:
    from veilmark.engines.duckdb import DuckDB

    counts, times = list(range(2, 10)), []
    with DuckDB(threads=2) as engine:
        table = engine.open(next(ADULT.glob("*.csv")))
        for count in counts:
            names = list(table.columns)[:count]
            specs = {n: {"file": str(next(ADULT.rglob(f"*hierarchy_{n}.csv")))} for n in names}
            start = time.perf_counter()
            _partition(table, specs, 5)
            times.append(time.perf_counter() - start)
    return Growth("Mondrian against quasi-identifiers (Adult, k=5)", counts, times)


def _partition(table: Any, specs: dict[str, Any], k: int) -> None:
    from veilmark.hierarchy import IntervalSpec, parse_spec, resolve
    from veilmark.privacy.models import KAnonymity
    from veilmark.tables.classes import ClassTable
    from veilmark.veil import mondrian
    from veilmark.veil.mondrian import Mondrian

    classes = ClassTable.build(table, list(specs))
    read = [parse_spec(spec) if spec else None for spec in specs.values()]
    levels = [resolve(s, d, c) for s, d, c in zip(read, classes.domains, classes.columns, strict=True)]
    numeric = [
        d.numbers is not None and (s is None or isinstance(s, IntervalSpec))
        for s, d in zip(read, classes.domains, strict=True)
    ]
    mondrian.partition(classes, levels, numeric, [KAnonymity(k)], Mondrian())


def _draw(growth: Growth) -> None:
    import altair as alt

    values = [{"size": n, "seconds": s} for n, s in zip(growth.sizes, growth.seconds, strict=True)]
    chart = alt.Chart(alt.Data(values=values), title=f"{growth.name}, exponent {growth.exponent:.2f}").mark_line(
        point=True
    )
    scale = alt.Scale(type="log")
    drawn = chart.encode(x=alt.X("size:Q", scale=scale), y=alt.Y("seconds:Q", scale=scale))
    FOLDER.mkdir(parents=True, exist_ok=True)
    drawn.save(FOLDER / f"growth-{growth.name.split()[2]}.svg")

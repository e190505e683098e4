"""Class tables and `measure` against DuckDB's bare GROUP BY over the same columns, two threads each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.data import QUASI, voters
from benchmarks.harness import Comparison, compare


def bare_group_by(path: str, columns: Sequence[str]) -> Callable[[], object]:
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    connection.execute("SET enable_progress_bar=false")
    listed = ", ".join(columns)
    statement = f"SELECT count(*) FROM (SELECT {listed}, count(*) FROM '{path}' GROUP BY {listed})"
    return lambda: connection.execute(statement).fetchall()


def class_table(path: str, columns: Sequence[str]) -> Callable[[], object]:
    from veilmark.engines.duckdb import DuckDB
    from veilmark.tables.classes import ClassTable

    return lambda: ClassTable.build(DuckDB(threads=2).open(path), columns)


def measure(path: str, columns: Sequence[str]) -> Callable[[], object]:
    import scipy.optimize
    import scipy.stats  # noqa: F401

    from veilmark.study.study import Settings, Study
    from veilmark.workbench.measure import measure as run_measure

    *quasi, sensitive = columns
    roles = {**dict.fromkeys(quasi, "quasi"), sensitive: "sensitive"}
    study = Study.of(path, roles, settings=Settings(threads=2))
    return lambda: run_measure(study)


def run(rows: int) -> list[Comparison]:
    path = str(voters(rows))
    five = [*QUASI, "condition"]
    return [
        compare(f"class table of {rows:,} rows, 4 columns", bare_group_by, class_table, path, QUASI, limit=1.6),
        compare(f"measure {rows:,} rows, 4 + 1 columns", bare_group_by, measure, path, five, limit=2.5),
    ]

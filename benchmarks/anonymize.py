"""Anonymizing 13 million voters, file to file, against one bare group-by and one straight copy of the same columns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.data import FOLDER, HIERARCHIES, QUASI, voters
from benchmarks.harness import Comparison, compare


def four_columns(path: Path, suffix: str) -> Path:
    """The voters' quasi-identifiers alone, as Parquet or CSV."""
    import duckdb

    target = FOLDER / f"{path.stem}-quasi{suffix}"
    if not target.exists():
        connection = duckdb.connect()
        connection.execute("SET enable_progress_bar=false")
        connection.execute(f"COPY (SELECT {', '.join(QUASI)} FROM '{path}') TO '{target}'")
    return target


def group_and_copy(path: str) -> Callable[[], object]:
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    connection.execute("SET enable_progress_bar=false")
    listed = ", ".join(QUASI)
    target = Path(tempfile.mkdtemp()) / f"copy{Path(path).suffix}"
    statements = [
        f"SELECT count(*) FROM (SELECT {listed}, count(*) FROM '{path}' GROUP BY {listed})",
        f"COPY (SELECT {listed} FROM '{path}') TO '{target}'",
    ]

    def run() -> None:
        for statement in statements:
            connection.execute(statement).fetchall()
        target.unlink()

    return run


def by_ola(path: str) -> Callable[[], object]:
    from veilmark.veil.ola import Ola

    return _anonymize(path, 5, Ola(suppression=0.05))


def by_mondrian(path: str) -> Callable[[], object]:
    from veilmark.veil.mondrian import Mondrian

    return _anonymize(path, 10, Mondrian())


def _anonymize(path: str, k: int, method: object) -> Callable[[], object]:
    from veilmark.privacy.models import KAnonymity
    from veilmark.study.study import Settings, Study
    from veilmark.workbench.anonymize import anonymize

    roles = {name: {"role": "quasi", "hierarchy": HIERARCHIES.get(name)} for name in QUASI}
    study = Study.of(path, roles, settings=Settings(threads=2))
    target = Path(tempfile.mkdtemp()) / f"release{Path(path).suffix}"

    def run() -> None:
        anonymize(study, [KAnonymity(k)], target, method)  # type: ignore[arg-type]
        target.unlink()

    return run


def run(rows: int) -> list[Comparison]:
    parquet, csv = (str(four_columns(voters(rows), suffix)) for suffix in (".parquet", ".csv"))
    return [
        compare(f"OLA {rows:,} rows, Parquet to Parquet", group_and_copy, by_ola, parquet, limit=3, repeat=3),
        compare(f"OLA {rows:,} rows, CSV to CSV", group_and_copy, by_ola, csv, limit=1.5, repeat=3),
        compare(f"Mondrian {rows:,} rows, Parquet to Parquet", group_and_copy, by_mondrian, parquet, repeat=3),
    ]

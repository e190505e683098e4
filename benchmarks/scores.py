"""Scoring a whole source and a 1 % sample against DuckDB's bare GROUP BY over the same six columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.data import QUASI, voters
from benchmarks.foundation import bare_group_by
from benchmarks.harness import Comparison, compare


def sample_of(path: Path) -> Path:
    """Every hundredth record."""
    target = path.with_suffix(".sample.parquet")
    if not target.exists():
        table = ds.dataset(path).to_table()
        pq.write_table(table.take(list(range(0, len(table), 100))), target)
    return target


def score_both(path: str, columns: Sequence[str]) -> Callable[[], object]:
    from veilmark import workbench
    from veilmark.study import Settings, Study

    *quasi, condition, severity = columns
    weights = {"default": 0.1}
    sensitive = {name: {"role": "sensitive", "weights": weights} for name in (condition, severity)}
    study = Study.of(path, {**dict.fromkeys(quasi, "quasi"), **sensitive}, settings=Settings(threads=2))
    sample = str(sample_of(Path(path)))

    def both() -> None:
        with workbench.engine_of(study) as engine:
            table = workbench.open_source(engine, study)
            scorer = workbench.scorer_of(table, study)
            scorer.score()
            published = engine.open(sample)
            scorer.score(scorer.find(published.group(columns), "sample")[0])

    return both


def run(rows: int) -> list[Comparison]:
    path = voters(rows)
    sample_of(path)
    six = [*QUASI, "condition", "severity"]
    name = f"score {rows:,} rows and 1 %, 4 + 2 columns"
    return [compare(name, bare_group_by, score_both, str(path), six, limit=3)]

"""Scoring a whole source and a 1 % sample against DuckDB's bare GROUP BY over the same six columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.data import QUASI, voters
from benchmarks.foundation import bare_group_by
from benchmarks.harness import Comparison, compare

PYCANON_ROWS = 2_000


def sample_of(path: Path) -> Path:
    """Every hundredth record."""
    target = path.with_suffix(".sample.parquet")
    if not target.exists():
        table = ds.dataset(path).to_table()
        pq.write_table(table.take(list(range(0, len(table), 100))), target)
    return target


def score_both(path: str, columns: Sequence[str]) -> Callable[[], object]:
    from veilmark.study.opening import engine_of, open_source
    from veilmark.study.study import Settings, Study
    from veilmark.workbench.score import scorer_of

    *quasi, condition, severity = columns
    weights = {"default": 0.1}
    sensitive = {name: {"role": "sensitive", "weights": weights} for name in (condition, severity)}
    study = Study.of(path, {**dict.fromkeys(quasi, "quasi"), **sensitive}, settings=Settings(threads=2))
    sample = str(sample_of(Path(path)))

    def both() -> None:
        with engine_of(study) as engine:
            table = open_source(engine, study)
            scorer = scorer_of(table, study)
            scorer.score()
            published = engine.open(sample)
            scorer.score(scorer.find(published.group(columns), "sample")[0])

    return both


def pycanon_klt(path: str, columns: Sequence[str]) -> Callable[[], object]:
    """pyCANON's k, l and t of the same columns, on a size that it can still do."""
    import pyarrow.parquet as parquet
    from pycanon import anonymity

    frame = parquet.read_table(path, columns=list(columns)).to_pandas().head(PYCANON_ROWS).astype(str)
    *quasi, condition, severity = columns
    sensitive = [condition, severity]

    def measure() -> None:
        anonymity.k_anonymity(frame, quasi)
        anonymity.l_diversity(frame, quasi, sensitive)
        anonymity.t_closeness(frame, quasi, sensitive)

    return measure


def our_klt(path: str, columns: Sequence[str]) -> Callable[[], object]:
    """The same rows, measured by veilmark: k, l and t and all the rest."""
    import pyarrow.parquet as parquet
    import scipy.stats  # noqa: F401 - imports are not what is timed

    from veilmark.study.study import Settings, Study

    *quasi, condition, severity = columns
    roles = {**dict.fromkeys(quasi, "quasi"), condition: "sensitive", severity: "sensitive"}
    frame = parquet.read_table(path, columns=list(columns)).slice(0, PYCANON_ROWS)
    study = Study.of(frame, roles, settings=Settings(threads=2))
    return study.measure


def run(rows: int) -> list[Comparison]:
    path = voters(rows)
    sample_of(path)
    six = [*QUASI, "condition", "severity"]
    name = f"score {rows:,} rows and 1 %, 4 + 2 columns"
    peer = f"k, l, t of {PYCANON_ROWS:,} rows (floor: pyCANON)"
    return [
        compare(name, bare_group_by, score_both, str(path), six, limit=3),
        compare(peer, pycanon_klt, our_klt, str(path), six, repeat=1),
    ]

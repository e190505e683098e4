"""The voters' roll that the benchmarks read, with two sensitive columns; made once and kept in build/."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veilmark.sample import write_voters

FOLDER = Path("build/bench")
QUASI = ["zip", "gender", "yob", "race"]
HIERARCHIES = {"zip": {"mask": 5}, "yob": {"intervals": [2, 4, 8]}}
ADULT = Path("../shared/data/adult")
"""UCI Adult with ARX's hierarchies, where it lies beside the project."""


def voters(rows: int) -> Path:
    """Parquet with zip, gender, yob, race, condition (20 values) and severity (5 values)."""
    path = FOLDER / f"voters-{rows}.parquet"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        plain = FOLDER / "plain.parquet"
        write_voters(plain, rows, seed=1)
        _add_sensitive(plain, path)
        plain.unlink()
    return path


def _add_sensitive(source: Path, target: Path) -> None:
    rng = np.random.default_rng(1)
    file = pq.ParquetFile(source)
    writer = None
    for group in range(file.num_row_groups):
        table = file.read_row_group(group)
        for name, values in (("condition", 20), ("severity", 5)):
            table = table.append_column(name, _values(rng, len(table), name, values))
        writer = writer or pq.ParquetWriter(target, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def _values(rng: np.random.Generator, rows: int, name: str, count: int) -> pa.Array:
    weights = np.arange(count, 0, -1)
    codes = rng.choice(count, rows, p=weights / weights.sum()).astype(np.int32)
    return pa.DictionaryArray.from_arrays(codes, [f"{name} {i}" for i in range(count)])

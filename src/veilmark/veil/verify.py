"""Verify: a written release measured anew, by plain SQL on the file, sharing nothing with the code that made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

QUOTE = "'\"'"


@dataclass(frozen=True)
class Verified:
    """What the file itself says: its records and classes, the smallest class, and for each sensitive attribute the
    fewest values, the least entropy l and the largest equal-distance t and share of a class."""

    records: int
    classes: int
    k: int
    distinct: Mapping[str, int]
    entropy: Mapping[str, float]
    t: Mapping[str, float]
    alpha: Mapping[str, float]


def verify(path: Path, quasi: Sequence[str], sensitive: Sequence[str]) -> Verified:
    """Measure a CSV or Parquet file that veilmark wrote."""
    reader = f"read_parquet({_text(path)})"
    if path.suffix != ".parquet":
        reader = f"read_csv({_text(path)}, header=true, all_varchar=true, delim=',', quote={QUOTE}, escape={QUOTE})"
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar=false")
        connection.execute(f"CREATE TEMP VIEW written AS FROM {reader}")
        keys = ", ".join(_name(c) for c in quasi) or "1"
        sizes = f"SELECT count(*) AS n FROM written GROUP BY {keys}"
        rows = connection.execute(
            f"SELECT coalesce(sum(n), 0), count(*), coalesce(min(n), 0) FROM ({sizes})"
        ).fetchall()
        found = {name: connection.execute(_diversity(keys, _name(name))).fetchall()[0] for name in sensitive}
    distinct, entropy, t, alpha = ({name: values[i] for name, values in found.items()} for i in range(4))
    records, classes, k = (int(v) for v in rows[0])
    return Verified(records, classes, k, distinct, entropy, t, alpha)


def _diversity(keys: str, attribute: str) -> str:
    """Fewest values, least exp(entropy), largest equal distance, largest share, over all classes."""
    return f"""
        WITH cells AS (SELECT {keys}, {attribute} AS value_, count(*) AS n_ FROM written GROUP BY ALL),
        shares AS (SELECT *, n_ / sum(n_) OVER (PARTITION BY {keys}) AS p_,
                   sum(n_) OVER (PARTITION BY value_) / sum(n_) OVER () AS q_ FROM cells),
        classes AS (SELECT count(*) AS values_, exp(-sum(p_ * ln(p_))) AS entropy_,
                    (sum(abs(p_ - q_) - q_) + 1) / 2 AS t_, max(p_) AS alpha_ FROM shares GROUP BY {keys})
        SELECT min(values_), min(entropy_), max(t_), max(alpha_) FROM classes"""


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(path: Path) -> str:
    escaped = str(path).replace("[", "[[]") if "[" in str(path) else str(path)
    return "'" + escaped.replace("'", "''") + "'"

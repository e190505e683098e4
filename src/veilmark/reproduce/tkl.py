"""The tkl paper's worked example: Tables 1b, 1d, 2b and 2c beside ours, row by row."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from veilmark.reproduce.comparison import AGREES, DIFFERS, Reproduced, Row
from veilmark.study.study import Study

TITLE = "The tkl-Score for data-sharing misuseability (Eng and Stroulia)"
WEIGHTS = {"Migraine": 0.05472, "Flu": 0.05472, "Hypertension": 0.10944, "HIV": 0.21888}
"""Table 1c."""
COLUMNS = ("City", "Gender", "Diagnosis")
SCORES = ("tkl", "m", "l_severity")

SOURCES = {
    "1": """Calgary Female Flu
Calgary Female Migraine
Edmonton Male HIV
Edmonton Male Hypertension
Edmonton Female HIV
Edmonton Female Migraine""",
    "2": """Calgary Female HIV
Calgary Female Flu
Edmonton Male HIV
Edmonton Male Flu
Edmonton Female HIV
Edmonton Female HIV""",
}
"""Tables 1a and 2a; everybody is a lawyer."""

# Row by row: tkl, M and L-Severity, normalized; then the same raw, DF_t, DF_k, DF_l and the weight.
PRINTED = {
    "1": """0.1642 0.0417 0.0769   0.27736 0.02736 0.02736 0.50000 2 2 0.05472
0.1642 0.0417 0.0769   0.27736 0.02736 0.02736 0.50000 2 2 0.05472
0.2128 0.1667 0.3077   0.35944 0.10944 0.10944 0.50000 2 2 0.21888
0.1804 0.0833 0.1538   0.30472 0.05472 0.05472 0.50000 2 2 0.10944
0.1635 0.1667 0.3077   0.27611 0.10944 0.10944 0.33333 2 2 0.21888
0.1149 0.0417 0.0769   0.19403 0.02736 0.02736 0.33333 2 2 0.05472""",
    "2": """0.1126 0.1667 0.2222   0.19277 0.10944 0.10944 0.16667 2 2 0.21888
0.0647 0.0417 0.0556   0.11069 0.02736 0.02736 0.16667 2 2 0.05472
0.1126 0.1667 0.2222   0.19277 0.10944 0.10944 0.16667 2 2 0.21888
0.0647 0.0417 0.0556   0.11069 0.02736 0.02736 0.16667 2 2 0.05472
0.3227 0.1667 0.2222   0.55221 0.10944 0.10944 0.33333 2 1 0.21888
0.3227 0.1667 0.2222   0.55221 0.10944 0.10944 0.33333 2 1 0.21888""",
}


def run() -> Reproduced:
    """Score every record of the paper's two tables."""
    rows = [row for number in SOURCES for row in _tables(number)]
    notes = ["Every figure must come out to the last printed digit."]
    return Reproduced("tkl", TITLE, sorted(rows, key=lambda row: row.table), notes)


def _tables(number: str) -> Iterator[Row]:
    """The normalized scores (1b, 2b) and the raw ones with their factors (1d, 2c)."""
    study, table = _study(SOURCES[number])
    raw_table = {"1": "1d", "2": "2c"}[number]
    for i, line in enumerate(PRINTED[number].splitlines()):
        scored = study.score(table.slice(i, 1))
        worst = scored.worst[0]
        normalized = [f"{scored.scores[name].normalized:.4f}" for name in SCORES]
        raw = [f"{scored.scores[name].value:.5f}" for name in SCORES]
        factors = [f"{worst.df_t:.5f}", str(worst.df_k), str(worst.df_l), f"{sum(worst.weights.values()):.5f}"]
        printed = line.split()
        yield _row(f"{number}b", i, printed[:3], normalized)
        yield _row(raw_table, i, printed[3:], raw + factors)


def _study(lines: str) -> tuple[Study, pa.Table]:
    rows = [line.split() for line in lines.splitlines()]
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table({"Job": ["Lawyer"] * len(rows), **columns})
    weights = {value: WEIGHTS[value] for value in set(columns["Diagnosis"])}
    roles = {
        **dict.fromkeys(("Job", "City", "Gender"), "quasi"),
        "Diagnosis": {"role": "sensitive", "weights": weights},
    }
    return Study.of(table, roles), table


def _row(table: str, i: int, printed: list[str], ours: list[str]) -> Row:
    return Row(table, f"row {i}", " ".join(printed), " ".join(ours), AGREES if printed == ours else DIFFERS)

"""Misuseability scores of a published table: M-Score, L-Severity, tkl-Score and its largest record (tkl paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from veilmark.errors import OptionError
from veilmark.score.factors import Factors

Normalize = Literal["source", "record", "theory"]
NAMES = ("m", "l_severity", "tkl", "tkl_max")


@dataclass(frozen=True)
class Options:
    """`x` ≥ 1 says how much the number of records counts in M-Score (∞: not at all); `normalize` what 1 means:
    the whole source, the source's worst record, or the theoretical maximum; `cap` holds a record's weight to 1 in
    tkl too, as §3.2 of the paper assumes."""

    x: float = 1.0
    normalize: Normalize = "source"
    cap: bool = False

    def __post_init__(self) -> None:
        if not self.x >= 1:
            raise OptionError(
                f"x must be 1 or larger, or inf, not {self.x:g}. 1 counts every record, inf only the worst."
            )


@dataclass(frozen=True)
class Score:
    """A score and its share of what the normalization calls 1; None where that does not apply."""

    value: float
    normalized: float | None


@dataclass(frozen=True)
class Contribution:
    """How much of the tkl-Score some records carry."""

    what: dict[str, str | None]
    records: int
    tkl: float
    share: float


@dataclass(frozen=True)
class ScoreResult:
    """The scores of a published table, and why they are what they are.

    `from_weights` and `from_closeness` are the two parts of tkl: Σ weight/DF_l and Σ DF_t/DF_l.
    """

    records: int
    source_records: int
    unknown_records: int
    options: Options
    scores: dict[str, Score]
    from_weights: float
    from_closeness: float
    top_classes: tuple[Contribution, ...]
    top_values: tuple[Contribution, ...]
    worst: tuple[RecordScore, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "source_records": self.source_records,
            "unknown_records": self.unknown_records,
            "x": "inf" if math.isinf(self.options.x) else self.options.x,
            "normalize": self.options.normalize,
            "cap": self.options.cap,
            "scores": {name: {"value": s.value, "normalized": s.normalized} for name, s in self.scores.items()},
            "tkl_parts": {"weights": self.from_weights, "closeness": self.from_closeness},
            "top_classes": [vars(c) for c in self.top_classes],
            "top_values": [vars(c) for c in self.top_values],
            "worst": [r.to_dict() for r in self.worst],
        }


@dataclass(frozen=True)
class RecordScore:
    """One record's score, taken apart."""

    record: dict[str, str | None]
    weights: dict[str, float]
    df_k: int
    df_l: int
    df_t: float
    m: float
    l_severity: float
    tkl: float

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"weight": sum(self.weights.values())}

    def __str__(self) -> str:
        parts = " + ".join(f"{w:.5g} ({name})" for name, w in self.weights.items())
        return (
            f"tkl {self.tkl:.5g} = ({self.df_t:.5g} for how its class stands out + {parts}) / {self.df_l}, the values "
            f"it could have; L-Severity {self.l_severity:.5g} = {sum(self.weights.values()):.5g} / {self.df_k}, the "
            f"size of its class"
        )


def score_cells(factors: Factors, chosen: np.ndarray, counts: np.ndarray, options: Options) -> dict[str, float]:
    """The four scores of a table that has `counts` records of each `chosen` distinct record."""
    if not len(chosen):
        return dict.fromkeys(NAMES, 0.0)
    weight, df_k = factors.weight[chosen], factors.df_k[chosen]
    exposed = np.minimum(1.0, weight) if options.cap else weight
    tkl = (factors.df_t[chosen] + exposed) / factors.df_l[chosen]
    power = 1.0 if math.isinf(options.x) else float(counts.sum()) ** (1 / options.x)
    return {
        "m": power * float((np.minimum(1.0, weight) / df_k).max()),
        "l_severity": float((counts * weight / df_k).sum()),
        "tkl": float((counts * tkl).sum()),
        "tkl_max": float(tkl.max()),
    }


def normalizers(
    source: dict[str, float], worst: dict[str, float], records: int, largest: Sequence[float], options: Options
) -> dict[str, float | None]:
    """What each score is divided by."""
    if options.normalize == "source":
        return dict(source)
    if options.normalize == "record":
        only_worst = math.isinf(options.x)
        return {"m": worst["m"] if only_worst else None, "l_severity": None, "tkl": None, "tkl_max": worst["tkl_max"]}
    total = float(sum(largest))
    capped = min(1.0, total)
    power = 1.0 if math.isinf(options.x) else float(records) ** (1 / options.x)
    exposed = 1 + (capped if options.cap else total)
    return {"m": power * capped, "l_severity": records * total, "tkl": records * exposed, "tkl_max": exposed}


def normalize(values: dict[str, float], by: dict[str, float | None]) -> dict[str, Score]:
    """Each score with its normalized form."""
    return {name: Score(value, value / by[name] if by[name] else None) for name, value in values.items()}  # type: ignore[operator]


def worst_records(
    factors: Factors, chosen: np.ndarray, weights: dict[str, np.ndarray], count: int
) -> tuple[RecordScore, ...]:
    """The records with the highest tkl-Score."""
    tkl = factors.tkl[chosen]
    top = np.lexsort((chosen, -tkl))[:count]
    return tuple(describe_record(factors, int(chosen[i]), weights) for i in top)


def describe_record(factors: Factors, cell: int, weights: dict[str, np.ndarray]) -> RecordScore:
    """One distinct record with its factors."""
    cells = factors.cells
    codes = cells.codes[:, cell]
    texts = {
        name: domain.text[int(code)].as_py()
        for name, domain, code in zip(cells.columns, cells.domains, codes, strict=True)
    }
    sensitive = range(factors.quasi, len(cells.columns))
    by_attribute = {cells.columns[i]: float(weights[cells.columns[i]][codes[i]]) for i in sensitive}
    return RecordScore(
        record=texts,
        weights=by_attribute,
        df_k=int(factors.df_k[cell]),
        df_l=int(factors.df_l[cell]),
        df_t=float(factors.df_t[cell]),
        m=float(factors.m[cell]),
        l_severity=float(factors.l_severity[cell]),
        tkl=float(factors.tkl[cell]),
    )


def top_classes(factors: Factors, chosen: np.ndarray, counts: np.ndarray, count: int) -> tuple[Contribution, ...]:
    """The classes that carry most of the tkl-Score."""
    if not factors.quasi or not len(chosen):
        return ()
    owner = factors.owner[chosen]
    carried = counts * factors.tkl[chosen]
    classes, position = np.unique(owner, return_inverse=True)
    tkl = np.bincount(position, weights=carried)
    records = np.bincount(position, weights=counts)
    first = np.zeros(len(classes), dtype=np.int64)
    first[position[::-1]] = chosen[::-1]
    cells = factors.cells
    return tuple(
        Contribution(
            {
                cells.columns[i]: cells.domains[i].text[int(cells.codes[i, first[c]])].as_py()
                for i in range(factors.quasi)
            },
            int(records[c]),
            float(tkl[c]),
            float(tkl[c] / carried.sum()) if carried.sum() else 0.0,
        )
        for c in np.lexsort((classes, -tkl))[:count]
    )


def top_values(factors: Factors, chosen: np.ndarray, counts: np.ndarray, count: int) -> tuple[Contribution, ...]:
    """The sensitive values whose records carry most of the tkl-Score."""
    cells = factors.cells
    carried = counts * factors.tkl[chosen]
    found = []
    for i in range(factors.quasi, len(cells.columns)):
        code = cells.codes[i, chosen]
        tkl = np.bincount(code, weights=carried, minlength=len(cells.domains[i]))
        records = np.bincount(code, weights=counts, minlength=len(cells.domains[i]))
        for v in np.flatnonzero(records):
            what = {cells.columns[i]: cells.domains[i].text[int(v)].as_py()}
            found.append(Contribution(what, int(records[v]), float(tkl[v]), float(tkl[v] / max(carried.sum(), 1e-300))))
    return tuple(sorted(found, key=lambda c: -c.tkl)[:count])

"""Misuseability scores of a published table: M-Score, L-Severity, tkl-Score and its largest record (tkl paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from veilmark.charted import Charted
from veilmark.errors import OptionError
from veilmark.readable import Grid, Summary, share
from veilmark.score.factors import Factors
from veilmark.tables.cells import Cells

Normalize = Literal["source", "record", "theory"]
NAMES = ("m", "l_severity", "tkl", "tkl_max")
STEPS = 30
"""Of the distribution of records' scores."""


@dataclass(frozen=True)
class Options:
    """`x` ≥ 1 says how much the number of records counts in M-Score (∞: not at all); `normalize` what 1 means:
    the whole source, the source's worst record, or the theoretical maximum; `cap` holds a record's weight to 1 in
    tkl too, as §3.2 of the paper assumes."""

    x: float = 1.0
    normalize: Normalize = "source"
    cap: bool = False

    def __post_init__(self) -> None:
        if self.normalize not in get_args(Normalize):
            known = ", ".join(get_args(Normalize))
            raise OptionError(f"'{self.normalize}' is not a normalization. Use one of: {known}.")
        if not self.x >= 1:
            raise OptionError(
                f"x must be 1 or larger, or inf, not {self.x:g}. With 1 every record counts, with inf only the worst."
            )


TITLES = {"m": "M-Score", "l_severity": "L-Severity", "tkl": "tkl-Score", "tkl_max": "tkl-Score max"}


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
class ScoreResult(Charted):
    """The scores of a published table, and why they are what they are.

    `from_weights` and `from_closeness` are the two parts of tkl: Σ weight/DF_l and Σ DF_t/DF_l. `distribution` counts the
    records by their tkl-Score, in equal steps from 0 to the largest.
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
    distribution: tuple[int, ...] = field(default=(), repr=False)

    def chart(self) -> Any:
        """How the records score, and why the worst one does."""
        from veilmark.report.score_charts import scores

        return scores(self)

    def summary(self) -> Summary:
        of = {"source": "the whole source", "record": "its worst record", "theory": "the largest there can be"}
        rows = [(TITLES[key], f"{s.value:,.5g}", share(s.normalized, 2)) for key, s in self.scores.items()]
        grid = Grid(("score", "value", f"of {of[self.options.normalize]}"), rows)
        unknown = [f"{self.unknown_records:,} records are not in the source and are not scored."]
        headline = f"Scores of {self.records:,} of the source's {self.source_records:,} records."
        return Summary(headline, (grid,), unknown if self.unknown_records else ())

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
class RecordScore(Charted):
    """One record's score, taken apart."""

    record: dict[str, str | None]
    weights: dict[str, float]
    df_k: int
    df_l: int
    df_t: float
    m: float
    l_severity: float
    tkl: float

    def chart(self) -> Any:
        """How the score comes about."""
        from veilmark.report.charts import waterfall

        return waterfall(self)

    def summary(self) -> Summary:
        weights = Grid(("sensitive attribute", "weight"), [(n, f"{w:.5g}") for n, w in self.weights.items()])
        return Summary(str(self), (weights,))

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"weight": sum(self.weights.values())}

    def __str__(self) -> str:
        parts = " + ".join(f"{w:.5g} ({name})" for name, w in self.weights.items())
        return (
            f"tkl {self.tkl:.5g} = ({self.df_t:.5g} for how its class stands out + {parts}) / {self.df_l}, the values "
            f"it could have; L-Severity {self.l_severity:.5g} = {sum(self.weights.values()):.5g} / {self.df_k}, the "
            f"size of its class"
        )


@dataclass(frozen=True, eq=False)
class Scored:
    """A table made of a source's distinct records: which (`chosen`, in order; None: all) and how many of each."""

    factors: Factors
    chosen: np.ndarray | None
    counts: np.ndarray

    def of(self, values: np.ndarray) -> np.ndarray:
        """The chosen ones of an array along the source's distinct records."""
        return values if self.chosen is None else values[self.chosen]

    def position(self, i: int) -> int:
        """The i-th distinct record's position in the source."""
        return i if self.chosen is None else int(self.chosen[i])

    @cached_property
    def amounts(self) -> np.ndarray:
        """The counts as floats, for sums of products."""
        return self.counts.astype(np.float64)

    @cached_property
    def tkl(self) -> np.ndarray:
        """What the records of each distinct record add to tkl."""
        return self.amounts * self.of(self.factors.tkl)


def score_values(table: Scored, options: Options) -> dict[str, float]:
    """The four scores of a table."""
    if not len(table.counts):
        return dict.fromkeys(NAMES, 0.0)
    factors, counts = table.factors, table.counts
    power = 1.0 if math.isinf(options.x) else float(counts.sum()) ** (1 / options.x)
    return {
        "m": power * float(table.of(factors.m).max()),
        "l_severity": float(np.dot(table.amounts, table.of(factors.l_severity))),
        "tkl": float(np.dot(table.amounts, table.of(factors.tkl))),
        "tkl_max": float(table.of(factors.tkl).max()),
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


def closeness_part(table: Scored) -> float:
    """Σ DF_t/DF_l: what tkl owes to classes that stand out, rather than to weights."""
    return float(np.dot(table.amounts, table.of(table.factors.df_t) / table.of(table.factors.df_l)))


def distribution(table: Scored) -> tuple[int, ...]:
    """How many records have which tkl-Score, in equal steps from 0 to the largest."""
    tkl = table.of(table.factors.tkl)
    top = float(tkl.max(initial=0.0))
    step = (tkl / top * STEPS).astype(np.int32) if top else np.zeros(len(tkl), dtype=np.int32)
    records = np.bincount(np.minimum(step, STEPS - 1), weights=table.amounts, minlength=STEPS)
    return tuple(records.astype(np.int64).tolist())


def worst_records(table: Scored, weights: dict[str, np.ndarray], count: int) -> tuple[RecordScore, ...]:
    """The records with the highest tkl-Score."""
    top = _largest(table.of(table.factors.tkl), count)
    return tuple(describe_record(table.factors, table.position(int(i)), weights) for i in top)


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Where the largest values stand, largest first, the earlier first among equals."""
    if len(values) > count:
        least = np.partition(values, len(values) - count)[len(values) - count]
        candidates = np.flatnonzero(values >= least)
    else:
        candidates = np.arange(len(values))
    return candidates[np.argsort(-values[candidates], kind="stable")][:count]


def describe_record(factors: Factors, cell: int, weights: dict[str, np.ndarray]) -> RecordScore:
    """One distinct record with its factors."""
    cells = factors.cells
    codes = cells.codes[:, cell]
    sensitive = range(factors.quasi, len(cells.columns))
    by_attribute = {cells.columns[i]: float(weights[cells.columns[i]][codes[i]]) for i in sensitive}
    return RecordScore(
        record=_texts(cells, cell, len(cells.columns)),
        weights=by_attribute,
        df_k=int(factors.df_k[cell]),
        df_l=int(factors.df_l[cell]),
        df_t=float(factors.df_t[cell]),
        m=float(factors.m[cell]),
        l_severity=float(factors.l_severity[cell]),
        tkl=float(factors.tkl[cell]),
    )


def top_classes(table: Scored, count: int) -> tuple[Contribution, ...]:
    """The classes that carry most of the tkl-Score."""
    factors = table.factors
    if not factors.quasi or not len(table.counts):
        return ()
    owner = table.of(factors.owner)
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    tkl = np.add.reduceat(table.tkl, starts)
    records = np.add.reduceat(table.counts, starts)
    return tuple(
        _contribution(table, _texts(factors.cells, table.position(starts[c]), factors.quasi), records[c], tkl[c])
        for c in _largest(tkl, count)
    )


def top_values(table: Scored, count: int) -> tuple[Contribution, ...]:
    """The sensitive values whose records carry most of the tkl-Score."""
    cells = table.factors.cells
    found = []
    for i in range(table.factors.quasi, len(cells.columns)):
        code, domain = table.of(cells.codes[i]), cells.domains[i]
        tkl = np.bincount(code, weights=table.tkl, minlength=len(domain))
        records = np.bincount(code, weights=table.amounts, minlength=len(domain))
        for v in _largest(tkl, count):
            if records[v]:
                found.append(_contribution(table, {cells.columns[i]: domain.text[int(v)].as_py()}, records[v], tkl[v]))
    return tuple(sorted(found, key=lambda c: -c.tkl)[:count])


def _contribution(table: Scored, what: dict[str, str | None], records: float, tkl: float) -> Contribution:
    everything = float(table.tkl.sum())
    return Contribution(what, int(records), float(tkl), float(tkl) / everything if everything else 0.0)


def _texts(cells: Cells, cell: int, columns: int) -> dict[str, str | None]:
    """The values of a distinct record's first columns."""
    return {cells.columns[i]: cells.domains[i].text[int(cells.codes[i, cell])].as_py() for i in range(columns)}

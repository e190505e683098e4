"""Breach: how bad a leak is, scored against the table it came from (the tkl paper's future work, §5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from veilmark.readable import Grid, Readable, Summary, count, share
from veilmark.score.scores import Scored, ScoreResult


@dataclass(frozen=True)
class Breach(Readable):
    """A leak: its scores; the records that stand alone in their class (`identifiable`); those whose sensitive values
    follow from the rest (`certain`, DF_l = 1); and the share of the source's records and of its tkl-Score."""

    score: ScoreResult
    identifiable: int
    certain: int
    share_of_records: float
    severity: float | None

    def summary(self) -> Summary:
        rows = [
            ("share of the source's records", share(self.share_of_records, 2)),
            ("share of the source's tkl-Score", share(self.severity, 2)),
            ("records that are unique in their class", self.identifiable),
            ("records whose sensitive values can be derived from the others", self.certain),
        ]
        return Summary(f"{count(self.score.records, 'record')} leaked.", (Grid(("leak", "value"), rows),))

    def to_dict(self) -> dict[str, Any]:
        return {
            "identifiable": self.identifiable,
            "certain": self.certain,
            "share_of_records": self.share_of_records,
            "severity": self.severity,
            **self.score.to_dict(),
        }


def assess(table: Scored, score: ScoreResult) -> Breach:
    """The extent of a leak."""
    counts, factors = table.counts, table.factors
    return Breach(
        score=score,
        identifiable=int(np.dot(counts, table.of(factors.df_k) == 1)),
        certain=int(np.dot(counts, table.of(factors.df_l) == 1)),
        share_of_records=score.records / score.source_records,
        severity=score.scores["tkl"].normalized,
    )

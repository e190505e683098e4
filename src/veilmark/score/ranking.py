"""Ranking: several candidate releases, least misuseable first, and how far the order survives other weights.

Weights are opinions (the tkl paper names this as its limit, §4.3), so the ranking is drawn again many times with
every weight moved at random.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from veilmark.charted import Charted
from veilmark.defaults import DRAWS, SPREAD
from veilmark.errors import OptionError
from veilmark.readable import Grid, Summary, count, share
from veilmark.score.scores import NAMES, Options, Scored, ScoreResult
from veilmark.tables.cells import number, pack


@dataclass(frozen=True)
class Stability:
    """How the order by one score fares when weights move.

    `same_order`: the share of draws that leave the whole order as it is. `rank_range`: for each candidate the ranks it
    takes in 90 % of the draws.
    """

    order: tuple[str, ...]
    same_order: float
    rank_range: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Ranking(Charted):
    """Candidates in order of their tkl-Score, least misuseable first; `stability` by score."""

    candidates: dict[str, ScoreResult]
    stability: dict[str, Stability]
    spread: float
    draws: int

    def chart(self) -> Any:
        """The candidates by tkl-Score."""
        from veilmark.report.score_charts import ranking

        return ranking(self)

    def summary(self) -> Summary:
        stable = self.stability["tkl"]
        rows = []
        for name, candidate in self.candidates.items():
            tkl, (low, high) = candidate.scores["tkl"], stable.rank_range[name]
            rank = f"{low}" if low == high else f"{low}-{high}"
            rows.append((name, candidate.records, f"{tkl.value:,.4g}", share(tkl.normalized, 2), rank))
        headline = f"{count(len(rows), 'candidate')}, least misuseable first."
        moved = f"weights move by up to ±{self.spread:.0%}"
        note = (
            f"The last column is the rank where {moved}; in {stable.same_order:.1%} of draws the order stays the same."
        )
        return Summary(headline, (Grid(("table", "records", "tkl", "of the source", "rank"), rows),), (note,))

    def to_dict(self) -> dict[str, Any]:
        return {
            "ranking": list(self.candidates),
            "candidates": {name: result.to_dict() for name, result in self.candidates.items()},
            "stability": {name: asdict(s) for name, s in self.stability.items()},
            "spread": self.spread,
            "draws": self.draws,
        }


def rank(
    results: Mapping[str, ScoreResult],
    tables: Mapping[str, Scored],
    stated: Mapping[str, tuple[np.ndarray, np.ndarray]],
    spread: float = SPREAD,
    draws: int = DRAWS,
    seed: int = 1,
) -> Ranking:
    """Order the candidates by tkl, and draw the order again with weights moved by up to ±`spread`.

    `stated` gives, by attribute, the statement that each value's weight comes from, and the statements' weights: a range
    of numbers is one opinion and moves as one.
    """
    if not 0 <= spread < 1:
        raise OptionError(
            f"The spread of the weights must lie between 0 and 1, not {spread:g}. 0.2 moves them by 20 %."
        )
    if draws < 1:
        raise OptionError(f"The number of draws must be 1 or more, not {draws}.")
    ordered = sorted(results, key=lambda name: results[name].scores["tkl"].value)
    options = next(iter(results.values())).options
    rng = np.random.default_rng(seed)
    moved = {
        name: (place, w * rng.uniform(1 - spread, 1 + spread, (draws, len(w))))
        for name, (place, w) in sorted(stated.items())
    }
    drawn = {name: scores_by_draw(tables[name], moved, options) for name in ordered}
    stability = {score: _stability(score, results, drawn) for score in NAMES}
    return Ranking({name: results[name] for name in ordered}, stability, spread, draws)


def scores_by_draw(
    table: Scored, moved: Mapping[str, tuple[np.ndarray, np.ndarray]], options: Options
) -> dict[str, np.ndarray]:
    """The four scores of a table for each draw of the weights.

    `moved` gives, by attribute, each value's statement and the statements' weights (draws × statements). Only a record's
    combination of statements meets the weights, so that sums over records are taken once.
    """
    if not len(table.counts):
        draws = len(next(iter(moved.values()))[1])
        return dict.fromkeys(NAMES, np.zeros(draws))
    factors = table.factors
    cells, sensitive = factors.cells, range(factors.quasi, len(factors.cells.columns))
    codes = [moved[cells.columns[i]][0][table.of(cells.codes[i])] for i in sensitive]
    df_k, df_l, df_t = table.of(factors.df_k), table.of(factors.df_l), table.of(factors.df_t)
    combos, which = number(*pack(codes, [moved[cells.columns[i]][1].shape[1] for i in sensitive]))
    first = np.zeros(len(combos), dtype=np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]
    weights = [moved[cells.columns[i]][1][:, code[first]] for i, code in zip(sensitive, codes, strict=True)]
    weight = np.add.reduce(weights)
    exposed = np.minimum(1.0, weight) if options.cap else weight
    power = 1.0 if math.isinf(options.x) else float(table.counts.sum()) ** (1 / options.x)
    smallest = np.full(len(combos), np.inf)
    np.minimum.at(smallest, which, df_k)
    return {
        "m": power * (np.minimum(1.0, weight) / smallest).max(axis=1),
        "l_severity": weight @ np.bincount(which, weights=table.counts / df_k),
        "tkl": exposed @ np.bincount(which, weights=table.counts / df_l) + float((table.counts * df_t / df_l).sum()),
        "tkl_max": _largest_tkl(exposed, which, df_l, df_t),
    }


def _largest_tkl(exposed: np.ndarray, which: np.ndarray, df_l: np.ndarray, df_t: np.ndarray) -> np.ndarray:
    """The largest record score a draw: of records alike in values and DF_l only the largest DF_t matters."""
    bound = int(df_l.max()) + 1
    pairs, position = number(which.astype(np.int64) * bound + df_l, (int(which.max()) + 1) * bound)
    farthest = np.zeros(len(pairs))
    np.maximum.at(farthest, position, df_t)
    return ((exposed[:, pairs // bound] + farthest) / (pairs % bound)).max(axis=1)


def _stability(
    score: str, results: Mapping[str, ScoreResult], drawn: Mapping[str, Mapping[str, np.ndarray]]
) -> Stability:
    names = sorted(results, key=lambda name: results[name].scores[score].value)
    values = np.array([drawn[name][score] for name in names])
    ranks = np.argsort(np.argsort(values, axis=0, kind="stable"), axis=0) + 1
    low, high = np.quantile(ranks, [0.05, 0.95], axis=1, method="nearest")
    same = float(np.all(np.diff(values, axis=0) >= 0, axis=0).mean())
    spans = {name: (int(low[i]), int(high[i])) for i, name in enumerate(names)}
    return Stability(tuple(names), same, spans)

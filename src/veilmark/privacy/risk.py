"""Re-identification risk of classes, by what the intruder knows.

El Emam 2013; Benedetti and Franconi 1998.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from veilmark.defaults import THRESHOLD


@dataclass(frozen=True)
class Risk:
    """Risks of the records (or persons) of a table, each in 0..1, and the share of them over a threshold."""

    max: float
    mean: float
    over: float
    threshold: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def summarize(risk: np.ndarray, size: np.ndarray, threshold: float) -> Risk:
    """The risk of each class, weighted by how many it has."""
    everyone = size.sum()
    return Risk(
        max=float(risk.max(initial=0.0)),
        mean=float((risk * size).sum() / everyone) if everyone else 0.0,
        over=float(size[risk > threshold].sum() / everyone) if everyone else 0.0,
        threshold=threshold,
    )


def prosecutor(size: np.ndarray, threshold: float = THRESHOLD) -> Risk:
    """The intruder knows that the target is in the table: 1/|class|."""
    return summarize(1 / size, size, threshold)


def journalist(size: np.ndarray, linked: np.ndarray, threshold: float = THRESHOLD) -> Risk:
    """The intruder knows only that the target is in the population: 1/|population class| (k-map)."""
    return summarize(1 / np.maximum(linked, size), size, threshold)


def marketer(size: np.ndarray, linked: np.ndarray | None = None) -> float:
    """The share of records that an intruder who matches them all gets right on average."""
    population = size if linked is None else np.maximum(linked, size)
    return float((size / population).sum() / size.sum()) if size.sum() else 0.0


def sample_risk(size: np.ndarray, share: np.ndarray | float) -> np.ndarray:
    """Benedetti and Franconi's individual risk of a class of `size` in the sample; `share` = size/population.

    E[1/F | f] where the population class F is negative binomial; beyond f = 2 their approximation. At share 1
    the population class is the sample's, and the risk 1/size.
    """
    p = np.broadcast_to(np.clip(np.asarray(share, dtype=float), np.finfo(float).tiny, 1.0), size.shape)
    q = 1 - p
    one, two = _risk_of_one(p, q), _risk_of_two(p, q)
    return np.select([size == 1, size == 2], [one, two], p / (size - q))


def _risk_of_one(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """p/q · ln(1/p), where q = 1 - p may be 0."""
    log = np.where(p < 0.5, -np.log(p), -np.log1p(-np.minimum(q, 0.5)))
    risk: np.ndarray = np.divide(p * log, q, out=np.ones_like(p), where=q > 0)
    return risk


def _risk_of_two(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """p/q - (p/q)² · ln(1/p); near p = 1, where the two terms cancel, the series p · Σ q^i / ((i+1)(i+2))."""
    near = q < 0.1
    terms = [1 / ((i + 1) * (i + 2)) for i in range(16)]
    series = np.polynomial.polynomial.polyval(np.where(near, q, 0.0), terms)
    plain = p / np.where(near, 1.0, q) * (1 - _risk_of_one(p, q))
    return np.where(near, p * series, plain)

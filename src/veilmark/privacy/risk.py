"""Re-identification risk of classes, by what the intruder knows (El Emam 2013; Benedetti and Franconi 1998)."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np


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


def prosecutor(size: np.ndarray, threshold: float = 0.2) -> Risk:
    """The intruder knows that the target is in the table: 1/|class|."""
    return summarize(1 / size, size, threshold)


def journalist(size: np.ndarray, linked: np.ndarray, threshold: float = 0.2) -> Risk:
    """The intruder knows only that the target is in the population: 1/|population class| (k-map)."""
    return summarize(1 / np.maximum(linked, size), size, threshold)


def marketer(size: np.ndarray, linked: np.ndarray | None = None) -> float:
    """The share of records that an intruder who matches them all gets right on average."""
    population = size if linked is None else np.maximum(linked, size)
    return float((size / population).sum() / size.sum()) if size.sum() else 0.0


def sample_risk(size: np.ndarray, share: np.ndarray | float) -> np.ndarray:
    """Benedetti and Franconi's individual risk of a class with `size` in the sample, `share` = size/population.

    At share 1 the population class is the sample's, and the risk 1/size.
    """
    p = np.clip(np.broadcast_to(np.asarray(share, dtype=float), size.shape), 1e-12, 1.0)
    q = 1 - p
    near = q < 1e-4
    odds = p / np.where(near, 1.0, q)
    log = -np.log(p)
    one = np.where(near, 1 - q / 2, odds * log)
    two = np.where(near, 0.5 - q / 6, odds - odds**2 * log)
    return np.select([size == 1, size == 2], [one, two], p / (size - q))

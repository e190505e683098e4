"""How many population uniques a sample hints at, by three models of the class sizes in the population.

All start from the sample's class sizes and the population's size. They are estimates: where they disagree widely,
none of them should carry a decision.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from scipy.optimize import least_squares, minimize
from scipy.special import gammaln
from scipy.stats import hypergeom


@dataclass(frozen=True)
class Uniques:
    """Estimated population uniques as a share of the population, in 0..1; None where a model does not fit."""

    zayatz: float | None
    pitman: float | None
    snb: float | None

    def to_dict(self) -> dict[str, float | None]:
        return asdict(self)


def population_uniques(size: np.ndarray, population: int) -> Uniques:
    """Population uniques by each model, from class sizes in the sample."""
    sizes, counts = np.unique(size, return_counts=True)
    sample = int((sizes * counts).sum())
    if population <= sample:
        share = float(counts[sizes == 1].sum() / max(sample, 1))
        return Uniques(share, share, share)

    def share_of(uniques: float | None) -> float | None:
        return None if uniques is None else float(np.clip(uniques / population, 0.0, 1.0))

    models = (zayatz, pitman, shifted_negative_binomial)
    return Uniques(*(share_of(model(sizes, counts, population)) for model in models))


def zayatz(sizes: np.ndarray, counts: np.ndarray, population: int) -> float:
    """Zayatz 1991: sample uniques times P(population unique | sample unique) over the sampling fraction.

    The class sizes' distribution in the population is taken from the sample.
    """
    sample = int((sizes * counts).sum())
    alone = hypergeom.pmf(1, population, np.minimum(sizes, population), sample)
    fraction = sample / population
    ones = counts[sizes == 1].sum()
    expected = (counts * alone).sum()
    return float(ones * (ones * fraction / expected) / fraction) if ones else 0.0


def pitman(sizes: np.ndarray, counts: np.ndarray, population: int) -> float | None:
    """Pitman's sampling formula (Hoshino 2001), fitted by maximum likelihood; uniques expected at that size."""
    fitted = _fit_pitman(sizes, counts)
    if fitted is None:
        return None
    alpha, theta = fitted
    log_share = gammaln(theta + alpha + population - 1) - gammaln(theta + alpha)
    log_share += gammaln(theta + 1) - gammaln(theta + population)
    return float(population * np.exp(log_share))


def _fit_pitman(sizes: np.ndarray, counts: np.ndarray) -> tuple[float, float] | None:
    classes, sample = int(counts.sum()), int((sizes * counts).sum())
    if classes < 2 or classes == sample:
        return None

    def loss(x: np.ndarray) -> float:
        alpha, theta = 1 / (1 + np.exp(-x[0])), np.exp(x[1])
        ratio = theta / alpha
        new = (classes - 1) * np.log(alpha) + gammaln(ratio + classes) - gammaln(ratio + 1)
        old = (counts * (gammaln(sizes - alpha) - gammaln(1 - alpha))).sum()
        every = gammaln(theta + sample) - gammaln(theta + 1)
        return float(every - new - old)

    start = np.array([0.0, np.log(max(classes, 2))])
    best = minimize(loss, start, method="Nelder-Mead", options={"maxiter": 2000, "xatol": 1e-6, "fatol": 1e-6})
    return float(1 / (1 + np.exp(-best.x[0]))), float(np.exp(best.x[1]))


def shifted_negative_binomial(sizes: np.ndarray, counts: np.ndarray, population: int) -> float | None:
    """Chen and Keller-McNulty 1998: class sizes less one are negative binomial in the population.

    Fitted so that the population's size, the sample's classes and the sample's uniques come out.
    """
    sample, classes = int((sizes * counts).sum()), int(counts.sum())
    ones = int(counts[sizes == 1].sum())
    if not ones or classes < 2:
        return 0.0 if not ones else None
    kept = sample / population

    def implied(x: np.ndarray) -> tuple[float, float, float]:
        alpha, p = np.exp(x[0]), 1 / (1 + np.exp(-x[1]))
        groups = population / (1 + alpha * (1 - p) / p)
        rest = 1 - (1 - p) * (1 - kept)
        none = (1 - kept) * (p / rest) ** alpha
        one = kept * (p / rest) ** alpha * (1 + (1 - kept) * alpha * (1 - p) / rest)
        return groups * (1 - none), groups * one, groups * p**alpha

    def miss(x: np.ndarray) -> np.ndarray:
        seen, alone, _ = implied(x)
        return np.array([np.log(seen / classes), np.log(alone / ones)])

    starts = [(a, b) for a in (-3.0, 0.0, 3.0) for b in (-6.0, -2.0, 1.0)]
    fits = [least_squares(miss, start, bounds=([-12, -20], [12, 12])) for start in starts]
    best = min(fits, key=lambda fit: fit.cost)
    return implied(best.x)[2] if best.cost < 1e-4 else None

"""How many population uniques a sample hints at, by three models of the class sizes in the population.

All start from the sample's class sizes, of which some but not all are 1, and the population's size; all give the
share of the population that is unique. They are estimates: where they disagree widely, none of them should carry
a decision.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import exp, expm1, log, log1p, sqrt

import numpy as np

# scipy is imported where it is needed: it takes longer to load than all the rest, and few studies need it.


@dataclass(frozen=True)
class Uniques:
    """Estimated population uniques as a share of the population, in 0..1; None where a model does not fit.

    A sample that has no uniques hints at none. One that has nothing else hints at nothing else, however small
    it is: read a 1 as "no evidence against".
    """

    zayatz: float | None
    pitman: float | None
    snb: float | None

    def to_dict(self) -> dict[str, float | None]:
        return asdict(self)


def population_uniques(size: np.ndarray, population: int) -> Uniques:
    """Population uniques by each model, from class sizes in the sample."""
    sizes, counts = np.unique(size, return_counts=True)
    sample, _, ones = _totals(sizes, counts)
    if population <= sample or ones in (0, sample):
        share = ones / sample if sample else 0.0
        return Uniques(share, share, share)

    def clipped(share: float | None) -> float | None:
        return None if share is None else float(np.clip(share, 0.0, 1.0))

    models = (zayatz, pitman, shifted_negative_binomial)
    return Uniques(*(clipped(model(sizes, counts, population)) for model in models))


def _totals(sizes: np.ndarray, counts: np.ndarray) -> tuple[int, int, int]:
    """The sample's size, its classes, and how many of them have one record."""
    return int((sizes * counts).sum()), int(counts.sum()), int(counts[sizes == 1].sum())


def zayatz(sizes: np.ndarray, counts: np.ndarray, population: int) -> float:
    """Zayatz 1991: sample uniques times P(population unique | sample unique) over the sampling fraction.

    The population's classes are taken to be as large as the sample's, so that small samples overestimate.
    """
    sample, _, ones = _totals(sizes, counts)
    kept = sample / population
    expected = float((counts * _one_of(sizes, sample, population)).sum())
    return ones / sample * (ones * kept / expected)


def _one_of(sizes: np.ndarray, sample: int, population: int) -> np.ndarray:
    """The hypergeometric chance that just one of a class comes into the sample."""
    from scipy.special import gammaln

    left_out = gammaln(population - sample + 1) - gammaln(population - sample - sizes + 2)
    ways = gammaln(population) - gammaln(population - sizes + 1)
    chance: np.ndarray = sizes * sample / population * np.exp(left_out - ways)
    return chance


def pitman(sizes: np.ndarray, counts: np.ndarray, population: int) -> float:
    """Pitman's sampling formula (Hoshino 2001), fitted by maximum likelihood: the chance to be alone among N.

    That is Γ(θ+α+N-1)/Γ(θ+N) · Γ(θ+1)/Γ(θ+α). At α = 0 it is Ewens' formula.
    """
    from scipy.special import poch

    alpha, theta = fit_pitman(sizes, counts)
    return float(poch(theta + population, alpha - 1) / poch(theta + 1, alpha - 1))


def fit_pitman(sizes: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """(α, θ), 0 ≤ α < 1 and θ > -α, that make the sample likeliest; some but not all of it must be unique.

    At each α the likelihood rises and then falls with θ, and so does what is left of it with α.
    """
    from scipy.optimize import brentq
    from scipy.special import digamma

    sample, classes, _ = _totals(sizes, counts)

    def best_theta(alpha: float) -> float:
        def slope(x: float) -> float:
            theta = exp(x) - alpha
            return _rising(theta, alpha, classes - 1)[0] - _rising(theta, 1.0, sample - 1)[0]

        return float(exp(brentq(slope, -20, 50)) - alpha)

    def slope(alpha: float) -> float:
        joined = counts @ (digamma(sizes - alpha) - digamma(1 - alpha))
        return float(_rising(best_theta(alpha), alpha, classes - 1)[1] - joined)

    highest = 1 - 1e-6
    if slope(0.0) <= 0:
        return 0.0, best_theta(0.0)
    alpha = float(brentq(slope, 0.0, highest)) if slope(highest) < 0 else highest
    return alpha, best_theta(alpha)


def _rising(theta: float, alpha: float, m: int) -> tuple[float, float]:
    """Σ 1/(θ+iα) and Σ i/(θ+iα) over i = 1..m; a series where α is so small that digammas would cancel."""
    from scipy.special import digamma

    if alpha * m < 1e-3 * theta:
        x, one, two = alpha / theta, m * (m + 1) / 2, m * (m + 1) * (2 * m + 1) / 6
        three = one * one
        return (m - x * (one - x * (two - x * three))) / theta, (one - x * (two - x * three)) / theta
    ratio = theta / alpha
    inverse = float(digamma(ratio + m + 1) - digamma(ratio + 1)) / alpha
    return inverse, (m - theta * inverse) / alpha


def shifted_negative_binomial(sizes: np.ndarray, counts: np.ndarray, population: int) -> float | None:
    """Chen and Keller-McNulty 1998: class sizes less one are negative binomial in the population.

    Fitted so that the population's size, the sample's classes and the sample's uniques come out. (They take
    the number of population classes from elsewhere, and fit the sample's uniques and pairs.) None where even
    classes of like size would show more uniques than the sample has, by over two standard errors.
    """
    from scipy.optimize import brentq

    sample, classes, ones = _totals(sizes, counts)
    kept = sample / population

    def expect(log_odds: float) -> tuple[float, float]:
        """Uniques in the sample and their share of the population, given the odds (1-p)/p."""
        odds = exp(log_odds)
        rate = log1p(odds * kept) / odds

        def surplus(log_mean: float) -> float:
            mean = exp(log_mean)
            return -population / (1 + mean) * expm1(log1p(-kept) - mean * rate) - classes

        mean = exp(brentq(surplus, -30, log(population)))
        alone = sample / (1 + mean) * exp(-mean * rate) * (1 + (1 - kept) * mean / (1 + odds * kept))
        return alone, exp(-mean * log1p(odds) / odds) / (1 + mean)

    lowest, highest = -14.0, 45.0
    fewest, share = expect(lowest)
    if ones <= fewest:
        return share if ones >= fewest - 2 * sqrt(fewest) else None
    return expect(brentq(lambda x: expect(x)[0] - ones, lowest, highest))[1]

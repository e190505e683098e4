"""How likely an innocent recipient scores as high, given the leak.

Whatever the leakers did, an innocent's bits are independent of the leak: each is 1 with probability p[j]. So its score,
a sum of whole steps over the classes it holds, has a known distribution. `Null` gives the tail of it: exact, up to
rounding errors that are added on top, or Chernoff's bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft, special

from veilmark.errors import OptionError

_WORK = 1 << 24  # the largest product of distinct terms and grid points for which a tail is computed exactly
_LEAST = 1e-300  # smaller probabilities are rounded up to this
_ROUNDING = 1e-9  # added to the logarithm of a probability, above any rounding error in it
_SLACK = 1e-11  # added to an exact tail, as a share of the bound by its tilt; measured errors are below 1e-12


@dataclass(frozen=True, eq=False)
class Null:
    """The sum of `count` independent variables a term, each 0 or `step` (> 0) with probability `p`, plus `low`."""

    step: np.ndarray
    p: np.ndarray
    count: np.ndarray
    low: int

    @staticmethod
    def of(steps: np.ndarray, p: np.ndarray) -> Null:
        """Σ steps·bit, bits 1 with probability p. Steps below 0 are turned round; equal terms are put together."""
        chance = np.where(steps > 0, p, 1 - p)
        varies = (steps != 0) & (chance > 0) & (chance < 1)
        terms, count = np.unique(np.abs(steps[varies]) + 1j * chance[varies], return_counts=True)
        low = np.minimum(steps, 0).sum() + np.abs(steps[chance == 1]).sum()
        return Null(terms.real.astype(np.int64), terms.imag, count, int(low))

    @cached_property
    def mean(self) -> float:
        return self.low + float((self.count * self.step * self.p).sum())

    @cached_property
    def deviation(self) -> float:
        return float(np.sqrt((self.count * self.step**2 * self.p * (1 - self.p)).sum()))

    @cached_property
    def _size(self) -> int:
        """Points of the grid on which the sum can never overlap itself."""
        return int(fft.next_fast_len(int((self.count * self.step).sum()) + 1, real=True))

    @cached_property
    def _logit(self) -> np.ndarray:
        return special.logit(self.p)

    def chernoff(self, scores: np.ndarray) -> np.ndarray:
        """An upper bound on P(sum ≥ score), for each score."""
        above = np.asarray(scores, dtype=float) - self.low
        return np.maximum(np.exp(self._exponent(above, self._tilt(above))), _LEAST)

    def tail(self, scores: np.ndarray) -> tuple[np.ndarray, bool]:
        """P(sum ≥ score) for each score, never too small; and whether it is exact or Chernoff's bound."""
        above, nth = np.unique(np.asarray(scores, dtype=np.int64) - self.low, return_inverse=True)
        tilt = self._tilt(above.astype(float))
        bound = np.maximum(np.exp(self._exponent(above.astype(float), tilt)), _LEAST)
        if len(self.step) * self._size > _WORK:
            return bound[nth], False
        # Scores that are not far out share the plain distribution; each of the others is looked at where it is likely.
        tilt = np.where(bound > 0.05, 0.0, tilt)
        result = np.ones(len(above))
        for one in np.unique(tilt):
            at = tilt == one
            result[at] = self._exact(above[at], one)
        return np.minimum(result, bound)[nth], True

    def _exact(self, above: np.ndarray, tilt: float) -> np.ndarray:
        """Tails by Fourier transform of the tilted distribution, in which scores near the tilt's mean are likely."""
        size = self._size
        q = special.expit(self._logit + tilt * self.step)
        loud = self._loud(q)
        turn = np.exp(-2j * np.pi / size * (loud * self.step[:, None] % size))
        wave = np.zeros(size // 2 + 1, dtype=complex)
        with np.errstate(divide="ignore"):
            wave[loud] = np.exp(self.count @ np.log((1 - q)[:, None] + q[:, None] * turn))
        mass = np.maximum(fft.irfft(wave, size), 0.0)
        tails = []
        for score in above:
            beyond = mass[max(score, 0) :]
            rest = (beyond * np.exp(-tilt * np.arange(len(beyond)))).sum() + _SLACK
            tails.append(rest * np.exp(self._exponent(np.array([float(score)]), np.array([tilt]))[0]))
        return np.clip(tails, _LEAST, 1.0)

    def _loud(self, q: np.ndarray) -> np.ndarray:
        """The frequencies, mostly few, at which the transform is not next to nothing."""
        versine = 2 * np.sin(np.pi / self._size * np.arange(self._size)) ** 2
        frequency = np.arange(self._size // 2 + 1)
        size = np.zeros(len(frequency))
        with np.errstate(divide="ignore"):
            for step, spread, count in zip(self.step, 2 * q * (1 - q), self.count, strict=True):
                size += count / 2 * np.log1p(-spread * versine[frequency * step % self._size])
        return np.flatnonzero(size > -60)

    def _exponent(self, above: np.ndarray, tilt: np.ndarray) -> np.ndarray:
        """log E[exp(tilt·(sum - score))]: the logarithm of Chernoff's bound for any tilt ≥ 0, rounded up."""
        growth = np.logaddexp(np.log1p(-self.p), np.log(self.p) + tilt[:, None] * self.step)
        return (self.count * growth).sum(axis=1) - tilt * above + _ROUNDING

    def _tilt(self, above: np.ndarray) -> np.ndarray:
        """The tilt ≥ 0 under which each score is the mean: Newton's steps, halving where they leave the bracket.

        Every tilt gives a valid bound, the right one the smallest; so a fixed number of steps will do.
        """
        if not len(self.step):
            return np.zeros(len(above))
        low, high = np.zeros(len(above)), np.full(len(above), 40 / self.step.min())
        tilt = np.zeros(len(above))
        for _ in range(20):
            q = special.expit(self._logit + tilt[:, None] * self.step)
            gap = (self.count * self.step * q).sum(axis=1) - above
            low, high = np.where(gap < 0, tilt, low), np.where(gap < 0, high, tilt)
            slope = (self.count * self.step**2 * q * (1 - q)).sum(axis=1)
            tilt = tilt - gap / np.maximum(slope, 1e-12)
            tilt = np.where((tilt <= low) | (tilt >= high), (low + high) / 2, tilt)
        return np.where(above <= self.mean - self.low, 0.0, tilt)


def decoy_tail(hits: int, drawn: int, marked: int, pool: int) -> float:
    """P(at least `hits` of `drawn` things, drawn at random from a pool, are among its `marked` ones): exact,
    rounded up by 1e-9 of it.

    For a leaked file: a recipient's `drawn` decoy classes were drawn by key from the pool of candidates, of which
    `marked` show in the leak, `hits` of them the recipient's.
    """
    if not (0 <= drawn <= pool and 0 <= marked <= pool):
        raise OptionError(f"A pool of {pool} is too small for {drawn} drawn and {marked} marked items.")
    drawn, marked = min(drawn, marked), max(drawn, marked)  # the same probability, with smaller numbers
    if hits <= max(0, drawn + marked - pool):
        return 1.0
    if hits > drawn:
        return 0.0
    first = _log_comb(marked, hits) + _log_comb(pool - marked, drawn - hits) - _log_comb(pool, drawn)
    k = np.arange(hits, drawn, dtype=float)
    growth = np.log(marked - k) + np.log(drawn - k) - np.log(k + 1) - np.log(pool - marked - drawn + k + 1)
    tail = np.exp(first + special.logsumexp(np.append(0.0, np.cumsum(growth))))
    return float(np.clip(tail * (1 + _ROUNDING), _LEAST, 1.0))


def _log_comb(n: int, k: int) -> float:
    """log of n over k; a sum of few small terms is more exact than differences of log Γ."""
    i = np.arange(k, dtype=float)
    return float((np.log(n - i) - np.log(i + 1)).sum())


def smallest_probability(recipients: int, decoys: int, pool: int) -> float:
    """The least probability that claims can ever reach for a release: all of one recipient's classes are met, and no other
    of those of the pool that are nobody else's."""
    left = pool - (recipients - 1) * decoys
    if not decoys or left < decoys:
        return 1.0
    return min(1.0, recipients * decoy_tail(decoys, decoys, decoys, left))

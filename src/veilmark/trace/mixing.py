"""How leakers mixed their copies, and which recipients they may be, estimated from a leak.

θ_k is the probability that a class goes into the leak when k of the coalition hold it. It is estimated from the leak and
the code by maximum likelihood. Then the recipients who explain the leak best are taken in, one by one, as long as the next
one explains clearly more than chance would; θ is estimated anew with each, as their bits are then known.

Meerwald and Furon 2012 (estimated mixing, side information).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

FLOOR = 0.01
"""No θ is taken to be surer than this, so that one odd class cannot clear a leaker."""

ADDED = 0.005
"""The chance that a class shows which nobody of the coalition holds."""

KEPT = 200
"""Classes that all recipients hold count as so many at most: covers are smaller than they, and sooner lost."""

TRUST = 20
"""Without such classes, it is as if so many had all been there."""

GRAIN = 32
"""For the estimate, how surely a class shows is rounded to so many steps."""


@dataclass(frozen=True, eq=False)
class Leak:
    """What a leak shows of the classes of a code, of which class j was given to each recipient with probability `p[j]`.

    `shows[j]` is 1 where class j is in the leak and 0 where it is not; between them where that is not sure: a/(a + b), if
    what is seen of the class has the likelihood a if it was put in and b if it was not. Of the classes that everybody holds,
    `kept` tells how many show and how many do not: so much was deleted. The code is made for `coalition` leakers.
    """

    p: np.ndarray
    shows: np.ndarray
    coalition: int
    kept: tuple[int, int] = (0, 0)

    def likelihoods(self, chance: np.ndarray) -> np.ndarray:
        """The likelihood of what is seen of each class, if it was put in with these chances; up to a factor of its own."""
        mixed: np.ndarray = chance * self.shows + (1 - chance) * (1 - self.shows)
        return mixed


@dataclass(frozen=True, eq=False)
class Context:
    """What is taken as known when a recipient is tested: the `leakers` (numbers of recipients), how many of them hold each
    class (`held`), and `theta` of the whole coalition, which has at least one more."""

    leak: Leak
    leakers: tuple[int, ...]
    held: np.ndarray
    theta: np.ndarray

    @staticmethod
    def first(leak: Leak) -> Context:
        """Nobody is known."""
        held = np.zeros(len(leak.p), dtype=np.int64)
        return Context(leak, (), held, mixing(leak, 0, held))

    def with_leaker(self, recipient: int, bits: np.ndarray) -> Context:
        """One more is known."""
        leakers, held = (*self.leakers, recipient), self.held + bits[recipient]
        return Context(self.leak, leakers, held, mixing(self.leak, len(leakers), held))

    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """The log-likelihood of what is seen of each class if one more leaker lacks it, and if it holds it; all further ones
        are random."""
        others = self.leak.coalition - len(self.leakers) - 1
        lacks, holds = (self._chance(others, more) for more in (0, 1))
        return np.log(self.leak.likelihoods(lacks)), np.log(self.leak.likelihoods(holds))

    def _chance(self, others: int, more: int) -> np.ndarray:
        """The probability that each class is put in, if `more` hold it besides those known, and `others` are random."""
        cases, nth = np.unique(np.stack([self.leak.p, self.held]), axis=1, return_inverse=True)
        holders = binomial(others, cases[0])
        at = cases[1].astype(np.int64)[:, None] + more + np.arange(others + 1)
        found: np.ndarray = (holders * self.theta[at]).sum(axis=1)[nth.reshape(-1)]
        return found

    def gain_of_each(self, bits: np.ndarray) -> np.ndarray:
        """How much the leak's log-likelihood grows if each of the recipients is one of the coalition."""
        lacks, holds = self.gains()
        unknown = np.log(self.leak.likelihoods(self._chance(self.leak.coalition - len(self.leakers), 0)))
        grown: np.ndarray = bits @ (holds - lacks) + (lacks - unknown).sum()
        return grown


@dataclass(frozen=True, eq=False)
class Path:
    """Contexts, each with one leaker more than the one before: whoever of the rest explains the leak best. The leakers of
    the first `clear` ones after the start explain more than the best of so many would by chance."""

    contexts: tuple[Context, ...]
    clear: int

    @staticmethod
    def of(leak: Leak, bits: np.ndarray) -> Path:
        """From nobody known to all of the coalition but one."""
        return _walk([Context.first(leak)], 0, bits, None)

    def without(self, recipient: int, bits: np.ndarray) -> Path:
        """The path as it is if nothing is known of a recipient: it does not depend on that one's bits."""
        leakers = self.contexts[-1].leakers
        if recipient not in leakers:
            return self
        place = leakers.index(recipient)
        return _walk(list(self.contexts[: place + 1]), min(self.clear, place), bits, recipient)

    @property
    def tested(self) -> tuple[Context, Context, Context]:
        """The contexts that count: nobody known, those who stand out known, and as many as there may be."""
        return self.contexts[0], self.contexts[self.clear], self.contexts[-1]


def _walk(contexts: list[Context], clear: int, bits: np.ndarray, unknown: int | None) -> Path:
    """Go on from the last context, without the recipient of whom nothing is to be known."""
    free = np.ones(len(bits), dtype=bool)
    free[list(contexts[-1].leakers)] = False
    if unknown is not None:
        free[unknown] = False
    while len(contexts) < contexts[0].leak.coalition and free.sum() > (unknown is None):
        gain = np.where(free, contexts[-1].gain_of_each(bits), -np.inf)
        best = int(gain.argmax())
        # As many to choose from as there are without the one who is tested, on the path of all as on that one's own.
        stands_out = gain[best] > math.log(len(bits) - len(contexts))
        clear += bool(stands_out) and clear == len(contexts) - 1
        free[best] = False
        contexts.append(contexts[-1].with_leaker(best, bits))
    return Path(tuple(contexts), clear)


def mixing(leak: Leak, known: int, held: np.ndarray) -> np.ndarray:
    """θ_0..θ_c by maximum likelihood (EM); `held`: how many of the `known` leakers hold each class."""
    seen = np.rint(leak.shows * GRAIN).astype(np.int64)
    cases, count = np.unique(np.stack([leak.p, held, seen]), axis=1, return_counts=True)
    stay, gone = _kept(leak)
    coalition = leak.coalition
    holders = np.zeros((len(count) + 2, coalition + 1))
    at = cases[1].astype(np.int64)[:, None] + np.arange(coalition - known + 1)
    np.put_along_axis(holders[:-2], at, binomial(coalition - known, cases[0]), axis=1)
    holders[-2:, -1] = 1
    shows = np.append(cases[2] / GRAIN, [1.0, 0.0])[:, None]
    weight = np.append(count, [stay, gone])
    prior = np.arange(coalition + 1) / coalition  # each class from a random member; where the data say nothing
    theta = prior.clip(ADDED, 1 - FLOOR)
    for _ in range(200):
        put, left = theta * shows, (1 - theta) * (1 - shows)
        share = weight / (holders * (put + left)).sum(axis=1)
        showing, hidden = share @ (holders * put), share @ (holders * left)
        before, theta = theta, ((showing + prior) / (showing + hidden + 1)).clip(FLOOR, 1 - FLOOR)
        theta[0] = ADDED
        if np.abs(theta - before).max() < 1e-4:
            break
    return theta


def _kept(leak: Leak) -> tuple[float, float]:
    """The weight of classes that everybody holds, and that are there or gone."""
    count = sum(leak.kept)
    scale = min(1.0, KEPT / count) if count else 0.0
    return (leak.kept[0] * scale, leak.kept[1] * scale) if count else (TRUST, 0.0)


def binomial(count: int, p: np.ndarray) -> np.ndarray:
    """P(k of `count` hold a class) for k = 0..count, a row for each p."""
    k = np.arange(count + 1)
    return special.comb(count, k) * p[:, None] ** k * (1 - p[:, None]) ** (count - k)

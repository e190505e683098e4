"""Which recipients a leak points to: scores of their cover bits, with the probability that an innocent scores as high.

How the leakers mixed their copies is estimated from the leak and the code alone, without looking at any recipient's
bits: θ_k, the probability that a class shows in the leak when k of the coalition hold it. The score is the likelihood
ratio under that θ. As θ does not depend on an innocent's bits, neither does the innocent's distribution of the score,
and nothing needs to be allowed for the choice; a wrong θ costs power, never soundness. Each recipient is tested alone,
and beside each other recipient, whose bits are then taken as given: an innocent's bits are independent of those too.

Škorić et al. 2008 (symmetric score), Tardos 2008 (presences alone), Meerwald and Furon 2012 (estimated mixing, side
information).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import special

from veilmark.errors import OptionError
from veilmark.mark.code import Code
from veilmark.trace.tails import Null

ScoreKind = Literal["likelihood", "symmetric", "presence"]
SCORES: tuple[ScoreKind, ...] = ("likelihood", "symmetric", "presence")

_FINENESS = 10  # steps in the root mean square of the weights: rounding them costs 0.1 % of a score's strength
_FLOOR = 0.01  # no θ is taken to be surer than this, so that one odd class cannot clear a leaker
_ADDED = 0.005  # chance that a class shows which nobody of the coalition holds


def mixing(present: np.ndarray, p: np.ndarray, coalition: int, kept: tuple[int, int] = (0, 0)) -> np.ndarray:
    """θ_0..θ_c by maximum likelihood (EM), from which classes show and how probable each was.

    `kept`: of the classes that all recipients hold, how many show in the leak and how many do not; they tell how much
    was deleted. They count as 200 at most, for covers are smaller than they and sooner lost; without any, a little
    trust that nothing was deleted.
    """
    count = sum(kept)
    stay, gone = (n * min(1.0, 200 / count) for n in kept) if count else (20.0, 0.0)
    points, nth = np.unique(p, return_inverse=True)
    shown = np.append(np.bincount(nth, present, len(points)), stay)
    hidden = np.append(np.bincount(nth, ~present, len(points)), gone)
    holders = _holders(coalition, np.append(points, 1.0))
    prior = np.arange(coalition + 1) / coalition  # each class from a random member; where the data say nothing
    theta = prior.clip(_ADDED, 1 - _FLOOR)
    for _ in range(200):
        chance = holders @ theta
        shows = theta * ((shown / chance) @ holders)
        hides = (1 - theta) * ((hidden / (1 - chance)) @ holders)
        before, theta = theta, ((shows + prior) / (shows + hides + 1)).clip(_FLOOR, 1 - _FLOOR)
        theta[0] = _ADDED
        if np.abs(theta - before).max() < 1e-4:
            break
    return theta


def _holders(coalition: int, p: np.ndarray) -> np.ndarray:
    """P(k of the coalition hold a class) for k = 0..c, a row for each p."""
    k = np.arange(coalition + 1)
    return special.comb(coalition, k) * p[:, None] ** k * (1 - p[:, None]) ** (coalition - k)


def weights(
    kind: str, present: np.ndarray, p: np.ndarray, theta: np.ndarray, beside: np.ndarray | None = None
) -> np.ndarray:
    """What holding each class adds to a recipient's score; `beside`: the bits of another one, taken as a leaker."""
    if kind == "likelihood":
        return _likelihood(present, p, theta, beside)
    if kind not in SCORES:
        raise OptionError(f"There is no score '{kind}'. Scores are {', '.join(SCORES)}.")
    spread = np.sqrt(p * (1 - p))
    gain = np.divide(1.0, spread, out=np.zeros(len(p)), where=spread > 0)
    return np.where(present, gain, -gain if kind == "symmetric" else 0.0)


def _likelihood(present: np.ndarray, p: np.ndarray, theta: np.ndarray, beside: np.ndarray | None) -> np.ndarray:
    """log P(leak | holds the class) - log P(leak | does not), the rest of the coalition being random."""
    points, nth = np.unique(p, return_inverse=True)
    others = len(theta) - 2 if beside is None else len(theta) - 3
    holders = _holders(others, points)
    shows = np.stack([holders @ theta[k : k + others + 1] for k in range(len(theta) - others)])
    gain = np.where(present, np.diff(np.log(shows), axis=0)[:, nth], np.diff(np.log1p(-shows), axis=0)[:, nth])
    return gain[0] if beside is None else np.where(beside, gain[1], gain[0])


def to_steps(gain: np.ndarray) -> np.ndarray:
    """Weights as whole steps, so that sums and their distribution are exact."""
    scale = np.sqrt((gain**2).mean()) if len(gain) else 0.0
    return np.rint(gain * (_FINENESS / scale)).astype(np.int64) if scale > 0 else np.zeros(len(gain), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Scores:
    """One entry a recipient, in order.

    `score`: standard deviations above an innocent's mean. `p_value`: probability that an innocent one scores as high;
    `beside`: the recipient beside whom the evidence is strongest, -1 where it is strongest alone.
    """

    kind: ScoreKind
    theta: np.ndarray
    score: np.ndarray
    p_value: np.ndarray
    beside: np.ndarray
    exact: np.ndarray

    def accused(self, false_accusation: float) -> np.ndarray:
        """Who is named, so that with this probability at most any innocent one is: a mask."""
        return len(self.p_value) * self.p_value <= false_accusation

    def to_dict(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "mixing": [round(float(t), 3) for t in self.theta],
            "score": self.score.tolist(),
            "p_value": self.p_value.tolist(),
            "beside": self.beside.tolist(),
            "tail": ["exact" if e else "chernoff" for e in self.exact],
        }


def score(
    code: Code,
    bits: np.ndarray,
    present: np.ndarray,
    kept: tuple[int, int] = (0, 0),
    kind: ScoreKind = "likelihood",
    beside: bool = True,
) -> Scores:
    """Test every recipient (row of `bits`) against the cover classes that show in the leak (`present`).

    `kept`: of the classes that all recipients hold, how many show and how many do not. `beside`: test each recipient
    beside each other one too, for the likelihood score and codes for two or more.
    """
    theta = mixing(present, code.p, code.coalition, kept)
    steps = to_steps(weights(kind, present, code.p, theta))
    null = Null.of(steps, code.p)
    sums = bits @ steps
    tails, exact = null.tail(sums)
    deviations = (sums - null.mean) / null.deviation if null.deviation else np.zeros(len(bits))
    alone = Scores(kind, theta, deviations, tails, np.full(len(bits), -1), np.full(len(bits), exact))
    pairs = beside and kind == "likelihood" and code.coalition > 1 and len(bits) > 1
    return _beside(code, bits, present, alone) if pairs else alone


def _beside(code: Code, bits: np.ndarray, present: np.ndarray, alone: Scores) -> Scores:
    """Half of the allowance goes to the test alone, half to the tests beside n - 1 others."""
    both = np.stack(
        [weights("likelihood", present, code.p, alone.theta, np.full(code.length, other)) for other in (False, True)]
    )
    without, with_other = to_steps(both.ravel()).reshape(both.shape)
    held = bits.astype(float)
    gain = without + held * (with_other - without)  # row: beside whom
    sums = held @ gain.T  # row: who is tested, column: beside whom
    deviation = np.sqrt(np.maximum(gain**2 @ (code.p * (1 - code.p)), 1e-12))
    deviations = (sums - gain @ code.p) / deviation
    np.fill_diagonal(deviations, -np.inf)
    partner = deviations.argmax(axis=1)
    p_value, chosen, exact = np.minimum(2 * alone.p_value, 1.0), alone.beside.copy(), alone.exact.copy()
    # The most promising one is enough, as any choice is allowed for; with fewer deviations it could not matter.
    for i in np.flatnonzero(deviations.max(axis=1) > np.maximum(alone.score, 3)):
        steps = np.rint(gain[partner[i]]).astype(np.int64)
        tail, sure = Null.of(steps, code.p).tail(np.array([sums[i, partner[i]]]))
        if (value := 2 * (len(bits) - 1) * tail[0]) < p_value[i]:
            p_value[i], chosen[i], exact[i] = value, partner[i], sure
    return replace(alone, p_value=p_value, beside=chosen, exact=exact)


def observe(code: Code, bits: np.ndarray, group: np.ndarray) -> tuple[Code, np.ndarray]:
    """Code and bits where the leak shows less than whole classes: classes of one group (0, 1, …) look alike there.

    A recipient holds a group if it holds any of its classes. Group -1: cannot be told from classes that all hold.
    """
    order = np.argsort(group, kind="stable")[(group < 0).sum() :]
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    if not len(starts):
        return replace(code, p=code.p[:0]), bits[:, :0]
    absent = np.add.reduceat(np.log1p(-code.p[order]), starts)
    return replace(code, p=-np.expm1(absent)), np.logical_or.reduceat(bits[:, order], starts, axis=1)

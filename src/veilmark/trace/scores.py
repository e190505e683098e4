"""Which recipients a leak points to: scores of their cover bits, with the probability that an innocent scores as high.

The score is the likelihood ratio of a recipient's bits, given how the leakers mixed their copies and who else is likely to
be one of them (`trace/mixing.py`). Both are estimated from the leak and from all other recipients' bits, never from those
of the recipient who is tested. An innocent's bits are independent of all that: whatever was estimated, they are 1 with
probability p[j] each, and the distribution of the score is known exactly. So nothing needs to be allowed for the choice; a
wrong estimate costs power, never soundness. Each recipient is tested three times: with nobody else known, beside those who
stand out, and beside a whole coalition; a third of the allowance goes to each.

Škorić et al. 2008 (symmetric score), Tardos 2008 (presences alone), Meerwald and Furon 2012 (estimated mixing, side
information).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from veilmark.errors import OptionError
from veilmark.mark.code import Code
from veilmark.trace.mixing import Context, Leak, Path
from veilmark.trace.tails import Null

ScoreKind = Literal["likelihood", "symmetric", "presence"]
SCORES: tuple[ScoreKind, ...] = ("likelihood", "symmetric", "presence")

_FINENESS = 10  # steps in the root mean square of the weights: rounding them costs 0.1 % of a score's strength


def weights(kind: str, context: Context) -> np.ndarray:
    """What holding each class adds to a recipient's score."""
    if kind == "likelihood":
        lacks, holds = context.gains()
        return holds - lacks
    if kind not in SCORES:
        raise OptionError(f"There is no score '{kind}'. Use one of: {', '.join(SCORES)}.")
    p, shows = context.leak.p, context.leak.shows
    spread = np.sqrt(p * (1 - p))
    gain = np.divide(1.0, spread, out=np.zeros(len(p)), where=spread > 0)
    return gain * (2 * shows - 1 if kind == "symmetric" else shows)


def to_steps(gain: np.ndarray) -> np.ndarray:
    """Weights as whole steps, so that sums and their distribution are exact."""
    scale = np.sqrt((gain**2).mean()) if len(gain) else 0.0
    return np.rint(gain * (_FINENESS / scale)).astype(np.int64) if scale > 0 else np.zeros(len(gain), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Scores:
    """One entry a recipient, in order.

    `score`: standard deviations above an innocent's mean, with nobody else known. `p_value`: probability that an innocent
    one scores as high; `beside`: the recipients beside whom the evidence is strongest, none where it is strongest alone.
    """

    kind: ScoreKind
    theta: np.ndarray
    score: np.ndarray
    p_value: np.ndarray
    beside: tuple[tuple[int, ...], ...]
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
            "beside": [list(others) for others in self.beside],
            "tail": ["exact" if e else "chernoff" for e in self.exact],
        }


def score(
    code: Code,
    bits: np.ndarray,
    shows: np.ndarray,
    kept: tuple[int, int] = (0, 0),
    kind: ScoreKind = "likelihood",
    beside: bool = True,
) -> Scores:
    """Test every recipient (row of `bits`) against the cover classes that show in the leak.

    `shows`: 1 where a class is in the leak, 0 where it is not, between where it is not sure (see `Leak`). `kept`: of the
    classes that all recipients hold, how many show and how many do not. `beside`: test each recipient beside others too, for
    the likelihood score and codes for two or more.
    """
    leak = Leak(code.p, shows.astype(float), code.coalition, kept)
    first = Context.first(leak)
    deviations, tails, exact = _test(first, bits, kind)
    alone = Scores(kind, first.theta, deviations, tails, ((),) * len(bits), np.full(len(bits), exact))
    more = beside and kind == "likelihood" and code.coalition > 1 and len(bits) > 1
    return _beside(Path.of(leak, bits), bits, alone) if more else alone


def _test(context: Context, bits: np.ndarray, kind: ScoreKind = "likelihood") -> tuple[np.ndarray, np.ndarray, bool]:
    """For some recipients' bits: standard deviations above an innocent's mean, the tail, and whether that is exact."""
    steps = to_steps(weights(kind, context))
    null = Null.of(steps, context.leak.p)
    sums = bits @ steps
    tails, exact = null.tail(sums)
    deviations = (sums - null.mean) / null.deviation if null.deviation else np.zeros(len(bits))
    return deviations, tails, exact


def _beside(path: Path, bits: np.ndarray, alone: Scores) -> Scores:
    """Test each recipient in the contexts of its own path. Most have the same one, and share their tests."""
    p_value, chosen, sure = 3 * alone.p_value, list(alone.beside), alone.exact.copy()
    taken = path.contexts[-1].leakers
    rest = np.setdiff1d(np.arange(len(bits)), taken)
    for some, own in [(rest, path), *((np.array([i]), path.without(i, bits)) for i in taken)]:
        for context in own.tested[1:]:
            _, tails, exact = _test(context, bits[some])
            better = 3 * tails < p_value[some]
            p_value[some[better]], sure[some[better]] = 3 * tails[better], exact
            for i in some[better]:
                chosen[i] = context.leakers
    return replace(alone, p_value=np.minimum(p_value, 1.0), beside=tuple(chosen), exact=sure)


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

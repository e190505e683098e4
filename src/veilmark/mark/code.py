"""Collusion-secure codes: which recipient's copy holds which cover class.

A cover class is a real class that some copies hold and others do not. Class j is given to each recipient independently
with probability p[j]; the p are drawn once a release, by Tardos' density or by Nuida's finite distribution for a
coalition size. Everything follows from a secret key by HMAC and SHAKE alone, so that any machine and any version of
NumPy gives the same bits. Use a key of its own for each release (`derive`).

Tardos 2008; Škorić, Katzenbeisser and Celik 2008; Nuida et al. 2009.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, cast

import numpy as np

from veilmark.errors import OptionError

Kind = Literal["nuida", "tardos", "random"]
KINDS: tuple[Kind, ...] = ("nuida", "tardos", "random")

RESERVE = 0.25
"""A release that is to name one leaker does so if this share of the classes is left out or says nothing."""

_ONE = 2.0**32  # probabilities are whole multiples of 1/_ONE, so that comparing 32 random bits is exact
_TARDOS_POINTS = 64


@dataclass(frozen=True, eq=False)
class Code:
    """`p[j]`: the probability that a recipient holds cover class j."""

    kind: Kind
    coalition: int
    p: np.ndarray

    @property
    def length(self) -> int:
        return len(self.p)

    @property
    def withheld(self) -> float:
        """The share of the cover classes that a recipient does not get, on average."""
        return float(1 - self.p.mean()) if self.length else 0.0

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "coalition": self.coalition, "length": self.length, "withheld": self.withheld}


Numbers = Callable[[str], np.ndarray]
"""Keyed random numbers of the classes of a code, 64 bits each, for a purpose."""


def make_code(key: bytes | Numbers, kind: str, coalition: int, length: int, share_withheld: float = 0.5) -> Code:
    """The code of a key, or of keyed numbers of its classes; a recipient gets all but `share_withheld` of the classes, on
    average."""
    if length < 0:
        raise OptionError(f"The length of a code must be 0 or more, not {length}.")
    points, weights = distribution(kind, coalition, share_withheld)
    share = (np.arange(length) + 0.5) / max(length, 1)
    # Each point gets its due number of classes (a random number would only add variance); the key says which ones.
    nth = np.searchsorted(np.round(np.cumsum(weights), 12), share).clip(max=len(points) - 1)
    numbers = stream(key, "order", length, "<u8") if isinstance(key, bytes) else key("order")
    order = np.argsort(numbers, kind="stable")
    p = np.empty(length)
    p[order] = np.round(points[nth] * _ONE) / _ONE
    return Code(cast(Kind, kind), coalition, p)


def distribution(kind: str, coalition: int, share_withheld: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """The values of p and their shares."""
    if kind not in KINDS:
        raise OptionError(f"There is no code '{kind}'. Codes are {', '.join(KINDS)}.")
    if coalition < 1:
        raise OptionError(f"A coalition has at least 1 member, not {coalition}.")
    points, weights = _tardos(coalition) if kind == "tardos" else _nuida(1 if kind == "random" else coalition)
    low, high = (1 - points.max(), 1 - points.min()) if len(points) > 1 else (0.0, 1.0)
    if not low < share_withheld < high:
        raise OptionError(
            f"A {kind} code for {coalition} can withhold a share between {low:.2f} and {high:.2f} of its classes, "
            f"not {share_withheld}. 0.5 needs the fewest classes."
        )
    return (
        (points, _lean(points, weights, share_withheld))
        if len(points) > 1
        else (np.array([1 - share_withheld]), weights)
    )


def _tardos(coalition: int) -> tuple[np.ndarray, np.ndarray]:
    """p = sin²r, r uniform where p is at least 1/(300c) from 0 and 1; taken at points of equal probability."""
    cut = math.asin(math.sqrt(1 / (300 * coalition)))
    middle = (np.arange(_TARDOS_POINTS) + 0.5) / _TARDOS_POINTS
    points = np.sin(cut + middle * (math.pi / 2 - 2 * cut)) ** 2
    return points, np.full(_TARDOS_POINTS, 1 / _TARDOS_POINTS)


def _nuida(coalition: int) -> tuple[np.ndarray, np.ndarray]:
    """The zeros x of Legendre's polynomial L of degree ⌈c/2⌉, as (1+x)/2, with shares like 1/((1-x²)^(3/2)·L'(x)²)."""
    degree = (coalition + 1) // 2
    x, _ = np.polynomial.legendre.leggauss(degree)
    slope = np.polynomial.legendre.Legendre.basis(degree).deriv()(x)
    weights = 1 / ((1 - x**2) ** 1.5 * slope**2)
    return (1 + x) / 2, weights / weights.sum()


def _lean(points: np.ndarray, weights: np.ndarray, share_withheld: float) -> np.ndarray:
    """Shares with more weight on the larger p, so that fewer classes are withheld; as they are, half."""
    if share_withheld == 0.5:
        return weights
    low, high = -2000.0, 2000.0
    for _ in range(100):
        lean = (low + high) / 2
        leant = weights * np.exp(lean * (points - (points.max() if lean > 0 else points.min())))
        leant /= leant.sum()
        low, high = (lean, high) if leant @ (1 - points) > share_withheld else (low, lean)
    return leant


def bits(key: bytes | Numbers, names: Sequence[str], code: Code) -> np.ndarray:
    """Row i: which cover classes recipient i's copy holds. A row depends on the key, or the keyed numbers of the classes,
    and the name alone."""
    if len(set(names)) < len(names):
        raise OptionError("Two recipients have the same name. Give each recipient a different name.")
    limit = (code.p * _ONE).astype(np.uint64)
    held = np.empty((len(names), code.length), dtype=bool)
    for row, name in zip(held, names, strict=True):
        own = stream(key, f"bits {name}", code.length, "<u4") if isinstance(key, bytes) else key(f"bits {name}") >> 32
        np.less(own, limit, out=row)
    return held


def derive(key: bytes, label: str) -> bytes:
    """A key for one purpose; it tells nothing of the first key or of keys for other purposes."""
    if len(key) < 16:
        raise OptionError(f"A key needs at least 16 bytes, but this one has {len(key)}.")
    return hmac.new(key, f"veilmark code 1 {label}".encode(), hashlib.sha256).digest()


def stream(key: bytes, label: str, count: int, kind: str) -> np.ndarray:
    """`count` uniform whole numbers of a NumPy type, little-endian."""
    size = np.dtype(kind).itemsize
    return np.frombuffer(hashlib.shake_256(derive(key, label)).digest(size * count), dtype=kind)


# A leaker's evidence, -ln p, grows with the length m of the code as A·t² + B·t ± G·t, t = √m/c: the best of the coalition
# against the worst of the ways to mix, by simulation with 30 recipients (docs/codes.md). For 1, for 2, for 3 and more.
_GROWTH: dict[str, tuple[tuple[float, float, float], ...]] = {
    "nuida": ((0.69, 0.0, 0.3), (0.88, 0.45, 0.63), (0.78, 1.2, 0.98)),
    "tardos": ((0.41, 0.0, 0.52), (0.54, 0.1, 0.7), (0.4, 1.1, 0.86)),
}


@dataclass(frozen=True)
class Needed:
    """How many cover classes a code of this kind needs."""

    kind: Kind
    length: int

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "length": self.length}


def needed_length(
    recipients: int,
    coalition: int,
    false_accusation: float = 1e-6,
    power: float = 0.99,
    kind: str | None = None,
    share_withheld: float = 0.5,
    deletions: float = 0.0,
) -> Needed:
    """The code, and its length, that names one of `coalition` leakers with probability `power`, mix as they may.

    Without a kind, the one that needs fewer classes. `deletions`: the share of classes that leakers leave out besides.
    """
    if kind is None:
        both = [
            needed_length(recipients, coalition, false_accusation, power, k, share_withheld, deletions) for k in _GROWTH
        ]
        return min(both, key=lambda needed: needed.length)
    if kind not in _GROWTH:
        raise OptionError(f"The necessary length of a code '{kind}' is not known. Use {' or '.join(_GROWTH)}.")
    _check(recipients, coalition, false_accusation, power, share_withheld, deletions)
    a, b, g = _GROWTH[kind][min(coalition, 3) - 1]
    slope = b - g * NormalDist().inv_cdf(power)
    t = (math.sqrt(slope**2 + 4 * a * _demand(recipients, false_accusation)) - slope) / (2 * a)
    leaning = 1 + 10 * (0.5 - share_withheld) ** 2  # more classes, of which fewer are withheld
    thinning = (1 + 2.5 * deletions) / (1 - deletions)
    return Needed(cast(Kind, kind), math.ceil((t * coalition) ** 2 * leaning * thinning))


def release_length(recipients: int, coalition: int, false_accusation: float) -> Needed:
    """The code of a release, and its length: with a reserve where one leaker is to be found, who may drop classes or change
    values. A code for more has it in its length already, against mixing."""
    reserve = RESERVE if coalition == 1 else 0.0
    return needed_length(recipients, coalition, false_accusation, deletions=reserve)


def coalition_withstood(
    length: int,
    recipients: int,
    false_accusation: float = 1e-6,
    power: float = 0.99,
    kind: str | None = None,
    share_withheld: float = 0.5,
    deletions: float = 0.0,
) -> int:
    """The largest coalition for which `length` classes are enough; 0 where not even one leaker is found."""
    rest = (false_accusation, power, kind, share_withheld, deletions)
    enough = (needed_length(recipients, c, *rest).length <= length for c in range(1, recipients + 1))
    return sum(itertools.takewhile(bool, enough))


def _demand(recipients: int, false_accusation: float) -> float:
    """-ln p at which one is named: all recipients are tested, by decoys and by covers. The more there are, the harder it is
    to find the others of a coalition among them."""
    return math.log(2 * recipients / false_accusation) + max(0.0, math.log(recipients / 30))


def _check(
    recipients: int, coalition: int, false_accusation: float, power: float, share_withheld: float, deletions: float
) -> None:
    if not 1 <= coalition <= recipients:
        raise OptionError(
            f"The coalition size is {coalition}, but it must be from 1 to {recipients}, the number of recipients."
        )
    if not 0 < false_accusation < 1:
        raise OptionError(f"The probability of a false accusation must lie between 0 and 1, not {false_accusation:g}.")
    if not 0 < power < 1:
        raise OptionError(f"The probability of finding a leaker must lie between 0 and 1, not {power:g}.")
    if not 0 <= deletions < 1:
        raise OptionError(f"The share of classes that leakers leave out must lie between 0 and 1, not {deletions:g}.")
    if not 0.4 <= share_withheld <= 0.5:
        raise OptionError(
            f"The necessary length of a code is known only if the share withheld is 0.4 to 0.5, not {share_withheld}."
        )

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
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from veilmark.errors import OptionError

Kind = Literal["nuida", "tardos", "random"]
KINDS: tuple[Kind, ...] = ("nuida", "tardos", "random")

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


def make_code(key: bytes, kind: str, coalition: int, length: int, share_withheld: float = 0.5) -> Code:
    """The code of a key. `share_withheld` is for kind 'random' alone: one probability for every class."""
    if length < 0:
        raise OptionError(f"A code needs a length of 0 or more, not {length}.")
    points, weights = distribution(kind, coalition, share_withheld)
    share = (np.arange(length) + 0.5) / max(length, 1)
    # Each point gets its due number of classes (a random number would only add variance); the key says which ones.
    nth = np.searchsorted(np.round(np.cumsum(weights), 12), share).clip(max=len(points) - 1)
    order = np.argsort(_stream(key, "order", length, "<u8"), kind="stable")
    p = np.empty(length)
    p[order] = np.round(points[nth] * _ONE) / _ONE
    return Code(cast(Kind, kind), coalition, p)


def distribution(kind: str, coalition: int, share_withheld: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """The values of p and their shares."""
    if kind not in KINDS:
        raise OptionError(f"There is no code '{kind}'. Codes are {', '.join(KINDS)}.")
    if coalition < 1:
        raise OptionError(f"A coalition has at least 1 member, not {coalition}.")
    if kind == "tardos":
        return _tardos(coalition)
    if kind == "nuida":
        return _nuida(coalition)
    if not 0 < share_withheld < 1:
        raise OptionError(f"The share of classes to withhold must lie between 0 and 1, not {share_withheld}.")
    return np.array([1 - share_withheld]), np.ones(1)


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


def bits(key: bytes, names: Sequence[str], code: Code) -> np.ndarray:
    """Row i: which cover classes recipient i's copy holds. A row depends on the key and the name alone."""
    if len(set(names)) < len(names):
        raise OptionError("Two recipients have the same name. Give each a name of its own.")
    limit = (code.p * _ONE).astype(np.uint64)
    held = np.empty((len(names), code.length), dtype=bool)
    for row, name in zip(held, names, strict=True):
        np.less(_stream(key, f"bits {name}", code.length, "<u4"), limit, out=row)
    return held


def derive(key: bytes, label: str) -> bytes:
    """A key for one purpose; it tells nothing of the first key or of keys for other purposes."""
    if len(key) < 16:
        raise OptionError(f"A key needs at least 16 bytes, and this one has {len(key)}.")
    return hmac.new(key, f"veilmark code 1 {label}".encode(), hashlib.sha256).digest()


def _stream(key: bytes, label: str, count: int, kind: str) -> np.ndarray:
    """`count` uniform whole numbers of a NumPy type, little-endian."""
    size = np.dtype(kind).itemsize
    return np.frombuffer(hashlib.shake_256(derive(key, label)).digest(size * count), dtype=kind)

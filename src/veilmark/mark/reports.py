"""Reports: would decoys stand out in a release, and how many recipients can it serve? (AnonTokens, sections 6 and 7)

With `discover.feasibility` these are the paper's three questions, for one's own data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from veilmark.mark.discover import Feasibility, Linked
from veilmark.mark.marking import CopyMarking, Strategy
from veilmark.mark.plan import decoy_pool
from veilmark.mark.pool import room
from veilmark.mark.strata import stratified

STRATEGIES: tuple[Strategy, ...] = ("random", "size", "risk", "stratified")
POINTS = 200
"""A curve of risks is kept at no more ranks than that."""


@dataclass(frozen=True)
class Bin:
    """How many released classes have `low` to `high` records."""

    low: int
    high: int
    classes: int

    def to_dict(self) -> dict[str, int]:
        return dict(vars(self))


@dataclass(frozen=True)
class Detectability:
    """Table 5 and Figures 2 and 3 of the paper.

    `near_k` released classes have k to ⌈1.1k⌉ records (`near_limit`), so that a decoy class of that size is one of many.
    `curve` are (rank, multiple): the candidates' risks in ascending order, in multiples of the release's highest.
    """

    classes: int
    near_k: int
    near_limit: int
    sizes: tuple[Bin, ...]
    candidates: int
    up_to_1_2: int
    up_to_1_5: int
    above_4: int
    curve: tuple[tuple[int, float], ...]

    @property
    def highest(self) -> float | None:
        """The largest multiple of the release's highest risk; None without candidates."""
        return self.curve[-1][1] if self.curve else None

    def to_dict(self) -> dict[str, Any]:
        sizes = [of.to_dict() for of in self.sizes]
        return {**vars(self), "highest": self.highest, "sizes": sizes, "curve": [list(p) for p in self.curve]}


def near_limit(k: int) -> int:
    """⌈1.1k⌉, exactly."""
    return -(-11 * k // 10)


def detectability(linked: Linked, k: int, candidates: np.ndarray | None = None) -> Detectability:
    """Whether decoys would stand out; `candidates` is a mask, of those without members of the source if not given."""
    chosen = linked.candidates(k) if candidates is None else candidates
    sizes = linked.published[linked.published > 0]
    multiples = np.sort(linked.multiples()[chosen])
    return Detectability(
        len(sizes),
        int(((sizes >= k) & (sizes <= near_limit(k))).sum()),
        near_limit(k),
        size_bins(sizes, k),
        len(multiples),
        int((multiples <= 1.2).sum()),
        int((multiples <= 1.5).sum()),
        int((multiples > 4).sum()),
        _curve(multiples),
    )


def size_bins(sizes: np.ndarray, k: int) -> tuple[Bin, ...]:
    """Class sizes in bins that start at k, each √2 times as wide as the one before."""
    if not len(sizes):
        return ()
    steps = int(np.ceil(2 * np.log2(sizes.max() / k))) + 3  # so that the last edge lies beyond the largest size
    edges = np.unique(np.rint(k * 2.0 ** (np.arange(steps) / 2)).astype(np.int64))
    counts, _ = np.histogram(sizes, edges)
    last = int(np.flatnonzero(counts)[-1]) + 1
    pairs = zip(edges[:last].tolist(), edges[1 : last + 1].tolist(), counts[:last].tolist(), strict=True)
    return tuple(Bin(low, high - 1, count) for low, high, count in pairs)


def _curve(multiples: np.ndarray) -> tuple[tuple[int, float], ...]:
    """Some points of an ascending curve, evenly spread over the logarithm of the rank, both ends among them."""
    if not len(multiples):
        return ()
    ranks = np.unique(np.rint(np.geomspace(1, len(multiples), POINTS)).astype(np.int64))
    return tuple(zip(ranks.tolist(), multiples[ranks - 1].tolist(), strict=True))


@dataclass(frozen=True)
class Removal:
    """What hiding decoys costs by one way of choosing the classes that are withheld.

    `classes` can serve: all of the release (stratified, random), those of k to ⌈1.1k⌉ records (size), those that link to at
    most ⌈1.1 minLink⌉ persons (risk). `recipients` are served within the budget, `recipients_at_most` without one. For the
    number of recipients asked for, a copy lacks at most `records`, a `share` of the release; `loss` is the copy's
    discernibility, withheld records counted as suppressed, as a share of the largest there can be. These are None
    where the release has too few classes.
    """

    strategy: Strategy
    classes: int
    recipients: int | None
    recipients_at_most: int | None
    withheld_classes: int
    records: int | None
    share: float | None
    loss: float | None

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Scalability:
    """How many recipients a release can serve, and at what cost.

    `pool` are the decoy classes that could be drawn; they serve `recipients_by_decoys`. A copy gains `added` records on
    average. `seen_once` is P(decoy | a class is in one copy only). `loss` is the discernibility before.
    """

    asked: int
    decoys: int
    covers: int
    budget: float
    pool: int
    recipients_by_decoys: int | None
    added: float
    seen_once: float
    loss: float
    removals: tuple[Removal, ...]

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "removals": {r.strategy: r.to_dict() for r in self.removals}}


def scalability(linked: Linked, marking: CopyMarking, seed: int = 1, rounds: int = 10) -> Scalability:
    """How many recipients can be served with the decoys and covers asked for, by each way to choose covers.

    Of several draws (`rounds`), the one that costs most is reported, as the paper does.
    """
    # A pool for no decoys at all is never refused.
    pool = decoy_pool(linked, replace(marking, decoys=0, covers=1, collusion=None))
    rng = np.random.default_rng(seed)
    marked = marking.decoys + marking.covers
    return Scalability(
        len(marking.recipients),
        marking.decoys,
        marking.covers,
        marking.budget,
        len(pool),
        len(pool) // marking.decoys if marking.decoys else None,
        marking.decoys * _mean_size(linked, pool),
        marking.decoys / marked if marked else 0.0,
        _loss(linked),
        tuple(_removal(linked, marking, strategy, rng, rounds) for strategy in STRATEGIES),
    )


def _mean_size(linked: Linked, pool: np.ndarray) -> float:
    """The mean number of records of a decoy class: any released size up to what the class can give is as likely."""
    if not len(pool):
        return 0.0
    sizes = np.sort(linked.published[linked.published > 0])
    until = np.searchsorted(sizes, room(linked)[pool], side="right")
    return float((np.cumsum(sizes)[until - 1] / until).mean())


def _loss(linked: Linked, withheld: np.ndarray | None = None) -> float:
    """Discernibility, classes left out counted |E|·N, over N²."""
    kept = linked.published.astype(np.float64)
    everyone = float(kept.sum() + linked.suppressed.sum())
    if withheld is not None:
        kept[withheld] = 0
    return float((kept**2).sum() + (everyone - kept.sum()) * everyone) / max(everyone, 1.0) ** 2


def _removal(
    linked: Linked, marking: CopyMarking, strategy: Strategy, rng: np.random.Generator, rounds: int
) -> Removal:
    released = np.flatnonzero(linked.published > 0)
    names, covers = len(marking.recipients), marking.covers
    fit = len(_fitting(linked, marking.k, strategy, released))
    withheld = (names - 1) * covers
    within = int(marking.budget * fit) // covers if covers else None
    at_most = fit // covers if covers else None
    if names * covers > len(released):
        return Removal(strategy, fit, within, at_most, withheld, None, None, None)
    drawn = _rounds(linked, marking, strategy, released, rng, rounds)
    records, loss = max(_worst_copy(linked, own) for own in drawn)
    share = records / max(int(linked.published.sum()), 1)
    return Removal(strategy, fit, within, at_most, withheld, records, share, loss)


def _fitting(linked: Linked, k: int, strategy: Strategy, released: np.ndarray) -> np.ndarray:
    if strategy == "size":
        return released[linked.published[released] <= near_limit(k)]
    if strategy == "risk":
        links = linked.population[released]
        return released[(links > 0) & (links <= near_limit(linked.min_link))]
    return released


def _rounds(
    linked: Linked,
    marking: CopyMarking,
    strategy: Strategy,
    released: np.ndarray,
    rng: np.random.Generator,
    rounds: int,
) -> Iterator[np.ndarray]:
    """Draw after draw, the classes that each recipient alone has: a row a recipient."""
    rank = {"size": linked.published, "risk": np.where(linked.population > 0, linked.population, 1 << 62)}
    names, covers = len(marking.recipients), marking.covers
    for _ in range(rounds):
        if strategy == "stratified":
            chance = rng.random(int((linked.published > 0).sum()))
            yield rng.permutation(stratified(linked, names * covers, chance)).reshape(names, covers)
            continue
        order = rng.permutation(released)
        if strategy in rank:
            order = order[np.argsort(rank[strategy][order], kind="stable")]
        yield rng.permutation(order[: names * covers]).reshape(names, covers)


def _worst_copy(linked: Linked, own: np.ndarray) -> tuple[int, float]:
    """The records and the loss of the copy that lacks most: all covers but its own."""
    records = linked.published[own].sum(axis=1)
    worst = int(np.argmin(records))
    others = np.delete(own, worst, axis=0).ravel()
    return int(records.sum() - records[worst]), _loss(linked, others)


@dataclass(frozen=True)
class Reports:
    """The three reports of a release with one k and one limit of suppression."""

    k: int
    suppression: float
    levels: Mapping[str, int]
    records: int
    suppressed: int
    feasibility: Feasibility
    detectability: Detectability
    scalability: Scalability

    def to_dict(self) -> dict[str, Any]:
        return {
            "k": self.k,
            "suppression": self.suppression,
            "levels": dict(self.levels),
            "records": self.records,
            "suppressed": self.suppressed,
            "feasibility": self.feasibility.to_dict(),
            "detectability": self.detectability.to_dict(),
            "scalability": self.scalability.to_dict(),
        }

"""Plan: which recipient gets which decoys, and which real classes are withheld from whom, with what it costs.

Everything is drawn by a key, so that nobody without it can tell, and so that the probability of accusing an innocent
recipient rests on nothing else: each recipient's decoy classes are a random choice from the pool, each bit of the code is
a coin of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from veilmark.errors import OptionError
from veilmark.mark.code import Code, bits, derive, make_code, needed_length, stream
from veilmark.mark.discover import Linked

Strategy = Literal["size", "random", "risk"]


@dataclass(frozen=True)
class Marking:
    """What is asked for.

    Each recipient gets `decoys` classes of its own, with `risk` times the release's highest risk. Either `covers` real
    classes are kept for each recipient alone (the paper), or a code withholds classes so that `collusion` recipients
    together cannot hide (one of them is found). `strategy` says which classes are withheld: small ones, random ones or
    risky ones; at most the share `budget` of all classes.
    """

    recipients: tuple[str, ...]
    k: int
    decoys: int = 3
    covers: int = 0
    collusion: int | None = None
    false_accusation: float = 1e-6
    risk: tuple[float, float] = (1.1, 1.5)
    strategy: Strategy = "size"
    budget: float = 0.5

    def __post_init__(self) -> None:
        names = self.recipients
        twice = [name for i, name in enumerate(names) if name in names[:i]]
        if not names or any(not name.strip() for name in names):
            raise OptionError("Name at least one recipient: --recipients ada,bob.")
        if twice:
            raise OptionError(f"The recipient '{twice[0]}' is named twice. Give each a name of its own.")
        if self.decoys < 0 or self.covers < 0:
            raise OptionError("The numbers of decoy and cover classes must be 0 or more.")
        if self.covers and self.collusion:
            raise OptionError("Give --covers or --collusion, not both: they are two ways to hide decoys.")
        if self.collusion is not None and not 1 <= self.collusion <= len(names):
            raise OptionError(
                f"A coalition has 1 to {len(names)} members, as there are {len(names)} recipients, not {self.collusion}."
            )
        if not 0 < self.false_accusation < 1:
            raise OptionError(
                f"The probability of a false accusation must lie between 0 and 1, not {self.false_accusation:g}. Try 1e-6."
            )
        if not 0 < self.risk[0] <= self.risk[1]:
            raise OptionError(
                f"The risk range must rise from above 0, such as 1.1:1.5, not {self.risk[0]}:{self.risk[1]}."
            )
        if not 0 < self.budget <= 1:
            raise OptionError(
                f"The budget is the share of classes that may be withheld, above 0 to 1, not {self.budget:g}."
            )


@dataclass(frozen=True, eq=False)
class Marks:
    """Who gets what. `pool` are the classes that decoys were drawn from, `decoys[i]` those of recipient i. `covers` are the
    classes that not everybody gets, `holds[i, j]` says whether recipient i gets cover j; `code` says by which chances."""

    marking: Marking
    linked: Linked = field(repr=False)
    pool: np.ndarray
    decoys: tuple[np.ndarray, ...]
    covers: np.ndarray
    holds: np.ndarray
    code: Code | None

    def withheld(self, recipient: int) -> np.ndarray:
        """The classes that a recipient does not get."""
        return self.covers[~self.holds[recipient]]

    @property
    def seen_once(self) -> float:
        """P(decoy | a class is in one copy only), as the paper has it: n_d/(n_d + n_e), over all copies."""
        decoys = sum(map(len, self.decoys))
        alone = int((self.holds.sum(axis=0) == 1).sum())
        return decoys / (decoys + alone) if decoys else 0.0

    def cost(self) -> dict[str, Any]:
        """What the marks cost, as a dry run shows it."""
        published = self.linked.published
        records = [int(published[self.withheld(i)].sum()) for i in range(len(self.decoys))]
        return {
            "pool": len(self.pool),
            "covers": len(self.covers),
            "withheld_share": max(records, default=0) / max(int(published.sum()), 1),
            "seen_once": self.seen_once,
            "code": None if self.code is None else self.code.to_dict(),
        }


def plan_marks(linked: Linked, marking: Marking, key: bytes) -> Marks:
    """Draw decoys and covers; what the data cannot carry is refused, with the most that they can."""
    pool = decoy_pool(linked, marking)
    drawn = _draw_decoys(pool, marking, key)
    covers, holds, code = _by_code(linked, marking, key) if marking.collusion else _alone(linked, marking, key)
    return Marks(marking, linked, pool, drawn, covers, holds, code)


def decoy_pool(linked: Linked, marking: Marking) -> np.ndarray:
    """The candidates within the risk range; there must be enough for all recipients."""
    candidates = linked.candidates(marking.k)
    multiple = linked.multiples()
    low, high = marking.risk
    pool = np.flatnonzero(candidates & (multiple >= low) & (multiple <= high))
    needed = marking.decoys * len(marking.recipients)
    if len(pool) < needed:
        raise OptionError(_too_few(linked, marking, len(pool), int(candidates.sum())))
    return pool


def _too_few(linked: Linked, marking: Marking, found: int, anywhere: int) -> str:
    names, low, high = len(marking.recipients), *marking.risk
    most = found // names
    carried = f"{most} for each of {names} recipients" if most else f"1 for each of {found} recipients"
    multiples = linked.multiples()[linked.candidates(marking.k)]
    reach = f" The candidates' risks are {multiples.min():.2f} to {multiples.max():.2f} times." if anywhere else ""
    return (
        f"{marking.decoys * names:,} decoy classes are needed, and the population has {found:,} with {low:g} to "
        f"{high:g} times the release's highest risk ({anywhere:,} with any).{reach} It can carry "
        f"{carried if found else 'none'}. Widen --risk, ask for fewer decoys, allow more suppression, or use a larger population."
    )


def _draw_decoys(pool: np.ndarray, marking: Marking, key: bytes) -> tuple[np.ndarray, ...]:
    order = pool[keyed_order(key, "decoys", len(pool))]
    size = marking.decoys
    return tuple(np.sort(order[i * size : (i + 1) * size]) for i in range(len(marking.recipients)))


def _alone(linked: Linked, marking: Marking, key: bytes) -> tuple[np.ndarray, np.ndarray, None]:
    """Classes kept for one recipient alone."""
    names, size = len(marking.recipients), marking.covers
    ranked = _ranked(linked, marking.strategy, key)
    room = int(marking.budget * len(ranked))
    if names * size > room:
        raise OptionError(
            f"{size} cover classes for each of {names} recipients withhold {names * size:,} of {len(ranked):,} classes, "
            f"more than the budget of {marking.budget:.0%} allows. At most {room // names} each are possible: lower "
            "--covers, or raise --budget."
        )
    covers = ranked[: names * size]
    covers = covers[keyed_order(key, "covers", len(covers))]
    holds = np.zeros((names, len(covers)), dtype=bool)
    holds[np.repeat(np.arange(names), size), np.arange(len(covers))] = True
    return covers, holds, None


def _by_code(linked: Linked, marking: Marking, key: bytes) -> tuple[np.ndarray, np.ndarray, Code]:
    """Classes withheld by a collusion-secure code."""
    coalition, names = marking.collusion or 1, len(marking.recipients)
    ranked = _ranked(linked, marking.strategy, key)
    room = int(marking.budget * len(ranked))
    found = needed_length(names, coalition, marking.false_accusation)
    if found.length > room:
        reachable = [c for c in range(1, coalition) if needed_length(names, c, marking.false_accusation).length <= room]
        most = f"coalitions of {reachable[-1]}" if reachable else "none"
        raise OptionError(
            f"A code for {names} recipients that finds one of {coalition} who collude needs {found.length:,} cover classes; "
            f"the release has {len(ranked):,}, and the budget of {marking.budget:.0%} allows {room:,}. These carry {most} "
            "at this probability of false accusation. Lower --collusion, raise --false-accusation or --budget, or release a "
            "table with more classes (a smaller k, more suppression)."
        )
    covers = ranked[: found.length]
    code = make_code(derive(key, "code"), found.kind, coalition, found.length)
    return covers, bits(derive(key, "code"), marking.recipients, code), code


def _ranked(linked: Linked, strategy: Strategy, key: bytes) -> np.ndarray:
    """The released classes, those to be withheld first at the front; ties as the key has it."""
    released = np.flatnonzero(linked.published > 0)
    by_chance = released[keyed_order(key, "ranked", len(released))]
    if strategy == "random":
        return by_chance
    rank = linked.published if strategy == "size" else np.where(linked.population > 0, linked.population, 1 << 62)
    return by_chance[np.argsort(rank[by_chance], kind="stable")]


def keyed_order(key: bytes, label: str, count: int) -> np.ndarray:
    """A permutation that follows from the key alone."""
    return np.argsort(stream(key, label, count, "<u8"), kind="stable")


def sizes_like(linked: Linked, k: int, room: Sequence[int] | np.ndarray, key: bytes) -> np.ndarray:
    """A number of records for each decoy class, k to its room, as often as the released classes have it."""
    sizes = np.sort(linked.published[linked.published >= k])
    most = np.asarray(room)
    until = np.maximum(np.searchsorted(sizes, most, side="right"), 1)
    draw = stream(key, "sizes", len(most), "<u4") % until
    return np.minimum(np.maximum(sizes[draw] if len(sizes) else k, k), most)

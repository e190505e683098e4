"""Plan: which recipient gets which decoys, and which real classes are withheld from whom, with what it costs.

Everything is drawn by a key, so that nobody without it can tell, and so that the probability of accusing an innocent
recipient rests on nothing else: each recipient's decoy classes are a random choice from the pool, each bit of the code is
a coin of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from veilmark.errors import OptionError
from veilmark.mark.code import Code, bits, derive, make_code, needed_length, stream
from veilmark.mark.discover import Linked

Strategy = Literal["size", "random", "risk"]

SPARE = 1.5
"""Where classes are suppressed for the sake of decoys, so many times as many candidates as needed are sought: some of their
persons may not be told from others."""


@dataclass(frozen=True)
class Marking:
    """What is asked for.

    Each recipient gets `decoys` classes of its own, with `risk` times the release's highest risk. Either `covers` real
    classes are kept for each recipient alone (the paper), or a code withholds classes so that `collusion` recipients
    together cannot hide (one of them is found). `strategy` says which classes are withheld: small ones, random ones or
    risky ones; at most the share `budget` of all classes. Where the release is a biased sample of the population, decoys
    come from the share `near` of their pool that is nearest to it.
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
    near: float = 1.0

    def __post_init__(self) -> None:
        names = self.recipients
        twice = [name for i, name in enumerate(names) if name in names[:i]]
        if not names or any(not name.strip() for name in names):
            raise OptionError("Name at least one recipient: --recipients ada,bob.")
        if twice:
            raise OptionError(f"The recipient '{twice[0]}' is named twice. Give each a name of its own.")
        if self.decoys < 0 or self.covers < 0:
            raise OptionError("The numbers of decoy and cover classes must be 0 or more.")
        if not (self.decoys or self.covers or self.collusion):
            raise OptionError("Nothing would tell the copies apart. Ask for --decoys, --covers or --collusion.")
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
        if not 0 < self.near <= 1:
            raise OptionError(f"--near is a share of the candidates, above 0 to 1, not {self.near:g}.")


@dataclass(frozen=True, eq=False)
class Marks:
    """Who gets what. `pool` are the classes that decoys were drawn from, `decoys[i]` those of recipient i and `sizes[i]` how
    many records each has. `patterns[i]` are the released classes whose other values they take, where these must be as
    diverse as those. `covers` are the classes that not everybody gets, `holds[i, j]` says whether recipient i gets cover j;
    `code` says by which chances."""

    marking: Marking
    linked: Linked = field(repr=False)
    pool: np.ndarray
    decoys: tuple[np.ndarray, ...]
    sizes: tuple[np.ndarray, ...]
    patterns: tuple[np.ndarray, ...] | None
    covers: np.ndarray
    holds: np.ndarray
    code: Code | None

    def withheld(self, recipient: int) -> np.ndarray:
        """The classes that a recipient does not get."""
        return self.covers[~self.holds[recipient]]

    @property
    def seen_once(self) -> float:
        """P(decoy | a class is in one copy only), the paper's n_d/(n_d + n_e): of all copies; with a code, of as many as it
        is made for, on average."""
        decoys = float(sum(map(len, self.decoys)))
        alone = float((self.holds.sum(axis=0) == 1).sum())
        if self.code is not None:
            p, others = self.code.p, self.compared - 1
            decoys, alone = float(self.marking.decoys), float((p * (1 - p) ** others).sum())
        return decoys / (decoys + alone) if decoys else 0.0

    @property
    def compared(self) -> int:
        """How many copies that is."""
        names = len(self.marking.recipients)
        return names if self.code is None else min(max(self.code.coalition, 2), names)

    def cost(self) -> dict[str, Any]:
        """What the marks cost, as a dry run shows it."""
        published = self.linked.published
        records = [int(published[self.withheld(i)].sum()) for i in range(len(self.decoys))]
        return {
            "pool": len(self.pool),
            "covers": len(self.covers),
            "withheld_share": max(records, default=0) / max(int(published.sum()), 1),
            "seen_once": self.seen_once,
            "compared": self.compared,
            "code": None if self.code is None else self.code.to_dict(),
        }

    def loss(self, before: Mapping[str, float]) -> dict[str, float]:
        """What a copy loses on average: withheld records count as suppressed ones, decoys as records. Labels stay as they
        are, and so do the metrics that look at them (gcp, lm, precision, entropy)."""
        published = self.linked.published.astype(float)
        everyone = published.sum() + self.linked.suppressed.sum()
        added, lost, average = [], [], []
        for i, sizes in enumerate(self.sizes):
            gone = published[self.withheld(i)]
            added.append(float((sizes.astype(float) ** 2).sum()))
            lost.append(float((gone * everyone - gone**2).sum()))
            classes = int((published > 0).sum()) - len(gone) + len(sizes)
            average.append((published.sum() - gone.sum() + sizes.sum()) / max(classes, 1))
        return {
            "dm_star": before["dm_star"] + float(np.mean(added)),
            "dm": before["dm"] + float(np.mean(added) + np.mean(lost)),
            "average_class": float(np.mean(average)),
        }


def plan_marks(
    linked: Linked, marking: Marking, key: bytes, whole: bool = False, why: Callable[[], str] = str
) -> Marks:
    """Draw decoys and covers; what the data cannot carry is refused, with the most that they can.

    `whole`: a decoy class takes the other values of a released class, all of them, so that it is as diverse. `why` says,
    where there are too few candidates, what may be the cause.
    """
    pool = decoy_pool(linked, marking, why)
    drawn = _draw_decoys(pool, marking, key)
    covers, holds, code = _by_code(linked, marking, key) if marking.collusion else _alone(linked, marking, key)
    marks = Marks(marking, linked, pool, drawn, (), None, covers, holds, code)
    if whole:
        patterns = tuple(_patterns(marks, i) for i in range(len(drawn)))
        return replace(marks, patterns=patterns, sizes=tuple(linked.published[of] for of in patterns))
    names = marking.recipients
    sizes = [sizes_like(linked, room(linked)[of], derive(key, f"sizes {names[i]}")) for i, of in enumerate(drawn)]
    return replace(marks, sizes=tuple(sizes))


def room(linked: Linked) -> np.ndarray:
    """The persons of each class who can serve as decoys."""
    return linked.population if linked.outside is None else linked.outside


def decoy_pool(linked: Linked, marking: Marking, why: Callable[[], str] = str) -> np.ndarray:
    """The classes that decoys are drawn from; there must be enough for all recipients."""
    pool = candidate_pool(linked, marking)
    if len(pool) < marking.decoys * len(marking.recipients):
        raise OptionError(_too_few(linked, marking, len(pool), int(linked.candidates(marking.k).sum()), why))
    return pool


def candidate_pool(linked: Linked, marking: Marking) -> np.ndarray:
    """The candidates within the risk range that can be as large as a released class, the nearest ones of them if asked."""
    pool = np.flatnonzero(_in_range(linked, marking) & (room(linked) >= _smallest(linked)))
    if marking.near == 1:
        return pool
    order = np.argsort(linked.strangeness(pool), kind="stable")
    return np.sort(pool[order[: math.ceil(marking.near * len(pool))]])


def _in_range(linked: Linked, marking: Marking) -> np.ndarray:
    """A mask of the candidates within the risk range."""
    multiple = linked.multiples()
    low, high = marking.risk
    return linked.candidates(marking.k) & (multiple >= low) & (multiple <= high)


def _smallest(linked: Linked) -> int:
    """The records of the smallest released class."""
    return int(linked.published[linked.published > 0].min(initial=1 << 62))


def riskiest(linked: Linked, marking: Marking, allowance: int) -> np.ndarray:
    """The released classes to be suppressed as well so that there are decoys enough: those that link to the fewest persons,
    as few as will do, with at most so many records. One unlucky class may keep all candidates out. Empty where there are
    enough, or where it does not help."""
    needed = math.ceil(SPARE * marking.decoys * len(marking.recipients))
    released = np.flatnonzero((linked.published > 0) & (linked.population > 0))
    order = released[np.argsort(linked.population[released], kind="stable")]
    records = np.append(0, np.cumsum(linked.published[order]))
    steps = np.flatnonzero(np.diff(linked.population[order], prepend=-1))
    for step in steps[records[steps] <= allowance]:
        if len(candidate_pool(linked.without(order[:step]), marking)) >= needed:
            return order[:step]
    return order[:0]


def _too_few(linked: Linked, marking: Marking, found: int, anywhere: int, why: Callable[[], str]) -> str:
    names, low, high = len(marking.recipients), *marking.risk
    most = found // names
    carried = f"{most} for each of {names} recipients" if most else f"1 for each of {found} recipients"
    multiples = linked.multiples()[linked.candidates(marking.k)]
    reach = f" The candidates' risks are {multiples.min():.2f} to {multiples.max():.2f} times." if anywhere else ""
    near = f", and of these --near keeps {marking.near:.0%}" if marking.near < 1 else ""
    cause = "" if anywhere >= marking.decoys * names else why()
    return (
        f"{marking.decoys * names:,} decoy classes are needed, and the population has {found:,} that can serve with {low:g} "
        f"to {high:g} times the release's highest risk ({anywhere:,} with any){near}.{reach} It can carry "
        f"{carried if found else 'none'}. {cause or _remedy(linked, marking)}"
    )


def _remedy(linked: Linked, marking: Marking) -> str:
    """What to do where candidates are too few. A record of a decoy class is a person: where persons have many records, it is
    often their number that excludes candidates, and not their risk."""
    small = int((_in_range(linked, marking) & (room(linked) < _smallest(linked))).sum())
    wider = "Widen --risk, ask for fewer decoys, allow more suppression, or use a larger population."
    if not small:
        return wider
    said = (
        f"{small:,} more have such a risk, but fewer persons who can serve than the smallest released class has records "
        f"({_smallest(linked):,}), and every record of a decoy class is another person."
    )
    enough = 2 * small > int(_in_range(linked, marking).sum())
    return f"{said} {'Use a larger population, or a table with fewer records a person.' if enough else wider}"


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


def sizes_like(linked: Linked, most: np.ndarray, key: bytes) -> np.ndarray:
    """A number of records for each decoy class, at most `most`, as often as the released classes have it."""
    sizes = np.sort(linked.published[linked.published > 0])
    until = np.maximum(np.searchsorted(sizes, most, side="right"), 1)
    chosen: np.ndarray = sizes[stream(key, "sizes", len(most), "<u8") % until.astype(np.uint64)]
    return chosen


def _patterns(marks: Marks, recipient: int) -> np.ndarray:
    """For each of a recipient's decoy classes the nearest released class that is not too large: one that the recipient does
    not get, if there is, and none twice, if there are enough."""
    linked = marks.linked
    released = np.flatnonzero(linked.published > 0)
    seen = ~np.isin(released, marks.withheld(recipient))
    used = np.zeros(len(released), dtype=bool)
    chosen = []
    for name in marks.decoys[recipient]:
        fits = np.flatnonzero(linked.published[released] <= room(linked)[name])
        order = np.lexsort((linked.apart(int(name), released[fits]), seen[fits], used[fits]))
        chosen.append(fits[order[0]])
        used[chosen[-1]] = True
    return released[np.array(chosen, dtype=np.int64)]

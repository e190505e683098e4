"""Plan: which recipient gets which decoys, and which real classes are withheld from whom, with what it costs.

Everything is drawn by a key, so that nobody without it can tell, and so that the probability of accusing an innocent
recipient rests on nothing else: each recipient's decoy classes are a random choice from the pool, each bit of the code is
a coin of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmark.errors import OptionError
from veilmark.mark.code import Code, bits, derive, make_code, release_length, stream
from veilmark.mark.discover import Linked
from veilmark.mark.draw import ClassDraw
from veilmark.mark.marking import CopyMarking, Strategy
from veilmark.mark.pool import candidate_pool, in_range, room, sizes_like, smallest_class
from veilmark.mark.strata import Lost, lost_by_label, stratified
from veilmark.messages import param

if TYPE_CHECKING:
    from veilmark.mark.rowmarks import RowMarks


@dataclass(frozen=True, eq=False)
class Marks:
    """Who gets what. `pool` are the classes that decoys were drawn from, `decoys[i]` those of recipient i and `sizes[i]` how
    many records each has. `patterns[i]` are the classes whose other values they take, all of them; -1 for those that borrow
    from single records. `covers` are the classes that not everybody gets, `holds[i, j]` says whether recipient i gets cover
    j; `code` says by which chances, `cover_key` is what they are drawn by. `rows` are the single records that not everybody
    gets."""

    marking: CopyMarking
    linked: Linked = field(repr=False)
    pool: np.ndarray
    decoys: tuple[np.ndarray, ...]
    sizes: tuple[np.ndarray, ...]
    patterns: tuple[np.ndarray, ...]
    covers: np.ndarray
    holds: np.ndarray
    code: Code | None
    rows: RowMarks | None = None
    cover_key: bytes = field(default=b"", repr=False)

    def rows_withheld(self, recipient: int) -> int:
        """How many single records a recipient does not get, beside whole classes."""
        return 0 if self.rows is None else len(self.rows.withheld(recipient))

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

    def lost(self) -> dict[str, dict[str, Lost]]:
        """What copies lack of each group of persons."""
        return lost_by_label(self.linked, [self.lacking(i) for i in range(len(self.decoys))])

    def lacking(self, recipient: int) -> np.ndarray:
        """How many records of each class a recipient does not get: whole classes, and single records."""
        gone = np.zeros(len(self.linked), dtype=np.int64)
        gone[self.withheld(recipient)] = self.linked.published[self.withheld(recipient)]
        if self.rows is not None:
            gone += np.bincount(self.rows.owner[~self.rows.holds[recipient]], minlength=len(gone))
        return gone

    def cost(self) -> dict[str, Any]:
        """What the marks cost, as a dry run shows it."""
        published = self.linked.published
        names = range(len(self.decoys))
        records = [int(published[self.withheld(i)].sum()) + self.rows_withheld(i) for i in names]
        lost = self.lost()
        return {
            "lost": {column: {name: of.to_dict() for name, of in labels.items()} for column, labels in lost.items()},
            "most_lost": most_lost(lost).share if lost else 0.0,
            "pool": len(self.pool),
            "covers": len(self.covers),
            "row_marks": 0 if self.rows is None else len(self.rows),
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
    linked: Linked,
    marking: CopyMarking,
    key: bytes,
    whole: bool = False,
    why: Callable[[], str] = str,
    cover_key: bytes | None = None,
    pool: np.ndarray | None = None,
) -> Marks:
    """Draw decoys and covers; what the data cannot carry is refused, with the most that they can.

    Covers by a code follow from `cover_key` (without it, from `key`) and the labels of the classes alone: under the same
    one, a recipient has the same classes and lacks the same in release after release, so that comparing its own copies shows
    nothing, and what is in all of them is marked as each is. Covers kept for one recipient alone stay only where the same
    classes are released to the same recipients. `whole`: a decoy class takes the other values of a released
    class, all of them, so that it is as diverse. `why` says, where there are too few candidates, what may be the cause.
    `pool` are the classes to draw decoys from, if not all that can serve.
    """
    pool = decoy_pool(linked, marking, why) if pool is None else pool
    drawn = draw_decoys(pool, marking, key)
    cover_key = cover_key or key
    if not marking.collusion:
        cover_key = derive(cover_key, _shared_out(linked, marking))
    covers, holds, code = draw_covers(linked, marking, cover_key)
    marks = Marks(marking, linked, pool, drawn, (), (), covers, holds, code, cover_key=cover_key)
    check_lost(marks)
    names = marking.recipients
    patterns = tuple(_patterns(marks, i, whole) for i in range(len(drawn)))
    keys = [derive(key, f"sizes {name}") for name in names]
    sizes = [_sizes(linked, *of) for of in zip(drawn, patterns, keys, strict=True)]
    return replace(marks, patterns=patterns, sizes=tuple(sizes))


def _sizes(linked: Linked, classes: np.ndarray, patterns: np.ndarray, key: bytes) -> np.ndarray:
    """How many records each decoy class has: as many as the class whose values it takes, or as usual."""
    alone = sizes_like(linked, classes, room(linked)[classes], stream(key, "sizes", len(classes), "<u8"))
    sizes: np.ndarray = np.where(patterns >= 0, linked.source[patterns], alone)
    return sizes


def decoy_pool(linked: Linked, marking: CopyMarking, why: Callable[[], str] = str) -> np.ndarray:
    """The classes that decoys are drawn from; there must be enough for all recipients."""
    pool = candidate_pool(linked, marking)
    if len(pool) < marking.decoys * len(marking.recipients):
        raise OptionError(_too_few(linked, marking, len(pool), int(linked.candidates(marking.k).sum()), why))
    return pool


def _too_few(linked: Linked, marking: CopyMarking, found: int, anywhere: int, why: Callable[[], str]) -> str:
    names = len(marking.recipients)
    most = found // names
    carried = f"{most} for each of {names} recipients" if most else f"1 for each of {found} recipients"
    near = f", and {param('near')} keeps {marking.near:.0%} of these" if marking.near < 1 else ""
    cause = "" if anywhere >= marking.decoys * names else why()
    return (
        f"{marking.decoys * names:,} decoy classes are needed, but the population has {found:,} suitable "
        f"classes{_risks(linked, marking, anywhere, near)} That is enough for {carried if found else 'none'}. "
        f"{cause or _remedy(linked, marking)}"
    )


def _risks(linked: Linked, marking: CopyMarking, anywhere: int, near: str) -> str:
    """Which risks decoys are to have, and which the candidates have."""
    if marking.risk is None:
        return f"{near}."
    low, high = marking.risk
    multiples = linked.multiples()[linked.candidates(marking.k)]
    reach = f" The candidates' risks are {multiples.min():.2f} to {multiples.max():.2f} times." if anywhere else ""
    return f" with {low:g} to {high:g} times the release's highest risk ({anywhere:,} with any){near}.{reach}"


def _remedy(linked: Linked, marking: CopyMarking) -> str:
    """What to do where candidates are too few. A record of a decoy class is a person: where persons have many records, it is
    often their number that excludes candidates, and not their risk."""
    candidates = in_range(linked, marking)
    small = int((candidates & (room(linked) < smallest_class(linked))).sum())
    widen = "Ask" if marking.risk is None else f"Widen or omit {param('risk')}, ask"
    wider = f"{widen} for fewer decoys, allow more suppression, or use a larger population."
    if not small:
        return wider
    said = (
        f"{small:,} more classes have too few suitable persons: each record of a decoy class needs a different "
        f"person, and the smallest released class has {smallest_class(linked):,} records."
    )
    enough = 2 * small > int(candidates.sum())
    return f"{said} {'Use a larger population, or a table with fewer records per person.' if enough else wider}"


def draw_decoys(pool: np.ndarray, marking: CopyMarking, key: bytes) -> tuple[np.ndarray, ...]:
    """Each recipient's classes of the pool, in the pool's order."""
    order = pool[keyed_order(key, "decoys", len(pool))]
    size = marking.decoys
    return tuple(np.sort(order[i * size : (i + 1) * size]) for i in range(len(marking.recipients)))


def draw_covers(linked: Linked, marking: CopyMarking, key: bytes) -> tuple[np.ndarray, np.ndarray, Code | None]:
    """The classes that not everybody gets, who gets them, and the code, if it is by one."""
    return (_by_code if marking.collusion else _alone)(linked, marking, key)


def _alone(linked: Linked, marking: CopyMarking, key: bytes) -> tuple[np.ndarray, np.ndarray, None]:
    """Classes kept for one recipient alone."""
    names, size = len(marking.recipients), marking.covers
    classes = int((linked.published > 0).sum())
    room = int(marking.budget * classes)
    if names * size > room:
        raise OptionError(
            f"{size} cover classes for each of {names} recipients withhold {names * size:,} of {classes:,} "
            f"classes, more than the budget of {marking.budget:.0%} allows. At most {room // names} per recipient "
            f"are possible. Lower {param('covers')}, or raise {param('budget')}."
        )
    covers, draw = _withheld_classes(linked, marking.strategy, names * size, key)
    covers = covers[draw.order("covers")]
    holds = np.zeros((names, len(covers)), dtype=bool)
    holds[np.repeat(np.argsort(marking.recipients), size), np.arange(len(covers))] = True
    return covers, holds, None


def _shared_out(linked: Linked, marking: CopyMarking) -> str:
    """What classes are shared out, and among whom, in whatever order they are named.

    Whose a class is depends on whose the others are. So nothing may be shared with a release to other recipients, of other
    classes or with another number of covers: each has a draw of its own, of which others tell nothing.
    """
    texts = linked.texts(np.flatnonzero(linked.published > 0))
    parts = (sorted(marking.recipients), marking.covers, marking.strategy, linked.columns, texts)
    return f"alone {hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"


def _by_code(linked: Linked, marking: CopyMarking, key: bytes) -> tuple[np.ndarray, np.ndarray, Code]:
    """Classes withheld by a collusion-secure code."""
    coalition, names = marking.collusion or 1, len(marking.recipients)
    classes = int((linked.published > 0).sum())
    room = int(marking.budget * classes)
    found = release_length(names, coalition, marking.false_accusation)
    if found.length > room and marking.marks == "classes":
        reachable = [
            c for c in range(1, coalition) if release_length(names, c, marking.false_accusation).length <= room
        ]
        most = f"coalitions of {reachable[-1]}" if reachable else "none"
        raise OptionError(
            f"A code for {names} recipients that finds one of {coalition} colluding recipients needs "
            f"{found.length:,} cover classes. The release has {classes:,}, and the budget of {marking.budget:.0%} "
            f"allows {room:,}. These are enough for {most} at this probability of a false accusation. Lower "
            f"{param('collusion')}, raise {param('false_accusation')} or {param('budget')}, or release a table "
            f"with more classes (a smaller k, more suppression). With {param('marks', 'both')}, single records "
            "carry a part of the code."
        )
    length = 0 if marking.marks == "rows" else min(found.length, room)
    covers, draw = _withheld_classes(linked, marking.strategy, length, key)
    code = make_code(draw.numbers, found.kind, coalition, length)
    return covers, bits(draw.numbers, marking.recipients, code), code


def fitting(linked: Linked, marking: CopyMarking) -> CopyMarking:
    """The marking with a code that the release can carry, where nobody asked for a longer one."""
    if marking.collusion_asked or not marking.collusion or marking.marks != "classes":
        return marking
    room = int(marking.budget * int((linked.published > 0).sum()))
    names, limit = len(marking.recipients), marking.false_accusation
    carried = [c for c in range(1, marking.collusion + 1) if release_length(names, c, limit).length <= room]
    return replace(marking, collusion=carried[-1]) if carried else marking


def _withheld_classes(linked: Linked, strategy: Strategy, count: int, key: bytes) -> tuple[np.ndarray, ClassDraw]:
    """So many released classes to be withheld from some, ties as the key has it; and the draw of them."""
    released = np.flatnonzero(linked.published > 0)
    draw = ClassDraw.of(key, linked.columns, linked.labels, linked.codes[:, released])
    if strategy == "stratified":
        chosen = stratified(linked, count, draw.numbers("spread"))
    else:
        by_chance = released[draw.order("ranked")]
        size = linked.published if strategy == "size" else np.where(linked.population > 0, linked.population, 1 << 62)
        rank = np.zeros(len(linked), dtype=np.int64) if strategy == "random" else size
        chosen = by_chance[np.argsort(rank[by_chance], kind="stable")][:count]
    return chosen, draw.take(np.searchsorted(released, chosen))


def most_lost(lost: Mapping[str, Mapping[str, Lost]]) -> Lost:
    """The group of persons that loses most."""
    return max((labels["worst"] for labels in lost.values()), key=lambda of: of.share)


def check_lost(marks: Marks) -> None:
    """Refuse marks by which a copy lacks more of a group of persons than is allowed."""
    limit = marks.marking.most_lost
    if limit is None or (not len(marks.covers) and marks.rows is None):
        return
    worst = most_lost(marks.lost())
    if worst.share > limit:
        raise OptionError(
            f"A copy would lack {worst.share:.1%} of the {worst.records:,} records with {worst}, but "
            f"{param('most_lost')} allows at most {limit:.1%}. Raise {param('most_lost')}, ask for fewer covers "
            f"({param('covers')}, {param('collusion')}), or release a table with more classes (a smaller k, more "
            "suppression)."
        )


def keyed_order(key: bytes, label: str, count: int) -> np.ndarray:
    """A permutation that follows from the key alone."""
    return np.argsort(stream(key, label, count, "<u8"), kind="stable")


def _patterns(marks: Marks, recipient: int, whole: bool) -> np.ndarray:
    """For each of a recipient's decoy classes the class whose values it takes, all of them: its partner, if it has one; else
    -1 or, where it must be as diverse (`whole`), the class most like it that is not too large, one that the recipient does
    not get, if there is, and none twice, if there are enough."""
    linked, names = marks.linked, marks.decoys[recipient]
    partner = np.full(len(names), -1) if linked.partner is None else linked.partner[names]
    released = np.flatnonzero(linked.published > 0)
    seen = ~np.isin(released, marks.withheld(recipient))
    used = np.zeros(len(released), dtype=bool)
    for i in np.flatnonzero(partner < 0) if whole else ():
        fits = np.flatnonzero(linked.published[released] <= room(linked)[names[i]])
        order = np.lexsort((linked.unlike(int(names[i]), released[fits]), seen[fits], used[fits]))
        used[fits[order[0]]] = True
        partner[i] = released[fits[order[0]]]
    return partner

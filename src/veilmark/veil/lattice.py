"""The lattice of level vectors: what is known of each node, and class tables of nodes, each from the nearest below.

A node is a level for each quasi-identifier. All that is known of nodes is held in arrays over the whole lattice, so that
"everything above passes" is one slice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from veilmark.hierarchy import Levels
from veilmark.tables.classes import ClassTable
from veilmark.tables.domain import Domain

Node = tuple[int, ...]
T = TypeVar("T")

UNKNOWN, PASSES, FAILS = 0, 1, 2

KEPT_CLASSES = 4_000_000
"""Class tables are kept for the nodes above them while they have so many classes together."""
SHRUNK = 0.8
"""A class table is kept if it has at most this share of the classes it was made from."""


@dataclass(frozen=True)
class Bounds:
    """The lowest and the highest level allowed of each quasi-identifier."""

    low: Node
    high: Node

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(h - l + 1 for l, h in zip(self.low, self.high, strict=True))  # noqa: E741

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def place(self, node: Node) -> tuple[int, ...]:
        """A node's index in arrays over the lattice."""
        return tuple(level - low for level, low in zip(node, self.low, strict=True))

    def node(self, place: Sequence[int]) -> Node:
        """The node at an index."""
        return tuple(int(p) + low for p, low in zip(place, self.low, strict=True))


@dataclass(eq=False)
class Lattice:
    """What is known of each node: `state` of the search, whether it was `seen` (evaluated), and a `floor` of its loss,
    which rises by `dearer` with each record that must be suppressed there."""

    bounds: Bounds
    floor: np.ndarray
    dearer: np.ndarray
    state: np.ndarray = field(init=False)
    seen: np.ndarray = field(init=False)
    lost: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.state = np.zeros(self.bounds.shape, dtype=np.int8)
        self.seen = np.zeros(self.bounds.shape, dtype=bool)
        self.lost = np.zeros(self.bounds.shape)

    def mark_above(self, node: Node) -> None:
        """A node that passes: so do all that generalize it."""
        self.state[tuple(slice(p, None) for p in self.bounds.place(node))] = PASSES

    def mark_below(self, node: Node) -> None:
        """A node that fails: so do all that it generalizes."""
        self.state[tuple(slice(None, p + 1) for p in self.bounds.place(node))] = FAILS

    def raise_floor(self, node: Node, loss: float) -> None:
        """A loss that no generalization of the node can undercut."""
        above = tuple(slice(p, None) for p in self.bounds.place(node))
        np.maximum(self.floor[above], loss, out=self.floor[above])

    def raise_lost(self, node: Node, suppressed: int) -> None:
        """So many records must be suppressed at the node, and so at all that it generalizes."""
        below = tuple(slice(None, p + 1) for p in self.bounds.place(node))
        more = np.maximum(suppressed - self.lost[below], 0)
        self.lost[below] += more
        self.floor[below] += more * self.dearer[below]

    def open(self, best: float) -> np.ndarray:
        """The nodes that may still beat the best loss: not evaluated, not known to fail, floor below it."""
        return ~self.seen & (self.state != FAILS) & (self.floor < best)


class Kept(Generic[T]):
    """Something of some nodes, kept for the nodes above them; the largest go where they grow too many together."""

    def __init__(self, node: Node, first: T, size: int) -> None:
        self._nodes = np.array([node], dtype=np.int16)
        self._things = [first]
        self._sizes = np.array([size])

    def below(self, node: Node) -> tuple[Node, T]:
        """The smallest of those kept at the node or below it, and its node."""
        below = np.flatnonzero((self._nodes <= np.array(node, dtype=np.int16)).all(axis=1))
        nearest = int(below[np.argmin(self._sizes[below])])
        return tuple(self._nodes[nearest].tolist()), self._things[nearest]

    def keep(self, node: Node, thing: T, size: int, made_from: int) -> None:
        """Remember it, unless it is hardly smaller than what it was made from."""
        if size > SHRUNK * made_from:
            return
        while len(self._things) > 1 and self._sizes[1:].sum() + size > KEPT_CLASSES:
            largest = 1 + int(np.argmax(self._sizes[1:]))
            del self._things[largest]
            self._nodes = np.delete(self._nodes, largest, axis=0)
            self._sizes = np.delete(self._sizes, largest)
        self._things.append(thing)
        self._nodes = np.concatenate([self._nodes, np.array([node], dtype=np.int16)])
        self._sizes = np.append(self._sizes, size)


class NodeTables:
    """Class tables of nodes, rolled up from the smallest one that lies below; a bounded number is kept."""

    def __init__(self, base: ClassTable, levels: Sequence[Levels], bottom: Node) -> None:
        self._levels = list(levels)
        self._domains = [[Domain(labels, labels) for labels in of.labels] for of in levels]
        self._ups: dict[tuple[int, int, int], np.ndarray] = {}
        ground = (0,) * len(levels)
        first = self._roll(base, ground, bottom) if any(bottom) else base
        self._kept = Kept(bottom if any(bottom) else ground, first, len(first))

    def table(self, node: Node) -> ClassTable:
        """The class table of a node; its classes stand in no particular order."""
        start, source = self._kept.below(node)
        if start == node:
            return source
        table = self._roll(source, start, node)
        self._kept.keep(node, table, len(table), len(source))
        return table

    def _roll(self, table: ClassTable, start: Node, node: Node) -> ClassTable:
        codes = [
            code if lower == upper else self._up(i, lower, upper)[code]
            for i, (code, lower, upper) in enumerate(zip(table.codes, start, node, strict=True))
        ]
        return table.merge(codes, [self._domains[i][level] for i, level in enumerate(node)], ordered=False)

    def _up(self, attribute: int, lower: int, upper: int) -> np.ndarray:
        key = (attribute, lower, upper)
        if key not in self._ups:
            self._ups[key] = self._levels[attribute].up(lower, upper)
        return self._ups[key]

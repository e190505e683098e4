"""The lattice of level vectors: what is known of each node, and class tables of nodes, each from the nearest below.

A node is a level for each quasi-identifier. All that is known of nodes is held in arrays over the whole lattice, so that
"everything above passes" is one slice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from veilmark.classes import ClassTable
from veilmark.domain import Domain
from veilmark.hierarchy import Levels

Node = tuple[int, ...]

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
    """What is known of each node: `state` of the search, whether it was `seen` (evaluated), and a `floor` of its loss."""

    bounds: Bounds
    floor: np.ndarray
    state: np.ndarray = field(init=False)
    seen: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.state = np.zeros(self.bounds.shape, dtype=np.int8)
        self.seen = np.zeros(self.bounds.shape, dtype=bool)

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

    def open(self, best: float) -> np.ndarray:
        """The nodes that may still beat the best loss: not evaluated, not known to fail, floor below it."""
        return ~self.seen & (self.state != FAILS) & (self.floor < best)


class NodeTables:
    """Class tables of nodes, rolled up from the smallest one that lies below; a bounded number is kept."""

    def __init__(self, base: ClassTable, levels: Sequence[Levels], bottom: Node) -> None:
        self._levels = list(levels)
        self._domains = [[Domain(labels, labels) for labels in of.labels] for of in levels]
        self._ups: dict[tuple[int, int, int], np.ndarray] = {}
        self._nodes = np.zeros((1, len(levels)), dtype=np.int16)
        self._tables = [base]
        if any(bottom):
            self._nodes = np.array([bottom], dtype=np.int16)
            self._tables = [self._roll(base, (0,) * len(levels), bottom)]
        self._sizes = np.array([len(self._tables[0])])

    def table(self, node: Node) -> ClassTable:
        """The class table of a node; its classes stand in no particular order."""
        below = np.flatnonzero(np.all(self._nodes <= np.array(node, dtype=np.int16), axis=1))
        nearest = int(below[np.argmin(self._sizes[below])])
        source, start = self._tables[nearest], tuple(self._nodes[nearest].tolist())
        if start == node:
            return source
        table = self._roll(source, start, node)
        if len(table) <= SHRUNK * len(source):
            self._keep(node, table)
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

    def _keep(self, node: Node, table: ClassTable) -> None:
        """Remember a table; the largest but the first go when there are too many classes."""
        while len(self._tables) > 1 and self._sizes[1:].sum() + len(table) > KEPT_CLASSES:
            largest = 1 + int(np.argmax(self._sizes[1:]))
            del self._tables[largest]
            self._nodes = np.delete(self._nodes, largest, axis=0)
            self._sizes = np.delete(self._sizes, largest)
        self._tables.append(table)
        self._nodes = np.concatenate([self._nodes, np.array([node], dtype=np.int16)])
        self._sizes = np.append(self._sizes, len(table))

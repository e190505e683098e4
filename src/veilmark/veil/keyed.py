"""Class sizes of the lattice's nodes, without the classes: where only sizes matter, each class is one packed integer.

Every attribute has its own bits in a class's key. Going up changes the bits of the attributes that are generalized, and
one sort brings equal keys together: a node costs a fraction of what a whole class table does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veilmark.hierarchy import Levels
from veilmark.tables.classes import ClassTable
from veilmark.veil.lattice import Kept, Node

KEY_BITS = 63


class KeyedSizes:
    """The keys and records of each node's classes, from the smallest kept node below it."""

    def __init__(self, base: ClassTable, levels: Sequence[Levels]) -> None:
        self._levels = list(levels)
        self._bits = [_bits_of(of) for of in levels]
        self._shifts = np.concatenate([[0], np.cumsum(self._bits[:0:-1], dtype=np.int64)])[::-1].tolist()
        self._count_bits = _count_bits(base)
        self._steps: dict[tuple[int, int, int], np.ndarray] = {}
        keys = np.zeros(len(base), dtype=np.int64)
        for code, shift in zip(base.codes, self._shifts, strict=True):
            keys |= code.astype(np.int64) << shift
        self._kept = Kept((0,) * len(levels), (keys, base.records), len(base))

    @staticmethod
    def fits(base: ClassTable, levels: Sequence[Levels]) -> bool:
        """Whether a key and its count fit into one integer."""
        return sum(map(_bits_of, levels)) + _count_bits(base) <= KEY_BITS

    def at(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """The keys of a node's classes, ascending, and their records."""
        start, (keys, records) = self._kept.below(node)
        if start == node:
            return keys, records
        before = len(keys)
        keys, records = self._merged(self._raised(keys, start, node), records)
        self._kept.keep(node, (keys, records), len(keys), before)
        return keys, records

    def codes(self, keys: np.ndarray) -> list[np.ndarray]:
        """The labels in keys, attribute by attribute."""
        return [(keys >> shift) & ((1 << bits) - 1) for shift, bits in zip(self._shifts, self._bits, strict=True)]

    def _raised(self, keys: np.ndarray, start: Node, node: Node) -> np.ndarray:
        raised = keys.copy()
        for i, (lower, upper) in enumerate(zip(start, node, strict=True)):
            if lower < upper:
                raised += self._step(i, lower, upper)[(keys >> self._shifts[i]) & ((1 << self._bits[i]) - 1)]
        return raised

    def _step(self, attribute: int, lower: int, upper: int) -> np.ndarray:
        """What going up adds to a key, by the label it has."""
        key = (attribute, lower, upper)
        if key not in self._steps:
            up = self._levels[attribute].up(lower, upper).astype(np.int64)
            self._steps[key] = (up - np.arange(len(up))) << self._shifts[attribute]
        return self._steps[key]

    def _merged(self, keys: np.ndarray, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Equal keys once, with their records together."""
        both = (keys << self._count_bits) | records
        both.sort()
        keys = both >> self._count_bits
        records = both & ((1 << self._count_bits) - 1)
        new = np.empty(len(keys), dtype=bool)
        new[:1] = True
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        starts = np.flatnonzero(new)
        return keys[starts], np.add.reduceat(records, starts) if len(starts) else records


def _bits_of(levels: Levels) -> int:
    return max(len(labels) for labels in levels.labels).bit_length()


def _count_bits(base: ClassTable) -> int:
    return int(base.total_records).bit_length()

"""Cutting persons into slices so that no slice gives a value away.

A slice is *l-diverse* where, for each of its attributes, no value has more than 1/l of its persons; it then has at least
l different values. Slices that are l-diverse are so together too. Hence, where the whole table is l-diverse, there is
always a slicing: at worst one slice of all. `diverse_slices` finds a fine one:

1. The persons, like beside like, are cut into runs of f. A run that is not l-diverse joins its neighbour, that pair the
   next pair, and so on, until the block is l-diverse.
2. The persons of such a block are dealt like cards into slices of f, ordered by the attribute that has the commonest
   value there, so that equal values go to different slices: at first so that like stays with like, in other ways where
   that leaves too many hands that are not l-diverse, or some that cannot be placed.
3. What is left is added to slices of the block that stay l-diverse with it, a hand to a slice, then a person to a slice.
   At last, more and more slices of the block become one with it, at worst the whole block, which is l-diverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veilmark.tables.cells import DENSE_LIMIT, number
from veilmark.tables.persons import Fingerprints

WAYS = 3
"""In so many ways a block is dealt, at first in the one that keeps like with like."""
FEW = 0.25
"""Another way is tried where a larger share of a block's persons is left."""
GOLDEN = (5**0.5 - 1) / 2
TRIES = 16
"""So many slices a hand, and then a person, is added to on trial."""
SLACK = 0.1
"""Blocks are this much more diverse than they must be, where the table is: dealing needs room."""

Kinds = Sequence[np.ndarray]


def runs(count: int, size: int) -> np.ndarray:
    """The number of each position's run; a remainder shorter than a run joins the last one."""
    return np.minimum(np.arange(count) // size, max(count // size, 1) - 1)


def commonest(owner: np.ndarray, kinds: np.ndarray, owners: int) -> np.ndarray:
    """For each owner how many of its members have the kind that most of them have."""
    bound = int(kinds.max(initial=0)) + 1
    narrow: Any = np.int32 if owners * bound < 1 << 31 else np.int64
    keys = owner.astype(narrow) * narrow(bound) + kinds.astype(narrow)
    keys.sort(kind="stable" if np.all(owner[1:] >= owner[:-1]) else None)
    starts, often = _runs_of(keys)
    most = np.zeros(owners, dtype=np.int64)
    np.maximum.at(most, keys[starts] // bound, often)
    return most


def diversity(slices: np.ndarray, kinds: Kinds) -> float:
    """The largest l for which every slice is l-diverse."""
    count = int(slices.max(initial=-1)) + 1
    size = np.bincount(slices, minlength=count)
    return min(float((size / np.maximum(commonest(slices, of, count), 1)).min(initial=np.inf)) for of in kinds)


def diverse_slices(order: np.ndarray, kinds: Kinds, size: int, l: float, rng: np.random.Generator) -> np.ndarray:  # noqa: E741
    """The slice of each person: of `size` persons or somewhat more, l-diverse in each of the attributes.

    `kinds[i]` numbers the values of attribute i, a person each; `order` lists the persons, like beside like. The whole
    table must be l-diverse, or a slice is not.
    """
    size = min(int(np.ceil(max(size, l))), len(order))
    ordered = [of[order] for of in kinds]
    dealing = _Dealing(ordered, _blocks(ordered, size, l), size, l)
    slices = np.empty(len(order), dtype=np.int64)
    slices[order] = dealing.run(rng)
    return slices


def _failing(owner: np.ndarray, kinds: Kinds, owners: int, l: float) -> np.ndarray:  # noqa: E741
    """Which owners are not l-diverse."""
    size = np.bincount(owner, minlength=owners)
    failing = np.zeros(owners, dtype=bool)
    for of in kinds:
        failing |= commonest(owner, of, owners) * l > size + 1e-9
    return failing


def _blocks(kinds: Kinds, size: int, l: float) -> np.ndarray:  # noqa: E741
    """The block of each position, numbered from 0: runs that are l-diverse, or as many together as it takes."""
    run = runs(len(kinds[0]), size)
    starts = np.arange(int(run[-1]) + 1) * size
    failing = _failing(run, kinds, len(starts), l)
    whole = min(len(run) / int(np.bincount(of).max()) for of in kinds)
    roomy = l + max(min(SLACK * l, (whole - l) / 2), 0)
    while failing.any() and len(starts) > 1:
        stay = ~_crossed(starts, failing, len(run))
        changed = np.diff(np.flatnonzero(stay), append=len(starts)) > 1
        starts = starts[stay]
        sizes = np.diff(starts, append=len(run))
        rows = np.flatnonzero(np.repeat(changed, sizes))
        owner = np.repeat(np.arange(int(changed.sum())), sizes[changed])
        failing = np.zeros(len(starts), dtype=bool)
        failing[changed] = _failing(owner, [of[rows] for of in kinds], int(changed.sum()), roomy)
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=len(run)))


def _crossed(starts: np.ndarray, failing: np.ndarray, end: int) -> np.ndarray:
    """The blocks that become one with the block before them.

    Failing blocks side by side join in pairs, the last of an odd number with the pair before it. A single one takes in
    its neighbours, half its size in all: those from `low` to `high`.
    """
    crossed = np.zeros(len(starts) + 1, dtype=bool)
    begins, lengths = _runs_of(failing)
    begins, lengths = begins[failing[begins]], lengths[failing[begins]]
    which = np.repeat(begins, lengths) + np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rank, many = which - np.repeat(begins, lengths), np.repeat(lengths, lengths)
    crossed[which[(rank % 2 == 1) | ((rank == many - 1) & (rank > 0))]] = True
    first = begins[lengths == 1]
    low, high = starts[first], np.append(starts, end)[first + 1]
    reach = np.maximum((high - low) // 4, 1)
    spare = np.maximum(reach - low, 0) - np.maximum(high + reach - end, 0)
    low, high = low - reach + np.minimum(spare, 0), high + reach + np.maximum(spare, 0)
    step = np.zeros(len(starts) + 1, dtype=np.int64)
    np.add.at(step, np.searchsorted(starts, low, "right"), 1)
    np.add.at(step, np.searchsorted(starts, high, "left"), -1)
    crossed |= np.cumsum(step) > 0
    crossed[0] = False
    return crossed[:-1]


@dataclass(eq=False)
class _Left:
    """Who is in no slice yet, each in a hand; and the finished slices of their blocks.

    `rows` are the members of those slices, `slice_of` the number of each one's slice here. Block b's slices have the
    numbers from `first[b]` to before `first[b + 1]`.
    """

    pool: np.ndarray
    hand: np.ndarray
    rows: np.ndarray
    slice_of: np.ndarray
    first: np.ndarray


class _Dealing:
    """Deals the persons of blocks that are too large into slices; a person is a position in the order."""

    def __init__(self, kinds: Kinds, block: np.ndarray, size: int, l: float) -> None:  # noqa: E741
        self.kinds, self.block, self.l = kinds, block, l
        self.size = -(-size // int(l)) * int(l)
        self.blocks = int(block[-1]) + 1
        self.slices, self.count = block.copy(), self.blocks

    def run(self, rng: np.random.Generator) -> np.ndarray:
        """The slice of each position, numbered from 0.

        A block is dealt in another way when one leaves many, or some that fit nowhere.
        """
        sizes = np.bincount(self.block)
        rows = np.flatnonzero((sizes >= 2 * self.size)[self.block])
        for way in range(WAYS):
            left = self._dealt(rows, way, rng)
            many = np.bincount(self.block[left.pool], minlength=self.blocks) > FEW * sizes
            for turn in range(2 * TRIES):
                left.hand = left.hand if turn < TRIES else left.pool
                self._add(left, rng)
            again = many & (way < WAYS - 1)
            again[self.block[left.pool]] = True
            rows = rows[again[self.block[rows]]]
        self._join(left)
        return number(self.slices, self.count)[1].astype(np.int64)

    def _dealt(self, rows: np.ndarray, way: int, rng: np.random.Generator) -> _Left:
        """Deal blocks; who is in a hand that is not l-diverse, is left."""
        ordered, hand, failing = self._deal(rows, way, rng)
        self.slices[ordered] = np.where(failing, -1, self.count + hand)
        self.count += int(hand.max(initial=-1)) + 1
        return self._left(ordered[failing], hand[failing])

    def _deal(self, pool: np.ndarray, way: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Deal the pool, block by block: the order in which they are dealt, each one's hand, and whether it fails."""
        ordered = self._arranged(pool, way, rng)
        starts, sizes = _runs_of(self.block[ordered])
        hands = np.maximum(sizes // self.size, 1)
        rank = np.arange(len(ordered)) - np.repeat(starts, sizes)
        many = np.repeat(hands, sizes)
        turn = rank % many if way else _spread(rank, np.repeat(sizes, sizes), many, int(self.l))
        hand = np.repeat(np.cumsum(hands) - hands, sizes) + turn
        failing = _failing(hand, [of[ordered] for of in self.kinds], int(hands.sum()), self.l)
        return ordered, hand, failing[hand]

    def _arranged(self, pool: np.ndarray, way: int, rng: np.random.Generator) -> np.ndarray:
        """The pool by block, and in a block by the attribute with the commonest value there.

        Equal values stand in their order at first; then at random; then by the next attribute, each run of equal values
        turned by another share of its length, so that the runs' common values do not meet in one hand.
        """
        owner = self.block[pool]
        own = [of[pool] for of in self.kinds]
        heavy = np.argsort([-commonest(owner, of, self.blocks) for of in own], axis=0, kind="stable")
        first = _picked(own, heavy[0][owner])
        keys = owner * (int(first.max(initial=0)) + 1) + first
        if way == 0:
            return pool[np.argsort(keys, kind="stable")]
        if way == 1 or len(own) == 1:
            mixed = rng.permutation(len(pool))
            return pool[mixed[np.argsort(keys[mixed], kind="stable")]]
        order = np.lexsort((_picked(own, heavy[1][owner]), keys))
        starts, sizes = _runs_of(keys[order])
        rank = np.arange(len(order)) - np.repeat(starts, sizes)
        turn = np.repeat((np.arange(len(starts)) * GOLDEN % 1 * sizes).astype(np.int64), sizes)
        return pool[order[np.repeat(starts, sizes) + (rank + turn) % np.repeat(sizes, sizes)]]

    def _left(self, pool: np.ndarray, hand: np.ndarray) -> _Left:
        near = np.zeros(self.blocks, dtype=bool)
        near[self.block[pool]] = True
        rows = np.flatnonzero(near[self.block] & (self.slices >= 0))
        keys, slice_of = np.unique(self.block[rows] * self.count + self.slices[rows], return_inverse=True)
        return _Left(pool, hand, rows, slice_of, np.searchsorted(keys, np.arange(self.blocks + 1) * self.count))

    def _add(self, left: _Left, rng: np.random.Generator) -> None:
        """Add each hand to a slice of its block, where that stays l-diverse; no slice gets two."""
        if not len(left.pool):
            return
        _, any_of, hand = np.unique(left.hand, return_index=True, return_inverse=True)
        target = self._targets(self.block[left.pool[any_of]], left.first, rng)
        owner = np.full(int(left.first[-1]) + 1, -1)
        owner[target] = np.arange(len(target))
        owner[-1] = -1
        found = np.flatnonzero(owner[left.slice_of] >= 0)
        members = np.concatenate([left.pool, left.rows[found]])
        owners = np.concatenate([hand, owner[left.slice_of[found]]])
        failing = _failing(owners, [of[members] for of in self.kinds], len(target), self.l)
        fits = (~failing & (target < left.first[-1]))[hand]
        name = np.full(len(target), -1)
        name[owners[len(hand) :]] = self.slices[left.rows[found]]
        joined = left.pool[fits]
        self.slices[joined] = name[hand[fits]]
        left.rows = np.concatenate([left.rows, joined])
        left.slice_of = np.concatenate([left.slice_of, target[hand[fits]]])
        left.pool, left.hand = left.pool[~fits], left.hand[~fits]

    def _targets(self, block: np.ndarray, first: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A slice of its block for each hand, at random and for none the same; the number after the last means none."""
        order = np.lexsort((rng.random(len(block)), block))
        starts, sizes = _runs_of(block[order])
        rank = np.empty(len(block), dtype=np.int64)
        rank[order] = np.arange(len(block)) - np.repeat(starts, sizes)
        many = first[block + 1] - first[block]
        offset = rng.integers(1 << 62)
        return np.where(rank < many, first[block] + (rank + offset) % np.maximum(many, 1), first[-1])

    def _join(self, left: _Left) -> None:
        """Who is left in a block becomes one slice with 1, 2, 4, … of its slices, until that is l-diverse."""
        pool, share = left.pool, 1
        rank = left.slice_of - left.first[self.block[left.rows]]
        while len(pool):
            near = np.zeros(self.blocks, dtype=bool)
            near[self.block[pool]] = True
            members = np.concatenate([pool, left.rows[(rank < share) & near[self.block[left.rows]]]])
            owner = self.block[members]
            failing = _failing(owner, [of[members] for of in self.kinds], self.blocks, self.l)[owner]
            self.slices[members[~failing]] = self.count + owner[~failing]
            pool, share = pool[failing[: len(pool)]], share * 2
        self.count += self.blocks


def _picked(columns: Sequence[np.ndarray], which: np.ndarray) -> np.ndarray:
    """For each row the value of the column that is picked for it."""
    picked = np.empty(len(which), dtype=np.int64)
    for i, column in enumerate(columns):
        rows = which == i
        picked[rows] = column[rows]
    return picked


def _spread(rank: np.ndarray, size: np.ndarray, hands: np.ndarray, parts: int) -> np.ndarray:
    """The hand of each rank: of each of l equal parts every hand gets a run of neighbours, so that most stay together."""
    part = size // parts
    place = np.minimum(rank // np.maximum(part, 1), parts - 1)
    inside, length = rank - place * part, np.where(place == parts - 1, size - (parts - 1) * part, part)
    return np.minimum(inside * hands // np.maximum(length, 1), hands - 1)


def _runs_of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each run of equal values begins, and how long it is."""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if len(values) else values
    return starts, np.diff(starts, append=len(values))


def union_of_slices(column: Fingerprints, slices: np.ndarray, count: int) -> Fingerprints:
    """The multiset union of each slice: every value as often as the member has it who has it most often."""
    values, owner, size = column.values.astype(np.int64), column.owner, max(len(column.domain), 1)
    if not len(values):
        return Fingerprints(column.domain, np.zeros(count + 1, dtype=np.int64), column.values)
    keys, most = slices[owner] * size + values, 1
    again = np.append(False, (values[1:] == values[:-1]) & (owner[1:] == owner[:-1]))
    if again.any():
        starts, lengths = _runs_of(np.cumsum(~again))
        most = int(lengths.max())
        keys = keys * most + np.arange(len(values)) - np.repeat(starts, lengths)
    distinct = _distinct(keys, count * size * most)
    per_slice = np.bincount(distinct // (size * most), minlength=count)
    ends = np.concatenate([[0], np.cumsum(per_slice)])
    return Fingerprints(column.domain, ends, (distinct // most % size).astype(np.int32))


def _distinct(keys: np.ndarray, bound: int) -> np.ndarray:
    """The distinct keys in order."""
    if bound <= max(DENSE_LIMIT, 8 * len(keys)):
        present = np.zeros(bound, dtype=bool)
        present[keys] = True
        return np.flatnonzero(present)
    keys.sort()
    return keys[_runs_of(keys)[0]]


def fingerprint_kinds(column: Fingerprints) -> np.ndarray:
    """As `Fingerprints.kinds`, far faster for long arrays: as many codes as fit into one integer at a time."""
    if column.single:
        return column.values
    bits = (len(column.domain) + 1).bit_length()
    fit, longest = 63 // bits, int(column.lengths.max(initial=0))
    kinds = np.zeros(len(column), dtype=np.int64)
    for first in range(0, longest, fit):
        longer = np.flatnonzero(column.lengths > first)
        word = np.zeros(len(longer), dtype=np.int64)
        for place in range(first, min(first + fit, longest)):
            there = column.lengths[longer] > place
            codes = column.values[column.starts[longer[there]] + place].astype(np.int64) + 1
            word[there] |= codes << bits * (first + fit - 1 - place)
        rank, count = ranks(word)
        kinds *= count + 1
        kinds[longer] += rank + 1
        kinds = ranks(kinds)[0] if first else kinds - 1
    return kinds


def ranks(keys: np.ndarray) -> tuple[np.ndarray, int]:
    """The rank of each key among the distinct ones, and how many these are."""
    order = np.argsort(keys)
    changes = np.diff(keys[order], prepend=keys[order[:1]]) != 0
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.cumsum(changes)
    return ranks, int(changes.sum()) + min(len(keys), 1)

"""Sensitive values as the items of one transaction a person, for methods that generalize sets of items.

An item is an attribute with one of its values, so that several sensitive attributes make one transaction. It is
generalized by the hierarchy of its attribute. An attribute with many numbers and no hierarchy gets one: ranges that hold
about equally many items, each range halved into two of the level below.

Generalized items are published as a set: a label stands once, however many of a person's values it covers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.hierarchy import Levels
from veilmark.hierarchy.levels import Level, level_of, nest
from veilmark.tables.cells import number, pack
from veilmark.tables.domain import Domain
from veilmark.tables.persons import Fingerprints, PersonTable
from veilmark.utility.sliced import (
    amounts,
    class_middles,
    counts_as_number,
    label_widths,
    nil,
    qi_ncp,
    sa_ncp,
)
from veilmark.veil.sliced import GID, fingerprint_texts, shuffled

NO_LOSS = dict.fromkeys(("ncp", "sa_ncp", "nil", "qi_nil", "sa_nil"), 0.0)

MANY = 10
"""Numbers without a hierarchy are put into ranges where there are more of them."""


def item_levels(persons: PersonTable, levels: Mapping[str, Levels]) -> dict[str, Levels]:
    """The hierarchies of the sensitive attributes, with ranges for numbers that have none."""
    return {name: _with_ranges(name, column, levels[name]) for name, column in persons.sensitive.items()}


def _with_ranges(name: str, column: Fingerprints, levels: Levels) -> Levels:
    domain = column.domain
    present = len(domain) if domain.missing is None else domain.missing
    if levels.height > 1 or domain.numbers is None or present <= MANY:
        return levels
    count = np.bincount(column.values, minlength=len(domain))[:present]
    middle = (np.cumsum(count) - count / 2) / max(count.sum(), 1)
    halvings = range(present.bit_length() - 2, 0, -1)
    return nest(domain, [_ranges(domain, present, middle, 1 << times) for times in halvings], name)


def _ranges(domain: Domain, present: int, middle: np.ndarray, count: int) -> Level:
    """So many ranges of numbers; a missing value stays as it is."""
    of = np.unique((middle * count).astype(np.int64), return_inverse=True)[1]
    low = np.flatnonzero(np.diff(of, prepend=-1))
    high = np.append(low[1:], present) - 1
    labels = range_texts(domain.text, low, high)
    missing = [len(low)] * (len(domain) - present)
    return level_of(pa.concat_arrays([labels, pa.nulls(1, pa.string())]), np.append(of, missing).astype(np.int64))


def range_texts(text: pa.Array, low: np.ndarray, high: np.ndarray) -> pa.Array:
    """`30-35`; `30`; `[-5, 2.5]` where an end is not a plain whole number."""
    ends = [text.take(pa.array(end)).cast(pa.string()) for end in (low, high)]
    plain = pc.and_(*(pc.match_substring_regex(end, r"^\d+$") for end in ends))
    hyphen = pc.binary_join_element_wise(*ends, "-")
    bracket = pc.binary_join_element_wise("[", ends[0], ", ", ends[1], "]", "")
    return pc.if_else(pa.array(low == high), ends[0], pc.if_else(plain, hyphen, bracket))


@dataclass(frozen=True, eq=False)
class Forest:
    """The hierarchies of all attributes, one tree each; a leaf is an attribute's value, nodes are numbered through.

    `path[h, leaf]` is the node over a leaf at level h. Two labels of a path that cover the same values are one node, the
    lower of them. `level` and `width` (the share of its attribute that it covers, 0 for a leaf) are the nodes' own;
    `first[name]` is the first leaf of an attribute.
    """

    levels: Mapping[str, Levels]
    first: Mapping[str, int]
    path: np.ndarray
    level: np.ndarray
    width: np.ndarray
    text: pa.Array

    @classmethod
    def of(cls, levels: Mapping[str, Levels]) -> Forest:
        trees, height = levels.values(), max(of.height for of in levels.values())
        leaves = np.cumsum([0, *(len(of.labels[0]) for of in trees)])
        nodes = np.cumsum([0, *(sum(map(len, of.labels)) for of in trees)])
        paths = [_path(of, height) + start for of, start in zip(trees, nodes[:-1], strict=True)]
        floors = [(of, level) for of in trees for level in range(of.height + 1)]
        return cls(
            levels,
            dict(zip(levels, leaves[:-1].tolist(), strict=True)),
            np.concatenate(paths, axis=1),
            np.concatenate([np.full(len(of.labels[level]), level) for of, level in floors]),
            np.concatenate([label_widths(of, level) for of, level in floors]),
            pa.concat_arrays([of.labels[level].cast(pa.string()) for of, level in floors]),
        )

    def __len__(self) -> int:
        return len(self.level)

    def below(self, node: np.ndarray, leaf: np.ndarray) -> np.ndarray:
        """The child of each node on the way to a leaf; a leaf is its own."""
        child: np.ndarray = self.path[np.maximum(self.level[node] - 1, 0), leaf]
        return child

    @cached_property
    def parent(self) -> np.ndarray:
        """The node above each; the top is its own."""
        parent = np.arange(len(self))
        for lower, upper in zip(self.path[:-1], self.path[1:], strict=True):
            apart = lower != upper
            parent[lower[apart]] = upper[apart]
        return parent


def _path(levels: Levels, height: int) -> np.ndarray:
    """For each level up to a common height and each value its node, counted from 0."""
    path = np.empty((height + 1, len(levels.codes[0])), dtype=np.int64)
    path[0], start, size = levels.codes[0], len(levels.labels[0]), np.ones(path.shape[1], dtype=np.int64)
    for h in range(1, height + 1):
        if h > levels.height:
            path[h] = path[h - 1]
            continue
        leaves = levels.leaves(h)[levels.codes[h]]
        path[h] = np.where(leaves == size, path[h - 1], levels.codes[h] + start)
        start, size = start + len(levels.labels[h]), leaves
    return path


@dataclass(frozen=True, eq=False)
class Items:
    """All items of all persons, those of a person together: its `owner` and `leaf`."""

    persons: PersonTable
    forest: Forest
    owner: np.ndarray
    leaf: np.ndarray
    order: np.ndarray
    """Where each item stands if attributes come one after the other."""

    @classmethod
    def of(cls, persons: PersonTable, levels: Mapping[str, Levels]) -> Items:
        """With the levels of the sensitive attributes, as `item_levels` gives them."""
        forest = Forest.of(levels)
        owner = np.concatenate([column.owner for column in persons.sensitive.values()])
        leaf = np.concatenate([column.values + forest.first[name] for name, column in persons.sensitive.items()])
        order = np.argsort(owner, kind="stable")
        return cls(persons, forest, owner[order], leaf[order], order)

    def __len__(self) -> int:
        return len(self.leaf)

    def _by_attribute(self, node: np.ndarray) -> dict[str, np.ndarray]:
        """What each item has, in the order of each attribute's `values`."""
        unsorted = np.empty_like(node)
        unsorted[self.order] = node
        ends = np.cumsum([len(column.values) for column in self.persons.sensitive.values()])
        return dict(zip(self.persons.sensitive, np.split(unsorted, ends[:-1]), strict=True))

    def published(self, node: np.ndarray) -> dict[str, Fingerprints]:
        """The sets of labels that persons get, by attribute, where item i becomes node[i]."""
        found = {}
        for name, nodes in self._by_attribute(node).items():
            distinct, which = np.unique(nodes, return_inverse=True)
            labels = self.forest.text.take(pa.array(distinct))
            domain = Domain.of(labels)
            found[name] = _as_sets(self.persons.sensitive[name].owner, domain.codes_of(labels)[which], domain)
        return found

    def loss(self, levels: Mapping[str, Levels], part: np.ndarray, node: np.ndarray, *, sets: bool) -> dict[str, float]:
        """QI-NCP of the persons' classes, SA-NCP of categories and fingerprints, NIL of numbers, ranges read as middles.

        NIL is about numeric quasi-identifiers and sensitive amounts. `sets`: as in `qi_ncp`.
        """
        nodes, numbers = self._by_attribute(node), amounts(self.persons, levels)
        labels = {name: self.forest.level[of] for name, of in nodes.items() if name not in numbers}
        sensitive = {name: self._middles(name, nodes[name]) for name in numbers}
        quasi = {
            name: class_middles(column.domain.numbers[column.values], part)
            for name, column in self.persons.quasi.items()
            if column.domain.numbers is not None and counts_as_number(column, levels[name])
        }
        return {
            "ncp": qi_ncp(self.persons, levels, part, sets=sets),
            "sa_ncp": sa_ncp(self.persons, self.forest.levels, labels),
            "nil": nil(self.persons, quasi | sensitive),
            "qi_nil": nil(self.persons, quasi),
            "sa_nil": nil(self.persons, sensitive),
        }

    def _middles(self, name: str, node: np.ndarray) -> np.ndarray:
        """The middle of the numbers that each item's node covers."""
        column, numbers = self.persons.sensitive[name], self.persons.sensitive[name].domain.numbers
        assert numbers is not None
        new = np.empty(len(node))
        start = self.forest.first[name]
        for h in range(self.forest.levels[name].height + 1):
            here = self.forest.level[node] == h
            path = self.forest.path[h, start : start + len(numbers)]
            new[here] = class_middles(numbers, path)[column.values[here]]
        return new


def _as_sets(owner: np.ndarray, code: np.ndarray, domain: Domain) -> Fingerprints:
    size = max(len(domain), 1)
    keys = np.sort(owner * size + code)
    keys = keys[np.diff(keys, prepend=-1) > 0]
    lengths = np.bincount(keys // size)
    return Fingerprints(domain, np.append(0, np.cumsum(lengths)), (keys % size).astype(np.int32))


def one_table(
    labels: Mapping[str, pa.Array], part: np.ndarray, sensitive: Mapping[str, Fingerprints], rng: np.random.Generator
) -> tuple[pa.Table, pa.Table]:
    """A release of classes and generalized sets as its two tables, `quasi` and `sensitive` of `Sliced`.

    `labels` are those of each class, by quasi-identifier; person i is in class part[i], whose gid is one more.
    """
    gid, classes = pa.array(part + 1, pa.int64()), pa.array(part)
    quasi = pa.table({**{name: of.take(classes) for name, of in labels.items()}, "gid_1": gid})
    texts = {name: fingerprint_texts(of) for name, of in sensitive.items()}
    return shuffled(quasi, rng), shuffled(pa.table({GID: gid, **texts}), rng)


def untouched_values(persons: PersonTable) -> dict[str, pa.Array]:
    """The persons' quasi-identifiers as they are."""
    return {name: column.domain.values.take(pa.array(column.values)) for name, column in persons.quasi.items()}


def joint_kinds(fingerprints: Sequence[Fingerprints]) -> np.ndarray:
    """A number for each person, from 0 up, the same where all fingerprints are equal."""
    kinds = [of.kinds for of in fingerprints]
    keys, bound = pack(kinds, [int(of.max(initial=0)) + 1 for of in kinds])
    return number(keys, bound)[1].astype(np.int64)

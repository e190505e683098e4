"""1:M-Generalization: sensitive sets that at least k persons share, and classes in which they are l-diverse.

(Gong, Luo, Yang, Ni and Li 2017: (k,l)-diversity.) In two steps:

1. The sensitive sets are generalized top-down (He and Naughton 2009). At first every item is its attribute's `*`, and all
   persons are one bucket. Again and again a bucket is cut along one of its labels, the one of most gain: its label gives
   way to the labels below it, and persons who have the same ones are a bucket. Those in buckets below k stay together
   under the old label; where they are below k themselves, some of the largest new bucket stay with them, or else all of
   the smallest.
2. Mondrian on the quasi-identifiers, for as long as each class has k persons and l different sets, none of them with more
   than 1/l of the class. (The k persons a class are ours: of the classes Gong et al. ask for l sets only.)

All buckets are cut at once, a label each a round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
import pyarrow as pa

from veilmark.defaults import K
from veilmark.errors import OptionError, VeilmarkError
from veilmark.hierarchy import Levels
from veilmark.privacy.models import Alpha, DistinctL, KAnonymity
from veilmark.tables.classes import ClassTable, Histogram, Tally
from veilmark.tables.domain import Domain
from veilmark.tables.persons import PersonTable
from veilmark.utility.sliced import counts_as_number
from veilmark.veil.items import Items, item_levels, joint_kinds, one_table
from veilmark.veil.mondrian import Partition, partition
from veilmark.veil.sliced import Sliced
from veilmark.veil.slices import diversity

FINGERPRINT = "sensitive set"


@dataclass(frozen=True)
class OneMany:
    """Tuning of the method; `seed` decides the order of published rows. Who knows it can undo the order:
    without one, chance decides."""

    k: int = K
    l: int = 2  # noqa: E741
    seed: int | None = None

    def slice_persons(self, persons: PersonTable, levels: Mapping[str, Levels]) -> Sliced:
        """The release of persons by this method."""
        return slice_persons(persons, levels, self)


def slice_persons(persons: PersonTable, levels: Mapping[str, Levels], method: OneMany) -> Sliced:
    """The classes with the generalized sensitive sets of their persons."""
    _check(persons, method)
    items = Items.of(persons, item_levels(persons, levels))
    rng = np.random.default_rng(method.seed)
    node = share_sets(items, method.k, rng)
    sets = items.published(node)
    kinds = joint_kinds(list(sets.values()))
    if np.bincount(kinds).min() < method.k:
        raise VeilmarkError("Two different sensitive sets have the same hash. Try another seed.")
    found = _classes(persons, levels, kinds, method)
    part = found.part[persons.class_of]
    quasi, sensitive = one_table(dict(zip(persons.quasi, found.labels, strict=True)), part, sets, rng)
    facts = {
        "method": "onemany",
        "link": "groups",
        "k": int(np.bincount(part).min()),
        "l": diversity(part, [kinds]),
        "classes": found.parts,
        "sets": int(kinds.max()) + 1,
        "asked": {name: value for name, value in asdict(method).items() if name != "seed"},
    }
    loss = items.loss(levels, part, node, sets=True)
    return Sliced(quasi, (sensitive,), (tuple(persons.sensitive),), facts, loss)


def _check(persons: PersonTable, method: OneMany) -> None:
    KAnonymity(method.k)
    DistinctL(FINGERPRINT, method.l)
    if not persons.sensitive:
        raise OptionError(
            "The study has no sensitive attribute, but this method needs one. Give a column the role sensitive "
            "in the study."
        )
    if len(persons) < method.k:
        raise OptionError(
            f"{len(persons):,} persons are too few for k = {method.k}. Lower k to at most the number of persons."
        )


def _classes(persons: PersonTable, levels: Mapping[str, Levels], kinds: np.ndarray, method: OneMany) -> Partition:
    """The persons' classes, Mondrian's."""
    count = np.bincount(kinds)
    if len(count) < method.l or count.max() * method.l > len(persons):
        raise OptionError(
            f"With k = {method.k} there are {len(count):,} sensitive sets, and {count.max():,} of "
            f"{len(persons):,} persons have the same one. So no class can have l = {method.l} sets of which none "
            f"exceeds 1/{method.l} of the class. Lower k or l, or give the sensitive attributes hierarchies with "
            "more levels."
        )
    classes = _with_kinds(persons, kinds)
    models = (KAnonymity(method.k), DistinctL(FINGERPRINT, method.l), Alpha(FINGERPRINT, 1 / method.l))
    numeric = [counts_as_number(column, levels[name]) for name, column in persons.quasi.items()]
    return partition(classes, [levels[name] for name in persons.quasi], numeric, models)


def _with_kinds(persons: PersonTable, kinds: np.ndarray) -> ClassTable:
    """The persons' classes with a histogram of the kinds of their sets."""
    size = int(kinds.max()) + 1
    cells, count = np.unique(persons.class_of.astype(np.int64) * size + kinds, return_counts=True)
    text = pa.array(np.arange(size)).cast(pa.string())
    histogram = Histogram(Domain(text, text), cells // size, (cells % size).astype(np.int32), Tally(count))
    return replace(persons.classes, histograms={FINGERPRINT: histogram})


# The sensitive sets.


def share_sets(items: Items, k: int, rng: np.random.Generator) -> np.ndarray:
    """The node that each item becomes, so that every set of nodes is shared by at least k persons."""
    forest = items.forest
    node = forest.path[-1][items.leaf]
    bucket = np.zeros(len(items.persons), dtype=np.int64)
    # Sets are told apart by sums of random numbers; that no two sums were the same is checked on what comes out.
    marks = rng.integers(1 << 63, size=len(forest), dtype=np.int64)
    open_items = np.flatnonzero(forest.level[node] > 0)
    while len(open_items):
        cut = open_items[_chosen(items, node, bucket, open_items)]
        child = forest.below(node[cut], items.leaf[cut])
        whose, within = np.unique(items.owner[cut], return_inverse=True)
        side = _sides(bucket[whose], _sums(within, child, marks, len(whose)))
        going = _going(bucket[whose], side, k)
        moved = going[within]
        node[cut[moved]] = child[moved]
        bucket[whose[going]] = bucket.max() + 1 + side[going]
        bucket = np.unique(bucket, return_inverse=True)[1]
        done = np.zeros(len(items), dtype=bool)
        done[cut[~moved]] = True
        open_items = open_items[~done[open_items] & (forest.level[node[open_items]] > 0)]
    return node


def _chosen(items: Items, node: np.ndarray, bucket: np.ndarray, open_items: np.ndarray) -> np.ndarray:
    """Which open items are under the label that their bucket is to be cut along: the one whose items gain most."""
    forest, at = items.forest, node[open_items]
    gain = forest.width[at] - forest.width[forest.below(at, items.leaf[open_items])]
    labels, which = np.unique(bucket[items.owner[open_items]] * len(forest) + at, return_inverse=True)
    total = np.bincount(which, weights=gain)
    of = labels // len(forest)
    order = np.lexsort((-total, of))
    best = np.zeros(len(labels), dtype=bool)
    best[order[np.diff(of[order], prepend=-1) > 0]] = True
    chosen: np.ndarray = best[which]
    return chosen


def _sums(owner: np.ndarray, child: np.ndarray, marks: np.ndarray, persons: int) -> np.ndarray:
    """For each person a number of the set of its children."""
    pairs = np.unique(owner * len(marks) + child)
    sums = np.zeros(persons, dtype=np.int64)
    np.add.at(sums, pairs // len(marks), marks[pairs % len(marks)])
    return sums


def _sides(bucket: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Numbers for the new buckets: the same where bucket and set are."""
    which = np.unique(sums, return_inverse=True)[1]
    side: np.ndarray = np.unique(bucket * (int(which.max()) + 1) + which, return_inverse=True)[1]
    return side


def _going(bucket: np.ndarray, side: np.ndarray, k: int) -> np.ndarray:
    """Who goes to a new bucket; those who stay behind in a bucket are none or at least k."""
    size, of = np.bincount(side), np.zeros(int(side.max()) + 1, dtype=np.int64)
    of[side] = bucket
    safe = size >= k
    left = np.bincount(of, weights=np.where(safe, 0, size)).astype(np.int64)
    wanted = np.where((left > 0) & (left < k), k - left, 0)
    sides = np.flatnonzero(safe)
    sides = sides[np.lexsort((size[sides], of[sides]))]
    begins = np.diff(of[sides], prepend=-1) > 0
    smallest, largest = sides[begins], sides[np.append(begins, True)[1:]]
    lacking = wanted[of[smallest]]
    enough = size[largest] >= k + lacking
    behind = np.zeros(len(size), dtype=np.int64)
    behind[largest[enough]] = lacking[enough]
    safe[smallest[(lacking > 0) & ~enough]] = False
    return safe[side] & (_rank(side) >= behind[side])


def _rank(side: np.ndarray) -> np.ndarray:
    """The how-maniest of its side each one is, from 0."""
    order = np.argsort(side, kind="stable")
    size = np.bincount(side)
    rank = np.empty(len(side), dtype=np.int64)
    rank[order] = np.arange(len(side)) - np.repeat(np.cumsum(size) - size, size)
    return rank

"""RMR: k-anonymous clusters of persons in each of which m known items fit at least k persons.

(RMERGE_R of Poulis, Loukides, Gkoulalas-Divanis and Skiadopoulos 2013: (k,k^m)-anonymity.) In three steps:

1. Clusters of k or more persons by their quasi-identifiers; here Mondrian's parts.
2. Clusters are merged: the one that lost least with the one with which it then loses least, for as long as the mean loss
   (QI-NCP) of all persons stays within δ. Larger clusters cost more of the quasi-identifiers and less of the items.
3. In each cluster items are generalized until every combination of up to m of them that a person has is had by at least k
   (Terrovitis, Mamoulis and Kalnis 2008): of a rare combination the item goes up whose next label covers least, and with
   it all of its cluster's items under that label.

Categories are generalized by their hierarchies only, never to sets of values. Time grows with the square of the number of
clusters, which is far below that of persons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.defaults import K
from veilmark.errors import OptionError
from veilmark.hierarchy import Levels
from veilmark.privacy.models import KAnonymity
from veilmark.tables.cells import number, pack
from veilmark.tables.persons import Fingerprints, PersonTable
from veilmark.utility.sliced import counts_as_number, label_widths
from veilmark.veil.items import Forest, Items, item_levels, one_table, range_texts
from veilmark.veil.mondrian import MISSING, Mondrian, partition
from veilmark.veil.sliced import Sliced


@dataclass(frozen=True)
class Rmr:
    """Tuning of the method; `seed` decides the order of published rows. Who knows it can undo the order:
    without one, chance decides."""

    k: int = K
    m: int = 2
    delta: float = 0.66
    seed: int | None = None

    def slice_persons(self, persons: PersonTable, levels: Mapping[str, Levels]) -> Sliced:
        """The release of persons by this method."""
        return slice_persons(persons, levels, self)


def slice_persons(persons: PersonTable, levels: Mapping[str, Levels], method: Rmr) -> Sliced:
    """The clusters with the generalized items of their persons."""
    _check(persons, method)
    first = _clusters(persons, levels, method.k)
    part = merge_clusters(persons, levels, first, method.delta)
    labels, part = _labelled(persons, levels, part)
    items = Items.of(persons, item_levels(persons, levels))
    node = protect_items(items, part, method.k, method.m)
    rng = np.random.default_rng(method.seed)
    quasi, sensitive = one_table(labels, part, items.published(node), rng)
    facts = {
        "method": "rmr",
        "link": "groups",
        "k": int(np.bincount(part).min()),
        "clusters": int(part.max()) + 1,
        "clusters_before": int(first.max()) + 1,
        "asked": {name: value for name, value in asdict(method).items() if name != "seed"},
    }
    loss = items.loss(levels, part, node, sets=False)
    return Sliced(quasi, (sensitive,), (tuple(persons.sensitive),), facts, loss)


def _check(persons: PersonTable, method: Rmr) -> None:
    KAnonymity(method.k)
    if not isinstance(method.m, int) or method.m < 1:
        raise OptionError(f"m must be a whole number of 1 or more, not {method.m}. Try 2.")
    if not 0 <= method.delta <= 1:
        raise OptionError(f"delta must be a number from 0 to 1, not {method.delta}. Try 0.66.")
    if not persons.sensitive:
        raise OptionError(
            "The study has no sensitive attribute, but this method needs one. Give a column the role sensitive "
            "in the study."
        )
    if len(persons) < method.k:
        raise OptionError(
            f"{len(persons):,} persons are too few for k = {method.k}. Lower k to at most the number of persons."
        )


def _clusters(persons: PersonTable, levels: Mapping[str, Levels], k: int) -> np.ndarray:
    """The first cluster of each person."""
    numeric = [counts_as_number(column, levels[name]) for name, column in persons.quasi.items()]
    of = [levels[name] for name in persons.quasi]
    found = partition(persons.classes, of, numeric, [KAnonymity(k)], Mondrian(sets=False))
    cluster: np.ndarray = found.part[persons.class_of]
    return cluster


# Merging clusters.


class _Numbers:
    """What clusters cover of a numeric attribute."""

    def __init__(self, column: Fingerprints, part: np.ndarray, parts: int) -> None:
        assert column.domain.numbers is not None
        numbers = column.domain.numbers[column.values]
        there = ~np.isnan(numbers)
        self.low, self.high = np.full(parts, np.inf), np.full(parts, -np.inf)
        np.minimum.at(self.low, part[there], numbers[there])
        np.maximum.at(self.high, part[there], numbers[there])
        self.missing = np.bincount(part[~there], minlength=parts) > 0
        self._whole = float(np.nanmax(column.domain.numbers) - np.nanmin(column.domain.numbers)) or 1.0

    def _widths(self, low: np.ndarray, high: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """Their shares of the range; all of it where some are missing and some not."""
        span = np.where(missing, 1.0, np.where(low > high, 0.0, high - low) / self._whole)
        return np.where(low > high, 0.0, span)

    def widths(self) -> np.ndarray:
        return self._widths(self.low, self.high, self.missing)

    def widths_with(self, i: int) -> np.ndarray:
        """The width of each cluster if i were merged with it."""
        low, high = np.minimum(self.low, self.low[i]), np.maximum(self.high, self.high[i])
        return self._widths(low, high, self.missing | self.missing[i])

    def merge(self, i: int, j: int, last: int) -> None:
        """Cluster i takes in j, and the last one takes the place of j."""
        self.low[i], self.high[i] = min(self.low[i], self.low[j]), max(self.high[i], self.high[j])
        self.missing[i] |= self.missing[j]
        for of in ("low", "high", "missing"):
            getattr(self, of)[j] = getattr(self, of)[last]
            setattr(self, of, getattr(self, of)[:last])


class _Nodes:
    """What clusters cover of a categorical attribute: their label at each level, -1 where they have several."""

    def __init__(self, column: Fingerprints, levels: Levels, part: np.ndarray, parts: int) -> None:
        self.labels = np.array([one_label(of[column.values], part, parts) for of in levels.codes])
        self._share = [np.append(label_widths(levels, level), 0.0) for level in range(levels.height + 1)]

    def _widths(self, same: np.ndarray) -> np.ndarray:
        width = np.ones(same.shape[1])
        for level in reversed(range(len(same))):
            width = np.where(same[level], self._share[level][self.labels[level]], width)
        return width

    def widths(self) -> np.ndarray:
        return self._widths(self.labels >= 0)

    def widths_with(self, i: int) -> np.ndarray:
        """The width of each cluster if i were merged with it."""
        return self._widths((self.labels == self.labels[:, i : i + 1]) & (self.labels >= 0))

    def merge(self, i: int, j: int, last: int) -> None:
        """Cluster i takes in j, and the last one takes the place of j."""
        self.labels[self.labels[:, i] != self.labels[:, j], i] = -1
        self.labels[:, j] = self.labels[:, last]
        self.labels = self.labels[:, :last]


def one_label(labels: np.ndarray, part: np.ndarray, parts: int) -> np.ndarray:
    """The label of each part, -1 where it has several."""
    low, high = np.full(parts, len(labels) + labels.max(initial=0)), np.full(parts, -1)
    np.minimum.at(low, part, labels)
    np.maximum.at(high, part, labels)
    return np.where(low == high, low, -1)


def merge_clusters(persons: PersonTable, levels: Mapping[str, Levels], part: np.ndarray, delta: float) -> np.ndarray:
    """The cluster of each person after merging; the mean loss is at most delta, if it was before."""
    parts = int(part.max()) + 1
    columns: list[_Numbers | _Nodes] = [
        _Numbers(column, part, parts)
        if counts_as_number(column, levels[name])
        else _Nodes(column, levels[name], part, parts)
        for name, column in persons.quasi.items()
    ]
    size, name_of, into = np.bincount(part), np.arange(parts), np.arange(parts)
    loss = _mean([column.widths() for column in columns], parts)
    total, most = float(np.dot(size, loss)), delta * len(persons)
    for last in range(parts - 1, 0, -1):
        i = int(loss.argmin())
        merged = _mean([column.widths_with(i) for column in columns], last + 1)
        merged[i] = np.inf
        j = int(merged.argmin())
        total += merged[j] * (size[i] + size[j]) - loss[i] * size[i] - loss[j] * size[j]
        if total > most:
            break
        loss[i], size[i] = merged[j], size[i] + size[j]
        into[name_of[j]] = name_of[i]
        name_of[j], loss[j], size[j] = name_of[last], loss[last], size[last]
        for column in columns:
            column.merge(i, j, last)
        loss, size, name_of = loss[:last], size[:last], name_of[:last]
        # (where i was the last, it stands in the place of j now)
    while (into[into] != into).any():
        into = into[into]
    return np.unique(into[part], return_inverse=True)[1]


def _mean(widths: Sequence[np.ndarray], parts: int) -> np.ndarray:
    return np.mean(widths, axis=0) if widths else np.zeros(parts)


# Labels.


def _labelled(
    persons: PersonTable, levels: Mapping[str, Levels], part: np.ndarray
) -> tuple[dict[str, pa.Array], np.ndarray]:
    """The clusters' labels, by quasi-identifier, and the cluster of each person: those with the same labels are one."""
    labels = {
        name: _labels(column, levels[name], part).dictionary_encode(null_encoding="encode")
        for name, column in persons.quasi.items()
    }
    if not labels:
        return {}, part
    codes = [of.indices.to_numpy() for of in labels.values()]
    distinct, same = number(*pack(codes, [len(of.dictionary) for of in labels.values()]))
    shown = np.zeros(len(distinct), dtype=np.int64)
    shown[same] = np.arange(len(same))
    texts = {name: of.dictionary.take(of.indices.take(pa.array(shown))) for name, of in labels.items()}
    return texts, same[part].astype(np.int64)


def _labels(column: Fingerprints, levels: Levels, part: np.ndarray) -> pa.Array:
    """The label of each cluster: the range of its numbers, or the smallest node over its values."""
    parts = int(part.max()) + 1
    if counts_as_number(column, levels):
        return _number_labels(column, part, parts)
    text = pa.nulls(parts, pa.string())
    for codes, labels in zip(reversed(levels.codes), reversed(levels.labels), strict=True):
        label = one_label(codes[column.values], part, parts)
        text = pc.if_else(pa.array(label >= 0), labels.cast(pa.string()).take(pa.array(np.maximum(label, 0))), text)
    return text


def _number_labels(column: Fingerprints, part: np.ndarray, parts: int) -> pa.Array:
    """`30-35`, `30-35 or missing`, nothing where all are missing."""
    missing = len(column.domain) if column.domain.missing is None else column.domain.missing
    absent = column.values == missing
    low, high = np.full(parts, missing), np.full(parts, -1)
    np.minimum.at(low, part[~absent], column.values[~absent])
    np.maximum.at(high, part[~absent], column.values[~absent])
    none = high < 0
    ranges = range_texts(column.domain.text, np.where(none, 0, low), np.maximum(high, 0))
    mixed = np.bincount(part[absent], minlength=parts) > 0
    ranges = pc.if_else(pa.array(mixed), pc.binary_join_element_wise(ranges, MISSING, " or "), ranges)
    return pc.if_else(pa.array(none), pa.scalar(None, pa.string()), ranges)


# Items.


def protect_items(items: Items, part: np.ndarray, k: int, m: int) -> np.ndarray:
    """The node that each item becomes: in each cluster, up to m nodes of a person are had by at least k persons.

    Once this holds for one item, raising others cannot undo it, and so on for two and more.
    """
    forest, leaves = items.forest, items.forest.path.shape[1]
    cells, cell = np.unique(part[items.owner] * leaves + items.leaf, return_inverse=True)
    cluster, leaf = cells // leaves, cells % leaves
    node = forest.path[0][leaf]
    for size in range(1, m + 1):
        rows = np.arange(len(items))
        while len(rows):
            raised = _raised(forest, *_rare(items.owner[rows], cluster[cell[rows]], node[cell[rows]], size, k))
            node = _raise(forest, cluster, leaf, node, raised)
            rows = rows[np.isin(cluster[cell[rows]], raised // len(forest))]
    return node[cell]


def _rare(owner: np.ndarray, cluster: np.ndarray, node: np.ndarray, size: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Combinations of nodes that fewer than k persons of a cluster have: the cluster of each, and its nodes, a row each.

    Persons stand in order.
    """
    bound = int(node.max()) + 1
    pairs, first = np.unique(owner * bound + node, return_index=True)
    node, cluster, person = pairs % bound, cluster[first], pairs // bound
    combination = _combinations(np.searchsorted(person, person, side="right"), size)
    cluster, nodes = cluster[combination[0]], node[combination]
    keys, _ = pack([cluster, *nodes], [int(cluster.max(initial=0)) + 1, *[bound] * size])
    _, first, persons = np.unique(keys, return_index=True, return_counts=True)
    chosen = first[persons < k]
    return cluster[chosen], nodes[:, chosen]


def _combinations(end: np.ndarray, size: int) -> np.ndarray:
    """Positions of all combinations of so many neighbours, where those of position i stand before end[i]."""
    found = np.arange(len(end))[None]
    for _ in range(size - 1):
        last = found[-1]
        more = end[last] - 1 - last
        step = np.arange(more.sum()) - np.repeat(np.cumsum(more) - more, more)
        found = np.repeat(found, more, axis=1)
        found = np.concatenate([found, found[-1:] + 1 + step])
    return found


def _raised(forest: Forest, cluster: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """The clusters' nodes that items are to be raised to, as cluster * len(forest) + node.

    Each rare combination asks for the narrowest one over its nodes; granted is in each cluster what is asked for most,
    and what is asked for half as often or more.
    """
    above = forest.parent[nodes]
    width = np.where(above == nodes, np.inf, forest.width[above])
    narrowest = above[width.argmin(axis=0), np.arange(len(cluster))]
    asked, votes = np.unique(cluster * len(forest) + narrowest, return_counts=True)
    most = np.zeros(int(cluster.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(most, asked // len(forest), votes)
    raised: np.ndarray = asked[2 * votes >= most[asked // len(forest)]]
    return raised


def _raise(forest: Forest, cluster: np.ndarray, leaf: np.ndarray, node: np.ndarray, raised: np.ndarray) -> np.ndarray:
    """The cells' nodes after raising those under a raised one to it."""
    node, level = node.copy(), forest.level[raised % max(len(forest), 1)]
    for height in np.unique(level):
        above = forest.path[height][leaf]
        under = np.isin(cluster * len(forest) + above, raised[level == height]) & (forest.level[node] < height)
        node[under] = above[under]
    return node

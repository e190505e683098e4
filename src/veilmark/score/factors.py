"""The distinguishing factors of the tkl-Score paper, for every distinct record of a source.

A distinct record is a combination of all quasi-identifiers and all sensitive attributes. On these combinations
"how many values of S_i go with the rest" is a plain group size, so that everything is counting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from veilmark.tables.cells import Cells, number, pack
from veilmark.tables.classes import ClassTable

COUNT_LIMIT = 1 << 26


@dataclass(frozen=True, eq=False)
class Factors:
    """What is known of each distinct record; arrays run along `cells`.

    `weight` is Σ of the weights of its sensitive values; `df_k` the size of its class (persons where they are known);
    `df_l` the fewest values that one of its sensitive attributes could have, all else equal; `df_t` the largest
    distance of its class's sensitive values to the whole table's.
    """

    cells: Cells
    quasi: int
    owner: np.ndarray
    weight: np.ndarray
    df_k: np.ndarray
    df_l: np.ndarray
    df_t: np.ndarray
    cap: bool = False

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def m(self) -> np.ndarray:
        """The record score of M-Score (Eq. 1)."""
        return np.minimum(1.0, self.weight) / self.df_k

    @cached_property
    def l_severity(self) -> np.ndarray:
        """The record score of L-Severity (Eq. 3)."""
        return self.weight / self.df_k

    @cached_property
    def tkl(self) -> np.ndarray:
        """The record score of tkl-Score (Eq. 5); `cap` holds the weight to 1, as §3.2 assumes."""
        return (self.df_t + (np.minimum(1.0, self.weight) if self.cap else self.weight)) / self.df_l


def source_factors(
    cells: Cells,
    classes: ClassTable,
    weights: Mapping[str, np.ndarray],
    distances: Mapping[str, Callable[[], np.ndarray]],
    sizes: np.ndarray | None = None,
) -> Factors:
    """Factors of a source; `distances` are of its classes, by attribute; `sizes` its classes' persons if they count."""
    quasi = len(classes.columns)
    owner = cells.owners(quasi)
    farthest = np.zeros(len(classes))
    for distance in distances.values():
        np.maximum(farthest, distance(), out=farthest)
    df_k = (classes.records if sizes is None else sizes)[owner]
    weight = total_weight(cells, quasi, weights)
    return Factors(cells, quasi, owner, weight, df_k, distinct_given_rest(cells, quasi, owner), farthest[owner])


def table_factors(cells: Cells, weights: Mapping[str, np.ndarray]) -> Factors:
    """Factors of a published table without quasi-identifiers, taken in the table itself (§2.1, §3.1, §3.2).

    Every record has the same ones: the table's size, its least diversity, and no distance.
    """
    n = len(cells)
    owner = np.zeros(n, dtype=np.int64)
    lowest = distinct_given_rest(cells, 0, owner).min(initial=np.iinfo(np.int64).max)
    weight = total_weight(cells, 0, weights)
    return Factors(cells, 0, owner, weight, np.full(n, cells.records.sum()), np.full(n, lowest), np.zeros(n))


def total_weight(cells: Cells, quasi: int, weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """Σ of the weights of each cell's sensitive values."""
    weight = np.zeros(len(cells))
    for i in range(quasi, len(cells.columns)):
        weight += weights[cells.columns[i]][cells.codes[i]]
    return weight


def distinct_given_rest(cells: Cells, quasi: int, owner: np.ndarray) -> np.ndarray:
    """DF_l: the fewest distinct values of a sensitive attribute, among cells alike in everything else."""
    sensitive = range(quasi, len(cells.columns))
    least = np.full(len(cells), np.iinfo(np.int64).max)
    for i in sensitive:
        rest = [j for j in sensitive if j != i]
        np.minimum(least, _group_sizes(cells, owner, rest), out=least)
    return least


def _group_sizes(cells: Cells, owner: np.ndarray, columns: Sequence[int]) -> np.ndarray:
    """For each cell how many cells share its class and the columns' values."""
    if list(columns) == list(range(len(cells.columns) - len(columns) - 1, len(cells.columns) - 1)):
        return _run_lengths(cells.starts(len(cells.columns) - 1), len(cells))
    classes = int(owner[-1]) + 1 if len(owner) else 0
    codes = [owner, *(cells.codes[j] for j in columns)]
    keys, bound = pack(codes, [max(classes, 1), *(len(cells.domains[j]) for j in columns)])
    if bound > COUNT_LIMIT:
        keys = number(keys, bound)[1]
    return np.bincount(keys)[keys] if len(keys) else np.empty(0, dtype=np.int64)


def _run_lengths(starts: np.ndarray, count: int) -> np.ndarray:
    """For each of the cells, how long its run is."""
    lengths = np.diff(starts, append=count)
    return np.repeat(lengths, lengths)

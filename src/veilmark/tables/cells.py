"""Cells: the distinct combinations of some columns, integer-coded and counted. What an engine's group-by yields."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.errors import DataError
from veilmark.tables.domain import Domain

DENSE_LIMIT = 1 << 22
"""Up to this many possible combinations an array over all of them is faster than sorting."""

MANY_ROWS = 1 << 14
"""From so many rows on, an array over all combinations is worth being made."""

SORT_ROWS = 1 << 24
"""So many rows are sorted at once; memory beyond that grows with the combinations only."""


@dataclass(frozen=True, eq=False)
class Cells:
    """`codes[i, j]` is the value of column i in combination j; combinations stand in lexicographic order.

    `settled` counts, where persons were asked for, the persons who occur in one class only.
    """

    columns: tuple[str, ...]
    domains: tuple[Domain, ...]
    codes: np.ndarray
    records: np.ndarray
    settled: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"Cells({len(self):,} combinations of {', '.join(self.columns)}; {self.records.sum():,} records)"

    def starts(self, leading: int) -> np.ndarray:
        """Where a new combination of the leading columns begins."""
        if not len(self):
            return np.empty(0, dtype=np.int64)
        change = np.zeros(len(self), dtype=bool)
        change[0] = True
        for column in self.codes[:leading]:
            change[1:] |= column[1:] != column[:-1]
        return np.flatnonzero(change)

    def owners(self, leading: int) -> np.ndarray:
        """The number of the leading columns' combination that each combination belongs to."""
        owner = np.zeros(len(self), dtype=np.int64)
        owner[self.starts(leading)[1:]] = 1
        return np.cumsum(owner, out=owner)


def encode(table: pa.Table, columns: Sequence[str]) -> Cells:
    """Cells out of an engine's group-by: the columns in this order, then records and perhaps settled persons."""
    coded = [_encode_column(table.column(i), name) for i, name in enumerate(columns)]
    domains = tuple(domain for domain, _ in coded)
    codes = np.array([code for _, code in coded], dtype=np.int32).reshape(len(columns), len(table))
    counts = [table.column(i).to_numpy().astype(np.int64) for i in range(len(columns), table.num_columns)]
    keys, _ = pack(codes, [len(d) for d in domains])
    order = np.argsort(keys, kind="stable")
    return Cells(tuple(columns), domains, codes[:, order], *(count[order] for count in counts))


def _encode_column(column: pa.ChunkedArray, name: str) -> tuple[Domain, np.ndarray]:
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    domain = Domain.of(coded.dictionary, name)
    return domain, domain.codes_of(coded.dictionary)[coded.indices.to_numpy()]


def pack(codes: Sequence[np.ndarray] | np.ndarray, sizes: Sequence[int]) -> tuple[np.ndarray, int]:
    """One integer for each combination, in the same order, and a bound above all of them.

    Where the product of the sizes outgrows 63 bits, the combinations so far are renumbered densely.
    """
    keys = np.zeros(codes.shape[1] if isinstance(codes, np.ndarray) else len(codes[0]), dtype=np.int64)
    bound = 1
    for code, size in zip(codes, sizes, strict=True):
        if bound * max(size, 1) >= 1 << 63:
            distinct, keys = np.unique(keys, return_inverse=True)
            bound = max(len(distinct), 1)
        keys *= size
        keys += code
        bound *= max(size, 1)
    return keys, bound


def number(keys: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct keys in order, and for each key its position among them."""
    if bound > max(DENSE_LIMIT, 8 * len(keys)):
        return np.unique(keys, return_inverse=True)
    present = np.zeros(bound, dtype=bool)
    present[keys] = True
    distinct = np.flatnonzero(present)
    position = np.empty(bound, dtype=np.int32 if len(distinct) < 1 << 31 else np.int64)
    position[distinct] = np.arange(len(distinct))
    return distinct, position[keys]


class CellIndex:
    """Finds combinations by their values, again and again."""

    def __init__(self, codes: np.ndarray, domains: Sequence[Domain]) -> None:
        self.domains = tuple(domains)
        self._renumbered: list[np.ndarray | None] = []
        keys, bound = np.zeros(codes.shape[1], dtype=np.int64), 1
        for code, domain in zip(codes, domains, strict=True):
            size = max(len(domain), 1)
            wide = bound * size >= 1 << 63
            distinct, keys = np.unique(keys, return_inverse=True) if wide else (None, keys)
            self._renumbered.append(distinct)
            bound = (bound if distinct is None else max(len(distinct), 1)) * size
            keys = keys * size + code
        self._order = None if np.all(keys[1:] > keys[:-1]) else np.argsort(keys, kind="stable")
        self._keys = keys if self._order is None else keys[self._order]
        self._bound = bound

    def find(self, codes: np.ndarray, domains: Sequence[Domain]) -> np.ndarray:
        """The position of each combination, coded by its own domains; -1 where it is not there."""
        mine = np.empty_like(codes)
        for i, (domain, theirs) in enumerate(zip(domains, self.domains, strict=True)):
            mine[i] = theirs.codes_of(domain.text)[codes[i]]
        return self.find_codes(mine)

    def find_codes(self, codes: np.ndarray) -> np.ndarray:
        """The position of each combination, coded by the index's domains (-1: a value that they lack)."""
        keys = np.zeros(codes.shape[1], dtype=np.int64)
        known = np.all(codes >= 0, axis=0)
        for code, domain, distinct in zip(codes, self.domains, self._renumbered, strict=True):
            if distinct is not None:
                keys, there = _look_up(distinct, keys)
                known &= there
            keys = keys * max(len(domain), 1) + code
        if len(keys) >= MANY_ROWS and self._bound <= DENSE_LIMIT:
            return np.where(known, self._dense[np.where(known, keys, 0)], -1)
        place, there = _look_up(self._keys, keys)
        place = place if self._order is None or not len(self._order) else self._order[place]
        return np.where(known & there, place, -1)

    @cached_property
    def _dense(self) -> np.ndarray:
        """The position of each possible combination."""
        places = np.full(self._bound, -1, dtype=np.int64)
        places[self._keys] = np.arange(len(self._keys)) if self._order is None else self._order
        return places


def _look_up(ordered: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each wanted key stands among ordered ones, and whether it is there."""
    if not len(ordered):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return place, ordered[place] == wanted


def number_unordered(keys: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """How many distinct keys there are, where each stands first, and for each key its number by first appearance."""
    coded = pa.array(keys).dictionary_encode()
    index = coded.indices.to_numpy()
    count = len(coded.dictionary)
    first = np.empty(count, dtype=np.int64)
    first[index[::-1]] = np.arange(len(keys) - 1, -1, -1)
    return count, first, index


def total(index: np.ndarray, amounts: np.ndarray, groups: int) -> np.ndarray:
    """Sums of whole-number amounts by group."""
    return np.bincount(index, weights=amounts, minlength=groups).astype(np.int64)


def count_batches(batches: Iterable[pa.RecordBatch], domains: Sequence[Domain], columns: Sequence[str]) -> Cells:
    """Cells by packing each row into one number and counting these; `domains` must cover the batches.

    The product of the domains' sizes must stay below 63 bits.
    """
    sizes = [len(d) for d in domains]
    bound = math.prod(sizes)
    counter = _KeyCounter(bound)
    strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    coders = [BatchCoder(d, stride, counter.type) for d, stride in zip(domains, strides, strict=True)]
    for batch in batches:
        keys = np.zeros(batch.num_rows, dtype=counter.type)
        for column, coder in zip(columns, coders, strict=True):
            keys += coder.shares(batch.column(column))
        counter.add(keys)
    keys, counts = counter.result()
    return Cells(tuple(columns), tuple(domains), _unpack(keys, sizes), counts)


class _KeyCounter:
    """Counts keys below a bound: in an array over all of them where that is small, else by sorting."""

    def __init__(self, bound: int) -> None:
        self._dense = np.zeros(bound, dtype=np.int64) if bound <= DENSE_LIMIT else None
        self.type = np.int32 if bound < 1 << 31 else np.int64
        self._waiting: list[np.ndarray] = []
        self._rows = 0
        self._keys = np.empty(0, dtype=self.type)
        self._counts = np.empty(0, dtype=np.int64)

    def add(self, keys: np.ndarray) -> None:
        if self._dense is not None:
            np.add.at(self._dense, keys, 1)
            return
        self._waiting.append(keys)
        self._rows += len(keys)
        if self._rows >= SORT_ROWS:
            self._fold()

    def _fold(self) -> None:
        """Sort what waits, and merge it with what is counted."""
        keys = np.concatenate([self._keys[:0], *self._waiting])
        self._waiting, self._rows = [], 0
        keys.sort()
        starts = _run_starts(keys)
        counts = np.empty(len(starts), dtype=np.int64)
        np.subtract(starts[1:], starts[:-1], out=counts[:-1])
        counts[-1:] = len(keys) - starts[-1:]
        both = np.concatenate([self._keys, keys[starts]])
        amounts = np.concatenate([self._counts, counts])
        if len(self._keys):
            order = np.argsort(both, kind="stable")
            both, amounts = both[order], amounts[order]
            starts = _run_starts(both)
            both, amounts = both[starts], np.add.reduceat(amounts, starts)
        self._keys, self._counts = both, amounts

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """The keys that occur, in order, and how often."""
        if self._dense is not None:
            keys = np.flatnonzero(self._dense)
            return keys.astype(self.type), self._dense[keys]
        self._fold()
        return self._keys, self._counts


def _run_starts(keys: np.ndarray) -> np.ndarray:
    """Where each run of equal keys begins."""
    if not len(keys):
        return np.empty(0, dtype=np.int64)
    change = np.empty(len(keys), dtype=bool)
    change[0] = True
    np.not_equal(keys[1:], keys[:-1], out=change[1:])
    return np.flatnonzero(change)


def _unpack(keys: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """The codes that keys were packed from."""
    codes = np.empty((len(sizes), len(keys)), dtype=np.int32)
    rest, higher = keys, np.empty_like(keys)
    for i in reversed(range(1, len(sizes))):
        size = keys.dtype.type(max(sizes[i], 1))
        np.floor_divide(rest, size, out=higher)
        np.subtract(rest, higher * size, out=codes[i], casting="unsafe")
        rest, higher = higher, (rest if rest is not keys else np.empty_like(keys))
    if sizes:
        codes[0] = rest
    return codes


def row_codes(batch: pa.RecordBatch, columns: Sequence[str], domains: Sequence[Domain]) -> np.ndarray:
    """The codes of a batch's rows, column by column; -1 for a value that the domain lacks."""
    codes = np.empty((len(columns), batch.num_rows), dtype=np.int32)
    for i, (column, domain) in enumerate(zip(columns, domains, strict=True)):
        coded = batch.column(column)
        if not pa.types.is_dictionary(coded.type):
            coded = coded.dictionary_encode(null_encoding="encode")
        codes[i] = domain.codes_of(coded.dictionary)[coded.indices.to_numpy(zero_copy_only=False)]
    return codes


FEW_NUMBERS = 1 << 20
"""Whole numbers that span no more are looked up in an array."""

CHANGED = "The table changed while it was being read: it has values that it did not have before. Try again."


class BatchCoder:
    """What one column adds to the packed number of each row; a dictionary that stays the same is looked up once.

    Each value of the domain counts its code, or that of its group, times the stride.
    """

    def __init__(
        self, domain: Domain, stride: int, kind: type[np.signedinteger], groups: np.ndarray | None = None
    ) -> None:
        self._domain = domain
        codes = np.arange(len(domain)) if groups is None else groups
        self._amounts = np.append(codes.astype(np.int64) * stride, 0).astype(kind)
        self._kind = kind
        self._dictionary: pa.Array | None = None
        self._shares = np.empty(0, dtype=kind)
        self._unknown = np.empty(0, dtype=np.int64)

    def shares(self, column: pa.Array) -> np.ndarray:
        """code × stride of each row, or group × stride."""
        if self._by_number is not None and pa.types.is_integer(column.type) and not column.null_count:
            return self._of_numbers(column.to_numpy())
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        if self._dictionary is None or not self._dictionary.equals(column.dictionary):
            self._dictionary = column.dictionary
            codes = np.append(self._codes(column.dictionary), len(self._domain) - 1)
            self._unknown = np.flatnonzero(codes < 0)
            self._shares = self._amounts[codes]
        indices = column.indices
        if indices.null_count:
            if self._domain.missing is None:
                raise DataError(CHANGED)
            indices = indices.cast(pa.int64()).fill_null(len(self._shares) - 1)
        rows = indices.to_numpy()
        if len(self._unknown) and np.isin(rows, self._unknown).any():
            raise DataError(CHANGED)
        return self._shares[rows]

    def _codes(self, values: pa.Array) -> np.ndarray:
        """The code of each value, -1 where the domain lacks it; most are found without being written out as text."""
        if values.type != self._domain.values.type:
            return self._domain.codes_of(values)
        found = pc.index_in(values, value_set=self._domain.values, skip_nulls=True)
        codes = np.array(found.fill_null(-1), dtype=np.int32)
        lost = np.flatnonzero(codes < 0)
        codes[lost] = self._domain.codes_of(values.take(lost)) if len(lost) else -1
        return codes

    @cached_property
    def _by_number(self) -> tuple[int, np.ndarray] | None:
        """The lowest number and the code of each from there on (-1: not in the domain), where they span little."""
        numbers = self._domain.numbers
        numbers = numbers if numbers is None or self._domain.missing is None else numbers[:-1]
        if numbers is None or not np.array_equal(numbers, np.round(numbers)):
            return None
        low, high = int(numbers[0]), int(numbers[-1])
        if high - low > FEW_NUMBERS or max(-low, high) >= 1 << 53 or len(np.unique(numbers)) < len(numbers):
            return None
        shares = np.full(high - low + 1, -1, dtype=self._kind)
        shares[numbers.astype(np.int64) - low] = self._amounts[: len(numbers)]
        return low, shares

    def _of_numbers(self, rows: np.ndarray) -> np.ndarray:
        assert self._by_number is not None
        low, shares = self._by_number
        if len(rows) and (int(rows.min()) < low or int(rows.max()) >= low + len(shares)):
            raise DataError(CHANGED)
        found = shares[np.subtract(rows, low, dtype=np.int64, casting="unsafe")]
        if len(found) and found.min() < 0:
            raise DataError(CHANGED)
        return found

"""A leaked table, as tracing looks at it: the distinct values of a column, and how often each combination occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from veilmark.tables.cells import number, pack
from veilmark.tables.domain import as_text


@dataclass(frozen=True, eq=False)
class Combinations:
    """Distinct rows of some columns: `texts[i]` are the distinct values of column i, `codes[i, j]` which of them row j has,
    `counts[j]` how many rows are like it."""

    texts: tuple[pa.Array, ...]
    codes: np.ndarray
    counts: np.ndarray


class Leaked(Protocol):
    """What is asked of a leaked table. The distinct values of a column are in the same order in every answer."""

    @property
    def columns(self) -> Sequence[str]: ...

    def combinations(self, columns: Sequence[str]) -> Combinations: ...


@dataclass(frozen=True, eq=False)
class LeakedTable:
    """A leak in memory; `counts` says how many rows each row stands for, if more than one."""

    table: pa.Table
    counts: np.ndarray | None = None

    @property
    def columns(self) -> Sequence[str]:
        return [f.name for f in self.table.schema if not pa.types.is_nested(f.type)]

    @cached_property
    def _coded(self) -> dict[str, tuple[pa.Array, np.ndarray]]:
        return {}

    def _column(self, name: str) -> tuple[pa.Array, np.ndarray]:
        if name not in self._coded:
            self._coded[name] = encoded(self.table.column(name))
        return self._coded[name]

    def combinations(self, columns: Sequence[str]) -> Combinations:
        coded = [self._column(name) for name in columns]
        return distinct_rows([texts for texts, _ in coded], [codes for _, codes in coded], self.counts)


def encoded(column: pa.ChunkedArray) -> tuple[pa.Array, np.ndarray]:
    """The distinct texts of a column, and the number of each row's."""
    coded = as_text(column.combine_chunks()).dictionary_encode(null_encoding="encode")
    return coded.dictionary, coded.indices.to_numpy()


def distinct_rows(
    texts: Sequence[pa.Array], codes: Sequence[np.ndarray], counts: np.ndarray | None = None
) -> Combinations:
    """Combinations of coded columns, each once; `counts` says how often each was seen, if more than once."""
    both = np.array(codes, dtype=np.int64)
    if not both.size:
        return Combinations(tuple(texts), both.reshape(len(texts), 0), np.zeros(0, dtype=np.int64))
    distinct, group = number(*pack(both, [len(t) for t in texts]))
    first = np.zeros(len(distinct), dtype=np.int64)
    first[group] = np.arange(both.shape[1])
    return Combinations(tuple(texts), both[:, first], np.bincount(group, counts).astype(np.int64))

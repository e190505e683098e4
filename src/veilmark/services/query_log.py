"""Log: what each line says was returned, and which of the source's records these are.

A result is named by the keys of its records or by their rows.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate, chain, pairwise
from operator import itemgetter, not_
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from veilmark import progress
from veilmark.engines.frames import to_arrow
from veilmark.errors import DataError, OptionError, VeilmarkWarning
from veilmark.messages import param
from veilmark.tables.cells import CellIndex, row_codes
from veilmark.tables.domain import Domain, as_text

if TYPE_CHECKING:
    from veilmark.engines.base import Table
    from veilmark.score.scorer import Scorer

EXAMPLE = '{"user": "ann", "time": "2026-01-02T03:04:05", "keys": ["p1", "p7"]}'

BLOCK = 1_000
"""The most lines that are read at once."""

CHUNK = 1 << 18
LONGEST = 1 << 26

LOST, REMEMBERED = -2, 100_000
"""The code of a value that is not in the source as it is written, and how many of these a column remembers."""

STRANGE = 20
"""After so many results in a row of which no record is known, a warning says that something is amiss."""


# --- lines -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Query:
    """One query's result: who asked, when, and either the keys or the rows that came back."""

    user: str
    rows: Any = None
    keys: Sequence[object] | None = None
    time: str | None = None


class NotJsonError(DataError):
    """A line of a log is not a JSON object."""


def ready_lines(stream: io.BufferedIOBase, most: int = BLOCK) -> Iterator[list[bytes]]:
    """The stream's lines in blocks of at most `most`: those that are ready, without waiting for more."""
    pieces: list[bytes] = []
    length = 0
    while chunk := stream.read1(CHUNK):
        whole, newline, rest = chunk.rpartition(b"\n")
        pieces.append(whole if newline else chunk)
        length += len(chunk)
        if newline:
            lines = b"".join(pieces).split(b"\n")
            yield from (lines[i : i + most] for i in range(0, len(lines), most))
            pieces, length = [rest], len(rest)
        elif length > LONGEST:
            raise DataError("A line of the log is longer than 64 MB. Each line of a log is one JSON object.")
    if last := b"".join(pieces):
        yield [last]


def parse_query(line: bytes | str) -> Query:
    """One line of a log."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        content = None
    if type(content) is not dict:
        raise NotJsonError(f"This is not a JSON object. Each line of a log is one, such as {EXAMPLE}.")
    user, time = content.get("user"), content.get("time")
    if user is None or user == "" or isinstance(user, list | dict):
        raise DataError('The line has no user. Each line needs one: "user": "ann".')
    keys, rows = content.get("keys"), content.get("rows")
    if not isinstance(rows if keys is None else keys, list):
        raise DataError('The line has neither "keys" nor "rows". Give one of them as a list; an empty result is [].')
    return Query(_printable(user), rows, keys, None if time is None else _printable(time))


def _printable(value: object) -> str:
    """A name as text that does no harm on a terminal."""
    text = value if type(value) is str else str(value)
    return text if text.isprintable() else json.dumps(text)[1:-1]


# --- finding records ---------------------------------------------------------------------------------------


def text_of(value: object) -> str | None:
    """`as_text` of one Python value, the common kinds quickly: 30, 30.0 and "30" are the same; "" is missing."""
    if type(value) is str:
        return value or None
    if type(value) is int:
        return str(value)
    if type(value) is float and (1e-4 <= abs(value) < 1e15 or value == 0):
        return repr(value or 0).removesuffix(".0")
    if type(value) is date:
        return value.isoformat()
    text: str | None = as_text(pa.array([value]))[0].as_py()
    return text


class _Codes(dict[object, int]):
    """The code of each value of a column, by its text; -1 for a value that the source lacks.

    A value that is not there as it is written is left to the domain, which compares loosely, and then remembered.
    """

    def __init__(self, domain: Domain) -> None:
        super().__init__(zip(domain.text.to_pylist(), range(len(domain)), strict=True))
        self[""] = self.setdefault(None, -1)
        self._domain = domain
        self._room = len(self) + REMEMBERED

    def of(self, values: Sequence[object]) -> np.ndarray:
        """The code of each value."""
        codes = np.fromiter(map(self.__getitem__, values), np.int32, len(values))
        lost = np.flatnonzero(codes == LOST)
        if len(lost):
            texts = [str(text_of(values[i])) for i in lost.tolist()]
            # JSON may hold half a surrogate pair, which Arrow does not take for text.
            whole = [text.encode(errors="backslashreplace") for text in texts]
            codes[lost] = self._domain.codes_of(pa.array(whole, pa.string()))
            if len(self) < self._room:
                self.update(zip(texts, codes[lost].tolist(), strict=True))
        return codes

    def __missing__(self, value: object) -> int:
        return self.get(text_of(value), LOST)


@dataclass(frozen=True, eq=False)
class KeyIndex:
    """Where the records of each key belong: a 64-bit hash of its text, in order, and the cell; 12 bytes a record.

    The hash is Python's own of texts (SipHash with a key drawn for each process). Two of n keys share one with a
    probability of about n²/2^65: 3 in 10^8 for a million keys, 5 in 10^6 for 13 million; then each would count as
    the other's records too. A key that the source lacks passes for one it has with a probability of n/2^64.
    """

    hashes: np.ndarray
    cells: np.ndarray

    @classmethod
    def build(cls, table: Table, key: str, scorer: Scorer) -> KeyIndex:
        """Read a table's keys with their cells, batch by batch."""
        with progress.step(f"Indexing {table.label} by {key}"):
            parts = [_hashes_and_cells(batch, key, scorer) for batch in table.batches()]
            hashes = np.concatenate([h for h, _ in parts] or [np.empty(0, dtype=np.int64)])
            cells = np.concatenate([c for _, c in parts] or [np.empty(0, dtype=np.int32)])
            order = np.argsort(hashes, kind="stable")
            return cls(hashes[order], cells[order])

    def __len__(self) -> int:
        return len(self.hashes)

    def find(self, keys: Sequence[str | None]) -> tuple[np.ndarray, np.ndarray]:
        """Where the records of each key begin, and how many there are."""
        wanted = np.fromiter(map(hash, keys), np.int64, len(keys))
        first = np.searchsorted(self.hashes, wanted, "left")
        return first, np.searchsorted(self.hashes, wanted, "right") - first


def _hashes_and_cells(batch: pa.RecordBatch, key: str, scorer: Scorer) -> tuple[np.ndarray, np.ndarray]:
    """The key's hash and the cell of each row that has a key."""
    texts = as_text(batch.column(key))
    place = scorer.index.find_codes(row_codes(batch, scorer.cells.columns, scorer.cells.domains)).astype(np.int32)
    present = texts.is_valid().to_numpy(zero_copy_only=False)
    named = texts.drop_null().to_pylist()
    return np.fromiter(map(hash, named), np.int64, len(named)), place[present]


@dataclass(frozen=True, eq=False)
class Returned:
    """The known records of one result: the cell of each, its score and, where keys named it, its place among them."""

    cells: Sequence[int]
    tkl: Sequence[float]
    places: Sequence[int] | None
    unknown: int


@dataclass(frozen=True, eq=False)
class Source:
    """What is kept of a source: each cell's tkl, and how to find cells by rows and by keys."""

    columns: tuple[str, ...]
    tkl: np.ndarray
    total: float
    records: int
    index: CellIndex
    codes: tuple[_Codes, ...]
    keys: KeyIndex | None

    @classmethod
    def read(cls, table: Table, scorer: Scorer, key: str | None) -> Source:
        """Keep what is needed of an open table; `key` is one of its columns."""
        keys = None if key is None else KeyIndex.build(table, key, scorer)
        tkl, counts = scorer.factors.tkl, scorer.cells.records
        records = int(counts.sum())
        if keys is not None and len(keys) < records:
            nameless = f"{records - len(keys):,} records have no '{key}', so a log with keys cannot refer to them."
            warnings.warn(nameless, VeilmarkWarning, stacklevel=2)
        codes = tuple(_Codes(domain) for domain in scorer.cells.domains)
        return cls(scorer.cells.columns, tkl, float((counts * tkl).sum()), records, scorer.index, codes, keys)

    def find(self, queries: Sequence[Query]) -> list[Returned]:
        """The records of each result; all results are looked up at once."""
        for query in queries:
            if (query.rows is None) == (query.keys is None):
                raise DataError("Give either the keys of the returned records or their rows, not both.")
        by_keys = self._by_keys([query.keys for query in queries if query.keys is not None])
        by_rows = self._by_rows([_row_list(query.rows) for query in queries if query.rows is not None])
        return [next(by_rows if query.keys is None else by_keys) for query in queries]

    def _by_rows(self, results: Sequence[Sequence[Mapping[str, object]]]) -> Iterator[Returned]:
        """A row stands for one record of its cell."""
        if not results:
            return iter(())
        cell = self.index.find_codes(self._codes_of(list(chain.from_iterable(results))))
        known = cell >= 0
        cell = cell[known]
        return _split(cell, self.tkl[cell], None, known.astype(np.int64), map(len, results))

    def _codes_of(self, rows: Sequence[Mapping[str, object]]) -> np.ndarray:
        codes = np.empty((len(self.columns), len(rows)), dtype=np.int32)
        try:
            for i, (name, code) in enumerate(zip(self.columns, self.codes, strict=True)):
                codes[i] = code.of(list(map(itemgetter(name), rows)))
        except KeyError as error:
            raise DataError(
                f"A returned row has no '{error.args[0]}'. Each row needs every quasi-identifier and sensitive "
                f"attribute of the study ({', '.join(self.columns)}). Write null for a missing value."
            ) from None
        except (TypeError, ValueError, NotImplementedError):
            raise DataError("A returned row is not an object of names and plain values.") from None
        return codes

    def _by_keys(self, results: Sequence[Sequence[object]]) -> Iterator[Returned]:
        """A key stands for all its records, and counts once in a result however often it is named there."""
        if not results:
            return iter(())
        if self.keys is None:
            raise OptionError(
                f"The log contains keys, but the key column is not named. Name it with {param('log_key')}, or "
                "name a person column in the study."
            )
        named = [_distinct_keys(keys) for keys in results]
        first, count = self.keys.find(list(chain.from_iterable(named)))
        before = np.cumsum(count) - count
        places = np.repeat(first - before, count) + np.arange(count.sum())
        cell = self.keys.cells[places]
        return _split(cell, self.tkl[cell], places, count, map(len, named))


def _row_list(rows: Any) -> Sequence[Mapping[str, object]]:
    """Rows as mappings: a list is one already, anything else is taken for a frame."""
    if isinstance(rows, list | tuple):
        return rows
    listed: list[Mapping[str, object]] = to_arrow(rows).to_pylist()
    return listed


def _distinct_keys(keys: Sequence[object]) -> dict[str | None, None]:
    try:
        return dict.fromkeys([(key or None) if type(key) is str else text_of(key) for key in keys])
    except (TypeError, ValueError, NotImplementedError):
        raise DataError("A returned key is not a plain value.") from None


def _split(
    cell: np.ndarray, tkl: np.ndarray, places: np.ndarray | None, count: np.ndarray, lengths: Iterable[int]
) -> Iterator[Returned]:
    """Records by result; `count` is how many each key or row has, `lengths` how many of these each result has."""
    counts = count.tolist()
    ends = [0, *accumulate(counts)]
    unknown = [0, *accumulate(map(not_, counts))]
    cells, scores, listed = cell.tolist(), tkl.tolist(), None if places is None else places.tolist()
    for first, last in pairwise(accumulate(lengths, initial=0)):
        part = slice(ends[first], ends[last])
        named = None if listed is None else listed[part]
        yield Returned(cells[part], scores[part], named, unknown[last] - unknown[first])


class Seen:
    """The records that one user has seen and their score, so far as they surely differ.

    A key tells its records apart. A row stands for one record of its cell, whichever, so that rows alike may be one,
    and be one that a key named. So a cell counts with the records that keys named, or with 1 where only rows did, and
    never with more than the source has of it.
    """

    __slots__ = ("_by_key", "_by_row", "_places", "records", "tkl")

    def __init__(self) -> None:
        self.records = 0
        self.tkl = 0.0
        self._places: set[int] = set()
        self._by_key: set[int] = set()
        self._by_row: set[int] = set()

    def add(self, returned: Returned) -> None:
        """Count each record that is new."""
        if returned.places is None:
            new = self._new_rows(returned.cells)
        else:
            new = self._new_places(returned.places, returned.cells)
        for i in new:
            self.records += 1
            self.tkl += returned.tkl[i]

    def _new_rows(self, cells: Sequence[int]) -> Iterator[int]:
        for i, cell in enumerate(cells):
            if cell not in self._by_row:
                self._by_row.add(cell)
                if cell not in self._by_key:
                    yield i

    def _new_places(self, places: Sequence[int], cells: Sequence[int]) -> Iterator[int]:
        for i, place in enumerate(places):
            if place not in self._places:
                self._places.add(place)
                # The first that a key names in a cell takes the place of the row that was seen there.
                if cells[i] in self._by_key or cells[i] not in self._by_row:
                    yield i
                self._by_key.add(cells[i])


class Strangers:
    """Warns, once for rows and once for keys, where nothing that they name is in the source."""

    def __init__(self, columns: Sequence[str]) -> None:
        hint = f"The values may be written differently in the source. Compare {', '.join(columns)}."
        other = (
            f"The keys may be written differently in the source, or belong to another column. Check {param('log_key')}."
        )
        self._hints = {"rows": hint, "keys": other}
        self._in_a_row = dict.fromkeys(self._hints, 0)

    def heed(self, results: Iterable[Returned]) -> None:
        """Count the results in a row that have records but none that is known."""
        for returned in results:
            kind = "rows" if returned.places is None else "keys"
            if returned.cells:
                self._in_a_row[kind] = 0
            elif returned.unknown:
                self._in_a_row[kind] += 1
                if self._in_a_row[kind] >= STRANGE and kind in self._hints:
                    self._warn(kind, self._hints.pop(kind))

    def _warn(self, kind: str, hint: str) -> None:
        message = f"In {STRANGE} results in a row, none of the {kind} returned is in the source. {hint}"
        warnings.warn(message, VeilmarkWarning, stacklevel=4)

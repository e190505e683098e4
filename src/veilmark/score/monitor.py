"""Monitor: scores the result of every query against its source, and says when a user's are out of the ordinary.

A result is named by the keys of its records or by their rows. Its score is the tkl-Score of the returned records, as
if they were a published table; in a study without quasi-identifiers each record counts with its tkl in the whole
source, since factors taken in a result of a few rows could not be compared with the next one's.
"""

from __future__ import annotations

import json
import warnings
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, pairwise
from operator import itemgetter, not_
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from veilmark import progress
from veilmark.cells import CellIndex, row_codes
from veilmark.domain import Domain, as_text
from veilmark.engines.frames import to_arrow
from veilmark.errors import DataError, OptionError, VeilmarkWarning

if TYPE_CHECKING:
    from veilmark.engines.duckdb import DuckTable
    from veilmark.score.scorer import Scorer
    from veilmark.study import Study

NORMAL = 1.4826
"""The standard deviation of a normal distribution in median absolute deviations."""

LEAST_SHARE, LEAST_RECORDS = 0.05, 0.25
"""The least deviation a baseline goes by: this share of its median, and this many mean records of the source.

Without it a user whose results are all alike would raise an alert over a rounding, and one whose results are empty
over a single record.
"""

EXAMPLE = '{"user": "ann", "time": "2026-01-02T03:04:05", "keys": ["p1", "p7"]}'

Kind = Literal["user", "overall", "exposure"]


@dataclass(frozen=True)
class MonitorOptions:
    """When to raise an alert.

    `threshold`: how many usual spreads above the usual score is too much. `exposure`: shares of the source's score
    at which what a user has seen so far is told. `window` and `overall_window`: how many recent results the usual is
    taken from, a user's and everybody's. `min_history`: how many there must be before any is judged.
    """

    threshold: float = 6.0
    exposure: tuple[float, ...] = (0.01, 0.05, 0.2)
    window: int = 200
    overall_window: int = 5_000
    min_history: int = 20

    def __post_init__(self) -> None:
        if not self.threshold > 0:
            raise OptionError(f"The threshold must be above 0, not {self.threshold:g}. Try 6.")
        for limit in self.exposure:
            if not 0 < limit <= 1:
                raise OptionError(
                    f"An exposure limit is a share of the source's score, above 0 and at most 1, not {limit:g}. "
                    "Try 0.01,0.05,0.2."
                )
        if min(self.window, self.overall_window, self.min_history) < 2:
            raise OptionError("The windows and the least history must have 2 results or more. Try 200, 5000 and 20.")


@dataclass(frozen=True)
class Query:
    """One query's result: who asked, when, and either the keys or the rows that came back."""

    user: str
    rows: Any = None
    keys: Sequence[object] | None = None
    time: str | None = None


@dataclass(frozen=True)
class Alert:
    """What is out of the ordinary, and why. It names no record."""

    user: str
    time: str | None
    kind: Kind
    reason: str
    records: int
    score: float
    exposure: float

    def __str__(self) -> str:
        return f"{self.time or '-'}  {self.user}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Observation:
    """One result, scored. `records` are of the source, `unknown` are not and do not count in the scores.

    `score` is Σ tkl of the records and `score_max` the largest; `exposure` is the share of the source's score that
    the user has seen up to now, each record once.
    """

    user: str
    time: str | None
    records: int
    unknown: int
    score: float
    score_max: float
    exposure: float
    alerts: tuple[Alert, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"alerts": [alert.to_dict() for alert in self.alerts]}


@dataclass(frozen=True)
class UserSummary:
    """What one user has seen: results, records in them, distinct records, and their share of the source's score."""

    queries: int
    records: int
    unknown: int
    distinct_records: int
    exposure: float
    alerts: int

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


# --- the log -----------------------------------------------------------------------------------------------


class NotJsonError(DataError):
    """A line of a log is not a JSON object."""


def parse_query(line: bytes | str) -> Query:
    """One line of a log."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        content = None
    if type(content) is not dict:
        raise NotJsonError(f"This is not a JSON object. A log has one on each line, such as {EXAMPLE}.")
    user, time = content.get("user"), content.get("time")
    if user is None or user == "" or isinstance(user, list | dict):
        raise DataError('There is no user. Each line says who asked: "user": "ann".')
    keys, rows = content.get("keys"), content.get("rows")
    if not isinstance(rows if keys is None else keys, list):
        raise DataError('There is neither a list of "keys" nor one of "rows" that came back; an empty one is [].')
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
    text: str | None = as_text(pa.array([value]))[0].as_py()
    return text


class _Codes(dict[object, int]):
    """The code of each value of a column, by its text; -1 for a value that the source lacks."""

    def __init__(self, domain: Domain) -> None:
        super().__init__(zip(domain.text.to_pylist(), range(len(domain)), strict=True))
        self[""] = self.setdefault(None, -1)

    def __missing__(self, value: object) -> int:
        return self.get(text_of(value), -1)


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
    def build(cls, table: DuckTable, key: str, scorer: Scorer) -> KeyIndex:
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
class _Returned:
    """The records of one result: `ids` tell them apart, `tkl` are their scores."""

    ids: Sequence[int]
    tkl: Sequence[float]
    unknown: int


@dataclass(frozen=True, eq=False)
class _Source:
    """What is kept of a source: each cell's tkl, and how to find cells by rows and by keys."""

    columns: tuple[str, ...]
    tkl: np.ndarray
    total: float
    records: int
    index: CellIndex
    codes: tuple[_Codes, ...]
    keys: KeyIndex | None

    @classmethod
    def read(cls, study: Study, key: str | None) -> _Source:
        """Open the study's source, keep what is needed, and close it."""
        from veilmark import workbench

        with workbench.engine_of(study) as engine:
            table = workbench.open_source(engine, study)
            if key is not None:
                workbench.check_columns(table, [key], "the key of the log")
            scorer = workbench.scorer_of(table, study)
            return cls.of(scorer, None if key is None else KeyIndex.build(table, key, scorer), key)

    @classmethod
    def of(cls, scorer: Scorer, keys: KeyIndex | None, key: str | None) -> _Source:
        tkl, counts = scorer.factors.tkl, scorer.cells.records
        records = int(counts.sum())
        if keys is not None and len(keys) < records:
            nameless = f"{records - len(keys):,} records have no '{key}', so a log that gives keys cannot name them."
            warnings.warn(nameless, VeilmarkWarning, stacklevel=2)
        codes = tuple(_Codes(domain) for domain in scorer.cells.domains)
        return cls(scorer.cells.columns, tkl, float((counts * tkl).sum()), records, scorer.index, codes, keys)

    @property
    def floor(self) -> float:
        """The least deviation that counts: a part of the mean record's score."""
        return LEAST_RECORDS * self.total / self.records or 1e-12

    def find(self, queries: Sequence[Query]) -> list[_Returned]:
        """The records of each result; all results are looked up at once."""
        for query in queries:
            if (query.rows is None) == (query.keys is None):
                raise DataError("Give the keys of the returned records or their rows, one of the two.")
        by_keys = self._by_keys([query.keys for query in queries if query.keys is not None])
        by_rows = self._by_rows([_row_list(query.rows) for query in queries if query.rows is not None])
        return [next(by_rows if query.keys is None else by_keys) for query in queries]

    def _by_rows(self, results: Sequence[Sequence[Mapping[str, object]]]) -> Iterator[_Returned]:
        """Rows are told apart by their cell, whose number is below 0 so that it is no key's record."""
        if not results:
            return iter(())
        cell = self.index.find_codes(self._codes_of(list(chain.from_iterable(results))))
        known = cell >= 0
        cell = cell[known]
        return _split(-1 - cell, self.tkl[cell], known.astype(np.int64), map(len, results))

    def _codes_of(self, rows: Sequence[Mapping[str, object]]) -> np.ndarray:
        codes = np.empty((len(self.columns), len(rows)), dtype=np.int32)
        try:
            for i, (name, code) in enumerate(zip(self.columns, self.codes, strict=True)):
                codes[i] = np.fromiter(map(code.__getitem__, map(itemgetter(name), rows)), np.int32, len(rows))
        except KeyError as error:
            raise DataError(
                f"A returned row has no '{error.args[0]}'. A row has every quasi-identifier and sensitive attribute "
                f"of the study ({', '.join(self.columns)}); one that is missing is null."
            ) from None
        except (TypeError, ValueError, NotImplementedError):
            raise DataError("A returned row is not an object of names and plain values.") from None
        return codes

    def _by_keys(self, results: Sequence[Sequence[object]]) -> Iterator[_Returned]:
        """A key stands for all its records, and counts once in a result however often it is named there."""
        if not results:
            return iter(())
        if self.keys is None:
            raise OptionError(
                "Results are given by keys, but no key column is known. Name it with --key (in Python: key=…), or "
                "name a person column in the study."
            )
        named = [_distinct_keys(keys) for keys in results]
        first, count = self.keys.find(list(chain.from_iterable(named)))
        before = np.cumsum(count) - count
        ids = np.repeat(first - before, count) + np.arange(count.sum())
        return _split(ids, self.tkl[self.keys.cells[ids]], count, map(len, named))


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


def _split(ids: np.ndarray, tkl: np.ndarray, count: np.ndarray, lengths: Iterable[int]) -> Iterator[_Returned]:
    """Records by result; `count` is how many each key or row has, `lengths` how many of these each result has."""
    counts = count.tolist()
    ends = [0, *accumulate(counts)]
    unknown = [0, *accumulate(map(not_, counts))]
    listed, scores = ids.tolist(), tkl.tolist()
    for first, last in pairwise(accumulate(lengths, initial=0)):
        records = slice(ends[first], ends[last])
        yield _Returned(listed[records], scores[records], unknown[last] - unknown[first])


# --- what is usual -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Usual:
    """The middle of some scores, and how far they usually lie from it (as a standard deviation)."""

    median: float
    spread: float

    @classmethod
    def of(cls, scores: np.ndarray, floor: float) -> Usual:
        """Median and median absolute deviation, the latter not below `floor` and a share of the median."""
        median = _median(scores)
        deviation = max(_median(np.abs(scores - median)), LEAST_SHARE * median, floor)
        return cls(median, NORMAL * deviation)

    def times(self, score: float) -> float:
        """How many spreads a score lies above the median."""
        return (score - self.median) / self.spread


def _median(values: np.ndarray) -> float:
    # np.median takes ten times as long for a few hundred values.
    ordered = np.sort(values)
    half = len(ordered) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)


class Baseline:
    """The usual score over a window of recent ones.

    It is taken anew once a twentieth of the window has come in (10 scores of 200), not with every score.
    """

    __slots__ = ("_floor", "_next", "_scores", "_wait", "_window", "usual")

    def __init__(self, window: int, min_history: int, floor: float) -> None:
        self.usual: Usual | None = None
        self._scores = array("d")
        self._next = 0
        self._window = window
        self._wait = min(min_history, window)
        self._floor = floor

    def add(self, score: float) -> None:
        """Remember a score, in place of the oldest where the window is full."""
        if len(self._scores) < self._window:
            self._scores.append(score)
        else:
            self._scores[self._next] = score
            self._next = (self._next + 1) % self._window
        self._wait -= 1
        if not self._wait:
            self._wait = max(1, self._window // 20)
            self.usual = Usual.of(np.array(self._scores), self._floor)


class _User:
    """All that is remembered of one user."""

    __slots__ = ("alerts", "baseline", "highest", "limits", "queries", "records", "seen", "seen_tkl", "unknown")

    def __init__(self, baseline: Baseline) -> None:
        self.baseline = baseline
        self.queries = self.records = self.unknown = self.alerts = self.limits = 0
        self.highest = 0.0
        self.seen: set[int] = set()
        self.seen_tkl = 0.0

    def take(self, returned: _Returned) -> None:
        """Count a result, and each of its records that is new."""
        self.queries += 1
        self.records += len(returned.ids)
        self.unknown += returned.unknown
        for record, tkl in zip(returned.ids, returned.tkl, strict=True):
            if record not in self.seen:
                self.seen.add(record)
                self.seen_tkl += tkl


class Monitor:
    """Watches the results of queries on a study's source.

    The source is read once and not kept as rows: what stays is 16 bytes a distinct record and, where the log names
    records by `key` (by default the study's person column), 12 bytes a record; and for each user the window of
    scores and a set of the records seen. A record is told apart by its key, or else by its values: of rows alike in
    every column one counts as seen, so that a log should not name the same records now by keys and now by rows.

    A result raises an alert where its score is over the threshold for what is usual with this user; where it is for
    everybody's usual, and higher than this user's results that were told of for that reason before; and where what
    the user has seen so far reaches a limit for the first time. It is judged before it joins the history.
    """

    def __init__(self, study: Study, key: str | None = None, options: MonitorOptions | None = None) -> None:
        self.options = options or MonitorOptions()
        self._source = _Source.read(study, key or study.person)
        self._limits = sorted(self.options.exposure)
        self._new = partial(Baseline, min_history=self.options.min_history, floor=self._source.floor)
        self._overall = self._new(self.options.overall_window)
        self._users: dict[str, _User] = {}

    def __repr__(self) -> str:
        return (
            f"Monitor({self._source.records:,} records by {', '.join(self._source.columns)}; {len(self._users)} users)"
        )

    @property
    def users(self) -> dict[str, UserSummary]:
        """What each user has seen, in the order of their first result."""
        return {
            name: UserSummary(u.queries, u.records, u.unknown, len(u.seen), self._share(u), u.alerts)
            for name, u in self._users.items()
        }

    def observe(
        self, user: str, rows: Any = None, keys: Sequence[object] | None = None, time: str | None = None
    ) -> Observation:
        """Score one result: its rows (mappings, or a frame) or the keys of its records."""
        return self.observe_many([Query(user, rows, keys, time)])[0]

    def observe_many(self, queries: Iterable[Query]) -> list[Observation]:
        """Score results in their order, as `observe` would one by one. Where one cannot be read, none is counted."""
        listed = list(queries)
        return [self._observe(q, returned) for q, returned in zip(listed, self._source.find(listed), strict=True)]

    def _observe(self, query: Query, returned: _Returned) -> Observation:
        user = self._users.get(query.user)
        if user is None:
            user = self._users[query.user] = _User(self._new(self.options.window))
        score = sum(returned.tkl, 0.0)
        user.take(returned)
        share = self._share(user)
        alerts = tuple(
            Alert(query.user, query.time, kind, reason, len(returned.ids), score, share)
            for kind, reason in self._reasons(query.user, user, score, share)
        )
        user.alerts += len(alerts)
        user.baseline.add(score)
        self._overall.add(score)
        most = max(returned.tkl, default=0.0)
        return Observation(query.user, query.time, len(returned.ids), returned.unknown, score, most, share, alerts)

    def _share(self, user: _User) -> float:
        return user.seen_tkl / self._source.total if self._source.total else 0.0

    def _reasons(self, name: str, user: _User, score: float, share: float) -> Iterator[tuple[Kind, str]]:
        """Why this result is worth an alert."""
        own, overall = user.baseline.usual, self._overall.usual
        if own is not None and own.times(score) > self.options.threshold:
            yield "user", _above(score, own, f"{name}'s")
        # Only a new height: else a user whose work is larger than the others' would raise one with every result.
        if overall is not None and score > user.highest and overall.times(score) > self.options.threshold:
            user.highest = score
            yield "overall", _above(score, overall, "all users'")
        # Rounding must not keep a share just below its limit.
        reached = bisect_right(self._limits, share * (1 + 1e-9))
        if reached > user.limits:
            user.limits = reached
            yield "exposure", _reached(len(user.seen), share, self._limits[reached - 1])


def _reached(records: int, share: float, limit: float) -> str:
    return f"{records:,} distinct records seen up to now, {share:.2%} of the source's score (limit {limit:.2%})"


def _above(score: float, usual: Usual, whose: str) -> str:
    times = usual.times(score)
    return f"score {_short(score)} is {times:,.1f} times the usual spread above {whose} usual {_short(usual.median)}"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.3g}"

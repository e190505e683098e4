"""Monitor: scores the result of every query against its source, and says when a user's are out of the ordinary.

The score of a result is the tkl-Score of the returned records, as if they were a published table; in a study without
quasi-identifiers each record counts with its tkl in the whole source, since factors taken in a result of a few rows
could not be compared with the next one's.
"""

from __future__ import annotations

import io
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from veilmark.errors import DataError, OptionError, VeilmarkWarning
from veilmark.messages import template_of
from veilmark.readable import Readable
from veilmark.services.baseline import LEAST_RECORDS, Baseline
from veilmark.services.query_log import NotJsonError, Query, Returned, Seen, Source, Strangers, parse_query, ready_lines

if TYPE_CHECKING:
    from veilmark.engines.base import Table
    from veilmark.score.scorer import Scorer
    from veilmark.study.study import Study

SHOWN = 5

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
            raise OptionError("The windows and the smallest history must be at least 2 results. Try 200, 5000 and 20.")


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
class Observation(Readable):
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


@dataclass(frozen=True)
class LogSummary(Readable):
    """A log read to its end: what each user has seen, the alerts, and the lines that are no queries.

    `alerts` are empty where somebody was told of them as they came. `first_malformed` are numbers of lines with the
    reasons. `stopped`: Ctrl-C ended the log.
    """

    queries: int
    users: Mapping[str, UserSummary]
    alerts: tuple[Alert, ...] = ()
    malformed: int = 0
    first_malformed: tuple[tuple[int, str], ...] = ()
    stopped: bool = False

    @property
    def records(self) -> int:
        return sum(user.records for user in self.users.values())

    @property
    def unknown(self) -> int:
        return sum(user.unknown for user in self.users.values())

    def to_dict(self) -> dict[str, Any]:
        return {
            "queries": self.queries,
            "records": self.records,
            "unknown": self.unknown,
            "alerts": [alert.to_dict() for alert in self.alerts],
            "users": {name: user.to_dict() for name, user in self.users.items()},
            "malformed": {
                "lines": self.malformed,
                "first": [{"line": number, "reason": reason} for number, reason in self.first_malformed],
            },
        }


Tell = Callable[[Sequence[Alert]], None]
"""Is given alerts as soon as they are raised."""


class _User:
    """All that is remembered of one user."""

    __slots__ = ("alerts", "baseline", "highest", "limits", "queries", "records", "seen", "unknown")

    def __init__(self, baseline: Baseline) -> None:
        self.baseline = baseline
        self.seen = Seen()
        self.queries = self.records = self.unknown = self.alerts = self.limits = 0
        self.highest = 0.0

    def take(self, returned: Returned) -> None:
        """Count a result, and each of its records that is new."""
        self.queries += 1
        self.records += len(returned.cells)
        self.unknown += returned.unknown
        self.seen.add(returned)


class Monitor:
    """Watches the results of queries on a study's source.

    The source is read once and not kept as rows: what stays is 16 bytes a distinct record and, where the log names
    records by `key` (by default the study's person column), 12 bytes a record; and for each user the window of
    scores and sets of the records seen. A record is told apart by its key, or else by its values: of rows alike in
    every column one counts as seen, and none where a key has named a record of these values.

    A result raises an alert where its score is over the threshold for what is usual with this user; where it is for
    everybody's usual, and higher than this user's results that were told of for that reason before; and where what
    the user has seen so far reaches a limit for the first time. It is judged before it joins the history.
    """

    def __init__(self, study: Study, key: str | None = None, options: MonitorOptions | None = None) -> None:
        # The one import upwards: in Python a monitor is made of a study, and only the workbench knows how to open one.
        from veilmark.study.opening import check_columns, engine_of, open_source
        from veilmark.workbench.score import scorer_of

        key = key or study.person
        with engine_of(study) as engine:
            table = open_source(engine, study)
            if key is not None:
                check_columns(table, [key], "the key of the log")
            self._begin(Source.read(table, scorer_of(table, study), key), options)

    @classmethod
    def of(cls, table: Table, scorer: Scorer, key: str | None = None, options: MonitorOptions | None = None) -> Monitor:
        """A monitor of an open source, of which `key` is a column; it reads the table now and not again."""
        monitor = cls.__new__(cls)
        monitor._begin(Source.read(table, scorer, key), options)
        return monitor

    def _begin(self, source: Source, options: MonitorOptions | None) -> None:
        self.options = options or MonitorOptions()
        self._source = source
        self._limits = sorted(self.options.exposure)
        floor = LEAST_RECORDS * source.total / source.records or 1e-12
        self._new = partial(Baseline, min_history=self.options.min_history, floor=floor)
        self._overall = self._new(self.options.overall_window)
        self._users: dict[str, _User] = {}
        self._strangers = Strangers(source.columns)

    def __repr__(self) -> str:
        return (
            f"Monitor({self._source.records:,} records by {', '.join(self._source.columns)}; {len(self._users)} users)"
        )

    @property
    def users(self) -> dict[str, UserSummary]:
        """What each user has seen, in the order of their first result."""
        return {
            name: UserSummary(u.queries, u.records, u.unknown, u.seen.records, self._share(u), u.alerts)
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
        found = self._source.find(listed)
        observed = [self._observe(query, returned) for query, returned in zip(listed, found, strict=True)]
        self._strangers.heed(found)
        return observed

    def _observe(self, query: Query, returned: Returned) -> Observation:
        user = self._users.get(query.user)
        if user is None:
            user = self._users[query.user] = _User(self._new(self.options.window))
        score = sum(returned.tkl, 0.0)
        user.take(returned)
        share = self._share(user)
        alerts = tuple(
            Alert(query.user, query.time, kind, reason, len(returned.cells), score, share)
            for kind, reason in self._reasons(query.user, user, score, share)
        )
        user.alerts += len(alerts)
        user.baseline.add(score)
        self._overall.add(score)
        most = max(returned.tkl, default=0.0)
        return Observation(query.user, query.time, len(returned.cells), returned.unknown, score, most, share, alerts)

    def _share(self, user: _User) -> float:
        # Rounding may lift the sum of all records above the total.
        return min(user.seen.tkl / self._source.total, 1.0) if self._source.total else 0.0

    def _reasons(self, name: str, user: _User, score: float, share: float) -> Iterator[tuple[Kind, str]]:
        """Why this result is worth an alert."""
        own, overall = user.baseline.usual, self._overall.usual
        if own is not None and own.times(score) > self.options.threshold:
            yield "user", own.compare(score, f"{name}'s")
        # Only a new height: else a user whose work is larger than the others' would raise one with every result.
        if overall is not None and score > user.highest and overall.times(score) > self.options.threshold:
            user.highest = score
            yield "overall", overall.compare(score, "all users'")
        # Rounding must not keep a share just below its limit.
        reached = bisect_right(self._limits, share * (1 + 1e-9))
        if reached > user.limits:
            user.limits = reached
            yield "exposure", _reached(user.seen.records, share, self._limits[reached - 1])


def _reached(records: int, share: float, limit: float) -> str:
    return f"{records:,} distinct records returned so far, {share:.2%} of the source's score (limit {limit:.2%})"


# --- a log to its end ---------------------------------------------------------------------------------------


def watch(
    study: Study,
    stream: io.BufferedIOBase,
    options: MonitorOptions | None = None,
    key: str | None = None,
    tell: Tell | None = None,
    strict: bool = False,
) -> LogSummary:
    """Score a log against the study's source as it comes, to its end or to Ctrl-C.

    `tell` is given alerts as soon as they are raised; without it they are in the summary. A line that is no query is
    skipped, and the first few are warned of; `strict` makes it an error.
    """
    return read_log(Monitor(study, key, options), stream, tell, strict)


def read_log(monitor: Monitor, stream: io.BufferedIOBase, tell: Tell | None = None, strict: bool = False) -> LogSummary:
    """`watch` with a monitor that is there already, and goes on from what it has seen."""
    reader = _Reader(monitor, tell, strict)
    stopped = False
    try:
        for lines in ready_lines(stream):
            reader.take(lines)
    except KeyboardInterrupt:
        stopped = True
    return reader.summary(stopped)


class _Reader:
    """Gives a log's lines to a monitor, and skips those that are no queries."""

    def __init__(self, monitor: Monitor, tell: Tell | None, strict: bool) -> None:
        self._monitor = monitor
        self._tell = tell
        self._strict = strict
        self._alerts: list[Alert] = []
        self._lines = self._queries = self._malformed = self._warned = 0
        self._first_malformed: list[tuple[int, str]] = []

    def summary(self, stopped: bool) -> LogSummary:
        """What was read up to now; an error where that is lines, but none is a query."""
        if self._malformed and not self._queries:
            number, reason = self._first_malformed[0]
            raise DataError(f"No line of the log is a query. Line {number}: {reason}")
        first = tuple(self._first_malformed)
        users = self._monitor.users
        return LogSummary(self._queries, users, tuple(self._alerts), self._malformed, first, stopped)

    def take(self, lines: Sequence[bytes]) -> None:
        """Score a block of lines."""
        queries: list[tuple[int, Query]] = []
        bad: list[tuple[int, DataError]] = []
        for number, line in enumerate(lines, self._lines + 1):
            if line and not line.isspace():
                try:
                    queries.append((number, parse_query(line)))
                except DataError as error:
                    bad.append((number, error))
                    if self._strict:
                        break
        self._lines += len(lines)
        observed = self._observe(queries, bad)
        self._queries += len(observed)
        self._tell_or_keep([alert for seen in observed for alert in seen.alerts])
        for number, problem in sorted(bad, key=itemgetter(0)):
            self._skip(number, problem)
        self._warn_of_skipped()

    def _observe(self, queries: Sequence[tuple[int, Query]], bad: list[tuple[int, DataError]]) -> list[Observation]:
        """Score all at once; where one cannot be read, each alone, so that the others count."""
        try:
            return self._monitor.observe_many([query for _, query in queries])
        except DataError as error:
            if len(queries) == 1:
                bad.append((queries[0][0], error))
                return []
        observed = []
        for numbered in queries:
            seen = self._observe([numbered], bad)
            if not seen and self._strict:
                break
            observed += seen
        return observed

    def _tell_or_keep(self, alerts: Sequence[Alert]) -> None:
        if self._tell is None:
            self._alerts.extend(alerts)
        elif alerts:
            self._tell(alerts)

    def _skip(self, number: int, error: DataError) -> None:
        if self._strict or (number == 1 and isinstance(error, NotJsonError)):
            raise DataError(f"Line {number} of the log: {template_of(error)}")
        self._malformed += 1
        if self._malformed <= SHOWN:
            self._first_malformed.append((number, template_of(error)))

    def _warn_of_skipped(self) -> None:
        # A log without any query ends in one error, so that nothing is said before the first one.
        while self._queries and self._warned < len(self._first_malformed):
            number, reason = self._first_malformed[self._warned]
            warnings.warn(f"Line {number} of the log was skipped. {reason}", VeilmarkWarning, stacklevel=2)
            self._warned += 1

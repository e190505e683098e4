"""`veilmark monitor`."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from veilmark.cli.options import JsonOption, MemoryOption, StudyArgument, ThreadsOption, print_json
from veilmark.cli.score import PANEL
from veilmark.errors import DataError, OptionError

if TYPE_CHECKING:
    from veilmark.score.monitor import Alert, Monitor, Observation, Query

BLOCK = 1_000
"""The most lines that are scored at once."""

CHUNK = 1 << 18
LONGEST = 1 << 26
SHOWN = 5
USERS_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(monitor)


def monitor(
    study: StudyArgument,
    log: Annotated[
        str, typer.Option(metavar="FILE", help="The log, one JSON object a line; - is standard input.")
    ] = "-",
    key: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What the log's keys are; if not given, the study's person.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="How many usual spreads above the usual score is too much.")] = 6.0,
    exposure: Annotated[
        str, typer.Option(metavar="SHARES", help="Tell when a user has seen these shares of the source's score.")
    ] = "0.01,0.05,0.2",
    window: Annotated[int, typer.Option(min=2, help="How many of a user's results the usual is taken from.")] = 200,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first line that is not a query.")] = False,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch a log of query results, and tell of those that are out of the ordinary.

    A line is a user, a time, and the keys or the rows that came back, such as
    {"user": "ann", "time": "2026-01-02T03:04:05", "keys": ["p1", "p7"]} or {"user": …, "rows": [{"zip": "01234", …}]}.
    Each result is scored against the study's source as it comes. Ctrl-C ends the log.
    """
    from veilmark import workbench
    from veilmark.score.monitor import Monitor, MonitorOptions

    options = MonitorOptions(threshold, _shares(exposure), window)
    opened = workbench.open_study(study, threads, memory)
    with _open(log) as stream:
        session = Session(Monitor(opened, key, options), None if as_json else _print_alerts, strict)
        session.run(stream)
    if as_json:
        print_json(session.to_dict())
    else:
        _print_summary(session, bool(opened.quasi))


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise OptionError(
            f"--exposure takes shares with commas between them, not '{text}'. Try 0.01,0.05,0.2."
        ) from None


def _open(log: str) -> AbstractContextManager[io.BufferedIOBase]:
    if log == "-":
        if sys.stdin.isatty():
            print("Reading the log from standard input; Ctrl-C ends it.", file=sys.stderr)
        return nullcontext(cast(io.BufferedIOBase, sys.stdin.buffer))
    try:
        return Path(log).open("rb")
    except OSError as error:
        raise DataError(f"The log '{log}' cannot be read: {error.strerror}. Give a file of JSON lines, or -.") from None


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
            raise DataError("A line of the log is longer than 64 MB. A log has one JSON object a line.")
    if last := b"".join(pieces):
        yield [last]


class Session:
    """One log, read to its end: the alerts, and the lines that are no queries."""

    def __init__(
        self, monitor: Monitor, tell: Callable[[Sequence[Alert]], None] | None = None, strict: bool = False
    ) -> None:
        self.monitor = monitor
        self.alerts: list[Alert] = []
        self.lines = 0
        self.queries = 0
        self.malformed = 0
        self.first_malformed: list[tuple[int, str]] = []
        self._untold = 0
        self._tell = tell
        self._strict = strict

    def run(self, stream: io.BufferedIOBase) -> None:
        """Read all lines; Ctrl-C ends the log."""
        try:
            for lines in ready_lines(stream):
                self.take(lines)
        except KeyboardInterrupt:
            print("Note: Stopped; the rest of the log was not read.", file=sys.stderr)
        if self.malformed and not self.queries:
            number, reason = self.first_malformed[0]
            raise DataError(f"No line of the log is a query. Line {number}: {reason}")

    def take(self, lines: Sequence[bytes]) -> None:
        """Score a block of lines."""
        from veilmark.score.monitor import parse_query

        queries: list[tuple[int, Query]] = []
        bad: list[tuple[int, DataError]] = []
        for number, line in enumerate(lines, self.lines + 1):
            if line and not line.isspace():
                try:
                    queries.append((number, parse_query(line)))
                except DataError as error:
                    bad.append((number, error))
                    if self._strict:
                        break
        self.lines += len(lines)
        observed = self._observe(queries, bad)
        self.queries += len(observed)
        self._keep_or_tell([alert for seen in observed for alert in seen.alerts])
        for number, problem in sorted(bad, key=itemgetter(0)):
            self._skip(number, problem)
        self._tell_of_skipped()

    def _observe(self, queries: Sequence[tuple[int, Query]], bad: list[tuple[int, DataError]]) -> list[Observation]:
        """Score all at once; where one cannot be read, each alone, so that the others count."""
        try:
            return self.monitor.observe_many([query for _, query in queries])
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

    def _skip(self, number: int, error: DataError) -> None:
        from veilmark.score.monitor import NotJsonError

        if self._strict or (number == 1 and isinstance(error, NotJsonError)):
            raise DataError(f"Line {number} of the log: {error}")
        self.malformed += 1
        if self.malformed <= SHOWN:
            self.first_malformed.append((number, str(error)))

    def _keep_or_tell(self, alerts: Sequence[Alert]) -> None:
        if self._tell is None:
            self.alerts.extend(alerts)
        elif alerts:
            self._tell(alerts)

    def _tell_of_skipped(self) -> None:
        # A log without any query ends in one error, so that nothing is said before the first one.
        while self.queries and self._untold < len(self.first_malformed):
            number, reason = self.first_malformed[self._untold]
            print(f"Note: Line {number} of the log was skipped. {reason}", file=sys.stderr, flush=True)
            self._untold += 1

    def to_dict(self) -> dict[str, Any]:
        users = self.monitor.users
        return {
            "queries": self.queries,
            "records": sum(u.records for u in users.values()),
            "unknown": sum(u.unknown for u in users.values()),
            "alerts": [alert.to_dict() for alert in self.alerts],
            "users": {name: user.to_dict() for name, user in users.items()},
            "malformed": {
                "lines": self.malformed,
                "first": [{"line": number, "reason": reason} for number, reason in self.first_malformed],
            },
        }


def _print_alerts(alerts: Sequence[Alert]) -> None:
    typer.echo("\n".join(map(str, alerts)))


def _print_summary(session: Session, quasi: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    users = session.monitor.users
    table = Table("user", title=f"{session.queries:,} queries of {len(users):,} users", title_justify="left")
    for name in ("queries", "records", "distinct records", "seen of the source's score", "alerts"):
        table.add_column(name, justify="right")
    most = sorted(users.items(), key=lambda item: -item[1].exposure)
    for name, u in most[:USERS_SHOWN]:
        counts = f"{u.queries:,}", f"{u.records:,}", f"{u.distinct_records:,}", f"{u.exposure:.2%}", f"{u.alerts:,}"
        table.add_row(escape(name), *counts)
    console = Console()
    console.print(table)
    for remark in _remarks(session, quasi):
        console.print(remark, style="dim", highlight=False)


def _remarks(session: Session, quasi: bool) -> Iterator[str]:
    users = session.monitor.users
    unknown = sum(u.unknown for u in users.values())
    if len(users) > USERS_SHOWN:
        yield f"The {USERS_SHOWN} users who have seen most; --json lists all {len(users):,}."
    if unknown:
        yield f"{unknown:,} of the returned records are not in the source and were not scored."
    if not quasi:
        yield "The study names no quasi-identifier, so each record counts with its score in the whole source."
    if session.malformed:
        yield f"{session.malformed:,} lines are not queries and were skipped."

"""`veilmark monitor`."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from veilmark.cli.options import JsonOption, MemoryOption, StudyArgument, ThreadsOption, print_json, renamed
from veilmark.cli.score import PANEL
from veilmark.errors import DataError, OptionError
from veilmark.shares import share

if TYPE_CHECKING:
    from veilmark.services.monitor import Alert, LogSummary

USERS_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(monitor)


def monitor(
    study: StudyArgument,
    log: Annotated[
        str, typer.Option(metavar="FILE", help="The log, one JSON object per line. - is standard input.")
    ] = "-",
    log_key: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The column that the keys of the log refer to. Default: the person column."
        ),
    ] = None,
    key: Annotated[str | None, typer.Option(hidden=True)] = None,
    threshold: Annotated[
        float, typer.Option(help="Alert if a score is this many spreads above the usual score.")
    ] = 6.0,
    exposure: Annotated[
        str, typer.Option(metavar="SHARES", help="Alert when a user has seen these shares of the source's score.")
    ] = "0.01,0.05,0.2",
    window: Annotated[int, typer.Option(min=2, help="Number of a user's results that define the usual score.")] = 200,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first line that is not a query.")] = False,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score the query results in a log and alert on unusual ones.

    A line holds a user, a time, and the keys or the rows of the result, such as
    {"user": "ann", "time": "2026-01-02T03:04:05", "keys": ["p1", "p7"]} or {"user": …, "rows": [{"zip": "01234", …}]}.
    Each result is scored against the study's source. Press Ctrl-C to stop.
    """
    from veilmark.services.monitor import MonitorOptions, watch
    from veilmark.study.opening import open_study

    options = MonitorOptions(threshold, _shares(exposure), window)
    opened = open_study(study, threads, memory)
    column = renamed("--key", key, "--log-key", log_key)
    with _open(log) as stream:
        summary = watch(opened, stream, options, column, None if as_json else _print_alerts, strict)
    if summary.stopped:
        print("Note: Stopped. The rest of the log was not read.", file=sys.stderr)
    if as_json:
        print_json(summary.to_dict())
    else:
        _print_summary(summary, bool(opened.quasi))


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(share(part) for part in text.split(","))
    except ValueError:
        raise OptionError(f"--exposure takes shares separated by commas, not '{text}'. Try 0.01,0.05,0.2.") from None


def _open(log: str) -> AbstractContextManager[io.BufferedIOBase]:
    if log == "-":
        if sys.stdin.isatty():
            print("Reading the log from standard input. Press Ctrl-C to stop.", file=sys.stderr)
        return nullcontext(cast(io.BufferedIOBase, sys.stdin.buffer))
    try:
        return Path(log).open("rb")
    except OSError as error:
        raise DataError(f"The log '{log}' cannot be read: {error.strerror}. Give a file of JSON lines, or -.") from None


def _print_alerts(alerts: Sequence[Alert]) -> None:
    typer.echo("\n".join(map(str, alerts)))


def _print_summary(summary: LogSummary, quasi: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    users = summary.users
    table = Table("user", title=f"{summary.queries:,} queries by {len(users):,} users", title_justify="left")
    for name in ("queries", "records", "distinct records", "share of the source's score", "alerts"):
        table.add_column(name, justify="right")
    most = sorted(users.items(), key=lambda item: -item[1].exposure)
    for name, u in most[:USERS_SHOWN]:
        counts = f"{u.queries:,}", f"{u.records:,}", f"{u.distinct_records:,}", f"{u.exposure:.2%}", f"{u.alerts:,}"
        table.add_row(escape(name), *counts)
    console = Console()
    console.print(table)
    for remark in _remarks(summary, quasi):
        console.print(remark, style="dim", highlight=False)


def _remarks(summary: LogSummary, quasi: bool) -> Iterator[str]:
    if len(summary.users) > USERS_SHOWN:
        yield f"These are the {USERS_SHOWN} users who have seen most. --json lists all {len(summary.users):,}."
    if summary.unknown:
        yield f"{summary.unknown:,} of the returned records are not in the source and were not scored."
    if not quasi:
        yield "The study names no quasi-identifier, so each record has the score it has in the whole source."
    if summary.malformed:
        yield f"{summary.malformed:,} lines are not queries and were skipped."

"""The command line: parses, calls the workbench, prints. One place turns errors into messages and exit codes."""

from __future__ import annotations

import logging
import os
import signal
import sys
import warnings
from contextlib import suppress
from types import FrameType
from typing import Annotated

import typer

from veilmark import __version__
from veilmark.cli import (
    anonymize,
    apply,
    attack,
    compare,
    crosscopy,
    feasible,
    hierarchy,
    ledger,
    measure,
    monitor,
    release,
    report,
    reproduce,
    score,
    serve,
    simulate,
    start,
    trace,
    users,
    utility,
    watch,
    weights,
)
from veilmark.cli.bars import show_progress
from veilmark.errors import VeilmarkError, without_password

app = typer.Typer(
    name="veilmark",
    help=(
        "Accountable data sharing: how badly could this table be misused, and what is the least change that makes "
        "it safe enough?\n\nStart with [bold]veilmark init DATA[/bold] or [bold]veilmark demo[/bold]."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
start.register(app)
hierarchy.register(app)
measure.register(app)
score.register(app)
weights.register(app)
monitor.register(app)
anonymize.register(app)
apply.register(app)
utility.register(app)
attack.register(app)
compare.register(app)
feasible.register(app)
release.register(app)
report.register(app)
ledger.register(app)
trace.register(app)
watch.register(app)
crosscopy.register(app)
simulate.register(app)
reproduce.register(app)
serve.register(app)
users.register(app)

INTERRUPTED = 130
ENDINGS = ("SIGTERM", "SIGHUP")
WHOLE = "No unfinished output was left."


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"veilmark {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Options that stand before the verb."""


def run() -> None:
    """The `veilmark` command."""
    # Where Ctrl-C hits while a connection is closed, SQLAlchemy would print where.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    for name in ENDINGS:
        # A signal that is ignored stays so: that is what nohup does with SIGHUP.
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(getattr(signal, name), _stop)
    sys.exit(main(sys.argv[1:]))


def _stop(number: int, frame: FrameType | None) -> None:
    """End as Ctrl-C does, which removes temporary files; a second signal must not disturb that."""
    for name in ENDINGS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    """Run one command; the exit code is 0 done, 2 bad input, 1 anything else.

    Notes are shown at the end and only where all went well, so that an error is the one thing there is to read.
    """
    with warnings.catch_warnings(record=True) as notes:
        code = _exit_code(arguments)
    if code == 0:
        for note in dict.fromkeys(str(note.message) for note in notes):
            print(f"Note: {note}", file=sys.stderr)
    return code


def _exit_code(arguments: list[str]) -> int:
    try:
        with show_progress():
            code = app(args=arguments, standalone_mode=False, prog_name="veilmark")
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            return _help(error.format_message())
        message = error.format_message().rstrip(".")
        verb = getattr(getattr(error, "ctx", None), "command_path", "veilmark")
        return _fail(f"{message}{'' if message.endswith('?') else '.'} See: {verb} --help.", error.exit_code)
    except VeilmarkError as error:
        return _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - so that closing the real one stays silent
        return 1
    except MemoryError:
        return _fail("There is not enough memory for this. Use fewer or coarser quasi-identifiers.", 1)
    except Exception as error:
        if os.environ.get("VEILMARK_DEBUG"):
            raise
        return _fail(
            f"Something went wrong inside veilmark ({type(error).__name__}: {' '.join(str(error).split())}). "
            f"{WHOLE} Please report it; VEILMARK_DEBUG=1 shows where it happened.",
            1,
        )
    return _fail(f"Stopped. {WHOLE}", 1) if code == INTERRUPTED else int(code or 0)


def _help(text: str) -> int:
    """A verb was not given: help is the answer. Where typer draws it with Rich, it is shown already."""
    if text:
        print(text)
    return 0


def _fail(message: str, code: int) -> int:
    with suppress(OSError):  # The terminal may be gone, which is what SIGHUP says.
        print(f"Error: {without_password(message)}", file=sys.stderr, flush=True)
    return code

"""The command line: parses, calls the workbench, prints. One place turns errors into messages and exit codes."""

from __future__ import annotations

import difflib
import logging
import os
import signal
import sys
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path
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
from veilmark.cli.given import refuse_twice
from veilmark.cli.helptext import lay_out
from veilmark.cli.spelling import spelled
from veilmark.errors import VeilmarkError, without_password
from veilmark.scratch import sweep_once

app = typer.Typer(
    name="veilmark",
    help=(
        "Accountable data sharing: measure, anonymize, share and trace tables of persons.\n\n"
        "Start with [bold]veilmark init DATA[/bold] or [bold]veilmark demo[/bold]."
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
lay_out(app)

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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that come before the verb."""


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

    Notes are shown at the end, and not beside an error, which is the one thing there is to read. A requirement that does
    not hold is no error.
    """
    sweep_once()
    with warnings.catch_warnings(record=True) as notes:
        code, error = _outcome(arguments)
    whole = partial(_with_addresses, arguments)
    if error is None:
        for note in dict.fromkeys(spelled(note.message) for note in notes):
            print(f"Note: {without_password(whole(note))}", file=sys.stderr)
    elif error:
        _tell(whole(error))
    return code


def _with_addresses(arguments: list[str], text: str) -> str:
    """A message in which addresses among the arguments stand as they were typed: a `Path` drops a slash."""
    for typed in arguments:
        address = typed.partition("=")[2] if typed.startswith("--") else typed
        if "://" in address:
            text = text.replace(str(Path(address)), address)
    return text


def _outcome(arguments: list[str]) -> tuple[int, str | None]:
    """The exit code and what went wrong: None where nothing did, empty where nobody is there to read it."""
    try:
        refuse_twice(arguments)
        with show_progress():
            code = app(args=arguments, standalone_mode=False, prog_name="veilmark")
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            return _help(error.format_message()), None
        message = _usage(error, arguments).rstrip(".")
        verb = getattr(getattr(error, "ctx", None), "command_path", "veilmark")
        return error.exit_code, f"{message}{'' if message.endswith('?') else '.'} See: {verb} --help."
    except VeilmarkError as error:
        return error.exit_code, spelled(error)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - so that closing the real one stays silent
        return 1, ""
    except MemoryError:
        return 1, "There is not enough memory. Use fewer or coarser quasi-identifiers."
    except Exception as error:
        if os.environ.get("VEILMARK_DEBUG"):
            raise
        return 1, (
            f"Something went wrong inside veilmark ({type(error).__name__}: {' '.join(str(error).split())}). "
            f"{WHOLE} Please report this error. VEILMARK_DEBUG=1 shows where it happened."
        )
    return (1, f"Stopped. {WHOLE}") if code == INTERRUPTED else (int(code or 0), None)


NUMBERS = {"Input should be a valid integer": "a whole number", "Input should be a valid number": "a number"}
"""How the parser of options begins to say that a value is no number, and what it should be."""


def _usage(error: typer.TyperException, arguments: list[str]) -> str:
    """What is wrong with the options: with the value received, and only with names that are alike."""
    alike = getattr(error, "possibilities", None)
    if alike:
        name = str(getattr(error, "option_name", "")).lstrip("-")
        near = difflib.get_close_matches(name, [option.lstrip("-") for option in alike], cutoff=0.7)
        error.possibilities = [option for option in alike if option.lstrip("-") in near]  # type: ignore[attr-defined]
    kind = next((what for begin, what in NUMBERS.items() if str(getattr(error, "message", "")).startswith(begin)), None)
    options = getattr(getattr(error, "param", None), "opts", [])
    if kind is None or not options:
        return error.format_message()
    return f"{options[-1]} takes {kind}{_received(options, arguments)}"


def _received(options: list[str], arguments: list[str]) -> str:
    """`, not '2.5'`: what was typed for an option."""
    for place, typed in enumerate(arguments):
        name, equals, value = typed.partition("=")
        if name in options and (equals or place + 1 < len(arguments)):
            return f", not '{value if equals else arguments[place + 1]}'"
    return ""


def _help(text: str) -> int:
    """A verb was not given: help is the answer. Where typer draws it with Rich, it is shown already."""
    if text:
        print(text)
    return 0


def _tell(message: str) -> None:
    with suppress(OSError):  # The terminal may be gone, which is what SIGHUP says.
        print(f"Error: {without_password(message)}", file=sys.stderr, flush=True)

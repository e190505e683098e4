"""The command line: parses, calls the workbench, prints. One place turns errors into messages and exit codes."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any

import typer

from veilmark import __version__
from veilmark.cli import measure, monitor, score, start, weights
from veilmark.cli.bars import show_progress
from veilmark.errors import VeilmarkError

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
measure.register(app)
score.register(app)
weights.register(app)
monitor.register(app)

INTERRUPTED = 130


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
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """Run one command; the exit code is 0 done, 2 bad input, 1 anything else."""
    warnings.showwarning = _show_warning
    try:
        with show_progress():
            code = app(args=arguments, standalone_mode=False, prog_name="veilmark")
    except typer.TyperException as error:
        return _fail(f"{error.format_message().rstrip('.')}. See: veilmark --help.", error.exit_code)
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
            f"Something went wrong inside veilmark ({type(error).__name__}: {error}). Nothing was written. Please "
            "report it; VEILMARK_DEBUG=1 shows where it happened.",
            1,
        )
    return _fail("Stopped. Nothing was written.", 1) if code == INTERRUPTED else int(code or 0)


def _fail(message: str, code: int) -> int:
    print(f"Error: {message}", file=sys.stderr)
    return code


def _show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    print(f"Note: {message}", file=sys.stderr)

"""`veilmark users`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veilmark.cli.options import JsonOption, print_json
from veilmark.cli.serve import PANEL, WORKSPACE, check_extra
from veilmark.errors import OptionError

if TYPE_CHECKING:
    from veilmark.web.access.users import Users

app = typer.Typer(help="Manage the accounts of the web app and their roles.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
WorkspaceOption = Annotated[Path, typer.Option("--workspace", help="The folder that veilmark serves.")]


def register(parent: typer.Typer) -> None:
    """Add the verb."""
    parent.add_typer(app, name="users", rich_help_panel=PANEL)


@app.command()
def add(
    name: NameArgument,
    role: Annotated[
        Literal["custodian", "analyst", "auditor"],
        typer.Option(help="custodian: everything. analyst: no decoys, no keys. auditor: ledger and trace."),
    ] = "analyst",
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Add an account. veilmark asks for the password, or reads it from standard input."""
    users = _users(workspace)
    user = users.add(name, role, _password(name))
    _done({"name": user.name, "role": user.role}, f"Added {user.name} as {user.role}.", as_json)


@app.command("list")
def list_users(workspace: WorkspaceOption = WORKSPACE, as_json: JsonOption = False) -> None:
    """List the accounts."""
    found = [{"name": user.name, "role": user.role} for user in _users(workspace).all().values()]
    if as_json:
        print_json({"users": found})
    elif not found:
        typer.echo("There are no accounts. Add one with: veilmark users add NAME --role custodian")
    for user in () if as_json else found:
        typer.echo(f"{user['name']}  {user['role']}")


@app.command()
def remove(name: NameArgument, workspace: WorkspaceOption = WORKSPACE, as_json: JsonOption = False) -> None:
    """Remove an account and end its sessions."""
    _users(workspace).remove(name)
    _done({"removed": name}, f"Removed {name}.", as_json)


@app.command()
def password(name: NameArgument, workspace: WorkspaceOption = WORKSPACE, as_json: JsonOption = False) -> None:
    """Change the password of an account and end its sessions."""
    users = _users(workspace)
    users.known(name)
    users.set_password(name, _password(name))
    _done({"name": name}, f"Changed the password of {name}.", as_json)


def _users(workspace: Path) -> Users:
    check_extra()
    from veilmark.web.access.users import Users
    from veilmark.web.workspace import Workspace

    return Users(Workspace.open(workspace).private / "users.json")


def _password(name: str) -> str:
    """Never an option: those are seen in lists of processes and stay in the shell's history."""
    if sys.stdin.isatty():
        asked: str = typer.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
        return asked
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise OptionError("Standard input holds no password. Type it in a terminal, or pipe one line.")
    return line


def _done(content: dict[str, str], words: str, as_json: bool) -> None:
    if as_json:
        print_json(dict(content))
    else:
        typer.echo(words)

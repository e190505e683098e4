"""`veilmark serve`."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated

import typer

from veilmark.errors import OptionError, VeilmarkError

PANEL = "Web app"
WORKSPACE = Path("veilmark-workspace")
HOST = "127.0.0.1"
NEEDED = ("argon2", "fastapi", "jinja2", "multipart", "uvicorn")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(rich_help_panel=PANEL)(serve)


def serve(
    workspace: Annotated[
        Path, typer.Argument(help="The folder to work in. It is created if it does not exist.")
    ] = WORKSPACE,
    host: Annotated[
        str, typer.Option(help="The address to listen on. An address other than this computer needs accounts.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port. 0 takes a free one.")] = 8000,
    open_browser: Annotated[bool, typer.Option("--open", help="Also open the page in the browser.")] = False,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TLS certificate, to serve HTTPS.", show_default=False)
    ] = None,
    certificate_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The key of the certificate.", show_default=False)
    ] = None,
    upload_limit: Annotated[int, typer.Option(min=1, metavar="MB", help="The largest upload, in megabytes.")] = 4096,
) -> None:
    """Work in the browser: studies, scores, releases, ledger, trace.

    Without accounts, only this computer can connect, through a link that works once. With accounts (veilmark users add),
    everybody logs in, and other computers can connect.
    """
    check_extra()
    from veilmark.web.server import Listening, run

    local = _is_local(host)
    for file in (certificate, certificate_key):
        if file is not None and not file.is_file():
            raise OptionError(f"The file '{file}' does not exist. Give the certificate and its key as PEM files.")
    where = Listening(host, port, local, certificate, certificate_key, upload_limit << 20)
    run(workspace, where, lambda url: _tell(url, workspace, local, open_browser))


def check_extra() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in NEEDED):
        raise VeilmarkError("The web app needs the extra `web`: pip install 'veilmark[web]'.")


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tell(url: str, workspace: Path, local: bool, open_browser: bool) -> None:
    typer.echo(f"veilmark serves the workspace {workspace}. Open:\n\n    {url}\n")
    typer.echo(
        "The link works once, for the browser that opens it." if "token=" in url else "Log in with your account."
    )
    if not local and url.startswith("http:"):
        typer.echo("Passwords are sent unencrypted. Give --certificate, or use a proxy with TLS.", err=True)
    typer.echo("Press Ctrl-C to stop.")
    if open_browser:
        import webbrowser

        webbrowser.open(url)

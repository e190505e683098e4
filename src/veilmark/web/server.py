"""The server: one workspace, one address, until Ctrl-C."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from veilmark.errors import OptionError
from veilmark.messages import command, param
from veilmark.web.access.sessions import Access
from veilmark.web.access.users import Users
from veilmark.web.app import create_app, new_token
from veilmark.web.workspace import Workspace

LOCAL_NAMES = frozenset(("127.0.0.1", "localhost", "::1"))


@dataclass(frozen=True)
class Listening:
    """Where to listen; `local` where only this computer can connect."""

    host: str
    port: int
    local: bool
    certificate: Path | None = None
    certificate_key: Path | None = None
    upload_limit: int = 4 << 30


def run(folder: Path, where: Listening, ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `ready` is told the address to open."""
    workspace = Workspace.open(folder)
    users = Users(workspace.private / "users.json")
    accounts = bool(users.all())
    if not where.local and not accounts:
        raise OptionError(
            f"At {where.host} others can connect, and there are no accounts to keep them out. "
            f"{command('users add', 'NAME', lead='Make one first', role='custodian', workspace=str(folder))}"
        )
    with _only_server(workspace), _listen(where) as listener:
        port = listener.getsockname()[1]
        hosts = LOCAL_NAMES | {where.host} if where.local else None
        access = Access(users if accounts else None, None if accounts else new_token(), hosts, f"veilmark-{port}")
        app = create_app(folder, access, where.upload_limit)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=1,
            server_header=False,
            ssl_certfile=where.certificate,
            ssl_keyfile=where.certificate_key,
        )
        ready(_address(where, port, access.token))
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def _address(where: Listening, port: int, token: str | None) -> str:
    scheme = "https" if where.certificate else "http"
    host = f"[{where.host}]" if ":" in where.host else where.host
    return f"{scheme}://{host}:{port}/{f'open?token={token}' if token else ''}"


@contextmanager
def _listen(where: Listening) -> Iterator[socket.socket]:
    try:
        family = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)[0][0]
    except (socket.gaierror, UnicodeError):
        raise OptionError(
            f"'{where.host}' is not an address of this computer. Try {param('host', '127.0.0.1')}."
        ) from None
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((where.host, where.port))
            listener.listen(128)
        except OSError as error:
            raise OptionError(
                f"{where.host} port {where.port} cannot be listened at: {error.strerror}. Name another with "
                f"{param('port')}, or {param('port', 0)} for a free one."
            ) from None
        yield listener


@contextmanager
def _only_server(workspace: Workspace) -> Iterator[None]:
    """Two servers in one workspace would take each other's jobs for interrupted ones."""
    try:
        import fcntl
    except ImportError:  # Not on Windows.
        yield
        return
    with (workspace.private / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OptionError(
                f"The workspace '{workspace.folder}' is being served already. Use that server, or end it first."
            ) from None
        yield

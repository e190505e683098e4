"""Where a ledger is kept: an SQLite file, or a PostgreSQL database by its URL."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from veilmark.errors import DataError, OptionError, OutputError, VeilmarkError
from veilmark.ledger import schema
from veilmark.ledger.files import check_new_file, new_private_file
from veilmark.ledger.strangers import stranger_in
from veilmark.messages import command, template_of
from veilmark.scratch import sweep_parts

PATIENCE = 30
"""Seconds to wait for another process that is writing."""

LOCK = 0x7665696C6D61726B
"""PostgreSQL's number for the lock that writers take: `veilmark` in ASCII."""

Fill = Callable[[Connection], None]


class Database:
    """Connections to a ledger's tables, one for each use, so that nothing is shared with a forked process."""

    def __init__(self, engine: Engine, label: str, read_only: bool = False) -> None:
        self._engine = engine
        self.label = label
        self.read_only = read_only
        self.version = len(schema.MIGRATIONS)

    @property
    def is_local(self) -> bool:
        """Whether only this computer can use it."""
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read with."""
        with self._plain_errors(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that no other writer is in; it is on disk when the block has ended."""
        self.check_writable()
        with self._plain_errors(), self._engine.connect() as connection:
            connection = connection.execution_options(writing=True)
            with connection.begin():
                if connection.dialect.name == "postgresql":
                    _take_turns(connection)
                self._refuse_stranger(connection)
                yield connection

    def _refuse_stranger(self, connection: Connection) -> None:
        stranger = stranger_in(connection)
        if stranger is not None:
            raise DataError(
                f"The database of the ledger '{self.label}' has a {stranger} that veilmark did not make. It could "
                "block new entries. Nothing was written. Find out who added it, and remove it."
            )

    def check_writable(self) -> None:
        """Refuse one that can only be read."""
        if self.read_only:
            raise OutputError(
                f"The ledger '{self.label}' is read-only: you have no permission to write to the file or to its "
                "folder. Check the permissions of both."
            )

    def prepare(self, may_create: bool) -> None:
        """Bring the tables up to date, unless they can only be read; where there are none, make them only if that is
        wanted."""
        with self.reading() as connection:
            version = schema.version_of(connection)
        if version > len(schema.MIGRATIONS):
            raise DataError(
                f"The ledger '{self.label}' was written by a newer veilmark (its version is {version}, but this "
                f"veilmark supports versions up to {len(schema.MIGRATIONS)}). Update veilmark."
            )
        if version == 0 and not may_create:
            raise OptionError(
                f"There is no ledger in '{self.label}'. Give the right one. {command('release', lead='Make one with')}"
            )
        if version < len(schema.MIGRATIONS) and self.read_only:
            self.version = version
        elif version < len(schema.MIGRATIONS):
            with self.writing() as connection:
                schema.migrate(connection)

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """What the database says, without the statement; never what was to be written."""
        try:
            yield
        except SQLAlchemyError as error:
            raise self._plainly(error) from None

    def _plainly(self, error: SQLAlchemyError) -> VeilmarkError:
        cause = error.orig if isinstance(error, DBAPIError) else error
        what = getattr(cause, "sqlite_errorname", "")
        said = (str(cause).splitlines() or [type(cause).__name__])[0].strip().rstrip(".")
        if what in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
            return DataError(f"'{self.label}' is not a ledger, or it is damaged: {said}. Restore it from a backup.")
        if what.startswith("SQLITE_BUSY"):
            return OutputError(f"The ledger '{self.label}' is being written by another process. Try again later.")
        return OutputError(f"The ledger '{self.label}' cannot be used: {said}. Check it and your permissions.")


def connect(where: str | os.PathLike[str], create: bool = False) -> Database:
    """Open a ledger's database; with `create`, one that is not there is made."""
    place = _place(where)
    if isinstance(place, URL):
        database = _postgres(place)
        try:
            database.prepare(may_create=create)
        except OutputError as error:
            raise OptionError(template_of(error)) from None  # Most likely the URL is not right.
        return database
    sweep_parts(place.absolute().parent)
    if create and not place.exists():
        with suppress(FileExistsError):  # Another process may make it meanwhile.
            _make_sqlite(place, None)
    if not place.is_file():
        raise OptionError(
            f"There is no ledger '{place}'. Give the right one. {command('release', lead='Make one with')}"
        )
    database = _sqlite(place, str(place))
    database.prepare(may_create=False)
    return database


def exists(where: str | os.PathLike[str]) -> bool:
    """Whether a ledger is there, or, at a path, anything; where one could not be made, that is refused."""
    place = _place(where)
    if isinstance(place, URL):
        try:
            with _postgres(place).reading() as connection:
                return schema.version_of(connection) > 0
        except OutputError as error:
            raise OptionError(template_of(error)) from None
    if not place.exists():
        check_new_file(place)
        return False
    return True


def make(where: str | os.PathLike[str], fill: Fill) -> Database:
    """A new ledger with what `fill` puts into it, whole or not at all."""
    place = _place(where)
    if not isinstance(place, URL):
        try:
            _make_sqlite(place, fill)
        except FileExistsError:
            raise OptionError(f"'{place}' exists already. Name another place for the ledger.") from None
        return connect(place)
    database = _postgres(place)
    with database.writing() as connection:
        schema.migrate(connection)
        if connection.execute(select(func.count()).select_from(schema.ENTRIES)).scalar_one():
            raise OptionError(f"There is a ledger in '{database.label}' already. Name another place.")
        fill(connection)
    return database


def _place(where: str | os.PathLike[str]) -> Path | URL:
    """A path or a PostgreSQL URL; `env:NAME` is what the environment variable holds."""
    text = os.fspath(where)
    if text.startswith("env:"):
        name = text.removeprefix("env:")
        text = os.environ.get(name, "")
        if not text:
            raise OptionError(
                f"The location of the ledger is in the environment variable {name}, which is not set. Set it."
            )
    return _postgres_url(text) if "://" in text else Path(text)


# --- SQLite ------------------------------------------------------------------------------------------------


def _sqlite(path: Path, label: str, new: bool = False) -> Database:
    real = os.path.realpath(path)
    read_only = not new and not (os.access(real, os.W_OK) and os.access(os.path.dirname(real), os.W_OK))
    address = f"file:{quote(os.path.abspath(path))}?mode="

    def open_file() -> sqlite3.Connection:
        mode = _reading(real) if read_only else "rw"
        connection = sqlite3.connect(address + mode, timeout=PATIENCE, isolation_level=None, uri=True)
        if new:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        # So that data keys wrapped by an old key do not linger in free pages.
        connection.execute("PRAGMA secure_delete = ON")
        return connection

    engine = create_engine("sqlite://", creator=open_file, poolclass=NullPool, hide_parameters=True)
    event.listen(engine, "begin", _begin)
    event.listen(engine, "invalidate", _roll_back)
    return Database(engine, label, read_only)


def _reading(path: str) -> str:
    """How a file is opened that must not be written to. Beside it SQLite keeps files of its own, even to read; where there
    are none, nobody is writing, and it is told to do without them."""
    log = f"{path}-wal"
    return "ro" if os.path.exists(log) and os.path.getsize(log) else "ro&immutable=1"


def _begin(connection: Connection) -> None:
    """A writer takes the lock at once: a transaction that read first could no longer wait for it."""
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writing") else "BEGIN")


def _roll_back(connection: sqlite3.Connection, *_: object) -> None:
    """What Ctrl-C cuts short lets go of the lock now, and not when the last of its cursors is forgotten."""
    with suppress(sqlite3.Error):
        connection.rollback()


def _make_sqlite(path: Path, fill: Fill | None) -> None:
    """The file appears with its tables, so that nobody finds it half made."""
    if path.exists():
        raise FileExistsError
    with new_private_file(path) as temporary, _sqlite(temporary, str(path), new=True).writing() as connection:
        schema.migrate(connection)
        if fill is not None:
            fill(connection)


# --- PostgreSQL --------------------------------------------------------------------------------------------


def _postgres_url(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise OptionError("The ledger's URL is not valid. Try postgresql://user@host/database, or a path.") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise OptionError(
            f"A ledger is kept in an SQLite file or in PostgreSQL, not in {url.get_backend_name()}. "
            "Give a path, or a URL such as postgresql://user@host/database."
        )
    return url.set(drivername="postgresql+psycopg")


def _postgres(url: URL) -> Database:
    try:
        engine = create_engine(
            url.update_query_dict({"connect_timeout": "10"} if "connect_timeout" not in url.query else {}),
            poolclass=NullPool,
            hide_parameters=True,
        )
    except ModuleNotFoundError:
        raise OptionError(
            "A ledger in PostgreSQL needs the package psycopg: pip install 'veilmark[postgres]'."
        ) from None
    return Database(engine, url.set(drivername="postgresql", query={}).render_as_string(hide_password=True))


def _take_turns(connection: Connection) -> None:
    """One writer at a time, and a commit is on disk even where the server is set up to be lax."""
    connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
    lax = func.current_setting("synchronous_commit") == "off"
    connection.execute(select(func.set_config("synchronous_commit", "on", True)).where(lax))

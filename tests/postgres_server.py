"""One PostgreSQL server for a whole run, with a database for each process of tests, where its programs are installed: those
of the system, or of the package pgserver."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest


def programs():
    """The folder of PostgreSQL's programs: those of the system, else those of the package pgserver."""
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    spec = importlib.util.find_spec("pgserver")
    return None if spec is None else Path(spec.origin).parent / "pginstall" / "bin"


def account():
    """PostgreSQL does not run as root; then its own account is needed."""
    if os.geteuid() != 0:
        return None
    pwd = pytest.importorskip("pwd")
    try:
        return pwd.getpwnam("postgres").pw_uid
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no account postgres")


def load_clinic(postgres):
    """The tables that docs/postgres.md speaks of, in a database of their own; gives its address."""
    import psycopg

    from veilmark import sample

    everybody = sample.voters(20_000, 3).select(["voter_id", "zip", "gender", "yob"]).to_pylist()
    columns = "(voter_id text, zip text, gender text, yob int"
    url = postgres.new_database("clinic").url()
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE SCHEMA clinic; CREATE TABLE clinic.voters {columns})")
        connection.execute(f"CREATE TABLE clinic.patients {columns}, diagnosis text)")
        with connection.cursor().copy("COPY clinic.voters FROM STDIN") as copy:
            for row in everybody:
                copy.write_row(list(row.values()))
        with connection.cursor().copy("COPY clinic.patients FROM STDIN") as copy:
            for i, row in enumerate(everybody[::3]):
                copy.write_row([*row.values(), ("Flu", "Asthma", "HIV", "Cancer")[i % 4]])
    return url


@dataclass(frozen=True)
class Postgres:
    """A database of a server that listens on a socket in a folder."""

    folder: Path
    database: str = "postgres"

    def url(self, user="veilmark"):
        return f"postgresql://{user}@/{self.database}?host={self.folder}"

    def new_database(self, name):
        """Made anew, and so empty."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name}")
            connection.execute(f"CREATE DATABASE {name}")
        return replace(self, database=name)


class Server:
    """PostgreSQL in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def start(cls):
        pytest.importorskip("psycopg", reason="psycopg is not installed")
        if programs() is None:
            pytest.skip("there is no PostgreSQL here: install it, or the package pgserver")
        user = account()
        server = cls(Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp")))  # A socket's path must be short.
        if user is not None:
            os.chown(server.folder, user, -1)
        server._run("initdb", "-U", "veilmark", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-k {server.folder} -c listen_addresses='' -c fsync=off"
        server._run("pg_ctl", "-w", "-l", server.folder / "log", "-o", options, "start")
        return server

    def stop(self):
        self._run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(self.folder)

    def _run(self, program, *arguments):
        command = [programs() / program, "-D", self.folder / "data", *arguments]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command, user=account(), cwd=self.folder, check=True, **quiet)


@contextmanager
def shared_server(register: Path):
    """The one server of a run: who comes first starts it, who leaves last stops it. `register` says where it is, and who
    uses it."""
    with locked(register) as noted:
        server = Server(Path(noted["folder"])) if noted["users"] else Server.start()
        noted.update(folder=str(server.folder), users=noted["users"] + 1)
    try:
        yield server
    finally:
        with locked(register) as noted:
            noted["users"] -= 1
            if not noted["users"]:
                server.stop()


@contextmanager
def locked(register: Path):
    """What a file notes, which no other process reads or changes meanwhile."""
    import fcntl

    with register.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        noted = json.loads(file.read() or '{"users": 0}')
        yield noted
        file.truncate(0)
        file.write(json.dumps(noted))


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """A database of this process on the one server of the run."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    own = tmp_path_factory.getbasetemp()
    with shared_server((own.parent if worker else own) / "postgres.json") as server:
        yield Postgres(server.folder).new_database(worker or "alone")

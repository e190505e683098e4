"""A PostgreSQL server of our own, where its programs are installed: those of the system, or of the package pgserver."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
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


def load_clinic(folder):
    """The tables that docs/postgres.md speaks of, in a database of their own; gives its address."""
    import psycopg

    from veilmark import sample

    everybody = sample.voters(20_000, 3).select(["voter_id", "zip", "gender", "yob"]).to_pylist()
    columns = "(voter_id text, zip text, gender text, yob int"
    with psycopg.connect(f"postgresql://veilmark@/postgres?host={folder}", autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS clinic")
        connection.execute("CREATE DATABASE clinic")
    url = f"postgresql://veilmark@/clinic?host={folder}"
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


@pytest.fixture(scope="session")
def postgres():
    """A server on a socket in a folder of its own; gives the folder."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    bin_folder = programs()
    if bin_folder is None:
        pytest.skip("there is no PostgreSQL here: install it, or the package pgserver")
    user = account()
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # A socket's path must be short.
    if user is not None:
        os.chown(folder, user, -1)

    def run(program, *arguments):
        command = [bin_folder / program, "-D", folder / "data", *arguments]
        subprocess.run(command, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run("initdb", "-U", "veilmark", "-A", "trust", "-E", "UTF8", "--no-sync")
    run("pg_ctl", "-w", "-l", folder / "log", "-o", f"-k {folder} -c listen_addresses='' -c fsync=off", "start")
    yield folder
    run("pg_ctl", "-m", "immediate", "stop")
    shutil.rmtree(folder)

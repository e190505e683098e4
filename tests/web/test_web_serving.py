"""`veilmark serve` and `veilmark users`: what they say, refuse, and leave."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from strength import PATIENCE
from veilmark.cli.main import main
from web.helpers import PASSWORD


def run(capsys, *arguments, code=0):
    assert main(list(map(str, arguments))) == code
    return capsys.readouterr()


@pytest.fixture
def typed(monkeypatch):
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_users(capsys, tmp_path, typed):
    where = ("--workspace", tmp_path)
    typed(PASSWORD + "\n")
    assert run(capsys, "users", "add", "eva", "--role", "auditor", *where).out == "Added eva as auditor.\n"
    typed(PASSWORD + "\n")
    assert "already" in run(capsys, "users", "add", "eva", *where, code=2).err
    assert json.loads(run(capsys, "users", "list", "--json", *where).out) == {
        "users": [{"name": "eva", "role": "auditor"}]
    }
    typed("another long password\n")
    run(capsys, "users", "password", "eva", *where)
    assert "Did you mean 'eva'" in run(capsys, "users", "remove", "evi", *where, code=2).err
    run(capsys, "users", "remove", "eva", *where)
    assert "no accounts" in run(capsys, "users", "list", *where).out
    typed("")
    assert "Standard input" in run(capsys, "users", "add", "bob", *where, code=2).err


def test_other_addresses_need_accounts(capsys, tmp_path):
    error = run(capsys, "serve", tmp_path, "--host", "0.0.0.0", "--port", "0", code=2).err
    assert "veilmark users add" in error
    assert error.count("\n") == 1


def test_a_port_in_use(capsys, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        error = run(capsys, "serve", tmp_path, "--port", taken.getsockname()[1], code=2).err
    assert "--port 0" in error


def test_what_cannot_be_served(capsys, tmp_path):
    assert "certificate" in run(capsys, "serve", tmp_path, "--certificate", tmp_path / "none.pem", code=2).err
    (tmp_path / "file").write_text("")
    assert "Name another one" in run(capsys, "serve", tmp_path / "file", code=1).err


def test_without_the_extra(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("veilmark.cli.serve.NEEDED", ("no_such_package",))
    assert "veilmark[web]" in run(capsys, "serve", tmp_path, code=1).err


def test_serving(capsys, tmp_path):
    command = [Path(sys.executable).with_name("veilmark"), "serve", tmp_path, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        link = next(found[0] for line in process.stdout if (found := re.search(r"http://127\.\S+", line)))
        with httpx.Client(follow_redirects=True) as client:
            assert client.get(link).url.path == "/studies"
            assert client.get(link.partition("/open")[0] + "/api/session").json()["role"] == "custodian"
        assert "being served already" in run(capsys, "serve", tmp_path, "--port", "0", code=2).err
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert not os.path.exists(tmp_path / "ledger.key")

"""Watching a folder: each file once and whole, errors and dead webhooks do not stop it, and no secret gets out."""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import typer
from typer.testing import CliRunner

from ledger.helpers import edit
from marked_release import make_release
from veilmark.cli import watch as command
from veilmark.errors import DataError, OptionError, OutputError
from veilmark.ledger import Ledger
from veilmark.services import folder as watching
from veilmark.services.folder import Log, Memory, Watch, Webhook
from veilmark.services.watch import watch
from veilmark.trace.accuse import Suspect, Traced

GUILTY = Suspect("bob", "r00000001", 9.0, 1e-9, "exact", evidence=({"kind": "decoy class", "zip": "SECRET"},))
INNOCENT = Suspect("ada", "r00000001", 0.0, 1.0, "exact")


class Examined:
    """Stands for tracing: remembers the files, and names bob in those that say so."""

    def __init__(self):
        self.files = []

    def __call__(self, path):
        self.files.append(path.name)
        text = path.read_text()
        if "broken" in text:
            raise DataError("That is no table.")
        if "crash" in text:
            raise RuntimeError("row 7 says Mary Smith")
        accused = ("bob",) if "bob" in text else ()
        return "leak", Traced(accused, (GUILTY, INNOCENT) if accused else (INNOCENT,), 1e-6, 2)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "drop").mkdir()
    return tmp_path


def begin(place, examine=None, webhook=None):
    memory = Memory.open(place / "drop.state.json")
    return Watch(place / "drop", examine or Examined(), Log(place / "drop.jsonl"), memory, webhook)


def looks(watched, times=2):
    return [found for _ in range(times) for found in watched.look()]


def lines(place):
    return [json.loads(line) for line in (place / "drop.jsonl").read_text().splitlines()]


def test_a_file_is_checked_when_it_no_longer_changes(place):
    watched = begin(place)
    file = place / "drop" / "a.csv"
    file.write_text("zip\n")
    assert looks(watched, 1) == []
    with file.open("a") as out:
        out.write("1\n")
    assert looks(watched, 1) == []
    assert watched.unsettled
    found = looks(watched, 1)
    assert [f.file for f in found] == ["a.csv"]
    assert not watched.unsettled
    assert looks(watched, 3) == []
    assert lines(place) == [found[0].to_dict()]


def test_a_file_that_is_written_to_while_it_is_traced_is_looked_at_again(place):
    seen = []

    def examine(path):
        if not seen:
            path.write_text("bob, and more\n")
        seen.append(path.read_text())
        return Examined()(path)

    (place / "drop" / "a.csv").write_text("bob\n")
    watched = begin(place, examine)
    assert looks(watched, 2) == []
    assert [f.accused for f in looks(watched, 2)] == [("bob",)]
    assert len(seen) == 2


def test_each_file_once_by_its_digest(place):
    examine = Examined()
    (place / "drop" / "a.csv").write_text("bob\n")
    looks(begin(place, examine))
    shutil.copy(place / "drop" / "a.csv", place / "drop" / "again.csv")
    os.utime(place / "drop" / "a.csv", (1, 1))
    watched = begin(place, examine)
    assert looks(watched, 3) == []
    assert not watched.unsettled
    (place / "drop" / "a.csv").write_text("other\n")
    looks(watched)
    assert examine.files == ["a.csv", "a.csv"]


def test_what_is_not_looked_at(place):
    secret = place / "secret.csv"
    secret.write_text("bob\n")
    (place / "drop" / "link.csv").symlink_to(secret)
    for name in (".hidden.csv", "a.csv.part", "a.csv.crdownload", "B.TMP", "a.csv~"):
        (place / "drop" / name).write_text("bob\n")
    (place / "drop" / "folder").mkdir()
    watched = Watch(place / "drop", Examined(), Log(place / "drop" / "l.jsonl"), Memory.open(place / "drop" / "m.json"))
    assert looks(watched, 3) == []


def test_errors_are_told_and_do_not_stop_it(place):
    for name in ("bob", "broken", "crash", "zip"):
        (place / "drop" / f"{name}.csv").write_text(name)
    found = {f.file: f for f in looks(begin(place))}
    assert found["bob.csv"].accused == ("bob",)
    assert found["zip.csv"].accused == ()
    assert found["broken.csv"].error == "That is no table."
    assert "RuntimeError" in found["crash.csv"].error
    assert "Mary" not in (place / "drop.jsonl").read_text()
    assert len(lines(place)) == 4
    again = Examined()
    looks(begin(place, again))
    assert again.files == ["crash.csv"]  # what may have been an accident is tried by the next watch


def test_a_file_that_cannot_be_read(place, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(watching, "digest", refused)
    (place / "drop" / "a.csv").write_text("x")
    assert [f.error for f in looks(begin(place), 3)] == ["The file cannot be read: Permission denied."]


def test_log_and_memory_are_for_their_owner_alone(place):
    (place / "drop" / "a.csv").write_text("x")
    looks(begin(place))
    for name in ("drop.jsonl", "drop.state.json"):
        assert stat.S_IMODE((place / name).stat().st_mode) == 0o600
    (place / "drop.state.json").write_text("[1, 2")
    with pytest.raises(OptionError, match="not the state file of a watch"):
        begin(place)
    with pytest.raises(OutputError, match="log="):
        Log(place / "nowhere" / "log.jsonl")


# The webhook.


@contextmanager
def listening(*answers):
    """A server that gives these answers, the last one for ever; yields its address and what it was sent."""
    got, left = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_webhook_is_told_of_those_who_are_named(place):
    (place / "drop" / "a.csv").write_text("bob\n")
    (place / "drop" / "b.csv").write_text("nobody\n")
    with listening(200) as (url, got):
        looks(begin(place, webhook=Webhook(url)), 3)
    assert len(got) == 1
    assert got[0]["accused"] == ["bob"]
    assert got[0]["named"] == [{"name": "bob", "release": "r00000001", "p_value": 1e-9, "tail": "exact"}]
    assert len(got[0]["digest"]) == 64
    assert (
        "SECRET" not in json.dumps(got) + (place / "drop.jsonl").read_text() + (place / "drop.state.json").read_text()
    )
    assert lines(place)[-1]["webhook"] == "told"


@pytest.mark.parametrize("answer", [500, 302])
def test_a_webhook_that_fails_is_told_later(place, answer):
    (place / "drop" / "a.csv").write_text("bob\n")
    with listening(answer, answer, 204) as (url, got):
        found = list(begin(place, webhook=Webhook(url, first_wait=0.01)).run(0.02, once=True))
    assert [f.file for f in found] == ["a.csv"]
    assert len(got) == 3
    noted = [line for line in lines(place) if "webhook" in line]
    assert [line["webhook"] for line in noted] == ["failed", "failed", "told"]
    assert noted[0]["error"] == f"it answered {answer}"
    assert url not in (place / "drop.jsonl").read_text()


def test_a_dead_webhook_does_not_stop_it_and_the_next_watch_tells(place):
    (place / "drop" / "a.csv").write_text("bob\n")
    with listening(200) as (gone, _):
        pass
    found = list(begin(place, webhook=Webhook(gone, first_wait=0.01)).run(0.01, once=True))
    assert [f.accused for f in found] == [("bob",)]
    assert [line["tries"] for line in lines(place)[1:]] == [1, 2, 3, 4]
    with listening(200) as (url, got):
        assert list(begin(place, webhook=Webhook(url)).run(0.01, once=True)) == []
    assert [notice["file"] for notice in got] == ["a.csv"]
    assert Memory.open(place / "drop.state.json").waiting == []


def test_waits_double(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    hook = Webhook("https://example.org/hook")
    monkeypatch.setattr(hook, "post", lambda notice: "no")
    waits = []
    for _ in range(14):
        list(hook.flush([{"file": "a", "digest": "d"}]))
        waits.append(hook.due - now[0])
        assert list(hook.flush([{"file": "a", "digest": "d"}])) == []
        now[0] = hook.due
    assert waits[:4] == [2, 4, 8, 16]
    assert waits[-1] == 3600


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/x", "example.org", "https://"])
def test_what_is_no_webhook(url):
    with pytest.raises(OptionError, match="begins with https://"):
        Webhook(url)


# With a real release.


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("watch"), people=60_000, members=6_000, decoys=3)


def fill(case, drop):
    drop.mkdir()
    shutil.copy(case.copy("dan"), drop / "leak.csv")
    ids = [row["voter_id"] for row in case.decoys("bob")]
    (drop / "claims.csv").write_text("\n".join(["voter_id", *ids]) + "\n")
    (drop / "bystanders.csv").write_text("voter_id,name\nX1,Ann\nX2,Ben\n")
    (drop / "letter.txt").write_text("Dear all\nwe know who you are\n")
    (drop / "junk.parquet").write_bytes(b"PAR1 no table")


def test_claims_and_leaks_of_a_release(case, tmp_path):
    fill(case, tmp_path / "drop")
    arguments = {"false_accusation": 1e-3, "once": True, "poll": 0.05}
    found = watch(tmp_path / "drop", case.ledger, case.key, **arguments)
    by_file = {r.file: r for r in found.results}
    assert (by_file["leak.csv"].kind, by_file["leak.csv"].accused) == ("leak", ("dan",))
    assert (by_file["claims.csv"].kind, by_file["claims.csv"].accused) == ("claims", ("bob",))
    assert "secret key drew the decoy classes" in by_file["claims.csv"].meaning
    assert "secret key" in by_file["leak.csv"].meaning
    assert (by_file["bystanders.csv"].kind, by_file["bystanders.csv"].accused) == ("claims", ())
    assert by_file["letter.txt"].error
    assert by_file["junk.parquet"].error
    told = (tmp_path / "drop.watch.jsonl").read_text() + (tmp_path / "drop.watch.state.json").read_text()
    assert not any(row["voter_id"] in told for name in case.names for row in case.decoys(name))
    assert watch(tmp_path / "drop", case.ledger, case.key, **arguments).results == ()


def test_a_ledger_that_was_changed_is_not_held_against_the_file(case, tmp_path):
    (tmp_path / "drop").mkdir()
    shutil.copy(case.copy("dan"), tmp_path / "drop" / "leak.csv")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(case.ledger + suffix):
            shutil.copy(case.ledger + suffix, tmp_path / f"ledger.db{suffix}")
    edit(Ledger.open(tmp_path / "ledger.db"), "UPDATE veilmark_entries SET time = 'x' WHERE number = 3")
    arguments = {"false_accusation": 1e-3, "once": True, "poll": 0.05}
    (found,) = watch(tmp_path / "drop", tmp_path / "ledger.db", case.key, **arguments).results
    assert "was changed" in found.error
    (found,) = watch(tmp_path / "drop", case.ledger, case.key, **arguments).results
    assert found.accused == ("dan",)


def test_the_command(case, tmp_path):
    fill(case, tmp_path / "drop")
    app = typer.Typer()
    command.register(app)
    own = ["--ledger", case.ledger, "--key", str(case.key), "--false-accusation", "1e-3", "--once", "--poll", "0.05"]
    shown = CliRunner().invoke(app, [str(tmp_path / "drop"), *own])
    assert shown.exit_code == 0, shown.output
    assert "leak.csv: leak; named: dan (" in shown.output
    assert "5 files checked: 2 named somebody, 2 could not be read" in shown.output
    found = CliRunner().invoke(app, [str(tmp_path / "drop"), *own, "--log", str(tmp_path / "other.jsonl"), "--json"])
    content = json.loads(found.stdout)
    assert (content["checked"], content["named"], content["errors"]) == (5, 2, 2)


def test_what_is_wrong_is_said_before_the_watch_begins(case, tmp_path):
    drop = tmp_path / "drop"
    with pytest.raises(OptionError, match="no folder"):
        watch(drop, case.ledger, case.key, once=True)
    drop.mkdir()
    with pytest.raises(OptionError, match="no key file"):
        watch(drop, case.ledger, tmp_path / "nokey", once=True)
    with pytest.raises(OptionError, match="between 0 and 1"):
        watch(drop, case.ledger, case.key, false_accusation=2, once=True)
    with pytest.raises(OptionError, match="above 0"):
        watch(drop, case.ledger, case.key, poll=0, once=True)
    assert list(tmp_path.iterdir()) == [drop]


def test_an_endless_watch_ends_well_with_ctrl_c(case, tmp_path, monkeypatch):
    def interrupted(seconds):
        raise KeyboardInterrupt

    (tmp_path / "drop").mkdir()
    monkeypatch.setattr(watching.time, "sleep", interrupted)
    assert watch(tmp_path / "drop", case.ledger, case.key).to_dict()["checked"] == 0

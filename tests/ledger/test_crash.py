"""The process is killed at any moment: what it reported as done is there, and nothing else looks done."""

from __future__ import annotations

import os
import random
import signal
import sys
import time

import pytest

from ledger.conftest import new_schema
from ledger.helpers import SECRET, forked, publish
from strength import trials
from veilmark.ledger import Key, Ledger, recover

OUTSIDE = frozenset(
    (
        "close",
        "commit",
        "execute",
        "executemany",
        "fetchall",
        "flock",
        "fsync",
        "mkdir",
        "open",
        "rename",
        "rmdir",
        "unlink",
    )
)
"""Calls by which a process leaves traces, of the modules os, io, fcntl and sqlite3."""

KILLS = trials(160)


class Scene:
    """A ledger, a folder for releases, and children that publish into it until they are killed."""

    def __init__(self, folder, where=None):
        self.out = folder / "out"
        self.out.mkdir()
        self.key = Key.open_or_make(folder / "key")
        self.ledger = Ledger.open(where or folder / "ledger.db", create=True)
        # Children start from a process that has published already, so that kills hit what is written and no warming up.
        self.reported, self.settled = {publish(self.ledger, self.key, self.out / "first")}, set()
        self.runs = 0

    def child(self, before=None, releases=1_000):
        """Start a child; gives its id and the pipe in which it reports what is done."""
        self.runs += 1
        reading, writing = os.pipe()
        child = forked(self._publish, writing, before, releases)
        os.close(writing)
        os.read(reading, 1)
        return child, reading

    def _publish(self, writing, before, releases):
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - this process is about to be killed
        os.write(writing, b"!")  # It has begun.
        if before:
            sys.setprofile(before)
        for i in range(releases):
            target = self.out / f"{self.runs}-{i}"
            name = publish(self.ledger, self.key, target)
            os.write(writing, f"{name}\n".encode())
        sys.setprofile(None)

    def end(self, child, reading):
        """Wait for the child's end; gives its exit code and how many releases it reported."""
        _, status = os.waitpid(child, 0)
        with open(reading) as pipe:
            new = set(pipe.read().split())
        self.reported |= new
        return os.waitstatus_to_exitcode(status), len(new)

    def check(self):
        """Everything that was promised, of all that happened so far."""
        recover(self.ledger, self.key)
        assert self.ledger.unfinished() == []
        releases = {r.id: r for r in self.ledger.releases()}
        done = {name for name, release in releases.items() if release.status == "published"}
        assert self.reported <= done
        folders = {path for path in self.out.iterdir() if not path.name.startswith(".")}
        assert folders == {self.out / os.path.basename(releases[name].folder) for name in done}
        for name in done - self.settled:
            assert sorted(os.listdir(releases[name].folder)) == ["ada.csv", "bob.csv"]
            assert self.ledger.secrets(name, self.key) == SECRET
        self.settled = done
        # Killed before the ledger was told anything, a process may leave an empty folder, and no copy.
        assert list(self.out.glob(".*/copies/*")) == []

    def check_all(self):
        found = self.ledger.verify(self.key, files=True)
        assert (found.what, found.files) == (None, 2 * len(self.settled))
        assert found.secrets >= len(self.settled)
        return len(self.settled)


def killing(number):
    """A profiler that kills the process at its n-th step outside: before a call, or after it."""
    left = number

    def profile(frame, event, function):
        nonlocal left
        if event in ("c_call", "c_return") and function.__name__ in OUTSIDE:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return profile


def kill_at_each_step(scene, step):
    """Kill a child at every step-th step until one gets to its end; gives the number of kills."""
    number = kills = 0
    while True:
        code, _ = scene.end(*scene.child(killing(number), releases=1))
        scene.check()
        if code == 0:
            return kills
        assert code == -signal.SIGKILL
        kills, number = kills + 1, number + step


def kill_at_random(scene, kills, seed):
    """Kill children after a random time, most of them within their first release."""
    rng = random.Random(seed)
    start = time.perf_counter()
    assert scene.end(*scene.child(releases=2)) == (0, 2)
    usual = (time.perf_counter() - start) / 2
    for _ in range(kills):
        child, reading = scene.child()
        time.sleep(rng.uniform(0, 1.2 * usual))
        os.kill(child, signal.SIGKILL)
        assert scene.end(child, reading)[0] == -signal.SIGKILL
        scene.check()


def test_killed_at_steps(fast_folder):
    scene = Scene(fast_folder)
    assert kill_at_each_step(scene, 3) > 30
    assert scene.check_all() > 3


def test_killed_at_random(fast_folder):
    scene = Scene(fast_folder)
    kill_at_random(scene, KILLS, seed=1)
    assert scene.check_all() > KILLS / 20


def test_killed_while_the_ledger_is_in_postgresql(fast_folder, postgres):
    scene = Scene(fast_folder, new_schema(postgres))
    kill_at_random(scene, KILLS // 10, seed=2)
    assert scene.check_all() >= 2


def test_several_are_killed_at_once(fast_folder):
    """Others go on publishing, and recover what the killed ones left."""
    scene, rng = Scene(fast_folder), random.Random(3)
    for _ in range(10):
        children = [scene.child() for _ in range(3)]
        time.sleep(rng.uniform(0.02, 0.2))
        rng.shuffle(children)
        for child, reading in children:
            os.kill(child, signal.SIGKILL)
            scene.end(child, reading)
        scene.check()
    scene.check_all()


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(5))
def test_killed_a_thousand_times(fast_folder, seed):
    scene = Scene(fast_folder)
    kill_at_random(scene, 1_000, seed)
    scene.check_all()


@pytest.mark.heavy
def test_killed_at_every_step(fast_folder):
    scene = Scene(fast_folder)
    assert kill_at_each_step(scene, 1) > 100
    scene.check_all()

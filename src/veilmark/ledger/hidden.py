"""The hidden folder of a release in the making, its lock, and what killed processes have left of them."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from veilmark.errors import OptionError, OutputError

ID = re.compile(r"r[0-9a-f]{8}")
PREFIX = ".veilmark-"
FORGOTTEN = 3600
"""Seconds after which a folder that no ledger was told of is taken to be left behind."""


def is_id(release: str) -> bool:
    """Whether this may be the id of a release."""
    return ID.fullmatch(release) is not None


def hidden_folder(target: Path, release: str) -> Path:
    """Made from a checked id, never from what an entry says, since it will be removed."""
    if not is_id(release):
        raise OptionError(f"'{release}' is not the id of a release. An id looks like r0123abcd.")
    return target.parent / f"{PREFIX}{release}"


def make_hidden_folder(work: Path) -> int:
    """The hidden folder, for its owner alone, a place for the copies, and the lock in it. The lock comes last: a folder that
    holds a lock and no copies is one from which the copies have left."""
    try:
        work.mkdir(mode=0o700)
        (work / "copies").mkdir(mode=0o700)
        lock = os.open(work / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise OutputError(f"'{work.parent}' is not writable: {error.strerror}. Check its permissions.") from None
    _try_lock(lock)
    return lock


@contextmanager
def unlocked(work: Path) -> Iterator[bool]:
    """Whether nobody is at work there, and nobody will be within the block."""
    try:
        lock = os.open(work / "lock", os.O_RDWR)
    except FileNotFoundError:
        yield True
        return
    try:
        yield _try_lock(lock)
    finally:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    """Locks end with the process that holds them, however it ends."""
    try:
        import fcntl
    except ImportError:
        raise OptionError(
            "Releases can be published on Linux and macOS only, because this system has no file locks."
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def clear_strangers(parent: Path, known: Collection[str]) -> None:
    """Remove what processes have left that were killed before they wrote a copy. A folder that the ledger does not know may
    be another ledger's: it is removed only if it is old, unlocked, and never held anything."""
    for work in parent.glob(f"{PREFIX}r*"):
        name = work.name.removeprefix(PREFIX)
        with suppress(OSError):
            if is_id(name) and name not in known and _is_forgotten(work):
                with unlocked(work) as ours:
                    if ours:
                        shutil.rmtree(work)


def _is_forgotten(work: Path) -> bool:
    copies, lock = work / "copies", work / "lock"
    never_held = not any(copies.iterdir()) if copies.exists() else not lock.exists()
    return never_held and time.time() - work.stat().st_mtime > FORGOTTEN

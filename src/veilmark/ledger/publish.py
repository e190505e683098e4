"""Publishing: copies and ledger agree, whenever the process is killed or the power fails.

Copies are written into a hidden folder beside the target. The ledger says `started`; when all copies are on disk,
`prepared`, with their digests and the secrets; then the folder is renamed; then `published`. A release is done when, and
only when, the ledger says `published`. What was cut short is finished or undone by `recover`.

    .veilmark-ID/lock      locked as long as the process lives that publishes
    .veilmark-ID/copies    becomes the target
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilmark.errors import OptionError, OutputError, VeilmarkError
from veilmark.ledger.files import check_new_file, digests, sync, sync_all
from veilmark.ledger.keys import Key
from veilmark.ledger.releases import OWN, Release, releases_of
from veilmark.ledger.store import Ledger, OutOfTurnError

ID = re.compile(r"r[0-9a-f]{8}")


@dataclass
class Publication:
    """A release in the making: write the copies into `folder`; `public` and `secret` may still be added to."""

    release: str
    folder: Path
    target: Path
    public: dict[str, Any]
    secret: dict[str, Any] = field(repr=False)
    digests: dict[str, str] = field(default_factory=dict)
    published: bool = False
    """Whether the ledger says so; nothing can stop it then."""


def new_release_id() -> str:
    """A random name for a release."""
    return f"r{secrets.token_hex(4)}"


@contextmanager
def publishing(
    ledger: Ledger,
    key: Key,
    folder: str | os.PathLike[str],
    public: dict[str, Any],
    secret: dict[str, Any],
    release: str | None = None,
) -> Iterator[Publication]:
    """Publish what the block writes as `folder`, all of it or nothing; it is done when the block has been left.

    Ctrl-C stops it as long as the folder does not have its name. After that it is too late, and changes nothing.
    """
    if set(public) & set(OWN):
        raise ValueError(f"The ledger itself writes {', '.join(OWN)}.")
    ledger.check_key(key)
    target = check_target(folder)
    recover(ledger)
    doing = Publication(release or new_release_id(), Path(), target, dict(public), dict(secret))
    place = {"folder": str(target), "host": platform.node()}
    work = _work(target, doing.release)
    lock = _make_work(work)
    try:
        doing.folder = work / "copies"
        doing.folder.mkdir()
        ledger.append("started", doing.release, {**doing.public, **place})
        yield doing
        doing.digests = _on_disk(doing.folder)
        body = {**doing.public, **place, "digests": doing.digests}
        ledger.append("prepared", doing.release, body, doing.secret, key)
        _rename(doing.folder, target)
        ledger.append("published", doing.release, {"files": len(doing.digests)})
        doing.published = True
        shutil.rmtree(work, ignore_errors=True)
    except BaseException as error:
        # What cannot be undone now, because the ledger cannot be reached, is undone by the next `recover`.
        with suppress(VeilmarkError, OSError):
            _settle(ledger, doing.release, target)
            doing.published = ledger.release(doing.release).status == "published"
        if not (doing.published and isinstance(error, KeyboardInterrupt | OSError)):
            raise
    finally:
        os.close(lock)


def check_target(folder: str | os.PathLike[str]) -> Path:
    """The folder to be published, where there is room for it: a new one, or one that is empty."""
    target = Path(os.path.realpath(folder))
    check_new_file(Path(folder))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OptionError(f"'{folder}' exists already and is not an empty folder. Name a new one with -o.")
    return target


def recover(ledger: Ledger) -> dict[str, str]:
    """Finish or undo what was cut short, and say what became of each; releases still in the making are left alone."""
    settled = {}
    for name in ledger.unfinished():
        target = Path(ledger.release(name).folder)
        with suppress(OSError, OutOfTurnError), _locked(_work(target, name)) as ours:
            if ours:
                settled[name] = _settle(ledger, name, target)
    return {name: outcome for name, outcome in settled.items() if outcome}


def _settle(ledger: Ledger, name: str, target: Path) -> str:
    """Publish a release whose folder was renamed already; undo any other. Its lock is held, so nobody else does."""
    work = _work(target, name)
    outcome = _outcome(ledger, name, target, work)
    if outcome == "published":
        sync(target.parent)
    if work.exists():
        shutil.rmtree(work)
    if outcome:
        ledger.append(outcome, name, {"recovered": True})
    return outcome


def _outcome(ledger: Ledger, name: str, target: Path, work: Path) -> str:
    """What is to become of a release; nothing where it has ended, or where only another computer can tell.

    Where its folders cannot be seen, another computer or container may still be at work, unless it was surely this one.
    """
    for release in releases_of(ledger.entries(release=name)):
        if release.status == "unfinished" and release.folder == str(target):
            if _was_renamed(release, work):
                return "published"
            if work.exists() or (ledger.database.is_local and release.host == platform.node()):
                return "aborted"
    return ""


def _was_renamed(release: Release, work: Path) -> bool:
    prepared = any(entry.kind == "prepared" for entry in release.history)
    if not prepared or (work / "copies").exists():
        return False
    return Path(release.folder).is_dir() and digests(Path(release.folder)) == release.digests


def _work(target: Path, release: str) -> Path:
    """Made from a checked id, never from what an entry says, since it will be removed."""
    if not ID.fullmatch(release):
        raise OptionError(f"'{release}' is not the id of a release, which looks like r0123abcd.")
    return target.parent / f".veilmark-{release}"


def _make_work(work: Path) -> int:
    """The hidden folder, for its owner alone, and the lock in it."""
    try:
        work.mkdir(mode=0o700)
        lock = os.open(work / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise OutputError(f"'{work.parent}' cannot be written to: {error.strerror}. Check its permissions.") from None
    _try_lock(lock)
    return lock


@contextmanager
def _locked(work: Path) -> Iterator[bool]:
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
        raise OptionError("Releases can be published on Linux and macOS only, for want of file locks.") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _on_disk(folder: Path) -> dict[str, str]:
    try:
        sync_all(folder)
        return digests(folder)
    except OSError as error:
        raise OutputError(
            f"The copies cannot be written: {error.strerror or error}. Nothing was left behind."
        ) from None


def _rename(copies: Path, target: Path) -> None:
    try:
        os.rename(copies, target)
        sync(target.parent)
        sync(copies.parent)
    except OSError as error:
        raise OutputError(f"'{target}' cannot be written: {error.strerror}. See: veilmark ledger list.") from None

"""Publishing: copies and ledger agree, whenever the process is killed or the power fails.

Copies are written into a hidden folder beside the target. The ledger says `started`; when all copies are on disk,
`prepared`, with their digests and the secrets; then the folder is renamed; then `published`. A release is done when, and
only when, the ledger says `published`. What was cut short is finished or undone by `recover`, which needs the key: a release
that was prepared is undone only if all its copies are still in the hidden folder, as they were made, and nothing is in the
target's place. Otherwise they may have left, and it is published, whatever became of them since.

    .veilmark-ID/copies    becomes the target
    .veilmark-ID/lock      locked as long as the process lives that publishes
"""

from __future__ import annotations

import os
import platform
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilmark.errors import OptionError, OutputError, VeilmarkError
from veilmark.ledger.files import check_new_file, digests, make_private, sync, sync_all
from veilmark.ledger.hidden import clear_strangers, hidden_folder, is_id, make_hidden_folder, unlocked
from veilmark.ledger.keys import Key
from veilmark.ledger.releases import OWN, releases_of
from veilmark.ledger.signing import Signer
from veilmark.ledger.store import Ledger, OutOfTurnError
from veilmark.messages import command, param


@dataclass
class Publication:
    """A release in the making: write the copies into `folder`; `public` and `secret` may still be added to."""

    release: str
    folder: Path
    target: Path
    public: dict[str, Any]
    secret: dict[str, Any] = field(repr=False)
    digests: dict[str, str] = field(default_factory=dict)
    commitment: str | None = None
    """The hash of the entry that fixes who holds which marks."""
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
    signer: Signer | None = None,
    beside: Collection[str] | None = None,
) -> Iterator[Publication]:
    """Publish what the block writes as `folder`, all of it or nothing; it is done when the block has been left.
    `signer` signs what the ledger says of it. `beside` are the releases that this one knows of: where the ledger has others
    by the time the copies are ready, nothing is published (`OvertakenError`).

    Ctrl-C stops it as long as the folder does not have its name. After that it is too late, and changes nothing.
    """
    if set(public) & set(OWN):
        raise ValueError(f"The ledger itself writes {', '.join(OWN)}.")
    ledger.check_key(key)
    ledger.check_sealed()
    target = check_target(folder)
    recover(ledger, key)
    clear_strangers(target.parent, {release.id for release in ledger.releases()})
    doing = Publication(release or new_release_id(), Path(), target, dict(public), dict(secret))
    place = {"folder": str(target), "host": platform.node()}
    work = hidden_folder(target, doing.release)
    lock = make_hidden_folder(work)
    try:
        doing.folder = work / "copies"
        ledger.append("started", doing.release, {**doing.public, **place}, None, key, signer)
        yield doing
        doing.digests = _on_disk(doing.folder)
        body = {**doing.public, **place, "digests": doing.digests}
        prepared = ledger.append("prepared", doing.release, body, doing.secret, key, signer, beside)
        doing.commitment = prepared.hash
        _rename(doing.folder, target)
        ledger.append("published", doing.release, {"files": len(doing.digests)}, None, key, signer)
        doing.published = True
        shutil.rmtree(work, ignore_errors=True)
    except BaseException as error:
        # What cannot be undone now, because the ledger cannot be reached, is undone by the next `recover`.
        with suppress(VeilmarkError, OSError):
            _settle(ledger, key, doing.release, target, its_own=True)
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
        raise OptionError(
            f"'{folder}' exists already and is not an empty folder. Name a new folder with {param('output')}."
        )
    return target


def recover(ledger: Ledger, key: Key) -> dict[str, str]:
    """Finish or undo what was cut short, and say what became of each; releases still in the making are left alone, as is a
    ledger that was changed, or has no seals."""
    settled = {}
    unfinished = ledger.unfinished() if ledger.is_sealed else []
    if unfinished and not ledger.verify(key).whole:
        return {}
    for name in unfinished:
        target = Path(ledger.release(name).folder)
        with suppress(OSError, OutOfTurnError), unlocked(hidden_folder(target, name)) as ours:
            if ours:
                settled[name] = _settle(ledger, key, name, target)
    _clear_ended(ledger, key)
    return {name: outcome for name, outcome in settled.items() if outcome}


def _clear_ended(ledger: Ledger, key: Key) -> None:
    """Remove the hidden folders that releases have left behind which have ended."""
    ended = [r for r in ledger.releases() if r.status != "unfinished" and is_id(r.id)]
    left = [work for work in (hidden_folder(Path(r.folder), r.id) for r in ended) if work.exists()]
    if left and ledger.verify(key).whole:
        for work in left:
            with suppress(OSError), unlocked(work) as ours:
                if ours:
                    shutil.rmtree(work)


def _settle(ledger: Ledger, key: Key, name: str, target: Path, its_own: bool = False) -> str:
    """Publish a release whose folder was renamed already; undo any other. Its lock is held, so nobody else does. `its_own`:
    the process that writes the copies asks.

    The ledger is told first: as long as the hidden folder is there, it shows whether copies have left it.
    """
    work = hidden_folder(target, name)
    outcome = _outcome(ledger, name, target, work, its_own)
    if outcome == "published":
        with suppress(FileNotFoundError):
            sync(target.parent)
    if outcome:
        ledger.append(outcome, name, {"recovered": True}, key=key)
    shutil.rmtree(work, ignore_errors=True)
    return outcome


def _outcome(ledger: Ledger, name: str, target: Path, work: Path, its_own: bool) -> str:
    """What is to become of a release; nothing where it has ended, or where only another computer can tell.

    Where its hidden folder cannot be seen, another computer or container may still be at work, unless it was surely this
    one. Copies that were prepared and are not in the hidden folder any more may be in somebody's hands, so that they must
    stay traceable, even if they are no longer where they were put or as they were, and whatever somebody has put in their
    place.
    """
    for release in releases_of(ledger.entries(release=name)):
        if release.status == "unfinished" and release.folder == str(target):
            prepared = any(entry.kind == "prepared" for entry in release.history)
            if prepared and work.exists():
                never_left = _holds(work / "copies", release.digests) and (its_own or _is_free(target))
                return "aborted" if never_left else "published"
            if work.exists() or (not prepared and ledger.database.is_local and release.host == platform.node()):
                return "aborted"
            if prepared and _holds(target, release.digests):
                return "published"
    return ""


def _holds(folder: Path, expected: dict[str, str]) -> bool:
    """Whether the copies are in a folder, all of them as they were made, and nothing else."""
    return folder.is_dir() and digests(folder) == expected


def _is_free(target: Path) -> bool:
    """Whether no copies were put there: at most the empty folder that may have been there before."""
    return not os.path.lexists(target) or (target.is_dir() and not any(target.iterdir()))


def _on_disk(folder: Path) -> dict[str, str]:
    try:
        make_private(folder)
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
        raise OutputError(
            f"'{target}' cannot be written: {error.strerror}. {command('ledger list', lead='See')}"
        ) from None

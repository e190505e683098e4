"""The verbs of the ledger, and how release and trace open one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from veilmark.errors import DataError, OptionError, OutputError
from veilmark.ledger import Key, Ledger, Release, Verification, backup, recover
from veilmark.ledger.files import check_new_file

Place = str | os.PathLike[str]


def plan_to_publish(where: Place, key_file: Place) -> tuple[Ledger | None, Key]:
    """The ledger, if there is one, and its key, for a new release; a new key is in no file yet. Nothing is made, but what
    could not be made or written later is refused.

    There is no new key for a ledger that has one: a path mistyped must not start a second key.
    """
    ledger = Ledger.open(where) if Ledger.exists(where) else None
    if ledger is not None:
        ledger.check_writable()
    if os.path.exists(key_file) or (ledger is not None and ledger.key_id() is not None):
        return ledger, Key.open(key_file) if ledger is None else key_of(ledger, key_file)
    check_new_file(Path(key_file))
    return ledger, Key.new()


def open_to_publish(where: Place, key_file: Place, key: Key | None = None) -> tuple[Ledger, Key]:
    """A ledger and its key for a new release; both are made where there are none. `key` is the one that was planned with.

    They are made as late as can be, so that a release that comes to nothing leaves neither.
    """
    key = key or plan_to_publish(where, key_file)[1]
    ledger = Ledger.open(where, create=True)
    ledger.check_key(key)
    with suppress(FileExistsError):
        if not os.path.exists(key_file):
            key.save(key_file)
    if Key.open(key_file) != key:
        raise OptionError(f"Another process has made the key file '{key_file}' meanwhile. Try again.")
    recover(ledger)
    return ledger, key


def open_to_read(where: Place, key_file: Place | None = None) -> Ledger:
    """A ledger in which what was cut short is settled, unless it can only be read or is broken; a key, if given, must be
    its own."""
    ledger = Ledger.open(where)
    if key_file is not None:
        key_of(ledger, key_file)
    with suppress(OutputError):
        if ledger.unfinished() and ledger.verify().ok:
            recover(ledger)
    return ledger


def fault(where: Place) -> str | None:
    """What is wrong with a ledger, in a sentence."""
    ledger = Ledger.open(where)
    found = ledger.verify()
    return None if found.ok else f"The ledger '{ledger.label}' is not as it was written: {found.what}."


def key_of(ledger: Ledger, key_file: Place) -> Key:
    """The ledger's own key; a lost or another one is refused."""
    if not os.path.exists(key_file):
        known = ledger.key_id()
        named = f" with the id {known}" if known else ""
        raise OptionError(
            f"There is no key file '{key_file}'. The ledger '{ledger.label}' needs its own key{named}: give that file or "
            "a copy of it. Without the key, nobody can read the ledger's secrets."
        )
    key = Key.open(key_file)
    ledger.check_key(key)
    return key


def releases(where: Place, key_file: Place | None = None) -> list[Release]:
    """All releases of a ledger."""
    return open_to_read(where, key_file).releases()


def release(where: Place, name: str, key_file: Place | None = None) -> Release:
    """One release by its id."""
    return open_to_read(where, key_file).release(name)


def decoys(where: Place, name: str, key_file: Place | None) -> dict[str, list[dict[str, Any]]]:
    """The decoys of a release, for each recipient: who they are and what was published of them."""
    if key_file is None:
        raise OptionError("Decoys are encrypted. Give the ledger's key file with --key.")
    ledger = open_to_read(where)
    ledger.release(name)
    found: dict[str, list[dict[str, Any]]] | None = ledger.secrets(name, key_of(ledger, key_file)).get("decoys")
    if found is None:
        raise DataError(f"Release '{name}' has no decoys in its secrets.")
    return found


def verify(where: Place, key_file: Place | None = None, files: bool = False, head: str | None = None) -> Verification:
    """Check a ledger. What was cut short is settled only after the chain was found whole."""
    ledger = Ledger.open(where)
    key = None if key_file is None else key_of(ledger, key_file)
    found = ledger.verify(key, files, head)
    if found.whole:
        with suppress(OutputError):
            if recover(ledger):
                found = ledger.verify(key, files, head)
    return found


def rotate(where: Place, old_file: Place, new_file: Place) -> int:
    """Change a ledger's key; the new key file is made where there is none. Says how many secrets were rewrapped."""
    ledger = Ledger.open(where)
    old = key_of(ledger, old_file)
    return ledger.rotate(old, Key.open_or_make(new_file))


def export(where: Place, output: Place) -> Verification:
    """Write a backup."""
    return backup.export(Ledger.open(where), output)


def restore(file: Place, where: Place) -> Verification:
    """A new ledger from a backup."""
    return backup.restore(file, where).verify()

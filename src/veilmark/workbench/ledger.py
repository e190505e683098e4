"""The verbs of the ledger, and how release and trace open one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veilmark.errors import DataError, OptionError, OutputError
from veilmark.ledger import Entry, Key, Ledger, Release, Verification, backup, recover
from veilmark.ledger.anchors import Anchor
from veilmark.ledger.files import check_new_file
from veilmark.ledger.seals import OPERATOR
from veilmark.ledger.signing import Signer, read_public_key
from veilmark.ledger.timestamps import read_certificates
from veilmark.messages import param
from veilmark.trace.shown import SHOWN

Place = str | os.PathLike[str]


@dataclass(frozen=True)
class Noted:
    """What is known of a ledger from elsewhere, with which it must agree: a `head` that was noted earlier, files with the
    public keys of operators who sign its releases, files that `anchor` wrote, and, to check the anchors' time stamps, the
    certificates of time stamp servers."""

    head: str | None = None
    public_keys: tuple[Place, ...] = ()
    anchors: tuple[Place, ...] = ()
    certificates: tuple[Place, ...] = ()

    def check(self, ledger: Ledger, key: Key | None, files: bool = False) -> Verification:
        """Verify a ledger, and compare."""
        operators = [read_public_key(path) for path in self.public_keys]
        anchors = [Anchor.open(path) for path in self.anchors]
        trusted = read_certificates(self.certificates)
        told = [
            {"file": str(path), **one.check_stamp(trusted)} for path, one in zip(self.anchors, anchors, strict=True)
        ]
        found = ledger.verify(key, files, self.head, [one.known for one in anchors], operators)
        return replace(found, anchors=tuple(told))


@dataclass(frozen=True)
class AnchorToKeep:
    """An anchor to be written, and stamped where a time stamp server is given; its certificate checks the stamp at once,
    because a bad one cannot be mended later."""

    output: Place
    server: str | None = None
    certificates: tuple[Place, ...] = ()

    def check(self) -> None:
        """Refuse what could not be written or checked; said before the work is done."""
        if os.path.lexists(self.output):
            raise OptionError(f"'{self.output}' exists already. Name a new file for the anchor.")
        check_new_file(Path(self.output))
        if self.server is not None and not read_certificates(self.certificates):
            raise OptionError(
                "A new time stamp is checked at once, which needs the server's certificate. Give it with "
                f"{param('tsa_certificate')}; the server's operator publishes it."
            )

    def write(self, entries: int, head: str) -> Anchor:
        trusted = read_certificates(self.certificates) if self.server is not None else []
        made = Anchor.of(entries, head, self.server)
        made.check_stamp(trusted)
        made.save(self.output)
        return made


def plan_to_publish(where: Place, key_file: Place) -> tuple[Ledger | None, Key]:
    """The ledger, if there is one, and its key, for a new release; a new key is in no file yet. Nothing is made, but what
    could not be made or written later is refused.

    There is no new key for a ledger that has one: a path mistyped must not start a second key.
    """
    ledger = Ledger.open(where) if Ledger.exists(where) else None
    if ledger is not None:
        ledger.check_writable()
        ledger.check_sealed()
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
        raise OptionError(f"Another process created the key file '{key_file}' in the meantime. Try again.")
    recover(ledger, key)
    return ledger, key


def open_to_read(where: Place, key_file: Place | None = None) -> Ledger:
    """A ledger. With its key, what was cut short is settled first, unless the ledger can only be read or was changed."""
    ledger = Ledger.open(where)
    if key_file is not None:
        key = key_of(ledger, key_file)
        with suppress(OutputError):
            recover(ledger, key)
    return ledger


def open_or_make(where: Place, key_file: Place | None) -> Ledger:
    """A ledger; with a key file, both are made where there are none."""
    if key_file is not None and not (Ledger.exists(where) and os.path.exists(key_file)):
        plan_to_publish(where, key_file)  # A ledger that has a key gets no second one.
        return open_to_publish(where, key_file)[0]
    return open_to_read(where, key_file)


def fault(where: Place) -> str | None:
    """What is wrong with a ledger, in a sentence."""
    ledger = Ledger.open(where)
    found = ledger.verify()
    return None if found.ok else f"The ledger '{ledger.label}' was changed: {found.what}."


def key_of(ledger: Ledger, key_file: Place) -> Key:
    """The ledger's own key; a lost or another one is refused."""
    if not os.path.exists(key_file):
        known = ledger.key_id()
        named = f" with the id {known}" if known else ""
        raise OptionError(
            f"There is no key file '{key_file}'. The ledger '{ledger.label}' needs its own key{named}. Give that "
            "file or a copy. Without the key, nobody can read the ledger's secrets."
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
        raise OptionError(f"Decoys are encrypted. Give the ledger's key file with {param('key')}.")
    ledger = open_to_read(where, key_file)
    ledger.release(name)
    found: dict[str, list[dict[str, Any]]] | None = ledger.secrets(name, key_of(ledger, key_file)).get("decoys")
    if found is None:
        raise DataError(f"Release '{name}' has no decoys in its secrets.")
    return found


def verify(
    where: Place, key_file: Place | None = None, files: bool = False, noted: Noted | None = None
) -> Verification:
    """Check a ledger. With its key, what was cut short is settled, but only after the ledger was found whole."""
    ledger, noted = Ledger.open(where), noted or Noted()
    key = None if key_file is None else key_of(ledger, key_file)
    found = noted.check(ledger, key, files)
    if found.whole and key is not None:
        with suppress(OutputError):
            if recover(ledger, key):
                found = noted.check(ledger, key, files)
    return found


def anchor(
    where: Place,
    output: Place,
    key_file: Place | None = None,
    server: str | None = None,
    certificates: Sequence[Place] = (),
) -> Anchor:
    """Write the head of a ledger to a file for keeping elsewhere, stamped by a time stamp server if one is given. A ledger
    that was changed has no anchor."""
    keeping = AnchorToKeep(output, server, tuple(certificates))
    keeping.check()
    found = verify(where, key_file)
    if not found.whole:
        raise DataError(f"The ledger '{where}' was changed: {found.what}. There is nothing to anchor.")
    return keeping.write(found.entries, found.head)


def upgrade(where: Place, key_file: Place) -> int:
    """Seal the entries of a ledger that an older veilmark wrote; says how many were sealed."""
    ledger = Ledger.open(where)
    return ledger.upgrade(key_of(ledger, key_file))


def make_signing_key(path: Place) -> tuple[Signer, Path]:
    """A new pair of keys to sign with: the private key, for its owner alone, and beside it the public key."""
    signer = Signer.new()
    return signer, signer.save(path)


def add_operator(
    where: Place, key_file: Place, name: str, public_key: Place | None = None, sign_key: Place | None = None
) -> Entry:
    """Name an operator in the ledger; what the operator signs from now on can be told by the public key. With the operator's
    `sign_key` the entry is signed, too, and so vouches for all entries before it."""
    if (public_key is None) == (sign_key is None):
        raise OptionError(
            f"Give {param('sign_key')} or {param('public_key')}: the operator's own key, which signs the entry, or the "
            "public key alone. You gave " + ("neither." if public_key is None else "both.")
        )
    ledger = Ledger.open(where)
    signer = None if sign_key is None else Signer.open(sign_key)
    known = signer.public if signer is not None else read_public_key(public_key or "")
    return ledger.append(
        OPERATOR, None, {"name": name, "public_key": known}, key=key_of(ledger, key_file), signer=signer
    )


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


def note_shown(
    where: str | os.PathLike[str], key_file: str | os.PathLike[str], releases: Iterable[str], what: str
) -> None:
    """Write into the ledger, before they are shown, that the marks of some releases are."""
    ledger = open_to_read(where, key_file)
    ledger.check_writable()
    key = key_of(ledger, key_file)
    for release in releases:
        ledger.append(SHOWN, release, {"what": what}, key=key)

"""Commitments: a hash that is published before the copies are delivered, and opened when somebody is accused.

The commitment of a release is the hash of its entry `prepared`. It fixes who holds which marks: the entry's hash covers the
encrypted secret, and the secret begins with the SHA-256 of its data key. Opened, it is the entry and that data key. A third
party computes the hash, compares it with the one that was published, decrypts the secret, and traces the leak with it:
without the ledger, without its key, and without trusting whoever made the release.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from typing import Any

from veilmark.errors import DataError
from veilmark.ledger.chain import Link, as_base64, hash_of
from veilmark.ledger.jsonfiles import not_a, read_json, save_json
from veilmark.ledger.keys import SIZE, Key
from veilmark.ledger.seals import MARK
from veilmark.ledger.secret import open_with, unwrap
from veilmark.ledger.store import Ledger

KIND = "opened commitment"
FIELDS = ("previous", "number", "time", "kind", "release", "body")


@dataclass(frozen=True)
class Commitment:
    """What is published of a release: `commitment` is the hash of its entry."""

    release: str
    commitment: str
    entry: int
    time: str

    @classmethod
    def of(cls, ledger: Ledger, release: str) -> Commitment:
        link = _link(ledger, release)
        return cls(release, link.hash, link.number, link.time)

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Opened:
    """A commitment that was opened: an entry, and the data key of its secret."""

    link: Link
    data_key: bytes = field(repr=False)

    @classmethod
    def of(cls, ledger: Ledger, release: str, key: Key) -> Opened:
        """Open the commitment of a release."""
        ledger.check_key(key)
        link = _link(ledger, release)
        return cls(link, unwrap(link.number, link.wrapped, key))

    @property
    def commitment(self) -> str:
        """The hash that must have been published."""
        return hash_of(self.link)

    def secret(self, commitment: str) -> dict[str, Any]:
        """What was committed to; refused if it is not what was published."""
        if commitment.strip().lower() != self.commitment:
            raise DataError(
                f"This file opens the commitment {self.commitment}, not {commitment}. It does not match what "
                "was published."
            )
        return open_with(self.link, self.data_key)

    def to_dict(self) -> dict[str, Any]:
        entry = {name: getattr(self.link, name) for name in FIELDS}
        return {"entry": {**entry, "secret": as_base64(self.link.secret)}, "data_key": as_base64(self.data_key)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it, for its owner alone: it tells all marks of the release."""
        save_json(path, KIND, self.to_dict())

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Opened:
        """Read what `save` wrote."""
        try:
            content = read_json(path, KIND)
            entry, data_key = content["entry"], base64.b64decode(content["data_key"], validate=True)
            secret = base64.b64decode(entry["secret"], validate=True)
            link = Link(secret=secret, hash="", **{name: entry[name] for name in FIELDS})
            if len(data_key) != SIZE or not secret.startswith(MARK):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise not_a(KIND, path, "open-commitment") from None
        return cls(link, data_key)


def _link(ledger: Ledger, release: str) -> Link:
    link = ledger.secret_link(release)
    if link.secret is None or not link.secret.startswith(MARK):
        raise DataError(
            f"Release '{release}' was written by an older veilmark, whose entries are not binding commitments. "
            "Make a new release to get one."
        )
    return link

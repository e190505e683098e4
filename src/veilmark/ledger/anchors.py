"""Anchors: the head of a ledger, written down for keeping elsewhere, so that entries cut off later are missed.

An anchor is a JSON file with the number of entries, the hash of the last one and the time. A time stamp server may have
signed the message `["veilmark anchor 1",entries,head,time]`, JSON without spaces; its answer is kept in Base64.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509

from veilmark.errors import DataError
from veilmark.ledger.chain import as_base64, canonical, now
from veilmark.ledger.checking import Known
from veilmark.ledger.jsonfiles import not_a, read_json, save_json
from veilmark.ledger.timestamps import request_stamp, stamped_at
from veilmark.messages import param

KIND = "anchor"
TOLERANCE = timedelta(hours=1)
"""How far the clocks of two computers may be apart."""


@dataclass(frozen=True)
class Anchor:
    """After so many `entries` the last hash was `head`; `stamp` is what a time stamp server answered."""

    entries: int
    head: str
    time: str
    server: str | None = None
    stamp: bytes | None = None

    @classmethod
    def of(cls, entries: int, head: str, server: str | None = None) -> Anchor:
        """An anchor of now, stamped if a server is given."""
        plain = cls(entries, head, now())
        if server is None:
            return plain
        return cls(entries, head, plain.time, server.rpartition("@")[2], request_stamp(plain.message, server))

    @property
    def message(self) -> bytes:
        """What is stamped."""
        return canonical(["veilmark anchor 1", self.entries, self.head, self.time]).encode()

    @property
    def known(self) -> Known:
        """What the ledger must agree with."""
        return Known(self.head, self.entries)

    def check_stamp(self, certificates: Sequence[x509.Certificate]) -> dict[str, Any]:
        """What can be said of the anchor's time. Where certificates are given there must be a stamp, by one of them and of
        that time; without them nothing is known of its time but what it says itself."""
        told = {"entries": self.entries, "head": self.head, "time": self.time, "stamped": None}
        if not certificates:
            return {**told, "has_stamp": self.stamp is not None}
        if self.stamp is None:
            raise DataError(
                f"The anchor of {self.time} has no time stamp, so nothing proves when it was made. Give an anchor "
                f"with a time stamp, or omit {param('tsa_certificate')}."
            )
        at = stamped_at(self.stamp, self.message, certificates)
        if abs(at - datetime.fromisoformat(self.time)) > TOLERANCE:
            raise DataError(
                f"The anchor is dated {self.time}, but its time stamp is dated {_utc(at)}. One of the two clocks "
                "is wrong. Make a new anchor with the right time."
            )
        return {**told, "has_stamp": True, "stamped": _utc(at)}

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "stamp": as_base64(self.stamp)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it, for anybody to read; it never replaces a file."""
        save_json(path, KIND, self.to_dict())
        Path(path).chmod(0o644)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Anchor:
        """Read what `save` wrote."""
        try:
            content = read_json(path, KIND)
            stamp = content["stamp"]
            if datetime.fromisoformat(str(content["time"])).tzinfo is None:
                raise ValueError
            return cls(
                int(content["entries"]),
                str(content["head"]),
                str(content["time"]),
                content["server"],
                None if stamp is None else base64.b64decode(stamp, validate=True),
            )
        except (KeyError, TypeError, ValueError):
            raise not_a(KIND, path, "anchor") from None


def _utc(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")

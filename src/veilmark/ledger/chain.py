"""The chain: each entry holds the hash of the one before it, so that no entry can be changed unseen.

An entry's hash is the SHA-256 of a JSON list: the hash before it, number, time, kind, release, body and secret.
Its seal is the HMAC-SHA-256, under the ledger's key, of the same list and the operator's signature (`seals.py`).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

BEGINNING = "0" * 64
"""What stands for the hash before the first entry."""


class Link(NamedTuple):
    """An entry as it is stored, with its data key where it has a secret, its seal, and the operator's signature."""

    number: int
    time: str
    kind: str
    release: str | None
    body: str
    secret: bytes | None
    previous: str
    hash: str
    key_id: str | None = None
    wrapped: bytes | None = None
    seal_key: str | None = None
    mac: bytes | None = None
    signer: str | None = None
    signature: bytes | None = None


@dataclass(frozen=True)
class Entry:
    """An entry to read; `sealed` says that it has a secret."""

    number: int
    time: str
    kind: str
    release: str | None
    public: dict[str, Any]
    sealed: bool
    hash: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def canonical(content: Any) -> str:
    """JSON in the one form that is hashed: names in order, no spaces, ASCII."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)


def as_given(content: Any) -> str:
    """JSON with names in the order given. Values of a table may be NaN, which only Python reads."""
    return json.dumps(content, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal | timedelta):
        return str(value)
    raise TypeError(f"A ledger stores only JSON values, not {type(value).__name__}.")


def now() -> str:
    """The time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def fields_of(link: Link) -> list[str | int | None]:
    """What the hash and the seal of an entry are made from."""
    return [link.previous, link.number, link.time, link.kind, link.release, link.body, as_base64(link.secret)]


def as_base64(content: bytes | None) -> str | None:
    """Bytes as JSON can hold them."""
    return None if content is None else base64.b64encode(content).decode()


def hash_of(link: Link) -> str:
    """What an entry's hash must be."""
    return hashlib.sha256(canonical(fields_of(link)).encode()).hexdigest()


def about_secret(link: Link) -> bytes:
    """What an entry's secret is bound to: all else of it and, by the hash before it, all entries before."""
    return canonical(["veilmark secret 2", *fields_of(link)[:-1]]).encode()


def about_old_secret(link: Link) -> bytes:
    """The same, of entries that veilmark wrote before it sealed them."""
    return canonical(fields_of(link)[:-1]).encode()


def about_data_key(number: int, key_id: str) -> bytes:
    """What an entry's wrapped data key is bound to."""
    return canonical([number, key_id]).encode()


class Break(NamedTuple):
    """Where the chain breaks, and how."""

    number: int
    what: str


def follow(links: Iterable[Link]) -> Iterator[tuple[Link, Break | None]]:
    """Each entry in turn, and what is wrong with it; nothing can be said of those after a break."""
    previous = BEGINNING
    for number, link in enumerate(links, 1):
        what = _wrong(link, number, previous)
        yield link, None if what is None else Break(number, what)
        if what is not None:
            return
        previous = link.hash


def _wrong(link: Link, number: int, previous: str) -> str | None:
    if link.number != number:
        return f"entry {number} is missing"
    if link.previous != previous:
        return f"entry {number} does not follow the one before it: one of the two was replaced"
    if link.hash != hash_of(link):
        return f"entry {number} was changed after it was written"
    if link.secret is not None and link.wrapped is None:
        return f"the data key of entry {number} is missing, so its secret cannot be read"
    return None

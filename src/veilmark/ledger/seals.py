"""Seals: nobody without the key can add an entry, or change one, unseen.

The seal of an entry is the HMAC-SHA-256 of a JSON list under a key that is derived from the key file: the hash before it,
number, time, kind, release, body, secret, and the operator's public key and signature or null. Ledgers of an older veilmark
have none; with the key they are checked as they are, sealed as they are, and say so for ever by an entry `upgraded`.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection

from veilmark.ledger.chain import Link, as_base64, canonical, fields_of
from veilmark.ledger.keys import Key
from veilmark.ledger.signing import signed_by
from veilmark.messages import Message, command

PURPOSE = "ledger entries"
UPGRADED = "upgraded"
OPERATOR = "operator"
MARK = b"veilmk2\0"
"""How a secret begins that was written with a seal; older ones begin with random bytes."""


def mac_of(link: Link, key: Key) -> bytes:
    """What an entry's seal must be."""
    content = canonical([*fields_of(link), link.signer, as_base64(link.signature)])
    return hmac.digest(key.subkey(PURPOSE), content.encode(), "sha256")


def sealed(link: Link, key: Key) -> Link:
    """The entry with its seal."""
    return link._replace(seal_key=key.id, mac=mac_of(link, key))


def is_sealed(link: Link, key: Key) -> bool:
    """Whether an entry has its seal."""
    return link.mac is not None and hmac.compare_digest(link.mac, mac_of(link, key))


def must_be_sealed(link: Link) -> bool:
    """Whether an entry, by what the chain holds of it, can only have been written with a seal."""
    return link.kind == UPGRADED or (link.secret is not None and link.secret.startswith(MARK))


class Seals:
    """The seals of a ledger's entries, told one after the other. Either all entries have one or, in a ledger of an older
    veilmark, none; a seal that is missing was taken away, or its entry was put in without the key."""

    def __init__(self, key: Key | None, operators: Collection[str] = ()) -> None:
        self.key = key
        self.operators = operators
        self.count = self.signed = self.unsealed = 0
        self.upgrade: Link | None = None
        self.unvouched: Link | None = None
        """The first secret that none of the operators asked for has signed or vouched for."""
        self._known: set[str] = set()

    def wrong(self, link: Link) -> str | None:
        """Take note of an entry; says what is wrong with its seal or signature."""
        if link.mac is None and not self.count and not must_be_sealed(link):
            self.unsealed += 1
            return None
        if self.unsealed or link.mac is None or (self.key is not None and not is_sealed(link, self.key)):
            return self._unsealed(link)
        self.count += 1
        if link.kind == UPGRADED:
            self.upgrade = link
        return self._wrong_signature(link)

    def _unsealed(self, link: Link) -> str:
        if self.unsealed:
            return f"entries 1 to {self.unsealed} have no seal, but later ones do: the seals were removed"
        what = "has no seal of the key" if link.mac is None else "has a seal of another key"
        return f"entry {link.number} {what}: it was added or changed by somebody without the key"

    def _wrong_signature(self, link: Link) -> str | None:
        """An operator signs after being entered by name. Of operators who are asked for, all secrets must be signed, from
        the first entry on. An `operator` entry that one of them has signed vouches for all before it, since the hash that is
        signed follows from them: so they can take over a ledger that has unsigned releases."""
        self._known |= {key for key in (operator_of(link),) if key is not None}
        if link.signature is not None or link.signer is not None:
            if link.signer not in self._known or not _is_signed(link):
                return f"entry {link.number} has a signature that is not by an operator of this ledger"
            self.signed += 1
        if link.signer in self.operators:
            self.unvouched = None if link.kind == OPERATOR else self.unvouched
        elif self.operators and link.secret is not None:
            self.unvouched = self.unvouched or link
        return None

    def unknown_operator(self) -> str | None:
        """Of the operators asked for, one that the ledger does not name."""
        return next((operator for operator in self.operators if operator not in self._known), None)

    def lacks(self) -> str | None:
        """What an older ledger cannot show."""
        if self.unsealed:
            return Message(
                "Its entries have no seal: an older veilmark wrote them, or somebody removed the seals. Anybody "
                "with write access to the ledger could add entries. "
                f"{command('ledger upgrade', lead='If an older veilmark wrote them, seal the ledger with')}"
            )
        if self.upgrade is not None:
            return (
                f"Entries 1 to {self.upgrade.number - 1} were written by an older veilmark and sealed on "
                f"{self.upgrade.time}. Until then, anybody with write access to the ledger could add entries."
            )
        return None


def _is_signed(link: Link) -> bool:
    if link.signer is None or link.signature is None:
        return False
    return signed_by(link.signer, link.signature, message_of(link))


def message_of(link: Link) -> bytes:
    """What an operator signs."""
    return f"veilmark entry {link.hash}".encode()


def operator_of(link: Link) -> str | None:
    """The public key that an entry names as an operator's."""
    import json

    return str(json.loads(link.body).get("public_key")) if link.kind == OPERATOR else None

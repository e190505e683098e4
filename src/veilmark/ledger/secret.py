"""The secret of an entry: encrypted under a random data key of its own, which the key file wraps.

    secret = "veilmk2\\0" + SHA-256(data key) + nonce + AES-256-GCM(data key, nonce, JSON, bound to the entry)

The digest of the data key makes the entry's hash a commitment: whoever is given the data key later can open the secret in
one way only (AES-GCM alone would allow a ciphertext that two keys open). An older veilmark wrote nonce and ciphertext alone.
"""

from __future__ import annotations

import hashlib
import json
import secrets as random
from typing import Any

from veilmark.errors import DataError
from veilmark.ledger import chain
from veilmark.ledger.chain import Link
from veilmark.ledger.keys import SIZE, Key, SealError, seal, unseal
from veilmark.ledger.seals import MARK
from veilmark.messages import command

PURPOSE = "ledger"
DIGEST = hashlib.sha256().digest_size


def with_secret(link: Link, secret: dict[str, Any], key: Key) -> Link:
    """An entry with its secret, before it is hashed."""
    data_key = random.token_bytes(SIZE)
    content = seal(data_key, chain.as_given(secret).encode(), chain.about_secret(link))
    blob = MARK + hashlib.sha256(data_key).digest() + content
    return link._replace(secret=blob, key_id=key.id, wrapped=wrap(data_key, link.number, key))


def wrap(data_key: bytes, number: int, key: Key) -> bytes:
    """A data key under the key file, bound to its entry."""
    return seal(key.subkey(PURPOSE), data_key, chain.about_data_key(number, key.id))


def unwrap(number: int, wrapped: bytes | None, key: Key) -> bytes:
    """The data key of an entry."""
    if wrapped is None:
        raise DataError(f"The data key of entry {number} is missing. Restore the ledger from a backup.")
    try:
        return unseal(key.subkey(PURPOSE), wrapped, chain.about_data_key(number, key.id))
    except SealError:
        raise DataError(
            f"The data key of entry {number} cannot be decrypted: it was changed. Restore the ledger from a backup."
        ) from None


def open_secret(link: Link, key: Key) -> dict[str, Any]:
    """What an entry keeps secret."""
    return open_with(link, unwrap(link.number, link.wrapped, key))


def open_with(link: Link, data_key: bytes) -> dict[str, Any]:
    """What an entry keeps secret, by its data key alone."""
    try:
        content: dict[str, Any] = json.loads(_plain(link, data_key))
    except SealError:
        raise DataError(
            f"The secret of entry {link.number} cannot be decrypted: the entry, or an earlier one, was changed. "
            f"{command('ledger verify', lead='See')}"
        ) from None
    return content


def _plain(link: Link, data_key: bytes) -> bytes:
    blob = link.secret or b""
    if not blob.startswith(MARK):
        return unseal(data_key, blob, chain.about_old_secret(link))
    committed, sealed = blob[len(MARK) : len(MARK) + DIGEST], blob[len(MARK) + DIGEST :]
    if hashlib.sha256(data_key).digest() != committed:
        raise SealError
    return unseal(data_key, sealed, chain.about_secret(link))

"""Pseudonyms: a direct identifier as HMAC-SHA256 under a secret key.

The same value has the same pseudonym within a release. Every release draws a key of its own and forgets it, so that
neither the value nor the same person's pseudonym in another release can be found, unless the key is kept on purpose.
"""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from veilmark.errors import OptionError, OutputError

KEY_BYTES = 32
BLOCK_BYTES = 64
"""The block of SHA-256, to which HMAC fills the key up."""
LETTERS = 32
"""Hexadecimal digits of a pseudonym: 16 bytes, so that no two of any real table will ever be the same."""


@dataclass(frozen=True)
class Pseudonyms:
    """The columns to be published as pseudonyms, and the key."""

    columns: tuple[str, ...]
    key: bytes = field(default_factory=lambda: secrets.token_bytes(KEY_BYTES), repr=False)

    def of(self, value: str) -> str:
        """The pseudonym of a value, as text."""
        return hmac.digest(self.key, value.encode(), "sha256").hex()[:LETTERS]

    def pads(self) -> pa.Table:
        """For the engine: the two blocks that HMAC puts before what is hashed. Who has them has the key."""
        block = self.key.ljust(BLOCK_BYTES, b"\0")
        pads = {"inner_pad": 0x36, "outer_pad": 0x5C}
        return pa.table({name: pa.array([bytes(b ^ mask for b in block)]) for name, mask in pads.items()})


def read_key(path: Path) -> bytes:
    """The key in a file."""
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise OptionError(f"The key file '{path}' cannot be read: {error.strerror}.") from None
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise OptionError(
            f"'{path}' is not a pseudonym key: a key has {2 * KEY_BYTES} hexadecimal digits. Name another file. "
            "If it does not exist, it is created."
        )
    return key


def write_key(path: Path, key: bytes) -> None:
    """Write a key to a new file that only its owner may read."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{key.hex()}\n")
            file.flush()
            os.fsync(file.fileno())
    except (FileNotFoundError, NotADirectoryError):
        raise OptionError(
            f"The key file '{path}' cannot be written: there is no such folder. Create it first."
        ) from None
    except OSError as error:
        raise OutputError(f"The key file '{path}' cannot be written: {error.strerror}.") from None

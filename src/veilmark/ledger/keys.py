"""The key file, the keys derived from it, and sealing with them."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from veilmark.errors import OptionError
from veilmark.ledger.files import new_private_file
from veilmark.messages import command

SIZE = 32
NONCE = 12
HEADER = "veilmark-key-1:"
LONGEST = 1_000
OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SealError(Exception):
    """Something sealed does not open: another key, or it was changed."""


@dataclass(frozen=True, repr=False)
class Key:
    """What a key file holds. Nothing uses it itself: every purpose has a key of its own, derived from it."""

    secret: bytes

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Key:
        """Read a key file."""
        try:
            with Path(path).open("rb") as file:
                refuse_open_to_others(path, os.fstat(file.fileno()).st_mode)
                content = file.read(LONGEST)
        except FileNotFoundError:
            raise OptionError(
                f"There is no key file '{path}'. Give the key file that the ledger was written with."
            ) from None
        except OSError as error:
            raise OptionError(f"The key file '{path}' cannot be read: {error.strerror}.") from None
        return cls(_parse(path, content))

    @classmethod
    def open_or_make(cls, path: str | os.PathLike[str]) -> Key:
        """Read a key file, or make one where there is none."""
        if not os.path.exists(path):
            with suppress(FileExistsError):  # One made meanwhile counts.
                cls.new().save(path)
        return cls.open(path)

    @classmethod
    def new(cls) -> Key:
        """A random one, which is in no file yet."""
        return cls(secrets.token_bytes(SIZE))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a key file; it never replaces one (`FileExistsError`)."""
        with new_private_file(Path(path)) as temporary:
            temporary.write_text(f"{HEADER}{base64.b64encode(self.secret).decode()}\n", encoding="ascii")

    def __repr__(self) -> str:
        return f"Key({self.id})"

    @property
    def id(self) -> str:
        """A name for the key that tells nothing about it."""
        return self.subkey("id", 8).hex()

    def subkey(self, purpose: str, size: int = SIZE) -> bytes:
        """A key for one purpose; none of them tells about another or about the key file."""
        return HKDF(SHA256(), size, salt=None, info=f"veilmark/1/{purpose}".encode()).derive(self.secret)


def refuse_open_to_others(path: str | os.PathLike[str], mode: int) -> None:
    """A key that others can read is no secret."""
    if os.name == "posix" and mode & OPEN_TO_OTHERS:
        raise OptionError(
            f"Other users can read the key file '{path}' (mode {stat.S_IMODE(mode):04o}). Protect it: chmod 600 "
            f"'{path}'. If others may have read it, change the key. "
            f"{command('ledger rotate', lead='Change it with')}"
        )


def _parse(path: str | os.PathLike[str], content: bytes) -> bytes:
    """The secret in a key file; of a file that is something else, nothing is shown."""
    try:
        header, text = content[: len(HEADER)], content[len(HEADER) :].strip()
        secret = base64.b64decode(text, validate=True)
        if header == HEADER.encode() and len(secret) == SIZE:
            return secret
    except binascii.Error:
        pass
    raise OptionError(f"'{path}' is not a key file of veilmark, or it is damaged. Give the right file or a copy of it.")


def seal(key: bytes, content: bytes, about: bytes) -> bytes:
    """Encrypt (AES-256-GCM, a random nonce before the text), bound to `about`, which is not hidden."""
    nonce = secrets.token_bytes(NONCE)
    return nonce + AESGCM(key).encrypt(nonce, content, about)


def unseal(key: bytes, sealed: bytes, about: bytes) -> bytes:
    """Decrypt what `seal` made, and make sure that neither it nor `about` was changed."""
    try:
        return AESGCM(key).decrypt(sealed[:NONCE], sealed[NONCE:], about)
    except (InvalidTag, ValueError):
        raise SealError from None

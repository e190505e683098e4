"""Signatures by Ed25519: operators sign entries, recipients sign receipts.

A public key is written as the Base64 of its 32 bytes.
"""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from veilmark.errors import OptionError
from veilmark.ledger.files import new_private_file
from veilmark.ledger.keys import LONGEST, refuse_open_to_others
from veilmark.messages import command

FIELD = 2**255 - 19
_EIGHTH = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
SMALL_ORDER = frozenset((0, 1, FIELD - 1, _EIGHTH, FIELD - _EIGHTH))
"""y of the points of order 4, 1, 2 and 8."""

ENCODING, RAW = serialization.Encoding, serialization.PublicFormat.Raw


@dataclass(frozen=True, repr=False)
class Signer:
    """Somebody's private key."""

    key: Ed25519PrivateKey

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Signer:
        """Read a private key (PEM, PKCS #8, not encrypted), which nobody else may be able to read."""
        try:
            with Path(path).open("rb") as file:
                refuse_open_to_others(path, os.fstat(file.fileno()).st_mode)
                key = serialization.load_pem_private_key(file.read(LONGEST), None)
        except FileNotFoundError:
            raise OptionError(
                f"There is no signing key '{path}'. {command('ledger signing-key', lead='Make one with')}"
            ) from None
        except OSError as error:
            raise OptionError(f"The signing key '{path}' cannot be read: {error.strerror}.") from None
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise _no_key(path, "private") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise _no_key(path, "private")
        return cls(key)

    @classmethod
    def new(cls) -> Signer:
        return cls(Ed25519PrivateKey.generate())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the private key, for its owner alone, and the public key beside it (`.pub`). Neither replaces a file."""
        public = Path(f"{os.fspath(path)}.pub")
        private = self.key.private_bytes(ENCODING.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        try:
            for target, content in ((Path(path), private), (public, f"{self.public}\n".encode())):
                with new_private_file(target) as temporary:
                    temporary.write_bytes(content)
        except FileExistsError:
            raise OptionError(f"'{path}' or '{public}' exists already. Name a new file for the signing key.") from None
        public.chmod(0o644)
        return public

    @property
    def public(self) -> str:
        """The public key."""
        return base64.b64encode(self.key.public_key().public_bytes(ENCODING.Raw, RAW)).decode()

    def sign(self, message: bytes) -> bytes:
        return self.key.sign(message)


def read_public_key(path: str | os.PathLike[str]) -> str:
    """The public key in a file that `Signer.save` wrote."""
    try:
        text = Path(path).read_text(encoding="ascii").strip()
        _public(text)
    except FileNotFoundError:
        raise OptionError(f"There is no public key '{path}'.") from None
    except OSError as error:
        raise OptionError(f"The public key '{path}' cannot be read: {error.strerror}.") from None
    except ValueError:
        raise _no_key(path, "public") from None
    return text


def signed_by(public_key: str, signature: bytes, message: bytes) -> bool:
    """Whether a signature is that of a public key."""
    try:
        _public(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _public(text: str) -> Ed25519PublicKey:
    try:
        content = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError from None
    if _is_of_small_order(content):
        raise ValueError
    return Ed25519PublicKey.from_public_bytes(content)


def _is_of_small_order(content: bytes) -> bool:
    """Whether a public key is one of the points whose multiple by 8 is zero, of whom one signature fits any message. They
    are known by their y, whatever the sign of x, and also where y is written as y + p."""
    return (int.from_bytes(content, "little") & ((1 << 255) - 1)) % FIELD in SMALL_ORDER


def _no_key(path: str | os.PathLike[str], kind: str) -> OptionError:
    return OptionError(
        f"'{path}' is not an Ed25519 {kind} key. Give another file. {command('ledger signing-key', lead='Make one with')}"
    )

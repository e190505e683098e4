"""Receipts: a recipient signs the digest of the copy it was given, so that it cannot say later that it had another one.

A receipt is a JSON file. What is signed (Ed25519) is the JSON list `["veilmark receipt 1",recipient,file,sha256,time]`,
without spaces.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from veilmark.errors import DataError, OptionError
from veilmark.ledger.anchors import TOLERANCE
from veilmark.ledger.chain import as_base64, canonical, now
from veilmark.ledger.files import digest
from veilmark.ledger.jsonfiles import not_a, read_json, save_json
from veilmark.ledger.releases import Release
from veilmark.ledger.signing import Signer, signed_by

KIND = "receipt"


@dataclass(frozen=True)
class Receipt:
    """`recipient` had `file`, with this SHA-256, at `time`."""

    recipient: str
    file: str
    sha256: str
    time: str
    public_key: str
    signature: bytes

    @classmethod
    def sign(cls, recipient: str, copy: str | os.PathLike[str], signer: Signer) -> Receipt:
        """What a recipient does with the copy."""
        try:
            sha256 = digest(Path(copy))
        except OSError as error:
            raise OptionError(f"The copy '{copy}' cannot be read: {error.strerror}.") from None
        plain = cls(recipient, Path(copy).name, sha256, now(), signer.public, b"")
        return cls(**{**vars(plain), "signature": signer.sign(plain.message)})

    @property
    def message(self) -> bytes:
        """What is signed."""
        return canonical(["veilmark receipt 1", self.recipient, self.file, self.sha256, self.time]).encode()

    @property
    def is_signed(self) -> bool:
        """Whether the signature is that of the public key in it."""
        return signed_by(self.public_key, self.signature, self.message)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "signature": as_base64(self.signature)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it; it never replaces a file."""
        save_json(path, KIND, self.to_dict())

    @classmethod
    def of(cls, content: dict[str, Any]) -> Receipt:
        """From a receipt's JSON, or the ledger's entry of it."""
        texts = {name: str(content[name]) for name in ("recipient", "file", "sha256", "time", "public_key")}
        return cls(**texts, signature=base64.b64decode(content["signature"], validate=True))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Receipt:
        """Read what `save` wrote; one that is not signed rightly is refused."""
        try:
            receipt = cls.of(read_json(path, KIND))
        except (KeyError, TypeError, ValueError):
            raise not_a(KIND, path, "sign-receipt") from None
        if not receipt.is_signed:
            raise DataError(f"The receipt '{path}' was changed after it was signed. Ask the recipient for a new one.")
        return receipt


def check_time(receipt: Receipt, release: Release) -> None:
    """A copy can be signed for once it is ready, and not in the future; clocks may be an hour apart."""
    ready = next(entry.time for entry in release.history if entry.kind == "prepared")
    try:
        signed, soonest = datetime.fromisoformat(receipt.time), datetime.fromisoformat(ready)
        fits = soonest - TOLERANCE <= signed <= datetime.now(UTC) + TOLERANCE
    except (ValueError, TypeError):
        fits = False
    if not fits:
        raise DataError(
            f"The receipt of '{receipt.recipient}' is dated {receipt.time}, but its copy was not ready until "
            f"{ready}. Ask the recipient for a new one, signed with the right time."
        )


def release_of(receipt: Receipt, releases: list[Release]) -> Release:
    """The release whose copy for this recipient a receipt is about."""
    for release in releases:
        for listed in release.public.get("recipients", []):
            name, file = (listed.get("name"), str(listed.get("file"))) if isinstance(listed, dict) else (listed, "")
            copies = [sha for path, sha in release.digests.items() if file in (path, path.partition("/")[0])]
            if name == receipt.recipient and receipt.sha256 in copies:
                return release
    raise DataError(
        f"No release gave '{receipt.recipient}' a copy with the SHA-256 {receipt.sha256}. Ask the recipient which file was "
        "signed."
    )

"""Backups: a ledger as one file of JSON lines, its secrets still sealed, that can be checked by itself.

The first line says what it is, then comes a line for each entry, and the last line has the digest of all before it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import Connection

from veilmark.errors import DataError, OptionError
from veilmark.ledger.chain import BEGINNING, Link, as_base64, canonical, follow
from veilmark.ledger.database import make
from veilmark.ledger.files import new_private_file
from veilmark.ledger.store import Ledger, insert_link
from veilmark.ledger.verification import Verification
from veilmark.messages import command

HEADER = b'{"veilmark_ledger_backup":2}\n'
OLD_HEADER = b'{"veilmark_ledger_backup":1}\n'
"""How a backup begins whose entries have no seals."""
BLOBS = ("secret", "wrapped", "mac", "signature")


def export(ledger: Ledger, path: str | os.PathLike[str]) -> Verification:
    """Write a backup, and read it again to be sure of it. It never replaces a file."""
    target = Path(path)
    try:
        with new_private_file(target) as temporary:
            with temporary.open("wb") as file:
                _write(ledger, file)
            return verify_backup(temporary, target)
    except FileExistsError:
        raise OptionError(f"'{target}' exists already. Name a new file for the backup.") from None


def _write(ledger: Ledger, file: BinaryIO) -> None:
    hashed = hashlib.sha256(HEADER)
    file.write(HEADER)
    for link, broken in follow(ledger.links()):
        if broken is not None:
            raise DataError(
                f"The ledger '{ledger.label}' is not intact: {broken.what}. Restore it from an older backup."
            )
        line = f"{canonical(_to_dict(link))}\n".encode()
        hashed.update(line)
        file.write(line)
    file.write(_last_line(hashed.hexdigest()))


def _last_line(digest: str) -> bytes:
    return f"{canonical({'digest': digest})}\n".encode()


def verify_backup(path: Path, label: str | os.PathLike[str] | None = None) -> Verification:
    """Read a backup whole; a damaged one is refused."""
    count, head = 0, BEGINNING
    for link in _read(path, label or path):
        count, head = link.number, link.hash
    return Verification(count, head)


def restore(path: str | os.PathLike[str], where: str | os.PathLike[str]) -> Ledger:
    """A new ledger from a backup, whole or not at all."""

    def fill(connection: Connection) -> None:
        for link in _read(Path(path), path):
            insert_link(connection, link)

    return Ledger(make(where, fill))


def _read(path: Path, label: str | os.PathLike[str]) -> Iterator[Link]:
    """The entries of a backup; it is sound only if this comes to its end."""
    try:
        with path.open("rb") as file:
            for link, broken in follow(_links(file, label)):
                if broken is not None:
                    raise _damaged(label, broken.what)
                yield link
    except OSError as error:
        raise DataError(f"The backup '{label}' cannot be read: {error.strerror}.") from None


def _links(file: BinaryIO, label: str | os.PathLike[str]) -> Iterator[Link]:
    header = file.readline(len(HEADER))
    if header not in (HEADER, OLD_HEADER):
        raise DataError(
            f"'{label}' is not a backup of a ledger. Give a backup. {command('ledger export', lead='Make one with')}"
        )
    hashed = hashlib.sha256(header)
    for number, line in enumerate(file, 2):
        try:
            content = json.loads(line)
            link = None if "digest" in content else _from_dict(content)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise _damaged(label, f"line {number} is not an entry") from None
        if link is None:
            if line != _last_line(hashed.hexdigest()) or file.read(1):
                raise _damaged(label, "its content does not match its digest")
            return
        hashed.update(line)
        yield link
    raise _damaged(label, "its end is missing")


def _damaged(label: str | os.PathLike[str], what: str) -> DataError:
    return DataError(f"The backup '{label}' is damaged: {what}. Use another backup.")


def _to_dict(link: Link) -> dict[str, Any]:
    content = link._asdict()
    return content | {blob: as_base64(content[blob]) for blob in BLOBS}


def _from_dict(content: dict[str, Any]) -> Link:
    blobs = {b: base64.b64decode(content[b], validate=True) for b in BLOBS if content.get(b) is not None}
    return Link(**(content | blobs))

"""The record of a trace in the ledger: what was traced, by whom, with which limit, written before the result is known.

An entry `trace` holds the digests of the evidence, the limit and the release asked for. An entry `traced` follows with the
digest of the verdict. So nobody can trace until the result pleases, or choose the limit afterwards, unseen.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from veilmark import __version__
from veilmark.errors import OptionError
from veilmark.ledger import Entry, Key, Ledger, Release
from veilmark.ledger.chain import canonical
from veilmark.messages import Message, command
from veilmark.trace.accuse import Traced
from veilmark.workbench.ledger import AnchorToKeep

UNRECORDED = (
    "This trace is not recorded: the ledger is read-only. Nothing proves later that the limit was chosen before. "
    "Trace again with write access to the ledger."
)
UNSEALED = Message(
    "This trace is not recorded: the ledger's entries have no seal, so nothing can be added. Nothing proves "
    "later that the limit was chosen before. "
    f"{command('ledger upgrade', lead='If an older veilmark wrote it, seal it with')}"
)


@dataclass(frozen=True)
class Trace:
    """What is asked: `evidence` has the name, size and SHA-256 of each file, `columns` the names that were mapped. `who` is
    who is said to ask; the account that the process runs under is recorded beside it."""

    kind: str
    evidence: tuple[dict[str, Any], ...]
    release: str | None
    false_accusation: float
    who: str
    columns: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        ran = {"account": somebody(), "host": platform.node(), "version": __version__}
        return {**vars(self), "evidence": list(self.evidence), "columns": dict(self.columns), **ran}


def somebody() -> str:
    """Whose account runs this process. The environment can say anything, so the system is asked."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except ImportError:  # Windows has neither.
        return getpass.getuser()
    except KeyError:
        return f"user {os.getuid()}"


def begin(book: Ledger, key: Key, asked: Trace, anchor: AnchorToKeep | None = None) -> Entry | None:
    """Write down what is asked, and the anchor of it; None where the ledger can only be read, or has no seals."""
    if book.database.read_only or not book.is_sealed:
        if anchor is not None:
            raise OptionError(
                f"The ledger '{book.label}' is read-only or has no seals, so this trace cannot be recorded or "
                "anchored. Trace with write access to the ledger."
            )
        return None
    begun = book.append("trace", None, asked.to_dict(), key=key)
    if anchor is not None:
        anchor.write(begun.number, begun.hash)
    return begun


def end(book: Ledger, key: Key, begun: Entry | None, asked: Trace, found: Traced) -> Traced:
    """Write down the digest of the verdict; gives the verdict with its record, and with the copies that the evidence is."""
    same = identical(asked, book.releases())
    found = replace(found, evidence=asked.evidence)
    notes = [f"{one['evidence']} is, byte for byte, the copy of {one['recipient']}." for one in _told(same)]
    if begun is None:
        why = UNRECORDED if book.database.read_only else UNSEALED
        return replace(found, identical=same, notes=(*notes, *found.notes, why))
    after = book.append("traced", None, {"of": begun.number, "verdict": verdict_digest(found)}, key=key)
    record = {"entry": begun.number, "time": begun.time, "hash": begun.hash, "who": asked.who, "verdict": after.number}
    return replace(found, identical=same, record=record, notes=(*notes, *found.notes))


def _told(same: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    return [{**one, "recipient": f"{one['recipient']} in release {one['release']}"} for one in same]


def verdict_digest(found: Traced) -> str:
    """The SHA-256 of who is named, of each recipient's probability, and of the limit, as JSON without spaces."""
    recipients = [[s.name, s.release, s.p_value] for s in found.suspects]
    return hashlib.sha256(canonical([list(found.accused), recipients, found.false_accusation]).encode()).hexdigest()


def identical(asked: Trace, releases: Sequence[Release]) -> tuple[dict[str, str], ...]:
    """The recorded copies that files of the evidence are equal to, byte for byte."""
    known: dict[str, list[dict[str, str]]] = {}
    for release in releases:
        for name, sha256 in release.digests.items():
            whose = {"release": release.id, "recipient": _recipient(release, name), "file": name}
            known.setdefault(sha256, []).append(whose)
    return tuple(
        {"evidence": file["name"], **whose} for file in asked.evidence for whose in known.get(file["sha256"], [])
    )


def _recipient(release: Release, file: str) -> str:
    """Whose copy a file is, or is a part of."""
    for listed in release.public.get("recipients", []):
        if isinstance(listed, dict) and listed.get("file") in (file, file.partition("/")[0]):
            return str(listed["name"])
    return file

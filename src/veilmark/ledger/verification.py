"""What verifying a ledger finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veilmark.ledger.files import digest
from veilmark.ledger.releases import Release


@dataclass(frozen=True)
class Verification:
    """How many entries are sound and, where something is not, at which entry and what; `head` is the last hash."""

    entries: int
    head: str
    where: int | None = None
    what: str | None = None
    secrets: int | None = None
    files: int | None = None

    @property
    def ok(self) -> bool:
        return self.what is None

    def failed(self, where: int | None, what: str) -> Verification:
        return replace(self, where=where, what=what)

    def to_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "entries": self.entries,
            "head": self.head,
            "where": self.where,
            "what": self.what,
            "secrets": self.secrets,
            "files": self.files,
        }


def changed_files(found: Verification, releases: Sequence[Release]) -> Verification:
    """Compare the published files that are still in their place with their digests."""
    checked = 0
    for release in releases:
        if release.status != "published":
            continue
        for name, expected in release.digests.items():
            path = Path(release.folder, name)
            if not path.is_file():
                continue
            checked += 1
            if digest(path) != expected:
                entry = next(e.number for e in release.history if e.kind == "prepared")
                what = f"the file '{path}' of release '{release.id}' is not as it was published"
                return replace(found, files=checked).failed(entry, what)
    return replace(found, files=checked)

"""What verifying a ledger finds, of the ledger itself and of the files that it tells of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veilmark.ledger.files import digest
from veilmark.ledger.releases import Release
from veilmark.readable import Readable


@dataclass(frozen=True)
class Verification(Readable):
    """How many entries are sound and, where something is not, at which entry and what; `head` is the last hash.

    `sealed` entries carry the seal of the key (None: the key was not given), `signed` ones an operator's signature. `lacks`
    says what a ledger of an older veilmark cannot show. `anchors` are those that were compared.

    Of the published files, `files` were compared; those `changed` are not as they were published, those `missing` are no
    longer in their place, which is no fault: copies may be given away.
    """

    entries: int
    head: str
    where: int | None = None
    what: str | None = None
    secrets: int | None = None
    files: int | None = None
    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    sealed: int | None = None
    signed: int = 0
    lacks: str | None = None
    anchors: tuple[dict[str, Any], ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the ledger itself is as it was written."""
        return self.what is None

    @property
    def ok(self) -> bool:
        """Whether the files are, too."""
        return self.whole and not self.changed

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
            "changed": list(self.changed),
            "missing": list(self.missing),
            "sealed": self.sealed,
            "signed": self.signed,
            "lacks": self.lacks,
            "anchors": list(self.anchors),
        }


def changed_files(found: Verification, releases: Sequence[Release]) -> Verification:
    """Compare the published files that are still in their place with their digests."""
    checked, changed, missing = 0, [], []
    for release in releases:
        if release.status != "published":
            continue
        for name, expected in release.digests.items():
            path = Path(release.folder, name)
            if not path.is_file():
                missing.append(str(path))
                continue
            checked += 1
            if digest(path) != expected:
                changed.append(str(path))
    return replace(found, files=checked, changed=tuple(changed), missing=tuple(missing))

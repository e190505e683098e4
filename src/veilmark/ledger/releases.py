"""Releases, as the entries of a ledger tell of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from veilmark.ledger.chain import Entry

STATUS = {"started": "unfinished", "prepared": "unfinished", "published": "published", "aborted": "aborted"}
OWN = ("folder", "host", "digests")
"""What publishing itself writes into an entry's body."""


@dataclass(frozen=True)
class Release:
    """One release as the ledger knows it: what its maker wrote of it, its folder, its files' digests, and the entries
    that tell of it."""

    id: str
    status: str
    time: str
    public: dict[str, Any]
    folder: str
    host: str
    digests: dict[str, str]
    history: tuple[Entry, ...]

    def __repr__(self) -> str:
        return f"Release({self.id}, {self.status} {self.time}: {', '.join(self.recipients)})"

    @property
    def is_out(self) -> bool:
        """Whether its copies may be in somebody's hands: they were ready, and the release was not undone."""
        return self.status != "aborted" and any(entry.kind == "prepared" for entry in self.history)

    @property
    def recipients(self) -> list[str]:
        """The recipients' names."""
        listed = self.public.get("recipients", [])
        return [str(r["name"]) if isinstance(r, dict) else str(r) for r in listed]

    def summary(self) -> dict[str, Any]:
        """A line of `veilmark ledger list`."""
        study = self.public.get("study")
        return {"id": self.id, "time": self.time, "study": study, "recipients": self.recipients, "status": self.status}

    def to_dict(self) -> dict[str, Any]:
        history = [{"entry": e.number, "time": e.time, "kind": e.kind} for e in self.history]
        own = {"folder": self.folder, "digests": self.digests, "history": history}
        return {**self.public, **self.summary(), "recipients": self.public.get("recipients", []), **own}


def releases_of(entries: Iterable[Entry]) -> list[Release]:
    """Releases in the order in which they were started."""
    told: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.release is not None:
            told.setdefault(entry.release, []).append(entry)
    return [_release(name, of) for name, of in told.items() if of[0].kind == "started"]


def _release(name: str, entries: list[Entry]) -> Release:
    last = [e for e in entries if e.kind in STATUS][-1]
    # The body is written when a release is started, and again, complete, when its copies are ready.
    body = [e for e in entries if e.kind in ("started", "prepared")][-1].public
    public = {k: v for k, v in body.items() if k not in OWN}
    own = body.get("folder", ""), body.get("host", ""), body.get("digests", {})
    return Release(name, STATUS[last.kind], last.time, public, *own, tuple(entries))

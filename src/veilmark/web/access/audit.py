"""The audit log: a line of JSON for each thing that somebody did. Nothing is ever removed from it by veilmark."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

LONGEST = 200


class Entry(BaseModel):
    """Who did what, when and from where. Values of the data, passwords and keys are never part of it."""

    time: str
    who: str
    role: str
    address: str
    what: str
    study: str | None = None
    status: int | None = None


@dataclass(frozen=True)
class Audit:
    path: Path
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def write(self, who: str, role: str, address: str, what: str, **more: Any) -> None:
        """Append an entry."""
        entry = Entry(time=now(), who=who[:LONGEST], role=role, address=address[:LONGEST], what=what[:LONGEST], **more)
        line = json.dumps(entry.model_dump(exclude_none=True), ensure_ascii=True) + "\n"
        with self._lock:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line.encode())
            finally:
                os.close(handle)

    def last(self, count: int) -> list[Entry]:
        """The latest entries, newest first."""
        try:
            with self.path.open(encoding="utf-8", errors="replace") as file:
                lines = list(deque(file, maxlen=count))
        except FileNotFoundError:
            return []
        return [_read(line) for line in reversed(lines)]


def _read(line: str) -> Entry:
    """A line of the log; one that was cut off or tampered with is shown as such, and hides no other."""
    try:
        return Entry.model_validate_json(line)
    except ValueError:
        return Entry(time="-", who="-", role="-", address="-", what="(this line of the log cannot be read)")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

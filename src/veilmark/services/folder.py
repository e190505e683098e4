"""Watch a folder: claims and leaked files are traced as they arrive, each once.

A file is looked at when its size and time have not changed between two looks, so that half-written ones are waited for,
and known again by its digest. What was found goes into a log, a JSON object a line; where somebody is named, a webhook is
told, again and again until it answers. Neither says anything of decoys.
"""

from __future__ import annotations

import json
import os
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from veilmark import __version__
from veilmark.errors import DataError, OptionError, OutputError, VeilmarkError
from veilmark.ledger.files import digest
from veilmark.messages import PLAIN, param, spell
from veilmark.output import write_text
from veilmark.trace.accuse import Traced

UNFINISHED = ("~", ".part", ".partial", ".tmp", ".temp", ".crdownload", ".filepart", ".swp")
"""What programs put at the end of a name until the file is whole."""

TIMEOUT = 10.0
FIRST_WAIT, LONGEST_WAIT = 2.0, 3600.0
TRIES_AT_ONCE = 4
"""So often a webhook is tried before a watch that is to end does so; the notice then waits for the next one."""

Examine = Callable[[Path], tuple[str, Traced]]
"""Traces a file; says what it took it for (claims or leak) too."""


@dataclass(frozen=True)
class Checked:
    """What came of a file: who is named, each with the probability of looking as guilty if innocent, or what was wrong."""

    file: str
    digest: str
    time: str
    kind: str | None = None
    accused: tuple[str, ...] = ()
    named: tuple[dict[str, Any], ...] = ()
    false_accusation: float | None = None
    tested: int | None = None
    meaning: str | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "accused": list(self.accused), "named": list(self.named)}


def checked(file: str, known_by: str, kind: str, traced: Traced) -> Checked:
    """What may be told of a trace: names and probabilities, no evidence."""
    named = tuple(
        {"name": s.name, "release": s.release, "p_value": s.p_value, "tail": s.tail}
        for s in traced.suspects
        if s.p_value <= traced.false_accusation
    )
    limit, tested = traced.false_accusation, traced.tested
    return Checked(file, known_by, _now(), kind, traced.accused, named, limit, tested, traced.meaning)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass
class Memory:
    """What outlives the watch: digests of files that are done with, and notices that the webhook has not taken yet."""

    path: Path
    seen: dict[str, str] = field(default_factory=dict)
    waiting: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path) -> Memory:
        """Read it, or begin it, for its owner alone."""
        _own(path)
        try:
            text = path.read_text(encoding="utf-8")
            content = json.loads(text) if text else {}
            return cls(path, dict(content.get("seen", {})), list(content.get("waiting", [])))
        except (ValueError, AttributeError, TypeError):
            raise OptionError(
                f"'{path}' is not the state file of a watch, or it is damaged. Move it away; all files are "
                "then checked again."
            ) from None

    def save(self) -> None:
        write_text(self.path, json.dumps({"seen": self.seen, "waiting": self.waiting}, indent=1) + "\n")


def _own(path: Path) -> None:
    """A file that only its owner can read, if there is none."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError as error:
        raise OutputError(
            f"'{path}' cannot be written: {error.strerror}. Name another file with {param('log')}."
        ) from None


class Log:
    """Lines of JSON; each is on disk before the next file is looked at."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _own(path)

    def write(self, line: dict[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(f"The log '{self.path}' cannot be written: {error.strerror}.") from None


class Webhook:
    """Told of each file that names somebody; after a failure it is left alone for twice as long each time."""

    def __init__(self, url: str, timeout: float = TIMEOUT, first_wait: float = FIRST_WAIT) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise OptionError(f"A webhook is a URL that begins with https:// or http://, not '{url}'.")
        self.url, self.timeout, self.first_wait = url, timeout, first_wait
        self.failures = 0
        self.due = 0.0

    def flush(self, waiting: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Post what waits, in its order, and take away what was taken; yields a line for the log each."""
        while waiting and time.monotonic() >= self.due:
            error = self.post(waiting[0])
            about = {"time": _now(), "file": waiting[0]["file"], "digest": waiting[0]["digest"]}
            if error is None:
                self.failures, self.due = 0, 0.0
                waiting.pop(0)
                yield {**about, "webhook": "told"}
            else:
                self.failures += 1
                self.due = time.monotonic() + min(self.first_wait * 2 ** (self.failures - 1), LONGEST_WAIT)
                yield {**about, "webhook": "failed", "tries": self.failures, "error": error}

    def post(self, notice: dict[str, Any]) -> str | None:
        """Send one notice; says what went wrong, without the address, which may hold a password."""
        headers = {"Content-Type": "application/json", "User-Agent": f"veilmark/{__version__}"}
        try:
            request = urllib.request.Request(self.url, json.dumps(notice).encode(), headers, method="POST")
            with _OPENER.open(request, timeout=self.timeout):
                return None
        except urllib.error.HTTPError as error:
            error.close()
            return f"it answered {error.code}"
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None)
            return f"{type(error).__name__}{f': {reason}' if isinstance(reason, OSError) else ''}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected post arrives without its content, so that it counts as failed."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


class Watch:
    """A folder that is looked at now and then."""

    def __init__(
        self, folder: Path, examine: Examine, log: Log, memory: Memory, webhook: Webhook | None = None
    ) -> None:
        if not folder.is_dir():
            raise OptionError(f"There is no folder '{folder}' to watch. Create it first.")
        self.folder, self.examine, self.log, self.memory, self.webhook = folder, examine, log, memory, webhook
        self._before: dict[str, tuple[int, int]] = {}
        self._done: dict[str, tuple[int, int]] = {}

    @property
    def unsettled(self) -> bool:
        """Whether a file is there that may still be written to."""
        return any(self._done.get(name) != stamp for name, stamp in self._before.items())

    def run(self, poll: float, once: bool = False) -> Iterator[Checked]:
        """Look every `poll` seconds; `once`: until all that is there now is checked."""
        while True:
            yield from self.look()
            if once and not self.unsettled and not self._telling:
                return
            time.sleep(min(poll, self.webhook.first_wait) if once and self.webhook else poll)

    @property
    def _telling(self) -> bool:
        return self.webhook is not None and bool(self.memory.waiting) and self.webhook.failures < TRIES_AT_ONCE

    def look(self) -> Iterator[Checked]:
        """Check the files that have not changed since the last look, and tell the webhook."""
        now = dict(self._files())
        ready = [name for name, at in now.items() if self._before.get(name) == at and self._done.get(name) != at]
        self._before = now
        for name in ready:
            found = self._check(self.folder / name, now[name])
            if found is not None:
                yield found
        if self.webhook is not None and self.memory.waiting:
            for line in list(self.webhook.flush(self.memory.waiting)):
                self.log.write(line)
                self.memory.save()

    def _files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Plain files and their size and time; links are not followed, as anybody may have put them there."""
        own = {os.path.realpath(p) for p in (self.log.path, self.memory.path)}
        try:
            with os.scandir(self.folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            raise OptionError(f"The folder '{self.folder}' cannot be read: {error.strerror}.") from None
        for entry in found:
            name = entry.name.lower()
            if name.startswith(".") or name.endswith(UNFINISHED) or os.path.realpath(entry.path) in own:
                continue
            stamp = _stamp(Path(entry.path))
            if stamp is not None:
                yield entry.name, stamp

    def _check(self, path: Path, stamp: tuple[int, int]) -> Checked | None:
        try:
            known_by = digest(path)
        except OSError as error:
            self._done[path.name] = stamp
            return self._note(Checked(path.name, "", _now(), error=f"The file cannot be read: {error.strerror}."))
        if known_by in self.memory.seen:
            self._done[path.name] = stamp
            return None
        found, final = self._examined(path, known_by)
        if _stamp(path) != stamp:
            return None  # It was written to meanwhile: the next looks will see.
        self._done[path.name] = stamp
        self._note(found)
        if found.accused and self.webhook is not None:
            self.memory.waiting.append({key: value for key, value in found.to_dict().items() if key != "error"})
        if final:
            self.memory.seen[known_by] = found.time
        self.memory.save()
        return found

    def _examined(self, path: Path, known_by: str) -> tuple[Checked, bool]:
        """What came of a file, and whether that is final: what failed for another reason is tried by the next watch."""
        try:
            return checked(path.name, known_by, *self.examine(path)), True
        except DataError as error:
            return Checked(path.name, known_by, _now(), error=spell(error, PLAIN)), True
        except VeilmarkError as error:
            return Checked(path.name, known_by, _now(), error=spell(error, PLAIN)), False
        except Exception as error:
            # Its text is left out: a library's message may quote the data.
            what = f"Something went wrong inside veilmark ({type(error).__name__})."
            return Checked(path.name, known_by, _now(), error=what), False

    def _note(self, found: Checked) -> Checked:
        self.log.write(found.to_dict())
        return found


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        seen = path.lstat()
    except OSError:
        return None
    return (seen.st_size, seen.st_mtime_ns) if stat.S_ISREG(seen.st_mode) else None

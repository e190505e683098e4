"""The verb watch: trace what arrives in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmark.engines.duckdb import DuckDB
from veilmark.errors import DataError, OptionError
from veilmark.messages import template_of
from veilmark.services.folder import Checked, Log, Memory, Watch, Webhook
from veilmark.trace.accuse import Traced
from veilmark.trace.columns import same_name
from veilmark.workbench.ledger import key_of, open_to_read, verify
from veilmark.workbench.trace import trace

File = str | os.PathLike[str]


@dataclass(frozen=True)
class Watched:
    """What came of the files; `waiting` notices are not delivered yet."""

    folder: str
    log: str
    results: tuple[Checked, ...]
    waiting: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "folder": self.folder,
            "log": self.log,
            "checked": len(self.results),
            "named": sum(bool(r.accused) for r in self.results),
            "errors": sum(r.error is not None for r in self.results),
            "waiting": self.waiting,
            "results": [r.to_dict() for r in self.results],
        }


class Examiner:
    """Traces a file as claims if it has a column that tells who somebody is, else as a leak."""

    def __init__(self, ledger: File, key: File, false_accusation: float) -> None:
        if not 0 < false_accusation < 1:
            raise OptionError(
                f"The probability of a false accusation must lie between 0 and 1, not {false_accusation:g}. Try 1e-6."
            )
        self.ledger, self.key, self.false_accusation = ledger, key, false_accusation
        self._telling: dict[str, set[str]] = {}
        self._identities()

    def __call__(self, path: Path) -> tuple[str, Traced]:
        with DuckDB() as engine:
            columns = engine.open(path).columns
        is_claims = any(same_name(columns, telling) for telling in self._identities())
        claims, file = (path, None) if is_claims else (None, path)
        try:
            found = trace(self.ledger, self.key, claims, file, false_accusation=self.false_accusation)
        except DataError as error:
            if not verify(self.ledger, self.key).ok:
                raise OptionError(
                    template_of(error)
                ) from None  # It is the ledger's fault, and says nothing of the file.
            raise
        return ("claims" if is_claims else "leak"), found

    def _identities(self) -> list[set[str]]:
        """The columns, release by release, that tell who somebody is and that no copy has; new releases are seen."""
        book = open_to_read(self.ledger, self.key)
        key = key_of(book, self.key)
        for release in book.releases():
            if release.is_out and release.id not in self._telling:
                secret = book.secrets(release.id, key)
                self._telling[release.id] = set(secret["identity"]) - set(secret["columns"])
        return list(self._telling.values())


def watch(
    folder: File,
    ledger: File,
    key: File,
    false_accusation: float = 1e-6,
    webhook: str | None = None,
    once: bool = False,
    poll: float = 5.0,
    log: File | None = None,
    tell: Callable[[Checked], None] | None = None,
) -> Watched:
    """Trace each claims file and each leaked file that is in `folder` or arrives there, until interrupted.

    `once`: until those that are there are done. `log` gets a JSON object a line; beside it stands what the next watch must
    know. `tell` is called for each file.
    """
    place = Path(os.path.abspath(folder))
    if poll <= 0:
        raise OptionError(f"The seconds between two checks must be above 0, not {poll:g}.")
    hook = None if webhook is None else Webhook(webhook)
    if not place.is_dir():
        raise OptionError(f"There is no folder '{folder}' to watch. Create it first.")
    examiner = Examiner(ledger, key, false_accusation)
    written = Path(log) if log is not None else place.with_name(f"{place.name}.watch.jsonl")
    memory = Memory.open(written.with_suffix(".state.json"))
    results = []
    try:
        for found in Watch(place, examiner, Log(written), memory, hook).run(poll, once):
            results.append(found)
            if tell is not None:
                tell(found)
    except KeyboardInterrupt:
        if once:
            raise
    return Watched(os.fspath(folder), str(written), tuple(results), len(memory.waiting))

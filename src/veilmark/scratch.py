"""Temporary files: for their owner alone, gone when they are done with, and never left for long after a process was killed.

    TMP/veilmark-scratch-PID-xxxxxxxx    a folder, locked by the process that uses it
    FOLDER/.veilmark-part-xxxxxxxx       an output that is being written, beside its target
    FOLDER/.veilmark-part-held-xxxxxxxx  a folder with a ledger, key or other small file that is being written, locked

A lock ends with its process, however that ends. So each command, and the first temporary folder of a process, removes all
that no living process has locked. Parts of outputs, which have no lock, are removed by the next output into the folder when
nobody has written to them for a day.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, nothing of other processes is removed.
    fcntl = None  # type: ignore[assignment]

PREFIX = "veilmark-scratch-"
OURS = re.compile(rf"{PREFIX}\d+-[a-z0-9_]{{8}}")
PART = ".veilmark-part-"
HELD = f"{PART}held-"
FORGOTTEN = 24 * 3600
"""Seconds after which a part that nobody writes to is taken to be left behind."""

_swept: set[str] = set()


class Scratch:
    """A temporary folder; `path` is gone once it is closed. Within `place` if one is given, which is swept, too."""

    def __init__(self, place: Path | None = None) -> None:
        if place is None:
            sweep_once()
        else:
            sweep_parts(place)
        # It gets its name when it is locked, so that nobody takes it for left behind before.
        new = Path(tempfile.mkdtemp(prefix=f".{PREFIX}" if place is None else PART, dir=place))
        self._lock = _locked(new)
        self.path = new.with_name(f"{PREFIX}{os.getpid()}-{new.name[-8:]}" if place is None else HELD + new.name[-8:])
        new.rename(self.path)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove it, and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _locked(folder: Path) -> int | None:
    """A lock on a folder itself; None where somebody else has it, or where there are no locks."""
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def sweep_once() -> None:
    """Sweep the system's place for temporary files, if this process has not done so yet."""
    place = tempfile.gettempdir()
    if place not in _swept:
        _swept.add(place)
        sweep(Path(place))


def sweep(place: Path) -> None:
    """Remove the temporary folders of processes that were killed: those of ours that nobody has locked."""
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if OURS.fullmatch(folder.name):
                _remove_unlocked(folder)


def _remove_unlocked(folder: Path) -> None:
    if folder.lstat().st_uid == os.getuid() and (lock := _locked(folder)) is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep_parts(folder: Path) -> None:
    """Remove parts of outputs that killed processes have left in a folder. (DuckDB puts `tmp_` before their names.)"""
    for part in (*folder.glob(f"{PART}*"), *folder.glob(f"tmp_{PART}*")):
        with suppress(OSError):
            if part.name.startswith(HELD) and fcntl is not None:
                _remove_unlocked(part)
            elif time.time() - part.lstat().st_mtime > FORGOTTEN:
                shutil.rmtree(part) if part.is_dir() and not part.is_symlink() else part.unlink()

"""Files appear whole or not at all: written under a temporary name beside the target, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veilmark.errors import OutputError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path that becomes `path` when the block ends well, and vanishes when it does not."""
    try:
        handle, name = tempfile.mkstemp(prefix=".veilmark-", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise OutputError(f"'{path}' cannot be written: {error.strerror}. Check the folder and its permissions.") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _publish(temporary, path)
    except OSError as error:
        raise OutputError(f"'{path}' cannot be written: {error.strerror or error}. Nothing was left behind.") from None
    finally:
        temporary.unlink(missing_ok=True)


def _publish(temporary: Path, path: Path) -> None:
    """Give the file the permissions a new file has here, make sure it is on disk, and rename it."""
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o666 & ~mask)
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")

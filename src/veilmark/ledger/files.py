"""Files of the ledger: for their owner alone, whole or absent, on disk when it is said so; and their digests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veilmark.errors import OptionError, OutputError
from veilmark.output import refuse_address
from veilmark.scratch import Scratch


def check_new_file(path: Path) -> None:
    """A file can be made there; said before the work is done."""
    refuse_address(path)
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise _no_folder(path, folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(
            f"'{path}' cannot be created: the folder '{folder}' is not writable. Check the folder's permissions."
        )


def _no_folder(path: Path, folder: Path) -> OptionError:
    return OptionError(f"'{path}' cannot be written: there is no folder '{folder}'. Create the folder first.")


@contextmanager
def new_private_file(path: Path) -> Iterator[Path]:
    """A temporary path that becomes `path` when the block ends well; only its owner can read it.

    It never replaces a file: `FileExistsError` says that somebody else made it first.
    """
    refuse_address(path)
    target = Path(os.path.realpath(path))
    try:
        scratch = Scratch(target.parent)
        temporary = scratch.path / "new"
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except (FileNotFoundError, NotADirectoryError):
        raise _no_folder(path, target.parent) from None
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        yield temporary
        sync(temporary)
        # A link, unlike a rename, fails where the name is taken.
        os.link(temporary, target)
        sync(target.parent)
    except FileExistsError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        scratch.close()


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(f"'{path}' cannot be written: {error.strerror or error}. Check the folder and its permissions.")


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_all(folder: Path) -> None:
    """Wait until a folder and all that is in it are on disk."""
    for path in sorted(folder.rglob("*")):
        sync(path)
    sync(folder)


def make_private(folder: Path) -> None:
    """A folder and all that is in it for the owner alone, whatever the umask says."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)


def digest(path: Path) -> str:
    """A file's SHA-256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file in a folder, by its name from there."""
    return {p.relative_to(folder).as_posix(): digest(p) for p in sorted(folder.rglob("*")) if p.is_file()}

"""Files appear whole or not at all: written under a temporary name beside the target, then renamed."""

from __future__ import annotations

import glob
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from veilmark.csvtext import CsvWriter
from veilmark.errors import OptionError, OutputError, as_address, is_address
from veilmark.scratch import PART, sweep_parts


@contextmanager
def whole_file(path: Path, mode: int | None = None) -> Iterator[Path]:
    """A temporary path that becomes `path` when the block ends well, and vanishes when it does not.

    Where `path` is a link, what it leads to is written. A file that was there keeps its permissions; a new one gets `mode`,
    before it has its name. The block may put a folder in the temporary file's place, as engines do with large tables.
    """
    refuse_address(path)
    target = _target(path)
    sweep_parts(target.parent)
    try:
        handle, name = tempfile.mkstemp(prefix=PART, suffix=path.suffix, dir=target.parent)
    except (FileNotFoundError, NotADirectoryError):
        raise OptionError(f"'{path}' cannot be written: there is no folder '{target.parent}'. Make it first.") from None
    except OSError as error:
        raise OutputError(
            f"'{path}' cannot be written: {error.strerror}. Check the folder and its permissions."
        ) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _publish(temporary, target, mode)
    except OSError as error:
        raise OutputError(f"'{path}' cannot be written: {error.strerror or error}. Nothing was left behind.") from None
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        temporary.unlink(missing_ok=True)


def _publish(temporary: Path, path: Path, mode: int | None) -> None:
    """Make sure the file is on disk, give it its permissions, and rename it."""
    if temporary.is_dir():
        for part in temporary.iterdir():
            _to_disk(part)
        path.unlink(missing_ok=True)
        temporary.replace(path)
        return
    _to_disk(temporary)
    temporary.chmod(_permissions(path, mode))
    temporary.replace(path)


def _to_disk(temporary: Path) -> None:
    with temporary.open("rb") as file:
        os.fsync(file.fileno())


def _permissions(path: Path, mode: int | None) -> int:
    """Those of the file that is there, those asked for, or those a new file has here."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        if mode is not None:
            return mode
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _target(path: Path) -> Path:
    """The file that a path leads to; a device or a pipe would be lost by renaming over it."""
    target = Path(os.path.realpath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        what = "a folder" if os.path.isdir(target) else "a device or a pipe"
        raise OutputError(f"'{path}' cannot be written: it is {what}. Name a file.")
    return target


def write_text(path: Path, text: str, mode: int | None = None) -> None:
    """Write a text file, whole or not at all; a new one has the permissions `mode` from the start."""
    with whole_file(path, mode) as temporary:
        temporary.write_text(text, encoding="utf-8")


def refuse_address(path: Path) -> None:
    """Outputs are files."""
    if is_address(path):
        raise OptionError(
            f"'{as_address(str(path))}' is a URL, not a file path. Write to a file, and copy it there afterwards."
        )


def check_table_path(path: Path) -> None:
    """A table can be written to this path: CSV or Parquet by its suffix."""
    refuse_address(path)
    if path.suffix not in (".csv", ".parquet"):
        raise OptionError(f"'{path}' must end in .csv or .parquet, so that it is known what to write.")


def write_table(table: pa.Table, path: Path, mode: int | None = None) -> None:
    """Write CSV or Parquet by the suffix, whole or not at all; a new file has the permissions `mode` from the start."""
    with written_batches(table.to_batches(), path, table.schema, mode):
        pass


@contextmanager
def written_batches(
    batches: Iterable[pa.RecordBatch], path: Path, schema: pa.Schema | None = None, mode: int | None = None
) -> Iterator[None]:
    """Write CSV or Parquet by the suffix, a batch at a time; the file appears when the block ends well.

    Without any batch, `schema` says what columns there are.
    """
    check_table_path(path)
    with whole_file(path, mode) as temporary:
        rows = iter(batches)
        first = next(rows, None)
        schema = schema or (first.schema if first is not None else pa.schema([]))
        with _writer(temporary, schema) as writer:
            for batch in chain([first] if first is not None else [], rows):
                writer.write(batch)
        yield


def _writer(path: Path, schema: pa.Schema) -> Any:
    return pq.ParquetWriter(path, schema) if path.suffix == ".parquet" else CsvWriter(path, schema)


def refuse_inputs(output: Path, inputs: Iterable[Any]) -> None:
    """An output must not be one of the files that it is made from; an input may be a pattern, files of Spark's, a frame or
    None."""
    for given in (getattr(of, "path", of) for of in inputs):
        for path in _readings(str(given)) if isinstance(given, str | Path) else ():
            if os.path.exists(output) and any(_same(output, file) for file in _files(path)):
                raise OptionError(f"'{output}' is one of the input files. Write to another file.")
            if _would_be_read(output, path):
                raise OptionError(f"'{output}' would become part of the input '{given}'. Write to another folder.")


def _readings(given: str) -> list[str]:
    """What a path may mean on this machine: Spark takes file: addresses, and {a,b} for either."""
    path = re.sub("^file:(//[^/]*)?", "", given)
    paths = [path, *_alternatives(path)]
    return list(dict.fromkeys(paths if path == given else [*paths, *map(unquote, paths)]))


def _alternatives(path: str) -> list[str]:
    braces = re.search(r"\{([^{}]*)\}", path)
    if braces is None:
        return [path]
    before, after = path[: braces.start()], path[braces.end() :]
    return [full for option in braces.group(1).split(",") for full in _alternatives(f"{before}{option}{after}")]


def _files(path: str) -> Iterator[str]:
    """The files that a path or pattern names, those in a folder too."""
    yield path
    for found in glob.iglob(path, recursive=True):
        yield found
        yield from (os.path.join(folder, name) for folder, _, names in os.walk(found) for name in names)


def _would_be_read(output: Path, path: str) -> bool:
    """Whether an output, though it may not be there yet, is in this folder or matches this pattern."""
    with suppress(OSError, ValueError):
        base = next((p for p in (Path(path), *Path(path).parents) if p.is_dir()), Path(path).parent)
        wanted = Path(path).relative_to(base).parts
        place = Path(os.path.realpath(output)).relative_to(os.path.realpath(base))
        return (not wanted or glob.has_magic(path)) and _fits(place.parts, wanted)
    return False


def _fits(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether something matches a pattern, or lies in a folder that does."""
    if not wanted:
        return True
    if wanted[0] == "**":
        return _fits(parts, wanted[1:]) or (bool(parts) and _fits(parts[1:], wanted))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _fits(parts[1:], wanted[1:])


def _same(one: Path, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False

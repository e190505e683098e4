"""Evidence, held fast: what the ledger records the digest of is what is read, whatever becomes of the files meanwhile."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from veilmark.engines.files import find_files
from veilmark.engines.frames import to_arrow
from veilmark.errors import DataError, VeilmarkError
from veilmark.messages import template_of
from veilmark.scratch import Scratch

CHUNK = 1 << 20


@dataclass(frozen=True)
class Kept:
    """`table` is read; `label` is how it was named; `files` has the name, size and SHA-256 of each file of it."""

    table: Any
    label: str | None
    files: tuple[dict[str, Any], ...]


@contextmanager
def kept(evidence: Any) -> Iterator[Kept]:
    """The evidence as it is now. Files are copied, once, into a folder of this process, and are digested while they are
    copied; of a table in memory there is the SHA-256 of its Arrow stream."""
    if not isinstance(evidence, str | os.PathLike):
        table = to_arrow(evidence)
        yield Kept(table, None, (_of_table(table),))
        return
    with Scratch() as folder:
        found = {file: _below(folder, file) for file in find_files(os.fspath(evidence))}
        files = tuple(_copied(file, copy) for file, copy in found.items())
        inside = _below(folder, evidence)
        try:
            yield Kept(inside, os.fspath(evidence), files)
        except VeilmarkError as error:
            renamed = {str(copy): str(file) for file, copy in found.items()} | {str(inside): os.fspath(evidence)}
            raise type(error)(_with_names(template_of(error), renamed)) from None


def _below(folder: Path, path: str | os.PathLike[str]) -> Path:
    """The same path, all of it, in a folder: names of folders may hold columns."""
    return folder / os.path.abspath(path).lstrip(os.sep)


def _copied(file: Path, copy: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        with file.open("rb") as source, copy.open("wb") as target:
            while chunk := source.read(CHUNK):
                digest.update(chunk)
                target.write(chunk)
            size = target.tell()
    except OSError as error:
        raise DataError(
            f"'{file}' cannot be copied to a temporary folder: {error.strerror or error}. This copy is needed so "
            "that nobody can exchange the file during the trace. Check its permissions, or set TMPDIR to a "
            "folder with more space."
        ) from None
    return {"name": file.name, "bytes": size, "sha256": digest.hexdigest()}


def _of_table(table: pa.Table) -> dict[str, Any]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    content = sink.getvalue()
    return {"name": "a table in memory", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _with_names(text: str, renamed: dict[str, str]) -> str:
    for copy in sorted(renamed, key=len, reverse=True):
        text = text.replace(copy, renamed[copy])
    return text

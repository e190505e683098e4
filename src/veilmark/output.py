"""Files appear whole or not at all: written under a temporary name beside the target, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from veilmark.errors import OptionError, OutputError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path that becomes `path` when the block ends well, and vanishes when it does not."""
    try:
        handle, name = tempfile.mkstemp(prefix=".veilmark-", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise OutputError(
            f"'{path}' cannot be written: {error.strerror}. Check the folder and its permissions."
        ) from None
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


def write_table(table: pa.Table, path: Path) -> None:
    """Write CSV or Parquet by the suffix, whole or not at all."""
    write_batches(table.to_batches(), path, table.schema)


def write_batches(batches: Iterable[pa.RecordBatch], path: Path, schema: pa.Schema | None = None) -> None:
    """Write CSV or Parquet by the suffix, a batch at a time, whole or not at all."""
    if path.suffix not in (".csv", ".parquet"):
        raise OptionError(f"'{path}' must end in .csv or .parquet, so that it is known what to write.")
    with whole_file(path) as temporary:
        rows = iter(batches)
        first = next(rows, None)
        schema = schema or (first.schema if first is not None else pa.schema([]))
        with _writer(temporary, schema) as writer:
            for batch in chain([first] if first is not None else [], rows):
                writer.write(batch if path.suffix == ".parquet" else _plain(batch))


def _writer(path: Path, schema: pa.Schema) -> Any:
    if path.suffix == ".parquet":
        return pq.ParquetWriter(path, schema)
    plain = pa.schema([(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema])
    return pa_csv.CSVWriter(path, plain, write_options=pa_csv.WriteOptions(quoting_style="needed"))


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dictionaries as the values they stand for, which is what a CSV holds."""
    for i, field in enumerate(batch.schema):
        if pa.types.is_dictionary(field.type):
            batch = batch.set_column(i, field.name, pc.cast(batch.column(i), field.type.value_type))
    return batch

"""What Spark reads: files that it can see, or a table of its catalog, as a frame of Spark's."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from veilmark.engines import duckdb as embedded
from veilmark.engines import files as paths
from veilmark.engines import sql
from veilmark.engines.files import CsvFormat
from veilmark.engines.sources import SparkFiles
from veilmark.errors import DataError, OptionError

if TYPE_CHECKING:
    from veilmark.engines.spark import Spark

MOST_RANKED = 500
"""Rows of up to so many files stand in the order of the files' names; of more, in Spark's own."""
HEAD_LINES = 50
NAMED = "table:"
FORMATS = {".parquet": "parquet", ".pq": "parquet", ".orc": "orc", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}


@dataclass(frozen=True)
class Read:
    """A frame of Spark's, and the files in the order of their rows, where they are known."""

    frame: Any
    files: tuple[str, ...] = ()


def read(engine: Spark, source: SparkFiles, csv: CsvFormat | None) -> Read:
    """The table that a study names, or another that is joined with it."""
    if source.table is not None:
        return Read(engine.spark.table(source.table))
    path = str(source.path)
    form = source.format or _format(path)
    if form == "csv":
        return _read_csv(engine, path, csv)
    if form == "parquet" and _is_here(engine, path):
        return _read_parquet(engine, path)
    return Read(engine.spark.read.format(form).load(path))


def named(text: str) -> SparkFiles:
    """What a path names: `table:db.voters` is a table of Spark's catalog."""
    return SparkFiles(table=text.removeprefix(NAMED)) if text.startswith(NAMED) else SparkFiles(text)


def is_for_spark(engine: Spark, path: str) -> bool:
    """Whether only Spark can read it: a table of its catalog, a file elsewhere, or one that is not on this machine."""
    return path.startswith(NAMED) or "://" in path or not (engine.session.local or _is_there(path))


def _is_here(engine: Spark, path: str) -> bool:
    return engine.session.local and "://" not in path


def _is_there(path: str) -> bool:
    try:
        return Path(path).is_dir() or bool(paths.find_files(path))
    except DataError:
        return False


def _format(path: str) -> str:
    """By the suffix; of a folder on this machine by what is in it, of any other Parquet."""
    name = re.sub(r"\.(gz|bz2|zst|lz4)$", "", path.rstrip("/*").lower())
    found = FORMATS.get(Path(name).suffix)
    if found is None and Path(path).is_dir():
        found = next((FORMATS[f.suffix] for f in sorted(Path(path).iterdir()) if f.suffix in FORMATS), None)
    return found or ("csv" if re.search(r"\.\w+$", name) and not name.endswith(".delta") else "parquet")


def _read_parquet(engine: Spark, path: str) -> Read:
    """Parquet files on this machine, with one schema; folders such as `state=FL` may hold a column."""
    files = sorted(Path(path).rglob("*.parquet")) if Path(path).is_dir() else paths.find_files(path)
    files = [f.absolute() for f in files if not f.name.startswith(("_", "."))]
    if not files:
        raise DataError(f"'{path}' is a folder without Parquet files. Name the files, or a folder that holds them.")
    schema = paths.read_schema(files[0])
    for file in files[1:]:
        paths.check_types(files[0], schema, file, paths.read_schema(file))
    reader = engine.spark.read
    if paths.folders_hold(files, schema.names):
        parts = files[0].parts
        first = next(i for i, part in enumerate(parts) if "=" in part)
        reader = reader.option("basePath", Path(*parts[:first]).as_uri())
    frame = reader.parquet(*map(_escaped, map(str, files)))
    return Read(frame, _in_order(frame, files) if 1 < len(files) <= MOST_RANKED else ())


def _in_order(frame: Any, files: Sequence[Path]) -> tuple[str, ...]:
    """The files as Spark calls them, in our order."""
    rank = {str(file): i for i, file in enumerate(files)}
    return tuple(sorted(frame.inputFiles(), key=lambda name: rank.get(unquote(urlsplit(name).path), len(rank))))


def _escaped(path: str) -> str:
    """The pattern that names this file alone."""
    return "file:" + re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


# CSV. A file on this machine is brought into Parquet by the embedded engine first: it is read exactly as without Spark, and
# by many tasks, which a CSV with line breaks in its values cannot be. Others are read by Spark.


def _read_csv(engine: Spark, path: str, given: CsvFormat | None) -> Read:
    if _is_here(engine, path):
        table = engine.inner.open(f"{path}/*.csv" if Path(path).is_dir() else path, given)
        file = engine.scratch(".parquet")
        table.query(sql.spool(embedded.DIALECT, table.name, table.columns, str(file)))
        return Read(engine.spark.read.parquet(_escaped(str(file))))
    head = _remote_head(engine, path, given)
    if head.encoding != "utf-8" or head.skip:
        raise DataError(
            f"'{path}' is not in UTF-8, or has lines before its column names, which Spark cannot skip. Write it as Parquet."
        )
    options = {"header": True, "sep": head.delimiter, "quote": head.quote, "escape": head.quote, "multiLine": True}
    options |= {"mode": "FAILFAST", "encoding": "UTF-8", "enforceSchema": False, "columnPruning": False}
    return Read(engine.spark.read.schema(_texts(head.columns)).options(**options).csv(path))


def _texts(columns: Sequence[str]) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([StructField(name, StringType()) for name in columns])


def _remote_head(engine: Spark, path: str, given: CsvFormat | None) -> paths.CsvHead:
    """How a CSV that Spark sees is written, by its first lines."""
    if given is not None and given.encoding and given.encoding.lower() not in ("utf-8", "utf8"):
        raise OptionError(f"Spark reads CSV in UTF-8 only, not in {given.encoding}. Write '{path}' as Parquet.")
    lines = engine.collect(engine.spark.read.text(path).limit(HEAD_LINES), path).column(0).to_pylist()
    with tempfile.TemporaryDirectory(prefix="veilmark-") as folder:
        file = Path(folder) / "head.csv"
        file.write_text("\n".join(line or "" for line in lines) + "\n", encoding="utf-8")
        try:
            return paths.read_head(file, given)
        except DataError as error:
            raise DataError(str(error).replace(str(file), path)) from None

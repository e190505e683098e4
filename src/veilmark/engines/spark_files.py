"""What Spark reads: files that it can see, or a table of its catalog, as a frame of Spark's."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from veilmark.engines import duckdb as embedded
from veilmark.engines import files as paths
from veilmark.engines import sql
from veilmark.engines.files import CsvFormat
from veilmark.engines.sources import SparkFiles
from veilmark.errors import DataError, OptionError
from veilmark.messages import template_of
from veilmark.scratch import Scratch

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
    if form == "parquet" and _has_delta_log(engine, path):
        raise paths.is_delta(path)
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
    """Parquet files on this machine, with one schema; folders such as `state=FL` may hold columns."""
    files = _files_in(path) if Path(path).is_dir() else _files_of(path)
    base = Path(os.path.abspath(paths.base_of(path)))
    schemas = [paths.read_schema(file) for file in files]
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        paths.check_types(files[0], schemas[0], file, schema)
    held = paths.folder_columns(files, base, schemas[0].names)
    reader = engine.spark.read.option("basePath", f"file:{_top(files, base)}") if held else engine.spark.read
    if wide := _wider(schemas):
        reader = reader.schema(_widened(engine.spark.read.parquet(_escaped(str(files[0]))).schema, wide))
    frame = reader.parquet(*map(_escaped, map(str, files)))
    order = _in_order(frame, files) if 1 < len(files) <= MOST_RANKED else ()
    return Read(_as_written(frame, held), order)


def _files_in(path: str) -> list[Path]:
    """A folder's Parquet files, as far as they are part of the table."""
    folder = Path(os.path.abspath(path))
    files = [f for f in sorted(folder.rglob("*.parquet")) if f.is_file() and not paths.is_hidden(f.relative_to(folder))]
    paths.check_no_delta(folder, files)
    if not files:
        raise DataError(f"'{path}' is a folder without Parquet files. Name the files, or a folder that holds them.")
    return files


def _files_of(path: str) -> list[Path]:
    """The files that a path or pattern names. Spark would leave some out without a word."""
    files = [Path(os.path.abspath(f)) for f in paths.find_files(path)]
    hidden = next((f for f in files if f.name.startswith(("_", "."))), None)
    if hidden is not None:
        raise DataError(
            f"Spark does not read '{hidden}', because it ignores files whose names begin with _ or a dot. Rename "
            "it, or name other files."
        )
    return files


def _top(files: Sequence[Path], base: Path) -> Path:
    """The folder in which those that hold columns stand: one, and they directly below one another, else Spark errs."""
    tops = set()
    for file in files:
        folders = file.relative_to(base).parts[:-1]
        places = [i for i, part in enumerate(folders) if "=" in part]
        tops.add(base.joinpath(*folders[: places[0]]))
        if len(tops) > 1 or places[-1] - places[0] >= len(places):
            raise DataError(
                f"The folders of '{file}' are arranged in a way that Spark does not read. Partition folders such "
                "as state=FL must be in one folder, directly below one another. Move them, or name only some of "
                "them."
            )
    return tops.pop()


def _wider(schemas: Sequence[pa.Schema]) -> dict[str, int]:
    """The bits of the whole numbers that other files than the first have more of."""
    found = {}
    for field in schemas[0]:
        kinds = {schema.field(field.name).type for schema in schemas}
        if len(kinds) > 1 and all(pa.types.is_signed_integer(kind) for kind in kinds):
            found[field.name] = max(kind.bit_width for kind in kinds)
    return found


def _widened(schema: Any, bits: Mapping[str, int]) -> Any:
    from pyspark.sql import types

    kinds = {16: types.ShortType(), 32: types.IntegerType(), 64: types.LongType()}
    fields = [types.StructField(f.name, kinds[bits[f.name]] if f.name in bits else f.dataType) for f in schema]
    return types.StructType(fields)


def _as_written(frame: Any, held: Sequence[paths.FolderColumn]) -> Any:
    """The frame with the folders' values as other engines read them: Spark takes %C3%A9 for two letters."""
    for column in held:
        read = {_as_spark_reads(written): text for written, text in column.values.items()}
        odd = {by_spark: text for by_spark, text in read.items() if by_spark != text}
        frame = frame.replace(odd, subset=[column.name]) if odd else frame
    return frame


def _as_spark_reads(written: str) -> str:
    return re.sub("%([0-9a-fA-F]{2})", lambda found: chr(int(found.group(1), 16)), written)


def _has_delta_log(engine: Spark, path: str) -> bool:
    """Whether a folder that only Spark sees, or that of a pattern, is a Delta table."""
    from pyspark.errors import AnalysisException

    start = re.split(r"[*?\[{]", path)[0]
    folder = (start if start == path else start.rpartition("/")[0]).rstrip("/")
    try:
        return bool(engine.spark.read.text(f"{folder}/_delta_log/*.json").columns)
    except AnalysisException:
        return False


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
    with Scratch() as folder:
        file = folder / "head.csv"
        file.write_text("\n".join(line or "" for line in lines) + "\n", encoding="utf-8")
        try:
            return paths.read_head(file, given)
        except DataError as error:
            raise DataError(template_of(error).replace(str(file), path)) from None

"""Source files: which there are, and how a CSV is written (delimiter, quote, encoding, header).

Only the beginning of a file is read here. Nothing is guessed that could drop or split rows: the engine reads with
exactly what is found here, and stops at a row that does not fit.
"""

from __future__ import annotations

import codecs
import csv
import glob
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from veilmark.errors import DataError, did_you_mean, listing

HEAD_BYTES = 1 << 20
DELIMITERS = ",;\t|"
FALLBACK = "latin-1"
PARQUET = (".parquet", ".pq")
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written; None means: find out."""

    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class CsvHead:
    """What the beginning of a CSV file says."""

    columns: tuple[str, ...]
    delimiter: str
    quote: str
    encoding: str


def find_files(pattern: str | Path) -> list[Path]:
    """The files that a path or glob names, in order."""
    path = Path(pattern)
    if path.is_dir():
        raise DataError(
            f"'{path}' is a folder, not a table. Name a file in it, or several by a pattern such as '{path}/*.parquet'."
        )
    if path.exists():
        return [path]
    found = sorted(Path(p) for p in glob.glob(str(pattern), recursive=True) if Path(p).is_file())
    if not found:
        raise DataError(f"There is no file '{pattern}'.{_nearby(path)} Check the name and the folder.")
    return found


def _nearby(path: Path) -> str:
    try:
        return did_you_mean(path.name, [p.name for p in path.parent.iterdir()])
    except OSError:
        return ""


def is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET


def read_head(path: Path, given: CsvFormat | None = None) -> CsvHead:
    """Find a CSV file's delimiter, quote, encoding and column names from its first lines."""
    given = given or CsvFormat()
    data = _first_bytes(path)
    if not data.strip(b"\r\n\0 "):
        raise DataError(f"'{path}' is empty. A table needs a line of column names and at least one record.")
    encoding = given.encoding or _encoding(data, path)
    text = _decode(data, encoding, path)
    lines = text.splitlines()
    if len(lines) > 1 and len(data) == HEAD_BYTES:
        lines = lines[:-1]
    quote = given.quote or _quote(text)
    delimiter = given.delimiter or _delimiter(lines[:50], quote)
    try:
        header = next(csv.reader(io.StringIO(text), delimiter=delimiter, quotechar=quote), [])
    except csv.Error as error:
        raise DataError(f"The first line of '{path}' cannot be read as column names: {error}.") from None
    return CsvHead(check_columns([h.lstrip("\ufeff") for h in header], path), delimiter, quote, encoding)


def _first_bytes(path: Path) -> bytes:
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            data: bytes = stream.read(HEAD_BYTES)
    except (OSError, pa.ArrowException) as error:
        reason = (getattr(error, "strerror", None) or str(error)).strip().rstrip(".").split("\n")[0]
        raise DataError(f"'{path}' cannot be read: {reason}. Is it whole, and may you read it?") from None
    if len(data) == HEAD_BYTES and b"\n" not in data and b"\r" not in data:
        raise DataError(f"The first line of '{path}' is longer than 1 MB: this is not a CSV file with column names.")
    return data


def _encoding(data: bytes, path: Path) -> str:
    for bom, name in BOMS.items():
        if data.startswith(bom):
            return name
    if b"\0" in data[:4096]:
        if data[1:64:2].count(0) > 16 or data[0:64:2].count(0) > 16:
            return "utf-16-le" if data[1:64:2].count(0) > 16 else "utf-16-be"
        raise DataError(
            f"'{path}' holds NUL bytes, so it is not a text file. Veilmark reads CSV and Parquet "
            "(files ending in .parquet); export the table as one of these."
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return FALLBACK
    return "utf-8"


def _decode(data: bytes, encoding: str, path: Path) -> str:
    try:
        decoder = codecs.getincrementaldecoder(encoding)("replace")
    except LookupError:
        raise DataError(
            f"'{encoding}' is not an encoding that Python knows, so '{path}' cannot be read. "
            "Use a name such as utf-8, latin-1, cp1252 or utf-16."
        ) from None
    return decoder.decode(data)


def _quote(text: str) -> str:
    """Double quotes, unless only single ones enclose fields."""
    if '"' in text:
        return '"'
    enclosed = sum(text.count(f"{d}'") + text.count(f"'{d}") for d in DELIMITERS)
    return "'" if enclosed >= 4 and enclosed >= text.count("\n") else '"'


def _delimiter(lines: Sequence[str], quote: str) -> str:
    """The delimiter that splits the first lines into the same number of fields, most fields first."""

    def fit(delimiter: str) -> tuple[float, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter, quotechar=quote) if row]
        except csv.Error:
            return (0.0, 0)
        if not widths or widths[0] == 1:
            return (0.0, 0)
        return (sum(w == widths[0] for w in widths) / len(widths), widths[0])

    return max(DELIMITERS, key=fit)


def check_columns(names: Sequence[str], path: Path | str) -> tuple[str, ...]:
    """Column names, each there and each once."""
    blank = [str(i + 1) for i, name in enumerate(names) if not name.strip()]
    if blank:
        raise DataError(
            f"'{path}' has no name for column {', '.join(blank[:5])} in its first line. Give every column a name."
        )
    seen: dict[str, str] = {}
    twice = []
    for name in names:
        if name.lower() in seen:
            twice.append(name if seen[name.lower()] == name else f"{seen[name.lower()]}/{name}")
        seen[name.lower()] = name
    if twice:
        raise DataError(
            f"'{path}' has more than one column called {listing(twice)} (capital letters do not tell columns "
            "apart). Rename or drop all but one."
        )
    return tuple(names)

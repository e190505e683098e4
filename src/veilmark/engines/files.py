"""Source files: which there are, and how a CSV is written (delimiter, quote, encoding, header).

Only the beginning of a file is read here, and the whole only where it is not UTF-8 or the engine refused it. Nothing
is guessed that could drop or split rows: the engine reads with exactly what is found here, and stops at a row that
does not fit.
"""

from __future__ import annotations

import codecs
import csv
import glob
import io
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from veilmark.errors import DataError, OptionError, as_address, did_you_mean, is_address, listing, without_password

HEAD_BYTES = 1 << 20
LINE_BYTES = 2_000_000
TOO_LONG = (
    "is longer than 2 MB, the limit for CSV files. Probably a quote is not closed, or this is not a CSV file. If "
    "a cell really contains that much text, write the table as Parquet."
)
DELIMITERS = ",;\t|"
FALLBACKS = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}
PARQUET = (".parquet", ".pq")
SUFFIXES = (".csv", ".tsv", ".txt", ".dat", *PARQUET, ".gz", ".zst", ".bz2", ".lz4")
"""Of files that hold tables."""

MISSING_FOLDER = "__HIVE_DEFAULT_PARTITION__"
TABLE_PREFIX = "table:"
UNPACKED_HERE = (".bz2", ".lz4")
PACKED = {
    rb"\x1f\x8b": "gzip",
    rb"\x28\xb5\x2f\xfd": "Zstandard",
    rb"\x04\x22\x4d\x18": "lz4",
    rb"BZh[1-9]1AY&SY": "bzip2",
    rb"\xfd7zXZ\0": "xz",
    rb"PK\x03\x04": "zip, as Excel workbooks are too",
}
SEPARATOR_LINE = re.compile('"?sep=(.)"?', re.IGNORECASE)
WRITTEN = {"delimiter": "the delimiter", "quote": "the quote", "skip": "the number of lines before the column names"}
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written; None means: find out."""

    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote"):
            value = getattr(self, name)
            if value is not None and (len(value) != 1 or value in "\r\n\0"):
                raise OptionError(
                    f"The {name} {value!r} of the source is not one character, and it must be exactly one, such as "
                    """';' or '"' (a tab is written "\\t", in double quotes). Leave it out to have it found."""
                )
        if self.quote is not None and not self.quote.isascii():
            raise OptionError(f"The quote {self.quote!r} of the source must be an ASCII character, such as '\"'.")


@dataclass(frozen=True)
class CsvHead:
    """What the beginning of a CSV file says; `skip` lines stand before the column names."""

    columns: tuple[str, ...]
    delimiter: str
    quote: str
    encoding: str
    skip: int = 0
    mixed_ends: bool = False


def find_files(pattern: str | Path) -> list[Path]:
    """The files that a path or glob names, in order."""
    path = Path(pattern)
    if path.is_dir():
        check_no_delta(path, ())
        if parts := _parts_in(path):
            return parts
        raise DataError(
            f"'{path}' is a folder, not a table. Name a file in it, or several by a pattern such as '{path}/*.parquet'."
        )
    if path.exists():
        return [path]
    folder = _folder_of(path)
    wanted = path.relative_to(folder)
    names = [
        name
        for name in glob.glob(str(wanted), root_dir=folder, recursive=True)
        if is_hidden(wanted) or not is_hidden(Path(name).parent)
    ]
    found = sorted(folder / name for name in names if (folder / name).is_file())
    if not found:
        raise DataError(_no_file(path, pattern))
    if any(map(is_parquet, found)):
        check_no_delta(path, found)
    return found


def _parts_in(folder: Path) -> list[Path]:
    """The files of a table that is a folder of Parquet files, as Spark writes it: the folder's name says so."""
    if not is_parquet(folder):
        return []
    return sorted(part for part in folder.glob("*.parquet") if part.is_file() and not is_hidden(Path(part.name)))


def _no_file(path: Path, pattern: str | Path) -> str:
    """What to say of a file that is not there."""
    if is_address(path):
        shown = without_password(as_address(str(pattern)))
        return (
            f"'{shown}' is a URL, not a file path. URLs work only if the source is in Spark. For a table of the "
            "source's own database, write table:NAME. Export any other table to CSV or Parquet."
        )
    if path.name.startswith(TABLE_PREFIX):
        return only_files(path.name.removeprefix(TABLE_PREFIX))
    return f"There is no file '{pattern}'.{_nearby(path)} Check the name and the folder."


def only_files(table: str) -> str:
    """What to say of a table in a database where files are read."""
    return (
        f"'{table}' names a database table (`table:`), but the source of this study is a file. Name a source in "
        "that database or in Spark in the study, or export the table to CSV or Parquet."
    )


def _nearby(path: Path) -> str:
    try:
        return did_you_mean(path.name, [p.name for p in path.parent.iterdir()])
    except OSError:
        return ""


def is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET


def as_pattern(path: Path) -> str:
    """The pattern that names this file alone, for an engine that reads every name as a pattern."""
    return re.sub(r"[\[*?]", r"[\g<0>]", path.as_posix())


def base_of(pattern: str | Path) -> Path:
    """The folder below which folders hold columns, such as `state=FL`: the one that the path names, or that of the
    file or the wildcards, without those at its end that hold columns themselves. Where we work does not matter."""
    path = Path(pattern)
    base = path if path.is_dir() else _folder_of(path)
    while "=" in base.name:
        base = base.parent
    return base


def _folder_of(path: Path) -> Path:
    return next((p for p in path.parents if p.is_dir()), path.parent)


def is_hidden(path: Path) -> bool:
    """Whether it is no part of a table, such as `_temporary` and `.tmp`; `_x=1` holds a column."""
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.parts)


def check_no_delta(path: Path, files: Collection[Path]) -> None:
    """Files of a Delta table are read as such or not at all: they hold rows that its log has removed."""
    base = base_of(path)
    folders = {base} | {folder for file in files for folder in file.parents if folder.is_relative_to(base)}
    found = next((folder for folder in sorted(folders) if (folder / "_delta_log").is_dir()), None)
    if found is not None:
        raise is_delta(str(found))


def is_delta(folder: str) -> DataError:
    return DataError(
        f"'{folder}' is a Delta table. Some of its files contain deleted rows, so reading all of them would be "
        "wrong. Read it in Spark, as source: {engine: spark, path: …, format: delta}, with Delta's jars in the "
        "session, or export it to Parquet."
    )


@dataclass(frozen=True)
class FolderColumn:
    """A column that folders such as `state=FL` hold: its name, the name as written there, and by each value as written
    there the text it stands for."""

    name: str
    written: str
    values: dict[str, str]


def folder_columns(files: Sequence[Path], base: Path, columns: Collection[str]) -> list[FolderColumn]:
    """The columns that folders below `base` hold; none where the files have one of them themselves."""
    held = [folder_values(file, base) for file in files]
    names = {name: _meant(name) for pairs in held for name, _ in pairs}
    if {name.lower() for name in names.values()} & {name.lower() for name in columns}:
        return []
    first = [name for name, _ in held[0]]
    odd = next((i for i, pairs in enumerate(held) if [name for name, _ in pairs] != first), None)
    if odd is not None:
        raise DataError(
            f"The folders of '{files[odd]}' do not have the same columns (such as `state` in state=FL) in the "
            f"same order as those of '{files[0]}'. Name files of one kind."
        )
    check_columns([names[name] for name in first], base)
    values = [{value: _meant(value) for value in {pairs[i][1] for pairs in held}} for i in range(len(first))]
    return [FolderColumn(names[name], name, of) for name, of in zip(first, values, strict=True)]


def folder_values(file: Path, base: Path) -> list[tuple[str, str]]:
    """Names and values, as written, that a file's folders below `base` hold."""
    parts = (part.partition("=") for part in file.relative_to(base).parts[:-1])
    return [(name, value) for name, sign, value in parts if name and sign]


def _meant(text: str) -> str:
    """A name or value in a folder's name, without the % signs that stand for other letters."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise DataError(
            "A partition folder (such as state=FL) has % codes in its name that are not valid UTF-8. Rename the folder."
        ) from None


@dataclass(frozen=True)
class _Beginning:
    """The first lines of a CSV file, those before the column names included, and how they are written."""

    lines: list[str]
    skip: int
    delimiter: str
    quote: str
    encoding: str

    def rows(self, path: Path) -> Iterator[list[str]]:
        try:
            yield from csv.reader(self.lines[self.skip :], delimiter=self.delimiter, quotechar=self.quote)
        except csv.Error as error:
            raise DataError(f"The first lines of '{path}' cannot be read as rows of a table: {error}.") from None


def first_rows(path: Path, count: int) -> list[list[str]]:
    """The first rows of a CSV file as texts, that of the column names included."""
    return list(islice(_beginning(path, CsvFormat()).rows(path), count))


def read_head(path: Path, given: CsvFormat | None = None) -> CsvHead:
    """Find a CSV file's delimiter, quote, encoding and column names from its first lines."""
    found = _beginning(path, given or CsvFormat())
    columns = check_columns(next(found.rows(path), []), path)
    ends = {_line_end(line) for line in found.lines[: found.skip + 1]} - {""}
    return CsvHead(columns, found.delimiter, found.quote, found.encoding, found.skip, len(ends) > 1)


def _beginning(path: Path, given: CsvFormat) -> _Beginning:
    data = _first_bytes(path)
    encoding = _known(given.encoding, path) if given.encoding else _encoding(data, path)
    text = _decode(data, encoding, path).removeprefix("\ufeff")
    lines = list(io.StringIO(text, newline=""))
    if len(lines) > 1 and len(data) == HEAD_BYTES:
        lines = lines[:-1]
    skip, separator = _preamble(lines)
    if skip == len(lines):
        raise DataError(f"'{path}' is empty. A table needs a line of column names and at least one record.")
    quote = given.quote or _quote(text)
    delimiter = given.delimiter or separator or _delimiter(lines[skip : skip + 50], quote)
    if delimiter == quote:
        raise OptionError(
            f"'{path}' cannot use {quote!r} as both delimiter and quote. Name another delimiter or quote in the "
            "study: source: {path: …, delimiter: …, quote: …}."
        )
    return _Beginning(lines, skip, delimiter, quote, encoding)


def check_last_line(path: Path, label: str) -> None:
    """The last line is not longer than the engine reads: DuckDB leaves out one of over 32 MB without a word."""
    if path.suffix.lower() in (".gz", ".zst") or path.stat().st_size <= LINE_BYTES:
        return
    with path.open("rb") as file:
        file.seek(-LINE_BYTES, io.SEEK_END)
        tail = file.read().rstrip(b"\r\n")
    if b"\n" not in tail and b"\r" not in tail:
        raise DataError(f"The last line of '{label}' {TOO_LONG}")


def _decode(data: bytes, encoding: str, path: Path) -> str:
    try:
        return codecs.getincrementaldecoder(encoding)("replace").decode(data)
    except UnicodeError:
        raise DataError(
            f"'{path}' is not written in {encoding}: its first bytes do not match that encoding. Leave the "
            "encoding out to detect it, or name another, such as utf-16-le."
        ) from None


def _preamble(lines: Sequence[str]) -> tuple[int, str | None]:
    """How many lines stand before the column names, and the delimiter that Excel's line `sep=;` among them names."""
    separator = None
    for skip, line in enumerate(lines):
        mark = SEPARATOR_LINE.fullmatch(line.rstrip("\r\n"))
        if mark and separator is None:
            separator = mark.group(1)
        elif line.strip():
            return skip, separator
    return len(lines), separator


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def chunks(path: Path) -> Iterator[bytes]:
    """A file's bytes, unpacked, piece by piece."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            while chunk := stream.read(HEAD_BYTES):
                yield chunk
    except (OSError, pa.ArrowException) as error:
        reason = (getattr(error, "strerror", None) or str(error)).strip().rstrip(".").split("\n")[0]
        raise DataError(
            f"'{path}' cannot be read: {reason}. Check that the file is complete and that you have permission to "
            "read it."
        ) from None


def _first_bytes(path: Path) -> bytes:
    data = next(chunks(path), b"")
    for magic, name in PACKED.items():
        if re.match(magic, data):
            raise DataError(
                f"'{path}' is compressed ({name}), so it cannot be read as CSV. Decompress it or export the table "
                "as CSV. Compressed files are read if their names end in .gz, .zst, .bz2 or .lz4."
            )
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
            f"'{path}' contains NUL bytes, so it is not a text file. Veilmark reads CSV and Parquet (files ending "
            "in .parquet); export the table as one of these."
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return whole_encoding(path)
    return "utf-8"


def whole_encoding(path: Path) -> str:
    """UTF-8, else the first fallback that every byte of the file has a letter in."""
    return next((e for e in ("utf-8", *FALLBACKS) if _is_written_in(path, e)), "latin-1")


def _is_written_in(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for chunk in chain(chunks(path), [b""]):
            decoder.decode(chunk, final=not chunk)
    except UnicodeDecodeError:
        return False
    return True


def has_mixed_ends(path: Path) -> bool:
    """Whether lines end in more than one way, or values hold other line ends than the lines."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("latin-1")(), translate=False)
    for chunk in chain(chunks(path), [b""]):
        decoder.decode(chunk, final=not chunk)
        if isinstance(decoder.newlines, tuple):
            return True
    return False


def _known(encoding: str, path: Path) -> str:
    """Python's name of an encoding."""
    try:
        b" ".decode(encoding, "ignore")
        name = codecs.lookup(encoding).name
        codecs.getincrementaldecoder(name)
    except (LookupError, UnicodeError):
        raise DataError(
            f"'{encoding}' is not a known encoding, so '{path}' cannot be read. Use a name such as utf-8, "
            "latin-1, cp1252 or utf-16."
        ) from None
    return "utf-8" if name == "utf-8-sig" else name


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
            f"'{path}' has more than one column called {listing(twice)} (upper and lower case count as the same). "
            "Rename or drop all but one."
        )
    return tuple(names)


def check_alike(first: Path, head: CsvHead, file: Path, other: CsvHead) -> None:
    """CSV files of one pattern must be written alike. Their first lines may be data, so that no name is shown."""
    differ = [i for i, (a, b) in enumerate(zip_longest(head.columns, other.columns), 1) if a != b]
    if differ:
        raise DataError(
            f"'{file}' does not have the same columns as '{first}': it has {len(other.columns)} columns instead "
            f"of {len(head.columns)}, and {len(differ)} differ, first at position {differ[0]}. All files of a "
            "pattern must have the same columns in the same order, each with a first line of column names."
        )
    for name, what in WRITTEN.items():
        a, b = getattr(head, name), getattr(other, name)
        if a != b:
            raise DataError(
                f"'{file}' differs in format from '{first}': {what} is {b!r} instead of {a!r}. All files of a "
                "pattern must have the same format. Export them again in one format."
            )


def read_schema(path: Path) -> pa.Schema:
    """The columns of a Parquet file."""
    try:
        return pq.read_schema(str(path))
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"'{path}' cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def check_types(first: Path, schema: pa.Schema, file: Path, other: pa.Schema) -> None:
    """Parquet files of one pattern must have the first one's columns, in types that fit into it without loss."""
    missing = [name for name in schema.names if name not in other.names]
    if missing:
        raise DataError(
            f"'{file}' has no column {listing(missing)}, but '{first}' has. All files of a pattern must have the "
            "same columns."
        )
    for field in schema:
        kind = other.field(field.name).type
        if not _fits(_plain(kind), _plain(field.type)):
            raise types_differ(field.name, str(file), str(kind), str(field.type))


def types_differ(column: str, file: str, kind: str, wanted: str) -> DataError:
    return DataError(
        f"Column '{column}' of '{file}' has the type {kind}, which does not fit its type {wanted} in the first "
        "file of the pattern. Use the same type in all files."
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without the ways in which Arrow stores it."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind


def _fits(kind: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_integer(kind) and pa.types.is_integer(wanted):
        return True  # a number too large for the first file's type stops the query, so that nothing is lost
    try:
        both = pa.unify_schemas([pa.schema({"": wanted}), pa.schema({"": kind})], promote_options="permissive")
    except pa.ArrowException:
        return False
    return bool(both.field(0).type == wanted)

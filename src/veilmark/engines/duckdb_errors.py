"""DuckDB's errors in plain words, without any row of the data."""

from __future__ import annotations

import re

import duckdb

from veilmark.engines import files as paths
from veilmark.errors import DataError, VeilmarkError
from veilmark.messages import param
from veilmark.readable import count


class CsvError(DataError):
    """A CSV file cannot be read as it was tried."""


class EncodingError(CsvError):
    """A CSV file has bytes that mean nothing in the encoding it was read in."""


CSV_ROW = re.compile(r"CSV Error on Line: (\d+)")
CSV_WIDTH = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
PARQUET_CAST = re.compile(r'reading file "(.*?)": failed to cast column "(.*?)" from type (.*?) to (.*?): ')
CAST = re.compile(
    r"(?: to|destination type) (U?INT\d+|FLOAT|DOUBLE|BOOL|DATE|TIMESTAMP)(?: when casting from source column (.*))?$"
)
SHOWS_VALUES = (duckdb.ConversionException, duckdb.OutOfRangeException)
SHOWS_NO_VALUES = (duckdb.BinderException, duckdb.CatalogException, duckdb.IOException)


def explain(error: Exception, label: str) -> VeilmarkError:
    """DuckDB's error as a paragraph that shows no row of the data."""
    text = str(error)
    row = CSV_ROW.search(text)
    line = f"Line {row.group(1)} of '{label}'" if row else f"A line of '{label}'"
    width = CSV_WIDTH.search(text)
    if width:
        return CsvError(
            f"{line} has {count(int(width.group(2)), 'field')}, but the first line names "
            f"{count(int(width.group(1)), 'column')}. The usual cause is a stray delimiter or an unclosed quote. Correct "
            "the line, or export the table again."
        )
    if "not utf-8 encoded" in text:
        return EncodingError(f"{line} is not UTF-8 text. Name the file's encoding in the study: encoding: cp1252.")
    if "aximum line size" in text or "does not support a full read" in text:
        return DataError(f"{line} {paths.TOO_LONG}")
    if "unterminated quote" in text and row:
        return CsvError(f"{line} has a quote that is not closed correctly. Correct it and try again.")
    if row or "state machine reached an invalid state" in text:
        return CsvError(
            f"{line} is not valid CSV: its quotes or its line ending differ from the other lines. Correct it, or "
            "export the table again."
        )
    if isinstance(error, duckdb.OutOfMemoryException):
        return VeilmarkError(
            f"Reading '{label}' needs more memory, or more disk space for temporary files, than is available: "
            f"{text.splitlines()[0]} Give {param('memory')} a larger size, or free space in the temporary folder."
        )
    return _explain_value(error, label) or DataError(f"'{label}' cannot be read: {_first_sentence(error)}")


def _explain_value(error: Exception, label: str) -> DataError | None:
    """What is said of a value that does not fit its type, without the value."""
    cast = PARQUET_CAST.search(str(error))
    if cast:
        return paths.types_differ(cast.group(2), cast.group(1), cast.group(3), cast.group(4))
    if not isinstance(error, SHOWS_VALUES):
        return None
    found = CAST.search(str(error).splitlines()[0])
    kind = f" {found.group(1)}" if found else ""
    column = f" of column '{found.group(2)}'" if found and found.group(2) else ""
    return DataError(
        f"A value{column} in '{label}' does not fit the type{kind} that it is read as. Write the column as text."
    )


def _first_sentence(error: Exception) -> str:
    """DuckDB's own words, up to where they might quote the data."""
    text = re.sub(r"^[\w ]+ Error: ", "", str(error).splitlines()[0])[:300]
    return text if isinstance(error, SHOWS_NO_VALUES) else re.split(r"(?<!\w)['\"]", text)[0].rstrip()

"""Files in ARX's form, `value;level1;level2;…`: reading and writing."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.errors import HierarchyError
from veilmark.hierarchy.levels import (
    OFFER,
    Level,
    Levels,
    check_covered,
    check_nested,
    joined,
    level_of,
    shown,
    spread,
)
from veilmark.hierarchy.spec import FileSpec
from veilmark.output import whole_file
from veilmark.tables.domain import Domain, as_text


def file_levels(spec: FileSpec, domain: Domain, column: str, folder: Path) -> list[Level]:
    path = folder / spec.file
    values, *middle = _read_arx(path, f"Column '{column}', hierarchy file {path}")
    lines = pc.index_in(domain.text, value_set=values)
    covered = np.asarray(lines.is_valid())
    if spec.others is None:
        fault = f"Column '{column}': the hierarchy file {path} lacks the values"
        check_covered(domain.text, covered, fault, f"Add a line for each, {OFFER}")
    codes = lines.drop_null().to_numpy()
    return [spread(level_of(labels, codes), covered, domain.text) for labels in middle]


def _read_arx(path: Path, where: str) -> list[pa.Array]:
    """The distinct values of the file and their labels, level by level, without the top."""
    rows = _rows(_file_text(path, where), where)
    columns = [as_text(pa.array([row[i] for row in rows], pa.string())) for i in range(len(rows[0]))]
    columns = _distinct_lines(columns, where)
    check_nested([level_of(labels, np.arange(len(labels))) for labels in columns], where)
    uniform = len(columns) > 1 and len(columns[-1].unique()) == 1
    return columns[:-1] if uniform else columns


def _file_text(path: Path, where: str) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise HierarchyError(f"{where} is not UTF-8 text. Save it as CSV in UTF-8.") from None
    except FileNotFoundError:
        raise HierarchyError(f"{where} does not exist. Correct the path, or put the file there.") from None
    except OSError as problem:
        raise HierarchyError(f"{where} cannot be read: {problem.strerror}.") from None
    if not text.strip("\r\n"):
        raise HierarchyError(f"{where} is empty. Give it a line for each value: value;level1;level2;…")
    return text


def _rows(text: str, where: str) -> list[list[str]]:
    """The lines that are not blank, all with as many levels as the first."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    rows: list[list[str]] = []
    try:
        for row in filter(None, reader):
            rows.append(row)
            if len(row) != len(rows[0]):
                raise HierarchyError(
                    f"{where}, line {reader.line_num}: '{row[0]}' has {len(row) - 1} levels above it, but the "
                    f"first line has {len(rows[0]) - 1}. Give every value the same number of levels."
                )
    except csv.Error as problem:
        raise HierarchyError(f"{where}, line {reader.line_num}: {problem}. Check the quotes in that line.") from None
    return rows


def _delimiter(text: str) -> str:
    """The delimiter of the first line, by what stands outside quotes; a line may run on within them."""
    first = re.match(r'(?:"[^"]*"|[^\r\n])*', text.lstrip("\r\n"))
    bare = re.sub(r'"[^"]*"', "", first[0] if first else "")
    return ";" if ";" in bare else max(",\t", key=bare.count)


def _distinct_lines(columns: list[pa.Array], where: str) -> list[pa.Array]:
    """One line a value; a value twice is right only where both lines say the same."""
    value = columns[0].dictionary_encode(null_encoding="encode").indices.to_numpy()
    first = np.unique(value, return_index=True)[1]
    for labels in columns[1:]:
        codes = labels.dictionary_encode(null_encoding="encode").indices.to_numpy()
        wrong = np.flatnonzero(codes[first[value]] != codes)
        if len(wrong):
            line = int(wrong[0])
            both = f"{shown(labels[first[value[line]]])} and {shown(labels[line])}"
            twice = f"{shown(columns[0][line])} occurs twice with different levels, {both}"
            raise HierarchyError(f"{where}: {twice}. Keep one line.")
    return [labels.take(pa.array(first)) for labels in columns]


def write_arx(levels: Levels, path: str | os.PathLike[str]) -> None:
    """Write ARX's form, `value;level1;…;*`, a line a value; the file appears whole or not at all."""
    columns = [_quoted(levels.of_values(level)) for level in range(levels.height + 1)]
    lines = pc.binary_join_element_wise(*columns, ";")
    with whole_file(Path(path)) as temporary:
        content = "".join(f"{line}\n" for line in lines.to_pylist())
        temporary.write_text(content, encoding="utf-8", newline="")


def _quoted(text: pa.Array) -> pa.Array:
    """Cells of a CSV file: in quotes where they need them, empty where missing."""
    doubled = joined('"', pc.replace_substring(text, '"', '""'), '"')
    return pc.if_else(pc.match_substring_regex(text, '[;"\r\n]'), doubled, text).fill_null("")

"""Codes that mean missing, such as NA, ? or -9: which of them a column holds, and which are values after all.

A text such as NA or unknown is a code wherever it stands, except among country codes, where NA is Namibia. A negative
number is one only where all negative numbers of the column are such codes: -1 among other negative numbers is a number.
Among texts, such as codes of diseases, negative numbers are judged the same way.
A number of nines is one only where it is at least twice the next largest, or far more frequent than any value near it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from veilmark.engines import sql
from veilmark.engines.duckdb import DuckTable
from veilmark.guess.words import phrases_of, tokens_of, words_of

TEXTS = words_of("na n/a n.a. #n/a <na> nan null ? ?? unknown unk missing n/k unbekannt k.a. inconnu desconocido")
TEXTS |= {"not available", "not known", "not reported", "not stated", "keine angabe"}
NEGATIVES = words_of("-1 -7 -8 -9 -77 -88 -99 -777 -888 -999 -9999 -99999")
NINES = frozenset("9" * digits for digits in range(3, 13))
NEAR, FAR_MORE, SEVERAL = 0.1, 10, 5
"""A number of nines in at least so many records, which are so many times those of any value this near, is a code."""
LONGEST = max(map(len, TEXTS)) + 2
"""Longer texts are no codes, so that they need not be looked at."""

TWO_LETTERS = re.compile("[A-Z]{2}")

SIGNED = words_of("""
    temperature temp celsius change delta diff difference balance net profit loss gain return deviation z lat lon lng
    latitude longitude x y floor elevation altitude depth offset growth trend
""")
"""Words of numbers that may be below zero."""


@dataclass(frozen=True)
class Codes:
    """The codes of a column as they are written there, in how many records, and why others are not taken for codes."""

    found: tuple[str, ...] = ()
    records: int = 0
    doubt: str | None = None


NO_CODES = Codes()


@dataclass(frozen=True)
class Candidates:
    """What a column holds that may be a code: how many records have each."""

    texts: Mapping[str, int]
    negatives: Mapping[str, int]
    nines: Mapping[str, int]
    other_negatives: int
    largest: float | None
    """The largest number that is not all nines."""
    numeric: bool = True
    """Whether all values are numbers."""
    neighbours: Mapping[str, int] = field(default_factory=dict)
    """Of numbers of nines: how many records the commonest value near each has."""

    @property
    def far(self) -> float:
        """So large a number of nines is a code whatever is near it."""
        return math.inf if self.largest is None else 2 * self.largest

    def is_code(self, nines: str) -> bool:
        """Whether a number of nines is a code."""
        records = self.nines[nines]
        if records > 1 and float(nines) >= self.far:
            return True
        return records >= SEVERAL and records >= FAR_MORE * max(self.neighbours.get(nines, records), 1)


def is_text_code(value: str) -> bool:
    return value.strip().lower() in TEXTS


def find_codes(table: DuckTable, numeric: Mapping[str, bool], samples: Mapping[str, Sequence[str]]) -> dict[str, Codes]:
    """The codes of columns, each `numeric` or not; `samples` are some of their values that are no text codes."""
    kinds = {
        column: table.columns[column] for column in numeric if table.columns[column] in ("text", "number", "float")
    }
    if not kinds:
        return {}
    asked = ", ".join(f"{_asked(name, kind, numeric[name])} AS c{i}" for i, (name, kind) in enumerate(kinds.items()))
    [row] = table.query(f"SELECT {asked} FROM {table.name}").to_pylist()
    found = {column: Candidates(**_plain(row[f"c{i}"]), numeric=numeric[column]) for i, column in enumerate(kinds)}
    found = {column: _with_neighbours(table, column, of) for column, of in found.items()}
    return {column: judge(column, of, samples[column]) for column, of in found.items()}


def _asked(column: str, kind: str, numeric: bool) -> str:
    """The candidates of a column as one SQL expression; codes are spelled as they will be declared."""
    name = sql.Dialect().name(column)
    short = f"length({name}) <= {LONGEST} AND lower(trim({name})) IN ({', '.join(map(sql.literal, sorted(TEXTS)))})"
    value = f"TRY_CAST({name} AS DOUBLE)" if numeric or kind == "text" else "CAST(NULL AS DOUBLE)"
    spelled = name if kind == "text" else f"CAST(CAST({name} AS BIGINT) AS VARCHAR)"
    negative, nines = (f"{value} IN ({', '.join(sorted(codes))})" for codes in (NEGATIVES, NINES))
    parts = {
        "texts": f"histogram(CASE WHEN {short} THEN {name} END)" if kind == "text" else "NULL",
        "negatives": f"histogram(CASE WHEN {negative} THEN {spelled} END)",
        "nines": f"histogram(CASE WHEN {nines} THEN {spelled} END)" if numeric else "NULL",
        "other_negatives": f"count(*) FILTER ({_below_zero(name, value, numeric)} AND NOT coalesce({negative}, false))",
        "largest": f"max({value}) FILTER (isfinite({value}) AND NOT {nines})",
    }
    return "{" + ", ".join(f"'{name}': {expression}" for name, expression in parts.items()) + "}"


def _below_zero(name: str, value: str, numeric: bool) -> str:
    """Whether a value is a negative number; among texts, also whether it begins like one, such as -5 to 0."""
    return f"{value} < 0" if numeric else f"regexp_matches(CAST({name} AS VARCHAR), '^\\s*-\\s*[0-9.]')"


def _with_neighbours(table: DuckTable, column: str, found: Candidates) -> Candidates:
    """How frequent values near numbers of nines are, where that decides."""
    doubtful = [code for code, n in found.nines.items() if n >= SEVERAL and float(code) < found.far]
    if not doubtful:
        return found
    value = f"TRY_CAST({sql.Dialect().name(column)} AS DOUBLE)"
    asked = ", ".join(
        f"coalesce(max(n) FILTER (abs(v - {code}) <= {NEAR} * {code} AND v <> {code}), 0) AS c{i}"
        for i, code in enumerate(doubtful)
    )
    counts = f"SELECT {value} AS v, count(*) AS n FROM {table.name} WHERE {value} IS NOT NULL GROUP BY v"
    [row] = table.query(f"SELECT {asked} FROM ({counts})").to_pylist()
    return replace(found, neighbours={code: row[f"c{i}"] for i, code in enumerate(doubtful)})


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Arrow's maps are lists of pairs, and null where nothing was counted."""
    maps = ("texts", "negatives", "nines")
    return {name: dict(value or ()) if name in maps else value for name, value in row.items()}


def judge(column: str, found: Candidates, sample: Sequence[str] = ()) -> Codes:
    """Which of the candidates are codes."""
    texts, doubts = dict(found.texts), []
    if texts and "country" in phrases_of(tokens_of(column)) and sample and all(map(TWO_LETTERS.fullmatch, sample)):
        texts.pop("NA", None)
        doubts.append("NA is not proposed as missing, because it is the country code of Namibia")
    negatives = dict(found.negatives)
    if negatives and (why := _plain_number(column, found)):
        if sum(negatives.values()) > found.other_negatives:
            doubts.append(f"{', '.join(negatives)} not proposed as missing, because {why}")
        negatives = {}
    nines = {code: n for code, n in found.nines.items() if found.is_code(code)}
    codes = texts | negatives | nines
    return Codes(tuple(codes), sum(codes.values()), "; ".join(doubts) or None)


def _plain_number(column: str, found: Candidates) -> str | None:
    """Why a negative number is a value of this column, if it is one."""
    lowest = min(map(float, found.negatives))
    if found.other_negatives:
        return "other values are negative too"
    if set(tokens_of(column)) & SIGNED:
        return "numbers with this name can be negative"
    if found.largest is None or found.largest < 0:
        return "there are no other numbers" if found.numeric else None
    if found.largest == -lowest or found.largest <= 1:
        return f"it may be a scale from {lowest:g} to {found.largest:g}"
    return None

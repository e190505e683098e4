"""Facts: what is known of each column, from a look at the first rows and one statement over the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from veilmark.engines import sql
from veilmark.engines.duckdb import DIALECT, DuckTable
from veilmark.guess.codes import NO_CODES, Codes, find_codes, is_text_code
from veilmark.guess.shapes import BARE_DAY, DATE_FORMS, DATES, DECIMAL, INTEGER, PHONES, Shape, shape_of
from veilmark.guess.words import DATE, Topic, phrases_of, tokens_of
from veilmark.hierarchy.spec import EXACT
from veilmark.tables.domain import NUMBER

SAMPLE_ROWS = 10_000
SHAPE_VALUES = 1_000
"""How many different values of the sample decide on a shape."""

EXACT_ROWS = 1_000_000
SAMPLED_DISTINCT = 1_000
SLICE = 64
"""In tables of more rows, columns of more values in the sample are counted in one of so many slices."""

AT_ONCE = 32
"""So many columns are counted in one statement: DuckDB's memory for different values grows with the columns."""

LARGEST = EXACT // 100
"""Intervals take smaller numbers, even where they are as narrow as those of coordinates."""

TEXTS = ("text", "other")
"""The kinds of columns that are compared as texts, whatever their values look like."""

NEARLY_UNIQUE = 0.95
FEW_VALUES, FEW_RECORDS = 100, 30
"""At most so many values are few; with fewer records than that, values tell nothing."""


@dataclass(frozen=True)
class Facts:
    """What the table says of a column; `exact` is false where `distinct` is an estimate.

    `misfits` are not of the column's shape; `low` and `high` are of numbers, 0 for all else; `shortest` and
    `longest` are the lengths of texts and whole numbers. Codes that mean missing count as missing, in all of these.
    """

    column: str
    shape: Shape
    records: int
    present: int
    distinct: int
    exact: bool
    misfits: int
    low: float
    high: float
    shortest: int
    longest: int
    codes: Codes = NO_CODES

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return tokens_of(self.column)

    @cached_property
    def phrases(self) -> frozenset[str]:
        return phrases_of(self.tokens)

    def says(self, *topics: Topic) -> Topic | None:
        """The first of the topics that the name is about."""
        return next((topic for topic in topics if topic.words & self.phrases), None)

    @property
    def missing(self) -> int:
        return self.records - self.present

    @property
    def share(self) -> float:
        """Different values a value."""
        return self.distinct / self.present if self.present else 0.0

    @property
    def unique(self) -> bool:
        return 0 < self.distinct == self.present

    @property
    def enough(self) -> bool:
        """Whether there are records enough for the values to tell anything."""
        return self.present >= FEW_RECORDS

    @property
    def nearly_unique(self) -> bool:
        return self.enough and self.share >= NEARLY_UNIQUE

    @property
    def few(self) -> bool:
        """Few values, each of them in several records."""
        return self.distinct <= FEW_VALUES and self.share <= 0.2

    @property
    def flag(self) -> bool:
        """A yes or no rather than what the name says."""
        return self.enough and self.distinct <= 3 and self.longest <= len("false")

    @property
    def textual(self) -> bool:
        return self.shape.name in ("text", PHONES)

    def __str__(self) -> str:
        """`1,000 values in 30,162 records, 12 missing`."""
        tail = f", {self.missing:,} missing" if self.missing else ""
        about = "" if self.exact else "about "
        return f"{about}{many(self.distinct, 'value')} in {many(self.records, 'record')}{tail}"


def many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def facts_of(table: DuckTable) -> dict[str, Facts]:
    """The facts of each column that holds plain values; from now on, codes that mean missing are missing in the table."""
    looks = _looks(table)
    codes = find_codes(table, {o.column: o.shape.numeric for o in looks}, {o.column: o.sample for o in looks})
    if declared := {column: of.found for column, of in codes.items() if of.found}:
        table.declare_missing(declared)
    head = table.query(f"SELECT count(*) AS n FROM ({sql.head(table.name, EXACT_ROWS + 1)})")
    large = head["n"][0].as_py() > EXACT_ROWS
    parts = (looks[i : i + AT_ONCE] for i in range(0, len(looks), AT_ONCE))
    counted = (facts for part in parts for facts in _count(table, part, large))
    return {facts.column: replace(facts, codes=codes.get(facts.column, NO_CODES)) for facts in counted}


@dataclass(frozen=True)
class _Look:
    """What the first rows show of a column."""

    column: str
    kind: str
    shape: Shape
    distinct: int
    sample: tuple[str, ...]
    """Some of the values."""


def _looks(table: DuckTable) -> list[_Look]:
    kinds = {column: kind for column, kind in table.columns.items() if kind != "nested"}
    if not kinds:
        return []
    texts = (f"CAST({_clean(column, kind)} AS VARCHAR)" for column, kind in kinds.items())
    rows = table.query(f"SELECT {', '.join(texts)} FROM ({sql.head(table.name, SAMPLE_ROWS)})")
    return [_look(column, kind, values) for (column, kind), values in zip(kinds.items(), rows.columns, strict=True)]


def _look(column: str, kind: str, texts: pa.ChunkedArray) -> _Look:
    values = texts.unique().drop_null()
    sample = tuple(value for value in values[:SHAPE_VALUES].to_pylist() if not is_text_code(value))
    dated = bool(DATE.words & phrases_of(tokens_of(column)))
    shape = DATES if kind == "date" else shape_of(sample, dated)
    if kind in ("number", "float") and shape not in (INTEGER, Shape("date", (BARE_DAY,))):
        shape = DECIMAL
    return _Look(column, kind, shape, len(values), sample)


def _clean(column: str, kind: str) -> str:
    return f"CAST({DIALECT.name(column)} AS VARCHAR)" if kind == "other" else DIALECT.clean(column, kind)


def _count(table: DuckTable, looks: Sequence[_Look], large: bool) -> list[Facts]:
    """Count some columns, in one statement over the whole table."""
    clean = ", ".join(f"{_clean(look.column, look.kind)} AS v{i}" for i, look in enumerate(looks))
    asked = ", ".join(f"{_asked(f'v{i}', look, large)} AS v{i}" for i, look in enumerate(looks))
    [row] = table.query(f"SELECT count(*) AS n, {asked} FROM (SELECT {clean} FROM {table.name})").to_pylist()
    return [Facts(look.column, look.shape, row["n"], **row[f"v{i}"]) for i, look in enumerate(looks)]


def _asked(value: str, look: _Look, large: bool) -> str:
    """The facts of a column as one SQL expression."""
    sliced = large and look.distinct > SAMPLED_DISTINCT
    fitting = f"CASE WHEN {_fits(value, look)} THEN {value} END"
    number = f"CAST({fitting} AS DOUBLE)" if look.shape.numeric else "0.0::DOUBLE"
    printed = f"CAST(CAST({fitting} AS BIGINT) AS VARCHAR)" if look.shape == INTEGER else "''"
    length = f"length({value if look.kind in TEXTS else printed})"
    asked = {
        "present": f"count({value})",
        "distinct": _sliced_distinct(value) if sliced else f"count(DISTINCT {value})",
        "exact": str(not sliced),
        "misfits": f"count({value}) - count({fitting})",
        "low": f"coalesce(min({number}), 0)",
        "high": f"coalesce(max({number}), 0)",
        "shortest": f"coalesce(min({length}), 0)",
        "longest": f"coalesce(max({length}), 0)",
    }
    return "{" + ", ".join(f"'{name}': {expression}" for name, expression in asked.items()) + "}"


def _sliced_distinct(value: str) -> str:
    """An estimate of how many different values there are.

    A slice holds all the records of a 64th of the values, so that a value that repeats is seen to repeat.
    """
    part = f"CASE WHEN hash({value}) % {SLICE} = 0 THEN {value} END"
    distinct = f"count(DISTINCT {part})"
    estimate = f"least(count({value}), {SLICE} * {distinct})"
    return f"CASE WHEN {distinct} = count({part}) THEN count({value}) ELSE {estimate} END"


def _fits(value: str, look: _Look) -> str:
    """Whether a value has the column's shape, as hierarchies demand it."""
    text = f"CAST({value} AS VARCHAR)"
    if look.shape.numeric:
        written = f"regexp_full_match({text}, {sql.literal(NUMBER)})" if look.kind in TEXTS else "true"
        return f"{written} AND abs(TRY_CAST({value} AS DOUBLE)) < {LARGEST}"
    if not look.shape.formats or look.kind == "date":
        return "true"
    return " OR ".join(f"({_is_date(text, form)})" for form in look.shape.formats)


def _is_date(text: str, form: str) -> str:
    written = f"regexp_full_match({text}, {sql.literal(DATE_FORMS[form])})"
    return f"{written} AND try_strptime({text}[:10], {sql.literal(form)}) IS NOT NULL"

"""PostgreSQL's types: what kind each column is, how it is read, and what it is in Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from veilmark.engines.sql import literal

INTEGERS = {21: pa.int16(), 23: pa.int32(), 20: pa.int64()}
FLOATS = {700: pa.float32(), 701: pa.float64()}
DATES = {1082: pa.date32(), 1114: pa.timestamp("us"), 1184: pa.timestamp("us", "UTC")}
BOOLEAN, NUMERIC, MONEY = 16, 1700, 790
NAMES = {21: "smallint", 23: "integer", 20: "bigint", 700: "real", 701: "double precision", BOOLEAN: "boolean"}
NAMES |= {1082: "date", 1114: "timestamp", 1184: "timestamptz"}

NO_PLAIN_VALUES = ("bytea", "json", "jsonb", "xml", "hstore", "tsvector")
MOST_DIGITS = 38
"""Of a decimal of 128 bits."""


@dataclass(frozen=True)
class Column:
    """A column as it is read: `expression` yields values of the `type`, which are of the `kind` that engines share."""

    kind: str
    type: str
    expression: str


def arrow_type(code: int, precision: int | None, scale: int | None) -> pa.DataType:
    """What a result's column is in Arrow. Numbers without a precision are sums of counts: the source's have one."""
    if code == NUMERIC:
        return pa.int64() if precision is None else pa.decimal128(precision, scale or 0)
    found = (INTEGERS | FLOATS | DATES).get(code)
    return found or (pa.bool_() if code == BOOLEAN else pa.string())


def column_type(kind: pa.DataType) -> str:
    """The type of a temporary table's column for Arrow values."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if pa.types.is_integer(kind):
        return "numeric(20, 0)" if kind == pa.uint64() else "bigint"
    if pa.types.is_floating(kind):
        return "real" if kind == pa.float32() else "double precision"
    if pa.types.is_binary(kind):
        return "bytea"
    return {pa.bool_(): "boolean", pa.date32(): "date"}.get(kind, 'text COLLATE "C"')


def has_text(kind: pa.DataType) -> bool:
    """Whether Arrow can write values of a type as text, as COPY needs them."""
    return not (pa.types.is_duration(kind) or pa.types.is_interval(kind))


def is_nested(name: str, form: str, category: str) -> bool:
    """Whether a type (pg_type's typname, typtype, typcategory) has no plain values."""
    return name in NO_PLAIN_VALUES or form in "crm" or category in "AG"


def read_as(name: str, code: int, precision: int | None, scale: int | None) -> Column | None:
    """How a column (its name quoted) is read; None where that depends on its values."""
    if code in INTEGERS:
        return Column("number", NAMES[code], name)
    if code in FLOATS:
        return Column("float", NAMES[code], name)
    if code == BOOLEAN:
        return Column("other", NAMES[code], name)
    if code == NUMERIC and precision is not None and max(precision, scale or 0) <= MOST_DIGITS:
        return _decimal(name, precision, scale or 0)
    return None if code in (NUMERIC, MONEY) or code in DATES else as_text(name)


def as_text(expression: str) -> Column:
    """Any value as text; a collation that takes different texts for equal, or sorts them, would only be in the way."""
    return Column("text", "text", f'CAST({expression} AS text) COLLATE "C"')


def as_nested(name: str) -> Column:
    """What has no plain values, as text: enough to be published, but nothing is compared with it."""
    return Column("nested", "text", as_text(name).expression)


def code_literal(column: Column, code: str) -> str | None:
    """A code for missing numbers as SQL compares the column with it; None where no value of its type can be that."""
    if column.kind == "number":
        return code
    with np.errstate(all="ignore"):
        value = (np.float32 if column.type == "real" else np.float64)(code)
    fits = np.isfinite(value) and bool(value) == bool(Decimal(code))
    return f"CAST({literal(code)} AS {column.type})" if fits else None


def _decimal(name: str, precision: int, scale: int) -> Column:
    """Numbers of a fixed form; not-a-number, which it could hold, is missing."""
    precision, scale = (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)
    kind = f"numeric({precision}, {scale})"
    return Column("number", kind, f"CAST(CASE WHEN {name} <> 'NaN' THEN {name} END AS {kind})")


# Dates may be infinite, or before Christ; numbers without a precision may have any digits. One look at the values says
# whether these fit the types that files have. Where they do not, they are read as text.


def probe(name: str, code: int) -> str:
    """What must be known of a column's values: three results."""
    if code in DATES:
        return f"bool_and({name} >= '0001-01-01' AND {name} < '10000-01-01'), NULL, NULL"
    number = f"CAST({name} AS numeric)"
    finite = f"{number} <> 'NaN' AND scale({number}) IS NOT NULL"
    endless = f"coalesce(bool_or({number} <> 'NaN' AND scale({number}) IS NULL), false)"
    return f"NOT {endless}, max(scale(trim_scale({number}))), max(abs({number})) FILTER (WHERE {finite})"


def read_probed(name: str, code: int, fits: bool | None, scale: int | None, largest: Decimal | None) -> Column:
    """How a column is read after a look at its values."""
    if code in DATES:
        return as_text(name) if fits is False else Column("date", NAMES[code], name)
    number = f"CAST({name} AS numeric)"
    digits = max(largest.adjusted() + 1, 0) if largest else 0
    if fits and digits + (scale or 0) <= MOST_DIGITS:
        return _decimal(number, MOST_DIGITS, scale or 0)
    return as_text(f"CASE WHEN {number} <> 'NaN' THEN trim_scale({number}) END")

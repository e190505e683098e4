"""Odd values and odd names are the same on every engine."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from engines.contract.helpers import opened, plain_cells, row_counts, study_of
from veilmark.mark.members import Recognized, recognize
from veilmark.study.opening import engine_of, open_source

UTC = dt.UTC
VALUES = {
    "text": pa.array([None, "", " ", "  a", "a  ", "a", "A", "ß", "SS"]),
    "unicode": pa.array(["é", "e\u0301", "😀", "👨\u200d👩", "\u0130", "i", "\uffff", "中", None]),
    "zip": pa.array(["00123", "0123", "123", "123.0", "1e2", "+5", "-0", "00", None]),
    "marks": pa.array(["'", '"', '""', "x\ny", "x\r\ny", "a;b,c\td", "\\", "\\N", "\\."]),
    "nulls": pa.array(["NULL", "null", "NaN", "nan", "None", "t", "f", "true", None]),
    "long": pa.array([2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0, -1, 1, None, 10**18]),
    "short": pa.array([1, -1, 0, 32767, -32768, None, 7, 7, 7], pa.int16()),
    "decimal": pa.array(
        [Decimal(x) if x else None for x in ["1.50", "1.5", "-0.00", "0", "100", "-7.25", "0.01", "99.99"]] + [None]
    ).cast(pa.decimal128(12, 2)),
    "wide": pa.array(
        [Decimal(10) ** 28, -(Decimal(10) ** 28), None, *[Decimal(i) for i in range(6)]], pa.decimal128(38, 4)
    ),
    "float": pa.array([math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 1e300, 5e-324, None]),
    "single": pa.array([0.1, 0.5, 1e10, -0.0, math.nan, None, 3.0, 16777216.0, 1e-20], pa.float32()),
    "truth": pa.array([True, False, None, True, True, False, None, False, True]),
    "day": pa.array(
        [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29), None, *[dt.date(1969, 12, 31)] * 5]
    ),
    "time": pa.array(
        [
            dt.datetime(2024, 2, 29, 1, 2, 3, 456789),
            dt.datetime(1900, 1, 1),
            dt.datetime(2024, 1, 1, 0, 0, 0, 500000),
            None,
        ]
        + [dt.datetime(2038, 1, 19, 3, 14, 8)] * 5,
        pa.timestamp("us"),
    ),
    "zoned": pa.array(
        [dt.datetime(2024, 6, 1, 12, tzinfo=UTC), dt.datetime(2024, 12, 1, 23, 59, 59, 1, tzinfo=UTC), None]
        + [dt.datetime(1950, 1, 1, tzinfo=UTC)] * 6,
        pa.timestamp("us", "UTC"),
    ),
}
TABLE = pa.table(VALUES)
NAMES = [
    "select",
    "Group",
    "with space",
    'a"b',
    "a'b",
    "a`b",
    "größe",
    "日本",
    "a.b",
    "a;b",
    "c0",
    "who",
    "records",
    "%s",
]


@pytest.fixture(scope="module")
def sources(case, duck):
    """The same rows in both."""
    return case.load(TABLE, "odd"), duck.load(TABLE, "odd")


def both(sources, ask):
    found, expected = (opened(study_of(source, {}), ask) for source in sources)
    return found, expected


def test_kinds(sources):
    found, expected = both(sources, lambda table: table.columns)
    assert found == expected


def test_domains_and_missing(sources):
    def ask(table):
        return {c: (table.domain(c).text.to_pylist(), table.missing(c)) for c in VALUES}

    found, expected = both(sources, ask)
    for column in VALUES:
        assert found[column] == expected[column], column


def test_values_come_as_the_same_types(sources):
    found, expected = both(sources, lambda table: {c: table.domain(c).values.type for c in VALUES})
    assert found == expected


def test_groups(sources):
    found, expected = both(sources, lambda table: [plain_cells(table.group([c])) for c in VALUES])
    assert found == expected
    found, expected = both(sources, lambda table: plain_cells(table.group(list(VALUES))))
    assert found == expected
    found, expected = both(sources, lambda table: plain_cells(table.group([])))
    assert found == expected


def test_rows_keep_their_order(sources):
    def ask(table):
        given = pa.Table.from_batches(list(table.rows(["zip", "long", "zoned"]))).rename_columns(["a", "b", "c"])
        return given.to_pydict(), table.count()

    found, expected = both(sources, ask)
    assert found == expected


def test_all_rows(sources):
    def ask(table):
        rows = pa.Table.from_batches(list(table.batches()))
        return rows.schema.names, row_counts(rows), table.sample(0).schema.names, len(table.sample(4))

    found, expected = both(sources, ask)
    assert found == expected


def test_declared_missing(case, duck):
    codes = {"zip": ["00123", "-0"], "long": ["-1", "0"], "decimal": ["1.5"], "float": ["0.1"], "truth": ["true"]}
    codes |= {"day": ["1969-12-31"], "single": ["0.1"]}
    roles = {c: {"role": "quasi", "missing": given} for c, given in codes.items()}

    def ask(table):
        return {c: (table.domain(c).text.to_pylist(), table.missing(c)) for c in codes}, plain_cells(
            table.group(list(codes))
        )

    found, expected = (opened(study_of(of.load(TABLE, "odd"), roles), ask) for of in (case, duck))
    assert found == expected


CODES = {
    "day": ["unknown", "9999-12-31", "9999-99-99", "1-1-1"],
    "time": ["unknown", "1900-01-01", "2024-01-01T00:00:00.5", "-9"],
    "zoned": ["unknown", "1950-01-01", "2024-06-01 14:00:00+02:00"],
    "truth": ["unknown", "False", "'", "\\"],
    "zip": ["unknown", "+5", "'"],
}
LEFT = {
    "day": (["0001-01-01", "1969-12-31", "2024-02-29", None], 2),
    "time": (["2024-02-29 01:02:03.456789", "2038-01-19 03:14:08", None], 3),
    "zoned": (["2024-12-01 23:59:59.000001", None], 8),
    "truth": (["true", None], 5),
    "zip": (["-0", "00", "1e2", "00123", "0123", "123", "123.0", None], 2),
}


def test_codes_that_no_value_of_the_column_can_be(case):
    """Such as `unknown` for a date: it is no value, and does no harm."""
    roles = {c: {"role": "quasi", "missing": codes} for c, codes in CODES.items()}

    def ask(table):
        return {c: (table.domain(c).text.to_pylist(), table.missing(c)) for c in CODES}

    assert opened(study_of(case.load(TABLE, "codes"), roles), ask) == LEFT


def test_equal_values_of_different_types(case, duck):
    weights, days = [Decimal("60.5"), Decimal(70), None], [dt.date(1980, 1, 2), None, dt.date(1981, 1, 2)]
    ours = pa.table({"who": ["p", "q", "r"], "w": pa.array(weights, pa.decimal128(6, 2)), "d": days})
    theirs = ours.set_column(1, "w", pa.array(weights, pa.decimal128(6, 1)))
    theirs = theirs.set_column(2, "d", ours["d"].cast(pa.timestamp("us")))

    def ask(of):
        study = study_of(of.load(ours, "ours"), {})
        population = of.load(theirs, "theirs")
        with engine_of(study) as engine:
            opened = open_source(engine, study), engine.open(population, joined=True)
            return recognize(*opened, ["who"], ["w", "d"])

    assert ask(case) == ask(duck) == Recognized(3, 3, 0)


def test_names(case, duck):
    table = pa.table({name: [f"x{i}", f"y{i}", None] for i, name in enumerate(NAMES)})

    def ask(source):
        persons = source.group_persons(NAMES[:5], NAMES[5:7], "who")
        rows = [batch.num_rows for batch in source.rows(NAMES)]
        return (
            list(source.columns),
            plain_cells(source.group(NAMES)),
            [plain_cells(cells) for cells, _ in persons],
            rows,
        )

    found, expected = (opened(study_of(of.load(table, "names"), {}), ask) for of in (case, duck))
    assert found == expected


def test_no_rows(case, duck):
    def ask(table):
        return table.count(), plain_cells(table.group(["zip", "long"])), list(table.domain("zip").text)

    found, expected = (opened(study_of(of.load(TABLE.slice(0, 0), "none"), {}), ask) for of in (case, duck))
    assert found == expected

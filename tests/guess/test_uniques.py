"""Columns that would be published unchanged: how many records they make unique, against a plain count."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
import pytest
from guessing import ENGINE, guess_again
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.guess import uniques
from veilmark.guess.uniques import unique_with


def plain_count(rows, key, person):
    """Records whose combination of values nobody else has."""
    holders = defaultdict(list)
    for i, row in enumerate(rows):
        holders[tuple(row[name] for name in key)].append(row["p"] if person else i)
    return sum(len(of) for of in holders.values() if len(set(of)) == 1)


ROWS = st.fixed_dictionaries(
    {"q": st.integers(0, 3), "r": st.sampled_from("ab"), "v": st.integers(0, 4) | st.none(), "p": st.integers(0, 5)}
)


@given(st.lists(ROWS, min_size=1, max_size=30), st.sampled_from([[], ["q"], ["q", "r"]]), st.booleans())
@settings(max_examples=examples(40))
def test_uniques(rows, quasi, person):
    table = ENGINE.open(pa.Table.from_pylist(rows, schema=pa.schema(dict(zip("qrvp", SCHEMA, strict=True)))))
    (found,) = unique_with(table, quasi, "p" if person else None, ["v"]).values()
    assert found.records == len(rows)
    assert found.by_quasi == plain_count(rows, quasi, person)
    assert found.by_column == plain_count(rows, ["v"], person)
    assert found.by_both == plain_count(rows, [*quasi, "v"], person)


SCHEMA = [pa.int64(), pa.string(), pa.int64(), pa.int64()]


def test_large_tables_are_estimated(monkeypatch):
    monkeypatch.setattr(uniques, "EXACT_ROWS", 1_000)
    table = pa.table({"q": [i % 7 for i in range(60_000)], "v": [i // 2 if i % 3 else i for i in range(60_000)]})
    (found,) = unique_with(ENGINE.open(table), ["q"], None, ["v"]).values()
    assert not found.exact
    assert found.by_both == pytest.approx(plain_count(table.to_pylist(), ["q", "v"], False), rel=0.1)
    assert str(found).startswith("about ")


def test_a_measurement_carries_the_figure():
    rows = range(400)
    found = guess_again(pa.table({"sex": ["f", "m"] * 200, "bmi": [20 + (i % 160) / 7 for i in rows]}))["bmi"]
    assert found.role == "other"
    (warning,) = found.warnings
    assert warning.startswith("0 of 400 records are unique by the quasi-identifiers and this column (0 by")
    assert "make it quasi, or remove it" in warning

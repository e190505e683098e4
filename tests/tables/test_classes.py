"""Class tables against counting rows in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark.engines.duckdb import DuckDB
from veilmark.hierarchy import parse_spec, resolve
from veilmark.tables.classes import ClassTable

ROW = st.tuples(
    st.sampled_from(["p1", "p2", "p3", "p4", "p5"]),
    st.sampled_from(["10", "11", "20", None]),
    st.sampled_from(["F", "M", None]),
    st.sampled_from(["u", "v", "w", None]),
)
ROWS = st.lists(ROW, min_size=1, max_size=40)
COLUMNS = ("person", "zip", "sex", "s")


@pytest.fixture(scope="module")
def engine():
    with DuckDB(threads=1) as engine:
        yield engine


def class_table(engine, rows, quasi=("zip", "sex"), person=None, sensitive=("s",)):
    table = pa.table({c: pa.array([r[i] for r in rows], pa.string()) for i, c in enumerate(COLUMNS)})
    return ClassTable.build(engine.open(table), quasi, sensitive, person)


def keys(classes):
    return list(zip(*(classes.texts(c) for c in classes.columns), strict=True))


def by_class(rows, key):
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def check(classes, rows, key, person):
    """Records, persons and histograms of every class are those of the rows."""
    groups = by_class(rows, key)
    assert sorted(keys(classes), key=str) == sorted(groups, key=str)
    for i, found in enumerate(keys(classes)):
        assert classes.records[i] == len(groups[found])
        if person:
            assert classes.persons[i] == len({r[0] for r in groups[found]})
    if person:
        assert classes.total_persons == len({r[0] for r in rows})
    histogram = classes.histograms["s"]
    texts = histogram.domain.text.to_pylist()
    names = keys(classes)
    got = {(names[o], texts[v]): n for o, v, n in zip(histogram.owner, histogram.value, histogram.records, strict=True)}
    assert got == Counter((key(r), r[3]) for r in rows)
    if person:
        people = defaultdict(set)
        for r in rows:
            people[key(r), r[3]].add(r[0])
        counted = zip(histogram.owner, histogram.value, histogram.tally.persons, strict=True)
        assert {(names[o], texts[v]): n for o, v, n in counted} == {k: len(v) for k, v in people.items()}
    order = np.lexsort((histogram.value, histogram.owner))
    np.testing.assert_array_equal(order, np.arange(len(order)))


@given(ROWS, st.booleans())
def test_build(engine, rows, person):
    classes = class_table(engine, rows, person="person" if person else None)
    check(classes, rows, lambda r: (r[1], r[2]), person)
    assert classes.k == min(classes.size)
    groups = by_class(rows, lambda r: (r[1], r[2])).values()
    if person:
        assert classes.alone == len({g[0][0] for g in groups if len({r[0] for r in g}) == 1})
    else:
        assert classes.alone == sum(len(g) == 1 for g in groups)


@given(ROWS, st.booleans(), st.integers(0, 2), st.integers(0, 1))
def test_roll_up_counts_everybody_once(engine, rows, person, zip_level, sex_level):
    classes = class_table(engine, rows, person="person" if person else None)
    specs = [parse_spec({"mask": 2}), None]
    levels = [resolve(s, d, c) for s, d, c in zip(specs, classes.domains, classes.columns, strict=True)]

    def up(row):
        masked = row[1] if row[1] is None and zip_level < 2 else ((row[1] or "")[: 2 - zip_level] + "*" * zip_level)
        return (masked, row[2] if sex_level == 0 else "*")

    check(classes.roll_up(levels, (zip_level, sex_level)), rows, up, person)


@given(ROWS, st.booleans())
def test_keep_some_columns(engine, rows, person):
    classes = class_table(engine, rows, person="person" if person else None)
    check(classes.keep(["sex"]), rows, lambda r: (r[2],), person)
    nothing = classes.keep([])
    assert len(nothing) == 1
    assert nothing.total_records == len(rows)


@given(ROWS, st.booleans(), st.data())
def test_take_splits_classes_off(engine, rows, person, data):
    classes = class_table(engine, rows, person="person" if person else None)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(classes), max_size=len(classes))))
    names = {k for k, c in zip(keys(classes), chosen, strict=True) if c}
    kept = [r for r in rows if (r[1], r[2]) in names]
    part = classes.take(chosen)
    if kept:
        check(part, kept, lambda r: (r[1], r[2]), person)
    else:
        assert len(part) == 0
        assert part.k == 0


@given(ROWS, ROWS)
def test_find_in_another_table(engine, rows, others):
    mine, theirs = class_table(engine, rows), class_table(engine, others, quasi=("sex", "zip"))
    names = [(z, s) for s, z in keys(theirs)]
    want = [names.index(k) if k in names else -1 for k in keys(mine)]
    assert mine.find_in(theirs).tolist() == want


def test_several_sensitive_attributes_and_no_quasi_identifier(engine):
    table = pa.table({"a": ["x", "x", "y"], "b": ["1", "2", "1"]})
    classes = ClassTable.build(engine.open(table), [], ["a", "b"])
    assert len(classes) == 1
    assert classes.histograms["a"].records.tolist() == [2, 1]
    assert classes.histograms["b"].records.tolist() == [2, 1]


def test_near_unique_columns_work(engine):
    n = 20_000
    table = pa.table({f"c{i}": pa.array(np.random.default_rng(i).permutation(n)) for i in range(6)})
    classes = ClassTable.build(engine.open(table), list(table.column_names))
    assert len(classes) == n
    assert classes.k == 1


def test_persons_without_quasi_identifiers(engine):
    rows = [("p1", "1", "F", "u"), ("p1", "2", "M", "v"), ("p2", "1", "F", "u")]
    classes = class_table(engine, rows, quasi=(), person="person")
    assert classes.k == 2
    assert classes.total_persons == 2

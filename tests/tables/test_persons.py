"""Folding many records to one row a person, against the obvious way."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.engines.duckdb import DuckDB, DuckTable
from veilmark.errors import DataError, VeilmarkError
from veilmark.tables import persons as module
from veilmark.tables.domain import Domain
from veilmark.tables.persons import Fingerprints, Folding, PersonTable, fold

QUASI, SENSITIVE = ["age", "city"], ["code", "pay"]

FEW = settings(max_examples=examples(40))
"""A fold asks the engine a dozen times."""

ENGINE = DuckDB(threads=1, memory="1GB")


@st.composite
def visits(draw: st.DrawFn, constant: bool = False) -> pa.Table:
    """Records of a few persons; with `constant`, quasi-identifiers do not differ between a person's records."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    count, people = draw(st.integers(1, 60)), draw(st.integers(1, 25))
    who = rng.integers(0, people, count)

    def column(values: list[str | None], by_person: bool = False) -> list[str | None]:
        chosen = rng.integers(0, len(values), people if by_person else count)
        return [values[i] for i in (chosen[who] if by_person else chosen)]

    return pa.table(
        {
            "id": pa.array([f"p{i}" for i in who]),
            "age": pa.array(column(["30", "31", "40", None], constant), pa.string()),
            "city": pa.array(column(["bonn", "ulm", None], constant), pa.string()),
            "day": pa.array(column(["2020-01-02", "2019-12-31", "2020-01-10", None]), pa.string()),
            "code": pa.array(column(["A", "B", "C", "D", None]), pa.string()),
            "pay": pa.array(column(["1", "20", "3", None], True), pa.string()),
        }
    )


def plain(table: PersonTable) -> list[tuple]:
    """Each person as the tuple of their quasi-identifiers and of their fingerprints."""
    columns = []
    for column in [*table.quasi.values(), *table.sensitive.values()]:
        text = column.domain.text.to_pylist()
        columns.append([tuple(text[c] for c in column.values[a:b]) for a, b in pairwise(column.starts)])
    return list(zip(*columns, strict=True))


def slow_fold(table: pa.Table, rule: str) -> list[tuple]:
    """A dictionary of persons in order of appearance, and a loop over their records."""
    records: dict[str, list[dict]] = {}
    for row in table.to_pylist():
        records.setdefault(row["id"], []).append(row)
    order = {name: {t: i for i, t in enumerate(domain(table, name))} for name in (*QUASI, *SENSITIVE, "day")}
    return [
        (*(slow_quasi(of, name, rule, order) for name in QUASI), *(several(of, name, order) for name in SENSITIVE))
        for of in records.values()
    ]


def domain(table: pa.Table, name: str) -> list[str | None]:
    return Domain.of(table[name].combine_chunks().unique()).text.to_pylist()


def several(of: list[dict], name: str, order: dict) -> tuple:
    values = {row[name] for row in of}
    values = values - {None} or values
    return tuple(sorted(values, key=order[name].__getitem__))


def slow_quasi(of: list[dict], name: str, rule: str, order: dict) -> tuple:
    if rule == "error" or len({row[name] for row in of}) == 1:
        return several(of, name, order)
    if rule == "first":
        return (of[0][name],)
    if rule == "latest":
        return (max(of, key=lambda row: row["day"] or "")[name],)
    often = Counter(row[name] for row in of if row[name] is not None)
    return (min(often, key=lambda value: (-often[value], order[name][value])),)


def folded(table: object, rule: str = "error", **more: object) -> PersonTable:
    folding = Folding(rule, "day" if rule == "latest" else None)
    return fold(ENGINE.open(table), "id", QUASI, SENSITIVE, folding, **more)


@FEW
@given(visits(constant=True))
def test_quasi_identifiers_that_do_not_differ(table):
    found = folded(table)
    assert plain(found) == slow_fold(table, "error")
    assert (len(found), found.records) == (len(set(table["id"].to_pylist())), len(table))


@FEW
@given(visits(), st.sampled_from(["first", "mode", "latest"]))
def test_every_rule(table, rule):
    assert plain(folded(table, rule)) == slow_fold(table, rule)


@FEW
@given(visits())
def test_values_that_differ_are_an_error_that_counts_persons(table):
    wanted = slow_fold(table, "error")
    many = {name: sum(len(person[i]) > 1 for person in wanted) for i, name in enumerate(QUASI)}
    if not any(many.values()):
        assert plain(folded(table)) == wanted
        return
    name = next(name for name in QUASI if many[name])
    words = (
        f"^{many[name]:,} persons have more than one value of the quasi-identifier '{name}'.* top level of the study"
    )
    with pytest.raises(DataError, match=words):
        folded(table)


@FEW
@given(visits(), st.sampled_from(["first", "mode", "latest"]), st.integers(0, 1 << 32))
def test_hashes_that_agree_in_most_bits_are_told_apart(table, rule, seed):
    """Hashes that are as low as row numbers collide in all the bits that are sorted by."""
    real = DuckTable.person_keys

    def low_keys(*arguments):
        first, second = real(*arguments)
        return np.unique(first, return_inverse=True)[1].astype(np.uint64), second

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DuckTable, "person_keys", low_keys)
        assert plain(folded(table, rule)) == slow_fold(table, rule)


def test_two_persons_with_one_hash_are_an_error(monkeypatch):
    table = ENGINE.open(pa.table({"id": ["a", "b", "a"], "age": ["1", "2", "1"]}))
    same = np.array([7, 7, 7], dtype=np.uint64)
    monkeypatch.setattr(type(table), "person_keys", lambda *_: (same, np.array([1, 2, 1], dtype=np.uint64)))
    with pytest.raises(VeilmarkError, match="have the same hash"):
        fold(table, "id", ["age"], [])


@pytest.mark.parametrize("rule", ["first", "mode", "latest"])
@pytest.mark.parametrize("bits", [3, 4, 6, 10])
def test_more_records_than_one_part_holds(monkeypatch, rule, bits):
    rng = np.random.default_rng(4)
    count = 100
    table = pa.table(
        {
            "id": [f"p{i}" for i in rng.integers(0, 60, count)],
            **{name: rng.choice(list("abc"), count).tolist() for name in (*QUASI, *SENSITIVE)},
            "day": rng.choice(["2020-01-02", "2020-01-10"], count).tolist(),
        }
    )
    monkeypatch.setattr(module, "PART_ROWS", 1 << bits)
    assert Counter(plain(folded(table, rule))) == Counter(slow_fold(table, rule))


def sources(table: pa.Table, folder) -> dict[str, object]:
    pa_csv.write_csv(table, folder / "t.csv")
    pq.write_table(table, folder / "t.parquet", row_group_size=3)
    return {
        "csv": folder / "t.csv",
        "parquet": folder / "t.parquet",
        "arrow": table,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
    }


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "pandas", "polars"])
def test_every_source_folds_alike(tmp_path, kind):
    table = pa.table(
        {
            "id": [3, 1, 3, 2, 1, 3],
            "age": [40, 30, 40, None, 30, 40],
            "city": ["ulm", "bonn", "ulm", "ulm", "bonn", "ulm"],
            "code": ["B", "A", None, None, "C", "A"],
            "pay": [1.5, 2.0, 1.5, 3.25, 2.0, 1.5],
        }
    )
    found = folded(sources(table, tmp_path)[kind])
    assert plain(found) == [
        (("40",), ("ulm",), ("A", "B"), ("1.5",)),
        (("30",), ("bonn",), ("A", "C"), ("2",)),
        ((None,), ("ulm",), (None,), ("3.25",)),
    ]


def test_classes_are_those_of_persons():
    table = pa.table(
        {"id": list("aabcd"), "age": list("11121"), "city": list("xxxyx"), "code": list("12345"), "pay": list("11111")}
    )
    found = folded(table)
    assert found.classes.codes.tolist() == [[0, 1], [0, 1]]
    assert found.classes.size.tolist() == [3, 1]
    assert found.class_of.tolist() == [0, 0, 1, 0]
    assert plain(found.take(np.array([2, 0]))) == [plain(found)[2], plain(found)[0]]
    assert "4 persons of 5 records; several values: code" in repr(found)


def test_codes_for_missing_values_are_missing():
    table = ENGINE.open(pa.table({"id": list("aab"), "age": [5, 5, -1], "code": ["-9", "A", "-9"]}))
    table.declare_missing({"age": ["-1"], "code": ["-9", "-8"]})
    found = fold(table, "id", ["age"], ["code"])
    assert plain(found) == [(("5",), ("A",)), ((None,), (None,))]


@pytest.mark.parametrize(
    ("how", "values", "filled"),
    [
        ("mode", ["b", "a", "b", None], ["b", "a", "b", "b"]),
        ("mode", ["2", "1", None, None], ["2", "1", "1", "1"]),
        ("mean", ["1", "4", None, "4"], ["1", "4", "3", "4"]),
        ("mean", ["1", "2", None, "2.5"], ["1", "2", "1.83333", "2.5"]),
        ("mean", ["b", "a", "b", None], ["b", "a", "b", "b"]),
        ("mean", [None] * 4, [None] * 4),
        ("mean", ["1", "2", "3", "4"], ["1", "2", "3", "4"]),
    ],
)
def test_missing_values_are_filled(how, values, filled):
    table = pa.table({"id": list("abcd"), "age": values, "city": ["x"] * 4, "code": ["A"] * 4, "pay": values})
    found = folded(table, fill={"age": how, "pay": how})
    assert [person[0] for person in plain(found)] == [(value,) for value in filled]
    assert [person[3] for person in plain(found)] == [(value,) for value in filled]


def test_missing_persons_and_empty_tables_are_errors():
    columns = {name: ["1", "2"] for name in (*QUASI, *SENSITIVE)}
    with pytest.raises(DataError, match=r"'id' of .* is empty in 1 records"):
        folded(pa.table({"id": ["a", None], **columns}))
    with pytest.raises(DataError, match="column names but no records"):
        folded(pa.table({"id": ["a", "b"], **columns}).slice(0, 0))


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=12))
def test_recoding_and_kinds_of_fingerprints(arrays):
    of = Domain.of(pa.array([str(i) for i in range(6)]))
    arrays = [sorted(array) for array in arrays]
    column = Fingerprints(of, np.cumsum([0, *map(len, arrays)]), np.concatenate(arrays).astype(np.int32))
    kinds = column.kinds.tolist()
    assert [[a < b for b in kinds] for a in kinds] == [[a < b for b in arrays] for a in arrays]
    rough = column.recode(np.array([1, 0, 0, 2, 1, 0]), of)
    wanted = [sorted([1, 0, 0, 2, 1, 0][v] for v in array) for array in arrays]
    assert [rough.values[a:b].tolist() for a, b in pairwise(rough.starts)] == wanted
    assert column.owner.tolist() == [i for i, array in enumerate(arrays) for _ in array]

"""Whole tables: the examples, tiny, large, wide and odd ones."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from guessing import guess_again, opened, roles, stored

from veilmark.engines.duckdb import DuckDB
from veilmark.guess import facts, study_text
from veilmark.sample import hospital, voters

DATA = Path(__file__).parents[3] / "shared/data"

HOSPITAL = {
    "patient_id": "person",
    "name": "direct",
    "age": "quasi",
    "sex": "quasi",
    "zip": "quasi",
    "race": "quasi",
    "marital": "quasi",
    "visit_date": "quasi",
    "diagnosis": "sensitive",
    "income": "sensitive",
    "poverty": "sensitive",
    "education": "quasi",
}
VOTERS = {
    "voter_id": "direct",
    "first_name": "direct",
    "last_name": "direct",
    "zip": "quasi",
    "gender": "quasi",
    "yob": "quasi",
    "race": "quasi",
}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_hospital(tmp_path, suffix):
    source = stored(hospital(1_000), tmp_path, suffix)
    guesses = guess_again(source)
    assert roles(guesses) == HOSPITAL
    assert {c: g.hierarchy for c, g in guesses.items() if g.hierarchy} == {
        "age": {"intervals": [5, 10, 20]},
        "zip": {"mask": 5},
        "visit_date": {"dates": ["month", "year", "decade"]},
    }
    assert "records a person" in guesses["patient_id"].reason
    assert guesses["age"].reason.endswith("from 0 to 95")
    study = opened(study_text(source, list(guesses.values())), tmp_path)
    assert study.person == "patient_id"
    assert study.measure().k >= 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_voters(tmp_path, suffix):
    guesses = guess_again(stored(voters(5_000), tmp_path, suffix))
    assert roles(guesses) == VOTERS
    assert guesses["yob"].hierarchy == {"intervals": [5, 10, 20]}
    assert guesses["zip"].hierarchy == {"mask": 5}
    assert guesses["voter_id"].reason == "an id that is unique: 5,000 values in 5,000 records, one record per person"


def test_frames_too():
    assert roles(guess_again(hospital(100).to_pandas())) == HOSPITAL


def shared(path: str) -> str:
    file = DATA / path
    if not file.exists():
        pytest.skip(f"{file} is not on this machine")
    return str(file)


def test_adult():
    guesses = guess_again(shared("adult/adult_arx_30162.csv"))
    sensitive = [c for c, role in roles(guesses).items() if role == "sensitive"]
    assert sensitive == ["salary-class"]
    assert {role for c, role in roles(guesses).items() if c != "salary-class"} == {"quasi"}
    assert guesses["age"].hierarchy == {"intervals": [5, 10, 20]}


def test_informs():
    assert roles(guess_again(shared("informs_2005/fslip_view_2005.csv"))) == {
        "person_id": "person",
        "age": "quasi",
        "race": "quasi",
        "sex": "quasi",
        "marry": "quasi",
        "income": "sensitive",
        "poverty": "sensitive",
        "education": "quasi",
        "condition_code": "sensitive",
    }


def test_zip_areas():
    guesses = guess_again(shared("zcta_us/zcta_combined.csv"))
    assert guesses["zcta"].warnings == ("nearly unique: it looks like a direct identifier",)
    assert [guesses[c].role for c in ("white", "hispanic", "pop2010")] == ["other"] * 3
    assert [guesses[c].hierarchy for c in ("lat", "lon")] == [{"intervals": [0.01, 0.1, 1]}] * 2


def test_typed_columns():
    rows = range(300)
    table = pa.table(
        {
            "born": [dt.date(1950, 1, 1) + dt.timedelta(days=40 * i) for i in rows],
            "seen": [dt.datetime(2020, 1, 1) + dt.timedelta(hours=i) for i in rows],
            "Age": pa.array([float(i % 80) if i % 7 else None for i in rows]),
            "weight": [50 + i / 7 for i in rows],
            "amount": [Decimal(i) / 8 for i in rows],
            "active": [i % 3 == 0 for i in rows],
            "shift": [dt.time(i % 3 * 8) for i in rows],
            "ward": pa.array([f"w{i % 5}" for i in rows]).dictionary_encode(),
            "blank": pa.nulls(300),
        }
    )
    guesses = guess_again(table)
    others, sensitive = ("weight", "blank"), ("amount",)
    assert {c for c, role in roles(guesses).items() if role == "other"} == set(others)
    assert {c for c, role in roles(guesses).items() if role == "quasi"} == {*table.column_names} - {*others, *sensitive}
    assert guesses["Age"].hierarchy == {"intervals": [5, 10, 20]}
    assert guesses["born"].hierarchy == guesses["seen"].hierarchy == {"dates": ["month", "year", "decade"]}


def test_nested_columns_stand_in_the_file_as_comments_only(tmp_path):
    data = {"tags": [["a"], ["b"]], "info": [{"a": 1}, {"a": 2}], "raw": [b"\0", b"\1"], "sex": ["F", "M"]}
    file = stored(pa.table(data), tmp_path, ".parquet")
    guesses = guess_again(file)
    assert [guesses[c].usable for c in data] == [False, False, False, True]
    text = study_text(file, list(guesses.values()))
    assert "  # tags: {role: other}" in text
    study = opened(text, tmp_path)
    assert list(study.spec.attributes) == ["sex"]
    assert study.measure().k == 1


def test_a_table_of_nested_columns_only():
    assert not guess_again(pa.table({"tags": [["a"], ["b"]]}))["tags"].usable


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize(("make", "expected"), [(hospital, HOSPITAL), (voters, VOTERS)])
def test_tiny_tables(make, expected, rows, tmp_path):
    table = make(10).slice(0, rows)
    guesses = guess_again(table)
    opened(study_text("tiny.csv", list(guesses.values())), tmp_path)
    if rows:
        found = roles(guesses)
        assert {c: r for c, r in expected.items() if c != "patient_id"}.items() <= found.items()


def test_missing_and_constant_columns():
    nothing = pa.nulls(50, pa.string())
    table = pa.table({"x": nothing, "ssn": nothing, "city": nothing, "y": ["a"] * 50, "country": ["a"] * 50})
    guesses = guess_again(table)
    assert roles(guesses) == {"x": "other", "ssn": "direct", "city": "quasi", "y": "other", "country": "quasi"}
    assert guesses["x"].reason == "no values: 50 records, all missing"
    assert guesses["y"].reason == "the same value in all records: 1 value in 50 records"


def test_large_tables_are_counted_by_slices(monkeypatch):
    monkeypatch.setattr(facts, "SAMPLE_ROWS", 2_000)
    monkeypatch.setattr(facts, "EXACT_ROWS", 3_000)
    rows = range(200_000)
    table = pa.table(
        {
            "patient_id": [f"p{i % 50_000}" for i in rows],
            "text": [f"t{i}" for i in rows],
            "half": [f"h{i % 100_000}" for i in rows],
            "race": ["a", "b"] * 100_000,
        }
    )
    guesses = guess_again(table)
    assert roles(guesses) == {"patient_id": "person", "text": "direct", "half": "quasi", "race": "quasi"}
    assert guesses["text"].reason == "nearly unique text: about 200,000 values in 200,000 records"
    assert guesses["race"].reason.endswith(": 2 values in 200,000 records")
    estimate = re.search(r"about ([\d,]+) values", guesses["half"].reason)
    assert estimate is not None
    assert int(estimate[1].replace(",", "")) == pytest.approx(100_000, rel=0.15)


@pytest.mark.parametrize(("columns", "statements"), [(32, 2), (33, 3)])
def test_one_statement_looks_for_codes_and_one_counts_unless_the_table_is_very_wide(monkeypatch, columns, statements):
    ran: list[str] = []
    run = DuckDB.run
    monkeypatch.setattr(DuckDB, "run", lambda self, statement: ran.append(statement) or run(self, statement))
    guesses = guess_again(pa.table({f"c{i}": [f"v{k % (i + 2)}" for k in range(40)] for i in range(columns)}))
    assert len([s for s in ran if "LIMIT" not in s and "DESCRIBE" not in s]) == statements
    assert guesses[f"c{columns - 1}"].reason.endswith(f": {columns + 1} values in 40 records")

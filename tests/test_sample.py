from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from veilmark import sample
from veilmark.errors import OptionError
from veilmark.sample import hospital, voters, write_voters

CONSTANT = ["name", "age", "sex", "zip", "race", "marital", "income", "poverty", "education"]


@pytest.fixture(scope="module")
def roll() -> pa.Table:
    return voters(60_000)


@pytest.fixture(scope="module")
def visits() -> pa.Table:
    return hospital(10_000)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "CHUNK", 400)


def one(sql: str, **tables: pa.Table) -> tuple[object, ...]:
    """The only row of a query over the given tables."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        row = connection.execute(sql).fetchone()
    assert row is not None
    return row


@pytest.mark.parametrize("make", [voters, hospital])
def test_seed_decides_the_rows(make):
    assert make(500, seed=3).equals(make(500, seed=3))
    assert make(500).equals(make(500, seed=1))
    assert not make(500, seed=3).equals(make(500, seed=4))


@pytest.mark.parametrize(("make", "schema"), [(voters, "VOTERS_SCHEMA"), (hospital, "HOSPITAL_SCHEMA")])
@pytest.mark.parametrize("size", [0, 1, 50])
def test_schema_is_kept_at_any_size(make, schema, size):
    table = make(size)
    table.validate(full=True)
    assert table.schema == getattr(sample, schema)
    assert (table.num_rows == 0) == (size == 0)


@pytest.mark.parametrize(
    ("make", "message"), [(voters, "rows is -1; it must be 0 or more"), (hospital, "persons is -1")]
)
def test_negative_size(make, message):
    with pytest.raises(OptionError, match=message):
        make(-1)
    with pytest.raises(OptionError, match="seed is -2"):
        make(5, seed=-2)


def test_names_are_not_listed_twice():
    for names in (sample._FIRST, sample._LAST, sample._diagnosis_codes(), sample._voter_zips()):
        assert len(set(names)) == len(names)


def test_draws_follow_the_shares():
    rng = np.random.default_rng(5)
    shares = np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 2.0]])
    group = np.repeat([0, 1], 40_000)
    drawn = sample._pick_within(rng, shares, group)
    assert np.bincount(drawn[:40_000], minlength=3) / 40_000 == pytest.approx([0.25, 0.75, 0.0], abs=0.015)
    assert set(drawn[40_000:]) == {2}
    picked = sample._pick(rng, shares[0], 40_000)
    assert np.bincount(picked, minlength=3) / 40_000 == pytest.approx([0.25, 0.75, 0.0], abs=0.015)


# Voters.


def test_voters_in_duckdb(roll):
    described = duckdb.sql("select column_name, column_type from (describe roll)").fetchall()
    assert described == [
        ("voter_id", "VARCHAR"),
        ("first_name", "VARCHAR"),
        ("last_name", "VARCHAR"),
        ("zip", "VARCHAR"),
        ("gender", "VARCHAR"),
        ("yob", "SMALLINT"),
        ("race", "VARCHAR"),
    ]


def test_voter_ids_are_unique(small_chunks):
    ids = voters(1_000)["voter_id"].to_pylist()
    assert ids == [f"V{n:08d}" for n in range(1, 1_001)]


def test_ids_widen_when_eight_digits_are_too_few():
    assert sample._ids("V", 99_999_999, 2, sample._digits(100_000_000)).to_pylist() == [
        "V099999999",
        "V100000000",
    ]


def test_chunks_differ(small_chunks):
    table = voters(800).select(sample.VOTERS_SCHEMA.names[1:])
    assert table.slice(0, 400).to_pylist() != table.slice(400).to_pylist()


def test_voters_look_like_a_state(roll):
    youngest, oldest, codes = one("select max(yob), min(yob), count(distinct zip) from roll", roll=roll)
    assert (youngest, oldest) == (2002, pytest.approx(1918, abs=5))
    assert 950 <= codes <= 1_000
    (odd,) = one("select count(*) from roll where not regexp_full_match(zip, '3[2-4][0-9]{3}')", roll=roll)
    assert odd == 0
    assert set(pc.unique(roll["gender"]).to_pylist()) == {"F", "M", "U"}
    assert len(pc.unique(roll["race"])) == 7


def test_zips_differ_in_race_and_age(roll):
    race, age = one(
        "select stddev(white), stddev(age) from (select avg((race = 'White')::int) white, avg(2020 - yob) age"
        " from roll group by zip having count(*) >= 60)",
        roll=roll,
    )
    assert race > 0.15
    assert age > 2


@pytest.mark.parametrize("rows", [0, 1, 1_000])
def test_written_voters_are_the_same_rows(rows, tmp_path, small_chunks):
    path = tmp_path / "voters.parquet"
    write_voters(path, rows, seed=7)
    assert pq.read_schema(path).names == sample.VOTERS_SCHEMA.names
    assert pq.read_table(path).to_pylist() == voters(rows, seed=7).to_pylist()
    assert list(tmp_path.iterdir()) == [path]


def test_written_voters_in_duckdb(tmp_path):
    path = tmp_path / "voters.parquet"
    write_voters(path, 100)
    described = duckdb.sql(f"select column_type from (describe from '{path}')").fetchall()
    assert [kind for (kind,) in described] == ["VARCHAR"] * 5 + ["SMALLINT", "VARCHAR"]


def test_negative_rows_write_nothing(tmp_path):
    with pytest.raises(OptionError):
        write_voters(tmp_path / "voters.parquet", -1)
    assert list(tmp_path.iterdir()) == []


def test_broken_off_file_is_removed(tmp_path, monkeypatch, small_chunks):
    def broken(*_: object) -> pa.RecordBatch:
        raise KeyboardInterrupt

    monkeypatch.setattr(sample, "_voter_batch", broken)
    with pytest.raises(KeyboardInterrupt):
        write_voters(tmp_path / "voters.parquet", 10)
    assert list(tmp_path.iterdir()) == []


def test_unwritable_path(tmp_path):
    (tmp_path / "file").touch()
    for folder in ("nowhere", "file"):
        with pytest.raises(OptionError, match="cannot be written"):
            write_voters(tmp_path / folder / "voters.parquet", 10)


# Hospital.


def test_persons_are_exact_and_constant(visits):
    (persons,) = one("select count(distinct patient_id) from visits", visits=visits)
    assert persons == 10_000
    whole = ", ".join(["patient_id", *CONSTANT])
    assert one(f"select count(*) from (select distinct {whole} from visits)", visits=visits) == (10_000,)


def test_visits_a_person(visits):
    fewest, most, mean = one(
        "select min(n), max(n), avg(n) from (select count(*) n from visits group by patient_id)",
        visits=visits,
    )
    assert fewest == 1
    assert 8 <= most <= 10
    assert mean == pytest.approx(4, abs=0.3)


def test_visits_stand_in_date_order(visits):
    person = visits["patient_id"].to_numpy()
    day = visits["visit_date"].to_numpy()
    same = person[1:] == person[:-1]
    assert (day[1:][same] >= day[:-1][same]).all()
    assert day.max() - day.min() < np.timedelta64(731, "D")


def test_hospital_zips_have_five_characters_and_leading_zeros(visits):
    zips = pc.unique(visits["zip"]).to_pylist()
    assert len(zips) == 60
    assert {len(code) for code in zips} == {5}
    assert "01234" in zips
    assert any(not code.startswith("0") for code in zips)


def test_missing_values_only_in_race_and_marital(visits):
    missing = {name: visits[name].null_count / visits.num_rows for name in visits.column_names}
    assert missing.pop("race") == pytest.approx(0.01, abs=0.005)
    assert missing.pop("marital") == pytest.approx(0.01, abs=0.005)
    assert not any(missing.values())


def test_diagnosis_follows_age_and_sex(visits):
    pregnant, prostate = one(
        "select avg((sex = 'Female' and age between 8 and 55)::int) filter (diagnosis in ('V22', '650')),"
        " avg((sex = 'Male')::int) filter (diagnosis in ('185', '600')) from visits",
        visits=visits,
    )
    assert (pregnant, prostate) == (1, 1)
    newborn, failing = one(
        "select avg(age) filter (diagnosis = 'V30'), avg(age) filter (diagnosis = '428') from visits",
        visits=visits,
    )
    assert newborn < 2
    assert failing > 65
    assert 55 <= len(pc.unique(visits["diagnosis"])) <= 70


@pytest.mark.parametrize(
    ("column", "poorest_first"),
    [("poverty", ["high", "medium", "low"]), ("education", list(sample.EDUCATION))],
)
def test_income_follows(visits, column, poorest_first):
    rows = duckdb.sql(f"select {column} from visits group by 1 order by avg(income)").fetchall()
    assert [value for (value,) in rows] == poorest_first


def test_age_range_and_names(visits):
    assert pc.min_max(visits["age"]).as_py() == {"min": 0, "max": 95}
    assert pc.all(pc.match_substring_regex(visits["name"], "^[A-Z][a-z]+ [A-Z][a-z]+$")).as_py()


@pytest.mark.heavy
def test_thirteen_million_voters(tmp_path: Path):
    path = tmp_path / "voters.parquet"
    write_voters(path, 13_000_000)
    rows, ids = one(f"select count(*), count(distinct voter_id) from '{path}'")
    assert rows == ids == 13_000_000
    (classes,) = one(f"select count(*) from (select distinct zip, gender, yob, race from '{path}')")
    assert classes == pytest.approx(780_000, rel=0.05)

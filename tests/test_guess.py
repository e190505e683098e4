from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from veilmark import guess
from veilmark.domain import NUMBER
from veilmark.engines.duckdb import DuckDB, DuckTable
from veilmark.guess import Guess, guess_columns, study_text
from veilmark.hierarchy import parse_spec, resolve
from veilmark.sample import hospital, voters
from veilmark.study import Study

DATA = Path(__file__).parents[2] / "shared/data"

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


@pytest.fixture(scope="module")
def visits() -> pa.Table:
    return hospital(1_000)


@pytest.fixture(scope="module")
def roll() -> pa.Table:
    return voters(5_000)


def guesses_of(source: object) -> dict[str, Guess]:
    """The guesses by column, once every hierarchy among them is known to fit its column."""
    with DuckDB() as engine:
        table = engine.open(source)
        guesses = {g.column: g for g in guess_columns(table)}
        assert list(guesses) == list(table.columns)
        for found in guesses.values():
            check_hierarchy(table, found)
        return guesses


def check_hierarchy(table: DuckTable, found: Guess) -> None:
    if found.hierarchy:
        levels = resolve(parse_spec(found.hierarchy), table.domain(found.column), found.column)
        assert len(levels.labels[-1]) == 1


def one(name: str, values: Sequence[object], times: int = 1) -> Guess:
    """The guess for a column that stands alone in a frame."""
    return guesses_of(pa.table({name: pa.array([v for v in values for _ in range(times)])}))[name]


def roles(guesses: dict[str, Guess]) -> dict[str, str]:
    return {column: g.role for column, g in guesses.items()}


def opened(text: str, folder: Path) -> Study:
    file = folder / "study.yaml"
    file.write_text(text, encoding="utf-8")
    return Study.open(file)


def stored(table: pa.Table, folder: Path, suffix: str) -> str:
    file = folder / f"table{suffix}"
    if suffix == ".csv":
        pacsv.write_csv(table, file)
    else:
        pq.write_table(table, file)
    return str(file)


# --- the examples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_hospital(visits, tmp_path, suffix):
    guesses = guesses_of(stored(visits, tmp_path, suffix))
    assert roles(guesses) == HOSPITAL
    assert {c: g.hierarchy for c, g in guesses.items() if g.hierarchy} == {
        "age": {"intervals": [5, 10, 20]},
        "zip": {"mask": 5},
        "visit_date": {"dates": ["month", "year", "decade"]},
    }
    assert "records a person" in guesses["patient_id"].reason
    assert guesses["age"].reason.endswith("from 0 to 95")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_voters(roll, tmp_path, suffix):
    guesses = guesses_of(stored(roll, tmp_path, suffix))
    assert roles(guesses) == VOTERS
    assert guesses["yob"].hierarchy == {"intervals": [5, 10, 20]}
    assert guesses["zip"].hierarchy == {"mask": 5}
    assert guesses["voter_id"].reason == ("an id that is unique: 5,000 values in 5,000 records, one record a person")


def test_frames_too(visits):
    assert roles(guesses_of(visits)) == HOSPITAL
    assert roles(guesses_of(visits.to_pandas())) == HOSPITAL


def test_the_study_file_of_the_hospital_can_be_measured(visits, tmp_path):
    source = stored(visits, tmp_path, ".csv")
    study = opened(study_text(source, list(guesses_of(source).values())), tmp_path)
    assert study.person == "patient_id"
    assert study.direct == ["name"]
    assert study.sensitive == ["diagnosis", "income", "poverty"]
    assert study.measure().k >= 1


def shared(path: str) -> str:
    file = DATA / path
    if not file.exists():
        pytest.skip(f"{file} is not on this machine")
    return str(file)


def test_adult():
    guesses = guesses_of(shared("adult/adult_arx_30162.csv"))
    sensitive = [c for c, role in roles(guesses).items() if role == "sensitive"]
    assert sensitive == ["salary-class"]
    assert {role for c, role in roles(guesses).items() if c != "salary-class"} == {"quasi"}
    assert guesses["age"].hierarchy == {"intervals": [5, 10, 20]}


def test_informs():
    found = roles(guesses_of(shared("informs_2005/fslip_view_2005.csv")))
    assert found == {
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
    guesses = guesses_of(shared("zcta_us/zcta_combined.csv"))
    assert guesses["zcta"].warnings == ("nearly unique: it looks like a direct identifier",)
    assert [guesses[c].role for c in ("white", "hispanic", "pop2010")] == ["other"] * 3
    assert [guesses[c].hierarchy for c in ("lat", "lon")] == [{"intervals": [0.01, 0.1, 1]}] * 2


# --- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("visit_date", ("visit", "date")),
        ("visitDate", ("visit", "date")),
        ("PatientID", ("patient", "id")),
        ("IDPaciente", ("id", "paciente")),
        ("marital-status", ("marital", "status")),
        ("E-Mail", ("e", "mail")),
        ("ICD9 Code", ("icd", "9", "code")),
        ("Straße", ("strasse",)),
        ("prénom", ("prenom",)),
        ("姓名", ("姓名",)),
        ("1", ("1",)),
        ("...", ()),
    ],
)
def test_tokens(name, tokens):
    assert guess._tokens(name) == tokens


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("direct", "name Full_Name firstName SURNAME customer_name citizen_name Vorname apellidos prénom"),
        ("direct", "email e-mail phone_number mobilePhone SSN passport_no home_address ip_address username"),
        ("quasi", "Sex GENDER race ethnicity marital_status estado_civil Familienstand religion nationality"),
        ("quasi", "city county state.name birth_country address_city occupation job_title education age_group"),
        ("sensitive", "diagnosis ICD9 drug_name condition_code test_result hiv_status Krankheit"),
        ("sensitive", "income monthly_wage poverty total_charges Einkommen sexual_orientation"),
    ],
)
def test_roles_by_name(role, names):
    values = [f"x{i % 40}y" for i in range(1_000)]
    found = guesses_of(pa.table(dict.fromkeys(names.split(), values)))
    assert roles(found) == dict.fromkeys(names.split(), role)


@pytest.mark.parametrize("name", ["product_name", "hospital_name", "file_name"])
def test_the_name_of_a_thing_is_no_persons_name(name):
    assert one(name, ["abc", "def", "ghi"], 50).role == "quasi"


@pytest.mark.parametrize("name", ["has_phone", "email_consent"])
def test_a_yes_or_no_about_an_identifier_is_none(name):
    assert one(name, ["yes", "no"], 50).role == "quasi"


def test_few_persons_have_names_all_the_same():
    assert one("name", ["Ann", "Bob", "Cid"], 50).role == "direct"


# --- contents ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "what"),
    [
        ("user{}@example.org", "e-mail addresses"),
        ("https://example.org/{}", "web addresses"),
        ("10.0.7.{}", "IP addresses"),
        ("2001:db8::{}", "IP addresses"),
        ("219-09-{:04}", "social security numbers"),
        ("+1 (555) 010-{:04}", "telephone numbers"),
        ("01 23 45 67 {:02}", "telephone numbers"),
    ],
)
def test_direct_by_content(form, what):
    found = one("x", [form.format(i) for i in range(10, 90)])
    assert found.role == "direct"
    assert what in found.reason


def test_nearly_unique_text_is_direct():
    values = [f"note {i}" for i in range(500)]
    assert one("x", values).reason == "nearly unique text: 500 values in 500 records"
    assert one("x", values + values).role == "other"
    assert one("x", [uuid.UUID(int=i).hex for i in range(500)]).role == "direct"


def test_a_different_whole_number_in_every_record_is_direct():
    found = one("x", list(range(500)))
    assert (found.role, len(found.warnings)) == ("direct", 1)
    assert one("x", [i / 7 for i in range(500)]).role == "other"


@pytest.mark.parametrize(
    ("form", "hint"),
    [
        ("%Y-%m-%d", None),
        ("%Y-%m-%dT%H:%M:%S", None),
        ("%d.%m.%Y", "%d.%m.%Y"),
        ("%m/%d/%Y", "%m/%d/%Y"),
        ("%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M"),
        ("%d-%b-%Y", "%d-%b-%Y"),
    ],
)
def test_dates_as_text(form, hint):
    days = [dt.datetime(2010, 1, 1, 9, 30) + dt.timedelta(days=i) for i in range(400)]
    found = one("x", [d.strftime(form) for d in days])
    expected = {"dates": ["month", "year", "decade"]} | ({"format": hint} if hint else {})
    assert (found.role, found.hierarchy, found.warnings) == ("quasi", expected, ())


def test_dates_that_may_be_swapped_are_doubtful():
    found = one("x", [f"0{i % 9 + 1}/05/20{i}" for i in range(10, 90)])
    assert "other way round" in found.warnings[0]


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
def test_dates_of_bare_digits_need_a_name(kind):
    values = pa.array([str(20200101 + i % 28) for i in range(400)]).cast(kind)
    guesses = guesses_of(pa.table({"visit_date": values, "x": values}))
    assert guesses["visit_date"].hierarchy == {"dates": ["month", "year", "decade"], "format": "%Y%m%d"}
    assert "dates" not in (guesses["x"].hierarchy or {})


def test_a_date_of_unknown_form_is_quasi_without_hierarchy():
    found = one("birth_date", [f"the {i}th" for i in range(40)])
    assert (found.role, found.hierarchy) == ("quasi", None)
    assert "not recognized" in found.warnings[0]


def test_odd_values_become_a_star_at_once():
    ages = [str(i % 90) for i in range(2_000)] + ["90+", " 7", "+8", "1_0", "nan"]
    found = one("age", ages)
    assert found.hierarchy == {"intervals": [5, 10, 20], "others": "*"}
    assert found.warnings == ("5 records with another kind of value, which becomes * at once",)
    days = [f"2020-01-{i % 28 + 1:02}" for i in range(2_000)] + ["2020-02-30", "unknown"]
    assert one("day", days).hierarchy == {"dates": ["month", "year", "decade"], "others": "*"}


def test_odd_values_after_the_sample_are_seen():
    ages = [str(i % 90) for i in range(guess.SAMPLE_ROWS)] + ["ninety"]
    assert one("age", ages).hierarchy == {"intervals": [5, 10, 20], "others": "*"}


ODD_NUMBERS = [
    "1",
    "-1",
    "1.",
    ".5",
    "1e5",
    "-1.5E-3",
    "+1",
    " 1",
    "1 ",
    "\t1",
    "1\n",
    "1_0",
    "nan",
    "inf",
    "",
    "x",
    "-",
]


@given(st.lists(st.one_of(st.sampled_from(ODD_NUMBERS), st.text("0123.eE+-_ \t\n\r\v\fnaif", max_size=6))))
@settings(max_examples=30, deadline=None)
def test_the_engines_test_for_numbers_agrees_with_the_domains(values):
    rows = pa.table({"v": pa.array(values, pa.string())})
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        found = connection.sql(f"SELECT v, coalesce({guess._fits_number('v', True)}, false) FROM rows").fetchall()
    for value, fits in found:
        number = re.fullmatch(NUMBER.rstrip("$"), value, re.ASCII)
        assert fits == (number is not None and abs(float(value)) < guess.EXACT_NUMBERS), repr(value)


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
    guesses = guesses_of(table)
    assert roles(guesses) == {
        "born": "quasi",
        "seen": "quasi",
        "Age": "quasi",
        "weight": "other",
        "amount": "sensitive",
        "active": "quasi",
        "shift": "quasi",
        "ward": "quasi",
        "blank": "other",
    }
    assert guesses["Age"].hierarchy == {"intervals": [5, 10, 20]}
    assert guesses["born"].hierarchy == guesses["seen"].hierarchy == {"dates": ["month", "year", "decade"]}


def test_nested_columns_stand_in_the_file_as_comments_only(tmp_path):
    data = {"tags": [["a"], ["b"]], "info": [{"a": 1}, {"a": 2}], "raw": [b"\0", b"\1"], "sex": ["F", "M"]}
    file = stored(pa.table(data), tmp_path, ".parquet")
    guesses = guesses_of(file)
    assert [guesses[c].role for c in ("tags", "info", "raw")] == ["other"] * 3
    assert all(guesses[c].warnings for c in ("tags", "info", "raw"))
    text = study_text(file, list(guesses.values()))
    assert "  # tags: {role: other}" in text
    study = opened(text, tmp_path)
    assert list(study.spec.attributes) == ["sex"]
    assert study.measure().k == 1


# --- hierarchies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "widths"),
    [
        (0, []),
        (2, []),
        (5, [2]),
        (25, [2, 10, 20]),
        (84, [5, 10, 20]),
        (150, [10, 50, 100]),
        (400, [20, 100, 200]),
        (1e6, [50_000, 100_000, 200_000]),
    ],
)
def test_nested_widths(span, widths):
    assert guess._nested_widths(span) == widths


@given(st.floats(0, 2.0**53))
def test_widths_nest_for_any_span(span):
    widths = guess._nested_widths(span)
    if widths:
        parse_spec({"intervals": widths})


@pytest.mark.parametrize(
    ("codes", "hierarchy", "warned"),
    [
        (["12345", "02345"], {"mask": 5}, False),
        (["K1A 0B1", "V6B 4Y8"], {"mask": 7}, False),
        (["12345", "12345-6789"], {"mask": 10}, False),
        ([12345, 2345], {"mask": 5}, True),
        ([12345.0, 23456.0], {"mask": 5}, False),
        (["a very long text for a postal code"], None, False),
    ],
)
def test_postal_codes(codes, hierarchy, warned):
    found = one("postal_code", codes, 40)
    assert (found.role, found.hierarchy, bool(found.warnings)) == ("quasi", hierarchy, warned)


def test_whole_numbers_of_many_values_get_intervals():
    assert one("x", list(range(20)), 10).hierarchy is None
    assert one("x", list(range(60)), 10).hierarchy == {"intervals": [2, 10, 20]}
    assert one("x", [f"{i:02}" for i in range(60)], 10).hierarchy is None
    assert one("occupation", list(range(60)), 10).hierarchy is None
    assert one("school_year", list(range(1990, 2015)), 10).hierarchy == {"intervals": [2, 10, 20]}
    assert one("birth_year", list(range(1990, 2000)), 10).hierarchy == {"intervals": [2]}


def test_ages_that_are_not_ages_are_warned_of():
    assert one("age", [*range(50), 999], 5).warnings[0].startswith("not all are ages")
    assert one("age", [*range(50), -9], 5).warnings[0].startswith("not all are ages")


def test_many_values_without_hierarchy_are_warned_of():
    found = one("city", [f"city {i}" for i in range(150)], 10)
    assert "no hierarchy is known" in found.warnings[0]


# --- persons -----------------------------------------------------------------------------------------------


def persons_of(**columns: Sequence[object]) -> dict[str, str]:
    return roles(guesses_of(pa.table({name: list(values) for name, values in columns.items()})))


@pytest.mark.parametrize(
    "name",
    ["patient_id", "PATIENTID", "SubjectNo", "id_paciente", "study_subject_id", "DUPERSID", "mrn", "person", "key"],
)
def test_an_id_that_repeats_is_the_person(name):
    assert persons_of(**{name: [f"p{i // 4}" for i in range(400)]}) == {name: "person"}


def test_a_unique_id_is_direct():
    assert persons_of(patient_id=range(400)) == {"patient_id": "direct"}


def test_at_most_one_person_the_likeliest():
    found = persons_of(
        id=[i // 3 for i in range(600)],
        visit_id=[i // 2 for i in range(600)],
        household_id=[i // 8 for i in range(600)],
        patient_visit_id=[i // 2 for i in range(600)],
        patient_id=[i // 4 for i in range(600)],
        member_id=[i // 5 for i in range(600)],
    )
    assert [name for name, role in found.items() if role == "person"] == ["patient_id"]
    assert {role for name, role in found.items() if name != "patient_id"} <= {"direct", "quasi"}


def test_ids_of_things_are_not_persons():
    found = persons_of(visit_id=[i // 2 for i in range(600)], hospital_id=[i % 12 for i in range(600)])
    assert found == {"visit_id": "direct", "hospital_id": "quasi"}


def test_few_patients_with_many_records_are_persons_too():
    assert persons_of(patient_id=[i % 5 for i in range(1_000)]) == {"patient_id": "person"}


def test_a_yes_or_no_is_no_person():
    assert persons_of(member=["yes", "no"] * 20)["member"] == "quasi"


def test_a_person_column_with_gaps_is_warned_of():
    found = one("patient_id", [None, *[f"p{i // 4}" for i in range(400)]])
    assert found.role == "person"
    assert found.warnings[0].startswith("empty in 1 record,")


# --- tables of every size ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("make", [hospital, voters])
def test_tiny_tables(make, rows, tmp_path):
    table = make(10).slice(0, rows)
    guesses = guesses_of(table)
    text = study_text("tiny.csv", list(guesses.values()))
    assert set(opened(text, tmp_path).spec.attributes) <= set(table.column_names)
    if rows:
        expected = HOSPITAL if make is hospital else VOTERS
        assert {c: r for c, r in roles(guesses).items() if c != "patient_id"} == {
            c: r for c, r in expected.items() if c != "patient_id"
        }


def test_three_rows_do_not_make_text_an_identifier():
    found = one("x", ["a", "b", "c"])
    assert (found.role, found.warnings) == ("other", ("too few records to judge by the values",))


def test_missing_and_constant_columns():
    nothing = pa.nulls(50, pa.string())
    table = pa.table({"x": nothing, "ssn": nothing, "y": ["a"] * 50, "country": ["a"] * 50})
    guesses = guesses_of(table)
    assert roles(guesses) == {"x": "other", "ssn": "direct", "y": "other", "country": "quasi"}
    assert guesses["x"].reason == "no values: 50 records, all missing"
    assert guesses["y"].reason == "the same in all records: 1 value in 50 records"


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guess, "SAMPLE_ROWS", 2_000)
    monkeypatch.setattr(guess, "EXACT_ROWS", 3_000)


@pytest.mark.usefixtures("small_limits")
def test_large_tables_are_counted_by_slices():
    rows = range(200_000)
    table = pa.table(
        {
            "patient_id": [f"p{i % 50_000}" for i in rows],
            "text": [f"t{i}" for i in rows],
            "half": [f"h{i % 100_000}" for i in rows],
            "race": ["a", "b"] * 100_000,
        }
    )
    guesses = guesses_of(table)
    assert roles(guesses) == {"patient_id": "person", "text": "direct", "half": "other", "race": "quasi"}
    assert guesses["text"].reason == "nearly unique text: about 200,000 values in 200,000 records"
    assert guesses["race"].reason.endswith(": 2 values in 200,000 records")
    estimate = re.search(r"about ([\d,]+) values", guesses["half"].reason)
    assert estimate is not None
    assert int(estimate[1].replace(",", "")) == pytest.approx(100_000, rel=0.15)


@pytest.mark.parametrize(("columns", "statements"), [(1, 1), (32, 1), (33, 2), (100, 4)])
def test_the_whole_table_is_counted_in_one_statement_unless_it_is_very_wide(monkeypatch, columns, statements):
    ran: list[str] = []
    run = DuckDB.run
    monkeypatch.setattr(DuckDB, "run", lambda self, statement: ran.append(statement) or run(self, statement))
    guesses = guesses_of(pa.table({f"c{i}": [f"v{k % (i + 2)}" for k in range(40)] for i in range(columns)}))
    assert len([s for s in ran if "LIMIT" not in s and "DESCRIBE" not in s]) == statements
    assert guesses[f"c{columns - 1}"].reason.endswith(f": {min(columns + 1, 40)} values in 40 records")


# --- the study file ----------------------------------------------------------------------------------------

NASTY = [
    "no",
    "on",
    "1",
    "01",
    "1.5",
    "null",
    "~",
    "true",
    "a: b",
    "a #b",
    "# a",
    "'single'",
    'dou"ble',
    "back\\slash",
    " leading",
    "trailing ",
    "two  spaces",
    "new\nline",
    "tab\ttab",
    "- dash",
    "{brace}",
    "[bracket]",
    "&anchor",
    "*alias",
    "!tag",
    "%percent",
    "@at",
    "`tick`",
    "?",
    "<<",
    "=",
    "Größe",
    "名前",
    "😀",
    "a\u2028b",
    "\ufeffbom",
    "2024-01-05",
    "x" * 2_000,
    "yes no " * 300,
]


def test_nasty_names_survive(tmp_path):
    guesses = guesses_of(pa.table({name: ["a", "b"] for name in NASTY}))
    study = opened(study_text("nasty: #1.csv", list(guesses.values())), tmp_path)
    assert list(study.spec.attributes) == NASTY
    assert study.spec.source == "nasty: #1.csv"


@pytest.mark.parametrize("name", NASTY)
def test_a_nasty_name_of_the_person_survives(name, tmp_path):
    study = opened(study_text("a.csv", [Guess(name, "person", None, "an id")]), tmp_path)
    assert study.person == name
    assert not study.spec.attributes


def test_names_survive_in_csv_files(tmp_path):
    names = [n for n in NASTY if not n.startswith("\ufeff") and len(n) < 1_000]
    source = stored(pa.table({name: ["a", "b"] for name in names}), tmp_path, ".csv")
    study = opened(study_text(source, list(guesses_of(source).values())), tmp_path)
    assert list(study.spec.attributes) == names


ROLES = st.sampled_from(["direct", "quasi", "sensitive", "other"])
GUESSES = st.builds(
    Guess,
    column=st.text(min_size=1),
    role=ROLES,
    hierarchy=st.sampled_from([None, {"mask": 5}, {"dates": ["year"], "format": "%d.%m.%Y", "others": "*"}]),
    reason=st.text(),
    warnings=st.lists(st.text(), max_size=2).map(tuple),
)


@given(st.text(), st.lists(GUESSES, max_size=6, unique_by=lambda g: g.column))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_guesses_make_a_study_file(tmp_path, source, guesses):
    study = opened(study_text(source, guesses), tmp_path)
    assert study.spec.source == source
    assert {c: a.role for c, a in study.spec.attributes.items()} == {g.column: g.role for g in guesses}


def unlike(names: list[str]) -> bool:
    return len({n.lower() for n in names}) == len(names) and all(n.strip() for n in names)


NAMES = st.one_of(
    st.sampled_from(["age", "zip", "patient_id", "dob", "yob", "salary", "lat", "date", "year", "city", "e-mail", "x"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
)
VALUES = st.one_of(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5), min_size=1, max_size=5),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    st.lists(st.floats(), min_size=1, max_size=5),
    st.lists(st.dates(dt.date(1000, 1, 1)), min_size=1, max_size=5),
    st.lists(st.dates(dt.date(1000, 1, 1)).map(str), min_size=1, max_size=5),
    st.lists(st.integers(0, 3000).map(str), min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=1, max_size=5),
)


@given(st.data(), st.lists(NAMES, min_size=1, max_size=5).filter(unlike), st.integers(1, 60))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_table_makes_a_study_file_that_lists_every_column_once(tmp_path, data, names, rows):
    columns = {name: data.draw(VALUES) for name in names}
    table = pa.table({name: pa.array([v[i % len(v)] for i in range(rows)]) for name, v in columns.items()})
    guesses = guesses_of(table)
    study = opened(study_text("any.csv", list(guesses.values())), tmp_path)
    person = [study.person] if study.person is not None else []
    assert sorted([*study.spec.attributes, *person]) == sorted(names)


def test_each_line_says_why(visits):
    text = study_text("patients.csv", list(guesses_of(visits).values()))
    assert "veilmark measure study.yaml" in text
    assert "source: patients.csv\n" in text
    assert "\nperson: patient_id  # an id that repeats: 1,000 values in " in text
    line = next(line for line in text.splitlines() if line.startswith("  age:"))
    assert re.fullmatch(
        r"  age: +\{role: quasi, hierarchy: \{intervals: \[5, 10, 20\]\}\}  # named like an age: .*", line
    )
    assert all("#" in line for line in text.splitlines() if line.startswith("  "))


def test_the_file_says_when_a_role_is_lacking(roll):
    guesses = list(guesses_of(roll).values())
    assert "No sensitive column" in study_text("a.csv", guesses)
    assert "No quasi-identifier" in study_text("a.csv", guesses[:3])


@pytest.mark.parametrize("make", [hospital, voters])
def test_no_value_is_given_away(make):
    """Words and long numbers of the data occur nowhere in the file."""
    table = make(300)
    text = study_text("t.csv", list(guesses_of(table).values()))
    for name in set(table.column_names) - {"age", "yob"}:
        for value in {str(v) for v in table[name].to_pylist() if v is not None}:
            if len(value) > 4:
                assert value not in text

"""Single columns: what their names and their values tell."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence

import pyarrow as pa
import pytest
from guessing import guess_again, one, roles
from hypothesis import given
from hypothesis import strategies as st

from veilmark.guess import Guess, facts
from veilmark.guess.shapes import DATE_FORMS, shape_of
from veilmark.guess.words import tokens_of
from veilmark.hierarchy import parse_spec
from veilmark.hierarchy.intervals import nested_widths

# --- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("visit_date", ("visit", "date")),
        ("visitDate", ("visit", "date")),
        ("IDPaciente", ("id", "paciente")),
        ("E-Mail", ("e", "mail")),
        ("ICD9 Code", ("icd", "9", "code")),
        ("Straße", ("strasse",)),
        ("prénom", ("prenom",)),
        ("姓名", ("姓名",)),
        ("...", ()),
    ],
)
def test_tokens(name, tokens):
    assert tokens_of(name) == tokens


def test_roles_by_name():
    named = {
        "direct": """
            name Full_Name firstName SURNAME customer_name citizen_name Vorname apellidos prénom email e-mail
            phone_number mobilePhone SSN passport_no home_address ip_address username
        """,
        "quasi": """
            Sex GENDER race ethnicity marital_status estado_civil Familienstand religion nationality city county
            state.name birth_country address_city occupation job_title education age_group
        """,
        "sensitive": """
            diagnosis ICD9 drug_name condition_code test_result hiv_status Krankheit income monthly_wage poverty
            total_charges Einkommen sexual_orientation salary_per_year
        """,
    }
    expected = {name: role for role, names in named.items() for name in names.split()}
    values = [f"x{i % 40}y" for i in range(1_000)]
    assert roles(guess_again(pa.table(dict.fromkeys(expected, values)))) == expected


def test_the_name_of_a_thing_is_no_persons_name():
    names = ("product_name", "hospital_name", "file_name")
    found = guess_again(pa.table(dict.fromkeys(names, ["abc", "def", "ghi"] * 50)))
    assert set(roles(found).values()) == {"quasi"}


def test_a_yes_or_no_about_an_identifier_is_none():
    found = guess_again(pa.table(dict.fromkeys(("has_phone", "email_consent"), ["yes", "no"] * 50)))
    assert set(roles(found).values()) == {"quasi"}


def test_few_persons_have_names_all_the_same():
    assert one("name", ["Ann", "Bob", "Cid"], 50).role == "direct"


# --- contents ----------------------------------------------------------------------------------------------


def filled(*forms: str) -> dict[str, Guess]:
    """The guess for each form, filled with many numbers."""
    columns = [[form.format(i) for i in range(10, 90)] for form in forms]
    found = guess_again(pa.table(columns, names=[f"x{i}" for i in range(len(forms))]))
    return dict(zip(forms, found.values(), strict=True))


def test_direct_by_content():
    forms = {
        "user{}@example.org": "e-mail addresses",
        "https://example.org/{}": "web addresses",
        "10.0.7.{}": "IP addresses",
        "219-09-{:04}": "social security numbers",
        "+1 (555) 010-{:04}": "telephone numbers",
        "01 23 45 67 {:02}": "telephone numbers",
    }
    reasons = {form: g.reason for form, g in filled(*forms).items() if g.role == "direct"}
    assert reasons == {form: f"values that look like {what}: 80 values in 80 records" for form, what in forms.items()}


def test_dates_and_large_numbers_are_no_telephones():
    found = filled("1 234 5{:02}", "05-01-20{}", "20{}/01/05", "12.345.6{:02}")
    assert not [form for form, g in found.items() if "telephone" in g.reason]


def test_nearly_unique_text_is_direct():
    values = [f"note {i}" for i in range(500)]
    assert one("x", values).reason == "nearly unique text: 500 values in 500 records"
    assert one("x", values + values).role == "quasi"
    assert one("x", [uuid.UUID(int=i).hex for i in range(500)]).role == "direct"
    long = one("x", [f"{value} {'.' * 100}" for value in values + values])
    assert (long.role, long.warnings) == ("direct", ("long texts may name persons",))


def test_three_rows_do_not_make_text_an_identifier():
    found = one("x", ["a", "b", "c"])
    assert (found.role, found.warnings[0]) == ("other", "too few records to judge its values")


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
        ("%d/%m/%Y", "%d/%m/%Y"),
    ],
)
def test_dates_as_text(form, hint):
    days = [dt.datetime(2010, 1, 1, 9, 30) + dt.timedelta(days=i) for i in range(400)]
    found = one("x", [d.strftime(form) for d in days])
    expected = {"dates": ["month", "year", "decade"]} | ({"format": hint} if hint else {})
    assert (found.role, found.hierarchy, found.warnings) == ("quasi", expected, ())


def test_dates_that_may_be_swapped_are_doubtful():
    found = one("x", [f"0{i % 9 + 1}/05/20{i}" for i in range(10, 90)])
    assert "swapped" in found.warnings[0]


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
def test_dates_of_bare_digits_need_a_name(kind):
    values = pa.array([str(20200101 + i % 28) for i in range(400)]).cast(kind)
    guesses = guess_again(pa.table({"visit_date": values, "x": values}))
    assert guesses["visit_date"].hierarchy == {"dates": ["month", "year", "decade"], "format": "%Y%m%d"}
    assert "dates" not in (guesses["x"].hierarchy or {})


def test_a_date_of_unknown_form_is_quasi_without_hierarchy():
    found = one("birth_date", [f"{i % 28 + 1}-Jan-{1950 + i}" for i in range(40)])
    assert (found.role, found.hierarchy) == ("quasi", None)
    assert "not recognized" in found.warnings[0]


ODD_NUMBERS = ["90+", " 7", "7 ", "+8", "1_0", "nan", "inf", "1e400", "٣", "-", "7\n"]
EVEN_NUMBERS = ["1.", ".5", "1e1", "-1.5E-3", "007"]


def test_odd_values_become_a_star_at_once():
    found = one("age", [str(i % 200) for i in range(2_000)] + ODD_NUMBERS + EVEN_NUMBERS)
    assert found.hierarchy == {"intervals": [5, 10, 20], "others": "*"}
    assert f"{len(ODD_NUMBERS) - 1} records with another kind of value, which becomes * at level 1" in found.warnings
    assert found.missing == ("nan",)
    days = [f"2020-01-{i % 28 + 1:02}" for i in range(2_000)] + ["2020-02-30", "in May"]
    assert one("day", days).hierarchy == {"dates": ["month", "year", "decade"], "others": "*"}


def test_odd_values_after_the_sample_are_seen():
    ages = [str(i % 90) for i in range(facts.SAMPLE_ROWS)] + ["ninety"]
    assert one("age", ages).hierarchy == {"intervals": [5, 10, 20], "others": "*"}


# --- hierarchies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "widths"),
    [
        (0, []),
        (5, [2]),
        (25, [2, 10, 20]),
        (84, [5, 10, 20]),
        (150, [10, 50, 100]),
        (400, [20, 100, 200]),
        (1e6, [50_000, 100_000, 200_000]),
    ],
)
def test_nested_widths(span, widths):
    assert nested_widths(span) == widths


@given(st.floats(0, 2.0**53))
def test_widths_nest_for_any_span(span):
    widths = nested_widths(span)
    if widths:
        parse_spec({"intervals": widths})


@pytest.mark.parametrize(
    ("codes", "hierarchy", "warned"),
    [
        (["12345", "02345"], {"mask": 5}, False),
        (["K1A 0B1", "V6B 4Y8"], {"mask": 7}, False),
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


def test_doubts_are_warned_of():
    assert one("age", [*range(50), 222], 5).warnings[0].startswith("some values are not ages")
    assert one("age", [*range(50), -4], 5).warnings[0].startswith("some values are not ages")
    assert "many values and no hierarchy" in one("city", [f"city {i}" for i in range(150)], 10).warnings[0]


# --- persons -----------------------------------------------------------------------------------------------


def roles_of(**columns: Sequence[object]) -> dict[str, str]:
    return roles(guess_again(pa.table({name: list(values) for name, values in columns.items()})))


@pytest.mark.parametrize(
    "name",
    ["PATIENTID", "SubjectNo", "id_paciente", "study_subject_id", "DUPERSID", "mrn", "person", "key"],
)
def test_an_id_that_repeats_is_the_person(name):
    assert roles_of(**{name: [f"p{i // 4}" for i in range(400)]}) == {name: "person"}


def test_a_unique_id_is_direct():
    assert roles_of(patient_id=range(400)) == {"patient_id": "direct"}


def test_at_most_one_person_the_likeliest():
    found = roles_of(
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
    found = roles_of(visit_id=[i // 2 for i in range(600)], hospital_id=[i % 12 for i in range(600)])
    assert found == {"visit_id": "direct", "hospital_id": "quasi"}


def test_few_patients_with_many_records_are_persons_too():
    assert roles_of(patient_id=[i % 5 for i in range(1_000)]) == {"patient_id": "person"}


def test_a_yes_or_no_is_no_person():
    assert roles_of(member=["yes", "no"] * 20)["member"] == "quasi"


def test_a_person_column_with_gaps_is_warned_of():
    found = one("patient_id", [None, *[f"p{i // 4}" for i in range(400)]])
    assert found.role == "person"
    assert found.warnings[0].startswith("empty in 1 record;")


@pytest.mark.parametrize(
    ("form", "write"),
    [
        ("%d.%m.%y", lambda i: f"{1 + i % 28:02}.{1 + i % 12:02}.{60 + i % 40}"),
        ("%m/%d/%y", lambda i: f"{1 + i % 12}/{1 + i % 28}/{i % 20:02}"),
        ("%d/%m/%y", lambda i: f"{1 + i % 28}/{1 + i % 12}/{i % 20:02}"),
    ],
)
def test_dates_with_two_digits_of_the_year_have_a_hierarchy_and_a_check(form, write):
    found = one("visit", [write(i) for i in range(200)])
    assert (found.role, found.hierarchy) == ("quasi", {"dates": ["month", "year", "decade"], "format": form})
    assert any("years have two digits" in warning for warning in found.warnings)


def test_dates_in_several_forms_say_what_to_do():
    forms = ["18 Jun 1970", "1976-11-01", "06/10/1975", "1.2.1980"]
    found = one("dob", [forms[i % 4].replace("19", f"{18 + i % 3}", 1) for i in range(200)])
    assert found.hierarchy is None
    assert any("Write them in one format, such as 2024-03-05" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("forms", "doubtful"),
    [
        (("%Y-%m-%d", "%m/%d/%Y"), False),
        (("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y"), False),
        (("%d.%m.%y", "%d.%m.%Y"), False),
        (("%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y"), True),
    ],
)
def test_dates_in_several_forms(forms, doubtful):
    """Each value is read by its own form; of two forms that differ in day and month alone, one is taken."""
    days = [dt.date(1970, 1, 1) + dt.timedelta(days=37 * i) for i in range(600)]
    shape = shape_of([day.strftime(forms[i % len(forms)]) for i, day in enumerate(days)], dated=True)
    assert shape.name == "date"
    assert shape.doubtful == doubtful
    assert set(shape.formats) <= set(forms)
    assert len(shape.formats) == len({DATE_FORMS[form] for form in forms})


def test_dates_in_several_forms_have_a_hierarchy():
    days = [dt.date(1970, 1, 1) + dt.timedelta(days=37 * i) for i in range(300)]
    guess = one("born", [day.strftime(["%Y-%m-%d", "%d.%m.%Y"][i % 2]) for i, day in enumerate(days)])
    assert guess.role == "quasi"
    assert guess.hierarchy == {"dates": ["month", "year", "decade"], "format": ["%Y-%m-%d", "%d.%m.%Y"]}
    assert "dates are written in 2 forms" in guess.why

"""The study file that guesses become."""

from __future__ import annotations

import datetime as dt
import re

import pyarrow as pa
import pytest
from guessing import guess_again, opened, stored
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.guess import Guess, study_text
from veilmark.sample import hospital, voters

_WORDS = """
no on 1 01 1.5 null ~ true 'single' dou"ble back\\slash {brace} [bracket] &anchor *alias !tag %percent @at `tick` ?
<< = Größe 名前 😀 2024-01-05
"""
_PHRASES = [
    "a: b",
    "a #b",
    "# a",
    " leading",
    "trailing ",
    "two  spaces",
    "new\nline",
    "tab\ttab",
    "- dash",
    "a\u2028b",
]
NASTY = [*_WORDS.split(), *_PHRASES, "\ufeffbom", "x" * 2_000, "yes no " * 300]


def test_nasty_names_survive(tmp_path):
    guesses = guess_again(pa.table({name: ["a", "b"] for name in NASTY}))
    study = opened(study_text("nasty: #1.csv", list(guesses.values())), tmp_path)
    assert list(study.spec.attributes) == NASTY
    assert study.spec.source == "nasty: #1.csv"


def test_a_nasty_name_of_the_person_survives(tmp_path):
    for name in NASTY:
        study = opened(study_text("a.csv", [Guess(name, "person", None, "an id")]), tmp_path)
        assert study.person == name
        assert not study.spec.attributes


def test_names_survive_in_csv_files(tmp_path):
    names = [n for n in NASTY if not n.startswith("\ufeff") and len(n) < 1_000]
    source = stored(pa.table({name: ["a", "b"] for name in names}), tmp_path, ".csv")
    study = opened(study_text(source, list(guess_again(source).values())), tmp_path)
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
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_guesses_make_a_study_file(tmp_path, source, guesses):
    study = opened(study_text(source, guesses), tmp_path)
    assert study.spec.source == source
    assert {c: a.role for c, a in study.spec.attributes.items()} == {g.column: g.role for g in guesses}


def unlike(names: list[str]) -> bool:
    return len({n.lower() for n in names}) == len(names) and all(n.strip() for n in names)


TEXTS = st.characters(codec="utf-8", exclude_characters="\0")
NAMES = st.one_of(
    st.sampled_from(["age", "zip", "patient_id", "dob", "yob", "salary", "lat", "date", "year", "city", "e-mail", "x"]),
    st.text(TEXTS, min_size=1, max_size=8),
)
ODD_NUMBERS = st.text("0123.eE+-_ \t\n\r\v\fnaif", max_size=6)
VALUES = st.one_of(
    *(
        st.lists(values, min_size=1, max_size=5)
        for values in (
            st.text(TEXTS, max_size=5),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(),
            st.dates(dt.date(1000, 1, 1)),
            st.dates(dt.date(1000, 1, 1)).map(str),
            st.one_of(st.integers(0, 3000).map(str), ODD_NUMBERS),
            st.booleans(),
        )
    )
)


@given(st.data(), st.lists(NAMES, min_size=1, max_size=5).filter(unlike), st.integers(1, 60))
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_table_makes_a_study_file_that_lists_every_column_once(tmp_path, data, names, rows):
    columns = {name: data.draw(VALUES) for name in names}
    table = pa.table({name: pa.array([v[i % len(v)] for i in range(rows)]) for name, v in columns.items()})
    guesses = guess_again(table)
    study = opened(study_text("any.csv", list(guesses.values())), tmp_path)
    person = [study.person] if study.person is not None else []
    assert sorted([*study.spec.attributes, *person]) == sorted(names)


def test_each_line_says_why():
    text = study_text("patients.csv", list(guess_again(hospital(1_000)).values()))
    assert "`veilmark measure`" in text
    assert "source: patients.csv\n" in text
    assert "\nperson: patient_id  # an id that repeats: 1,000 values in " in text
    assert re.search(r"\n  age: +\{role: quasi, hierarchy: \{intervals: \[5, 10, 20\]\}\}  # named like an age: ", text)
    assert all("#" in line for line in text.splitlines() if line.startswith("  "))


def test_the_file_says_when_a_role_is_lacking():
    guesses = list(guess_again(voters(100)).values())
    assert "No sensitive column" in study_text("a.csv", guesses)
    assert "No quasi-identifier" in study_text("a.csv", guesses[:3])


@pytest.mark.parametrize("make", [hospital, voters])
def test_no_value_is_given_away(make):
    """Words and long numbers of the data occur nowhere in the file."""
    table = make(300)
    text = study_text("t.csv", list(guess_again(table).values()))
    for name in set(table.column_names) - {"age", "yob"}:
        values = {str(v) for v in table[name].to_pylist() if v is not None}
        assert not [v for v in values if len(v) > 4 and v in text]

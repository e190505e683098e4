from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierarchy.helpers import check_sound, failure, levels_of, paths, spec_failure
from veilmark.hierarchy import parse_spec, resolve
from veilmark.tables.domain import Domain

UNITS = ["day", "month", "quarter", "year", "decade", "century"]


def test_every_unit_of_dates():
    found = paths(levels_of({"dates": UNITS}, "2024-03-05", "1999-12-31", "2000-10-01", None))
    assert found == {
        "2024-03-05": ["2024-03-05", "2024-03", "2024-Q1", "2024", "2020-2029", "2000-2099", "*"],
        "1999-12-31": ["1999-12-31", "1999-12", "1999-Q4", "1999", "1990-1999", "1900-1999", "*"],
        "2000-10-01": ["2000-10-01", "2000-10", "2000-Q4", "2000", "2000-2009", "2000-2099", "*"],
        None: [None] * 6 + ["*"],
    }


@pytest.mark.parametrize(
    "moment",
    ["2024-03-05 10:11:12", "2024-03-05T10:11:12", "2024-03-05 10:11", "2024-03-05T23:11:12.25+01:00"],
)
def test_moments(moment):
    assert paths(levels_of({"dates": ["day", "year"]}, moment))[moment] == ["2024-03-05", "2024", "*"]


def test_typed_dates():
    days = pa.array([0, 19787], pa.date32())
    moments = pa.array([0, 1709633472500], pa.timestamp("ms"))
    for values in (days, moments):
        levels = resolve(parse_spec({"dates": ["month"]}), Domain.of(values), "col")
        assert levels.of_values(1).to_pylist() == ["1970-01", "2024-03"]


@pytest.mark.parametrize(
    ("form", "value", "label"),
    [
        ("%d.%m.%Y", "05.03.2024", "2024-03-05"),
        ("%d.%m.%Y", "5.3.2024", "2024-03-05"),
        ("%m/%d/%y", "03/05/99", "1999-03-05"),
        ("%d %B %Y", "5 march 2024", "2024-03-05"),
        ("%Y", "2024", "2024-01-01"),
        ("%Y-%m-%dT%H:%M:%S.%f%z", "2024-03-05T10:11:12.5+0100", "2024-03-05"),
    ],
)
def test_dates_by_format(form, value, label):
    assert paths(levels_of({"dates": ["day"], "format": form}, value, None))[value] == [label, "*"]


def test_values_that_are_not_dates():
    values = ["2024-03-05", "soon", "2023-02-30", "05.03.2024", "2024-03-05 25:00", "2024-3-5"]
    message = failure({"dates": ["month"]}, *values, None)
    assert "Column 'col'" in message
    assert "'05.03.2024', '2023-02-30', '2024-03-05 25:00', '2024-3-5', 'soon'." in message
    assert "format" in message
    assert 'others: "*"' in message


def test_values_that_are_not_dates_of_the_format():
    message = failure({"dates": ["month"], "format": "%d.%m.%Y"}, "05.03.2024", "30.02.2023", "1.1.2024x")
    assert "in the format %d.%m.%Y: '1.1.2024x', '30.02.2023'." in message


def test_date_others():
    spec = {"dates": ["month", "year"], "others": "*"}
    assert paths(levels_of(spec, "2024-03-05", "soon", None)) == {
        "2024-03-05": ["2024-03", "2024", "*"],
        "soon": ["*", "*", "*"],
        None: [None, None, "*"],
    }


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"dates": ["year", "month"]}, "from fine to coarse: [month, year]"),
        ({"dates": ["year", "year"]}, "Give each unit once"),
        ({"dates": ["monht"]}, "Did you mean 'month'?"),
        ({"dates": []}, "The list is empty"),
        ({"dates": ["day"], "format": "%Q"}, "not a valid strptime format"),
        ({"dates": ["day"], "format": "%d.%m."}, "has no year"),
    ],
)
def test_wrong_dates(spec, words):
    assert words in spec_failure(spec)


@given(
    st.lists(st.dates() | st.none(), min_size=1, unique=True),
    st.sets(st.sampled_from(UNITS), min_size=1).map(lambda units: sorted(units, key=UNITS.index)),
)
def test_dates_against_the_slow_oracle(days, units):
    column = Domain.of(pa.array(days, pa.date32()))
    levels = resolve(parse_spec({"dates": units}), column, "col")
    check_sound(levels, column)
    for day in filter(None, days):
        labels = {
            "day": day.isoformat(),
            "month": day.isoformat()[:7],
            "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
            "year": f"{day.year:04}",
            "decade": f"{day.year // 10 * 10:04}-{day.year // 10 * 10 + 9:04}",
            "century": f"{day.year // 100 * 100:04}-{day.year // 100 * 100 + 99:04}",
        }
        assert paths(levels)[day.isoformat()] == [*(labels[unit] for unit in units), "*"]


def test_several_formats():
    """The first format that fits a value counts."""
    spec = {"dates": ["month", "year"], "format": ["%d.%m.%y", "%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"]}
    found = paths(levels_of(spec, "2024-03-05", "06.04.2023", "7/5/2022", "2021-06-08 10:11", "01.02.99", None))
    assert found == {
        "2024-03-05": ["2024-03", "2024", "*"],
        "06.04.2023": ["2023-04", "2023", "*"],
        "7/5/2022": ["2022-07", "2022", "*"],
        "2021-06-08 10:11": ["2021-06", "2021", "*"],
        "01.02.99": ["1999-02", "1999", "*"],
        None: [None, None, "*"],
    }
    assert "%d.%m.%y or %Y-%m-%d or" in failure(spec, "31.31.2024")
    assert "has no year" in spec_failure({"dates": ["year"], "format": ["%Y-%m-%d", "%d.%m."]})
    assert "formats is empty" in spec_failure({"dates": ["year"], "format": []})

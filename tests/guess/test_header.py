"""A CSV that begins with data is refused; one whose names look odd is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark.cli.main import main
from veilmark.errors import NoHeaderError
from veilmark.guess.header import check_header

WITHOUT = {
    "people": [
        ["37", "M", "1970-01-05"],
        ["41", "F", "1980-02-01"],
        ["55", "M", "1990-07-09"],
        ["60", "M", "1991-01-01"],
    ],
    "numbers": [["0", "0", "1.5"], ["1", "0", "2.5"], ["0", "1", "3"], ["7", "1", "9"]],
    "one column": [["yes"], ["no"], ["yes"], ["no"]],
    "addresses": [["a@b.org", "x"], ["c@d.org", "x"], ["e@f.org", "y"], ["g@h.org", "y"]],
}
WITH = {
    "names": [["age", "sex"], ["1", "m"], ["2", "f"], ["3", "m"]],
    "years": [["id", "2019", "2020", "2021"], *([[str(i), "1", "2", "3"] for i in range(5)])],
    "a year": [["id", "2019"], *([[str(i), "1"] for i in range(5)])],
    "numbered columns": [["0", "1", "2"], ["5", "1", "2"], ["6", "1", "3"], ["7", "1", "2"]],
    "a name among many that is a value": [["x", "sex", "age"], ["x", "m", "3"], ["y", "f", "4"], ["x", "m", "5"]],
    "few rows": [["1", "2"], ["3", "4"], ["5", "6"]],
}


@pytest.mark.parametrize("case", WITHOUT)
def test_data_in_place_of_names(case):
    with pytest.raises(NoHeaderError, match="seems to have no column names"):
        check_header(WITHOUT[case], "t.csv")


@pytest.mark.parametrize("case", WITH)
def test_names(case):
    check_header(WITH[case], "t.csv")


CELLS = st.lists(st.sampled_from(["red", "green", "7", "8.5", "2020-01-02"]), min_size=3, max_size=3)


@given(st.lists(CELLS, min_size=4, max_size=20))
def test_a_row_of_names_is_enough(rows):
    check_header([["colour of it", "shade", "size"], *rows], "t.csv")


def test_the_command_line(tmp_path, capsys):
    file = tmp_path / "t.csv"
    file.write_text("".join(f"{30 + i},{'MF'[i % 2]},secret{i % 3}\n" for i in range(9)))
    target = ["-o", str(tmp_path / "s.yaml")]
    assert main(["init", str(file), *target]) == 2
    said = capsys.readouterr().err
    assert "3 of the 3 entries in its first line look like values" in said
    assert "Add a first line with a name for each column. If it holds the column names, add --header." in said
    assert "secret" not in said
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
    assert main(["init", str(file), *target, "--header"]) == 0
    # A name that stands twice is not the fault to tell of here.
    file.write_text("1,1,1\n2,1,4\n3,5,6\n4,1,1\n5,6,7\n")
    assert main(["init", str(file), *target, "--force"]) == 2
    assert "no column names" in capsys.readouterr().err


def test_a_study_in_place_of_a_table(tmp_path, capsys):
    (tmp_path / "study.yaml").write_text("version: 1\nsource: t.csv\n")
    assert main(["init", str(tmp_path / "study.yaml"), "-o", str(tmp_path / "s.yaml")]) == 2
    assert "This is a study, not a table. Run: veilmark measure" in capsys.readouterr().err

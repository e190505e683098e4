from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierarchy.helpers import check_sound, domain, failure, levels_of, paths
from veilmark.errors import OptionError, OutputError
from veilmark.hierarchy import Levels, parse_spec, resolve, write_arx

ADULT = Path(__file__).parents[3] / "shared/data/adult/hierarchies_arx"


def written(folder: Path, content: str | bytes) -> dict[str, str]:
    """The spec of a hierarchy file with this content."""
    data = content.encode() if isinstance(content, str) else content
    (folder / "h.csv").write_bytes(data)
    return {"file": "h.csv"}


def test_file(tmp_path):
    spec = written(tmp_path, "a;A;letter;all\nb;A;letter;all\n1;D;digit;all\nunused;U;none;all\n")
    assert paths(levels_of(spec, "a", "b", "1", None, folder=tmp_path)) == {
        "1": ["D", "digit", "*"],
        "a": ["A", "letter", "*"],
        "b": ["A", "letter", "*"],
        None: [None, None, "*"],
    }


def test_file_without_a_common_last_label(tmp_path):
    spec = written(tmp_path, "a;A\nb;B\n")
    assert paths(levels_of(spec, "a", folder=tmp_path)) == {"a": ["A", "*"]}


@pytest.mark.parametrize("content", ["a\nb\n", "a", "\r\na\r\n\r\nb\r\n"])
def test_file_of_values_only(tmp_path, content):
    assert paths(levels_of(written(tmp_path, content), "a", folder=tmp_path)) == {"a": ["*"]}


@pytest.mark.parametrize(
    "content",
    [
        "x,y;A\nz;B\n",
        '"x,y",A\nz,B\n',
        "x,y\tA\t\nz\tB\t\n",
        "\ufeffx,y;A\nz;B\n",
        '"x,y";A\r\n"z";"B"\r\n\r\n',
    ],
)
def test_delimiters_quotes_and_marks(tmp_path, content):
    levels = levels_of(written(tmp_path, content), "x,y", "z", folder=tmp_path)
    assert levels.of_values(1).to_pylist() == ["A", "B"]


def test_file_may_list_the_missing_value(tmp_path):
    spec = written(tmp_path, "a;A;*\n;unknown;*\n")
    assert paths(levels_of(spec, "a", None, folder=tmp_path)) == {"a": ["A", "*"], None: ["unknown", "*"]}


def test_file_others(tmp_path):
    spec = written(tmp_path, "a;A;X\nb;B;Y\n") | {"others": "*"}
    assert paths(levels_of(spec, "a", "z", None, folder=tmp_path)) == {
        "a": ["A", "X", "*"],
        "z": ["*", "*", "*"],
        None: [None, None, "*"],
    }


def test_same_line_twice_is_fine(tmp_path):
    assert paths(levels_of(written(tmp_path, "a;A;*\na;A;*\n"), "a", folder=tmp_path)) == {"a": ["A", "*"]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["h.csv is empty"]),
        ("\ufeff\n\n", ["h.csv is empty"]),
        ("a;A;*\n\nb;B\n", ["h.csv, line 3", "'b' has 1 levels", "the first line has 2"]),
        ("a;A;*\na;B;*\n", ["'a' occurs twice", "'A' and 'B'"]),
        ("a;A;X;*\na;A;Y;*\n", ["'a' occurs twice", "'X' and 'Y'"]),
        ("a;A;X\nb;A;Y\n", ["'A' of level 1", "two labels in level 2: 'X' and 'Y'"]),
        (";;X\na;;Y\n", ["the missing value of level 1", "two labels in level 2: 'X' and 'Y'"]),
        ('a;"A\nb;B\n', ["h.csv, line 2", "Check the quotes"]),
        ("ä;A\n".encode("latin-1"), ["not UTF-8", "h.csv"]),
        ("a;A\n".encode("utf-16"), ["not UTF-8", "h.csv"]),
        ("b;B\n", ["h.csv lacks the values 'a'.", "Add a line", 'others: "*"']),
    ],
)
def test_wrong_files(tmp_path, content, words):
    message = failure(written(tmp_path, content), "a", None, folder=tmp_path)
    assert "Column 'col'" in message
    for word in words:
        assert word in message


def test_file_lacks_many_values(tmp_path):
    values = [f"v{i}" for i in range(8)]
    message = failure(written(tmp_path, "v0;A\n"), *values, folder=tmp_path)
    assert "'v1', 'v2', 'v3', 'v4', 'v5' and 2 more" in message


def test_file_that_is_not_there(tmp_path):
    assert f"{tmp_path / 'gone.csv'} does not exist" in failure({"file": "gone.csv"}, "a", folder=tmp_path)
    (tmp_path / "folder.csv").mkdir()
    assert "folder.csv cannot be read" in failure({"file": "folder.csv"}, "a", folder=tmp_path)


# --- writing -----------------------------------------------------------------------------------------------


def same(left: Levels, right: Levels) -> bool:
    return (
        left.height == right.height
        and all(a.equals(b) for a, b in zip(left.labels, right.labels, strict=True))
        and all((a == b).all() for a, b in zip(left.codes, right.codes, strict=True))
    )


def test_written_form(tmp_path):
    spec = {"levels": [{"a;b": 'A "x"', "c\nd": "C", "e": 'A "x"'}]}
    write_arx(levels_of(spec, "a;b", "c\nd", "e", None), tmp_path / "out.csv")
    content = (tmp_path / "out.csv").read_text(encoding="utf-8")
    assert content == '"a;b";"A ""x""";*\n"c\nd";C;*\ne;"A ""x""";*\n;;*\n'
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


@given(
    st.dictionaries(
        st.text(st.sampled_from('ab ,;"\n\r\té'), min_size=1),
        st.text(st.sampled_from('AB,;"\n\r'), min_size=1),
    ).filter(len)
)
def test_what_is_written_reads_back_the_same(tmp_path_factory, labels):
    folder = tmp_path_factory.mktemp("arx")
    column = domain(*labels, None)
    levels = resolve(parse_spec({"levels": [labels]}), column, "col")
    write_arx(levels, folder / "h.csv")
    assert same(resolve(parse_spec({"file": "h.csv"}), column, "col", folder), levels)
    check_sound(levels, column)


def test_nothing_is_left_where_writing_fails(tmp_path):
    with pytest.raises(OptionError, match="cannot be written"):
        write_arx(levels_of(None, "a"), tmp_path / "none" / "h.csv")
    (tmp_path / "h.csv").mkdir()
    with pytest.raises(OutputError, match=r"h\.csv' cannot be written"):
        write_arx(levels_of(None, "a"), tmp_path / "h.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["h.csv"]


ADULT_HEIGHTS = {
    "age": 4,
    "education": 3,
    "marital-status": 2,
    "native-country": 2,
    "occupation": 2,
    "race": 1,
    "salary-class": 1,
    "sex": 1,
    "workclass": 2,
}


@pytest.mark.skipif(not ADULT.exists(), reason=f"ARX's Adult hierarchies are not in {ADULT}")
@pytest.mark.parametrize(("name", "height"), ADULT_HEIGHTS.items())
def test_adult_hierarchies_read_and_write(tmp_path, name, height):
    source = ADULT / f"adult_hierarchy_{name}.csv"
    with source.open(encoding="utf-8", newline="") as lines:
        expected = {value: above for value, *above in csv.reader(lines, delimiter=";")}
    column = domain(*expected)
    levels = resolve(parse_spec({"file": source.name}), column, name, ADULT)
    check_sound(levels, column)
    assert levels.height == height
    assert paths(levels) == expected
    write_arx(levels, tmp_path / "h.csv")
    assert same(resolve(parse_spec({"file": "h.csv"}), column, name, tmp_path), levels)

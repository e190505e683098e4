"""Columns and labels under other names and in other spellings: what they are read as, and that the leaker is named."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marks import COLUMNS, as_table, marked, rows_of
from veilmark.errors import DataError, OptionError
from veilmark.trace.accuse import trace_file
from veilmark.trace.columns import match_columns, same_name
from veilmark.trace.evidence import Marked
from veilmark.trace.labels import Column, bounds, plain, read_column, unmasked
from veilmark.trace.leaked import LeakedTable

NAMES = ("ada", "bob", "cyd", "dan")
rng = np.random.default_rng(51)
ZIPS = [[f"{z}**" for z in range(310, 350)], [f"{z // 10}***" for z in range(310, 350)], ["*****"] * 40]
YEARS = [[f"{y}-{y + 3}" for y in range(1940, 2000, 4)], ["*"] * 15]
DAYS = [[f"2001-{m:02d}-{d:02d}" for m in range(1, 13) for d in (3, 14)]]
DAYS += [[day[:7] for day in DAYS[0]], ["2001"] * 24]
AGES = [[str(a) for a in range(20, 80)], [f"{a // 10 * 10}-{a // 10 * 10 + 9}" for a in range(20, 80)], ["*"] * 60]
WORDS = [["Asian", "Black", "White – other", None], ["*"] * 4]


def read(levels, write, each=200):
    """How a column is read whose labels are written by a function, and what its values become."""
    records = rng.integers(each // 2, 2 * each, len(levels[0])).astype(float)
    theirs = [write(label) for label in levels[0]]
    coded = pa.array(theirs, pa.string()).dictionary_encode(null_encoding="encode")
    nth = coded.indices.to_numpy()
    column = Column(coded.dictionary, np.bincount(nth, records))
    found = read_column(column, levels, records)
    return found, None if found is None else (found.codes[nth] == found.up) | (found.up < 0)


SPELLINGS = {
    "a mask left out": (ZIPS, lambda z: z[:3], 0),
    "a mask of crosses": (ZIPS, lambda z: f"{z[:3]}XX", 0),
    "two digits": (ZIPS, lambda z: z[:2], 1),
    "two digits and crosses": (ZIPS, lambda z: f"{z[:2]}xxx", 1),
    "blanks around": (ZIPS, lambda z: f"  {z} ", 0),
    "an en dash": (YEARS, lambda y: y.replace("-", "–"), 0),
    "blanks in ranges": (YEARS, lambda y: y.replace("-", " - "), 0),
    "in words": (YEARS, lambda y: y.replace("-", " to "), 0),
    "half-open ranges": (YEARS, lambda y: f"[{y[:4]}, {int(y[5:]) + 1})", 0),
    "lower bounds": (YEARS, lambda y: y[:4], 0),
    "lower bounds as numbers": (YEARS, lambda y: f"{y[:4]}.0", 0),
    "upper bounds": (YEARS, lambda y: y[5:], 0),
    "middles": (YEARS, lambda y: str(int(y[:4]) + 1.5), 0),
    "ranges that no level has": (
        YEARS,
        lambda y: f"{1940 + (int(y[:4]) - 1940) // 12 * 12}-{1951 + (int(y[:4]) - 1940) // 12 * 12}",
        1,
    ),
    "lower bounds of such ranges": (YEARS, lambda y: str(1940 + (int(y[:4]) - 1940) // 12 * 12), 1),
    "German dates": (DAYS, lambda d: f"{d[8:]}.{d[5:7]}.{d[:4]}", 0),
    "American dates": (DAYS, lambda d: f"{int(d[5:7])}/{int(d[8:])}/{d[:4]}", 0),
    "dates without dashes": (DAYS, lambda d: d.replace("-", ""), 0),
    "midnights": (DAYS, lambda d: f"{d} 00:00:00", 0),
    "months": (DAYS, lambda d: f"{d[5:7]}/{d[:4]}", 1),
    "decades by their lower bounds": (AGES, lambda a: str(int(a) // 10 * 10), 1),
    "ages as decimals": (AGES, lambda a: f"{a}.0", 0),
    "ages as they are": (AGES, lambda a: a, 0),
    "capitals": (WORDS, lambda w: None if w is None else w.upper(), 0),
    "trailing blanks and another dash": (WORDS, lambda w: None if w is None else w.replace("–", "-") + "  ", 0),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_labels_are_read_however_they_are_written(spelling):
    levels, write, level = SPELLINGS[spelling]
    found, same = read(levels, write)
    assert (found.level, found.share) == (level, pytest.approx(1))
    assert same.all()


def test_what_is_no_label_is_not_read():
    for other in (lambda z: f"?{z}", lambda z: "x", lambda z: None):
        found, _ = read(ZIPS, other)
        assert found is None


def test_part_of_a_copy_is_read_as_it_is_written():
    """Few rows, or one place only: frequencies say nothing, and values stay what they are."""
    for values in (["20"], ["20", "30"], ["20", "30", "40", "50", "60", "70"]):
        column = Column(pa.array(values), np.full(len(values), 3))
        assert read_column(column, AGES, np.full(60, 10.0)).level == 0


@given(st.integers(0, 500), st.integers(0, 500))
def test_ranges_are_read_by_both_ends(low, more):
    high = low + more
    texts = [f"{low}-{high}", f"[{low}, {high + 1})", f" {low} – {high}", f"{low}.0 to {high}.0", f"[{low};{high}]"]
    ends = bounds(pa.array(texts))
    assert ends[0].tolist() == [low] * 5
    assert ends[1].tolist() == [high] * 5


def test_normal_forms():
    assert plain(pa.array([" A  b\u2013C ", "30.0", "3.50", None])).to_pylist() == ["ab-c", "30", "3.5", None]
    assert unmasked(pa.array(["331**", "331XX", "331", "x", "sex", "**"])).to_pylist() == [
        "331",
        "331",
        "331",
        "x",
        "sex",
        "",
    ]


# Columns.


@pytest.fixture(scope="module")
def of():
    random = np.random.default_rng(52)
    sizes = np.maximum(5, random.lognormal(2.5, 0.8, 1_200)).astype(int)
    return marked(random, NAMES, classes=1_200, pool=100, sizes=sizes, collusion=2, length=120)


@pytest.fixture(scope="module")
def leak(of):
    return as_table(rows_of(of, 1).T)


def coded(table, columns, seed, names=None):
    """Other codes for a column's values, one for one; `names` are those of the codes, without which the labels change
    places."""
    random = np.random.default_rng(seed)
    for column in columns:
        old = table[column].combine_chunks().dictionary_encode(null_encoding="encode")
        new = old.dictionary if names is None else pa.array([f"{names}{i}" for i in range(len(old.dictionary))])
        values = new.take(pa.array(random.permutation(len(new)))).take(old.indices)
        table = table.set_column(table.column_names.index(column), column, values)
    return table


DISGUISES = {
    "renamed": lambda t: t.rename_columns(["a", "b", "c"]),
    "renamed and in another order": lambda t: t.select(["sex", "place", "year"]).rename_columns(["a", "b", "c"]),
    "names exchanged": lambda t: t.rename_columns(["year", "sex", "place"]),
    "in capitals, with blanks": lambda t: t.rename_columns([" PLACE", "Year ", "SEX"]),
    "other columns beside": lambda t: t.append_column("n", pa.array(np.arange(len(t)) % 97)).rename_columns(
        list("wxyz")
    ),
    "places coded": lambda t: coded(t, ["place"], 1, "code "),
    "all coded": lambda t: coded(t, COLUMNS, 2, "code "),
    "all coded and renamed": lambda t: coded(t, COLUMNS, 3, "code ").rename_columns(["a", "b", "c"]),
    "labels that changed places": lambda t: coded(t, ["place"], 4),
    "labels that changed places in all columns": lambda t: coded(t, COLUMNS, 5),
    "labels that changed places in all columns, otherwise": lambda t: coded(t, COLUMNS, 6),
    "half of the rows, renamed": lambda t: t.take(np.arange(0, len(t), 2)).rename_columns(["a", "b", "c"]),
}


def test_some_cells_hidden_by_the_top_label_do_not_hide_the_column():
    above = [["331**", "332**", "341**"], ["33***", "33***", "34***"], ["*", "*", "*"]]
    texts, records = pa.array(["331**", "332**", "341**", "*"]), np.array([300, 200, 100])
    some = read_column(Column(texts, np.array([200, 140, 60, 200])), above, records)
    assert (some.level, some.codes[3]) == (0, -1)
    coarser = read_column(Column(pa.array(["33***", "34***", "*"]), np.array([300, 80, 200])), above, records)
    assert coarser.level == 1
    assert read_column(Column(pa.array(["*"]), np.array([600])), above, records).level == 2


def test_values_made_up_within_labels_are_read():
    ranges, masks = [["1960-1963", "1964-1967", "1968-1971"]], [["331**", "332**", "341**"]]
    records = np.array([300, 200, 100])
    years = pa.array([str(year) for year in range(1960, 1973)])
    found = read_column(Column(years, np.repeat([75, 50, 25, 1], [4, 4, 4, 1])), ranges, records)
    assert found.codes.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [-1]
    zips = pa.array(["33107", "33199", "33201", "34100", "99999"])
    found = read_column(Column(zips, np.array([150, 150, 200, 100, 2])), masks, records)
    assert found.codes.tolist() == [0, 0, 1, 2, -1]


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_disguised_copy_names_its_recipient(of, leak, disguise):
    found = trace_file([of], DISGUISES[disguise](leak), 1e-6)
    assert (found.accused, set(found.columns)) == (("bob",), set(COLUMNS))


def test_columns_that_look_alike_are_told_by_the_others(of, leak):
    """A column with the same labels, as frequent, that has nothing to do with the rest, stands first."""
    random = np.random.default_rng(53)
    alike = leak["year"].take(pa.array(random.permutation(len(leak))))
    found = match_columns(
        of, LeakedTable(pa.table({"a": alike, "b": leak["place"], "c": leak["year"], "d": leak["sex"]}))
    )
    assert (dict(found.columns), found.by["year"]) == ({"place": "b", "year": "c", "sex": "d"}, "values")


def test_what_was_matched_is_told_and_what_was_not_is_told_first(of, leak):
    found = trace_file([of], leak.rename_columns(["region", "year", "sex"]), 1e-6)
    assert found.columns == {"place": "region", "year": "year", "sex": "sex"}
    assert "'region' was read as 'place' (by its values)" in found.notes[0]
    odd = leak.set_column(0, "place", pa.array([f"?{i}" for i in range(len(leak))]))
    notes = trace_file([of], odd, 1e-6).notes
    assert notes[0].startswith("WARNING: release r00000001 has 'place', but no column of the file was matched to it.")


def test_a_map_decides(of, leak):
    strange = leak.rename_columns(["place", "b", "sex"]).append_column(
        "year", leak["year"].take(pa.array(np.arange(len(leak))[::-1]))
    )
    found = trace_file([of], strange, 1e-6, {"b": "year"})
    assert (found.accused, found.columns["year"]) == (("bob",), "b")
    for columns, word in (
        ({"q": "year"}, "no column 'q'"),
        ({"b": "q"}, "No release has a column 'q'"),
        ({"b": "year", "year": "year"}, "Two columns are mapped to 'year'"),
    ):
        with pytest.raises(OptionError, match=word):
            trace_file([of], strange, 1e-6, columns)


def test_nothing_read_is_an_error_and_no_verdict(of, leak):
    for table, word in (
        (pa.table({"x": ["u", "v"] * 50}), "no column has its values"),
        (leak.set_column(0, "place", pa.array(["*"] * len(leak))).select(["place"]), "its copies do not differ there"),
    ):
        with pytest.raises(DataError, match=word) as fault:
            trace_file([of], table, 1e-6)
        assert "map them" in str(fault.value)


def test_an_unrelated_table_is_refused(of):
    random = np.random.default_rng(54)
    table = pa.table({"colour": random.choice(["red", "blue", "green"], 3_000), "n": random.integers(0, 50, 3_000)})
    with pytest.raises(DataError, match="cannot be compared with any release"):
        trace_file([of], table, 0.05)


def unrelated(seed=57, rows=4_000):
    """As many values in each column as the release has, about as frequent, and nothing else in common."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "shop": [f"s{i}" for i in random.integers(0, 40, rows)],
            "week": [f"w{i}" for i in random.integers(0, 20, rows)],
            "paid": random.choice(["cash", "card", "bill"], rows),
        }
    )


def test_a_table_that_only_has_as_many_values_is_refused(of):
    with pytest.raises(DataError, match="their values combine differently"):
        trace_file([of], unrelated(), 1e-6)


def test_one_name_in_common_brings_no_others_along(of, leak):
    table = unrelated(58)
    years = leak["year"].take(pa.array(np.random.default_rng(59).integers(0, len(leak), len(table))))
    found = trace_file([of], table.append_column("year", years), 1e-6)
    assert (found.accused, found.columns) == ((), {"year": "year"})
    assert any("'shop' looks like 'place'" in note and "was not used" in note for note in found.notes)


def test_numbers_are_not_ends_of_ranges_because_of_a_name(of):
    random = np.random.default_rng(60)
    ranges = [f"{low}-{low + 3}" for low in range(1950, 2030, 4)]
    with_ranges = type(of)(**{**vars(of), "above": {**of.above, "year": [ranges, ["*"] * 20]}})
    table = pa.table({"year": random.integers(1, 2100, 3_000)})
    with pytest.raises(DataError, match="no column has its values"):
        trace_file([with_ranges], table, 1e-6)


def test_columns_are_told_for_each_release_and_for_the_one_that_fits_best(of, leak):
    random = np.random.default_rng(61)
    other = marked(random, NAMES, release="r00000002", classes=600, pool=50, covers=5)
    labels = {c: [[f"{c} {label}" for label in level] for level in levels] for c, levels in other.above.items()}
    sex = {"sex": other.above["sex"]}
    other = type(other)(**{**vars(other), "above": {**labels, **sex}})
    found = trace_file([other, of], leak.rename_columns(["a", "b", "sex"]), 1e-6)
    assert found.accused == ("bob",)
    assert found.columns == {"place": "a", "year": "b", "sex": "sex"}
    by_release = found.to_dict()["columns_by_release"]
    assert by_release["r00000001"] == found.columns
    assert by_release.get("r00000002", {}).keys() <= {"sex"}


def test_a_map_is_never_overridden_by_values(of, leak):
    """The column mapped holds something else; another looks like it."""
    strange = leak.rename_columns(["real", "year", "sex"]).append_column("odd", pa.array(["?"] * len(leak)))
    with pytest.raises(OptionError, match="'odd' is mapped to 'place', but none of its values is a label"):
        trace_file([of], strange, 1e-6, {"odd": "place"})
    swapped = leak.append_column("copy", leak["year"]).set_column(1, "year", coded(leak, ["year"], 6)["year"])
    found = trace_file([of], swapped, 1e-6, {"year": "year"})
    assert found.columns["year"] == "year"


def test_a_map_may_be_right_for_one_release_only(of, leak):
    other = marked(np.random.default_rng(62), NAMES, release="r00000002", classes=600, pool=50, covers=5)
    labels = {c: [[f"{c} {label}" for label in level] for level in levels] for c, levels in other.above.items()}
    other = type(other)(**{**vars(other), "above": labels})
    found = trace_file([other, of], leak.rename_columns(["a", "year", "sex"]), 1e-6, {"a": "place"})
    assert (found.accused, found.columns["place"]) == (("bob",), "a")


def test_names():
    assert same_name(["Zip ", "yob", "x"], ["zip", "yob", "sex"]) == {"yob": "yob", "zip": "Zip "}
    assert same_name(["zip", "ZIP"], ["Zip"]) == {}


def test_matching_does_not_depend_on_anybodys_marks(of, leak):
    """Who holds what is exchanged, and the match is the same."""
    random = np.random.default_rng(55)
    held = random.random(of.holds.shape) < 0.5
    other: Marked = type(of)(**{**vars(of), "holds": held})
    disguised = coded(leak, ["place"], 5, "k").rename_columns(["a", "b", "c"])
    one, two = (match_columns(m, LeakedTable(disguised)) for m in (of, other))
    assert (one.columns, one.by, one.passed) == (two.columns, two.by, two.passed)
    assert all((one.readings[c].codes == two.readings[c].codes).all() for c in COLUMNS)

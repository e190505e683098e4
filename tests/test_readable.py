"""Results print as a few lines, and as tables in notebooks; what comes from data cannot break either."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import veilmark
from veilmark import Ola, Study
from veilmark.mark.request import Copy
from veilmark.readable import MOST_ROWS, Grid, Readable, Summary, count
from veilmark.trace.accuse import Suspect, Traced
from veilmark.workbench.release import Released


@dataclass(frozen=True)
class Plain(Readable):
    """A result without a summary of its own."""

    numbers: np.ndarray
    name: str = "x"

    def to_dict(self):
        return {"name": self.name, "k": 3, "rate": 0.123456, "by": {"a": 1, "b": 2}, "rows": [["secret"]], "none": None}


def test_without_a_summary_the_plain_values_are_shown():
    shown = str(Plain(np.arange(3)))
    assert shown == "Plain\n\n      value\nname  x\nk     3\nrate  0.1235\n\nby  value\na       1\nb       2"
    assert repr(Plain(np.arange(3))) == "Plain(Plain)"
    assert "secret" not in shown + Plain(np.arange(3))._repr_html_()


def test_a_table_of_text():
    grid = Grid(("column", "count", "share"), [("age", 12345, "1.0%"), ("a long name", 7, "-")], "Title")
    assert Summary("Head.", (grid,), ("Note.",)).text() == (
        "Head.\n\nTitle\ncolumn        count  share\nage          12,345   1.0%\na long name       7      -\n\nNote."
    )


def test_long_tables_are_cut_and_that_is_said():
    grid = Grid(("n",), [(i,) for i in range(100)])
    text = Summary("Head.", (grid,)).text()
    assert text.endswith(f"… and {100 - MOST_ROWS} more")
    assert text.count("\n") == MOST_ROWS + 3
    assert f"… and {100 - MOST_ROWS} more" in Summary("Head.", (grid,)).html()


class Cells(HTMLParser):
    """The cells of the tables in a page, and the elements in it."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.cells, self.tags, self._in = [], set(), False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "td":
            self.cells.append("")
            self._in = True

    def handle_endtag(self, tag):
        self._in = self._in and tag != "td"

    def handle_data(self, text):
        if self._in:
            self.cells[-1] += text


NASTY = st.text(max_size=20) | st.sampled_from(["<script>alert(1)</script>", "a\nb", "\x1b[31mred", "&amp;", '"'])


@given(st.lists(st.tuples(NASTY, NASTY), min_size=1, max_size=5), NASTY)
def test_whatever_comes_from_data_stays_text(rows, note):
    summary = Summary("Head.", (Grid(("a", "b"), rows),), (note,))
    page = Cells(summary.html())
    assert page.tags <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "small"}
    assert len(page.cells) == 2 * len(rows)
    table = Summary("Head.", (Grid(("a", "b"), rows),)).text().removeprefix("Head.\n\n")
    assert len(table.split("\n")) == 1 + len(rows)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", table)


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [(1, "record", "1 record"), (2000, "record", "2,000 records"), (3, "class", "3 classes")],
)
def test_counts(number, noun, said):
    assert count(number, noun) == said


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(1)
    columns = {
        "age": rng.integers(20, 60, 300),
        "sex": rng.choice(["f", "m"], 300),
        "dx": rng.choice(list("abcd"), 300),
    }
    weights = {"role": "sensitive", "weights": {"a": 0.9, "default": 0.1}}
    roles = {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}}, "sex": "quasi", "dx": weights}
    return Study.of(pa.table(columns), roles)


@pytest.fixture(scope="module")
def results(study):
    from veilmark.workbench.compare import CompareRequest, compare_methods

    release = study.anonymize(Ola(k=5))
    return {
        "measures": study.measure(),
        "scores": study.score(),
        "ranking": study.rank([study.data.slice(0, 50), study.data.slice(0, 100)], draws=5),
        "breach": study.breach(study.data.slice(0, 20)),
        "record": study.score().worst[0],
        "release": release,
        "applied": study.apply(release.plan.recoding),
        "utility": study.utility(release.table()),
        "attacked": study.attack(release.table(), targets=50),
        "compared": compare_methods(study, ["ola", "anatomy"], CompareRequest(5), ["qicorr"], targets=50),
        "released": Released("r1", None, (Copy("ada", "ada.csv", 90, 3, 9, 1, 5),), {}, {}, {}, {}, 4, folder="copies"),
        "traced": Traced(("ada",), (Suspect("ada", "r", 9.0, 1e-9, "exact", None, ({"decoy": "SECRET"},)),), 1e-6, 1),
    }


SAID = {
    "measures": r"^300 records in \d+ classes\. k = \d+: ",
    "scores": r"^Scores of 300 of the source's 300 records\.",
    "ranking": r"^2 candidates, least misuseable first\.",
    "breach": r"^20 records leaked\.",
    "record": r"^tkl ",
    "release": r"^ola: 300 records in \d+ classes, 0 suppressed\. k = \d+, in records\.",
    "applied": r"^A recoding applied: k = \d+, in records\.",
    "utility": r"^The release has 300 of the source's 300 records\.",
    "attacked": r"^Attacks on the release: 300 rows in \d+ classes, from 300 persons\.",
    "compared": r"anatomy +1 \(you asked for 5\)",
    "released": r"^Release r1: 1 copies, 4 records suppressed\.",
    "traced": r"^Named: ada\.",
}


@pytest.mark.parametrize("name", SAID)
def test_every_result_prints_a_few_lines_and_a_table(results, name):
    result = results[name]
    text, page = str(result), result._repr_html_()
    assert re.search(SAID[name], text)
    assert text.count("\n") < 40
    assert text.count("\n") > 1 or name == "record"
    for shown in (text, page, repr(result)):
        assert "array(" not in shown
        assert "SECRET" not in shown
        assert "object at 0x" not in shown
    assert "\n" not in repr(result)
    assert "<table>" in page
    assert html.unescape(page)


def test_measures_say_who_is_unique(study):
    assert "k = 1: 1 is unique." in str(study.measure(pa.table({"age": [1, 2, 2], "sex": ["f"] * 3, "dx": ["a"] * 3})))
    alike = study.measure(pa.table({"age": [2, 2, 2], "sex": ["f"] * 3, "dx": ["a"] * 3}))
    assert "k = 3: every record shares its class with at least 2 others." in str(alike)


def test_the_public_names_are_what_dir_shows():
    names = {name for name in dir(veilmark) if not name.startswith("__")}
    assert names == set(veilmark.__all__)

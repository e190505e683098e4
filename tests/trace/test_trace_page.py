"""The report of a trace: what it says, that it escapes what comes from data, and that it needs no network."""

from __future__ import annotations

import re
import stat
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marked_release import QUASI, make_release
from veilmark import __version__
from veilmark.errors import OptionError
from veilmark.ledger.files import digest
from veilmark.readable import probability
from veilmark.report.trace_page import Exhibit, all_tested, in_words, standing, trace_page
from veilmark.trace.accuse import Suspect, Traced
from veilmark.workbench.ledger import verify
from veilmark.workbench.trace import trace
from veilmark.workbench.trace_report import check_report_path, write_trace_report

VOID = {"meta", "br"}
TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "h1",
    "h2",
    "h3",
    "p",
    "div",
    "strong",
    "br",
    "b",
    "i",
    "table",
}
TAGS |= {"thead", "tbody", "tr", "th", "td", "code", "ul", "li", "sup"}
EXHIBIT = Exhibit("leak", [("leak.csv", 1234, "ab" * 32)], "ledger.db", 3, "cd" * 32, None, "2026-01-02 03:04 UTC")


class Page(HTMLParser):
    """Reads a page strictly: every tag is closed, in turn."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.cells = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "td":
            self.cells.append(data)


def traced(p, evidence=(), name="bob", tail="exact", beside=None):
    suspects = (
        Suspect(name, "r00000001", 0.0, p, tail, beside, tuple(evidence)),
        Suspect("ada", "r00000001", 0, 1.0, "exact"),
    )
    return Traced((name,) if p <= 1e-6 else (), suspects, 1e-6, 2, ("A note.",))


def test_who_is_named_and_why():
    evidence = [
        {"kind": "decoy class", "zip": "130**", "age": None},
        {"kind": "cover class", "held_by": 2, "zip": "14***"},
    ]
    text = trace_page(traced(3.14e-9, evidence), EXHIBIT)
    page = Page(text)
    assert "<strong>Named: bob</strong>" in text
    assert "3.2e-09: 1 in 310,000,000" in text
    assert {"130**", "14***", "leak.csv", "1,234"} <= set(page.cells)
    for said in (
        "ab" * 32,
        "cd" * 32,
        f"veilmark {__version__}",
        "2026-01-02 03:04 UTC",
        "A note.",
        "2 recipients tested",
    ):
        assert said in text
    assert "Confidential" in text


def test_how_many_were_tested_and_why_evidence_names_nobody():
    held = {"kind": "cover class", "held_by": 2}
    weak = [Suspect("ada", r, 0, p, "exact", evidence=e) for r, p, e in (("r1", 0.2, (held,)), ("r2", 1.0, (held,)))]
    chance = Suspect("bob", "r2", 0, 1.0, "exact", evidence=({"kind": "decoy claimed"},))
    found = Traced((), (*weak, chance, Suspect("bob", "r1", 0, 1.0, "exact")), 1e-6, 4)
    assert all_tested(found) == "2 recipients tested in 2 releases"
    said = [standing(s, 1e-6) for s in found.suspects]
    assert said == ["above the limit", "seen also in what others hold", "no more than by chance", ""]
    assert standing(weak[0], 0.5) == "named"
    assert {*said[:3]} <= set(Page(trace_page(found, EXHIBIT)).cells)


def test_nobody_is_named():
    text = trace_page(traced(0.2, [{"kind": "decoy class", "zip": "HIDDEN"}]), EXHIBIT)
    Page(text)
    assert "Nobody is named." in text
    assert "HIDDEN" not in text
    assert "Confidential" not in text


def test_bounds_and_a_broken_ledger_are_said():
    broken = Exhibit("claims", [("a", 1, "d"), ("b", 2, "e")], "l", 3, "h", "entry 2 was changed", "now")
    text = trace_page(traced(1e-9, tail="chernoff", beside="cyd"), broken)
    assert "together with cyd" in text
    assert "at most 1e-09" in text
    assert "Its chain is broken: entry 2 was changed." in text
    assert "Trace of a and 1 more" in text
    assert "Many small agreements" in text


@given(st.text(), st.dictionaries(st.text(min_size=1), st.one_of(st.none(), st.text(), st.integers()), max_size=3))
def test_whatever_comes_from_data_is_escaped(name, piece):
    hostile = "</td><script>alert(1)</script>"
    evidence = [{"kind": hostile, hostile: hostile, **piece}]
    exhibit = Exhibit("leak", [(name + hostile, 1, hostile)], hostile, 1, hostile, hostile, hostile)
    text = trace_page(traced(1e-9, evidence, name=name + hostile), exhibit)
    page = Page(text)
    assert "script" not in page.tags
    assert set(page.tags) <= TAGS


def test_the_page_needs_no_network():
    text = trace_page(traced(1e-9), EXHIBIT)
    assert not re.search(r"(src|href|url|@import|https?:)\b\s*[=(:]", text.split("<body>")[1])
    assert "default-src 'none'" in text


@given(st.floats(1e-290, 1.0))
def test_probabilities_never_look_smaller_than_they_are(p):
    assert p * (1 - 1e-5) <= float(probability(p)) <= p * 1.11
    said = in_words(p)
    if exponent := re.fullmatch(r"1 in 10<sup>(\d+)</sup>", said):
        shown = 10.0 ** -int(exponent[1])
    else:
        top, _, bottom = said.partition(" in ")
        shown = int(top) / int(bottom.replace(",", ""))
    assert p * (1 - 1e-5) <= shown <= min(1.0, p * 11)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("page"))


def test_the_report_of_a_real_trace(case, tmp_path):
    found = trace(case.ledger, case.key, file=case.copy("dan"), false_accusation=1e-3)
    report = tmp_path / "report.html"
    write_trace_report(found, case.copy("dan"), "leak", case.ledger, report)
    text = report.read_text()
    page = Page(text)
    assert "<strong>Named: dan</strong>" in text
    assert digest(case.copy("dan")) in text
    assert verify(case.ledger).head in text
    assert {row[c] for row in case.decoys("dan") for c in QUASI} <= set(page.cells)
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_where_a_report_cannot_be_written(case, tmp_path):
    with pytest.raises(OptionError, match=r"ends in \.html"):
        check_report_path(tmp_path / "report.txt", case.copy("dan"))
    with pytest.raises(OptionError, match="no folder"):
        check_report_path(tmp_path / "nowhere" / "r.html", case.copy("dan"))
    page = tmp_path / "leak.html"
    page.write_text("zip\n")
    with pytest.raises(OptionError, match="one of the input files"):
        check_report_path(page, page)

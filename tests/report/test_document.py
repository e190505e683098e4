"""The report's page: what it says, that it escapes what comes from data, that it needs no network, and its JSON."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.attack import AttackResult
from veilmark.errors import VeilmarkError
from veilmark.ledger import Release, Verification
from veilmark.ledger.chain import Entry
from veilmark.privacy.measures import Measures
from veilmark.privacy.require import Requirement
from veilmark.privacy.unchanged import Unchanged
from veilmark.report import document
from veilmark.report.document import Book, CopyCheck, File, Promise, Report, Shared, Slices, Subject, findings, render
from veilmark.study.study import Study
from veilmark.workbench.attack import Attacked

HOSTILE = "</td></script><script>alert(1)</script>&\"'{{ 7 * 7 }}"
VOID = {"meta", "br", "img"}
TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "nav",
    "main",
    "section",
    "h1",
    "h2",
    "h3",
    "p",
    "a",
}
TAGS |= {"ol", "ul", "li", "span", "div", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "img"}
TAGS |= {"strong", "i", "b", "code", "dl", "dt", "dd", "sub", "sup", "br", "script"}


class Page(HTMLParser):
    """Reads a page strictly: every tag is closed, in turn."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.cells, self.attributes, self.json = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []
        assert set(self.tags) <= TAGS

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            assert attrs == [("type", "application/json"), ("id", "veilmark")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.json.append(data)
        elif "table" in self.open:
            self.cells.append(data)

    @property
    def content(self):
        assert len(self.json) == 1
        return json.loads(self.json[0])


@pytest.fixture(autouse=True)
def _no_charts(monkeypatch):
    """Charts have tests of their own, and take a while to draw."""
    monkeypatch.setattr(document, "_picture", lambda chart: "data:image/svg+xml;base64,")


def study(name="age", source="people.csv"):
    roles = {name: "quasi", f"{name} id": "direct", "illness": {"role": "sensitive", "distance": "ordered"}}
    return Study.of(source, roles)


@cache
def measured(k=1, name="age", records=4, persons=None):
    frame = pa.table({name: ["1"] * k + ["2"] * records, "illness": ["3", "4"] * k + ["4"] * (records - k)})
    found: Measures = Study.of(frame, {name: "quasi", "illness": "sensitive"}).measure()
    return replace(found, persons=persons)


def plain(name="age", **more):
    return Report("A title", "2026-01-02 03:04 UTC", Subject.of(study(name), {name: (4, 2, 1)}), measured(), **more)


def attacked(success=0.6, control=0.2, name="illness"):
    guess = AttackResult(
        success, control, (success - 0.1, success + 0.1), 50, {"attributes": {name: {"success": 0.6, "control": 0.2}}}
    )
    linkage = AttackResult(0.1, 0.01, (0.0, 0.2), 50, {"population": 80, "min_linked": 3})
    return Attacked("r.csv", 50, 50, 5, {"bk": guess, "linkage": linkage}, 1, 1, {name: 2.5}, (f"Of {name}.",))


def book(name="ada", copies=None, fault=None, models=()):
    public = {
        "study": "study.yaml",
        "parameters": {"method": "ola", "k": 5, "models": list(models), "collusion": 2, "risk": [1.1, 1.5], "x": None},
        "recipients": [{"name": name, "file": "ada.csv", "records": 90, "agreement": "DUA-7"}],
    }
    history = tuple(Entry(i, "2026-01-01T00:00:00Z", kind, "r1", {}, False, "h") for i, kind in enumerate(["started"]))
    release = Release(
        "r1", "published", "2026-01-01T00:00:00Z", public, "/secret/place", "h", {"ada.csv": "ab"}, history
    )
    return Book("ledger.db", Verification(3, "cd" * 32, 2 if fault else None, fault), release, copies)


def lines(report):
    return {text: status for status, text in findings(report)}


def test_the_source_alone():
    report = plain()
    page = Page(render(report))
    assert page.content == report.to_dict()
    assert page.content["release"] is page.content["ledger"] is page.content["attacks"] is None
    assert "decoys" not in page.content
    assert {"4 → 2 → 1", "ordered"} <= set(page.cells)
    text = render(report)
    for absent in ("What was lost", "Attacks that were tried", "With whom", "Confidential", "AnonTokens", "M-Score"):
        assert absent not in text
    assert "Ordered distance" in text
    assert "Hierarchical distance" not in text


def test_sections_appear_with_what_they_are_about():
    shared = Shared("out", (File("qi.csv", 5, "ef" * 32),), (), slices=Slices(6, 2, 3, True, GROUPS))
    text = render(plain(shared=shared, attacked=attacked(), book=book(), decoys={"ada": [{"who": "V7"}], "bob": []}))
    page = Page(text)
    for said in ("With whom", "DUA-7", "Confidential", "1.1 to 1.5", "Tardos", "A globally optimal", "El Emam", "V7"):
        assert said in text
    assert {"salary, poverty", "qi.csv", "ef" * 32, "10.0%", "V7"} <= set(page.cells)
    assert "/secret/place" not in text
    assert page.content["confidential"] is True
    assert page.content["decoys"] == {"ada": [{"who": "V7"}], "bob": []}


GROUPS = ({"attributes": ["salary", "poverty"], "slices": 2, "smallest": 3},)


def test_every_definition_has_its_reference_and_every_link_its_target():
    text = render(plain(attacked=attacked(), book=book()))
    links = set(re.findall(r'href="#([^"]+)"', text))
    targets = set(re.findall(r'id="([^"]+)"', text))
    assert links <= targets
    assert {t for t in targets if t.startswith("ref-")} <= links


def test_the_page_needs_no_network():
    text = render(plain(attacked=attacked(), book=book()))
    assert "default-src 'none'" in text
    for name, value in Page(text).attributes:
        if name in ("src", "href"):
            assert value.startswith(("#", "data:image/svg+xml;base64,"))
    assert not re.search(r"https?:|url\(|@import|\bon\w+=", text.split("</style>")[1])


@settings(max_examples=examples(10))
@given(st.text(max_size=20), st.text(max_size=20))
def test_whatever_comes_from_data_is_escaped(one, other):
    name, value = one + HOSTILE, HOSTILE + other
    promise = Promise({"model": "l", "attribute": name, "l": 2}, 3, True, value)
    copies = (CopyCheck(value, name, "as published", 1, 1, 1, (promise,)),)
    shared = Shared(
        value, (File(name, 1, value),), (name,), (value,), measured(2), required=(Requirement(name, 1, 2, True),)
    )
    report = replace(
        plain(name, shared=shared, attacked=attacked(name=name), book=book(value, copies), notes=(value,)), title=name
    )
    page = Page(render(replace(report, decoys={name: [{value: name, "x": None}]})))
    assert page.tags.count("script") == 1
    assert "49" not in "".join(c for c in page.cells if "7 * 7" in c)
    shown = page.content["ledger"]["copies"][0]
    assert shown["file"].encode("utf-8", "replace") == value.encode("utf-8", "replace")


def test_json_has_a_form_for_every_number():
    found = measured()
    endless = replace(found.attributes["illness"], t=float("inf"), beta_basic=float("nan"))
    report = replace(plain(), measures=replace(found, attributes={"illness": endless}))
    content = Page(render(report)).content
    assert content["measures"]["t"]["illness"] is None
    assert content == report.to_dict()


# The summary.


def test_records_are_not_taken_for_persons():
    files = (File("r.csv", 1, "ab"),)
    of_persons = replace(plain(), measures=measured(persons=3))
    shared = Shared("r.csv", files, (), measures=measured(3))
    assert "has 3 records, measured" in " ".join(lines(plain(shared=shared)))
    assert "perhaps fewer persons" in " ".join(lines(replace(of_persons, shared=shared)))
    told = replace(shared, measures=measured(3, persons=3))
    assert "has 3 persons, measured" in " ".join(lines(replace(of_persons, shared=told)))


def test_what_fails_is_said_first_and_in_words():
    required = (Requirement("k", 5, 3, False), Requirement("l.illness", 1, 2, True))
    shared = Shared("r.csv", (), (), ("name",), measured(3), agreed=False, required=required)
    broken = (
        CopyCheck("a.csv", "ada", "changed"),
        CopyCheck("b.csv", "bob", "as published", 9, 3, 2, (Promise({"model": "k", "k": 5}, 2, False),)),
    )
    report = plain(shared=shared, book=book(copies=broken, fault="entry 2 was changed"))
    failing = {text for text, status in lines(report).items() if status == "fails"}
    assert len(failing) == 6
    for said in ("direct identifiers name", "other numbers", "5 was required", "entry 2", "1 of 2 copies", "by b.csv"):
        assert any(said in text for text in failing), said
    text = render(report)
    assert text.count("✗ fails") == 6
    assert "not met" in text
    assert "is\nbroken: entry 2 was changed" in text


def test_what_holds():
    shared = Shared("r.csv", (), (), measures=measured(3), agreed=True)
    copies = (CopyCheck("a.csv", "ada", "as published", 9, 3, 5, (Promise({"model": "k", "k": 5}, 5, True),)),)
    found = lines(plain(shared=shared, book=book(copies=copies)))
    assert "fails" not in found.values()
    assert list(found.values()).count("holds") == 6


def unchanged_of(**uniques):
    found = {name: Unchanged(n, 20, sample) for name, (n, sample) in uniques.items()}
    return plain(shared=Shared("r.csv", (), (), measures=replace(measured(3), unchanged=found)))


def test_columns_published_unchanged():
    worst = "records of the release are unique once amount, which is published unchanged, is known"
    one = unchanged_of(amount=(7, None), illness=(0, None))
    assert f"7 of 20 {worst} beside the quasi-identifiers." in lines(one)
    assert '<th scope="row">amount</th>' in render(one)
    several = unchanged_of(amount=(14, 9), illness=(1, None))
    said = f"About 14 of 20 {worst} beside the quasi-identifiers. 1 more column also makes records unique."
    assert said in lines(several)
    assert "No record of the release is unique by its quasi-identifiers and one more column." in lines(
        unchanged_of(illness=(0, None))
    )


def test_limits_that_missing_values_meet():
    found = replace(measured(3), missing_counted={"illness": {"l": 2, "t": 1}})
    text = " ".join(render(plain(shared=Shared("r.csv", (), (), measures=found))).split())
    assert "2 classes meet the l above and 1 class meets the t above only because a missing value counts" in text


@pytest.mark.parametrize("where", ["release", "copy", "study"])
def test_a_published_column_without_a_role_fails_first(where):
    names = ("income",)
    shared = Shared("r.csv", (), (), unnamed=names if where == "release" else (), measures=measured(3))
    copies = (CopyCheck("a.csv", "ada", "as published", 9, 3, 5, (), names if where == "copy" else ()),)
    made = plain(shared=shared, book=book(copies=copies))
    if where == "study":
        made = plain()
        subject, found = replace(made.subject, unnamed="other"), replace(made.measures, unseen=names)
        made = replace(made, subject=subject, measures=found)
    status, text = findings(made)[0]
    assert status == "fails"
    assert "role" in text
    assert "income" in text
    assert '<li class="fails">' in render(made)


@pytest.mark.parametrize(
    ("success", "said"),
    [(0.6, "Better than guessing: bk (+40.0 points, a lot)."), (0.25, "No attack is better than guessing.")],
)
def test_attacks_in_words(success, said):
    found = " ".join(lines(plain(attacked=attacked(success))))
    assert said in found
    assert "at least 3 of 80 people" in found


@pytest.mark.parametrize("model", document.PROMISES)
def test_promises_in_words(model):
    limit = {"model": model, "attribute": "illness", "k": 5, "l": 3, "c": 4, "t": 0.2, "distance": "equal"}
    limit |= {"alpha": 0.5, "beta": 2, "delta": 1, "low": 0.1, "high": 0.9}
    said = Promise(limit, None, None).text
    assert said != model
    assert "{" not in said


def test_an_unknown_promise_keeps_its_name():
    assert Promise({"model": "m-invariance"}, None, None).text == "m-invariance"


def test_without_jinja(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(VeilmarkError, match="extra `report`"):
        render(plain())


def test_charts_are_pictures_in_the_page(monkeypatch):
    monkeypatch.undo()
    text = render(plain())
    assert text.count('<img src="data:image/svg+xml;base64,PHN2Zy') == 1
    assert "https" not in text

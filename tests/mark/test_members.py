"""Who of the source is in the population, why decoys are too few, and what is advised: compared with looking at each."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mark.test_plan import KEY, linked_classes, wide
from register import Register, engine, town
from strength import examples
from veilmark.cli.spelling import spelled
from veilmark.errors import OptionError
from veilmark.mark.advice import _remedy
from veilmark.mark.members import Recognized, recognize, shared
from veilmark.mark.plan import plan_marks
from veilmark.mark.request import ReleaseRequest
from veilmark.trace.accuse import best_probability
from veilmark.trace.columns import same_name
from veilmark.veil.ola import Ola
from veilmark.workbench.feasible import feasible
from veilmark.workbench.release import release

NAMES = ("ada", "bob", "cyd", "dan")
people = st.lists(
    st.tuples(st.sampled_from(["1", "2", "3", "", None]), st.sampled_from(["x", "y", None]), st.sampled_from("uv")),
    max_size=12,
)


def table(rows):
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table({c: pa.array(v, pa.string()) for c, v in zip(("id", "name", "q"), columns, strict=True)})


@settings(max_examples=examples(60))
@given(people, people, st.sampled_from([("id",), ("id", "name")]))
def test_persons_are_recognized_as_one_by_one(source, population, identity):
    def who(row):
        own = row[: len(identity)]
        return own if all(own) else None

    theirs = engine().open(table(population))
    found, counted = recognize(engine().open(table(source)), theirs, identity, ("q",)), shared(theirs, identity)
    mine, theirs = {who(r) for r in source} - {None}, {who(r) for r in population} - {None}
    alike = {who(r) for r in source} & {who(s) for s in population for r in source if who(s) == who(r) and s[2] == r[2]}
    expected = Recognized(len(mine), len(mine & theirs), len(mine & theirs) - len(alike - {None}))
    assert found == (expected if mine else None)
    times = Counter(map(who, population))
    assert counted == (len(population), sum(n for one, n in times.items() if n > 1 or one is None))


def test_a_source_without_the_columns_tells_nothing():
    both = engine().open(table([("1", "x", "u")]))
    assert recognize(engine().open(pa.table({"q": ["u"]})), both, ("id",), ("q",)) is None
    assert recognize(both, both, (), ("q",)) is None


def test_what_is_said_of_those_who_were_found():
    assert Recognized(10, 10, 1).note(["id"]).endswith("by id, 1 of them with other quasi-identifiers.")
    assert "Check that id and day identifies" in Recognized(10, 10, 9).note(["id", "day"])
    assert Recognized(10, 4, 0).note(["id"]).startswith("Only 4 of the source's 10 persons")


def job(data, identity=("voter",), **marking):
    return ReleaseRequest(data.population, identity, wide(NAMES, k=3, **marking), (), Ola(0.2, "dm_star"), 5)


def test_a_release_says_who_was_found():
    data = town()
    notes = release(data.study(), job(data), dry_run=True).notes
    assert notes[-1] == "600 of the source's 600 persons were found in the population by voter."
    strangers = Register(data.people, [{**p, "voter": p["voter"].lower()} for p in data.members])
    notes = release(strangers.study(), job(strangers), dry_run=True).notes
    assert notes[-1].startswith("Only 0 of the source's 600 persons")
    found = feasible(data.study(), data.population, wide(NAMES, k=3), (3,), (0.2,), ("voter",))
    assert found.to_dict()["recognized"] == {"persons": 600, "found": 600, "differ": 0}


def test_why_there_are_too_few_decoys():
    data = town()
    zips = len({p["zip"] for p in data.people})
    told = (
        rf"identity=\['zip'\] does not identify persons: 6,000 of the 6,000 records .* share zip .*\({zips} different"
    )
    with pytest.raises(OptionError, match=told):
        release(data.study(), job(data, ("zip",)), dry_run=True)
    with pytest.raises(OptionError, match="share name and day with another record"):
        release(data.study(), job(data, ("name", "day")), dry_run=True)
    everybody = Register([dict(p) for p in data.members], data.members)
    with pytest.raises(OptionError, match=r"That is enough for none\. (\d+ more classes link|Widen)"):
        release(everybody.study(), job(everybody), dry_run=True)
    strangers = Register(data.people[:60], data.members)
    with pytest.raises(
        OptionError, match=r"Only \d+ of the source's 600 persons .* Use a population that has everybody"
    ):
        release(strangers.study(), job(strangers), dry_run=True)


@settings(max_examples=examples(60))
@given(st.integers(1, 5), st.integers(0, 4), st.integers(0, 4), st.integers(10, 60), st.integers(30, 90))
def test_what_is_advised_would_help(names, decoys, covers, candidates, released):
    if not decoys + covers:
        return
    marking = wide([f"n{i}" for i in range(names)], decoys=decoys, covers=covers)
    try:
        marks = plan_marks(linked_classes(released, candidates), marking, KEY)
    except OptionError:
        return
    said = spelled(_remedy(marks))
    words = said.replace(",", " ").replace(".", " ").split()
    for option in ("--decoys", "--covers"):
        if option in words and f"without {option}" not in said:
            more = int(words[words.index(option) + 1])
            tried = {"--decoys": (more, covers), "--covers": (decoys, more)}[option]
            best = best_probability(names, tried[0], len(marks.pool) - names * tried[0], tried[1])
            assert best <= marking.false_accusation
    assert names > 2 or "--covers " not in said.replace("without --covers", "")


@given(st.lists(st.sampled_from(["zip", "ZIP", " zip", "yob", "Yob ", "x"]), unique=True), st.booleans())
def test_columns_are_matched_where_it_is_clear(there, both):
    wanted = ["zip", "yob", *(["Zip"] if both else [])]
    found = same_name(there, wanted)
    for column in wanted:
        alike = [name for name in there if name.strip().lower() == column.lower()]
        clear = len(alike) == 1 and (column == "yob" or not both)
        assert found.get(column) == (column if column in there else alike[0] if clear else None)

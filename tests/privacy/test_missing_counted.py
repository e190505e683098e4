"""Limits that hold only because a missing sensitive value counts as a value, against plain counting of rows."""

from __future__ import annotations

import json
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import oracle
from strength import examples
from veilmark.cli.main import main
from veilmark.output import write_table
from veilmark.privacy.missing import missing_counted
from veilmark.privacy.models import Alpha, DistinctL, EntropyL, RecursiveL, TCloseness
from veilmark.study.opening import class_table, engine_of, open_source
from veilmark.study.study import Study
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.planning import follow_distances

LEVELS = [{"1": "low", "2": "low", "3": "high", "4": "high"}]
ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["1", "2", "3", "4", None, None])), min_size=2, max_size=24
)


def study(rows, distance="equal"):
    table = pa.table({"z": [z for z, _ in rows], "d": pa.array([d for _, d in rows], pa.string())})
    how = {"role": "sensitive", "distance": distance}
    how |= {"hierarchy": {"levels": LEVELS}} if distance == "hierarchical" else {}
    return Study.of(table, {"z": "quasi", "d": how})


def counter(of):
    """A function from a model to how many classes of the source meet it by missing values alone, by its name."""
    with engine_of(of) as engine:
        classes = class_table(open_source(engine, of), of)
    return lambda model: missing_counted(classes, follow_distances(of, classes, [model])).get("d", {})


def expected(rows, measure, meets):
    """The classes that meet a limit, and do not without the records that lack a value; those of no others aside."""
    every = [{"z": z, "d": d} for z, d in rows]
    before = measure(every, ["z"], "d")
    after = measure([row for row in every if row["d"] is not None], ["z"], "d")
    return sum(meets(before[key]) and not meets(after[key]) for key in after)


@settings(max_examples=examples(30), phases=[Phase.generate])
@given(ROWS)
def test_diversity(rows):
    count = counter(study(rows))
    for least in (2, 3):
        only = expected(rows, oracle.distinct_l, lambda found, least=least: found >= least)
        assert count(DistinctL("d", least)).get("l", 0) == only
    only = expected(rows, oracle.entropy_l, lambda found: found >= 1.5 - 1e-9)
    assert count(EntropyL("d", 1.5)).get("entropy_l", 0) == only
    only = expected(rows, lambda *given: oracle.recursive_c(*given, 2), lambda found: found < 2)
    assert count(RecursiveL("d", 2.0, 2)).get("recursive_l", 0) == only


def by_order(rows, quasi, attribute):
    order = [v for v in ["1", "2", "3", "4", None] if any(row[attribute] == v for row in rows)]
    return oracle.t_ordered(rows, quasi, attribute, order)


def by_hierarchy(rows, quasi, attribute):
    return oracle.t_hierarchical(rows, quasi, attribute, oracle.tree({row[attribute] for row in rows}, LEVELS))


DISTANCES = {"equal": oracle.t_equal, "ordered": by_order, "hierarchical": by_hierarchy}


@pytest.mark.parametrize("distance", DISTANCES)
@settings(max_examples=examples(20), phases=[Phase.generate])
@given(rows=ROWS)
def test_closeness(rows, distance):
    rows = [*rows, ("a", "1")]  # or the values are no numbers, which have an order
    count = counter(study(rows, distance))
    for t in (0.123456, 0.3141, 0.512345):
        only = expected(rows, DISTANCES[distance], lambda found, t=t: found <= t)
        assert count(TCloseness("d", t)).get("t", 0) == only


WORKED = [("a", d) for d in ("1", "1", "1", None, None, "1")] + [("b", d) for d in ("1", "2", "3", "1", "2", None)]


def test_worked_by_hand():
    """Class a has one value beside missing ones, b three."""
    count = counter(study(WORKED))
    assert count(DistinctL("d", 2)) == {"l": 1}
    assert count(DistinctL("d", 4)) == {"l": 1}
    assert count(DistinctL("d", 5)) == {}
    assert count(Alpha("d", 0.9)) == {}
    assert counter(study([row for row in WORKED if row[1]]))(DistinctL("d", 1)) == {}
    assert study(WORKED).measure().missing_counted["d"]["l"] == 1


@pytest.mark.parametrize("method", [partial(Ola, levels={"z": 0}), Mondrian], ids=["ola", "mondrian"])
@settings(max_examples=examples(10), phases=[Phase.generate])
@given(rows=ROWS)
def test_of_a_release(rows, method):
    """As counted in the rows of the release itself."""
    of = study([*rows, ("a", "1"), ("a", "2"), ("b", "1"), ("b", None), ("c", "1"), ("c", None)])
    made = of.anonymize(method(k=2, models=(DistinctL("d", 2),)))
    released = [(row["z"], row["d"]) for row in made.table().to_pylist()]
    only = expected(released, oracle.distinct_l, lambda found: found >= 2)
    assert made.to_dict()["missing_counted"] == ({"d": {"l": only}} if only else {})


def test_suppressed_classes_do_not_count():
    of = study([*WORKED, ("c", "1"), ("c", None)])
    made = of.anonymize(Ola(0.2, k=3, levels={"z": 0}, models=(DistinctL("d", 2),)))
    assert (made.plan.suppressed, made.missing_counted) == (2, {"d": {"l": 1}})


def test_persons():
    rows = [{"id": str(i), "z": z, "d": d} for i, (z, d) in enumerate([*WORKED, ("b", "4")])]
    table = pa.Table.from_pylist([*rows, {"id": "0", "z": "b", "d": "1"}])
    of = Study.of(table, {"z": "quasi", "d": "sensitive"}, "id")
    assert of.measure().missing_counted["d"]["l"] == 1
    made = of.anonymize(Ola(k=2, levels={"z": 0}, models=(DistinctL("d", 2),)))
    assert made.missing_counted == {"d": {"l": 1}}


def test_in_words(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    write_table(study(WORKED).data, tmp_path / "t.csv")
    Study.of("t.csv", {"z": "quasi", "d": "sensitive"}).save("s.yaml")
    ask = ["anonymize", "s.yaml", "--k", "2", "--l", "d=2", "--level", "z=0", "-o", "out.csv"]
    assert main(ask) == 0
    said = "d: 1 class meets the distinct l only because a missing value counts as a value."
    assert said in capsys.readouterr().out
    assert main([*ask, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing_counted"] == {"d": {"l": 1}}
    assert main(["measure", "s.yaml"]) == 0
    assert "d: 1 class meets the distinct l and " in capsys.readouterr().out


def test_python_says_so_too():
    rows = [(zip_, "flu" if i < 5 else None if zip_ == "1" else "hiv") for zip_ in "12" for i in range(6)]
    table = pa.table({"zip": [zip_ for zip_, _ in rows], "ill": [ill for _, ill in rows]})
    study = Study.of(table, quasi=["zip"], sensitive=["ill"])
    release = study.anonymize(Ola(k=5, models=[DistinctL("ill", 2)]))
    for result in (study.measure(), release):
        assert "ill: 1 class meets the distinct l" in str(result)
        assert "only because a missing value counts as a value" in str(result)

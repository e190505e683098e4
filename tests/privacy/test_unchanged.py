"""Records that a column published unchanged makes unique: counted and estimated, of sources and of written files."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from register import ROLES, town
from strength import examples
from veilmark.cli.main import main
from veilmark.mark.marking import CopyMarking
from veilmark.mark.request import ReleaseRequest
from veilmark.output import write_table
from veilmark.privacy import unchanged
from veilmark.privacy.models import DistinctL
from veilmark.privacy.unchanged import Unchanged, worst_first
from veilmark.study.study import Study
from veilmark.veil.anonymize import Microaggregation
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.verify import verify
from veilmark.workbench.release import release

ATTRIBUTES = {
    "zip": {"role": "quasi", "hierarchy": {"mask": 2}},
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}},
    "ill": "sensitive",
    "cost": "other",
    "note": "other",
}
QUASI = ["zip", "age"]
COLUMNS = ["ill", "cost", "note"]
ROW = st.tuples(
    st.sampled_from(["01", "02", "13"]),
    st.integers(20, 39),
    st.sampled_from(["flu", "HIV", "", None]),
    st.sampled_from([0.5, 1.0, 2.25, float("nan"), None]),
    st.sampled_from(["a", "b", "", None, 'it\'s, "so"']),
)


def frame(rows):
    kinds = [pa.string(), pa.int64(), pa.string(), pa.float64(), pa.string()]
    columns = zip(ATTRIBUTES, kinds, zip(*rows, strict=True), strict=True)
    return pa.table({name: pa.array(values, kind) for name, kind, values in columns})


def plain(value):
    """A value as it is compared: empty texts and not-a-numbers are missing."""
    return None if value == "" or (isinstance(value, float) and math.isnan(value)) else value


def oracle(table, quasi=QUASI, columns=COLUMNS):
    """For each column the number of groups of (quasi-identifiers, column) with exactly one record."""
    rows = table.to_pylist()
    found = {}
    for name in columns:
        groups = Counter(tuple(plain(row[c]) for c in (*quasi, name)) for row in rows)
        found[name] = sum(size == 1 for size in groups.values())
    return found


def unique(found):
    return {name: of.unique for name, of in found.items()}


@settings(max_examples=examples(20), phases=[Phase.generate])
@given(st.lists(ROW, min_size=1, max_size=40))
def test_of_a_source(rows):
    table = frame(rows)
    found = Study.of(table, ATTRIBUTES).measure().unchanged
    assert unique(found) == oracle(table)
    assert {(of.records, of.exact) for of in found.values()} == {(len(rows), True)}
    counts = [of.unique for of in found.values()]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("method", [Ola(0.5, k=2), Mondrian(k=2)])
@settings(max_examples=examples(8), phases=[Phase.generate])
@given(rows=st.lists(ROW, min_size=6, max_size=40))
def test_of_a_written_release(tmp_path_factory, rows, method, suffix):
    study = Study.of(frame(rows), ATTRIBUTES)
    made = study.anonymize(method, tmp_path_factory.mktemp("release") / f"out.{suffix}")
    assert unique(made.verified.unchanged) == oracle(made.table())
    told = made.to_dict()["unchanged"]
    assert {name: of["unique"] for name, of in told.items()} == oracle(made.table())
    assert all(of["exact"] and of["sample"] is None for of in told.values())


@settings(max_examples=20, phases=[Phase.generate])
@given(st.lists(ROW, min_size=1, max_size=40))
def test_records_that_are_unique_without_the_column_are_told_apart(rows):
    table = frame(rows)
    study = Study.of(table, ATTRIBUTES)
    sizes = Counter(tuple(row[c] for c in QUASI) for row in table.to_pylist())
    already = sum(size == 1 for size in sizes.values())
    every = oracle(table)
    for name, of in study.measure().to_dict()["unchanged"].items():
        assert (of["already"], of["more"]) == (already, every[name] - already)
    made = study.anonymize(Ola(k=1)).to_dict()["unchanged"]
    assert {of["already"] for of in made.values()} == {already}


def test_advice_suits_the_role(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    table = pa.table({"zip": ["01"] * 40, "pay": list(range(40)), "cost": [i % 30 for i in range(40)]})
    pa_csv.write_csv(table, "d.csv")
    Study.of("d.csv", {"zip": "quasi", "pay": "sensitive"}).save("s.yaml")
    assert main(["measure", "s.yaml"]) == 0
    out = capsys.readouterr().out
    assert "pay is sensitive" in out
    assert "the role quasi" not in out


def test_microaggregation_and_rules_applied():
    rows = [("01", 20 + i % 19, "flu", float(i % 7), "abc"[i % 3]) for i in range(60)]
    numbers = {**{c: a for c, a in ATTRIBUTES.items() if c != "zip"}}
    study = Study.of(frame(rows), numbers)
    made = study.anonymize(Microaggregation(k=5))
    assert unique(made.verified.unchanged) == oracle(made.table(), ["age"])
    again = study.apply(made.plan.recoding)
    assert unique(again.verified.unchanged) == oracle(again.table(), ["age"])
    assert again.to_dict()["unchanged"] == made.to_dict()["unchanged"]


def test_a_table_of_the_same_columns_and_one_without_quasi_identifiers():
    table = frame([("01", 20, "flu", 1.0, "a"), ("01", 20, "flu", 2.0, "a"), ("02", 20, "flu", 2.0, "b")])
    study = Study.of(table, ATTRIBUTES)
    assert unique(study.measure(table.slice(0, 2)).unchanged) == {"cost": 2, "ill": 0, "note": 0}
    bare = Study.of(table, {"cost": "other", "note": "other"})
    assert unique(bare.measure().unchanged) == oracle(table, [], ["cost", "note"])


def test_what_is_not_published_or_tells_persons_apart_by_design_is_not_listed():
    table = pa.table({"id": [1, 2, 3, 4], "who": list("abcd"), "z": ["x"] * 4, "cost": [1, 1, 2, 3], "left": [9] * 4})
    roles = {"who": {"role": "direct", "keep": "pseudonym"}, "z": "quasi", "cost": "other"}
    study = Study.of(table, roles, "id")
    assert unique(study.measure().unchanged) == {"cost": 2}
    made = study.anonymize(Ola(k=2))
    assert made.table().column_names == ["who", "z", "cost"]
    assert unique(made.verified.unchanged) == {"cost": 2}
    everything = Study.of(table, roles, "id", unnamed="other")
    assert unique(everything.measure().unchanged) == {"cost": 2, "left": 0}


def test_lists_in_a_release():
    table = pa.table({"z": ["x"] * 4, "tags": [[1], [1], [2], [1, 2]]})
    study = Study.of(table, {"z": "quasi"}, unnamed="other")
    assert unique(study.anonymize(Ola(k=2)).verified.unchanged) == {"tags": 2}
    assert study.measure().unchanged == {}


def test_more_columns_than_are_counted_together():
    rng = np.random.default_rng(4)
    many = {f"c {i}": rng.integers(0, 5 + 40 * i, 200) for i in range(2 * unchanged.TOGETHER + 3)}
    table = pa.table({"z": rng.choice(["x", "y"], 200), **many})
    study = Study.of(table, {"z": "quasi", **dict.fromkeys(many, "other")})
    expected = oracle(table, ["z"], list(many))
    assert unique(study.measure().unchanged) == expected
    assert unique(study.anonymize(Ola(k=2, levels={"z": 0})).verified.unchanged) == expected


# Large tables: a sample of groups.


def large(rows, seed=1):
    """Half of the amounts are unique, the others come in pairs; texts are few."""
    rng = np.random.default_rng(seed)
    amounts = np.concatenate([np.arange(rows // 2), np.repeat(np.arange(rows // 4) + rows, 2)])
    return pa.table(
        {
            "zip": rng.choice(["01", "02", "13"], rows),
            "age": rng.integers(20, 23, rows),
            "ill": rng.choice(["flu", "HIV"], rows),
            "cost": rng.permutation(amounts),
            "note": rng.choice(["a", "b", "c"], rows),
        }
    )


@pytest.fixture
def sampled(monkeypatch):
    """Small samples, of groups."""
    monkeypatch.setattr(unchanged, "COUNTED", 2_000)
    monkeypatch.setattr(unchanged, "SAMPLED", 2_000)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_estimate_says_so_and_is_near(tmp_path, sampled, suffix):
    table = large(20_000)
    study = Study.of(table, ATTRIBUTES)
    expected = oracle(table)
    made = study.anonymize(Ola(k=2, levels={"zip": 0, "age": 0}), tmp_path / f"out.{suffix}")
    for found in (study.measure().unchanged, made.verified.unchanged):
        assert found["ill"] == Unchanged(expected["ill"], 20_000, sensitive=True)
        cost = found["cost"]
        assert not cost.exact
        # One group in ten, so that the number of those that are unique is binomial.
        deviation = math.sqrt(expected["cost"] * 9)
        assert abs(cost.unique - expected["cost"]) < 6 * deviation
        assert 1_400 < cost.sample < 2_600
        assert found["note"].unique == 0
        assert not found["note"].exact


def test_estimates_are_right_on_average(sampled):
    """Over many tables the mean estimate is the mean number: a group is in a sample whole, or not at all."""
    errors = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        table = pa.table({"z": rng.choice(["x", "y"], 4_000), "cost": rng.integers(0, 3_000, 4_000) + seed * 10_000})
        found = Study.of(table, {"z": "quasi", "cost": "other"}).measure().unchanged["cost"]
        errors.append(found.unique - oracle(table, ["z"], ["cost"])["cost"])
    # One in two: a standard deviation of √U, some 45, and 8 of their mean.
    assert abs(np.mean(errors)) < 50


def test_an_estimate_is_no_more_than_the_records(sampled):
    table = pa.table({"z": ["x"] * 4_100, "cost": np.arange(4_100)})
    assert Study.of(table, {"z": "quasi", "cost": "other"}).measure().unchanged["cost"].unique <= 4_100


def test_a_missing_value_is_not_another_column_s(sampled):
    """(None, 1) and (1, None) are two groups, also by their hashes."""
    pairs = [(a, b) for a, b in product([None, *range(60)], repeat=2) if (a is None) != (b is None)] * 40
    table = pa.table({"z": [a for a, _ in pairs], "cost": [b for _, b in pairs]})
    assert Study.of(table, {"z": "quasi", "cost": "other"}).measure().unchanged["cost"].unique == 0


def test_whole_classes_are_sampled_where_there_are_many(sampled, monkeypatch):
    """Over many tables the mean estimate is the mean number, and a column more looks at the same records."""
    monkeypatch.setattr(unchanged, "SAMPLED_CLASSES", 100)
    errors = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        zips = rng.integers(0, 1_000, 4_000) + seed * 10_000
        table = pa.table({"z": zips, "cost": rng.integers(0, 9, 4_000), "note": rng.choice(["a", "", None], 4_000)})
        found = Study.of(table, {"z": "quasi", "cost": "other", "note": "other"}).measure().unchanged
        assert not found["cost"].exact
        assert found["cost"].sample == found["note"].sample == pytest.approx(2_000, abs=400)
        expected = oracle(table, ["z"], ["cost", "note"])
        errors.append([found[name].unique - expected[name] for name in expected])
    assert np.abs(np.mean(errors, axis=0)).max() < 60


# What is said.


def test_worst_first_keeps_the_order_of_equals():
    found = {"a": Unchanged(0, 9), "b": Unchanged(3, 9), "c": Unchanged(0, 9)}
    assert list(worst_first(found)) == ["b", "a", "c"]
    assert Unchanged(0, 0).share == 0


def test_a_file_is_measured_by_columns_that_it_has(tmp_path):
    table = frame([("01", 20, "flu", 1.0, "a"), ("01", 20, "HIV", 1.0, "a")])
    write_table(table, tmp_path / "t.csv")
    found = verify(tmp_path / "t.csv", QUASI, ["ill"], others=["cost", "note"])
    assert unique(found.unchanged) == {"ill": 2, "cost": 0, "note": 0}
    assert found.to_dict()["unchanged"]["ill"]["unique"] == 2


@pytest.mark.parametrize("limits", [(), ("l",)])
def test_the_first_copy_is_counted(tmp_path, limits):
    """Decoys included; a dry run has no file to count in."""
    marking = CopyMarking(("ada", "bob", "cyd"), 3, decoys=3, covers=8, false_accusation=1e-2, risk=(1, 20))
    models = tuple(DistinctL("diagnosis", 2) for _ in limits)
    job = ReleaseRequest(town().population, ("voter",), marking, models, method=Ola(0.4, "dm_star"), seed=5)
    study = Study.of(town().source, {**ROLES, "cost": "other"})
    assert release(study, job, dry_run=True).unchanged == {}
    got = release(study, job, tmp_path / "ledger.db", tmp_path / "key", tmp_path / "copies")
    texts = pa_csv.ConvertOptions(column_types=dict.fromkeys(["zip", "sex", "yob", "diagnosis", "cost"], pa.string()))
    first = pa_csv.read_csv(got.copies[0].file, convert_options=texts)
    expected = oracle(first, ["zip", "sex", "yob"], ["diagnosis", "cost"])
    assert {name: of["unique"] for name, of in got.to_dict()["unchanged"].items()} == expected
    assert expected["cost"] > 100


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write_table(large(400), tmp_path / "t.csv")
    Study.of("t.csv", ATTRIBUTES).save("s.yaml")

    def run(*arguments):
        assert main(list(arguments)) == 0
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in arguments else " ".join(out.split())

    return run


def test_in_words(run):
    ask = ["--k", "5", "--recoding", "rules.json", "-o", "out.csv"]
    made = run("anonymize", "s.yaml", *ask, "--json")["unchanged"]
    assert next(iter(made)) == "cost"
    share = f"cost {made['cost']['unique']:,} {made['cost']['more']:,} {made['cost']['share']:.1%}"
    advice = "Anyone who knows a person's quasi-identifiers and their cost can pick out such a record."
    for told in (run("anonymize", "s.yaml", *ask), run("apply", "s.yaml", "rules.json", "-o", "new.csv")):
        assert share in told
        assert advice in told
        assert "make no more records unique: ill, note." in told
    assert advice in run("measure", "s.yaml")


def test_estimates_in_words(run, monkeypatch):
    monkeypatch.setattr(unchanged, "COUNTED", 100)
    monkeypatch.setattr(unchanged, "SAMPLED", 100)
    told = run("measure", "s.yaml")
    assert "cost about " in told
    assert "These numbers are estimates from samples of at least " in told

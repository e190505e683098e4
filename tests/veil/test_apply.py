"""Recodings on new data: what they know is published as they say, all else is left out and counted."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.cli.main import main
from veilmark.errors import DataError, OptionError, StudyError, VeilmarkWarning
from veilmark.privacy.models import DistinctL, KMap, TCloseness
from veilmark.study.study import Study
from veilmark.tables.recoding import Recoding
from veilmark.veil.anonymize import Microaggregation
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola

GROUPS = {"a": "vowel", "e": "vowel", "b": "other", "c": "other", "d": "other"}
ROLES = {
    "name": "direct",
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
    "kind": {"role": "quasi", "hierarchy": {"levels": [GROUPS]}},
    "s": "sensitive",
}


def rows_of(count, seed, ages=(20, 60), kinds="abce"):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "name": [f"N{i}" for i in range(count)],
            "age": rng.integers(*ages, count),
            "kind": rng.choice(list(kinds), count),
            "s": rng.choice(["u", "v", "w"], count),
        }
    )


OLD = rows_of(300, 1)
STUDY = Study.of(OLD, ROLES)


@pytest.fixture(scope="module")
def rules():
    return STUDY.anonymize(Ola(k=5, suppression=0.1, loss="gcp", levels={"age": 1, "kind": 1})).plan.recoding


def label(row):
    low = row["age"] // 10 * 10
    return f"{low}-{low + 9}", GROUPS[row["kind"]]


@pytest.mark.parametrize("method", [Ola(k=5, suppression=0.1), Mondrian(k=5)])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_applied_to_its_own_data_it_gives_the_same_release(tmp_path, method, suffix):
    made = STUDY.anonymize(method, tmp_path / f"a{suffix}", recoding=tmp_path / "rules.json", seed=5)
    got = STUDY.apply(tmp_path / "rules.json", output=tmp_path / f"b{suffix}", seed=5)
    assert got.table().equals(made.table())
    assert (got.records, got.left_out, got.unknown, got.k) == (made.records, made.plan.suppressed, 0, made.k)


def test_means_too(tmp_path):
    study = Study.of(OLD.select(["age", "s"]), {"age": "quasi"})
    made = study.anonymize(Microaggregation(k=5), recoding=tmp_path / "rules.json", seed=5)
    assert study.apply(tmp_path / "rules.json", seed=5).table().equals(made.table())


@settings(max_examples=examples(20))
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"age": st.integers(0, 99), "kind": st.sampled_from("abcdex"), "s": st.sampled_from("uvw")}
        ),
        min_size=1,
        max_size=40,
    ),
    k=st.integers(1, 3),
)
def test_new_data_row_by_row(rules, rows, k):
    """Full-domain: new values by the study's hierarchy; `x` is in no map; rare classes go."""
    strange = sum(row["kind"] == "x" for row in rows)
    known = [row for row in rows if row["kind"] != "x"]
    sizes = Counter(map(label, known))
    left = {tuple(of[i].as_py() for of, i in zip(rules.labels, c, strict=True)) for c in rules.classes.T}
    want = [(*label(row), row["s"]) for row in known if sizes[label(row)] >= k and label(row) not in left]
    new = pa.table({c: [row[c] for row in rows] for c in ("age", "kind", "s")})
    if not want:
        with pytest.raises(OptionError, match="All records would be suppressed"):
            STUDY.apply(rules, data=new, k=k)
        return
    got = STUDY.apply(rules, data=new, k=k, order="keep")
    assert [tuple(row.values()) for row in got.table().to_pylist()] == want
    assert (got.records, got.left_out, got.unknown) == (len(want), len(rows) - len(want), strange)
    assert got.k == min(n for key, n in sizes.items() if n >= k and key not in left)


def test_a_class_that_was_suppressed_stays_out():
    table = pa.table({"a": ["x"] * 6 + ["y"], "b": ["1"] * 7})
    study = Study.of(table, {"a": "quasi", "b": "quasi"})
    rules = study.anonymize(Ola(k=2, suppression=0.2, levels={"a": 0, "b": 0})).plan.recoding
    many = pa.table({"a": ["x"] * 3 + ["y"] * 3, "b": ["1"] * 6})
    got = study.apply(rules, data=many)
    assert got.table()["a"].to_pylist() == ["x"] * 3
    assert (got.left_out, got.unknown) == (3, 0)


def test_k_is_the_recoding_s_unless_given(rules):
    new = rows_of(60, 2)
    assert STUDY.apply(rules, data=new).k >= 5
    assert STUDY.apply(rules, data=new, k=9).k >= 9
    assert STUDY.apply(rules, data=new, suppress=False).records >= STUDY.apply(rules, data=new).records


def test_its_other_models_hold_as_well():
    method = Ola(k=2, models=(DistinctL("s", 2), TCloseness("s", 0.6)), levels={"age": 1, "kind": 1})
    rules = STUDY.anonymize(method).plan.recoding
    new = pa.table({"age": [21, 22, 31, 32, 33], "kind": ["a"] * 5, "s": ["u", "u", "u", "v", "u"]})
    got = STUDY.apply(rules, data=new)
    assert got.table()["age"].to_pylist() == ["30-39"] * 3
    assert got.verified.distinct["s"] == 2
    assert [m.name for m in got.models] == ["k", "l", "t"]


def test_unknown_values_can_be_refused(rules):
    new = pa.table({"age": [21] * 6, "kind": ["a"] * 5 + ["x"], "s": ["u"] * 6})
    with pytest.raises(
        DataError, match="values of 'kind' that are neither in the recoding nor in the study's hierarchy: 'x'"
    ):
        STUDY.apply(rules, data=new, unknown="error")
    local = STUDY.anonymize(Mondrian(k=5)).plan.recoding
    with pytest.raises(DataError, match="combinations of values without a class: 6 records"):
        STUDY.apply(local, data=pa.table({"age": [99] * 6, "kind": ["a"] * 6, "s": ["u"] * 6}), unknown="error")
    assert STUDY.apply(rules, data=rows_of(90, 4), unknown="error").unknown == 0


def test_at_the_top_every_value_is_known():
    rules = STUDY.anonymize(Ola(k=5, levels={"age": 1, "kind": 2})).plan.recoding
    got = STUDY.apply(rules, data=pa.table({"age": [21] * 6, "kind": ["x"] * 6, "s": ["u"] * 6}))
    assert got.table()["kind"].to_pylist() == ["*"] * 6


def test_values_that_the_hierarchy_covers_stay_beside_one_that_it_does_not(tmp_path):
    (tmp_path / "kinds.csv").write_text("a;*\nb;*\nc;*\n")
    old = pa.table({"kind": list("aaabbb"), "age": [20] * 6})
    roles = {"kind": {"role": "quasi", "hierarchy": {"file": str(tmp_path / "kinds.csv")}}, "age": "quasi"}
    study = Study.of(old, roles)
    rules = study.anonymize(Ola(k=3)).plan.recoding
    assert rules.levels == {"kind": 0, "age": 0}
    got = study.apply(rules, data=pa.table({"kind": list("aaacccxxx"), "age": [20] * 9}))
    assert sorted(got.table()["kind"].to_pylist()) == list("aaaccc")
    assert (got.left_out, got.unknown) == (3, 3)


@settings(max_examples=examples(30))
@given(new=st.lists(st.text("0123456789", min_size=1, max_size=7), min_size=2, max_size=8), level=st.integers(0, 5))
def test_masks_of_longer_values(new, level):
    """At the top every value becomes the released label; below it, what the mask leaves of it."""
    old = pa.table({"zip": ["13120", "13121", "94110", "94111"] * 3})
    study = Study.of(old, {"zip": {"role": "quasi", "hierarchy": {"mask": 5}}})
    rules = study.anonymize(Ola(k=3, levels={"zip": level})).plan.recoding
    got = study.apply(rules, data=pa.table({"zip": new}), k=1).table()["zip"].to_pylist()
    masked = [value[: max(len(value) - level, 0)] + "*" * level for value in new]
    assert sorted(got) == (["*****"] * len(new) if level == 5 else sorted(masked))


def test_new_numbers_join_the_groups_there_are(rules):
    """A fraction changes how intervals are written; what the recoding wrote stays."""
    new = pa.table({"age": [21.0, 22.5, 23.0, 24.0, 25.0, 99.5], "kind": ["a"] * 6, "s": ["u"] * 6})
    got = STUDY.apply(rules, data=new, k=1, order="keep")
    assert got.table()["age"].to_pylist() == ["20-29"] * 5 + ["[90, 100)"]


def test_the_hierarchy_must_be_the_same(rules):
    new = rows_of(50, 3, ages=(20, 70))
    for intervals in ([5, 20], [100]):
        other = {**ROLES, "age": {"role": "quasi", "hierarchy": {"intervals": intervals}}}
        with pytest.raises(
            StudyError, match=r"hierarchy of 'age'.*differs from the one that the recoding was made with"
        ):
            Study.of(OLD, other).apply(rules, data=new)


def test_only_what_the_release_had_is_published(rules):
    new = rows_of(60, 2).append_column("phone", pa.array(["555"] * 60))
    assert STUDY.apply(rules, data=new).table().column_names == ["age", "kind", "s"]
    with pytest.raises(DataError, match="no column 's'"):
        STUDY.apply(rules, data=new.drop_columns("s"))
    with pytest.raises(DataError, match="The recoding is for 'age', 'kind', but"):
        Study.of(OLD, {"age": "quasi", "s": "sensitive"}).apply(rules)
    with pytest.raises(StudyError, match="publishes 's'"):
        Study.of(OLD, {**ROLES, "s": "direct"}).apply(rules)


def test_persons_are_counted_in_the_new_data():
    roles = {"age": ROLES["age"]}
    old = pa.table({"id": [str(i) for i in range(40)], "age": [20 + i % 20 for i in range(40)]})
    study = Study.of(old, roles, person="id")
    rules = study.anonymize(Ola(k=5, loss="gcp")).plan.recoding
    new = pa.table({"id": ["p"] * 9 + list("abcdef"), "age": [25] * 9 + [35] * 6})
    got = study.apply(rules, data=new)
    assert (got.records, got.left_out, got.k) == (6, 9, 6)
    assert got.table().column_names == ["age"]


def test_a_population_is_not_at_hand():
    study = Study.of(OLD, ROLES)
    rules = study.anonymize(Ola(models=(KMap(5),)), population=OLD).plan.recoding
    with pytest.warns(VeilmarkWarning, match="made for 'k_map', which needs a population"):
        study.apply(rules, k=5)


def test_pseudonyms_keep_their_key(tmp_path):
    study = Study.of(OLD, {**ROLES, "name": {"role": "direct", "keep": "pseudonym"}})
    made = study.anonymize(Ola(k=5), recoding=tmp_path / "r.json", pseudonym_key=tmp_path / "key", order="keep")
    got = study.apply(tmp_path / "r.json", pseudonym_key=tmp_path / "key", order="keep")
    assert got.table().equals(made.table())
    assert not study.apply(tmp_path / "r.json", order="keep").table()["name"].equals(made.table()["name"])


BROKEN = {
    "no file": None,
    "no JSON": "{",
    "a list": "[]",
    "another version": {"version": 2},
    "no levels": {"levels": {}},
    "groups that are not there": {"columns": {"a": {"values": ["x"], "groups": [3], "labels": ["*"]}}},
    "too few groups": {"columns": {"a": {"values": ["x", "y"], "groups": [0], "labels": ["*"]}}},
    "classes that are not there": {"classes": [[7]]},
    "labels of no class": {"class_labels": [["x", "y"]]},
}


@pytest.mark.parametrize("fault", BROKEN)
def test_files_that_are_no_recoding(tmp_path, fault):
    good = {"version": 1, "columns": {"a": {"values": ["x"], "groups": [0], "labels": ["*"]}}, "levels": {"a": 1}}
    content = BROKEN[fault]
    if content is not None:
        text = content if isinstance(content, str) else json.dumps(good | {"classes": [[]]} | content)
        (tmp_path / "r.json").write_text(text)
    with pytest.raises(DataError, match=r"r\.json' cannot be read"):
        Recoding.open(tmp_path / "r.json")


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(OLD, "old.csv")
    pa_csv.write_csv(rows_of(200, 9, kinds="abcex"), "new.csv")
    Study.of("old.csv", ROLES).save("study.yaml")
    made = ["anonymize", "study.yaml", "--k", "4", "--level", "kind=1", "--recoding", "rules.json", "-o", "a.csv"]
    assert main(made) == 0
    capsys.readouterr()
    command = ["apply", "study.yaml", "rules.json", "--data", "new.csv", "-o", "b.csv"]
    assert main([*command, "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert {"records", "left_out", "unknown", "classes", "k", "output"} <= set(got)
    assert got["unknown"] > 20
    assert got["records"] + got["left_out"] == 200
    assert got["k"] >= 4
    assert main([*command, "--no-suppress"]) == 0
    assert "values that are not in the recoding" in " ".join(capsys.readouterr().out.split())
    (tmp_path / "b.csv").unlink()
    assert main([*command, "--unknown", "error"]) == 2
    assert "'x'" in capsys.readouterr().err
    assert not (tmp_path / "b.csv").exists()

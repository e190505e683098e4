"""A release beside its source, against a reckoning record by record."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
import typer
from hypothesis import given, settings
from releases import AGE, LABELS, QUASI, ROLES, ROWS, SOURCE, STUDY, VALUES, generalized, tables
from typer.testing import CliRunner

import oracle
from strength import examples
from veilmark.cli import utility as command
from veilmark.errors import DataError, OptionError
from veilmark.hierarchy import resolve
from veilmark.study.study import Study
from veilmark.utility import classifier
from veilmark.utility.association import cramers_v
from veilmark.utility.loss import NodeLoss, untouched
from veilmark.workbench import utility as workbench


@pytest.fixture(autouse=True)
def no_classifier(monkeypatch):
    monkeypatch.setattr(classifier, "available", lambda: False)


def test_a_release_that_changes_nothing():
    got = workbench.view_utility(STUDY, SOURCE.drop(["name"]))
    assert list(got.marginals) == ["age", "zip", "sex", "diagnosis", "cost"]
    for m in got.marginals.values():
        assert (m.total_variation, m.total_variation_labels, m.unread) == (0, 0, 0)
        assert m.values[0] == m.values[1]
    assert all(a.v.change == pytest.approx(0, abs=1e-12) for a in got.associations)
    assert len(got.associations) == math.comb(5, 2)
    assert got.loss.after == pytest.approx(got.loss.before)
    age = got.marginals["age"]
    assert (age.mean.before, age.sd.before) == pytest.approx((AGE.mean(), AGE.std()))
    assert (age.mean.after, age.sd.after) == pytest.approx((AGE.mean(), AGE.std()))
    assert got.marginals["zip"].mean is None


def test_the_loss_of_a_full_domain_release_is_seen_in_its_file():
    node = {"age": 2, "zip": 2, "sex": 0}
    got = workbench.view_utility(STUDY, generalized(SOURCE, node, k=25))
    rows = [{c: None if v is None else str(v) for c, v in row.items()} for row in SOURCE.to_pylist()]
    classes = oracle.class_table(rows, QUASI)
    levels = [resolve(STUDY.spec.attributes[c].hierarchy, d, c) for c, d in zip(QUASI, classes.domains, strict=True)]
    rolled = classes.roll_up(levels, list(node.values()))
    failing = rolled.records < 25
    want = NodeLoss(classes, levels).all_of(rolled, list(node.values()), failing)
    assert got.records == (ROWS, ROWS - rolled.records[failing].sum())
    assert 0 < rolled.records[failing].sum() < ROWS
    assert got.loss.after == pytest.approx(
        {m: want[m] for m in ("dm", "precision", "gcp", "lm")} | {"average_class": rolled.records[~failing].mean()}
    )
    own = NodeLoss(classes, levels).by_attribute(rolled, list(node.values()), failing)
    for name, of in got.loss.by_attribute.items():
        assert of == pytest.approx({m: own[name][m] for m in of})
    assert got.loss.before == pytest.approx({m: v for m, v in untouched(classes).items() if m in got.loss.before})


def freedom(release, covers, column, other):
    """What chance can move of a column: variances of its values' counts over what single records would have."""
    labels = [
        covers[column][r[column]] for r in release.to_pylist() if covers[column][r[column]] and covers[other][r[other]]
    ]
    total = 0.0
    for value in VALUES[column]:
        shares = [(value in inside) / len(inside) for inside in labels]
        total += sum(s * s for s in shares) / sum(shares) if sum(shares) else 0.0
    return total - 1 if labels else 0.0


@settings(max_examples=examples(20))
@given(tables(VALUES, 3), tables(LABELS, 1))
def test_any_release_is_spread_evenly_over_what_it_covers(source, release):
    everything = pa.table({c: pa.array((v * 5)[:5], pa.string()) for c, v in VALUES.items()})
    source = pa.concat_tables([source, everything])
    roles = {"age": "quasi", "zip": ROLES["zip"], "sex": "sensitive"}
    got = workbench.view_utility(Study.of(source, roles), release)
    covers = dict(LABELS)
    if set(release["zip"].to_pylist()) <= {"012*"}:
        covers["zip"] = {"012*": {"0123", "0129"}}

    def spread(*columns):
        cells = Counter()
        for row in release.to_pylist():
            sets = [covers[c][row[c]] for c in columns]
            combos = [()]
            for s in sets:
                combos = [(*combo, v) for combo in combos for v in s]
            for combo in combos:
                cells[combo] += 1 / len(combos)
        return cells

    for column, m in got.marginals.items():
        before, after = Counter(source[column].to_pylist()), spread(column)
        total = sum(after.values())
        assert m.unread == len(release) - round(total)
        if not total:
            assert m.total_variation is None
            continue
        gaps = [abs(n / len(source) - after[(v,)] / total) for v, n in before.items()]
        assert m.total_variation == pytest.approx(sum(gaps) / 2)
    for a in got.associations:
        one, other = (VALUES[c] for c in a.columns)
        cells = spread(*a.columns)
        table = np.array([[cells[(x, y)] for y in other] for x in one])
        free = freedom(release, covers, *a.columns) * freedom(release, covers, *a.columns[::-1])
        assert a.v.after == pytest.approx(cramers_v(table, freedom=free), abs=1e-6)
        pairs = Counter(zip(*(source[c].to_pylist() for c in a.columns), strict=True))
        assert a.v.before == pytest.approx(cramers_v(np.array([[pairs[(x, y)] for y in other] for x in one])), abs=1e-6)
    assert {a.columns for a in got.associations} == set(combinations(VALUES, 2))
    assert (got.loss is None) == ("what" in release["zip"].to_pylist() or len(release) > len(source))


def test_chance_in_a_small_release_is_taken_off_and_no_more():
    random = np.random.default_rng(2)
    values, found = list("abcdefghij"), {True: [], False: []}
    roles = {"x": {"role": "quasi", "hierarchy": {"levels": [{v: "low" if v < "f" else "high" for v in values}]}}}
    for _ in range(12):
        x = random.choice(values, 150)
        for related in (True, False):
            flip = random.random(150) < (0.2 if related else 0.5)
            source = pa.table({"x": x, "s": np.where((x < "f") ^ flip, "p", "q")})
            release = source.set_column(0, "x", pa.array(np.where(x < "f", "low", "high")))
            study = Study.of(source, roles | {"s": "sensitive"})
            found[related].append(workbench.view_utility(study, release).associations[0].v)
    assert np.mean([v.after for v in found[False]]) < 0.06
    assert np.mean([v.after for v in found[True]]) == pytest.approx(np.mean([v.before for v in found[True]]), abs=0.03)


def test_suppression_alone_shows_at_the_labels():
    release = generalized(SOURCE, {"age": 3, "zip": 4, "sex": 0})
    got = workbench.view_utility(STUDY, release)
    assert got.marginals["age"].total_variation_labels == 0
    assert got.marginals["age"].total_variation > 0
    half = release.filter(pa.array([v == "F" for v in release["sex"].to_pylist()]))
    share = len(half) / ROWS
    assert workbench.view_utility(STUDY, half).marginals["sex"].total_variation_labels == pytest.approx(1 - share)


def test_many_values_are_tabulated_in_groups():
    number = [str(i) for i in range(400)]
    source = pa.table(
        {"income": np.arange(400), "town": number, "code": [f"{i:03}" for i in range(400)], "x": [1] * 400}
    )
    roles = {"income": "quasi", "town": {"role": "quasi", "hierarchy": {"mask": 3}}, "code": "sensitive"}
    text = source.set_column(2, "code", pa.array([f"c{i}" for i in range(400)]))
    got = workbench.view_utility(Study.of(text, roles), text).marginals
    assert got["income"].grouped == "10 quantiles"
    assert [c.before for c in got["income"].shares.values()] == pytest.approx([0.1] * 10)
    assert next(iter(got["income"].shares)) == "0 to 39"
    assert got["town"].grouped == "level 1"
    assert got["code"].grouped == "the 49 most frequent values and the rest"
    assert got["code"].shares["(all others)"].before == pytest.approx(351 / 400)


def test_means_of_numbers_are_kept_and_no_loss_is_made_up_for_them():
    grouped = SOURCE.drop(["name"]).set_column(0, "age", pa.array(np.where(AGE < 40, AGE[AGE < 40].mean(), AGE)))
    got = workbench.view_utility(STUDY, grouped)
    assert got.marginals["age"].mean.after == pytest.approx(AGE.mean())
    assert got.loss is None
    assert any("The loss cannot be computed" in note for note in got.notes)


def test_a_large_table_is_counted_two_columns_at_a_time(monkeypatch):
    release = generalized(SOURCE, {"age": 1, "zip": 2, "sex": 0})
    whole = workbench.view_utility(STUDY, release)
    monkeypatch.setattr(workbench, "FEW_ROWS", 10)
    assert workbench.view_utility(STUDY, release) == whole


def test_columns_that_are_dropped_or_too_long_are_told(monkeypatch):
    monkeypatch.setattr(workbench, "MOST_VALUES", 5)
    got = workbench.view_utility(STUDY, SOURCE.drop(["zip"]))
    assert "cost" not in got.marginals
    assert got.loss.by_attribute["zip"]["gcp"] == 1
    assert any("'cost'" in note for note in got.notes)
    assert any("lacks the quasi-identifiers 'zip'" in note for note in got.notes)
    other = workbench.view_utility(STUDY, SOURCE.drop(["zip"]), data=SOURCE.slice(0, 300))
    assert other.records == (300, ROWS)
    assert other.loss is None


def test_studies_and_releases_without_quasi_identifiers():
    none = workbench.view_utility(Study.of(SOURCE, {"name": "direct"}), SOURCE)
    assert none.loss is none.classifier is None
    assert "Name one with target=" in none.notes[-1]
    gone = workbench.view_utility(STUDY, SOURCE.select(["diagnosis"]))
    assert gone.loss.after["gcp"] == 1
    assert gone.associations == ()
    assert "nothing to predict 'diagnosis' from" in gone.notes[-1]


def test_bad_input():
    with pytest.raises(DataError, match="have no column in common"):
        workbench.view_utility(STUDY, pa.table({"a": [1]}))
    with pytest.raises(DataError, match="no records"):
        workbench.view_utility(STUDY, SOURCE.slice(0, 0))
    with pytest.raises(OptionError, match=r"The target 'diagnosi' is not a column.*Did you mean 'diagnosis'"):
        workbench.view_utility(STUDY, SOURCE, target="diagnosi")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(SOURCE, "d.csv")
    Study.of("d.csv", ROLES).save("study.yaml")
    pa_csv.write_csv(generalized(SOURCE, {"age": 2, "zip": 2, "sex": 0}, k=5), "release.csv")


def run(*arguments):
    app = typer.Typer()
    command.register(app)
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_the_command(files):
    got = json.loads(run("study.yaml", "release.csv", "--json").stdout)
    assert {"records", "loss", "marginals", "associations", "classifier", "notes"} <= set(got)
    assert got["classifier"] is None
    assert "scikit-learn" in got["notes"][-1]
    assert {"before", "after", "change", "columns"} == set(got["associations"][0])
    changes = [abs(a["change"]) for a in got["associations"]]
    assert changes == sorted(changes, reverse=True)
    text = run("study.yaml", "release.csv").stdout
    assert "records (the source has 600)" in text
    assert "Associations that changed most" in text


def test_the_chart(files):
    pytest.importorskip("altair")
    assert run("study.yaml", "release.csv", "--chart", "u.json", "--json").exit_code == 0
    drawn = json.loads(Path("u.json").read_text())
    assert len(drawn["vconcat"]) == 2
    with pytest.raises(OptionError, match="must end in one of"):
        run("study.yaml", "release.csv", "--chart", "u.txt")

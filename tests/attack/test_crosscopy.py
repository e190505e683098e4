"""Telling decoys from real classes: features, scores and intervals by their definitions, and a real release."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from marked_release import QUASI, make_release, read
from strength import examples
from veilmark.attack.classifiers import CLASSIFIERS, logistic, quadratic
from veilmark.attack.crosscopy import TRUST, auc_interval, cross_validated, features, judge, look, tell, truth
from veilmark.cli import crosscopy as command
from veilmark.errors import DataError, OptionError
from veilmark.study.opening import open_study
from veilmark.workbench.crosscopy import cross_copy

rows = st.tuples(
    st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("ghi"), st.sampled_from([None, "1", "2"])
)
tables = st.lists(st.lists(rows, min_size=1, max_size=12), min_size=1, max_size=3)


def arrow(copy):
    return pa.table(
        {name: pa.array(column, pa.string()) for name, column in zip("pqsu", zip(*copy, strict=True), strict=True)}
    )


def classes_of(sight):
    return list(zip(*(labels.to_pylist() for labels in sight.labels), strict=True))


@settings(max_examples=examples(60))
@given(tables)
def test_classes_and_features_by_their_definitions(copies):
    sight = look([arrow(copy) for copy in copies], ["p", "q"])
    held = defaultdict(list)
    for copy in copies:
        for key in {row[:2] for row in copy}:
            held[key].append([row[2:] for row in copy if row[:2] == key])
    found, names = features(sight), classes_of(sight)
    kept = [(key, row) for key in names for row in held[key][0]]
    assert sorted(names) == sorted(held)
    assert sight.presence.tolist() == [len(held[key]) for key in names]
    assert sight.size.tolist() == [len(held[key][0]) for key in names]
    for i, key in enumerate(names):
        own = held[key][0]
        elsewhere = {row for other, row in kept if other != key}
        assert found["repeats"][i] == pytest.approx(sum(row in elsewhere for row in own) / len(own))
        expected = math.prod(sum(other[a] == key[a] for other, _ in kept) / len(kept) for a in (0, 1))
        assert found["rare"][i] == pytest.approx(math.log(expected))
        assert found["odd"][i] == pytest.approx(np.mean([slow_surprise(row, kept) for row in own]))
        assert found["misfit"][i] == pytest.approx(np.mean([slow_misfit(key, row, kept) for row in own]))


def share_of(s, value, kept):
    return sum(row[s] == value for _, row in kept) / len(kept)


def slow_surprise(row, kept):
    return -sum(math.log(share_of(s, row[s], kept)) for s in (0, 1))


def slow_misfit(key, row, kept):
    total = 0.0
    for s in (0, 1):
        for a in (0, 1):
            others = [other[s] for name, other in kept if name[a] == key[a] and name != key]
            share = share_of(s, row[s], kept)
            total -= math.log((others.count(row[s]) + TRUST * share) / (len(others) + TRUST) / share)
    return total


def test_many_numbers_are_compared_by_their_tenths():
    table = pa.table({"p": ["a"] * 500 + ["b"] * 500, "cost": pa.array(np.arange(1000))})
    found = features(look([table], ["p"]))
    assert found["odd"] == pytest.approx([math.log(10)] * 2, rel=1e-3)
    assert found["repeats"].tolist() == [0, 0]


def test_truth_by_labels():
    copy = arrow([("a", "x", "g", "1"), ("b", "x", "g", "1"), ("b", "y", "g", None), ("a", "z", "g", "1")])
    sight = look([copy], ["p", "q"])
    kinds = dict(zip(classes_of(sight), truth(sight, [["a", "x"], ["b", "y"]], [["b", "x"], ["b", "x"]]), strict=True))
    assert kinds == {("a", "x"): 0, ("b", "y"): 0, ("b", "x"): 1, ("a", "z"): -1}


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=4, max_size=20))
def test_scores_are_judged_by_their_definitions(given_scores):
    score, decoy = (np.array(column) for column in zip(*given_scores, strict=True))
    if decoy.all() or not decoy.any():
        return
    found = judge(score, decoy, turn=False)
    pairs = [
        (score[i] > score[j]) + (score[i] == score[j]) / 2
        for i in np.flatnonzero(decoy)
        for j in np.flatnonzero(~decoy)
    ]
    assert found.auc == pytest.approx(np.mean(pairs))
    random = np.random.default_rng(1)
    hits = []
    for _ in range(400):
        order = np.lexsort((random.random(len(score)), -score))[: decoy.sum()]
        hits.append(decoy[order].mean())
    assert found.taken.success == pytest.approx(np.mean(hits), abs=0.12)
    assert found.taken.control == pytest.approx(decoy.mean())
    turned = judge(score, decoy)
    assert turned.auc == pytest.approx(max(found.auc, 1 - found.auc))
    assert turned.suspicious == ("low" if found.auc < 0.5 else "high")


@given(st.floats(0, 1), st.integers(2, 50), st.integers(2, 500))
def test_the_interval_of_an_auc(auc, decoys, others):
    low, high = auc_interval(auc, decoys, others)
    assert 0 <= low <= auc + 1e-9
    assert auc - 1e-9 <= high <= 1
    assert high - low > 0.01
    assert auc_interval(1 - auc, decoys, others) == pytest.approx((1 - high, 1 - low), abs=1e-6)


def test_the_interval_of_an_auc_covers_as_often_as_it_says():
    random = np.random.default_rng(5)
    inside = 0
    for _ in range(400):
        score = np.concatenate([random.normal(1, 1, 12), random.normal(0, 1, 60)])
        low, high = judge(score, np.arange(72) < 12, turn=False).auc_interval
        inside += low <= 0.7602 <= high  # Φ(1/√2)
    assert inside >= 0.93 * 400


def test_noise_tells_nothing_and_a_signal_is_found():
    random = np.random.default_rng(2)
    decoy = np.arange(300) < 30
    noise = random.normal(size=(300, 5))
    for learner in CLASSIFIERS.values():
        assert abs(judge(cross_validated(noise, decoy, 1, learner), decoy, turn=False).auc - 0.5) < 0.15
    signal = np.column_stack([noise, decoy + 0.4 * random.normal(size=300)])
    for learner in CLASSIFIERS.values():
        assert judge(cross_validated(signal, decoy, 1, learner), decoy, turn=False).auc > 0.87
    ring = np.column_stack([noise[:, :1] + np.where(decoy, 3, 0)[:, None], noise[:, 1:]]) * random.choice(
        [-1, 1], (300, 1)
    )
    assert judge(cross_validated(ring, decoy, 1, logistic), decoy, turn=False).auc < 0.65
    assert judge(cross_validated(ring, decoy, 1, quadratic), decoy, turn=False).auc > 0.9
    constant = cross_validated(np.zeros((300, 1)), decoy, 1, logistic)
    assert judge(constant, decoy).auc == 0.5


def test_too_few_to_compare():
    found = tell({"size": np.arange(5.0)}, np.array([1, 0, 0, 0, -1]), np.array([True] * 4 + [False]))
    assert (found.classes, found.decoys, found.guess, found.by) == (4, 1, 0.25, {})


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("crosscopy"))


def test_a_coalition_of_two(case):
    found = cross_copy(case.ledger, case.key, case.release, [case.copy("ada"), case.copy("bob")])
    keys = {name: {tuple(row[c] for c in QUASI) for row in read(case.copy(name))} for name in ("ada", "bob")}
    alone = keys["ada"] ^ keys["bob"]
    decoys = {tuple(row[c] for c in QUASI) for name in ("ada", "bob") for row in case.decoys(name)}
    assert found.recipients == ("ada", "bob")
    assert found.foreign == 0
    assert (found.seen_once.classes, found.seen_once.decoys) == (len(alone), len(decoys)) == (len(alone), 4)
    assert (found.whole.classes, found.whole.decoys) == (len(keys["ada"] | keys["bob"]), 4)
    assert found.seen_once.guess == 4 / len(alone)
    assert found.seen_once.by["presence"].auc == 0.5
    assert found.whole.by["presence"].auc > 0.9
    assert found.whole.by["presence"].suspicious == "low"
    assert "risk" not in found.whole.by
    content = found.to_dict()["all"]["by"]["size"]
    assert content["advantage"] == pytest.approx(content["success"] - content["control"])


def test_with_the_population_decoys_are_the_riskiest_classes(case):
    """Which is what decoys are for; so it must come out."""
    study = open_study(case.folder / "study.yaml")
    copies = [case.copy(name) for name in case.names]
    found = cross_copy(case.ledger, case.key, case.release, copies, case.folder / "population.csv", study)
    assert found.whole.by["risk"].auc == found.seen_once.by["risk"].auc == 1.0
    assert found.whole.by["risk"].taken.success == 1.0
    assert found.seen_once.by["combined"].auc > 0.9


def test_classes_link_to_as_many_as_the_population_has(case):
    from veilmark.workbench.crosscopy import _linked

    study = open_study(case.folder / "study.yaml")
    copy = read(case.copy("ada"))
    sight = look([pa.Table.from_pylist(copy)], QUASI)
    found = _linked(study, case.folder / "population.csv", sight, QUASI)
    shown = len(copy[0]["zip"].rstrip("*"))
    persons = Counter()
    hidden = {row["gender"] for row in copy} == {"*"}
    spans = {tuple(map(int, row["yob"].split("-"))) for row in copy}
    for person in read(case.folder / "population.csv"):
        span = next((s for s in spans if s[0] <= int(person["yob"]) <= s[1]), None)
        persons[person["zip"][:shown], "*" if hidden else person["gender"], span] += 1
    for (area, gender, years), count in zip(classes_of(sight), found, strict=True):
        assert persons[area[:shown], gender or "", tuple(map(int, years.split("-")))] == count


def test_changed_and_foreign_copies(case, tmp_path):
    content = case.copy("ada").read_text().splitlines()
    changed = tmp_path / "changed.csv"
    changed.write_text("\n".join([*content[:-20], '"99999","M","1984-1991","u","5"']))
    found = cross_copy(case.ledger, case.key, case.release, [changed, case.copy("bob")])
    assert found.recipients == (None, "bob")
    assert found.foreign == 1
    stranger = tmp_path / "stranger.csv"
    stranger.write_text("zip,gender,yob\nx,y,z\n")
    with pytest.raises(DataError, match="no class of release"):
        cross_copy(case.ledger, case.key, case.release, [stranger])


def test_what_is_wrong_is_said(case, tmp_path):
    short = tmp_path / "short.csv"
    short.write_text("zip,gender\n330**,M\n")
    arguments = (case.ledger, case.key, case.release)
    with pytest.raises(DataError, match=r"short.csv' has no column 'yob'"):
        cross_copy(*arguments, [case.copy("ada"), short])
    with pytest.raises(OptionError, match="Give each copy once"):
        cross_copy(*arguments, [case.copy("ada"), case.copy("ada")])
    with pytest.raises(DataError, match=r"no file '.*gone.csv'"):
        cross_copy(*arguments, [tmp_path / "gone.csv"])
    with pytest.raises(OptionError, match="at least one copy"):
        cross_copy(*arguments, [])
    with pytest.raises(OptionError, match="give the study too"):
        cross_copy(*arguments, [case.copy("ada")], population=case.folder / "population.csv")
    with pytest.raises(OptionError, match="no release 'r00000000'"):
        cross_copy(case.ledger, case.key, "r00000000", [case.copy("ada")])


def test_a_copy_of_another_release_is_refused(case, tmp_path):
    from ledger.helpers import SECRET, publish
    from veilmark.ledger import Key, Ledger

    other = publish(Ledger.open(case.ledger), Key.open(case.key), tmp_path / "other", {"recipients": []}, SECRET)
    with pytest.raises(OptionError, match=f"ada.csv' is a copy of release {other}, not of {case.release}"):
        cross_copy(case.ledger, case.key, case.release, [case.copy("bob"), tmp_path / "other" / "ada.csv"])


def test_the_command(case):
    app = typer.Typer()
    command.register(app)
    copies = ",".join(str(case.copy(name)) for name in ("ada", "bob", "cyd"))
    options = ["--ledger", case.ledger, "--key", str(case.key), "--release", case.release, "--copies", copies]
    shown = CliRunner().invoke(app, options, env={"COLUMNS": "140"})
    assert shown.exit_code == 0, shown.output
    assert "copies of ada, bob, cyd" in shown.output
    assert "Classes in only one of these copies: 6 of" in shown.output
    content = json.loads(CliRunner().invoke(app, [*options, "--json"]).output)
    assert content["recipients"] == ["ada", "bob", "cyd"]
    assert set(content["seen_once"]["by"]) == {
        *("presence", "size", "rare", "label", "pair", "repeats", "odd", "misfit", "combined")
    }

"""What a classifier learns from a release."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from releases import LABELS, ROLES, ROWS, SOURCE, STUDY, VALUES, generalized, tables

from strength import examples
from veilmark.cli import show_utility
from veilmark.study.study import Study
from veilmark.utility import classifier
from veilmark.workbench import utility as workbench


def test_classifier_is_as_good_on_the_same_data_and_no_better_on_nothing():
    pytest.importorskip("sklearn")
    same = workbench.view_utility(STUDY, SOURCE).classifier
    assert (same.target, same.records, same.folds) == ("diagnosis", ROWS, 5)
    assert same.original == same.released > same.baseline + 0.05
    nothing = workbench.view_utility(STUDY, generalized(SOURCE, {"age": 4, "zip": 4, "sex": 1})).classifier
    assert nothing.original == same.original
    assert nothing.released == pytest.approx(nothing.baseline)
    some = workbench.view_utility(STUDY, generalized(SOURCE, {"age": 3, "zip": 4, "sex": 1})).classifier
    assert nothing.released < some.released


def test_classifier_does_not_learn_from_the_records_it_is_tested_on():
    pytest.importorskip("sklearn")
    random = np.random.default_rng(1)
    noise = pa.table({"a": [f"v{i % 40}" for i in range(200)], "s": random.choice(["x", "y"], 200)})
    study = Study.of(noise, {"a": "quasi", "s": "sensitive"})
    got = workbench.view_utility(study, noise.take(pa.array(random.permutation(200)))).classifier
    assert got.released == got.original < 0.6


def test_classifier_with_a_number_to_predict_from_a_sample(monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(classifier, "MOST_RECORDS", 300)
    got = workbench.view_utility(STUDY, generalized(SOURCE, {"age": 1, "zip": 4, "sex": 1}), target="age").classifier
    assert got.records == 300
    assert 0 <= got.released <= 1
    assert workbench.view_utility(STUDY, SOURCE, seed=3) == workbench.view_utility(STUDY, SOURCE, seed=3)


@settings(max_examples=examples(15))
@given(tables(VALUES, 3), tables(LABELS, 1))
def test_matching_finds_a_cell_that_covers_each_record(source, release):
    study = Study.of(source, {"age": "quasi", "zip": ROLES["zip"], "sex": "sensitive"})
    with workbench.engine_of(study) as engine:
        both = workbench._Comparison(study, engine.open(source), engine.open(release))
        before, after = both.source.group(list(VALUES)), both.release.group(list(VALUES))
        columns = [both.columns[c] for c in VALUES]
    got = classifier.matching(columns, before.codes, after.codes)
    masks = [c.cover.masks() for c in columns]
    for j, place in enumerate(got):
        fits = [
            all(m[before.codes[i, j], after.codes[i, cell]] for i, m in enumerate(masks)) for cell in range(len(after))
        ]
        assert place == (fits.index(True) if any(fits) else -1)


def test_classifier_in_words():
    found = classifier.Classified("diagnosis", 600, 5, 0.5, 0.83, 0.01, 0.81, 0.02)
    assert "83.0% if trained on the source, 81.0% (± 2.0%) if trained on the release" in show_utility._classifier(found)

"""Claims where a ledger has several releases: which classes are the same persons', and how releases share the pool."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marked_release import make_release
from marks import ABOVE, COLUMNS, EVERY, VALUES, marked
from strength import examples
from veilmark.mark.marking import CopyMarking
from veilmark.mark.request import ReleaseRequest
from veilmark.study.opening import open_study
from veilmark.trace.elsewhere import Classes, may_agree, used_before
from veilmark.trace.sealed import Values
from veilmark.veil.ola import Ola
from veilmark.workbench import ledger as ledger_verbs
from veilmark.workbench.release import release as run_release
from veilmark.workbench.trace import trace

NAMES = ("ada", "bob", "cyd")
TEXTS = [f"{i:02d}" for i in range(12)]
STANDS = [lambda v: v, lambda v: v[0] + "*", lambda v: "**"]


def at(level):
    """Labels of a mask hierarchy, and what they become further up."""
    labels = sorted({STANDS[level](v) for v in TEXTS})
    return [labels, *([f(label) for label in labels] for f in STANDS[level + 1 :])]


def classes(above, values=None):
    return Classes(("zip",), {"zip": above}, np.arange(len(above[0]))[None, :], values and {"zip": values})


def values_at(level):
    labels = at(level)[0]
    owner = np.array([labels.index(STANDS[level](v)) for v in TEXTS])
    return Values.of(pa.array(TEXTS), owner, np.arange(len(TEXTS)), np.empty(0, dtype=np.int64))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("mine", "theirs"), list(product(range(3), range(3))))
def test_labels_agree_when_some_value_has_both(mine, theirs, known):
    own, other = (classes(at(level), values_at(level) if known else None) for level in (mine, theirs))
    slow = [
        [any(STANDS[mine](v) == x and STANDS[theirs](v) == y for v in TEXTS) for y in at(theirs)[0]]
        for x in at(mine)[0]
    ]
    assert may_agree(own, other, "zip").tolist() == slow


def test_labels_of_hierarchies_that_share_nothing_may_always_agree():
    assert may_agree(classes([["a", "b"]]), classes([["1-3", "4-9"]]), "zip").all()


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=2, max_size=6))
def test_ranges_agree_when_they_overlap(ranges):
    """Labels of Mondrian's: no level tells, but the values do."""
    spans = [range(low, min(low + width, 9) + 1) for low, width in ranges]
    texts = [str(v) for v in range(10)]
    own, other = (
        Values.of(
            pa.array(texts),
            np.concatenate([np.full(len(of), i) for i, of in enumerate(part)]),
            np.concatenate([np.array(of) for of in part]),
            np.empty(0, dtype=np.int64),
        )
        for part in (spans[:1], spans[1:])
    )
    labels = [[f"{of[0]}-{of[-1]}" for of in part] for part in (spans[:1], spans[1:])]
    found = may_agree(classes([labels[0]], own), classes([labels[1]], other), "zip")
    assert found[0].tolist() == [bool(set(spans[0]) & set(of)) for of in spans[1:]]


def test_a_label_that_stands_for_anything_agrees_with_all():
    anything = Values(pa.array([], pa.string()), *[np.empty(0, dtype=np.int64)] * 3, np.array([0]))
    assert may_agree(classes([["*"]], anything), classes(at(0), values_at(0)), "zip").all()
    assert may_agree(classes(at(0), values_at(0)), classes([["*"]], anything), "zip").all()


@settings(max_examples=examples(10))
@given(st.integers(0, 1 << 32))
def test_classes_used_before_are_those_of_earlier_decoys(seed):
    earlier = marked(np.random.default_rng(seed), NAMES)
    drawn = {tuple(c) for c in earlier.pool_codes[:, earlier.drawn.any(axis=0)].T.tolist()}
    for values in (None, VALUES):
        used = used_before(Classes(COLUMNS, ABOVE, EVERY, values), [earlier])
        assert {tuple(c) for c in EVERY[:, used].T.tolist()} == drawn
    assert not used_before(Classes(("other",), {"other": [["x"]]}, np.zeros((1, 3), dtype=np.int64)), [earlier]).any()


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """Two releases of one source to the same five recipients, at different levels."""
    folder = tmp_path_factory.mktemp("twice")
    case = make_release(folder, people=60_000, members=3_000, covers=0, decoys=2)
    job = ReleaseRequest(
        folder / "population.csv",
        ("voter_id",),
        CopyMarking(case.names, k=5, decoys=2, risk=(1.0, 20.0)),
        method=Ola(0.05, loss="gcp"),
        seed=11,
    )
    study = open_study(folder / "study.yaml")
    second = run_release(study, job, folder / "ledger.db", folder / "key", folder / "second")
    return case, second


def test_claims_of_one_release_name_its_recipient_or_nobody(twice, tmp_path):
    case, second = twice
    named = []
    for release in (case.release, second.release):
        decoys = ledger_verbs.decoys(case.ledger, release, case.key)
        for name in case.names:
            claims = pa.table({"voter_id": [row["voter_id"] for row in decoys[name]]})
            found = trace(case.ledger, case.key, claims=claims, false_accusation=0.05)
            assert set(found.accused) <= {name}
            named += found.accused
    assert len(named) >= 5


def test_a_second_release_spares_the_classes_of_the_first(twice):
    case, second = twice
    first, later = (ledger_verbs.decoys(case.ledger, r, case.key) for r in (case.release, second.release))
    persons = [{row["voter_id"] for rows in of.values() for row in rows} for of in (first, later)]
    assert any("used again" in note for note in second.notes) or not persons[0] & persons[1]

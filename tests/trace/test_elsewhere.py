"""Claims where a ledger has several releases: holders of one release must not make recipients of another look guilty."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marked_release import make_release
from marks import ABOVE, COLUMNS, EVERY, marked
from veilmark import workbench
from veilmark.mark.plan import Marking
from veilmark.trace.accuse import picked_tail, trace_claims
from veilmark.trace.elsewhere import chances, may_agree, used_before
from veilmark.trace.tails import elsewhere_tail
from veilmark.veil.ola import Ola

NAMES = ("ada", "bob", "cyd")
VALUES = [f"{i:02d}" for i in range(12)]


def at(level, values=VALUES):
    """Labels of a mask hierarchy, and what they become further up."""
    lifts = [lambda v: v, lambda v: v[0] + "*", lambda v: "**"]
    labels = sorted({lifts[level](v) for v in values})
    return [labels, *([f(label) for label in labels] for f in lifts[level + 1 :])]


@pytest.mark.parametrize(("mine", "theirs"), list(product(range(3), range(3))))
def test_labels_agree_when_some_value_has_both(mine, theirs):
    own, other = at(mine), at(theirs)
    stands = [lambda v: v, lambda v: v[0] + "*", lambda v: "**"]
    for label in own[0]:
        slow = [any(stands[mine](v) == label and stands[theirs](v) == y for v in VALUES) for y in other[0]]
        assert may_agree(own, label, other).tolist() == slow


def test_labels_of_hierarchies_that_share_nothing_may_always_agree():
    assert may_agree([["a", "b"]], "a", [["1-3", "4-9"]]).all()


def slow_chances(of, others, name):
    found = []
    for row in of.decoys[name]:
        total = 0.0
        for other in others:
            shown = [(other.class_codes[:, j], other.class_chance[j]) for j in range(other.class_codes.shape[1])]
            for i, who in enumerate(other.names):
                drawn = np.flatnonzero(other.drawn[i]) if who != name else []
                shown += [(other.pool_codes[:, j], other.pool_chance[j]) for j in drawn]
            same = [
                c for codes, c in shown if all(ABOVE[k][0][v] == row[k] for k, v in zip(COLUMNS, codes, strict=True))
            ]
            total += max(same, default=0.0)
        found.append(min(total, 1.0))
    return found


@settings(max_examples=15)
@given(st.integers(0, 1 << 32))
def test_chances_equal_the_slow_ones(seed):
    rng = np.random.default_rng(seed)
    first, second, third = (marked(rng, NAMES, release=f"r0000000{i}") for i in range(3))
    found = chances(first, [first, second, third])
    for name in NAMES:
        assert found[name].tolist() == pytest.approx(slow_chances(first, [second, third], name))


@settings(max_examples=10)
@given(st.integers(0, 1 << 32))
def test_classes_used_before_are_those_of_earlier_decoys(seed):
    earlier = marked(np.random.default_rng(seed), NAMES)
    used = used_before(COLUMNS, ABOVE, EVERY, [earlier])
    drawn = {tuple(c) for c in earlier.pool_codes[:, earlier.drawn.any(axis=0)].T.tolist()}
    assert {tuple(c) for c in EVERY[:, used].T.tolist()} == drawn


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(0, 8))
def test_the_bound_lies_above_the_exact_tail(likely, hits):
    exact = 0.0
    for outcome in product((0, 1), repeat=len(likely)):
        if sum(outcome) >= hits:
            exact += float(np.prod([p if o else 1 - p for p, o in zip(likely, outcome, strict=True)]))
    assert elsewhere_tail(hits, np.array(likely)) >= exact - 1e-9


def linked_claims(rng, of, name):
    """Each record of a copy linked to one of the persons who fit: those of real classes, and decoys by half."""
    rows = [row["voter"] for row in of.decoys[name]]
    return pa.table({"voter": [who for who in rows if rng.random() < 0.5] + [f"real {i}" for i in range(200)]})


def test_holders_of_one_release_do_not_make_others_look_guilty():
    """Both releases draw on the same classes and the same persons, the worst case: three decoys in four are shared."""
    rng = np.random.default_rng(5)
    accused_innocent = 0
    for _ in range(60):
        first = marked(rng, NAMES, release="r00000001", pool=24, decoys=3)
        second = marked(rng, NAMES, release="r00000002", pool=24, decoys=3)
        object.__setattr__(second, "pool_codes", first.pool_codes)
        persons = {}
        for of in (first, second):
            for i, name in enumerate(of.names):
                rows = []
                for j in np.flatnonzero(of.drawn[i]):
                    labels = {c: ABOVE[c][0][v] for c, v in zip(COLUMNS, of.pool_codes[:, j], strict=True)}
                    rows += [{"voter": f"person {j} {n}", **labels} for n in range(4)]
                persons[name] = rows
            object.__setattr__(of, "decoys", dict(persons))
        guilty = NAMES[rng.integers(3)]
        found = trace_claims([first, second], linked_claims(rng, first, guilty), 1e-3)
        accused_innocent += bool(set(found.accused) - {guilty})
    assert accused_innocent == 0


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """Two releases of one source to the same five recipients, at different levels."""
    folder = tmp_path_factory.mktemp("twice")
    case = make_release(folder, people=60_000, members=3_000, covers=0, decoys=2)
    job = workbench.Job(
        folder / "population.csv",
        ("voter_id",),
        Marking(case.names, k=5, decoys=2, risk=(1.0, 20.0)),
        method=Ola(0.05, loss="gcp"),
        seed=11,
    )
    study = workbench.open_study(folder / "study.yaml")
    second = workbench.release(study, job, folder / "ledger.db", folder / "key", folder / "second")
    return case, second


def test_claims_of_one_release_name_its_recipient_or_nobody(twice, tmp_path):
    case, second = twice
    named = []
    for release in (case.release, second.release):
        decoys = workbench.ledger.decoys(case.ledger, release, case.key)
        for name in case.names:
            claims = pa.table({"voter_id": [row["voter_id"] for row in decoys[name]]})
            found = workbench.trace(case.ledger, case.key, claims=claims)
            assert set(found.accused) <= {name}
            named += found.accused
    assert len(named) >= 5


def test_a_second_release_spares_the_classes_of_the_first(twice):
    case, second = twice
    first, later = (workbench.ledger.decoys(case.ledger, r, case.key) for r in (case.release, second.release))
    persons = [{row["voter_id"] for rows in of.values() for row in rows} for of in (first, later)]
    assert any("used again" in note for note in second.notes) or not persons[0] & persons[1]


def test_what_claims_take_for_granted_is_said(twice):
    case, _ = twice
    claims = pa.table({"voter_id": [row["voter_id"] for row in case.decoys("bob")]})
    found = workbench.trace(case.ledger, case.key, claims=claims, false_accusation=1e-3)
    assert found.accused == ("bob",)
    assert any("made at random" in note for note in found.notes)


@settings(max_examples=10)
@given(st.integers(0, 1 << 32), st.integers(0, 3))
def test_the_chance_of_listing_groups(seed, met):
    """The slow way: all choices of the pool's classes that are left."""
    of = marked(np.random.default_rng(seed), NAMES, pool=12, decoys=3)
    mine = [dict(zip(COLUMNS, row, strict=True)) for row in of.texts(of.pool_codes[:, of.drawn[0]])]
    left = [j for j in range(12) if not of.drawn[1:, j].any()]
    listed = set(left[:met])
    choices = list(combinations(left, 3))
    slow = sum(len(listed & set(c)) >= met for c in choices) / len(choices)
    assert picked_tail(of, "ada", mine[:met]) == pytest.approx(slow)

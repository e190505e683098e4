"""Detectability and scalability against plain Python, the paper's own examples, and a release's dry run."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark.errors import DataError, OptionError
from veilmark.mark.discover import Linked
from veilmark.mark.marking import CopyMarking
from veilmark.mark.reports import detectability, near_limit, scalability, size_bins
from veilmark.mark.request import ReleaseRequest
from veilmark.sample import voters
from veilmark.study.study import Study
from veilmark.veil.ola import Ola
from veilmark.workbench.feasible import feasible
from veilmark.workbench.release import release


def linked_of(published, suppressed, population, outside=None):
    counts = [np.array(of, dtype=np.int64) for of in (published, suppressed, population)]
    nothing = np.empty((1, 0), dtype=np.int32)
    return Linked(("a",), (), nothing, *counts, nothing[0], None if outside is None else np.array(outside))


@st.composite
def links(draw):
    """A release linked to a population: sizes of at least k or nothing, and some who are not in the source."""
    k = draw(st.integers(1, 6))
    rows = draw(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 60)), min_size=1, max_size=40))
    published = [size if size >= k else 0 for size, _, _ in rows]
    suppressed = [size if gone and not of else 0 for (size, gone, _), of in zip(rows, published, strict=True)]
    population = [size + more for size, _, more in rows]
    known = draw(st.booleans())
    outside = [max(p - size, 0) for p, (size, _, _) in zip(population, rows, strict=True)] if known else None
    return linked_of(published, suppressed, population, outside), k


def test_near_k_is_exact():
    assert [near_limit(k) for k in (2, 5, 10, 20, 50)] == [3, 6, 11, 22, 55]
    assert all(near_limit(k) == math.ceil(Fraction(11, 10) * k) for k in range(1, 500))


@given(links())
def test_detectability_is_the_paper_s(case):
    linked, k = case
    found = detectability(linked, k)
    sizes = [int(n) for n in linked.published if n > 0]
    assert found.classes == len(sizes)
    assert found.near_k == sum(k <= n <= math.ceil(Fraction(11, 10) * k) for n in sizes)
    multiples = sorted(
        linked.min_link / int(n)
        for n, candidate in zip(linked.population, linked.candidates(k), strict=True)
        if candidate
    )
    assert found.candidates == len(multiples)
    assert (found.up_to_1_2, found.up_to_1_5) == tuple(sum(m <= limit for m in multiples) for limit in (1.2, 1.5))
    assert found.above_4 == sum(m > 4 for m in multiples)
    assert [m for _, m in found.curve] == pytest.approx(multiples)  # few enough to be all there
    assert found.highest == (multiples[-1] if multiples else None)
    for of in found.sizes:
        assert of.classes == sum(of.low <= n <= of.high for n in sizes)
    assert sum(of.classes for of in found.sizes) == len(sizes)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=50), st.integers(1, 50))
def test_size_bins_follow_each_other_from_k(more, k):
    sizes = np.array(more) + k
    bins = size_bins(sizes, k)
    assert bins[0].low == k
    assert all(left.high + 1 == right.low for left, right in pairwise(bins))
    assert sum(of.classes for of in bins) == len(sizes)
    assert bins[-1].classes > 0


def test_a_long_curve_keeps_its_ends():
    population = np.arange(1, 5_001)
    linked = linked_of([1] + [0] * 5_000, [0] * 5_001, [5_001, *population])
    curve = detectability(linked, 1).curve
    assert len(curve) <= 200
    assert curve[0] == (1, pytest.approx(5_001 / 5_000))
    assert curve[-1] == (5_000, 5_001.0)


def names(count):
    return tuple(f"r{i}" for i in range(count))


def test_recipients_as_in_the_paper():
    """1,845 classes near k and 10 covers each: 184 recipients; a budget of a half halves them. K/d of all 9,027 classes."""
    sizes = [5] * 1_000 + [6] * 845 + [9] * (9_027 - 1_845)
    linked = linked_of(sizes, [0] * len(sizes), [1_000] * len(sizes))
    found = scalability(linked, CopyMarking(names(3), 5, decoys=2, covers=10, budget=0.5))
    by = {r.strategy: r for r in found.removals}
    assert (by["size"].classes, by["size"].recipients_at_most, by["size"].recipients) == (1_845, 184, 92)
    assert (by["random"].classes, by["random"].recipients_at_most, by["random"].recipients) == (9_027, 902, 451)
    assert by["size"].withheld_classes == 20
    assert by["size"].records == 20 * 5
    assert found.seen_once == pytest.approx(2 / 12)
    assert (found.pool, found.recipients_by_decoys, found.added) == (0, 0, 0.0)


def test_costs_by_hand():
    """Four classes of 2, 2, 4, 8 records, 4 more suppressed; two recipients with one cover each."""
    linked = linked_of([2, 2, 4, 8, 0, 0], [0, 0, 0, 0, 4, 0], [20, 30, 90, 100, 18, 15])
    found = scalability(linked, CopyMarking(("a", "b"), 2, decoys=1, covers=1, risk=(1.1, 1.5)))
    assert found.loss == pytest.approx((4 + 4 + 16 + 64 + 4 * 20) / 400)
    by = {r.strategy: r for r in found.removals}
    assert (by["size"].classes, by["size"].records, by["size"].share) == (2, 2, 2 / 16)
    assert by["size"].loss == pytest.approx((4 + 16 + 64 + 6 * 20) / 400)
    assert (by["risk"].classes, by["risk"].records) == (1, 2)
    assert by["random"].records == 8  # the most of ten draws
    # 18 persons hold a suppressed record, 15 are left: 20/15 times the risk, and any size from 2 to 8 may be theirs.
    assert found.pool == 1
    assert found.added == pytest.approx((2 + 2 + 4 + 8) / 4)


@given(links(), st.integers(1, 4), st.integers(0, 3))
def test_no_draw_costs_more_than_all_that_there_is(case, recipients, covers):
    linked, k = case
    found = scalability(linked, CopyMarking(names(recipients), k, covers=covers), seed=3)
    assert found == scalability(linked, CopyMarking(names(recipients), k, covers=covers), seed=3)
    released = int((linked.published > 0).sum())
    largest = sorted(linked.published, reverse=True)[: (recipients - 1) * covers]
    for r in found.removals:
        if recipients * covers > released:
            assert r.records is None
            continue
        assert r.records <= sum(largest)
        assert r.loss >= found.loss - 1e-12
        assert r.withheld_classes == (recipients - 1) * covers
    assert found.to_dict()["removals"]["size"]["classes"] == found.removals[1].classes


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(4)
    people = voters(20_000, 3).select(["voter_id", "zip", "gender", "yob"])
    chosen = people.take(np.sort(rng.choice(20_000, 2_000, replace=False)))
    return chosen.append_column("ill", pa.array(rng.choice(["x", "y"], 2_000))), people


ROLES = {
    "voter_id": "direct",
    "zip": {"role": "quasi", "hierarchy": {"mask": 5}},
    "gender": "quasi",
    "yob": {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8]}},
    "ill": "sensitive",
}


@pytest.mark.parametrize("identity", [("voter_id",), ()])
def test_feasible_finds_what_a_release_would(tables, identity, tmp_path):
    source, people = tables
    study = Study.of(source, ROLES)
    marking = CopyMarking(names(2), 3, decoys=1, risk=(1.0, 50))
    found = feasible(study, people, marking, ks=(2, 3), suppressions=(0.0, 0.1), identity=identity)
    assert [(of.k, of.suppression) for of in found.settings] == [(2, 0.0), (2, 0.1), (3, 0.0), (3, 0.1)]
    assert (found.people, found.members_known) == (20_000, bool(identity))
    assert found.to_dict()["settings"][3]["feasibility"]["min_link"] == found.settings[3].feasibility.min_link
    if identity:
        job = ReleaseRequest(people, identity, marking, method=Ola(0.1))
        planned = release(study, job, tmp_path / "l.db", tmp_path / "k", tmp_path / "out", dry_run=True)
        last = found.settings[-1]
        assert last.feasibility.classes > 0
        assert last.feasibility == planned.feasible
        assert last.levels == planned.levels
        assert last.suppressed == planned.suppressed
        assert last.records + last.suppressed == 2_000


def test_charts_are_drawn(tables, tmp_path):
    source, people = tables
    feasible(Study.of(source, ROLES), people, CopyMarking(names(2), 3), suppressions=(0.1,), chart=tmp_path / "c.json")
    text = (tmp_path / "c.json").read_text()
    assert "times the release's highest risk" in text
    assert "records in the class" in text


def test_bad_input_is_named(tables):
    source, people = tables
    study, marking = Study.of(source, ROLES), CopyMarking(names(2), 3)
    with pytest.raises(DataError, match="no column 'yob'"):
        feasible(study, people.drop_columns(["yob"]), marking)
    with pytest.raises(OptionError, match="no column 'name'"):
        feasible(study, people, marking, identity=["name"])
    with pytest.raises(OptionError, match="100 combinations"):
        feasible(study, people, marking, ks=range(1, 102))
    with pytest.raises(DataError, match="no records"):
        feasible(study, people.slice(0, 0), marking)

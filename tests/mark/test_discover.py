"""Linking a release to a population: compared with counting rows one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from register import NUMERIC, QUASI, both_domains, class_table, domain, labeller, levels_on, register, table
from strength import examples
from veilmark.errors import OptionError
from veilmark.hierarchy import resolve
from veilmark.mark.boxes import Boxes, link_boxes
from veilmark.mark.discover import Linked, feasibility, link, union_domain
from veilmark.privacy.models import KAnonymity
from veilmark.utility.covers import read_labels
from veilmark.veil.anonymize import plan
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola

seeds = st.integers(0, 1 << 30)


def released(data, k, method):
    """Classes of source and population, their domains and levels, and the plan."""
    classes, people = class_table(data.source), class_table(data.population)
    own, domains = levels_on(classes.domains), both_domains(classes, people)
    try:
        made = plan(classes, own, NUMERIC, [KAnonymity(k)], method)
    except OptionError:
        assume(False)
    return classes, people, own, domains, levels_on(domains), made


@settings(max_examples=examples(40))
@given(seeds, st.sampled_from([2, 3, 5]), st.sampled_from([0.0, 0.1, 0.3]), st.integers(60, 400), st.integers(20, 60))
def test_full_domain_releases_link_as_rows_do(seed, k, suppress, people, members):
    data = register(seed, people, members)
    classes, others, _, domains, levels, made = released(data, k, Ola(suppress))
    linked = link(classes, made.recoding, others, levels, domains, NUMERIC)
    label = labeller(domains, levels, [made.recoding.levels[c] for c in QUASI])
    sizes, population = Counter(map(label, data.members)), Counter(map(label, data.people))
    published = {key: n for key, n in sizes.items() if n >= k}
    suppressed = {key: n for key, n in sizes.items() if n < k}
    names = [tuple(row) for row in linked.texts(np.arange(len(linked)))]
    assert sorted(names, key=repr) == sorted({*sizes, *population}, key=repr)
    for i, name in enumerate(names):
        assert linked.published[i] == published.get(name, 0)
        assert linked.suppressed[i] == suppressed.get(name, 0)
        assert linked.population[i] == population[name]
    least = min(population[name] for name in published)
    found = {name for name, n in population.items() if name not in published and k <= n < least}
    assert (linked.min_link, linked.unlinked) == (least, 0)
    assert {names[i] for i in np.flatnonzero(linked.found(k))} == found
    assert {names[i] for i in np.flatnonzero(linked.candidates(k))} == found - set(suppressed)
    seen = feasibility(linked, k)
    assert (seen.classes, seen.excluded) == (len(found - set(suppressed)), len(found & set(suppressed)))
    assert seen.near_k == sum(n <= -(-11 * k // 10) for n in published.values())
    rows = table([dict(zip(QUASI, name, strict=True)) for name in names], QUASI)
    assert linked.find(rows).tolist() == list(range(len(names)))


@given(seeds, st.data())
def test_candidates_leave_k_persons_outside(seed, data):
    rng = np.random.default_rng(seed)
    count = data.draw(st.integers(1, 30))
    population, inside = rng.integers(0, 12, (2, count))
    linked = some_linked(
        rng.integers(0, 2, count) * rng.integers(1, 9, count), population, np.maximum(population - inside, 0)
    )
    for i in np.flatnonzero(linked.found(3) & ~linked.candidates(3)):
        assert linked.outside[i] < 3
    for i in np.flatnonzero(linked.candidates(3)):
        assert linked.outside[i] >= 3
        assert linked.published[i] == 0
        assert 3 <= linked.population[i] < linked.min_link


def some_linked(published, population, outside=None, codes=None):
    count = len(published)
    codes = np.arange(count, dtype=np.int32)[None, :] if codes is None else codes
    labels = tuple(domain(*(f"{c:04d}" for c in range(int(of.max(initial=0)) + 1))).text for of in codes)
    columns = tuple(f"q{i}" for i in range(len(codes)))
    return Linked(columns, labels, codes, published, np.zeros(count, dtype=np.int64), population, np.arange(0), outside)


def test_classes_that_link_to_nobody_do_not_lower_min_link():
    linked = some_linked(np.array([5, 5, 0]), np.array([0, 9, 7]))
    assert (linked.min_link, linked.unlinked, linked.found(5).tolist()) == (9, 1, [False, False, True])
    nobody = some_linked(np.array([5]), np.array([0]))
    assert not nobody.found(1).any()
    assert (nobody.min_link, feasibility(nobody, 1).multiples) == (0, ())


def test_values_that_are_written_otherwise_are_the_same():
    both = union_domain(domain("30", "31"), domain("30.0", "32.0"))
    assert both.text.to_pylist() == ["30", "31", "32.0"]
    assert both.codes_of(domain("30.0").text).tolist() == [0]


@given(seeds, st.integers(1, 12), st.booleans())
def test_distances_by_their_definition(seed, count, with_missing):
    rng = np.random.default_rng(seed)
    codes = np.array([rng.integers(0, 4, count), rng.integers(0, 3, count)], dtype=np.int32)
    places = rng.random(int(codes[0].max()) + 1)
    places[rng.random(len(places)) < 0.3 * with_missing] = np.nan
    linked = replace(
        some_linked(rng.integers(0, 4, count), rng.integers(1, 9, count), codes=codes), places=(places, None)
    )

    def apart(a, b):
        one, other = places[codes[0, a]], places[codes[0, b]]
        by_number = float(codes[0, a] != codes[0, b]) if np.isnan(one - other) else (one - other) ** 2
        return by_number + float(codes[1, a] != codes[1, b])

    every = np.arange(count)
    linked = replace(linked, weights=(0.0, 0.5))
    plain = [1 / np.log2(max(len(labels), 2)) for labels in linked.labels]

    def unlike(b):
        one, other = places[codes[0, 0]], places[codes[0, b]]
        by_number = float(codes[0, 0] != codes[0, b]) if np.isnan(one - other) else abs(one - other)
        return plain[0] * by_number + (plain[1] + 4 * 0.5) * float(codes[1, 0] != codes[1, b])

    assert linked.unlike(0, every).tolist() == pytest.approx([unlike(b) for b in range(count)])
    records = linked.published.sum()
    means = [sum(linked.published[b] * apart(a, b) for b in range(count)) / max(records, 1) for a in range(count)]
    if records:
        assert linked.strangeness(every).tolist() == pytest.approx(means)


# Local recodings.


def covered(labels, on, levels):
    """For each label the texts it stands for, one by one."""
    masks = read_labels(labels, on, levels).masks().T
    return [{t for t, hit in zip(on.text.to_pylist(), mask, strict=True) if hit} for mask in masks]


@settings(max_examples=examples(25))
@given(seeds, st.sampled_from([2, 3, 5]), st.sampled_from([1.5, 4.0, 50.0]), st.booleans())
def test_boxes_link_as_rows_do_and_candidates_stand_apart(seed, k, risk, missing):
    data = register(seed, 300, 40, missing)
    classes, people, own, domains, levels, made = released(data, k, Mondrian())
    linked = link_boxes(classes, made.recoding, people, own, levels, domains, NUMERIC, (k, risk))
    stands = [covered(labels, *on) for labels, *on in zip(linked.labels, domains, levels, strict=True)]

    def inside(row, box):
        return all(row[c] in stands[i][linked.codes[i, box]] for i, c in enumerate(QUASI))

    def fitting(row):
        return [box for box in range(len(linked)) if inside(row, box)]

    home = [fitting(row) for row in data.people]
    assert all(len(boxes) <= 1 for boxes in home)
    count = Counter(box for boxes in home for box in boxes)
    assert linked.population.tolist() == [count[box] for box in range(len(linked))]
    members = Counter(box for row in data.members for box in fitting(row))
    assert linked.published.tolist() == [members[box] for box in range(len(linked))]
    assert linked.published.sum() == len(data.members)
    real, free = np.flatnonzero(linked.published > 0), np.flatnonzero(linked.published == 0)
    assert linked.published[real].min() >= k
    for one, other in product(free, range(len(linked))):
        if one != other:
            shared = [stands[i][linked.codes[i, one]] & stands[i][linked.codes[i, other]] for i in range(len(QUASI))]
            assert not all(shared)
    assert all(linked.population[free] >= k)
    own_box = np.full(len(people), -1)
    texts = list(zip(*(people.texts(c) for c in QUASI), strict=True))
    for i, values in enumerate(texts):
        own_box[i] = next(iter(fitting(dict(zip(QUASI, values, strict=True)))), -1)
    assert linked.of_people.tolist() == own_box.tolist()


def test_there_are_candidates_between_boxes():
    found = []
    for seed in range(5):
        data = register(seed, 3_000, 300, missing=False, years=60, zips=[f"{z:03d}" for z in range(0, 400, 23)])
        classes, people, own, domains, levels, made = released(data, 3, Mondrian())
        linked = link_boxes(classes, made.recoding, people, own, levels, domains, NUMERIC, (3, 50.0))
        found.append(int(linked.found(3).sum()))
    assert min(found) > 0


def test_what_is_left_may_be_too_little():
    data = register(1, 60, 50)
    classes, people, own, domains, levels, made = released(data, 20, Mondrian())
    linked = link_boxes(classes, made.recoding, people, own, levels, domains, NUMERIC, (20, 1.0))
    assert (linked.published > 0).all()


@given(seeds)
def test_overlapping_by_comparing_values(seed):
    rng = np.random.default_rng(seed)
    ages = domain(*map(str, range(10)))
    on = ([ages, ages], [resolve(None, ages, "age")] * 2)

    def boxes(count):
        low = rng.integers(0, 10, (2, count))
        high = np.minimum(low + rng.integers(0, 4, (2, count)), 9)
        texts = [
            [f"{a}-{b}" if a < b else str(a) for a, b in zip(*ends, strict=True)]
            for ends in zip(low, high, strict=True)
        ]
        return Boxes.of([pa.array(t, pa.string()) for t in texts], *on), low, high

    one, low, high = boxes(5)
    other, left, right = boxes(7)
    meet = [
        any(all(low[a, i] <= right[a, j] and left[a, j] <= high[a, i] for a in range(2)) for j in range(7))
        for i in range(5)
    ]
    assert one.overlapping(other).tolist() == meet

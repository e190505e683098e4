"""Loss by attribute, against a record by record reckoning, and its totals."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
from veilmark.hierarchy import parse_spec, resolve
from veilmark.privacy.models import KAnonymity
from veilmark.utility.local import local_by_attribute, local_losses
from veilmark.utility.loss import ADDITIVE, NodeLoss, nil, nil_as_printed, untouched
from veilmark.veil.mondrian import Mondrian, partition

VALUES = {"sex": ["F", "M", None], "zip": ["11", "12", "21"], "age": ["20", "21", "35", "60", None]}
SPECS = {"sex": None, "zip": {"levels": [{"11": "1", "12": "1", "21": "2"}]}, "age": {"intervals": [5, 20]}}
QUASI = list(VALUES)
ROWS = st.lists(st.fixed_dictionaries({n: st.sampled_from(v) for n, v in VALUES.items()}), min_size=1, max_size=25)


def prepared(rows):
    table = oracle.class_table(rows, QUASI)
    specs = [None if SPECS[c] is None else parse_spec(SPECS[c]) for c in QUASI]
    levels = [resolve(spec, d, c) for spec, d, c in zip(specs, table.domains, QUASI, strict=True)]
    return table, levels


def cost(rows, column, value, covered, level, height):
    """What one record loses by the metrics, given the values that its label covers."""
    counts = Counter(row[column] for row in rows)
    share = len(covered) / len(counts) if len(covered) > 1 else 0.0
    numbers = [float(v) for v in counts if v is not None] if column in ("zip", "age") else []
    if numbers:
        inside = [float(v) for v in covered if v is not None]
        whole = max(numbers) - min(numbers)
        share = 1.0 if None in covered and inside else (max(inside) - min(inside)) / (whole or 1) if inside else 0.0
    return {
        "precision": level / max(height, 1),
        "gcp": share,
        "lm": (len(covered) - 1) / max(len(counts) - 1, 1),
        "entropy": math.log2(sum(counts[v] for v in covered) / counts[value]),
    }


def summed(rows, costs):
    total = {metric: sum(c[metric] for c in costs) for metric in ADDITIVE}
    return {metric: t if metric == "entropy" else t / len(rows) for metric, t in total.items()}


@given(ROWS, st.data())
def test_full_domain_by_attribute_is_what_records_lose(rows, data):
    table, levels = prepared(rows)
    node = [data.draw(st.integers(0, of.height)) for of in levels]
    weights = {c: data.draw(st.sampled_from([0.5, 1.0, 3.0])) for c in QUASI}
    rolled = table.roll_up(levels, node)
    failing = np.array(data.draw(st.lists(st.booleans(), min_size=len(rolled), max_size=len(rolled))), dtype=bool)
    loss = NodeLoss(table, levels, weights)
    got = loss.by_attribute(rolled, node, failing)

    maps = []
    for column, of, domain, level in zip(QUASI, levels, table.domains, node, strict=True):
        maps.append(dict(zip(domain.text.to_pylist(), of.of_values(level).to_pylist(), strict=True)))
        assert set(got[column]) == set(ADDITIVE)
    texts = [of.labels[level].take(c).to_pylist() for of, level, c in zip(levels, node, rolled.codes, strict=True)]
    keys = zip(*texts, strict=True)
    gone = {key for key, out in zip(keys, failing, strict=True) if out}
    for column, to, of, level in zip(QUASI, maps, levels, node, strict=True):
        costs = []
        for row in rows:
            out = tuple(m[row[c]] for c, m in zip(QUASI, maps, strict=True)) in gone
            covered = {v for v in to if out or to[v] == to[row[column]]}
            each = cost(rows, column, row[column], covered, of.height if out else level, of.height)
            costs.append(each | {"gcp": 1.0, "lm": 1.0, "precision": 1.0} if out else each)
        assert got[column] == pytest.approx(summed(rows, costs))

    totals = loss.all_of(rolled, node, failing)
    for metric in ADDITIVE:
        total = sum(weights[c] * got[c][metric] for c in QUASI)
        assert totals[metric] == pytest.approx(total if metric == "entropy" else total / sum(weights.values()))


@given(ROWS, st.integers(1, 4), st.booleans())
def test_local_by_attribute_is_what_records_lose(rows, k, sets):
    assume(len(rows) >= k)
    table, levels = prepared(rows)
    numeric = [d.numbers is not None and c == "age" for c, d in zip(QUASI, table.domains, strict=True)]
    found = partition(table, levels, numeric, [KAnonymity(k)], Mondrian(sets=sets))
    got = local_by_attribute(table, levels, numeric, found.part, found.parts, sets)
    part = oracle.by_class(table, found.part.tolist())
    members = {}
    for row in rows:
        members.setdefault(part[tuple(row[c] for c in QUASI)], []).append(row)

    for i, (column, of, domain) in enumerate(zip(QUASI, levels, table.domains, strict=True)):
        values = domain.text.to_pylist()
        above = [dict(zip(values, of.of_values(at).to_pylist(), strict=True)) for at in range(of.height + 1)]
        costs = []
        for row in rows:
            present = {r[column] for r in members[part[tuple(row[c] for c in QUASI)]]}
            level = next(at for at in range(of.height + 1) if len({above[at][v] for v in present}) == 1)
            covered = {v for v in values if above[level][v] == above[level][row[column]]}
            if numeric[i] and None in present and len(present) > 1:
                covered = set(values)
            elif numeric[i] and None not in present:
                low, high = min(map(float, present)), max(map(float, present))
                covered = {v for v in values if v is not None and low <= float(v) <= high}
            elif not numeric[i] and of.height == 1 and sets:
                covered = present
            costs.append(cost(rows, column, row[column], covered, level, of.height))
        assert got[column] == pytest.approx(summed(rows, costs))

    totals = local_losses(table, levels, numeric, found.part, found.parts, got)
    for metric in ADDITIVE:
        total = sum(of[metric] for of in got.values())
        assert totals[metric] == pytest.approx(total if metric == "entropy" else total / len(QUASI))
    assert totals["dm"] == sum(len(m) ** 2 for m in members.values())


@given(ROWS, st.integers(1, 4), st.integers(0, 1 << 20))
def test_suppressed_parts_lose_everything(rows, k, seed):
    assume(len(rows) >= k)
    table, levels = prepared(rows)
    found = partition(table, levels, [False] * len(QUASI), [KAnonymity(k)])
    gone = np.random.default_rng(seed).random(found.parts) < 0.4
    got = local_losses(table, levels, [False] * len(QUASI), found.part, found.parts, gone=gone)
    records = np.bincount(found.part, weights=table.records, minlength=found.parts)
    lost, everyone = records[gone].sum(), len(rows)
    kept = local_losses(table, levels, [False] * len(QUASI), found.part, found.parts)
    assert got["dm"] == (records[~gone] ** 2).sum() + lost * everyone
    for metric in ("gcp", "precision"):
        assert lost / everyone - 1e-9 <= got[metric] <= kept[metric] + lost / everyone + 1e-9
    everything = np.ones(found.parts, dtype=bool)
    whole = local_losses(table, levels, [False] * len(QUASI), found.part, found.parts, gone=everything)
    assert (whole["gcp"], whole["precision"]) == pytest.approx((1, 1))
    assert whole["entropy"] == pytest.approx(
        sum(np.log2(everyone / sum(r[c] == row[c] for r in rows)) for row in rows for c in QUASI)
    )


@given(st.lists(st.sampled_from("abcdefghijklm"), min_size=3, max_size=40), st.integers(1, 5))
def test_sets_cost_as_much_as_the_labels_that_are_published(values, k):
    assume(len(values) >= k)
    table = oracle.class_table([{"x": v} for v in values], ["x"])
    levels = [resolve(None, table.domains[0], "x")]
    found = partition(table, levels, [False], [KAnonymity(k)])
    size = np.bincount(found.part, weights=table.records)
    got = local_by_attribute(table, levels, [False], found.part, found.parts)
    assert got["x"]["gcp"] == pytest.approx(float(np.dot(size, found.widths[0])) / len(values))


@given(ROWS)
def test_a_table_as_it_is_loses_nothing_but_has_classes(rows):
    table, levels = prepared(rows)
    nowhere = np.zeros(len(table), dtype=bool)
    got = untouched(table)
    assert got == pytest.approx(
        NodeLoss(table, levels).all_of(table, [0] * len(QUASI), nowhere)
        | {"average_class": len(rows) / len(oracle.classes(rows, QUASI))}
    )
    assert all(got[metric] == 0 for metric in ADDITIVE)


def test_numeric_information_loss():
    old, new = np.array([10.0, 20.0, 30.0, np.nan]), np.array([15.0, 15.0, 30.0, 1.0])
    assert nil(old, new) == pytest.approx(10 / (3 * 20))
    assert nil_as_printed(old, new) == pytest.approx(10 / 3)
    twice = np.array([2, 2, 2, 2])
    assert nil(old, new, twice) == pytest.approx(nil(old, new))
    assert nil(old, old) == nil_as_printed(old, old) == nil(old[:0], old[:0]) == 0
    assert nil(np.array([0.0, 4.0]), np.array([4.0, 0.0])) == 1

"""Which values a released label stands for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
from veilmark.hierarchy import parse_spec, resolve
from veilmark.privacy.models import KAnonymity
from veilmark.tables.domain import Domain
from veilmark.utility.covers import read_labels
from veilmark.veil.mondrian import Mondrian, partition

AGES = [1, 2, 3, 7, 8, 20, 30.5, None]
SPEC = parse_spec({"intervals": [5, 10]})


def covered(cover, domain):
    """For each label the values it covers."""
    values, masks = domain.text.to_pylist(), cover.masks()
    return [{values[i] for i in np.flatnonzero(masks[:, label])} for label in range(len(cover.labels))]


def read(labels, values, spec=None):
    domain = Domain.of(pa.array(values))
    cover = read_labels(pa.array(labels, pa.string()), domain, resolve(spec and parse_spec(spec), domain, "x"))
    return covered(cover, domain), cover


@pytest.mark.parametrize(
    ("label", "want"),
    [
        ("1-3", {"1", "2", "3"}),
        ("2–7", {"2", "3", "7"}),
        ("[2, 8)", {"2", "3", "7"}),
        ("[2, 8[", {"2", "3", "7"}),
        ("]2; 8]", {"3", "7", "8"}),
        ("[2, 8] or missing", {"2", "3", "7", "8", None}),
        ("{1, 8}", {"1", "8"}),
        ("{1, missing}", {"1", None}),
        ("2…8 (4 values)", {"2", "3", "7", "8"}),
        ("[5, 10)", {"7", "8"}),
        ("*", {"1", "2", "3", "7", "8", "20", "30.5", None}),
        (None, {None}),
        ("7", {"7"}),
        ("7.0", {"7"}),
        ("6", {"7"}),
        ("1e1", {"8"}),
        ("100", {"30.5"}),
        ("[21, 22]", {"20"}),
        ("2,5", set()),
        ("old or missing", set()),
        ("{1, old}", set()),
        ("8…2 (4 values)", set()),
    ],
)
def test_forms_of_labels(label, want):
    # A second label keeps the first from being taken for one level of the hierarchy.
    [got, _], cover = read([label, "nonsense"], AGES, {"intervals": [5, 10]})
    assert got == want
    assert cover.count[1] == 0


def test_texts_with_the_separator_within_and_empty_cells():
    got, _ = read(["{Austin, TX, Salem}", "{Salem, X}", None], ["Austin, TX", "Salem"])
    assert got == [{"Austin, TX", "Salem"}, set(), {"Austin, TX", "Salem"}]
    assert read(["1-2"], ["a", "b"])[0] == [set()]
    assert read(["x"], pa.array([], pa.string()))[0] == [set()]


def test_a_label_of_two_levels_is_read_at_the_level_of_all():
    spec = {"levels": [{"a": "a", "b": "a", "c": "d"}]}
    assert read(["a", "d"], ["a", "b", "c"], spec)[0] == [{"a", "b"}, {"c"}]
    assert read(["a", "c"], ["a", "b", "c"], spec)[0] == [{"a"}, {"c"}]
    # Suppressed cells do not disturb: a star is everything.
    assert read(["a", "d", "*"], ["a", "b", "c"], spec)[0] == [{"a", "b"}, {"c"}, {"a", "b", "c"}]
    assert read(["a", "d", "c"], ["a", "b", "c"], spec)[0] == [{"a"}, {"c"}, {"c"}]


@given(st.lists(st.sampled_from(AGES), min_size=1), st.integers(0, 3))
def test_labels_of_a_level_cover_what_is_under_them(values, level):
    domain = Domain.of(pa.array(values, pa.float64()).unique())
    levels = resolve(SPEC, domain, "x")
    level = min(level, levels.height)
    got = covered(read_labels(levels.labels[level], domain, levels), domain)
    texts, above = domain.text.to_pylist(), levels.of_values(level).to_pylist()
    assert got == [{t for t, a in zip(texts, above, strict=True) if a == g} for g in levels.labels[level].to_pylist()]


VALUES = {"age": ["-5", "2.5", "20", "21", "35", None], "town": list("abcdefghij"), "zip": ["11", "12", "21"]}
SPECS = {"age": None, "town": None, "zip": {"mask": 2}}
ROWS = st.lists(st.fixed_dictionaries({n: st.sampled_from(v) for n, v in VALUES.items()}), min_size=1, max_size=40)


@given(ROWS, st.integers(1, 8), st.booleans())
def test_what_mondrian_writes_is_understood(rows, k, relaxed):
    assume(len(rows) >= k)
    table = oracle.class_table(rows, list(VALUES))
    specs = [SPECS[c] and parse_spec(SPECS[c]) for c in VALUES]
    levels = [resolve(s, d, c) for s, d, c in zip(specs, table.domains, VALUES, strict=True)]
    numeric = [c == "age" and d.numbers is not None for c, d in zip(VALUES, table.domains, strict=True)]
    found = partition(table, levels, numeric, [KAnonymity(k)], Mondrian(relaxed=relaxed))
    for i, (domain, of) in enumerate(zip(table.domains, levels, strict=True)):
        labels = pa.array(found.labels[i]).dictionary_encode(null_encoding="encode")
        cover = read_labels(labels.dictionary.cast(pa.string()), domain, of)
        masks = cover.masks()[:, labels.indices.to_numpy()]
        assert masks[table.codes[i], found.part].all()
        # It covers no more than the part's width says.
        if not numeric[i]:
            share = np.where(masks.sum(axis=0) > 1, masks.sum(axis=0) / len(domain), 0)
            assert share == pytest.approx(found.widths[i])


@given(st.lists(st.sampled_from(["1-3", "[2, 8)", "{1, 8}", "*", "7", "6", "old", None]), min_size=1, unique=True))
def test_sums_over_what_is_covered(labels):
    domain = Domain.of(pa.array(AGES))
    cover = read_labels(pa.array([*labels, "x"], pa.string()), domain, resolve(SPEC, domain, "x"))
    masks = cover.masks().astype(float)
    amounts = np.arange(1.0, len(labels) + 2)
    assert cover.count == pytest.approx(masks.sum(axis=0))
    assert cover.covering() == pytest.approx(masks.sum(axis=1))
    assert cover.spread(amounts) == pytest.approx(masks @ (amounts / np.maximum(masks.sum(axis=0), 1)))
    groups = np.array([0, 0, 1, 1, 0, 2, 2, 1])
    want = np.array([[masks[groups == g, i].sum() for g in range(3)] for i in range(len(labels) + 1)])
    assert cover.shares(groups, 3) == pytest.approx(want / np.maximum(masks.sum(axis=0), 1)[:, None])
    mean, variance = cover.moments(domain.numbers)
    for i, label in enumerate([*labels, "x"]):
        inside = domain.numbers[masks[:, i] > 0]
        inside = np.array([6.0]) if label == "6" else inside[~np.isnan(inside)]
        if len(inside):
            assert (mean[i], variance[i]) == pytest.approx((inside.mean(), inside.var()))
        else:
            assert np.isnan(mean[i])

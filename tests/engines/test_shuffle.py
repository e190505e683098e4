"""Shuffled rows: the same rows, in any order with the same probability, and by a seed in the same one each time."""

from __future__ import annotations

import itertools
import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from veilmark.engines import shuffle
from veilmark.engines.shuffle import Shuffle
from veilmark.errors import OutputError


def rows_of(count, cuts=()):
    """Numbered rows in batches, cut at these places."""
    ends = [0, *sorted(cut for cut in cuts if cut <= count), count]
    texts = np.array([f"text {i}" for i in range(count)], dtype=object)
    for low, high in itertools.pairwise(ends):
        columns = {"n": np.arange(low, high), "t": pa.array(texts[low:high], pa.string())}
        yield pa.record_batch({**columns, "d": pa.array(np.arange(low, high) % 3, mask=np.arange(low, high) % 5 == 0)})


def shuffled(count, seed=None, cuts=(), folder=None):
    return pa.Table.from_batches(Shuffle(count, seed).batches(rows_of(count, cuts), folder))


@pytest.fixture
def small(monkeypatch):
    """Buckets of a few rows, most of them in a file."""
    monkeypatch.setattr(shuffle, "BUCKET_ROWS", 8)
    monkeypatch.setattr(shuffle, "HELD_BYTES", 1_000)


@given(st.integers(0, 300), st.integers(0, 9), st.lists(st.integers(0, 300), max_size=6))
def test_a_seed_gives_one_order_however_rows_arrive(count, seed, cuts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shuffle, "BUCKET_ROWS", 8)
        whole = shuffled(count, seed)
        patch.setattr(shuffle, "HELD_BYTES", 1_000)
        patch.setattr(shuffle, "DRAWN_WORDS", 1 << 15)
        assert shuffled(count, seed, cuts).equals(whole)
    order = whole["n"].to_pylist()
    assert sorted(order) == list(range(count))
    assert whole["t"].to_pylist() == [f"text {i}" for i in order]
    assert whole["d"].to_pylist() == [None if i % 5 == 0 else i % 3 for i in order]


def test_without_a_seed_no_two_orders_are_the_same(small):
    assert len({tuple(shuffled(100)["n"].to_pylist()) for _ in range(20)}) == 20


def test_every_order_is_as_likely_as_any_other(monkeypatch):
    """All 24 orders of four rows, over two buckets."""
    monkeypatch.setattr(shuffle, "BUCKET_ROWS", 2)
    monkeypatch.setattr(shuffle, "DRAWN_WORDS", 1)
    seen = Counter(tuple(shuffled(4, seed)["n"].to_pylist()) for seed in range(2_400))
    assert len(seen) == 24
    assert chisquare(list(seen.values())).pvalue > 1e-4


def test_rows_do_not_stay_near_where_they_were(small):
    """Not block by block: rows from any part of the table come out anywhere."""
    order = shuffled(5_000, 3)["n"].to_numpy()
    for part in np.array_split(order, 5):
        assert kstest(part / 5_000, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 0.06


def test_what_does_not_fit_into_memory_leaves_no_file(small, tmp_path):
    batches = Shuffle(500, 1).batches(rows_of(500, range(0, 500, 50)), tmp_path)
    next(batches)
    assert os.listdir(tmp_path) == []
    batches.close()
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_said(small, tmp_path):
    with pytest.raises(OutputError, match=r"cannot be shuffled.*TMPDIR"):
        shuffled(500, 1, range(0, 500, 50), tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("rows", "buckets"), [(0, 1), (1 << 17, 1), (1 + (1 << 17), 2), (13_000_000, 128), (1 << 40, 4096)]
)
def test_buckets_are_a_power_of_two(rows, buckets):
    assert Shuffle(rows)._count() == buckets

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from veilmark.tables import cells as cells_module
from veilmark.tables.cells import count_batches, encode, number, pack
from veilmark.tables.domain import Domain

ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None, ""]), st.sampled_from([1, 2, 30, None])), max_size=60)


@pytest.fixture(params=[1 << 22, 1], ids=["dense", "sorted"])
def counting(request, monkeypatch):
    monkeypatch.setattr(cells_module, "DENSE_LIMIT", request.param)
    monkeypatch.setattr(cells_module, "SORT_ROWS", 10)


def as_counts(cells):
    texts = [d.text.to_pylist() for d in cells.domains]
    keys = zip(*([texts[i][c] for c in codes] for i, codes in enumerate(cells.codes)), strict=True)
    return dict(zip(keys, cells.records.tolist(), strict=True))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
def test_counting_packed_rows_and_encoding_a_group_by_give_the_same_cells(counting, rows):
    table = pa.table(
        {"x": pa.array([r[0] for r in rows], pa.string()), "y": pa.array([r[1] for r in rows], pa.int16())}
    )
    want: dict[tuple[str | None, str | None], int] = {}
    for x, y in rows:
        key = (x or None, None if y is None else str(y))
        want[key] = want.get(key, 0) + 1
    domains = [Domain.of(table[c].combine_chunks()) for c in ("x", "y")]
    dense = count_batches(table.to_batches(max_chunksize=7), domains, ("x", "y"))
    assert as_counts(dense) == want
    cleaned = table.set_column(0, "x", pa.array([r[0] or None for r in rows], pa.string()))
    grouped = cleaned.group_by(["x", "y"]).aggregate([([], "count_all")]).select(["x", "y", "count_all"])
    coded = encode(grouped, ("x", "y"))
    assert as_counts(coded) == want
    np.testing.assert_array_equal(coded.codes, dense.codes)


def test_cells_stand_in_lexicographic_order():
    table = pa.table({"x": ["b", "a", "a"], "y": [10, 10, 9], "records": [1, 2, 3]})
    cells = encode(table, ("x", "y"))
    assert cells.codes.tolist() == [[0, 0, 1], [0, 1, 1]]
    assert cells.records.tolist() == [3, 2, 1]
    assert cells.starts(1).tolist() == [0, 2]


def test_packing_survives_domains_whose_product_exceeds_63_bits():
    rng = np.random.default_rng(1)
    sizes = [1 << 30] * 5
    codes = rng.integers(0, 1 << 30, (5, 200)).astype(np.int32)
    codes[:, 100:] = codes[:, :100]
    keys, _ = pack(codes, sizes)
    assert len(np.unique(keys)) == 100
    order = np.lexsort(codes[::-1])
    assert np.all(np.diff(keys[order]) >= 0)


@given(st.lists(st.integers(0, 50), max_size=40), st.sampled_from([51, 1 << 40]))
def test_number_is_np_unique(values, bound):
    keys = np.array(values, dtype=np.int64)
    distinct, position = number(keys, bound)
    want, inverse = np.unique(keys, return_inverse=True)
    np.testing.assert_array_equal(distinct, want)
    np.testing.assert_array_equal(position, inverse)

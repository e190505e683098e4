from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hierarchy.helpers import check_sound, levels_of, paths
from veilmark.hierarchy import parse_spec, resolve
from veilmark.tables.domain import Domain


def test_without_a_hierarchy_there_are_value_and_star():
    levels = levels_of(None, "b", "a", None)
    assert paths(levels) == {"a": ["*"], "b": ["*"], None: ["*"]}
    assert levels.height == 1


def test_up_and_leaves():
    levels = levels_of({"mask": 2}, "11", "12", "13", "21", "3", None)
    assert levels.labels[1].to_pylist() == ["*", "1*", "2*", None]
    assert levels.leaves(1).tolist() == [1, 3, 1, 1]
    assert levels.leaves(2).tolist() == [6]
    assert levels.up(0, 1).tolist() == [0, 1, 1, 1, 2, 3]
    assert levels.up(1, 1).tolist() == [0, 1, 2, 3]
    assert levels.up(1, 2).tolist() == [0, 0, 0, 0]
    assert repr(levels) == "Levels(6 → 4 → 1 labels)"


ANY_SPEC = [
    None,
    {"intervals": [5, 10]},
    {"mask": 3},
    {"dates": ["month", "year"]},
    {"levels": [{"a": "A"}, {"A": "B", "C": "D"}]},
]


@pytest.mark.parametrize("spec", ANY_SPEC)
@pytest.mark.parametrize("values", [[], [None, None]])
def test_nothing_and_only_missing(spec, values):
    column = Domain.of(pa.array(values, pa.string()))
    levels = resolve(spec and parse_spec(spec), column, "col")
    check_sound(levels, column)
    assert [labels.to_pylist() for labels in levels.labels[:-1]] == [values[:1]] * levels.height


@pytest.mark.parametrize("spec", [{"mask": 5}, {"intervals": [5, 10, 20]}])
def test_many_values(spec):
    column = Domain.of(pa.array(np.arange(200_000)))
    levels = resolve(parse_spec(spec), column, "col")
    step = 10 if "mask" in spec else 5
    assert len(levels.labels[1]) == 200_000 // step
    assert (levels.leaves(1) == step).all()

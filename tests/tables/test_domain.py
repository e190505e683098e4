from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from veilmark.errors import DataError
from veilmark.tables.domain import Domain, as_text


def test_numbers_sort_by_size_and_missing_stands_last():
    domain = Domain.of(pa.array(["10", None, "9", "01", "1"]))
    assert domain.text.to_pylist() == ["01", "1", "9", "10", None]
    assert domain.missing == 4
    assert domain.numbers is not None
    np.testing.assert_array_equal(domain.numbers[:4], [1, 1, 9, 10])


def test_other_texts_sort_by_code_point():
    assert Domain.of(pa.array(["b", "B", "é", "a", "10"])).text.to_pylist() == ["10", "B", "a", "b", "é"]


def test_empty_text_and_nan_are_missing():
    assert Domain.of(pa.array(["", "a", None])).text.to_pylist() == ["a", None]
    assert Domain.of(pa.array([float("nan"), 1.5, None])).text.to_pylist() == ["1.5", None]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        (5.0, "5"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (12345678.5, "12345678.5"),
        (1e10, "10000000000"),
        (123456789012345.5, "123456789012345.5"),
        (np.float32(0.1), "0.1"),
        (1e300, "1e+300"),
        (Decimal("12.50"), "12.5"),
        (Decimal("0.00000010"), "0.0000001"),
        (Decimal("100"), "100"),
        (True, "true"),
        (dt.date(2024, 3, 5), "2024-03-05"),
        (dt.datetime(2024, 3, 5, 10, 0, 0), "2024-03-05 10:00:00"),
        (dt.datetime(2024, 3, 5, 10, 0, 0, 500_000), "2024-03-05 10:00:00.5"),
        ("01234", "01234"),
        (" ", " "),
    ],
)
def test_one_text_stands_for_a_value_whatever_holds_it(value, text):
    assert as_text(pa.array([value])).to_pylist() == [text]


def test_codes_of_finds_values_of_any_type():
    domain = Domain.of(pa.array([3, 1, 2, None]))
    assert domain.codes_of(pa.array(["2", "7", None, ""])).tolist() == [1, -1, 3, 3]
    assert domain.codes_of(pa.array([2.0, 1.0])).tolist() == [1, 0]


def test_a_nul_byte_is_refused():
    with pytest.raises(DataError, match="'zip' contains a NUL byte"):
        Domain.of(pa.array(["a\0b"]), "zip")


def test_an_empty_domain_is_fine():
    assert len(Domain.of(pa.array([], pa.string()))) == 0
    assert Domain.of(pa.nulls(1)).text.to_pylist() == [None]

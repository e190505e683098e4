"""Negative numbers that mean missing are found among texts too, such as codes of diseases."""

from __future__ import annotations

import pytest
from guessing import one

DISEASES = ["042", "250", "V22", "E885", "401"]


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([*DISEASES, "-1", "-9", "-1"], {"-1", "-9"}),
        (["yes", "no", "-8"], {"-8"}),
        ([*DISEASES, "999"], set()),
        (["low", "-5 to 0", "0 to 5", "-1"], set()),
        (["-1", "0", "1", "much"], set()),
    ],
)
def test_codes_among_texts(values, codes):
    assert set(one("condition", values, 5).missing) == codes

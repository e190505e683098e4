"""Limits that no release can meet are refused with the reason; the nearest possible one is not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from veilmark import Alpha, DistinctL, EntropyL, KMap, Mondrian, Ola, OptionError, RecursiveL, Study, VeilmarkWarning
from veilmark.veil import planning

TABLE = pa.table({"id": [1, 1, 2, 3, 4, 5], "a": list("xxxyyy"), "ill": ["u", "u", "v", "w", "u", None]})
ROLES = {"a": "quasi", "ill": "sensitive"}


@pytest.mark.parametrize("method", [Ola, Mondrian])
@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"k": 7}, "k = 7 cannot be reached: the table has 6 records"),
        ({"models": (DistinctL("ill", 5),)}, "l = 5 for 'ill' cannot be reached: the column has 4 values"),
        ({"models": (EntropyL("ill", 4.5),)}, "l = 4.5 for 'ill' cannot be reached"),
        ({"models": (RecursiveL("ill", 3.0, 5),)}, "l = 5 for 'ill' cannot be reached"),
        ({"models": (Alpha("ill", 0.2),)}, "α = 0.2 for 'ill' cannot be reached: .* at least 0.25 in any class"),
    ],
)
def test_impossible_limits(method, limits, says):
    with pytest.raises(OptionError, match=says):
        Study.of(TABLE, ROLES).anonymize(method(**limits))


def test_persons_are_counted_where_they_are_known():
    study = Study.of(TABLE, ROLES, person="id")
    assert study.anonymize(Ola(k=5)).k == 5
    with pytest.raises(OptionError, match="k = 6 cannot be reached: the table has 5 persons"):
        study.anonymize(Ola(k=6))


def test_the_largest_possible_limits_are_met():
    study = Study.of(TABLE, ROLES)
    assert study.anonymize(Ola(k=6, models=(DistinctL("ill", 4),))).k == 6
    assert study.anonymize(Mondrian(k=6)).k == 6


def test_a_population_that_is_too_small():
    people = pa.table({"a": list("xxxyyyzz")})
    assert Study.of(TABLE, ROLES).anonymize(Ola(models=(KMap(8),)), population=people).records == 6
    with pytest.raises(OptionError, match="A k of 9 in the population cannot be reached: the population has 8 persons"):
        Study.of(TABLE, ROLES).anonymize(Ola(models=(KMap(9),)), population=people)


@pytest.mark.parametrize("loss", ["gcp", "dm_star", "dm", "entropy"])
def test_everything_may_be_suppressed_and_something_is_published(loss):
    made = Study.of(pa.table({"a": list("abcdefgh"), "b": list("xxxxyyyy")}), {"a": "quasi", "b": "quasi"})
    assert made.anonymize(Ola(k=4, suppression=1.0, loss=loss)).records > 0


def test_many_quasi_identifiers_get_a_warning(monkeypatch):
    monkeypatch.setattr(planning, "LARGEST_LATTICE", 3)
    study = Study.of(TABLE, {"a": "quasi", "ill": "quasi"})
    with pytest.warns(
        VeilmarkWarning,
        match=r"2 quasi-identifiers have about 10\^0 combinations of generalization levels, too many.*60 seconds",
    ):
        study.anonymize(Ola(k=2))
    study.anonymize(Ola(k=2, seconds=5))
    study.anonymize(Mondrian(k=2))

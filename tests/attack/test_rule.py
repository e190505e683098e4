"""One rule for what is better than guessing, and words for how much, everywhere the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark.attack import RULE, AttackResult, verdict
from veilmark.attack.harness import wilson
from veilmark.report.attack_chart import attacks


@pytest.mark.parametrize(
    ("success", "control", "interval", "targets", "better", "amount"),
    [
        (0.30, 0.28, (0.29, 0.31), 1_000, True, "little"),
        (0.30, 0.28, (0.28, 0.32), 1_000, False, "none"),  # the lower end is not above the control
        (0.30, 0.20, (0.25, 0.35), 1_000, True, "some"),
        (0.50, 0.20, (0.40, 0.60), 1_000, True, "a lot"),
        (0.10, 0.20, (0.05, 0.15), 1_000, False, "none"),
        (0.00, 0.00, (0.00, 1.00), 0, False, "none"),
    ],
)
def test_the_rule(success, control, interval, targets, better, amount):
    found = AttackResult(success, control, interval, targets)
    assert (found.better, found.amount) == (better, amount)
    assert found.to_dict()["better_than_guessing"] is better
    assert found.to_dict()["amount"] == amount


@given(st.integers(0, 50), st.integers(1, 50), st.floats(0, 1))
def test_what_is_better_gains(right, targets, control):
    share = min(right / targets, 1.0)
    found = AttackResult(share, control, wilson(share, targets), targets)
    assert not found.better or found.gain > 0
    assert found.better == (found.amount != "none")


def test_the_words_and_the_chart_follow_the_rule():
    found = {
        "bk": AttackResult(0.5, 0.2, (0.4, 0.6), 9),
        "qicorr": AttackResult(0.3, 0.29, (0.2, 0.4), 9),
        "linkage": AttackResult(0.04, 0.01, (0.03, 0.05), 9),
    }
    assert verdict(found) == "Better than guessing: bk (+30.0 points, a lot), linkage (+3.0 points, little)."
    assert verdict({"qicorr": found["qicorr"]}) == "No attack is better than guessing."
    assert "lower end of its 95 % interval is above the control" in RULE
    (drawn,) = attacks(found).to_dict()["datasets"].values()
    assert {row["attack"]: row["kind"] for row in drawn} == {
        "bk": "better than guessing",
        "qicorr": "not better than guessing",
        "linkage": "better than guessing",
    }

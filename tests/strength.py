"""How many examples a property is tried with, and how often chance is: a few times in `make test`, many in
`make test-heavy`."""

from __future__ import annotations

from hypothesis import settings

PATIENCE = 300
"""Seconds until something that a test waits for is given up: long enough for a machine that does much else."""

PROFILES = {"quick": 0.5, "thorough": 4.0}
"""By how much the usual number is multiplied."""

USUAL = settings().max_examples


def register_profiles() -> None:
    """Time depends on the machine and on what else it does; tests never judge it."""
    for name, factor in PROFILES.items():
        settings.register_profile(name, deadline=None, max_examples=round(USUAL * factor))
    settings.load_profile("quick")


def examples(usual: int) -> int:
    """The number of examples where a property needs more or fewer than others."""
    return max(5, round(usual * PROFILES[settings.get_current_profile_name()]))


trials = examples
"""The number of trials where chance decides; bounds follow from it."""

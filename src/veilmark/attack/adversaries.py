"""The attackers who guess sensitive values, each with what they know."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from veilmark.attack.facts import draw_facts, no_facts
from veilmark.attack.harness import AttackResult, Seed, result
from veilmark.attack.inference import Inference, Outcome


def qicorr(inference: Inference) -> AttackResult:
    """A neighbour knows the target's quasi-identifiers, finds the class that fits, and reads off the sensitive values.

    Each published sensitive attribute is guessed; a target's success is the mean over them.
    """
    facts = no_facts(tuple(inference.view.meanings), len(inference.persons))
    return _result(inference.run(facts, quasi=True, same=True))


def bk(inference: Inference, known: int, seed: Seed) -> AttackResult:
    """A colleague knows the quasi-identifiers and some sensitive values too, and wants the rest.

    Candidates must hold the facts; what is guessed are the values that the attacker does not know yet.
    """
    facts = draw_facts(inference.persons, tuple(inference.view.meanings), known, np.random.default_rng(seed))
    return _result(inference.run(facts, quasi=True, same=True))


def msacorr(inference: Inference, seed: Seed) -> AttackResult:
    """Somebody heard of one sensitive value, knows nothing else, and wants the target's other sensitive attributes."""
    facts = draw_facts(inference.persons, tuple(inference.view.meanings), 1, np.random.default_rng(seed))
    return _result(inference.run(facts, quasi=False, same=False))


def _result(outcome: Outcome) -> AttackResult:
    attack, control = _means(outcome.attack), _means(outcome.control)
    asked = ~np.isnan(attack)
    own = {
        name: {"success": float(np.nanmean(found)), "control": float(np.nanmean(outcome.control[name]))}
        for name, found in outcome.attack.items()
        if not np.isnan(found).all()
    }
    return result(attack[asked], control[asked], attributes=own)


def _means(right: Mapping[str, np.ndarray]) -> np.ndarray:
    """For each target the mean over the attributes that were guessed; NaN where none was."""
    table = np.array(list(right.values()))
    there = ~np.isnan(table)
    with np.errstate(invalid="ignore"):
        mean: np.ndarray = np.where(there, table, 0).sum(axis=0) / there.sum(axis=0)
    return mean

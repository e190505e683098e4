"""Attacks on a release before it is shipped: one module an adversary or two, and the common harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from veilmark.attack import adversaries
from veilmark.attack.compatible import Sets, fitting_classes
from veilmark.attack.facts import draw_facts
from veilmark.attack.harness import RULE, AttackResult, verdict, without_targets
from veilmark.attack.inference import Inference
from veilmark.attack.linkage import Population, linkage
from veilmark.attack.membership import Membership, call
from veilmark.attack.view import View, view_of_persons
from veilmark.defaults import KNOWN, TARGETS
from veilmark.hierarchy import Levels
from veilmark.progress import step
from veilmark.tables.persons import PersonTable

__all__ = ["ATTACKS", "RULE", "AttackResult", "Population", "View", "attack_view", "verdict", "without_targets"]

ATTACKS = ("bk", "msacorr", "qicorr", "mcorr", "nmcorr", "linkage")


def attack_view(
    view: View,
    persons: PersonTable,
    levels: Mapping[str, Levels],
    attacks: Sequence[str] = ATTACKS,
    targets: int = TARGETS,
    known: int = KNOWN,
    population: Population | None = None,
    seed: int = 1,
) -> dict[str, AttackResult]:
    """Attack a release of `persons`; of more persons than `targets`, so many are drawn.

    `known` is how many sensitive values bk, mcorr and nmcorr know. Each attack has randomness of its own, so that its
    result does not depend on which others run.
    """
    chosen = _targets(len(persons), targets, seed)
    some = persons.take(chosen)
    with step("Finding matching classes"):
        first, which = _combinations(some)
        sets = fitting_classes(view, {name: c.values[first] for name, c in some.quasi.items()}, len(first))
    sets = Sets(sets.starts, sets.members, sets.of[which])
    found: dict[str, AttackResult] = {}
    inference = Inference(view, some, sets)
    for name in ("bk", "msacorr", "qicorr"):
        if name in attacks:
            with step(f"Attacking: {name}"):
                found[name] = _infer(name, inference, known, seed)
    if {"mcorr", "nmcorr"} & set(attacks):
        with step("Attacking: membership"):
            facts = draw_facts(some, tuple(view.meanings), known, np.random.default_rng([seed, 4]))
            source = view_of_persons(persons, levels)
            own = Sets(np.arange(len(source) + 1), np.arange(len(source)), persons.class_of[chosen])
            calls = call(Membership(view), Membership(source), some, sets, own, facts, [seed, 5])
            found |= {"mcorr": calls.mcorr(), "nmcorr": calls.nmcorr()}
    if "linkage" in attacks:
        with step("Attacking: linkage"):
            found["linkage"] = linkage(view, population or source_population(persons, levels))
    return {name: found[name] for name in ATTACKS if name in attacks}


def _infer(name: str, inference: Inference, known: int, seed: int) -> AttackResult:
    if name == "qicorr":
        return adversaries.qicorr(inference)
    if name == "bk":
        return adversaries.bk(inference, known, [seed, 2])
    return adversaries.msacorr(inference, [seed, 3])


def _targets(persons: int, most: int, seed: int) -> np.ndarray:
    if persons <= most:
        return np.arange(persons)
    return np.sort(np.random.default_rng([seed, 1]).choice(persons, most, replace=False))


def _combinations(persons: PersonTable) -> tuple[np.ndarray, np.ndarray]:
    """The first person of each combination of quasi-identifiers, and the combination of each person."""
    which = persons.class_of
    first = np.zeros(int(which.max(initial=-1)) + 1, dtype=np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]
    return first, which


def source_population(persons: PersonTable, levels: Mapping[str, Levels]) -> Population:
    """The source itself as the population."""
    classes = persons.classes
    codes = dict(zip(classes.columns, classes.codes, strict=True))
    domains = {name: column.domain for name, column in persons.quasi.items()}
    return Population(domains, levels, codes, classes.records)

"""Linking a release with a table of everybody: the attack linkage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from veilmark.attack.compatible import Sets, fitting_classes
from veilmark.attack.harness import AttackResult, wilson
from veilmark.attack.labels import Labels
from veilmark.attack.view import View
from veilmark.hierarchy import Levels
from veilmark.tables.domain import Domain

PART = 1 << 17
"""So many people are linked at a time."""


@dataclass(frozen=True, eq=False)
class Population:
    """The distinct combinations of everybody's quasi-identifiers: codes in `domains`, and `count` people each.

    The domains hold the source's values too, so that every label of the release can be read by them. Where people have
    several combinations, `holdings` are the pairs of person and combination, and each counts once.
    """

    domains: Mapping[str, Domain]
    levels: Mapping[str, Levels]
    codes: Mapping[str, np.ndarray]
    count: np.ndarray
    holdings: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def people(self) -> int:
        return int(self.count.sum() if self.holdings is None else self.holdings[0].max(initial=-1) + 1)


def linkage(view: View, population: Population) -> AttackResult:
    """Somebody has a table of everybody with names in it, such as a voters' list, and looks up whom a published row fits.

    Each row succeeds with 1 in the number of people that its class links to, or not at all where it links to nobody;
    the control picks anybody of the population. Where a row is a person, a class links to as many people as it has rows,
    at the least: found by the nearest mean, fewer may fit it than are in it.
    """
    quasi = {
        name: Labels.read(labels.cover.labels, population.domains[name], population.levels[name])
        for name, labels in view.quasi.items()
    }
    sets = fitting_classes(replace(view, quasi=quasi), population.codes, len(population.count))
    linked = _linked(sets, population, len(view))
    there = linked > 0
    if view.of_persons:
        linked = np.where(there, np.maximum(linked, view.size), 0)
    success = float(np.dot(view.size[there], 1 / linked[there]) / view.rows)
    everybody = population.people
    details = {
        "population": everybody,
        "min_linked": int(linked[there].min()) if there.any() else 0,
        "unlinked_rows": int(view.size[~there].sum()),
    }
    return AttackResult(success, 1 / everybody, wilson(success, view.rows), view.rows, details)


def _linked(sets: Sets, population: Population, classes: int) -> np.ndarray:
    """How many people each class links to."""
    if population.holdings is None:
        people = np.bincount(sets.of, weights=population.count, minlength=len(sets))
        return np.bincount(sets.members, weights=np.repeat(people, np.diff(sets.starts)), minlength=classes)
    person, combination = population.holdings
    fits = sparse.csr_array((np.ones(len(sets.members), np.int32), sets.members, sets.starts), (len(sets), classes))
    shape = (population.people, len(sets))
    held = sparse.csr_array((np.ones(len(person), np.int32), (person, sets.of[combination])), shape)
    linked = np.zeros(classes)
    for first in range(0, population.people, PART):
        # Of a product of sparse matrices, a place is listed once, however many combinations of the person lead to it.
        linked += np.bincount((held[first : first + PART] @ fits).indices, minlength=classes)
    return linked

"""Linking a release with a table of everybody: the attack linkage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from veilmark.attack.compatible import fitting_classes
from veilmark.attack.harness import AttackResult, wilson
from veilmark.attack.labels import Labels
from veilmark.attack.view import View
from veilmark.domain import Domain
from veilmark.hierarchy import Levels


@dataclass(frozen=True, eq=False)
class Population:
    """The distinct combinations of everybody's quasi-identifiers: codes in `domains`, and `count` people each.

    The domains hold the source's values too, so that every label of the release can be read by them.
    """

    domains: Mapping[str, Domain]
    levels: Mapping[str, Levels]
    codes: Mapping[str, np.ndarray]
    count: np.ndarray


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
    people = np.bincount(sets.of, weights=population.count, minlength=len(sets))
    linked = np.bincount(sets.members, weights=np.repeat(people, np.diff(sets.starts)), minlength=len(view))
    there = linked > 0
    if view.of_persons:
        linked = np.where(there, np.maximum(linked, view.size), 0)
    success = float(np.dot(view.size[there], 1 / linked[there]) / view.rows)
    everybody = float(population.count.sum())
    details = {
        "population": int(everybody),
        "min_linked": int(linked[there].min()) if there.any() else 0,
        "unlinked_rows": int(view.size[~there].sum()),
    }
    return AttackResult(success, 1 / everybody, wilson(success, view.rows), view.rows, details)

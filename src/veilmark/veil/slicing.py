"""Slicing: columns of attributes, and buckets of persons within which each column is permuted by itself.

(Li, Li, Zhang and Molloy 2012.) Buckets are Mondrian's parts of k or more persons, so that those in a bucket are alike in
their quasi-identifiers, which are not generalized. The quasi-identifiers are one column; of the sensitive attributes each
is a column, or each group that is given. A permuted column is published as a table in which rows have the number of their
bucket and no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from veilmark.errors import OptionError, did_you_mean, listing
from veilmark.hierarchy import Levels
from veilmark.persons import PersonTable
from veilmark.privacy.models import KAnonymity
from veilmark.utility.sliced import counts_as_number
from veilmark.veil.items import untouched_values
from veilmark.veil.mondrian import partition
from veilmark.veil.sliced import GID, Sliced, fingerprint_texts, shuffled


@dataclass(frozen=True)
class Slicing:
    """Tuning of the method: `groups` of sensitive attributes stay together, one attribute a group where none are given.

    `seed` decides the order of published rows.
    """

    k: int = 5
    groups: tuple[tuple[str, ...], ...] | None = None
    seed: int = 1


def slice_persons(persons: PersonTable, levels: Mapping[str, Levels], method: Slicing) -> Sliced:
    """The quasi-identifiers as they are, each person with a bucket, and a table for each column."""
    groups = _checked_groups(persons, method)
    if len(persons) < method.k:
        raise OptionError(f"{len(persons):,} persons cannot make a bucket of k = {method.k}. Lower k to at most that.")
    numeric = [counts_as_number(column, levels[name]) for name, column in persons.quasi.items()]
    of = [levels[name] for name in persons.quasi]
    found = partition(persons.classes, of, numeric, [KAnonymity(method.k)])
    rng = np.random.default_rng(method.seed)
    # Buckets are numbered at random: Mondrian's own numbers follow the order of quasi-identifiers.
    gid = pa.array(rng.permutation(found.parts)[found.part[persons.class_of]])
    links = {f"gid_{i}": gid for i in range(1, len(groups) + 1)}
    quasi = shuffled(pa.table({**untouched_values(persons), **links}), rng)
    texts = {name: fingerprint_texts(column) for name, column in persons.sensitive.items()}
    sensitive = tuple(shuffled(pa.table({GID: gid, **{name: texts[name] for name in of}}), rng) for of in groups)
    facts = {"method": "slicing", "k": method.k, "seed": method.seed, "buckets": found.parts}
    return Sliced(quasi, sensitive, groups, facts, {"ncp": 0.0, "sa_ncp": 0.0, "nil": 0.0})


def _checked_groups(persons: PersonTable, method: Slicing) -> tuple[tuple[str, ...], ...]:
    """The groups, each sensitive attribute in one of them."""
    KAnonymity(method.k)
    if not persons.sensitive:
        raise OptionError("There is no sensitive attribute to set apart. Give one role: sensitive in the study.")
    if method.groups is None:
        return tuple((name,) for name in persons.sensitive)
    known = listing(list(persons.sensitive))
    named = [name for group in method.groups for name in group]
    for name in named:
        if name not in persons.sensitive:
            raise OptionError(
                f"The groups name '{name}', which is not a sensitive attribute; those are {known}."
                f"{did_you_mean(name, persons.sensitive)}"
            )
    if sorted(named) != sorted(persons.sensitive) or not all(method.groups):
        raise OptionError(
            f"Each of {known} must be in one group, and just one; the groups given are "
            f"{'; '.join(','.join(group) for group in method.groups)}."
        )
    return method.groups

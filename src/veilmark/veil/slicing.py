"""Slicing: columns of attributes, and buckets of persons within which each column is permuted by itself.

(Li, Li, Zhang and Molloy 2012.) Buckets are Mondrian's parts of k or more persons, so that those in a bucket are alike in
their quasi-identifiers, which are not generalized. The quasi-identifiers are one column; the sensitive attributes are two,
by correlation, or those that are given. A permuted column is published as a table in which rows have the number of their
bucket and no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from veilmark.defaults import K
from veilmark.errors import OptionError
from veilmark.hierarchy import Levels
from veilmark.privacy.models import KAnonymity
from veilmark.tables.persons import PersonTable
from veilmark.utility.sliced import amounts, counts_as_number
from veilmark.veil.correlation import correlations, read_groups
from veilmark.veil.items import NO_LOSS, untouched_values
from veilmark.veil.mondrian import partition
from veilmark.veil.sliced import GID, Sliced, fingerprint_texts, shuffled


@dataclass(frozen=True)
class Slicing:
    """Tuning of the method; `groups` are the sensitive attributes by column, `seed` decides the order of rows.
    Who knows it can undo the order: without one, chance decides."""

    k: int = K
    groups: tuple[tuple[str, ...], ...] | None = None
    seed: int | None = None

    def slice_persons(self, persons: PersonTable, levels: Mapping[str, Levels]) -> Sliced:
        """The release of persons by this method."""
        return slice_persons(persons, levels, self)


def slice_persons(persons: PersonTable, levels: Mapping[str, Levels], method: Slicing) -> Sliced:
    """The quasi-identifiers as they are, each person with a bucket, and a table for each column."""
    KAnonymity(method.k)
    if not persons.sensitive:
        raise OptionError(
            "The study has no sensitive attribute, but this method needs one. Give a column the role sensitive "
            "in the study."
        )
    if len(persons) < method.k:
        raise OptionError(
            f"{len(persons):,} persons are too few for k = {method.k}. Lower k to at most the number of persons."
        )
    groups = _groups(persons, levels, method)
    numeric = [counts_as_number(column, levels[name]) for name, column in persons.quasi.items()]
    of = [levels[name] for name in persons.quasi]
    found = partition(persons.classes, of, numeric, [KAnonymity(method.k)])
    rng = np.random.default_rng(method.seed)
    # Buckets are numbered at random: Mondrian's own numbers follow the order of quasi-identifiers.
    bucket = rng.permutation(found.parts)[found.part[persons.class_of]]
    gid = pa.array(bucket + 1)
    links = {f"gid_{i}": gid for i in range(1, len(groups) + 1)}
    quasi = shuffled(pa.table({**untouched_values(persons), **links}), rng)
    texts = {name: fingerprint_texts(column) for name, column in persons.sensitive.items()}
    sensitive = tuple(shuffled(pa.table({GID: gid, **{name: texts[name] for name in of}}), rng) for of in groups)
    facts = {
        "method": "slicing",
        "link": "groups",
        "k": int(persons.classes.records.min()),
        "bucket": int(np.bincount(bucket).min()),
        "buckets": found.parts,
        "asked": {"k": method.k},
    }
    return Sliced(quasi, sensitive, groups, facts, NO_LOSS)


def _groups(persons: PersonTable, levels: Mapping[str, Levels], method: Slicing) -> tuple[tuple[str, ...], ...]:
    """The columns of sensitive attributes, each attribute in one of them."""
    if method.groups is None:
        return correlations(persons, amounts(persons, levels)).groups()
    return read_groups(method.groups, list(persons.sensitive))

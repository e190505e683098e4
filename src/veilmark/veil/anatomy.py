"""Anatomy: nothing is generalized; what belongs to whom is told only up to a bucket of l different fingerprints.

(Xiao and Tao 2006.) A fingerprint is a person's values of all sensitive attributes together. Xiao and Tao draw a person
from each of the l commonest fingerprints that are left, again and again. Here the persons, those of one fingerprint beside
each other, are dealt like cards into as many buckets as there can be: n/l. No fingerprint has more persons than there are
buckets, so that each comes into a bucket once at most, which is what drawing is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from veilmark.errors import OptionError
from veilmark.hierarchy import Levels
from veilmark.privacy.models import DistinctL
from veilmark.tables.persons import PersonTable
from veilmark.veil.items import NO_LOSS, joint_kinds, untouched_values
from veilmark.veil.sliced import GID, Sliced, fingerprint_texts, shuffled
from veilmark.veil.slices import diversity


@dataclass(frozen=True)
class Anatomy:
    """Tuning of the method; `seed` decides who comes into a bucket with whom, and the order of published rows. Who knows it
    can undo the order: without one, chance decides."""

    l: int = 2  # noqa: E741
    seed: int | None = None

    def slice_persons(self, persons: PersonTable, levels: Mapping[str, Levels]) -> Sliced:
        """The release of persons by this method."""
        return slice_persons(persons, levels, self)


def slice_persons(persons: PersonTable, levels: Mapping[str, Levels], method: Anatomy) -> Sliced:
    """The quasi-identifiers as they are, each person with a bucket, and the buckets' fingerprints."""
    DistinctL("fingerprint", method.l)
    if not persons.sensitive:
        raise OptionError(
            "The study has no sensitive attribute, but this method needs one. Give a column the role sensitive "
            "in the study."
        )
    rng = np.random.default_rng(method.seed)
    kinds = joint_kinds(list(persons.sensitive.values()))
    bucket = deal(kinds, method.l, rng)
    gid = pa.array(bucket + 1)
    quasi = pa.table({**untouched_values(persons), "gid_1": gid})
    texts = {name: fingerprint_texts(column) for name, column in persons.sensitive.items()}
    sensitive = pa.table({GID: gid, **texts})
    facts = {
        "method": "anatomy",
        "link": "groups",
        "l": diversity(bucket, [kinds]),
        "buckets": int(bucket.max()) + 1,
        "asked": {name: value for name, value in asdict(method).items() if name != "seed"},
    }
    tables = shuffled(quasi, rng), (shuffled(sensitive, rng),)
    return Sliced(*tables, (tuple(persons.sensitive),), facts, NO_LOSS)


def deal(kinds: np.ndarray, l: int, rng: np.random.Generator) -> np.ndarray:  # noqa: E741
    """The bucket of each person: at least l persons, all of different kinds."""
    count = np.bincount(kinds, minlength=1)
    if count.max() * l > len(kinds) or len(kinds) < l:
        raise OptionError(
            f"{count.max():,} of {len(kinds):,} persons have the same sensitive values, more than 1/{l} of all. "
            f"So no bucket can have l = {l} different ones. Lower l."
        )
    mixed = rng.permutation(len(kinds))
    order = mixed[np.argsort(rng.permutation(len(count))[kinds[mixed]], kind="stable")]
    buckets = len(kinds) // l
    bucket = np.empty(len(kinds), dtype=np.int64)
    bucket[order] = rng.permutation(buckets)[np.arange(len(kinds)) % buckets]
    return bucket

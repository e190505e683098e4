"""OLA and Mondrian on folded persons: a row a person, quasi-identifiers generalized, fingerprints as they are.

Made for one record a person, both hold here what they promise: a class of k is k persons. What they find is published as
the other methods for many records a person publish it, and its loss measured as theirs, so that they can be compared: QI-NCP
is the GCP that `anonymize` tells of the same table.
Persons whom OLA suppresses are left out, and count as fully generalized in every attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from veilmark.defaults import K
from veilmark.errors import OptionError
from veilmark.hierarchy import Levels
from veilmark.privacy.models import Alpha, KAnonymity, PrivacyModel
from veilmark.tables.cells import number, pack
from veilmark.tables.classes import ClassTable, Histogram, Tally
from veilmark.tables.domain import Domain
from veilmark.tables.persons import Fingerprints, PersonTable
from veilmark.tables.recoding import Recoding
from veilmark.utility.sliced import amounts, class_middles, counts_as_number, nil, sa_ncp
from veilmark.veil.anonymize import plan
from veilmark.veil.items import one_table
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.sliced import Sliced


@dataclass(frozen=True)
class Generalization:
    """Tuning of the method: `search` is how generalizations are found; with `l`, no fingerprint of any sensitive
    attribute has more than 1/l of a class; `numeric` says which quasi-identifiers are cut as numbers, by default those whose
    levels are ranges; `seed` decides the order of published rows. Who knows it can undo the order:
    without one, chance decides."""

    k: int = K
    l: float | None = None  # noqa: E741
    search: Ola | Mondrian = field(default_factory=lambda: Ola())
    seed: int | None = None
    numeric: Mapping[str, bool] | None = None

    def models(self, persons: PersonTable) -> list[PrivacyModel]:
        """What a class must meet."""
        shares = [Alpha(name, 1 / self.l) for name in persons.sensitive] if self.l else []
        return [KAnonymity(self.k), *shares]

    def slice_persons(self, persons: PersonTable, levels: Mapping[str, Levels]) -> Sliced:
        """The release of persons by this method."""
        return slice_persons(persons, levels, self)


def slice_persons(persons: PersonTable, levels: Mapping[str, Levels], method: Generalization) -> Sliced:
    """The persons' classes, and the fingerprints in each."""
    if len(persons) < method.k:
        raise OptionError(
            f"There are {len(persons):,} persons, fewer than k = {method.k}: no class can be that large. Lower k."
        )
    classes = _with_kinds(persons) if method.l else persons.classes
    numeric = [
        counts_as_number(column, levels[name]) if method.numeric is None else method.numeric[name]
        for name, column in persons.quasi.items()
    ]
    models = method.models(persons)
    made = plan(classes, [levels[name] for name in persons.quasi], numeric, models, method.search)
    labels, kept = _labels(made.recoding, persons)
    if not kept.any():
        raise OptionError("Every person would have to be suppressed. Relax the limits.")
    stay = np.flatnonzero(kept)
    first, part = _classes([of.take(pa.array(stay)) for of in labels])
    shown = {name: of.take(pa.array(stay[first])) for name, of in zip(persons.quasi, labels, strict=True)}
    fingerprints = {name: column.take(stay) for name, column in persons.sensitive.items()}
    quasi, sensitive = one_table(shown, part, fingerprints, np.random.default_rng(method.seed))
    facts = {
        "method": made.method,
        "link": "groups",
        "k": int(np.bincount(part).min()),
        "classes": len(first),
        "suppressed": len(persons) - len(stay),
        **({"levels": dict(made.recoding.levels)} if made.recoding.levels else {}),
        "asked": {"k": method.k, "l": method.l},
    }
    loss = {"ncp": made.loss["gcp"], **_loss(persons, levels, made.recoding, part, kept)}
    return Sliced(quasi, (sensitive,), (tuple(persons.sensitive),), facts, loss)


def _with_kinds(persons: PersonTable) -> ClassTable:
    """The persons' classes with, for each sensitive attribute, how often each fingerprint occurs."""
    histograms = {}
    for name, column in persons.sensitive.items():
        size = int(column.kinds.max(initial=0)) + 1
        cells, count = np.unique(persons.class_of.astype(np.int64) * size + column.kinds, return_counts=True)
        text = pa.array(np.arange(size)).cast(pa.string())
        histograms[name] = Histogram(Domain(text, text), cells // size, (cells % size).astype(np.int32), Tally(count))
    return replace(persons.classes, histograms=histograms)


def _labels(recoding: Recoding, persons: PersonTable) -> tuple[list[pa.Array], np.ndarray]:
    """What each person's quasi-identifiers become, and whether the person is kept."""
    if recoding.class_labels is not None:
        owner = pa.array(persons.class_of)
        return [of.take(owner) for of in recoding.class_labels], np.ones(len(persons), dtype=bool)
    pairs = zip(recoding.codes, persons.quasi.values(), strict=True)
    codes = [of[column.values] for of, column in pairs]
    labels = [of.take(pa.array(code)) for of, code in zip(recoding.labels, codes, strict=True)]
    sizes = [len(of) for of in recoding.labels]
    left_out = np.isin(pack(codes, sizes)[0], pack(list(recoding.classes), sizes)[0])
    return labels, ~left_out


def _classes(labels: list[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    """A person of each class, and the class of each person."""
    coded = [of.dictionary_encode(null_encoding="encode") for of in labels]
    codes = [of.indices.to_numpy().astype(np.int64) for of in coded]
    distinct, part = number(*pack(codes, [len(of.dictionary) for of in coded]))
    first = np.zeros(len(distinct), dtype=np.int64)
    first[part] = np.arange(len(part))
    return first, part.astype(np.int64)


def _loss(
    persons: PersonTable, levels: Mapping[str, Levels], recoding: Recoding, part: np.ndarray, kept: np.ndarray
) -> dict[str, float]:
    """SA-NCP and NIL, as of all methods; a label tells its range or its leaves, also where a class has fewer."""
    if recoding.local:
        spots = dict.fromkeys(persons.quasi, part)
    else:
        spots = {name: of[persons.quasi[name].values] for name, of in zip(persons.quasi, recoding.codes, strict=True)}
    numbers = amounts(persons, levels)
    quasi = {
        name: _middles(column, spots[name], kept)
        for name, column in persons.quasi.items()
        if counts_as_number(column, levels[name])
    }
    money = {n: _middles(persons.sensitive[n], persons.sensitive[n].values, kept) for n in numbers}
    words = {
        name: np.where(kept[column.owner], 0, levels[name].height)
        for name, column in persons.sensitive.items()
        if name not in numbers
    }
    return {
        "sa_ncp": sa_ncp(persons, levels, words),
        "nil": nil(persons, quasi | money),
        "qi_nil": nil(persons, quasi),
        "sa_nil": nil(persons, money),
    }


def _middles(column: Fingerprints, spot: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The middle of the numbers that share a person's spot; of all numbers where the person is left out."""
    assert column.domain.numbers is not None
    own = column.domain.numbers[column.values]
    everything = class_middles(own, np.zeros(len(own), dtype=np.int64))
    return np.where(kept, class_middles(own, spot), everything)

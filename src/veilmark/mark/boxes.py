"""Discover for local recodings (Mondrian), where every class has labels of its own: a box in the space of values.

Persons of the population link to the box that they fall into. Those in no box are what is left of the population; they are
cut into boxes in the same way, with labels in the same style. A candidate must not overlap a released box, not even where
nobody is: strict Mondrian's boxes never do, so that it would stand out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from veilmark.attack.compatible import fitting_classes
from veilmark.attack.labels import Labels
from veilmark.attack.view import View
from veilmark.hierarchy import Levels
from veilmark.mark.discover import Linked, scaled_numbers
from veilmark.privacy.models import KAnonymity
from veilmark.tables.cells import number, pack, total
from veilmark.tables.classes import ClassTable, Tally
from veilmark.tables.domain import Domain
from veilmark.tables.recoding import Recoding
from veilmark.utility.covers import Cover
from veilmark.veil.mondrian import Mondrian, partition

PAIRS = 1 << 24
"""So many pairs of boxes, or of runs of their labels, are compared at once."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes, one after the other: their labels by quasi-identifier, each label's number and what it covers of the values
    of source and population."""

    labels: tuple[pa.Array, ...]
    codes: np.ndarray
    read: tuple[Labels, ...]

    @classmethod
    def of(cls, texts: Sequence[pa.Array], domains: Sequence[Domain], levels: Sequence[Levels]) -> Boxes:
        coded = [text.dictionary_encode(null_encoding="encode") for text in texts]
        read = [Labels.read(c.dictionary, d, of) for c, d, of in zip(coded, domains, levels, strict=True)]
        codes = np.array([c.indices.to_numpy() for c in coded], dtype=np.int64).reshape(len(coded), -1)
        return cls(tuple(c.dictionary for c in coded), codes, tuple(read))

    def __len__(self) -> int:
        return self.codes.shape[1]

    def holding(self, values: np.ndarray) -> np.ndarray:
        """The box that each combination of values falls into, the first if there are several; -1: none."""
        if not len(self):
            return np.full(values.shape[1], -1)
        names = [str(i) for i in range(len(self.read))]
        everything = np.arange(len(self))[None, :]
        view = View(dict(zip(names, self.read, strict=True)), self.codes, everything, np.ones(len(self)), (), {}, False)
        sets = fitting_classes(view, dict(zip(names, values, strict=True)), values.shape[1])
        first = np.append(sets.members, -1)[np.where(np.diff(sets.starts) > 0, sets.starts[:-1], -1)]
        return first[sets.of]

    def overlapping(self, other: Boxes) -> np.ndarray:
        """A mask of the boxes that share a combination of values with a box of another kind."""
        found = np.zeros(len(self), dtype=bool)
        widest = max([len(other), *(len(of.cover.owner) for of in other.read)], default=1)
        size = max(PAIRS // max(widest, 1), 1)
        for start in range(0, len(self), size):
            meet = np.ones((len(self.codes[0, start : start + size]), len(other)), dtype=bool)
            for mine, theirs, own, codes in zip(self.read, other.read, self.codes, other.codes, strict=True):
                used, place = np.unique(own[start : start + size], return_inverse=True)
                meet &= _touching(mine.cover, used, theirs.cover)[place][:, codes]
            found[start : start + size] = meet.any(axis=1)
        return found


def _touching(one: Cover, chosen: np.ndarray, other: Cover) -> np.ndarray:
    """For each of some labels (row) and each of the other's (column), whether they share a value."""
    mine = np.flatnonzero(np.isin(one.owner, chosen))
    runs = (one.low[mine][:, None] <= other.high) & (other.low <= one.high[mine][:, None])
    row, column = np.nonzero(runs)
    found = np.zeros((len(chosen), len(other.labels)), dtype=bool)
    found[np.searchsorted(chosen, one.owner[mine][row]), other.owner[column]] = True
    return found


def link_boxes(
    classes: ClassTable,
    recoding: Recoding,
    people: ClassTable,
    own_levels: Sequence[Levels],
    levels: Sequence[Levels],
    domains: Sequence[Domain],
    numeric: Sequence[bool],
    least: tuple[int, float],
) -> Linked:
    """Link a local release to a population.

    `own_levels` are the hierarchies on the source's values, `levels` those on `domains`, the values of both; `numeric` says
    which are cut as numbers. `least` are k and the largest multiple of the release's risk that decoys are to have: boxes of
    what is left hold no fewer persons than both allow.
    """
    assert recoding.class_labels is not None
    every = Boxes.of(recoding.class_labels, domains, levels)
    distinct, of_class = number(*pack(every.codes, [len(labels) for labels in every.labels]))
    first = np.zeros(len(distinct), dtype=np.int64)
    first[of_class[::-1]] = np.arange(len(of_class))[::-1]
    released = Boxes(every.labels, every.codes[:, first], every.read)
    values = _recoded(people, domains)
    home = released.holding(values)
    links = total(home[home >= 0], people.size[home >= 0], len(released))
    k, risk = least
    smallest = max(k, -(-int(links[links > 0].min(initial=1 << 62)) // risk))
    left = _rest(classes, people, home < 0)
    cut = _candidates(left, own_levels, numeric, int(min(smallest, 1 << 62)))
    texts = [labels.take(pa.array(codes)) for labels, codes in zip(released.labels, released.codes, strict=True)]
    free = Boxes.of(cut, domains, levels)
    stay = pa.array(~free.overlapping(released))
    both = Boxes.of([pa.concat_arrays([a, b.filter(stay)]) for a, b in zip(texts, cut, strict=True)], domains, levels)
    home = both.holding(values)
    none = np.zeros(len(both), dtype=np.int64)
    published = none.copy()
    published[: len(released)] = total(of_class, classes.records, len(released))
    return Linked(
        classes.columns,
        both.labels,
        both.codes.astype(np.int32),
        published,
        none,
        total(home[home >= 0], people.size[home >= 0], len(both)),
        home,
        local=True,
        places=tuple(_places(*each) for each in zip(both.read, domains, numeric, strict=True)),
    )


def _recoded(classes: ClassTable, domains: Sequence[Domain]) -> np.ndarray:
    """The codes of classes in other domains, -1 for a value that these lack."""
    rows = zip(domains, classes.domains, classes.codes, strict=True)
    return np.array([d.codes_of(own.text)[codes] for d, own, codes in rows]).reshape(len(domains), len(classes))


def _rest(classes: ClassTable, people: ClassTable, left: np.ndarray) -> ClassTable:
    """What is left of the population, as far as it has values of the source: labels can only be made of these."""
    codes = _recoded(people, classes.domains)
    chosen = left & np.all(codes >= 0, axis=0)
    return ClassTable(classes.columns, classes.domains, codes[:, chosen], Tally(people.size[chosen]))


def _candidates(left: ClassTable, levels: Sequence[Levels], numeric: Sequence[bool], least: int) -> list[pa.Array]:
    """The labels of boxes over what is left, by quasi-identifier."""
    if left.total_records < least:
        return [pa.array([], pa.string()) for _ in left.columns]
    found = partition(left, levels, numeric, [KAnonymity(least)], Mondrian())
    return [pa.array(labels) for labels in found.labels]


def _places(labels: Labels, domain: Domain, numeric: bool) -> np.ndarray | None:
    scaled = scaled_numbers(domain) if numeric else None
    return None if scaled is None else labels.cover.moments(scaled)[0]

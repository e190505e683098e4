"""What an attacker knows of a person's sensitive values: facts, and which published rows and groups hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from veilmark.attack.labels import ranges
from veilmark.attack.view import View
from veilmark.tables.cells import pack
from veilmark.tables.persons import PersonTable


@dataclass(frozen=True, eq=False)
class Facts:
    """`attribute[i, f]` is the attribute (a place in `names`) of person i's fact f, `value[i, f]` its code in the source.

    An attribute of -1 means that there is no such fact.
    """

    names: tuple[str, ...]
    attribute: np.ndarray
    value: np.ndarray

    def __len__(self) -> int:
        return len(self.attribute)

    def take(self, chosen: np.ndarray) -> Facts:
        return Facts(self.names, self.attribute[chosen], self.value[chosen])

    def without(self, name: str) -> Facts:
        """All but the facts on one attribute."""
        return Facts(self.names, np.where(self.attribute == self.names.index(name), -1, self.attribute), self.value)

    def one(self, f: int) -> Facts:
        return Facts(self.names, self.attribute[:, f : f + 1], self.value[:, f : f + 1])


def no_facts(names: Sequence[str], count: int) -> Facts:
    nothing = np.full((count, 0), -1)
    return Facts(tuple(names), nothing, nothing)


def draw_facts(persons: PersonTable, names: Sequence[str], known: int, rng: np.random.Generator) -> Facts:
    """Up to `known` of each person's values, drawn at random from those of all the attributes named."""
    columns = [persons.sensitive[name] for name in names]
    owner = np.concatenate([column.owner for column in columns])
    attribute = np.repeat(np.arange(len(names)), [len(column.values) for column in columns])
    value = np.concatenate([column.values for column in columns])
    order = np.lexsort((rng.random(len(owner)), owner))
    place = ranges(np.bincount(owner, minlength=len(persons)))
    first = place < known
    chosen = order[first]
    facts = Facts(tuple(names), np.full((len(persons), known), -1), np.zeros((len(persons), known), dtype=np.int64))
    facts.attribute[owner[chosen], place[first]] = attribute[chosen]
    facts.value[owner[chosen], place[first]] = value[chosen]
    return facts


@dataclass(frozen=True, eq=False)
class Fitting:
    """What of a part goes with each distinct combination of facts on it: combination i has the rows (or groups)
    `found[starts[i]:starts[i + 1]]`, ascending. `of` is each person's combination, -1 without a fact on the part."""

    part: int
    of: np.ndarray
    starts: np.ndarray
    found: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def groups(self, view: View) -> Fitting:
        """The groups that have such rows."""
        part = view.parts[self.part]
        owner = np.repeat(np.arange(len(self)), np.diff(self.starts))
        keys = owner * part.groups + part.group[self.found]
        keys = keys[np.diff(keys, prepend=-1) > 0]
        starts = np.searchsorted(keys, np.arange(len(self) + 1) * part.groups)
        return Fitting(self.part, self.of, starts, keys % part.groups)

    def take(self, persons: np.ndarray) -> Fitting:
        return Fitting(self.part, self.of[persons], self.starts, self.found)


class RowFinder:
    """Finds the rows of a part that hold facts."""

    def __init__(self, view: View, part: int) -> None:
        self._view, self._part = view, part
        self.rows = view.parts[part].rows
        self._first: dict[str, int] = {}
        keys, kinds = [np.empty(0, np.int64)], 0
        for name, column in view.parts[part].columns.items():
            meaning = view.meanings[name]
            self._first[name] = kinds
            shape = (self.rows, len(column.domain))
            holds = sparse.csr_array((np.ones(len(column.values)), column.values, column.starts), shape)
            fits = (meaning.kinds @ holds.T.tocsr()).tocsr()
            fits.sort_indices()
            kind = np.repeat(np.arange(fits.shape[0]), np.diff(fits.indptr))
            keys.append((kinds + kind) * self.rows + fits.indices)
            kinds += fits.shape[0]
        self._keys = np.concatenate(keys)
        self._starts = np.searchsorted(self._keys, np.arange(kinds + 1) * self.rows)

    def find(self, facts: Facts) -> Fitting:
        """The rows that hold all of a person's facts on the part."""
        kinds = np.sort(self._kinds(facts), axis=1)
        keys, _ = pack(kinds.T + 1, [len(self._starts)] * kinds.shape[1])
        first, of = np.unique(keys, return_index=True, return_inverse=True)[1:]
        asked = kinds[first]
        some = asked[:, -1] >= 0 if asked.shape[1] else np.zeros(len(asked), dtype=bool)
        number = np.where(some, np.cumsum(some) - 1, -1)
        starts, rows = self._holding(asked[some])
        return Fitting(self._part, number[of], starts, rows)

    def _kinds(self, facts: Facts) -> np.ndarray:
        """The kind of each fact, -1 where it is on another part."""
        kinds = np.full(facts.attribute.shape, -1)
        for name, first in self._first.items():
            if name in facts.names:
                here = facts.attribute == facts.names.index(name)
                kinds[here] = first + self._view.meanings[name].kind[facts.value[here]]
        return kinds

    def _holding(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of each combination of kinds: those of its rarest, as far as they are of the others too."""
        lengths = np.diff(self._starts)
        often = np.where(asked < 0, self.rows + 1, lengths[asked]) if len(lengths) else asked
        order = np.argsort(often, axis=1, kind="stable")
        asked = np.take_along_axis(asked, order, axis=1)
        rarest = asked[:, 0] if asked.shape[1] else np.empty(0, np.int64)
        count = lengths[rarest]
        owner = np.repeat(np.arange(len(asked)), count)
        row = self._keys[np.repeat(self._starts[rarest], count) + ranges(count)] % max(self.rows, 1)
        for kind in asked[:, 1:].T:
            wanted = kind[owner]
            stay = wanted < 0
            stay |= contains(self._keys, wanted * self.rows + row)
            owner, row = owner[stay], row[stay]
        return np.append(0, np.cumsum(np.bincount(owner, minlength=len(asked)))), row


def contains(ordered: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Whether each wanted key is among ordered ones."""
    if not len(ordered):
        return np.zeros(len(wanted), dtype=bool)
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.asarray(ordered[place] == wanted)

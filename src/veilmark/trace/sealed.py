"""The sealed pool: the classes that decoys could have been drawn from, and what tells which of them a claim is about.

It is fixed before decoys are drawn, from the release and the population alone, and put into the ledger's secret with the
draw. So whether a claim meets a class of the pool does not depend on whether the class was drawn: it is met by any of its
persons, not only by those who were planted, and by any value that its labels stand for. The test of `claims` rests on that.

Who belongs to a class is kept as keyed hashes of identities, column by column, never in clear.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.tables.cells import number, pack
from veilmark.tables.domain import Domain, as_text, loose_texts

BLOCK = 1 << 22
"""So many pairs of claims and classes, or of claims and persons, are compared at once."""

Labels = Sequence[Sequence[str | None]]


# What is sealed.


@dataclass(frozen=True, eq=False)
class Values:
    """The values that the labels of a column stand for: label `owner[i]` for `texts[low[i]]` to `texts[high[i]]`. Those in
    `every` stand for anything, values that nobody has seen included."""

    texts: pa.Array
    owner: np.ndarray
    low: np.ndarray
    high: np.ndarray
    every: np.ndarray

    @classmethod
    def of(cls, texts: pa.Array, owner: np.ndarray, codes: np.ndarray, every: np.ndarray) -> Values:
        """From pairs of a label and the place of a value in `texts`; values that no label stands for are left out."""
        used = np.unique(codes)
        order = np.lexsort((codes, owner))
        owner, place = owner[order], np.searchsorted(used, codes[order])
        begins = np.ones(len(owner), dtype=bool)
        begins[1:] = (np.diff(owner) != 0) | (np.diff(place) != 1)
        ends = np.append(begins[1:], True) if len(begins) else begins
        return cls(texts.take(pa.array(used)), owner[begins], place[begins], place[ends], every)

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Values:
        """From the ledger's secret."""
        numbers = (np.array(content[part], dtype=np.int64) for part in ("owner", "low", "high", "every"))
        return cls(pa.array(content["texts"], pa.string()), *numbers)

    def to_dict(self) -> dict[str, Any]:
        parts = {part: getattr(self, part).tolist() for part in ("owner", "low", "high", "every")}
        return {"texts": self.texts.to_pylist(), **parts}

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Each label with each value that it stands for."""
        lengths = self.high - self.low + 1
        before = np.cumsum(lengths) - lengths
        return np.repeat(self.owner, lengths), np.arange(int(lengths.sum())) + np.repeat(self.low - before, lengths)


def hash_identities(texts: pa.Array, column: str, salt: bytes) -> np.ndarray:
    """A keyed hash of each text of an identity column, 0 for a missing one. Each different text is hashed once."""
    coded = loose_texts(as_text(texts)).dictionary_encode()
    own = hashlib.blake2b(column.encode(), digest_size=32, key=salt).digest()
    one_each = (hashlib.blake2b(t.encode(), digest_size=8, key=own).digest() for t in coded.dictionary.to_pylist())
    hashes = np.append(np.frombuffer(b"".join(one_each), dtype="<u8"), np.uint64(0))
    return hashes[coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)]


def seal_pool(
    persons: pa.Table, owner: np.ndarray, classes: int, values: Mapping[str, Values], salt: bytes
) -> dict[str, Any]:
    """What goes into the ledger's secret: `persons` have the identity columns, and person i is in class `owner[i]`."""
    order = np.argsort(owner, kind="stable")
    hashes = {c: hash_identities(persons.column(c).combine_chunks(), c, salt)[order] for c in persons.column_names}
    return {
        "salt": salt.hex(),
        "persons": np.bincount(owner, minlength=classes).tolist(),
        "identities": {c: b64encode(of.astype("<u8").tobytes()).decode() for c, of in hashes.items()},
        "values": {c: of.to_dict() for c, of in values.items()},
    }


# What claims meet.


@dataclass(frozen=True, eq=False)
class Met:
    """Which classes of a pool are met: by claims that fit that one alone (`alone`), and by any claim (`by_any`). `claims`
    counts the different claims about each."""

    alone: np.ndarray
    by_any: np.ndarray
    claims: np.ndarray

    @classmethod
    def of(cls, pairs: Iterator[tuple[np.ndarray, np.ndarray]], classes: int) -> Met:
        """From pairs of a claim and a class, all pairs of a claim together and none twice."""
        alone, claims = np.zeros(classes, dtype=bool), np.zeros(classes, dtype=np.int64)
        for row, met in pairs:
            _, nth, fits = np.unique(row, return_inverse=True, return_counts=True)
            alone[met[fits[nth] == 1]] = True
            claims += np.bincount(met, minlength=classes)
        return cls(alone, claims > 0, claims)


@dataclass(frozen=True, eq=False)
class SealedPool:
    """A pool as the ledger keeps it: the classes (`codes`, label numbers by column), their persons one class after the other
    (`persons` of each, `identities` by column), and what the labels stand for. `above` is as in `Marked`."""

    columns: tuple[str, ...]
    identity: tuple[str, ...]
    above: Mapping[str, Labels]
    codes: np.ndarray
    salt: bytes
    persons: np.ndarray
    identities: Mapping[str, np.ndarray]
    values: Mapping[str, Values]
    earlier: tuple[str, ...] = ()
    spared: np.ndarray | None = None

    @classmethod
    def read(cls, secret: Mapping[str, Any], codes: np.ndarray) -> SealedPool | None:
        """From a release's secret; None where an earlier version of veilmark made the release."""
        content = secret.get("sealed")
        if content is None:
            return None
        spared = np.array(content["spared"], dtype=np.int64).reshape(len(codes), -1)
        return cls(
            tuple(secret["columns"]),
            tuple(secret["identity"]),
            secret["above"],
            codes,
            bytes.fromhex(content["salt"]),
            np.array(content["persons"], dtype=np.int64),
            {c: np.frombuffer(b64decode(of), dtype="<u8") for c, of in content["identities"].items()},
            {c: Values.read(of) for c, of in content["values"].items()},
            tuple(content["earlier"]),
            spared,
        )

    def __len__(self) -> int:
        return self.codes.shape[1]

    @cached_property
    def owner(self) -> np.ndarray:
        """The class of each person."""
        return np.repeat(np.arange(len(self)), self.persons)

    def meet(self, claims: pa.Table) -> Met | None:
        """Which classes the claims meet; None where they have no column of the release.

        A claim that gives all identity columns is about that person, whatever else it gives, and meets the person's class.
        Any other meets every class that has a person who agrees with all that it gives: identity columns that are not
        published, and quasi-identifiers as they are published, coarser, or as the population has them. An empty cell says
        nothing, and a claim of empty cells meets nothing.
        """
        shared = [c for c in dict.fromkeys((*self.identity, *self.columns)) if c in claims.column_names]
        if not shared:
            return None
        texts = pa.table({c: as_text(claims.column(c).combine_chunks()) for c in shared})
        texts = texts.group_by(shared, use_threads=False).aggregate([])
        given = {c: texts.column(c).is_valid().to_numpy() for c in shared}
        named = np.full(len(texts), bool(self.identity) and set(self.identity) <= set(shared))
        for column in self.identity if named.any() else ():
            named &= given[column]
        hidden = [c for c in self.identity if c not in self.columns]
        by = {c: given[c] & (named if c not in hidden else True) for c in self.identity if c in shared}
        readers = {c: _Reader.of(self, c, texts.column(c), given[c] & ~named) for c in self.columns if c in shared}
        return Met.of(self._pairs(texts, by, readers, np.any(list(given.values()), axis=0)), len(self))

    def _pairs(
        self, texts: pa.Table, by: Mapping[str, np.ndarray], readers: Mapping[str, _Reader], says: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Claims and the classes that they meet. `by` says which claims give which identity columns."""
        names = list(by)
        patterns = np.array([by[c] for c in names], dtype=bool).reshape(len(names), len(texts))
        hashes = {c: hash_identities(texts.column(c).combine_chunks(), c, self.salt) for c in names}
        possible = says & np.all([of.possible for of in readers.values()] or [says], axis=0)
        for pattern in np.unique(patterns, axis=1).T if names else [np.empty(0, dtype=bool)]:
            rows = np.flatnonzero(possible & np.all(patterns == pattern[:, None], axis=0))
            columns = [c for c, there in zip(names, pattern, strict=True) if there]
            if columns:
                yield from self._by_person(rows, columns, hashes, readers)
            else:
                yield from self._by_labels(rows, readers)

    def _by_person(
        self,
        rows: np.ndarray,
        columns: Sequence[str],
        hashes: Mapping[str, np.ndarray],
        readers: Mapping[str, _Reader],
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Claims that give some identity columns."""
        known = _mixed([self.identities[c] for c in columns])
        order = np.argsort(known, kind="stable")
        wanted = _mixed([hashes[c][rows] for c in columns])
        first, last = (np.searchsorted(known[order], wanted, side=side) for side in ("left", "right"))
        rows, first, count = rows[last > first], first[last > first], (last - first)[last > first]
        for some in np.split(np.arange(len(rows)), _cuts(count)):
            before = np.cumsum(count[some]) - count[some]
            place = np.arange(int(count[some].sum())) + np.repeat(first[some] - before, count[some])
            pairs = np.unique(np.repeat(rows[some], count[some]) * len(self) + self.owner[order[place]])
            row, met = pairs // len(self), pairs % len(self)
            agree = np.ones(len(row), dtype=bool)
            for i, column in enumerate(self.columns):
                if column in readers:
                    agree &= readers[column].fits[readers[column].rows[row], self.codes[i, met]]
            yield row[agree], met[agree]

    def _by_labels(self, rows: np.ndarray, readers: Mapping[str, _Reader]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Claims by quasi-identifiers alone: where each cell fits one label the class is looked up, else all are tried."""
        single = np.array([readers[c].single[rows] if c in readers else np.full(len(rows), -1) for c in self.columns])
        clear = np.all(single >= 0, axis=0)
        if clear.any():
            sizes = [len(self.above[c][0]) for c in self.columns]
            _, index = number(*pack(np.concatenate([self.codes, single[:, clear]], axis=1), sizes))
            place = np.full(int(index.max()) + 1, -1)
            place[index[: len(self)]] = np.arange(len(self))
            met = place[index[len(self) :]]
            yield rows[clear][met >= 0], met[met >= 0]
        vague = rows[~clear]
        codes = [(readers[c], of) for c, of in zip(self.columns, self.codes, strict=True) if c in readers]
        for some in np.array_split(vague, len(vague) * len(self) // BLOCK + 1) if codes else ():
            agree = np.ones((len(some), len(self)), dtype=bool)
            for reader, of in codes:
                agree &= reader.fits[reader.rows[some]][:, of]
            row, met = np.nonzero(agree)
            yield some[row], met


def _mixed(hashes: Sequence[np.ndarray]) -> np.ndarray:
    """One number for the hashes of several columns."""
    mixed = np.zeros(len(hashes[0]), dtype=np.uint64)
    for i, of in enumerate(hashes):
        mixed += of * np.uint64(2 * i + 1)
    return mixed


def _cuts(counts: np.ndarray) -> np.ndarray:
    """Where to cut a list so that no part has many more than BLOCK in all."""
    block = np.cumsum(counts) // BLOCK
    return np.flatnonzero(np.diff(block)) + 1


@dataclass(frozen=True, eq=False)
class _Reader:
    """A column of claims: `rows` is the row of `fits` of each claim, which says which labels agree with it; `single` is the
    label where that is one only, else -1."""

    rows: np.ndarray
    fits: np.ndarray

    @classmethod
    def of(cls, pool: SealedPool, column: str, texts: pa.ChunkedArray, given: np.ndarray) -> _Reader:
        """`given` says for which claims the column counts; all labels agree with the others. The last two rows are of texts
        that nobody knows and of claims for which the column does not count."""
        values, levels = pool.values[column], [pa.array(level, pa.string()) for level in pool.above[column]]
        coded = texts.combine_chunks().dictionary_encode()
        known = Domain.of(pa.concat_arrays([values.texts, *levels]).unique()).codes_of(coded.dictionary) >= 0
        used = coded.dictionary.filter(pa.array(known))
        fits = np.zeros((len(used) + 2, len(levels[0])), dtype=bool)
        fits[:, values.every] = True
        fits[-1] = True
        _mark(fits, used, values.texts, *values.pairs)
        for labels in levels:
            there = np.flatnonzero(labels.is_valid().to_numpy(zero_copy_only=False))
            _mark(fits, used, labels, there, there)
        place = np.append(np.where(known, np.cumsum(known) - 1, len(used)), len(used))
        rows = place[coded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)]
        return cls(np.where(given, rows, len(used) + 1), fits)

    @cached_property
    def possible(self) -> np.ndarray:
        """Whether any label agrees with a claim."""
        any_label: np.ndarray = np.asarray(self.fits.any(axis=1))
        return any_label[self.rows]

    @cached_property
    def single(self) -> np.ndarray:
        one = self.fits.sum(axis=1) == 1
        label: np.ndarray = np.where(one, self.fits.argmax(axis=1), -1)
        return label[self.rows]


def _mark(fits: np.ndarray, used: pa.Array, texts: pa.Array, labels: np.ndarray, places: np.ndarray) -> None:
    """Mark the label `labels[i]` for those of the `used` texts that are `texts[places[i]]`."""
    if not len(texts) or not len(used):
        return
    domain = Domain.of(texts.unique())
    found = domain.codes_of(used)
    where = domain.codes_of(texts)[places]
    order = np.argsort(where, kind="stable")
    known = np.flatnonzero(found >= 0)
    first, last = (np.searchsorted(where[order], found[known], side=side) for side in ("left", "right"))
    count = last - first
    before = np.cumsum(count) - count
    pairs = order[np.arange(int(count.sum())) + np.repeat(first - before, count)]
    fits[np.repeat(known, count), labels[pairs]] = True

"""Evidence: what a leaked file or a list of claims shows of a release's decoys and cover classes.

A leak may lack columns, rows and whole classes, hold rows of nobody, and be coarser than the release. Each column is read at
one level of its hierarchy; finer labels are taken up to it. Classes that look alike at these levels are one; those that
cannot be told from a class that everybody holds say nothing. All of this follows from the leak and from what all copies
have in common, and so tells nothing of an innocent recipient's marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.cells import number, pack
from veilmark.domain import Domain, as_text
from veilmark.mark.code import Code

ENOUGH = 0.05
"""At least this share of a column's values must be labels of some level, or the column is passed over."""

MOST = 0.9
"""The lowest level is taken by which at least this share of what can be read at all is read."""

BLOCK = 1 << 22
"""So many pairs of claims and decoys are compared at once."""


@dataclass(frozen=True, eq=False)
class Marked:
    """What the ledger's secret says of a release.

    `above[column]` has the release's labels and, level by level, what each becomes further up. Classes are columns of label
    numbers: `class_codes` the released ones, of which `covers` are in some copies only (`holds[i, j]`: recipient i has cover
    j), `pool_codes` those that decoys were drawn from; `drawn[i, j]` says whether recipient i got class j of the pool.
    `decoys` are the persons by recipient, and `reach` how many of the population agree with any of a recipient's decoys: in
    a column, or (`linked`) in all quasi-identifiers. `covered[column]` are the values that the decoys' labels stand for
    (None: all). `class_chance` and `pool_chance` are the shares of the persons of a class who are claimed where each of its
    records is linked to one of them.
    """

    release: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    identity: tuple[str, ...]
    above: Mapping[str, Sequence[Sequence[str | None]]]
    class_codes: np.ndarray
    covers: np.ndarray
    holds: np.ndarray
    code: Code | None
    pool_codes: np.ndarray
    drawn: np.ndarray
    population: int
    decoys: Mapping[str, Sequence[Mapping[str, Any]]]
    linked: Mapping[str, int]
    reach: Mapping[str, Mapping[str, int]]
    covered: Mapping[str, Mapping[str | None, Sequence[str] | None]]
    class_chance: np.ndarray
    pool_chance: np.ndarray

    @classmethod
    def of(cls, release: str, secret: Mapping[str, Any]) -> Marked:
        """From what `release` put into the ledger."""
        names, columns = tuple(secret["holds"]), tuple(secret["columns"])
        bits = [[c == "1" for c in secret["holds"][name]] for name in names]
        code, claims = secret["code"], secret["claims"]
        pool = np.array(secret["pool"], dtype=np.int64).reshape(len(columns), -1)
        drawn = np.zeros((len(names), pool.shape[1]), dtype=bool)
        for row, name in zip(drawn, names, strict=True):
            row[secret["drawn"][name]] = True
        return cls(
            release,
            names,
            columns,
            tuple(secret["identity"]),
            secret["above"],
            np.array(secret["classes"], dtype=np.int64).reshape(len(columns), -1),
            np.array(secret["covers"], dtype=np.int64),
            np.array(bits, dtype=bool).reshape(len(names), len(secret["covers"])),
            None if code is None else Code(code["kind"], code["coalition"], np.array(code["p"])),
            pool,
            drawn,
            secret["population"],
            secret["decoys"],
            claims["linked"],
            claims["reach"],
            {column: dict(pairs) for column, pairs in claims["covered"].items()},
            _chance(secret["sizes"], claims.get("persons")),
            _chance(claims.get("pool_sizes", secret["pool"][0]), claims.get("pool_persons")),
        )

    @property
    def classes(self) -> list[list[str | None]]:
        """The labels of the released classes, class by class."""
        return self.texts(self.class_codes)

    def texts(self, codes: np.ndarray) -> list[list[str | None]]:
        """The labels of some classes, class by class."""
        rows = (
            [self.above[column][0][c] for c in code] for column, code in zip(self.columns, codes.tolist(), strict=True)
        )
        return [list(row) for row in zip(*rows, strict=True)]


def _chance(records: Sequence[int], persons: Sequence[int] | None) -> np.ndarray:
    """The share of the persons of each class who can be claimed by its records; early ledgers do not say how many fit."""
    if persons is None:
        return np.ones(len(records))
    return np.minimum(np.array(records, dtype=float) / np.maximum(persons, 1), 1.0)


@dataclass(frozen=True, eq=False)
class Sighting:
    """What a leak shows: of the cover classes and of the pool of decoy classes, which group each belongs to (-1: it cannot
    be told) and whether it is there; of the classes that everybody holds, how many are there and how many are not."""

    levels: Mapping[str, int]
    rows: int
    known_rows: int
    cover_group: np.ndarray
    cover_there: np.ndarray
    pool_clear: np.ndarray
    pool_there: np.ndarray
    kept: tuple[int, int]


def sight(marked: Marked, leak: pa.Table) -> Sighting | None:
    """Look for a release's classes in a leaked table; None where no column holds labels of the release."""
    shared = [c for c in marked.columns if c in leak.column_names]
    tried = {c: _read(as_text(leak.column(c).combine_chunks()), marked.above[c]) for c in shared}
    read = {c: found for c, found in tried.items() if found is not None}
    if not read:
        return None
    both = np.concatenate([marked.class_codes, marked.pool_codes], axis=1)
    ours = np.array([found.up[both[marked.columns.index(c)]] for c, found in read.items()])
    theirs = np.array([found.codes for found in read.values()])
    known = np.all(theirs >= 0, axis=0)
    sizes = [int(found.up.max(initial=0)) + 1 for found in read.values()]
    _, index = number(*pack(np.concatenate([ours, theirs[:, known]], axis=1), sizes))
    there = np.zeros(int(index.max(initial=-1)) + 1, dtype=bool)
    there[index[both.shape[1] :]] = True
    levels = {c: found.level for c, found in read.items()}
    return _sighting(marked, index[: both.shape[1]], there, levels, len(known), int(known.sum()))


def _sighting(
    marked: Marked, image: np.ndarray, there: np.ndarray, levels: Mapping[str, int], rows: int, known: int
) -> Sighting:
    """Which classes can be told, from the image of each at the leak's levels."""
    count = marked.class_codes.shape[1]
    classes, pool = image[:count], image[count:]
    everybody = np.ones(count, dtype=bool)
    everybody[marked.covers] = False
    common = np.zeros(len(there), dtype=bool)
    common[classes[everybody]] = True
    covers = classes[marked.covers]
    distinct, group = np.unique(covers, return_inverse=True)
    rank = np.full(len(distinct), -1)
    clear = ~common[distinct]
    rank[clear] = np.arange(int(clear.sum()))
    taken = np.bincount(pool, minlength=len(there))
    real = np.zeros(len(there), dtype=bool)
    real[classes] = True
    held = np.unique(classes[everybody])
    shown = int(there[held].sum())
    alone = ~real[pool] & (taken[pool] == 1)
    kept = (shown, len(held) - shown)
    return Sighting(levels, rows, known, rank[group], there[covers], alone, there[pool], kept)


@dataclass(frozen=True, eq=False)
class _Read:
    """A leaked column at a level: the label number of each value there (-1: none), and that of each of the release's own
    labels."""

    level: int
    codes: np.ndarray
    up: np.ndarray


def _read(text: pa.Array, above: Sequence[Sequence[str | None]]) -> _Read | None:
    """A column at the lowest level that reads most of it; None where it holds something else."""
    coded = text.dictionary_encode(null_encoding="encode")
    rows = coded.indices.to_numpy()
    texts = [pa.array(labels, pa.string()) for labels in above]
    domains = [Domain.of(labels.unique()) for labels in texts]
    own = [domain.codes_of(coded.dictionary) for domain in domains]
    ups = [domain.codes_of(labels) for domain, labels in zip(domains, texts, strict=True)]
    found = []
    for level, codes in enumerate(own):
        for lower in range(level - 1, -1, -1):
            lift = np.full(len(domains[lower]) + 1, -1)  # the last for what is no label there
            lift[ups[lower]] = ups[level]
            codes = np.where(codes < 0, lift[own[lower]], codes)
        found.append(_Read(level, codes[rows], ups[level]))
    shares = [float((one.codes >= 0).mean()) if len(rows) else 0.0 for one in found]
    best = max(shares)
    return None if best < ENOUGH else next(f for f, share in zip(found, shares, strict=True) if share >= MOST * best)


# Claims.


@dataclass(frozen=True, eq=False)
class Hits:
    """What claims of one kind say of a recipient: of so many `claims`, `hits` agree with its decoys, as would `reach` of the
    population, or no more (not `exact`). `evidence` are the decoys that are claimed. `chances` are those with which each
    decoy would be claimed by holders of other releases."""

    claims: int
    hits: int
    reach: int
    exact: bool
    evidence: tuple[Mapping[str, Any], ...]
    chances: np.ndarray


def claimed(
    marked: Marked, claims: pa.Table, elsewhere: Mapping[str, np.ndarray] | None = None
) -> dict[str, list[Hits]] | None:
    """For each recipient, how the claims agree with its decoys; None where they share no column with the release.
    `elsewhere` are the chances by which each recipient's decoys would be claimed by holders of other releases.

    A claim that gives all identity columns is about a person, whatever else it gives. Any other is about all persons who
    agree with it in the columns that there are: quasi-identifiers as published or as the population has them, and identity
    where the claims have some of its columns only. An empty cell agrees with nothing.
    """
    shared = [c for c in dict.fromkeys((*marked.identity, *marked.columns)) if c in claims.column_names]
    if not shared:
        return None
    texts = pa.table({c: as_text(claims.column(c).combine_chunks()) for c in shared})
    named = np.full(len(texts), set(marked.identity) <= set(shared))
    looks = [c for c in shared if c in marked.columns] if named.any() else shared
    for column in marked.identity if named.any() else ():
        named &= np.asarray(texts.column(column).is_valid())
    kinds = []
    if named.any():
        kinds.append((_distinct(texts.select(list(marked.identity)).filter(pa.array(named))), True))
    if looks and not named.all():
        kinds.append((texts.select(looks).filter(pa.array(~named)), False))
    nowhere = {name: np.zeros(len(marked.decoys[name])) for name in marked.names}
    found = [_compare(marked, table, of_persons, elsewhere or nowhere) for table, of_persons in kinds]
    return {name: [hits[name] for hits in found] for name in marked.names}


def _distinct(table: pa.Table) -> pa.Table:
    return table.group_by(table.column_names, use_threads=False).aggregate([])


def _compare(
    marked: Marked, claims: pa.Table, of_persons: bool, elsewhere: Mapping[str, np.ndarray]
) -> dict[str, Hits]:
    """How claims of one kind agree with decoys. Persons may look alike where they are not named: then all rows count as
    claims, rows that are the same as one hit, and decoys that may be in others' copies of other releases for nothing."""
    decoys = [row for name in marked.names for row in marked.decoys[name]]
    owner = np.repeat(np.arange(len(marked.names)), [len(marked.decoys[name]) for name in marked.names])
    chances = np.concatenate([np.empty(0), *(elsewhere[name] for name in marked.names)])
    counts = np.ones(len(decoys), dtype=bool) if of_persons else chances == 0
    columns = [_Agreement.of(marked, c, decoys, of_persons) for c in claims.column_names]
    codes = np.array([of.read(claims.column(c)) for of, c in zip(columns, claims.column_names, strict=True)])
    codes = np.unique(codes[:, np.all(codes >= 0, axis=0)], axis=1)
    hits, seen = np.zeros(len(marked.names), dtype=np.int64), np.zeros(len(decoys), dtype=bool)
    for some in np.array_split(codes, codes.shape[1] * len(decoys) // BLOCK + 1, axis=1):
        agree = np.tile(counts, (some.shape[1], 1))
        for of, code in zip(columns, some, strict=True):
            agree &= of.fits[code]
        seen |= agree.any(axis=0)
        hits += [int(agree[:, owner == i].any(axis=1).sum()) for i in range(len(marked.names))]
    found = {}
    for i, name in enumerate(marked.names):
        reach, exact = _reach(marked, name, claims.column_names, of_persons)
        evidence = tuple(decoys[j] for j in np.flatnonzero(seen & (owner == i)))
        own = chances[owner == i] if of_persons else np.empty(0)
        found[name] = Hits(len(claims), int(hits[i]), reach, exact, evidence, own)
    return found


def _reach(marked: Marked, name: str, columns: Sequence[str], of_persons: bool) -> tuple[int, bool]:
    """How many of the population agree with any of a recipient's decoys in all of some columns, or no more than that (not
    exact): those who do in the column in which fewest do."""
    if of_persons:
        return len(marked.decoys[name]), True
    if set(columns) == set(marked.columns):
        return marked.linked[name], True
    most = [marked.reach[name][c] for c in columns]
    return min([*most, *([marked.linked[name]] if set(marked.columns) <= set(columns) else [])]), False


@dataclass(frozen=True, eq=False)
class _Agreement:
    """A column of claims: the values that decoys agree with, and for each (row) whether each decoy (column) does. The last
    row is of any other value, where one label stands for all."""

    values: Domain
    fits: np.ndarray

    @classmethod
    def of(cls, marked: Marked, column: str, decoys: Sequence[Mapping[str, Any]], of_persons: bool) -> _Agreement:
        own = [row[identity_key(column, marked.columns) if of_persons else column] for row in decoys]
        labels = {label: i for i, label in enumerate(dict.fromkeys(own))}
        stands = {} if of_persons else marked.covered.get(column, {})
        pairs = [
            (text, i) for label, i in labels.items() for text in (label, *(stands.get(label) or ())) if text is not None
        ]
        texts = pa.array([text for text, _ in pairs], pa.string())
        values = Domain.of(texts.unique())
        fits = np.zeros((len(values) + 1, len(labels)), dtype=bool)
        fits[values.codes_of(texts), [i for _, i in pairs]] = True
        fits[:, [i for label, i in labels.items() if label in stands and stands[label] is None]] = True
        return cls(values, fits[:, [labels[label] for label in own]])

    def read(self, column: pa.ChunkedArray) -> np.ndarray:
        """The row of each claim, -1 where no decoy agrees."""
        text = column.combine_chunks()
        codes = self.values.codes_of(text)
        other = len(self.values) if self.fits[-1].any() else -1
        return np.where(np.asarray(text.is_null()), -1, np.where(codes < 0, other, codes))


def identity_key(column: str, quasi: Sequence[str]) -> str:
    """What a decoy's own value of an identity column is called, where the published one has that name."""
    return f"{column} of the person" if column in quasi else column

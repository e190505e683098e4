"""Evidence: what a leaked file or a list of claims shows of a release's decoys and cover classes.

A leak may lack columns, rows and whole classes, hold rows of nobody, and be coarser than the release. Each column is
read at the level of the hierarchy where most of its values are labels. Classes that look alike at these levels are one;
those that cannot be told from a class that everybody holds say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.cells import number, pack
from veilmark.domain import Domain, as_text
from veilmark.errors import DataError, listing
from veilmark.mark.code import Code

ENOUGH = 0.5
"""At least this share of a column's values must be labels of some level, or the column is passed over."""


@dataclass(frozen=True, eq=False)
class Marked:
    """What the ledger's secret says of a release: its classes, covers, decoys, and the labels above each label."""

    release: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    identity: tuple[str, ...]
    above: Mapping[str, Sequence[Sequence[str | None]]]
    classes: Sequence[Sequence[str | None]]
    covers: np.ndarray
    holds: np.ndarray
    code: Code | None
    pool: Sequence[Sequence[str | None]]
    population: int
    decoys: Mapping[str, Sequence[Mapping[str, Any]]]
    values: Mapping[str, Sequence[Mapping[str, Any]]]
    linked: Mapping[str, int]

    @classmethod
    def of(cls, release: str, secret: Mapping[str, Any]) -> Marked:
        """From what `release` put into the ledger."""
        names = tuple(secret["holds"])
        bits = [[c == "1" for c in secret["holds"][name]] for name in names]
        code = secret["code"]
        return cls(
            release,
            names,
            tuple(secret["columns"]),
            tuple(secret["identity"]),
            secret["above"],
            secret["classes"],
            np.array(secret["covers"], dtype=np.int64),
            np.array(bits, dtype=bool).reshape(len(names), len(secret["covers"])),
            None if code is None else Code(code["kind"], code["coalition"], np.array(code["p"])),
            secret["pool"],
            secret["population"],
            secret["decoys"],
            secret["values"],
            secret["linked"],
        )


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


def sight(marked: Marked, leak: pa.Table) -> Sighting:
    """Look for a release's classes in a leaked table."""
    shared = [c for c in marked.columns if c in leak.column_names]
    if not shared:
        raise DataError(
            f"The leaked file shares no column with release {marked.release}, whose quasi-identifiers are "
            f"{listing(marked.columns)}. Rename its columns to these where they hold the same."
        )
    tried = {c: _read(leak.column(c), marked.above[c]) for c in shared}
    read = {c: found for c, found in tried.items() if found is not None}
    if not read:
        raise DataError(
            f"No column of the leaked file holds values of release {marked.release}, or coarser ones, so that nothing "
            "can be compared."
        )
    ours, theirs = [], []
    for column, (level, codes) in read.items():
        place, domain = marked.columns.index(column), _domain(marked.above[column][level])
        lift = domain.codes_of(pa.array(marked.above[column][level], pa.string()))
        ground = _domain(marked.above[column][0])
        start = ground.codes_of(pa.array(marked.above[column][0], pa.string()))
        up = np.zeros(len(ground), dtype=np.int64)
        up[start] = lift
        texts = pa.array([row[place] for row in (*marked.classes, *marked.pool)], pa.string())
        ours.append(up[ground.codes_of(texts)])
        theirs.append(codes)
    sizes = [len(_domain(marked.above[c][level])) for c, (level, _) in read.items()]
    known = np.all(np.array(theirs) >= 0, axis=0)
    keys, bound = pack(np.concatenate([np.array(ours), np.array(theirs)[:, known]], axis=1), sizes)
    _, index = number(keys, bound)
    count = len(marked.classes) + len(marked.pool)
    there = np.zeros(int(index.max(initial=-1)) + 1, dtype=bool)
    there[index[count:]] = True
    levels = {c: level for c, (level, _) in read.items()}
    return _sighting(marked, index[:count], there, levels, len(known), int(known.sum()))


def _sighting(
    marked: Marked, image: np.ndarray, there: np.ndarray, levels: Mapping[str, int], rows: int, known: int
) -> Sighting:
    """Which classes can be told, from the image of each at the leak's levels."""
    classes, pool = image[: len(marked.classes)], image[len(marked.classes) :]
    everybody = np.ones(len(classes), dtype=bool)
    everybody[marked.covers] = False
    common = np.zeros(len(there), dtype=bool)
    common[classes[everybody]] = True
    covers = classes[marked.covers]
    distinct, group = np.unique(covers, return_inverse=True)
    rank = np.full(len(distinct), -1)
    clear = ~common[distinct]
    rank[clear] = np.arange(int(clear.sum()))
    taken = np.zeros(len(there), dtype=np.int64)
    np.add.at(taken, pool, 1)
    real = np.zeros(len(there), dtype=bool)
    real[classes] = True
    held = np.unique(classes[everybody])
    shown = int(there[held].sum())
    alone = ~real[pool] & (taken[pool] == 1)
    kept = (shown, len(held) - shown)
    return Sighting(levels, rows, known, rank[group], there[covers], alone, there[pool], kept)


def _domain(labels: Sequence[str | None]) -> Domain:
    return Domain.of(pa.array(list(dict.fromkeys(labels)), pa.string()))


def _read(column: pa.ChunkedArray, above: Sequence[Sequence[str | None]]) -> tuple[int, np.ndarray] | None:
    """The level that a column's values are labels of, and their codes there (-1: no label); None where there is none.

    The top level, where all are one, would fit anything that says `*`, and tells nothing.
    """
    text = as_text(column.combine_chunks())
    best: tuple[float, int, np.ndarray] | None = None
    for level, labels in enumerate(above):
        codes = _domain(labels).codes_of(text)
        share = float((codes >= 0).mean()) if len(codes) else 0.0
        if best is None or share > best[0]:
            best = (share, level, codes)
    return None if best is None or best[0] < ENOUGH else (best[1], best[2])


@dataclass(frozen=True, eq=False)
class Hits:
    """Which of a recipient's decoys are among the claims."""

    claims: int
    decoys: int
    hits: tuple[int, ...]


def claimed(marked: Marked, claims: pa.Table, name: str) -> Hits:
    """The decoys of a recipient that somebody claims to have re-identified.

    A claim names a decoy if all columns they share agree: identity as it is, quasi-identifiers as they are in the
    population or as published. Each claim counts once.
    """
    rows, values = marked.decoys[name], marked.values[name]
    shared = [c for c in (*marked.identity, *marked.columns) if c in claims.column_names]
    if not shared:
        raise DataError(
            f"The claims share no column with release {marked.release}. They need some of {listing(marked.identity)} or of "
            f"{listing(marked.columns)}."
        )
    agree = np.ones((len(claims), len(rows)), dtype=bool)
    for column in shared:
        text = as_text(claims.column(column).combine_chunks())
        agree &= _agrees(text, [row.get(column) for row in rows]) | _agrees(text, [v.get(column) for v in values])
    hits = np.flatnonzero(agree.any(axis=0))
    by_identity = any(c in marked.identity for c in shared)
    decoys = len(rows) if by_identity else marked.linked[name]
    return Hits(len(claims), decoys, tuple(int(i) for i in hits if agree[:, i].any()))


def _agrees(text: pa.Array, wanted: Sequence[str | None]) -> np.ndarray:
    """Claims by decoys: whether the texts are the same; a claim that leaves a column empty agrees with all."""
    values = Domain.of(pa.array(list(dict.fromkeys(wanted)), pa.string()))
    mine = values.codes_of(text)
    theirs = values.codes_of(pa.array(wanted, pa.string()))
    empty = np.asarray(pc.is_null(text))
    return (mine[:, None] == theirs[None, :]) | empty[:, None]

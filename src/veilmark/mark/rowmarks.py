"""Row marks: single records that some copies lack, in classes that have records to spare.

Which of a class's records a copy has is a mark too, where records differ in the columns beside the quasi-identifiers. A row
mark costs one record and not a class, so that small tables carry long codes at little loss. A class never lacks more records
than it can: k and all other limits hold in every copy, with the marked records and without them.

The ledger keeps no values of these records, but keyed fingerprints of all records of their classes, column by column. From
them tracing knows which marks can be told where a leak lacks columns, and how many records of these classes it still has.
As for covers, the bits follow from a key that stays and from a record's values: who gets it is the same in the next release.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.errors import OptionError
from veilmark.mark.code import bits, derive, make_code, release_length
from veilmark.mark.discover import Linked
from veilmark.mark.draw import ClassDraw
from veilmark.mark.plan import Marks, check_lost
from veilmark.mark.plant import Rows, ranges
from veilmark.messages import param
from veilmark.privacy.models import PrivacyModel, TCloseness
from veilmark.tables.cells import number
from veilmark.tables.classes import ClassTable, Histogram, Tally
from veilmark.tables.domain import Domain, as_text
from veilmark.trace.labels import plain

Fits = Callable[[np.ndarray], np.ndarray]
"""Which of some rows, one a class, their classes can do without."""

MOST_RECORDS = 1_000
"""Classes with more records carry no row marks: the ledger would keep a fingerprint of each."""

SPARE_SHARE = 1 / 3
"""A class lacks at most this share of its records, so that what is left of it looks like a class."""

TRIED = 4
"""So many times as many classes as marks are looked at, as not all have records that can be told apart."""


@dataclass(frozen=True, eq=False)
class RowMarks:
    """`rows[j]` is the source's row of mark j; recipient i has it where `holds[i, j]`, each with probability `p[j]`.

    `kin` are all rows of the marked rows' classes, these too (`kin[marked[j]] == rows[j]`), `kin_owner` the class of each,
    and `prints` their fingerprints under a `key`, by the columns beside the quasi-identifiers.
    """

    rows: np.ndarray
    kin: np.ndarray
    kin_owner: np.ndarray
    marked: np.ndarray
    columns: tuple[str, ...]
    prints: np.ndarray
    key: bytes
    p: np.ndarray
    holds: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def owner(self) -> np.ndarray:
        """The class of each mark."""
        return self.kin_owner[self.marked]

    def withheld(self, recipient: int) -> np.ndarray:
        """The source's rows that a recipient does not get."""
        return self.rows[~self.holds[recipient]]

    def to_secret(self, released: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
        """For the ledger; `released` are the classes in the order in which it lists them."""
        return {
            "columns": list(self.columns),
            "classes": np.searchsorted(released, self.kin_owner).tolist(),
            "marked": self.marked.tolist(),
            "prints": base64.b64encode(zlib.compress(self.prints.astype("<u4").tobytes())).decode(),
            "key": self.key.hex(),
            "p": self.p.tolist(),
            "holds": {name: "".join("01"[int(b)] for b in row) for name, row in zip(names, self.holds, strict=True)},
        }


@dataclass(frozen=True, eq=False)
class MarkedRows:
    """What the ledger's secret says of row marks: the class and the fingerprints of each record of their classes, which of
    these are `marked`, and who holds those (`holds[i, j]`), each with probability `p[j]`."""

    columns: tuple[str, ...]
    owner: np.ndarray
    prints: np.ndarray
    marked: np.ndarray
    key: bytes
    p: np.ndarray
    holds: np.ndarray

    @staticmethod
    def of(secret: Mapping[str, Any], names: Sequence[str]) -> MarkedRows:
        packed = zlib.decompress(base64.b64decode(secret["prints"]))
        prints = np.frombuffer(packed, dtype="<u4").reshape(-1, len(secret["columns"]))
        holds = np.array([[c == "1" for c in secret["holds"][name]] for name in names], dtype=bool)
        owner, marked = (np.array(secret[name], dtype=np.int64) for name in ("classes", "marked"))
        columns, p = tuple(secret["columns"]), np.array(secret["p"])
        return MarkedRows(
            columns, owner, prints, marked, bytes.fromhex(secret["key"]), p, holds.reshape(len(names), -1)
        )


def with_row_marks(marks: Marks, rows: Rows, key: bytes, fits: Fits | None = None) -> Marks:
    """The marks with as many row marks as a code needs; with fewer, covers must make up for them."""
    marking, linked = marks.marking, marks.linked
    needed = release_length(len(marking.recipients), marking.collusion or 1, marking.false_accusation)
    spare = linked.published - marking.k
    spare[marks.covers] = 0
    found, draw = draw_row_marks(rows, linked, needed.length, spare, key, fits)
    if len(found) + len(marks.covers) < needed.length:
        raise OptionError(
            f"The code needs {needed.length:,} marks. The release has room for {len(marks.covers):,} cover "
            f"classes and {len(found):,} row marks (records that differ from all others of their class, in "
            f"classes of more than {marking.k} records). Lower {param('collusion')}, raise "
            f"{param('false_accusation')}, or publish more columns or more records."
        )
    code = make_code(draw.numbers, needed.kind, marking.collusion or 1, len(found))
    marks = replace(marks, rows=replace(found, p=code.p, holds=bits(draw.numbers, marking.recipients, code)))
    check_lost(marks)
    return marks


def draw_row_marks(
    rows: Rows, linked: Linked, count: int, spare: np.ndarray, key: bytes, fits: Fits | None = None
) -> tuple[RowMarks, ClassDraw]:
    """Up to `count` row marks, nobody's so far, and the keyed numbers of each; one a class before any class has two.

    Class j can lack `spare[j]` records. With `fits`, no class gets a second mark.
    """
    able = np.flatnonzero((linked.published > 0) & (linked.published <= MOST_RECORDS) & (spare > 0))
    able = able[ClassDraw.of(key, linked.columns, linked.labels, linked.codes[:, able]).order("row marks")]
    order, starts = rows.by_class
    kin = order[ranges(able[: TRIED * count], starts)]
    owner = rows.owner[kin]
    print_key = derive(key, "prints")
    prints = fingerprints(rows.others.take(pa.array(kin)), print_key)
    told = np.flatnonzero(_alone(owner, prints))
    turn, draw = _drawn(linked, owner[told], tuple(rows.others.column_names), prints[told], key)
    place = told[turn]
    limit = np.minimum(spare, np.ceil(SPARE_SHARE * linked.published).astype(np.int64))
    nth = _nth_of_class(owner[place])
    good = nth < (limit if fits is None else np.minimum(limit, 1))[owner[place]]
    if fits is not None:
        good[good] = fits(kin[place[good]])
    first = np.flatnonzero(good)[np.argsort(nth[good], kind="stable")][:count]
    return _with_kin(rows, kin, prints, print_key, place[first]), draw.take(first)


def _with_kin(rows: Rows, kin: np.ndarray, prints: np.ndarray, key: bytes, place: np.ndarray) -> RowMarks:
    """Marks at some places of `kin`, with the rows of their classes alone."""
    owner = rows.owner[kin]
    stay = np.flatnonzero(np.isin(owner, owner[place]))
    names, nobody = tuple(rows.others.column_names), np.zeros((0, len(place)), dtype=bool)
    marked = np.searchsorted(stay, place)
    return RowMarks(kin[place], kin[stay], owner[stay], marked, names, prints[stay], key, np.ones(len(place)), nobody)


def _drawn(
    linked: Linked, owner: np.ndarray, others: tuple[str, ...], prints: np.ndarray, key: bytes
) -> tuple[np.ndarray, ClassDraw]:
    """Some rows in an order that follows from their values by the key, and their draw in that order."""
    draw = row_draw(key, linked.columns, linked.labels, linked.codes[:, owner], others, prints)
    order = draw.order("rows")
    return order, draw.take(order)


def row_draw(
    key: bytes,
    columns: tuple[str, ...],
    labels: Sequence[pa.Array],
    codes: np.ndarray,
    others: tuple[str, ...],
    prints: np.ndarray,
) -> ClassDraw:
    """Keyed numbers of rows: by the labels of their classes, and by the fingerprints of their other columns."""
    coded = [np.unique(of, return_inverse=True) for of in prints.T]
    texts = [pa.array(values).cast(pa.string()) for values, _ in coded]
    every = np.array([*codes, *(code for _, code in coded)]).reshape(len(columns) + len(others), -1)
    return ClassDraw.of(key, (*columns, *others), (*labels, *texts), every)


def _nth_of_class(owner: np.ndarray) -> np.ndarray:
    """The place of each row among the rows of its class, in their order."""
    order = np.argsort(owner, kind="stable")
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    nth = np.empty(len(owner), dtype=np.int64)
    nth[order] = np.arange(len(owner)) - np.repeat(starts, np.diff(np.append(starts, len(owner))))
    return nth


def _alone(owner: np.ndarray, prints: np.ndarray) -> np.ndarray:
    """Which rows no other row of their class looks like: a mask."""
    _, nth = number_rows(owner, prints)
    alone: np.ndarray = np.bincount(nth)[nth] == 1
    return alone


def number_rows(owner: np.ndarray, prints: np.ndarray) -> tuple[int, np.ndarray]:
    """How many different (class, fingerprints) there are, and the number of each row's."""
    index = owner.astype(np.int64)
    size = int(index.max(initial=-1)) + 1
    for column in prints.T:
        values, code = np.unique(column, return_inverse=True)
        cells, index = number(index * len(values) + code, size * len(values))
        size = len(cells)
    return size, index


def keeping(models: Sequence[PrivacyModel], rows: Rows, linked: Linked, domains: Mapping[str, Domain]) -> Fits:
    """Which rows classes can do without so that they still meet models of sensitive attributes, with these domains."""
    released = np.flatnonzero(linked.published > 0)
    place = np.full(len(linked), -1)
    place[released] = np.arange(len(released))

    def fits(chosen: np.ndarray) -> np.ndarray:
        stay = place[rows.owner] >= 0
        stay[chosen] = False
        owner = place[rows.owner[stay]]
        named = {model.attribute for model in models if model.attribute is not None}
        texts = {name: as_text(rows.others.column(name).combine_chunks()) for name in named}
        histograms = {
            name: _histogram(domains[name], owner, domains[name].codes_of(text)[stay]) for name, text in texts.items()
        }
        columns = tuple(Domain(labels, labels) for labels in linked.labels)
        tally = Tally(np.bincount(owner, minlength=len(released)))
        table = ClassTable(linked.columns, columns, linked.codes[:, released], tally, histograms)
        # Without these records the whole table is a little different, and t is measured from that.
        apart = 2 * len(chosen) / max(len(owner), 1)
        strict = [replace(m, t=max(m.t - apart, 0.0)) if isinstance(m, TCloseness) else m for m in models]
        failing = np.any([model.failing(table) for model in strict], axis=0)
        return ~failing[place[rows.owner[chosen]]]

    return fits


def _histogram(domain: Domain, owner: np.ndarray, codes: np.ndarray) -> Histogram:
    size = len(domain)
    cells, counts = np.unique(owner.astype(np.int64) * size + codes, return_counts=True)
    return Histogram(domain, cells // size, (cells % size).astype(np.int32), Tally(counts))


def fingerprints(table: pa.Table, key: bytes) -> np.ndarray:
    """A fingerprint of each cell."""
    found = []
    for name in table.column_names:
        coded = as_text(table.column(name).combine_chunks()).dictionary_encode(null_encoding="encode")
        found.append(text_prints(coded.dictionary, key, name)[coded.indices.to_numpy()])
    return np.array(found, dtype=np.uint32).reshape(len(found), len(table)).T


def text_prints(texts: pa.Array, key: bytes, column: str) -> np.ndarray:
    """A keyed number of 32 bits for each text of a column; ways to write a value (case, blanks, 12.0 for 12) make no
    difference."""
    own = derive(key, f"column {column}")
    each = (b"0" if text is None else b"1" + text.encode() for text in plain(texts).to_pylist())
    return np.frombuffer(b"".join(hmac.digest(own, text, hashlib.sha256)[:4] for text in each), dtype="<u4")

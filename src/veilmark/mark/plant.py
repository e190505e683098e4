"""Plant: the recipients' copies. Real rows less the withheld classes, decoys among them, in a keyed order.

A decoy's quasi-identifiers are those of a real person of the population; everything else is borrowed whole from one record
of the source, of a class as like the decoy's as can be, so that sex, age and whatever else the values depend on fit. Records
that nobody gets, because they are suppressed, come first among equals: each recipient has a share of them of its own, and
each serves once, so that a decoy repeats no other row. Then come those that this recipient does not get. What goes into a
copy depends on no other recipient's decoys: that is what the probabilities of tracing rest on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.mark.code import derive
from veilmark.mark.plan import Marks, keyed_order
from veilmark.tables.domain import as_text

RELUCTANCE = (0.0, 0.9, 1.8)
"""What it costs to borrow from rows that nobody gets, others get, or the recipient gets, beside how unlike they are."""
ENOUGH = 4
"""So many times as many rows as are borrowed are looked at."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The source's rows, suppressed ones too: their class, and in `others` all published columns but the
    quasi-identifiers. `columns` are the names of all published columns in their order."""

    columns: tuple[str, ...]
    others: pa.Table
    owner: np.ndarray

    @cached_property
    def by_class(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows class by class, and where each class begins there."""
        return np.argsort(self.owner, kind="stable"), np.append(0, np.cumsum(np.bincount(self.owner)))

    def of_class(self, name: int) -> np.ndarray:
        order, starts = self.by_class
        return order[starts[name] : starts[name + 1]]

    def placed(self, classes: np.ndarray, places: np.ndarray) -> np.ndarray:
        """The rows at some places of their classes, the rows of each class settled."""
        order, starts = self.by_class
        wanted, nth = np.unique(classes, return_inverse=True)
        rows = self.settled(order[ranges(wanted, starts)])
        begins = np.append(0, np.cumsum(starts[wanted + 1] - starts[wanted]))
        return rows[begins[nth] + places]

    def settled(self, chosen: np.ndarray) -> np.ndarray:
        """Some rows in an order that is the same whatever order the source has: by class, then by their values."""
        keys = [self.owner[chosen]]
        for column in self.others.columns:
            coded = as_text(column.take(pa.array(chosen)).combine_chunks()).dictionary_encode(null_encoding="encode")
            rank = np.empty(len(coded.dictionary), dtype=np.int64)
            rank[np.asarray(pc.array_sort_indices(coded.dictionary))] = np.arange(len(rank))
            keys.append(rank[coded.indices.to_numpy()])
        return chosen[np.lexsort(keys[::-1])]


def donors(rows: Rows, marks: Marks, recipient: int, key: bytes, counts: np.ndarray | None = None) -> np.ndarray:
    """The row that each of a recipient's decoys borrows from, class by class.

    `counts` are the rows of each class in the source, where `rows` has not all of them; it has all of the classes that are
    borrowed from.
    """
    counts = np.bincount(rows.owner, minlength=len(marks.linked)) if counts is None else counts
    return rows.placed(*lenders(counts, marks, recipient, key))


def lenders(counts: np.ndarray, marks: Marks, recipient: int, key: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The class of each row that a recipient's decoys borrow from, and the row's place in there, its rows settled: so many
    rows as each class has suffice to choose."""
    starts = np.append(0, np.cumsum(counts))
    places = _borrowed(starts, marks, recipient, key)
    classes = np.searchsorted(starts, places, side="right") - 1
    return classes, places - starts[classes]


def _borrowed(starts: np.ndarray, marks: Marks, recipient: int, key: bytes) -> np.ndarray:
    """Rows by their places in the settled order of all. A decoy class takes all rows of its pattern; without one it borrows
    from the classes that are most like it, without its own, and no row lends twice while there are others."""
    rows = _lending(starts, marks, recipient, key)
    owner = np.searchsorted(starts, rows, side="right") - 1
    rows = rows[np.argsort(owner, kind="stable")]
    classes, first, left = np.unique(np.sort(owner), return_index=True, return_counts=True)
    reluctance = np.array(RELUCTANCE)[_tiers(marks, recipient)[classes]]
    chosen = [np.empty(0, dtype=np.int64)]
    planned = zip(marks.decoys[recipient], marks.sizes[recipient], marks.patterns[recipient], strict=True)
    for name, size, pattern in planned:
        if pattern >= 0:
            chosen.append(starts[pattern] + np.arange(size))
            continue
        cost = marks.linked.unlike(int(name), classes) + reluctance
        order = np.argsort(np.where(classes == name, np.inf, cost), kind="stable")
        order = order[classes[order] != name]
        before = np.cumsum(left[order]) - left[order]
        taken = np.clip(size - before, 0, left[order])
        lent = order[taken > 0]
        chosen.append(rows[_runs(first[lent], taken[taken > 0])])
        first[order] += taken
        left[order] -= taken
        chosen.append(np.resize(rows, int(size - taken.sum())))  # fewer rows than decoys: they serve again
    return np.concatenate(chosen)


def _tiers(marks: Marks, recipient: int) -> np.ndarray:
    """For each class, who gets it: nobody (0), others (1), the recipient (2)."""
    tier = np.where(marks.linked.published > 0, 2, 0)
    tier[marks.withheld(recipient)] = 1
    return tier


def _lending(starts: np.ndarray, marks: Marks, recipient: int, key: bytes) -> np.ndarray:
    """Rows to borrow from: a share of those that nobody gets, those withheld from the recipient and, where these are few,
    all others."""
    names, tier = marks.marking.recipients, _tiers(marks, recipient)
    if marks.linked.partner is not None:
        tier[marks.linked.partner >= 0] = -1  # Their rows are for their partners.
    spare, gone, there = (ranges(np.flatnonzero(tier == of), starts) for of in range(3))
    share = spare[keyed_order(key, "donors", len(spare))][recipient :: len(names)]
    own = derive(key, f"donors {names[recipient]}")
    rows = np.concatenate([share, gone[keyed_order(own, "gone", len(gone))]])
    if len(rows) >= ENOUGH * marks.sizes[recipient].sum():
        return rows
    return np.concatenate([rows, there[keyed_order(own, "there", len(there))]])


def _runs(first: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers of several runs, each from its first on."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(first - before, lengths) + np.arange(int(lengths.sum()))


def ranges(classes: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The places of all rows of some classes, class after class, of which each begins where `starts` says."""
    return _runs(starts[classes], starts[classes + 1] - starts[classes])


def copy_of(rows: Rows, marks: Marks, recipient: int, borrowed: np.ndarray, key: bytes) -> pa.Table:
    """A recipient's copy; `borrowed` has the donor row of each of its decoys. Every copy is made in the same way, column by
    column, so that nothing but its rows differs."""
    there = stays(marks, recipient)[rows.owner]
    if marks.rows is not None:
        there[marks.rows.withheld(recipient)] = False
    kept = np.flatnonzero(there)
    decoys = np.repeat(marks.decoys[recipient], marks.sizes[recipient])
    order = keyed_order(derive(key, f"rows {marks.marking.recipients[recipient]}"), "order", len(kept) + len(borrowed))
    owner = np.append(rows.owner[kept], decoys)[order]
    return rows_of(rows, marks, owner, np.append(kept, borrowed)[order])


def stays(marks: Marks, recipient: int) -> np.ndarray:
    """A mask of the real classes that a recipient gets."""
    stay = marks.linked.published > 0
    stay[marks.withheld(recipient)] = False
    return stay


def rows_of(rows: Rows, marks: Marks, owner: np.ndarray, source: np.ndarray) -> pa.Table:
    """Rows of some classes (`owner`), all other values taken from some of the source's rows."""
    linked, taken = marks.linked, pa.array(source)
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(codes[owner]), labels)
        for name, labels, codes in zip(linked.columns, linked.labels, linked.codes, strict=True)
    }
    others = {name: rows.others.column(name).take(taken) for name in rows.others.column_names}
    return _plain(pa.table({name: columns[name] if name in columns else others[name] for name in rows.columns}))


def _plain(table: pa.Table) -> pa.Table:
    """Dictionaries as the values they stand for: a dictionary would name values that the copy does not have."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table.replace_schema_metadata(None).combine_chunks()

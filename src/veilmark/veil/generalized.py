"""How far each column was generalized, with an example: `level 2 of 5, e.g. 331**`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.hierarchy import Levels
from veilmark.tables.classes import ClassTable

MISSING = "(missing)"


@dataclass(frozen=True)
class Generalized:
    """A column's level, None where its labels are of no one level, and the hierarchy's height; the commonest published
    label (`after`) and the commonest value that became it (`before`), where they are told."""

    level: int | None
    height: int
    after: str | None = None
    before: str | None = None

    def __str__(self) -> str:
        example = "" if self.after is None else f", e.g. {self.after}"
        if self.level is None:
            return f"ranges or sets{example}"
        if self.level == 0:
            return f"level 0 of {self.height}, as in the source"
        return f"level {self.level} of {self.height}{example}"

    def to_dict(self) -> dict[str, Any]:
        return {"level": self.level, "height": self.height, "example": self.after}


def generalized_columns(
    table: ClassTable, levels: Sequence[Levels], node: Sequence[int], kept: np.ndarray
) -> dict[str, Generalized]:
    """Each column at its level of the node, with the commonest label of the kept classes."""
    records = np.where(kept, table.records, 0)
    found = {}
    for name, of, level, codes in zip(table.columns, levels, node, table.codes, strict=True):
        counts = np.bincount(codes, weights=records, minlength=len(of.labels[level]))
        found[name] = Generalized(int(level), of.height, _commonest(of.labels[level], counts, 1))
    return found


def generalized_by_labels(
    levels: Levels, values: np.ndarray, labels: pa.Array, counts: np.ndarray, few: int
) -> Generalized:
    """How a column of a file was generalized, by its labels and how many records have each; `values` are the records of each
    of the source's values. Labels and values that fewer than `few` records have are not told.
    """
    level, after = _lowest_level(levels, labels), _commonest(labels, counts, few)
    if level is None or after is None:
        return Generalized(level, levels.height, after)
    under = np.asarray(pc.equal(levels.of_values(level), after).fill_null(False))
    before = _commonest(levels.labels[0], np.where(under, values, 0), few, MISSING)
    return Generalized(level, levels.height, after, before)


def _commonest(texts: pa.Array, counts: np.ndarray, few: int, missing: str | None = None) -> str | None:
    """The text that most records have, if enough have it; `missing` stands for no text."""
    place = int(counts.argmax()) if len(counts) else -1
    if place < 0 or counts[place] < few:
        return None
    text: str | None = texts[place].as_py()
    return missing if text is None else text


def _lowest_level(levels: Levels, labels: pa.Array) -> int | None:
    """The lowest level that has all of a column's labels."""
    present = labels.drop_null()
    for level, known in enumerate(levels.labels):
        if pc.all(pc.is_in(present, value_set=known.drop_null()), min_count=0).as_py():
            return level
    return None

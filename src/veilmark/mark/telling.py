"""Before a release is published: can its decoys be told from real classes by what a copy shows?

The attack is that of `attack.crosscopy` on one copy, without the population: an attacker who is told the truth of most
classes learns from them, and is judged by the others. The decoys of all recipients are judged together, beside the released
classes, since one copy has too few to say much.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from veilmark.attack.crosscopy import Scope, Sight, Telling, features, tell
from veilmark.mark.plan import Marks
from veilmark.mark.plant import Rows, ranges
from veilmark.tables.domain import Domain, as_text

CLASSES = 2_000
"""Of more released classes, so many are looked at, drawn at random."""
GOAL = 0.7
"""Decoys blend in as long as no classifier tells them better than this (AUC; ½ is guessing)."""

SURELY = 0.6
"""The lower end of the interval of an AUC above the goal that is pointed out."""


def is_told(best: Telling) -> bool:
    """Whether decoys are told clearly better than they should be: with few of them, some classifier does so by chance."""
    return best.auc > GOAL and best.auc_interval[0] > SURELY


def told_apart(marks: Marks, rows: Rows | None, borrowed: np.ndarray) -> Scope | None:
    """How well decoys are told; `borrowed` are the rows of `rows` whose values they have, recipient by recipient. Without
    rows, by labels and sizes alone. None without decoys."""
    decoys = np.concatenate([np.empty(0, dtype=np.int64), *marks.decoys])
    if len(decoys) < 2:
        return None
    linked, random = marks.linked, np.random.default_rng(1)
    released = np.flatnonzero(linked.published > 0)
    released = np.sort(random.choice(released, min(CLASSES, len(released)), replace=False))
    classes = np.concatenate([released, decoys])
    sizes = np.concatenate([linked.published[released], *marks.sizes])
    codes = linked.told_codes[:, classes].astype(np.int64)
    labels = tuple(of.take(pa.array(code)) for of, code in zip(linked.labels, codes, strict=False))
    owner = np.repeat(np.arange(len(classes)), sizes)
    values = {} if rows is None else _values(rows, np.concatenate([_rows_of(rows, released), borrowed]))
    sight = Sight(labels, codes, np.ones(len(classes), dtype=np.int64), owner, values)
    seen = {name: of for name, of in features(sight).items() if name != "presence"}
    is_decoy = (np.arange(len(classes)) >= len(released)).astype(np.int64)
    return tell(seen, is_decoy, np.ones(len(classes), dtype=bool), repeats=1)


def _rows_of(rows: Rows, classes: np.ndarray) -> np.ndarray:
    order, starts = rows.by_class
    return order[ranges(classes, starts)]


def _values(rows: Rows, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """The codes of all other columns of some rows."""
    found = {}
    for name in rows.others.column_names:
        texts = as_text(rows.others.column(name).take(pa.array(chosen)).combine_chunks()).cast(pa.string())
        found[name] = Domain.of(texts.unique(), name).codes_of(texts)
    return found

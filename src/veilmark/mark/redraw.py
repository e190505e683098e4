"""Marks drawn anew by a third party: what a custodian committed to must follow from the keys that it committed to.

Otherwise a custodian could choose who has which marks, or with which probability, so that one recipient's copy looks like
another's. Which classes are covers, the probabilities, the bits of every recipient and its decoys are computed again. What
remains is to try many keys until one pleases, for which a probability of p takes about 1/p tries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.errors import DataError
from veilmark.mark.code import bits, make_code, release_length
from veilmark.mark.discover import Linked
from veilmark.mark.marking import CopyMarking
from veilmark.mark.plan import draw_covers, draw_decoys
from veilmark.mark.rowmarks import row_draw
from veilmark.trace.evidence import Marked

BELIEVED = (
    "WARNING: the commitment was made by an earlier version and lacks the keys of its marks. You cannot check "
    "whether the marks were drawn at random, and must trust the custodian."
)
SINGLE = (
    "This check computed again who has which of the marked records. It did not check which records were marked, "
    "because that needs the table itself."
)


def check_draw(secret: Mapping[str, Any], public: Mapping[str, Any]) -> list[str]:
    """Refuse marks that do not follow from their keys; says what could not be checked."""
    if "decoy_key" not in secret:
        return [BELIEVED]
    marked = Marked.of("", secret)
    marking = _marking(marked, public["parameters"])
    for what, right in (
        ("covers", _covers(marked, marking, secret)),
        ("row marks", _rows(marked, marking, secret)),
        ("decoys", _decoys(marked, marking, secret)),
    ):
        if not right:
            raise DataError(
                f"The {what} of the commitment do not follow from its key. Veilmark "
                f"{public['parameters'].get('version')} did not draw them, and they cannot be used to accuse "
                "anybody."
            )
    return [] if marked.rows is None else [SINGLE]


def _marking(marked: Marked, asked: Mapping[str, Any]) -> CopyMarking:
    given = ("decoys", "covers", "collusion", "false_accusation", "strategy", "marks", "budget")
    risk = None if asked["risk"] is None else tuple(asked["risk"])
    return CopyMarking(marked.names, asked["k"], risk=risk, **{name: asked[name] for name in given})


def _released(marked: Marked, secret: Mapping[str, Any]) -> Linked:
    """The released classes, as far as a draw depends on them."""
    labels = tuple(pa.array(marked.above[c][0], pa.string()) for c in marked.columns)
    nothing = np.zeros(len(marked.sizes), dtype=np.int64)
    people = nothing if secret["population"] is None else np.array(secret["population"], dtype=np.int64)
    return Linked(marked.columns, labels, marked.class_codes, marked.sizes, nothing, people, nothing[:0])


def _covers(marked: Marked, marking: CopyMarking, secret: Mapping[str, Any]) -> bool:
    covers, holds, code = draw_covers(_released(marked, secret), marking, bytes.fromhex(secret["cover_key"]))
    if (code is None) != (marked.code is None):
        return False
    same = code is None or marked.code is None or np.array_equal(code.p, marked.code.p)
    return same and np.array_equal(covers, marked.covers) and np.array_equal(holds, marked.holds)


def _rows(marked: Marked, marking: CopyMarking, secret: Mapping[str, Any]) -> bool:
    rows = marked.rows
    if rows is None:
        return marking.marks == "classes"
    labels = [pa.array(marked.above[c][0], pa.string()) for c in marked.columns]
    codes = marked.class_codes[:, rows.owner[rows.marked]]
    key = bytes.fromhex(secret["cover_key"])
    draw = row_draw(key, marked.columns, labels, codes, rows.columns, rows.prints[rows.marked])
    coalition = marking.collusion or 1
    needed = release_length(len(marked.names), coalition, marking.false_accusation)
    code = make_code(draw.numbers, needed.kind, coalition, len(rows.marked))
    return np.array_equal(code.p, rows.p) and np.array_equal(bits(draw.numbers, marked.names, code), rows.holds)


def _decoys(marked: Marked, marking: CopyMarking, secret: Mapping[str, Any]) -> bool:
    pool = np.arange(marked.drawn.shape[1])
    drawn = draw_decoys(pool, marking, bytes.fromhex(secret["decoy_key"]))
    return all(np.array_equal(np.flatnonzero(own), of) for own, of in zip(marked.drawn, drawn, strict=True))

"""Every mark behind the probabilities of a leaked file: which class it is, whether the leak shows it, and who holds it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.trace.evidence import Marked
from veilmark.trace.sighting import Sighting

HOLDS = "holds: "
"""How the columns begin that say whether a recipient holds a mark."""


def marks_of(marked: Marked, seen: Sighting) -> pa.Table:
    """A row a mark: covers, then row marks (of which the class is told), then the classes that decoys were drawn from.

    `told`: whether the leak can show it at all; marks of one `group` look alike in the leak. `in_leak`: whether it does.
    `by_count`: how well holding a mark explains what is seen of it, against not holding it, 0 to 1. `by_share`: the share
    of a cover's records that are there. `probability`: with which each recipient was given it, of a code; drawn without
    replacement otherwise. `holds: NAME`: whether the recipient was given it.
    """
    covers = _marks(marked, "cover", marked.class_codes[:, marked.covers], marked.holds)
    pool = _marks(marked, "decoy candidate", marked.pool_codes, marked.drawn)
    covers |= {"told": seen.cover_group >= 0, "in_leak": seen.cover_there, "group": seen.cover_group}
    pool |= {"told": seen.pool_clear, "in_leak": seen.pool_there, "group": np.full(len(seen.pool_clear), -1)}
    chance = np.full(len(marked.covers), np.nan) if marked.code is None else marked.code.p
    nothing = np.full(len(seen.pool_clear), np.nan)
    covers |= {"by_count": seen.counted.shown, "by_share": seen.counted.share}
    pool |= {"by_count": nothing, "by_share": nothing}
    covers["probability"], pool["probability"] = chance, nothing
    single = [] if marked.rows is None else [_row_marks(marked, seen)]
    tables = [_nullable(pa.table(columns)) for columns in (covers, *single, pool)]
    order = ["release", "mark", "number", *marked.columns, "told", "group", "in_leak", "by_count", "by_share"]
    order += ["probability", "held_by"]
    return pa.concat_tables([table.select([*order, *(HOLDS + name for name in marked.names)]) for table in tables])


def _nullable(table: pa.Table) -> pa.Table:
    """Missing where there is no number."""
    for i, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            column = table.column(i)
            table = table.set_column(i, field.name, pc.if_else(pc.is_nan(column), None, column))
    return table


def _row_marks(marked: Marked, seen: Sighting) -> dict[str, object]:
    assert marked.rows is not None
    rows, found = marked.rows, seen.row_marks
    count = len(rows.marked)
    shows = np.full(count, 0.5) if found is None else found.shows
    return {
        **_marks(marked, "row mark", marked.class_codes[:, rows.owner[rows.marked]], rows.holds),
        "told": shows != 0.5,
        "in_leak": shows > 0.5,
        "group": np.full(count, -1),
        "by_count": shows,
        "by_share": np.full(count, np.nan),
        "probability": rows.p,
    }


def _marks(marked: Marked, kind: str, codes: np.ndarray, holds: np.ndarray) -> dict[str, object]:
    count = codes.shape[1]
    labels = {
        column: pa.array(marked.above[column][0], pa.string()).take(pa.array(code))
        for column, code in zip(marked.columns, codes, strict=True)
    }
    return {
        "release": pa.repeat(marked.release, count),
        "mark": pa.repeat(kind, count),
        "number": np.arange(1, count + 1),
        **labels,
        "held_by": holds.sum(axis=0),
        **{HOLDS + name: own for name, own in zip(marked.names, holds, strict=True)},
    }


def redacted(table: pa.Table) -> pa.Table:
    """Without the labels of the classes, so that marks can be shown and decoys stay secret. Marks are listed in the order of
    their labels, and so are groups; here each kind is shuffled, numbered anew, and the groups are left out."""
    shuffled = pa.concat_tables([_shuffled(table.filter(pc.field("mark") == kind)) for kind in _kinds(table)])
    first = table.column_names.index("number") + 1
    shown = [*table.column_names[:first], *table.column_names[table.column_names.index("told") :]]
    return shuffled.select([name for name in shown if name != "group"])


def _kinds(table: pa.Table) -> list[str]:
    return pc.unique(table.column("mark")).to_pylist()


def _shuffled(table: pa.Table) -> pa.Table:
    """In an order that nobody can guess or repeat."""
    order = np.random.default_rng(secrets.randbits(256)).permutation(table.num_rows)
    number = table.column_names.index("number")
    return table.take(order).set_column(number, "number", pa.array(np.arange(1, table.num_rows + 1)))


def all_marks(tables: Sequence[pa.Table]) -> pa.Table:
    """The marks of several releases in one table; what a release does not have is empty."""
    return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})

"""What is told of a leak beside the verdict: which columns were read and how, and what seems to have been done to it."""

from __future__ import annotations

import numpy as np

from veilmark.errors import listing
from veilmark.trace.columns import Matched
from veilmark.trace.covers import counts_agree
from veilmark.trace.evidence import Marked
from veilmark.trace.sighting import Sighting

BY = {"map": "by your map", "name": "by name", "values": "by its values", "codes": "by its frequencies"}


def notes_on(marked: Marked, seen: Sighting) -> list[str]:
    """What was read of a leak, what was passed over, and signs of changes."""
    covers = seen.told
    levels = ", ".join(f"{name} at level +{level}" if level else name for name, level in seen.levels.items())
    read = (
        f"Release {marked.release}: {seen.known_rows:,} of {seen.rows:,} rows are readable by {levels}. The file "
        f"can show {covers:,} of {len(marked.covers):,} cover classes and {int(seen.pool_clear.sum()):,} of "
        f"{len(seen.pool_clear):,} decoy candidates. It has {seen.kept[0]:,} of {sum(seen.kept):,} classes that "
        "all copies have."
    )
    alone = (
        f"Release {marked.release}: each cover is kept for one recipient. Covers are valid evidence only if no "
        "two recipients made the file together. Decoys are valid evidence in any case."
    )
    kept_alone = marked.code is None and len(marked.covers) > 0
    notes = [*_columns(marked, seen.matched), read, *_row_marks(marked, seen), *_changes(marked, seen)]
    return [*notes, *([alone] if kept_alone else [])]


def _row_marks(marked: Marked, seen: Sighting) -> list[str]:
    """What single records were looked for by, and how many of those that everybody has are there."""
    if marked.rows is None:
        return []
    total, found = len(marked.rows.marked), seen.row_marks
    if found is None:
        names = listing(list(marked.rows.columns))
        return [
            f"Release {marked.release}: its {total:,} row marks cannot be read: the file has none of the columns "
            f"{names}."
        ]
    return [
        f"Release {marked.release}: {found.told:,} of {total:,} row marks can be read by "
        f"{listing(list(found.columns))}. The file has {found.rate:.0%} of the other records of their classes."
    ]


def _columns(marked: Marked, matched: Matched) -> list[str]:
    """Columns that were not read, first; then those with another name or another way of writing."""
    notes = []
    if matched.passed:
        notes.append(
            f"WARNING: release {marked.release} has {listing(list(matched.passed))}, but no column of the file "
            f"was matched to {'it' if len(matched.passed) == 1 else 'these'}. If the file has such a column, map "
            "it: THEIRS=OURS."
        )
    notes += [
        f"Column '{theirs}' looks like '{ours}' of release {marked.release}, but its values combine differently "
        "with the other columns, so it was not used. If it is that column, map it: THEIRS=OURS."
        for ours, theirs in matched.implausible.items()
        if theirs not in matched.columns.values()
    ]
    for ours, theirs in matched.columns.items():
        by, form = matched.by[ours], matched.readings[ours].form
        if by in ("values", "codes") or form != "as written":
            how = "" if form == "as written" else f", {form}"
            notes.append(f"Column '{theirs}' was read as '{ours}' ({BY[by]}{how}).")
    return notes


def _changes(marked: Marked, seen: Sighting) -> list[str]:
    """Signs that rows were made up, moved, or come from more than one table."""
    found, counted = [], seen.counted
    usual = float(np.median(counted.rate)) if len(counted.rate) else 1.0
    if counted.padded > 0.05 and not counts_agree(seen):
        found.append(f"about {counted.padded:.0%} of the missing cover classes seem to be filled with made-up rows")
    if counted.strayed > 0:
        found.append(f"values seem to be changed: about {counted.strayed:.0%} of the rows are in another class")
    if usual > 1.5:
        found.append(f"classes have {usual:.1f} times their records: rows are repeated, or tables are merged")
    if not found:
        return []
    return [
        f"Release {marked.release}: {'; '.join(found)}. Each class counts by how many of its records are in the file."
    ]


def unread(marked: Marked, matched: Matched) -> str:
    """Why a release was not looked into."""
    names = listing(list(marked.columns))
    if not matched.readings and matched.implausible:
        looked = listing(list(dict.fromkeys(matched.implausible.values())))
        return (
            f"Release {marked.release} was skipped: {looked} look like its columns, but their values combine "
            f"differently. Its columns are {names}."
        )
    if not matched.readings:
        return f"Release {marked.release} was skipped: no column has its values. Its columns are {names}."
    read = listing(list(matched.columns.values()))
    return (
        f"Release {marked.release} was skipped: only {read} could be read, and its copies do not differ there. "
        f"Its columns are {names}."
    )

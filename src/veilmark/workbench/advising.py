"""What is said beside a release: what was done for its marks' sake, and what they cannot do, with what would help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from veilmark.mark.code import needed_length
from veilmark.mark.plan import Marks
from veilmark.report.trace_page import probability
from veilmark.trace.accuse import best_probability
from veilmark.workbench.linking import Ground

MOST = 100
"""So many more decoys or covers are tried."""


def notes_of(ground: Ground, marks: Marks, files: Mapping[str, str]) -> tuple[str, ...]:
    """The notes, as far as they can be said beforehand; `files` are the recipients' copies."""
    notes = []
    if ground.spared:
        notes.append(
            f"{ground.spared:,} records more than needed for k are suppressed, within the limit: their classes link to so "
            "few persons that decoys could not be riskier."
        )
    if marks.code is None:
        notes += _without_code(marks)
    if ground.recognized is not None:
        notes.append(ground.recognized.note(ground.identity))
    renamed = [f"'{name}': {Path(file).name}" for name, file in files.items() if Path(file).stem != name]
    if renamed:
        notes.append(
            f"Some names are not fit for files, so that their copies are called otherwise: {', '.join(renamed)}."
        )
    return tuple(notes)


def _without_code(marks: Marks) -> Iterator[str]:
    marking = marks.marking
    best = _best(marks, marking.decoys, marking.covers)
    if best > marking.false_accusation:
        yield (
            f"Even a whole leaked copy would have a probability of {probability(best)} to point to an innocent recipient, "
            f"more than the {marking.false_accusation:g} asked for, so that nobody could be named. {_remedy(marks)}"
        )
    if marking.covers and len(marking.recipients) > 2:
        yield (
            "Classes kept for one recipient alone convict as long as one recipient leaks by itself. Where several might "
            "act together, use --collusion."
        )


def _best(marks: Marks, decoys: int, covers: int) -> float:
    names = len(marks.marking.recipients)
    return best_probability(names, decoys, len(marks.pool) - names * decoys, covers)


def _remedy(marks: Marks) -> str:
    """What, by itself, would let a whole copy convict."""
    marking, limit = marks.marking, marks.marking.false_accusation
    names = len(marking.recipients)
    room = int(marking.budget * int((marks.linked.published > 0).sum()))
    ways = []
    more = range(marking.decoys + 1, min(len(marks.pool) // names, marking.decoys + MOST) + 1)
    ways += [f"--decoys {n}" for n in more if _best(marks, n, marking.covers) <= limit][:1]
    if (
        names > 2
    ):  # Of two recipients, each has all that is withheld from the other: covers say nothing that is not known.
        more = range(marking.covers + 1, min(room // names, marking.covers + MOST) + 1)
        ways += [f"--covers {n}" for n in more if _best(marks, marking.decoys, n) <= limit][:1]
    coalitions = [c for c in (2, 1) if c <= names and needed_length(names, c, limit).length <= room]
    ways += [f"--collusion {c}{' without --covers' if marking.covers else ''}" for c in coalitions[:1]]
    useless = " (More covers change nothing for so few recipients.)" if names <= 2 and marking.covers else ""
    if ways:
        return f"Ask for {', or '.join(ways)}.{useless}"
    return (
        "More decoys or covers would not help, as there are too few candidates and classes. Use a larger population, "
        f"release more classes (a smaller k, more suppression), or raise --false-accusation.{useless}"
    )

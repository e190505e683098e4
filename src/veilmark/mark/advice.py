"""What is said beside a release: what was done for its marks' sake, and what they cannot do, with what would help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from veilmark.attack.crosscopy import Scope
from veilmark.defaults import COLLUSION
from veilmark.mark.claimable import Claimable
from veilmark.mark.code import release_length
from veilmark.mark.linking import Ground
from veilmark.mark.plan import Marks, most_lost
from veilmark.mark.strata import USUAL_LIMIT
from veilmark.mark.telling import GOAL, is_told
from veilmark.messages import Message, param
from veilmark.readable import probability
from veilmark.trace.accuse import best_probability

MOST = 100
"""So many more decoys or covers are tried."""


def notes_of(ground: Ground, marks: Marks, files: Mapping[str, str], told: Scope | None = None) -> tuple[str, ...]:
    """The notes, as far as they can be said beforehand; `files` are the recipients' copies, `told` is how well decoys can be
    told."""
    notes = list(_given_up(ground, marks))
    notes += _conspicuous(marks, told)
    notes += _shorter(marks)
    if marks.code is None:
        notes += _without_code(marks)
    notes += _unevenly(marks)
    claims = Claimable.of(marks)
    if claims is not None and claims.warning:
        notes.append(claims.warning)
    if ground.recognized is not None:
        notes.append(ground.recognized.note(ground.identity))
    renamed = [f"'{name}': {Path(file).name}" for name, file in files.items() if Path(file).stem != name]
    if renamed:
        notes.append(
            f"Some recipients' names cannot be file names. Their copies have other names: {', '.join(renamed)}."
        )
    return tuple(map(Message, notes))


def _given_up(ground: Ground, marks: Marks) -> Iterator[str]:
    """That records are suppressed for the sake of decoys."""
    if not ground.spared:
        return
    share = ground.spared / max(int(marks.linked.source.sum()), 1)
    why = (
        "Decoys are drawn from their classes, which look like all others."
        if marks.marking.risk is None
        else "Their classes link to so few persons that no decoy could have a higher risk."
    )
    yield f"{ground.spared:,} more records ({share:.1%}) are suppressed to make decoys possible. {why}"


def _shorter(marks: Marks) -> Iterator[str]:
    """That the code is for fewer who collude than it would be in a larger release."""
    marking = marks.marking
    if (
        not marking.collusion_asked
        and marking.collusion
        and marking.collusion < min(COLLUSION, len(marking.recipients))
    ):
        yield (
            f"The release has too few classes for a code that finds one of {COLLUSION} colluding recipients. The "
            f"code finds a recipient who leaks alone. For more, use {param('marks', 'both')} or release a table "
            "with more classes (a smaller k, more suppression)."
        )


def _conspicuous(marks: Marks, told: Scope | None) -> Iterator[str]:
    """That decoys can be told."""
    best = None if told is None else told.best
    if best is None or not is_told(best):
        return
    remedy = (
        f"Omit {param('risk')}; the decoys then look like other classes."
        if marks.marking.risk is not None
        else "Use a larger population, or a table with more classes (a smaller k, more suppression)."
    )
    yield (
        f"One copy alone reveals which classes are decoys: a classifier reaches an AUC of {best.auc:.2f} "
        f"({GOAL:g} or less is good, 0.5 is guessing). {remedy} Leaked files can be traced even if decoys are not "
        "hidden."
    )


def _unevenly(marks: Marks) -> Iterator[str]:
    """That a group of persons loses much."""
    if marks.marking.most_lost is not None or not len(marks.covers):
        return
    worst = most_lost(marks.lost())
    if worst.share > USUAL_LIMIT:
        yield (
            f"One copy lacks {worst.share:.0%} of the {worst.records:,} records with {worst}. Results about this group may "
            f"differ between copies. Ask for fewer covers, or set a limit: {param('most_lost', 0.25)}."
        )


def _without_code(marks: Marks) -> Iterator[str]:
    marking = marks.marking
    best = _best(marks, marking.decoys, marking.covers)
    if best > marking.false_accusation:
        yield (
            "Even a complete leaked copy would point to an innocent recipient with a probability of "
            f"{probability(best)}, above your limit of {marking.false_accusation:g}. Nobody could be named. "
            f"{_remedy(marks)}"
        )
    if marking.covers and len(marking.recipients) > 2:
        yield (
            "Classes kept for one recipient are evidence only if one recipient leaks alone. If several might act "
            f"together, use {param('collusion')}."
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
    ways += [param("decoys", n) for n in more if _best(marks, n, marking.covers) <= limit][:1]
    if (
        names > 2
    ):  # Of two recipients, each has all that is withheld from the other: covers say nothing that is not known.
        more = range(marking.covers + 1, min(room // names, marking.covers + MOST) + 1)
        ways += [param("covers", n) for n in more if _best(marks, marking.decoys, n) <= limit][:1]
    without = f" without {param('covers')}" if marking.covers else ""
    coalitions = [c for c in (2, 1) if c <= names and release_length(names, c, limit).length <= room]
    ways += [f"{param('collusion', c)}{without}" for c in coalitions[:1]]
    useless = " (More covers do not help with so few recipients.)" if names <= 2 and marking.covers else ""
    if ways:
        return f"Ask for {', or '.join(ways)}.{useless}"
    return (
        "More decoys or covers would not help: there are too few candidates and classes. Use a larger "
        "population, release more classes (a smaller k, more suppression), or raise "
        f"{param('false_accusation')}.{useless}"
    )

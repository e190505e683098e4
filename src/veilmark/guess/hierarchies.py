"""Hierarchies for a first study file, each with warnings of what in the column it does not suit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from veilmark.guess import words
from veilmark.guess.facts import FEW_VALUES, Facts, many
from veilmark.guess.shapes import INTEGER, ISO_DAY
from veilmark.hierarchy.intervals import nested_widths

Hierarchy = dict[str, Any]
Warned = tuple[Hierarchy | None, tuple[str, ...]]

PLAIN_VALUES = 20
"""So many whole numbers need no intervals."""

LONGEST_MASK = 12
NO_HIERARCHY = "it has many values and no hierarchy, so they can only be kept or replaced by *; add a hierarchy"
OLDEST = 130
TWO_DIGITS = "years have two digits: 69 to 99 are read as 1969 to 1999, 00 to 68 as 2000 to 2068"


def of_topic(topic: words.Topic, facts: Facts) -> Warned:
    """What suits a quasi-identifier whose name is about the topic."""
    postal = topic is words.POSTAL
    hierarchy, warnings = _mask(facts) if postal else intervals(facts, topic.widths, topic.ordered)
    if topic is words.AGE and (facts.low < 0 or facts.high > OLDEST):
        warnings += ("some values are not ages in years; check for missing-value codes or another unit",)
    if not hierarchy and topic is not words.DATE and facts.distinct > FEW_VALUES:
        warnings += (NO_HIERARCHY,)
    return hierarchy, warnings


def dates(facts: Facts) -> Warned:
    formats = facts.shape.formats
    form = {} if formats == (ISO_DAY,) else {"format": formats[0] if len(formats) == 1 else list(formats)}
    hierarchy, warnings = _tolerant(facts, {"dates": ["month", "year", "decade"], **form})
    mixed = (f"dates are written in {len(formats)} forms; level 0 keeps each unchanged",) if len(formats) > 1 else ()
    swapped = ("day and month may be swapped; check the format",) if facts.shape.doubtful else ()
    short = (TWO_DIGITS,) if any(form.endswith("%y") for form in formats) else ()
    return hierarchy, warnings + mixed + swapped + short


def _mask(facts: Facts) -> Warned:
    """One more character hidden a level, unless the values are long."""
    if not 0 < facts.longest <= LONGEST_MASK:
        return None, ()
    lost = facts.shape.numeric and facts.shortest < facts.longest
    return {"mask": facts.longest}, ("the lengths differ; leading zeros may be lost",) if lost else ()


def intervals(facts: Facts, widths: Sequence[float] = (), ordered: bool = True) -> Warned:
    """Intervals of the given widths, or ones that fit the range where many whole numbers are `ordered`, not codes."""
    if ordered and facts.shape == INTEGER and facts.distinct > PLAIN_VALUES:
        widths = nested_widths(facts.high - facts.low)
    return _tolerant(facts, {"intervals": list(widths)}) if widths and facts.shape.numeric else (None, ())


def _tolerant(facts: Facts, hierarchy: Hierarchy) -> tuple[Hierarchy, tuple[str, ...]]:
    """The hierarchy, in which values that are not of the column's shape become `*`, and a word about them."""
    if not facts.misfits:
        return hierarchy, ()
    odd = f"{many(facts.misfits, 'record')} with another kind of value, which becomes * at level 1"
    return hierarchy | {"others": "*"}, (odd,)

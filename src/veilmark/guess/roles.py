"""Roles: the rules that turn the facts of a column into a guess; the first that applies counts."""

from __future__ import annotations

from dataclasses import dataclass

from veilmark.engines.duckdb import DuckTable
from veilmark.guess import hierarchies, words
from veilmark.guess.facts import Facts, facts_of, many
from veilmark.guess.hierarchies import Hierarchy
from veilmark.guess.ids import choose_person, id_rank
from veilmark.guess.shapes import ADDRESSES, DECIMAL, INTEGER, PHONES

FIRST_YEAR, LAST_YEAR = 1800, 2100
LONG_TEXT = 100
_YEARS = (words.BIRTH_YEAR, words.YEAR)


@dataclass(frozen=True)
class Guess:
    """What a column probably is, and why. A column that is not `usable` cannot stand in a study file."""

    column: str
    role: str
    hierarchy: Hierarchy | None
    reason: str
    warnings: tuple[str, ...] = ()
    usable: bool = True


def guess_columns(table: DuckTable) -> list[Guess]:
    """A guess for each column, in the table's order; at most one has the role `person`."""
    facts = facts_of(table)
    person = choose_person(facts.values())
    return [_guess(column, facts.get(column), person) for column in table.columns]


def _guess(column: str, facts: Facts | None, person: Facts | None) -> Guess:
    if facts is None:
        flatten = "veilmark compares plain values; flatten the column to give it a role"
        return Guess(column, "other", None, "lists, records or bytes", (flatten,), usable=False)
    if facts is person:
        return _person(facts)
    return next(guess for rule in _RULES if (guess := rule(facts)))


def _made(facts: Facts, role: str, reason: str, hierarchy: Hierarchy | None = None, *warnings: str) -> Guess:
    return Guess(facts.column, role, hierarchy, reason, warnings)


def _person(facts: Facts) -> Guess:
    reason = f"an id that repeats: {facts}, about {facts.present / facts.distinct:.1f} records a person"
    gaps = f"empty in {many(facts.missing, 'record')}, and `measure` must know whose each is"
    return _made(facts, "person", reason, None, *([gaps] if facts.missing else []))


def _direct_by_content(facts: Facts) -> Guess | None:
    """E-mail, web and IP addresses, social security and telephone numbers."""
    name = facts.shape.name
    if name in ADDRESSES or (name == PHONES and not facts.few):
        return _made(facts, "direct", f"values that look like {name}: {facts}")
    return None


def _direct_by_name(facts: Facts) -> Guess | None:
    """Names, addresses, numbers of persons; not the city of an address, nor whether there is a telephone."""
    if facts.says(words.POSTAL, words.PLACE) or facts.shape.name in ("date", "decimal"):
        return None
    name = facts.says(words.FULL_NAME) or (None if _names_things(facts) else facts.says(words.ANY_NAME))
    topic = name or (None if facts.flag else facts.says(*words.REACH, words.IDENTITY))
    return _made(facts, "direct", f"named like {topic.what}: {facts}") if topic else None


def _names_things(facts: Facts) -> bool:
    things = facts.phrases & words.THINGS or facts.says(*words.SENSITIVE, *words.DEMOGRAPHY)
    return bool(things and not facts.phrases & words.PERSON_WORDS)


def _date(facts: Facts) -> Guess | None:
    """Dates of birth and of events alike: others may know both."""
    if facts.shape.name != "date":
        return None
    hierarchy, warnings = hierarchies.dates(facts)
    return _made(facts, "quasi", f"dates: {facts}", hierarchy, *warnings)


def _id(facts: Facts) -> Guess | None:
    """Ids that are not the person: of the record where unique, else keys to other tables."""
    if not id_rank(facts) or facts.shape == DECIMAL:
        return None
    if facts.unique:
        return _made(facts, "direct", f"an id that is unique: {facts}, one record a person")
    if facts.few or not facts.enough:
        return None
    return _made(facts, "direct", f"an id that repeats: {facts}; a key to another table or to persons")


def _by_topic(facts: Facts) -> Guess | None:
    topic = next((t for t in words.TOPICS if facts.says(t) and not _belied(t, facts)), None)
    if topic is None:
        return None
    reason = f"named like {topic.what}: {facts}"
    notes = (topic.note,) if topic.note else ()
    if topic.role == "sensitive":
        return _made(facts, topic.role, reason, None, *notes)
    if topic in (words.AGE, *_YEARS) and facts.shape.numeric and facts.present:
        reason += f", from {facts.low:g} to {facts.high:g}"
    hierarchy, warnings = hierarchies.of_topic(topic, facts)
    singles_out = () if topic.widths else _singles_out(facts)
    return _made(facts, topic.role, reason, hierarchy, *notes, *warnings, *singles_out)


def _belied(topic: words.Topic, facts: Facts) -> bool:
    """Whether the values cannot be what the name says."""
    if topic in _YEARS:
        return facts.shape != INTEGER or facts.low < FIRST_YEAR or facts.high > LAST_YEAR
    if facts.shape == DECIMAL:
        return topic.role == "quasi" and not topic.widths
    if topic is words.DATE:
        return facts.flag
    return topic in (words.PLACE, words.COORDINATE) and facts.textual and facts.nearly_unique


def _singles_out(facts: Facts) -> tuple[str, ...]:
    if facts.nearly_unique:
        return ("nearly unique: it looks like a direct identifier",)
    return ("many of its values are unique",) if facts.enough and facts.share >= 0.5 else ()


def _unique(facts: Facts) -> Guess | None:
    if facts.textual and facts.nearly_unique:
        return _made(facts, "direct", f"nearly unique text: {facts}")
    if facts.shape == INTEGER and facts.enough and facts.unique and not facts.missing:
        reason = f"a different whole number in every record: {facts}"
        return _made(facts, "direct", reason, None, "if it is a measurement, its role is other or sensitive")
    return None


def _few(facts: Facts) -> Guess | None:
    """Few different values that are no measurement: people may know them of each other."""
    if not facts.few or facts.distinct < 2 or facts.shape == DECIMAL or facts.phrases & words.MEASURES:
        return None
    hierarchy, warnings = hierarchies.intervals(facts)
    return _made(facts, "quasi", f"few different values: {facts}", hierarchy, *warnings)


def _other(facts: Facts) -> Guess:
    if not facts.present:
        return _made(facts, "other", f"no values: {many(facts.records, 'record')}, all missing")
    if facts.distinct == 1 and facts.present > 1:
        return _made(facts, "other", f"the same in all records: {facts}")
    measure = facts.shape == DECIMAL or (facts.shape == INTEGER and facts.phrases & words.MEASURES)
    reason = "a measurement" if measure else "nothing known by its name or values"
    warnings = _singles_out(facts) if facts.textual else ()
    if not facts.enough:
        warnings = ("too few records to judge by the values",)
    elif facts.textual and facts.longest >= LONG_TEXT:
        warnings = ("long texts may name persons",)
    return _made(facts, "other", f"{reason}: {facts}", None, *warnings)


_RULES = (_direct_by_content, _direct_by_name, _date, _id, _by_topic, _unique, _few, _other)

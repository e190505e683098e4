"""Roles: the rules that turn the facts of a column into a guess; the first that applies counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veilmark.engines.duckdb import DuckTable
from veilmark.errors import listing
from veilmark.guess import hierarchies, words
from veilmark.guess.arx_files import HierarchyFile, coverage, find_files
from veilmark.guess.facts import Facts, facts_of, many
from veilmark.guess.hierarchies import Hierarchy
from veilmark.guess.ids import choose_person, id_rank
from veilmark.guess.persons import Fold, fold_by, varying
from veilmark.guess.shapes import ADDRESSES, DECIMAL, INTEGER, PHONES
from veilmark.guess.uniques import unique_with

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
    missing: tuple[str, ...] = ()
    """Codes that mean missing."""
    fold: Fold | None = None
    """Of the person column: which value counts where a person's quasi-identifiers vary."""

    @property
    def why(self) -> str:
        """The reason and the warnings."""
        return self.reason + (f". Check: {'; '.join(self.warnings)}" if self.warnings else "")

    @property
    def content(self) -> dict[str, Any]:
        """What the study file says of the column."""
        given = {"hierarchy": self.hierarchy, "missing": list(self.missing)}
        return {"role": self.role} | {name: value for name, value in given.items() if value}

    def warned(self, *warnings: str) -> Guess:
        return replace(self, warnings=(*self.warnings, *warnings))


def guess_columns(table: DuckTable, data: Path | None = None) -> list[Guess]:
    """A guess for each column, in the table's order; at most one has the role `person`.

    Hierarchy files are looked for beside `data`, the file that holds the table. In the table, codes that mean missing
    become missing.
    """
    facts = facts_of(table)
    person = choose_person(facts.values())
    found = [_guess(column, facts.get(column), person) for column in table.columns]
    files = find_files(data, facts) if data else {}
    found = [_with_file(guess, files.get(guess.column, ()), table) for guess in found]
    return _with_uniques(_with_fold(found, facts, table), facts, table)


def _guess(column: str, facts: Facts | None, person: Facts | None) -> Guess:
    if facts is None:
        flatten = "veilmark only compares plain values; flatten the column before you give it a role"
        return Guess(column, "other", None, "lists, records or bytes", (flatten,), usable=False)
    guess = _person(facts) if facts is person else next(guess for rule in _RULES if (guess := rule(facts)))
    codes = facts.codes
    taken = f"treated as missing: {', '.join(codes.found)}, in {many(codes.records, 'record')}"
    warnings = [*([taken] if codes.found else []), *([codes.doubt] if codes.doubt else [])]
    return replace(guess.warned(*warnings), missing=codes.found)


def _with_file(guess: Guess, files: Sequence[HierarchyFile], table: DuckTable) -> Guess:
    """The guess with the first hierarchy file that fits: who wrote one for a column took it for a quasi-identifier. A file
    that lacks a few values is used too, with a word about them."""
    if not files or guess.role not in ("quasi", "other"):
        return guess
    domain = table.domain(guess.column)
    covers = {file: coverage(file.path, domain, guess.column) for file in files}
    chosen = next((file for file, cover in covers.items() if cover.enough), None)
    if chosen is None:
        file, cover = next(iter(covers.items()))
        return guess.warned(f"the hierarchy file {file.path.name} is not used, because {cover.why_not}")
    cover, name = covers[chosen], chosen.path.name
    made = replace(
        guess,
        role="quasi",
        hierarchy={"file": str(chosen.path), **({} if cover.all else {"others": "*"})},
        reason=f"{guess.reason}; hierarchy from {name}",
    )
    foreign = [] if chosen.own else [f"{name} is named after another table; check that its labels fit this one"]
    return made.warned(*foreign, *([] if cover.all else [cover.lacking]))


def _with_fold(found: list[Guess], facts: Mapping[str, Facts], table: DuckTable) -> list[Guess]:
    """The person's guess says which value counts, where quasi-identifiers of persons vary."""
    person = next((guess for guess in found if guess.role == "person"), None)
    quasi = [guess.column for guess in found if guess.role == "quasi"]
    varies = varying(table, person.column, quasi) if person else {}
    if person is None or not varies:
        return found
    fold = fold_by({column: facts[column].shape for column in varies}, varies)
    counts = (
        f"the latest record by {fold['latest']} counts" if isinstance(fold, dict) else "the most frequent value counts"
    )
    most = f"up to {many(max(varies.values()), 'person')} have several values of {listing(list(varies))}"
    folded = replace(person, fold=fold).warned(f"{most}; in methods that need one row per person, {counts} (fold)")
    return [folded if guess is person else guess for guess in found]


def _with_uniques(found: list[Guess], facts: Mapping[str, Facts], table: DuckTable) -> list[Guess]:
    """Columns that would be published unchanged carry how many records they make unique."""
    roles: dict[str, list[str]] = {}
    for guess in found:
        roles.setdefault(guess.role, []).append(guess.column)
    unchanged = [c for c in roles.get("other", []) if c in facts and facts[c].distinct > 1]
    unique = unique_with(table, roles.get("quasi", []), next(iter(roles.get("person", [])), None), unchanged)
    advice = "It is published unchanged: make it quasi, or remove it, if others may know it"
    return [g.warned(f"{unique[g.column]}. {advice}") if g.column in unique else g for g in found]


def _made(facts: Facts, role: str, reason: str, hierarchy: Hierarchy | None = None, *warnings: str) -> Guess:
    return Guess(facts.column, role, hierarchy, reason, warnings)


def _person(facts: Facts) -> Guess:
    reason = f"an id that repeats: {facts}, about {facts.present / facts.distinct:.1f} records a person"
    gaps = f"empty in {many(facts.missing, 'record')}; `measure` needs the person of each record"
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
        return _made(facts, "direct", f"an id that is unique: {facts}, one record per person")
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
        reason = f"a whole number that differs in every record: {facts}"
        return _made(facts, "direct", reason, None, "if it is a measurement, its role is other or sensitive")
    return None


def _few(facts: Facts) -> Guess | None:
    """Few different values that are no measurement: people may know them of each other."""
    if not facts.few or facts.distinct < 2 or facts.shape == DECIMAL or facts.phrases & words.MEASURES:
        return None
    hierarchy, warnings = hierarchies.intervals(facts)
    return _made(facts, "quasi", f"few different values: {facts}", hierarchy, *warnings)


def _text(facts: Facts) -> Guess | None:
    """Texts that nothing else is known of: free text may name persons, and what repeats may be known of them."""
    if not facts.textual or not facts.enough or facts.distinct < 2:
        return None
    if facts.longest >= LONG_TEXT:
        return _made(facts, "direct", f"long texts: {facts}", None, "long texts may name persons")
    reason = f"text with no known meaning: {facts}"
    return _made(facts, "quasi", reason, None, hierarchies.NO_HIERARCHY, *_singles_out(facts))


def _other(facts: Facts) -> Guess:
    if not facts.present:
        return _made(facts, "other", f"no values: {many(facts.records, 'record')}, all missing")
    if facts.distinct == 1 and facts.present > 1:
        return _made(facts, "other", f"the same value in all records: {facts}")
    measure = facts.shape == DECIMAL or (facts.shape == INTEGER and facts.phrases & words.MEASURES)
    reason = "a measurement" if measure else "neither its name nor its values are recognized"
    warnings = () if facts.enough else ("too few records to judge its values",)
    return _made(facts, "other", f"{reason}: {facts}", None, *warnings)


_RULES = (_direct_by_content, _direct_by_name, _date, _id, _by_topic, _unique, _few, _text, _other)

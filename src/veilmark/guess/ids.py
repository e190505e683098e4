"""Ids: which columns hold them, and which of them tells persons apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from veilmark.guess import words
from veilmark.guess.facts import Facts

PERSON_SHARE, PERSON_LEAST = (0.05, 0.95), 0.001
"""Different values a record of an id that may be a person's, and of one whose name says so."""

PERSON_FILLED = 0.9
"""At least so many records have the id of their person."""


def id_rank(facts: Facts) -> int:
    """How surely a name is of an id of persons: 3 says so, 2 is likely, 1 is any id, 0 none."""
    tokens = [t for t in facts.tokens if not t.isdigit()]
    if not tokens or facts.says(words.POSTAL, words.PLACE):
        return 0
    if any(words.GLUED_ID.fullmatch(t) for t in tokens):
        return 3
    if facts.says(words.IDENTITY) or (facts.enough and all(t in words.PERSON_WORDS for t in tokens)):
        return 2
    if tokens[-1] not in words.ID_WORDS and tokens[0] != "id":
        return 0
    return 3 if _id_noun(tokens) in words.PERSON_WORDS else 1


def _id_noun(tokens: Sequence[str]) -> str:
    """Whose id it is: `subject` of study_subject_id, `visit` of patient_visit_id, `paciente` of id_paciente."""
    if tokens[-1] not in words.ID_WORDS:
        return tokens[1] if len(tokens) > 1 else ""
    return next((t for t in reversed(tokens) if t not in words.ID_WORDS), "")


def choose_person(columns: Iterable[Facts]) -> Facts | None:
    """The column that most likely tells persons apart where they have several records."""
    return max((facts for facts in columns if _repeats_like_persons(facts)), key=id_rank, default=None)


def _repeats_like_persons(facts: Facts) -> bool:
    rank = id_rank(facts)
    if not rank or facts.says(*words.REACH) or facts.shape.name in ("date", "decimal"):
        return False
    if facts.unique or facts.distinct < 2 or facts.present < PERSON_FILLED * facts.records:
        return False
    if rank == 3:
        return facts.share >= PERSON_LEAST
    if facts.flag or facts.phrases & words.NOT_PERSONS:
        return False
    return PERSON_SHARE[0] <= facts.share <= PERSON_SHARE[1]

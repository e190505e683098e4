"""Who of the source is in the population, and why too few of the population can serve as decoys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from veilmark.engines import sql
from veilmark.engines.base import Table
from veilmark.errors import OptionError
from veilmark.messages import param

if TYPE_CHECKING:
    from veilmark.mark.linking import Ground


@dataclass(frozen=True)
class Recognized:
    """Of the source's persons, as the identity columns tell them, how many were found in the population, and how many of
    these have other quasi-identifiers there."""

    persons: int
    found: int
    differ: int

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @property
    def few(self) -> bool:
        """Whether fewer than half were found."""
        return 2 * self.found < self.persons

    def note(self, identity: Sequence[str]) -> str:
        """In words, with what to do where it looks wrong."""
        by = _listed(identity)
        other = f", {self.differ:,} of them with other quasi-identifiers" if self.differ else ""
        said = f"{self.found:,} of the source's {self.persons:,} persons were found in the population by {by}{other}."
        if self.few:
            return (
                f"Only {said} Check that both write {by} in the same way, and that the population has everybody. "
                "The risks and the decoys depend on it."
            )
        if 2 * self.differ > self.found:
            return f"{said} Check that {by} identifies the same persons in both."
        return said


def recognize(source: Table, population: Table, identity: Sequence[str], quasi: Sequence[str]) -> Recognized | None:
    """Look for the source's persons; None where the source does not have the identity columns, or nobody's are filled in."""
    if not identity or not set(identity) <= set(source.columns):
        return None
    statements = sql.recognized(source, population, identity, quasi)
    (persons,) = _numbers(source, statements[0])
    there, alike = _numbers(population, statements[1])
    return Recognized(persons, there, there - alike) if persons else None


def shared(population: Table, identity: Sequence[str]) -> tuple[int, int]:
    """How many records a population has, and how many of them have an identity that others have, too, or none."""
    statement = sql.shared_identities(population, identity)
    persons, alike = _numbers(population, statement)
    return persons, alike


def check_telling(population: Table, identity: Sequence[str]) -> None:
    """Refuse identity columns by which fewer than half of the population can be told from everybody else: a claim by them
    would be about many, and hardly anybody could serve as a decoy."""
    persons, alike = shared(population, identity)
    if 2 * alike <= persons:
        return
    by = _listed(identity)
    raise OptionError(
        f"{param('identity', list(identity))} does not identify persons: {alike:,} of the {persons:,} records of "
        f"'{population.label}' share {by} with another record, or lack it ({_values(population, identity):,} "
        "different values). Name columns that do, such as a voter's number, or a name and a birthday."
    )


def _values(table: Table, columns: Sequence[str]) -> int:
    """How many different values some columns have together."""
    (values,) = _numbers(table, sql.different_values(table, columns))
    return values


def why_few(ground: Ground, k: int) -> str:
    """The likeliest cause, with what to do, where too few of the population can serve as decoys; nothing where it is none of
    these."""
    known = ground.recognized
    if known is not None and known.few:
        return f"{known.note(ground.identity)} Use a population that has everybody."
    found = ground.linked.found(k)
    lost = int(found.sum() - ground.linked.candidates(k).sum())
    if 2 * lost > found.sum():
        return (
            f"{lost:,} more classes link to few enough persons, but these persons are in the source, or may be. "
            "Use a population that is larger than the source, or allow more suppression."
        )
    return ""


def _numbers(table: Table, statement: str) -> list[int]:
    return [int(column[0].as_py() or 0) for column in table.query(statement).columns]


def _listed(columns: Sequence[str]) -> str:
    return " and ".join(columns)

"""PersonTable: many records a person folded to one row a person.

A quasi-identifier has one value a person. A sensitive attribute has one, or several: the sorted array of them is the
person's fingerprint (the Individual Condition Fingerprint Array of the f-slip paper). A value that a person's records
repeat counts once; two values that generalize to one label count twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from veilmark.errors import DataError, VeilmarkError
from veilmark.tables.cells import BatchCoder, number, pack
from veilmark.tables.classes import ClassTable, Tally
from veilmark.tables.domain import Domain

if TYPE_CHECKING:
    from veilmark.engines.base import Table

Fill = Literal["mean", "mode"]

PART_ROWS = 1 << 24
"""About so many rows are brought into the order of persons at a time."""


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """The values of one attribute: person i has the codes `values[starts[i]:starts[i + 1]]`, in ascending order."""

    domain: Domain
    starts: np.ndarray
    values: np.ndarray

    @classmethod
    def of_codes(cls, domain: Domain, codes: np.ndarray) -> Fingerprints:
        """One value a person."""
        return cls(domain, np.arange(len(codes) + 1), codes)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __repr__(self) -> str:
        return f"Fingerprints({len(self):,} persons, {len(self.values):,} values of {len(self.domain):,})"

    @cached_property
    def lengths(self) -> np.ndarray:
        """How many values each person has."""
        return np.diff(self.starts)

    @cached_property
    def owner(self) -> np.ndarray:
        """The person of each value."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def single(self) -> bool:
        """Whether every person has just one value; `values` are then the persons' codes."""
        return len(self.values) == len(self)

    def recode(self, codes: np.ndarray, domain: Domain) -> Fingerprints:
        """Value i becomes codes[i] of another domain, as often as it was there."""
        changed = codes[self.values]
        if not self.single:
            keys = self.owner * len(domain) + changed
            keys.sort()
            changed = keys - self.owner * len(domain)
        return Fingerprints(domain, self.starts, changed.astype(np.int32))

    def take(self, persons: np.ndarray) -> Fingerprints:
        """The chosen persons, by position, in that order."""
        lengths = self.lengths[persons]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        offset = np.repeat(self.starts[:-1][persons] - starts[:-1], lengths)
        return Fingerprints(self.domain, starts, self.values[np.arange(starts[-1]) + offset])

    @cached_property
    def kinds(self) -> np.ndarray:
        """A number for each person, the same for equal fingerprints, ascending in the order of the arrays."""
        if self.single:
            return self.values.astype(np.int64)
        kinds = np.zeros(len(self), dtype=np.int64)
        size = len(self.domain) + 1
        for place in range(int(self.lengths.max(initial=0))):
            longer = self.lengths > place
            code = np.zeros(len(self), dtype=np.int64)
            code[longer] = self.values[self.starts[:-1][longer] + place] + 1
            kinds = np.unique(kinds * size + code, return_inverse=True)[1]
        return kinds

    def filled(self, how: Fill) -> Fingerprints:
        """Missing values replaced by the mean (numbers) or the commonest value."""
        missing = self.domain.missing
        if missing is None or not (self.values != missing).any():
            return self
        counts = np.bincount(self.values, minlength=len(self.domain))[:missing]
        text = self.domain.text[int(np.argmax(counts))].as_py()
        if how == "mean" and self.domain.numbers is not None:
            numbers = self.domain.numbers[:missing]
            mean = float(np.dot(numbers, counts) / counts.sum())
            whole = np.all(numbers == np.round(numbers))
            text = str(round(mean)) if whole else f"{mean:.6g}"
        present = self.domain.text.slice(0, missing)
        domain = Domain.of(pa.array([*present.to_pylist(), text], pa.string()))
        codes = domain.codes_of(pa.concat_arrays([present.cast(pa.string()), pa.array([text], pa.string())]))
        return self.recode(codes, domain)


@dataclass(frozen=True, eq=False)
class PersonTable:
    """Persons in the order of their first records (of tables beyond 16 million records, part by part), each with one value
    of every quasi-identifier."""

    quasi: Mapping[str, Fingerprints]
    sensitive: Mapping[str, Fingerprints]
    records: int

    def __len__(self) -> int:
        first = next(iter([*self.quasi.values(), *self.sensitive.values()]), None)
        return 0 if first is None else len(first)

    def __repr__(self) -> str:
        many = [name for name, values in self.sensitive.items() if not values.single]
        return (
            f"PersonTable({len(self):,} persons of {self.records:,} records; several values: {', '.join(many) or '-'})"
        )

    @cached_property
    def class_of(self) -> np.ndarray:
        """The number of each person's class by all quasi-identifiers, in the order of `classes`."""
        return self._grouped[1]

    @cached_property
    def classes(self) -> ClassTable:
        """The persons' classes by all quasi-identifiers; a record of it is a person."""
        first, owner = self._grouped
        codes = np.array([column.values[first] for column in self.quasi.values()], dtype=np.int32)
        counts = np.bincount(owner, minlength=len(first))
        domains = tuple(column.domain for column in self.quasi.values())
        return ClassTable(tuple(self.quasi), domains, codes.reshape(len(self.quasi), len(first)), Tally(counts))

    @cached_property
    def _grouped(self) -> tuple[np.ndarray, np.ndarray]:
        if not self.quasi:
            return np.zeros(min(len(self), 1), dtype=np.int64), np.zeros(len(self), dtype=np.int64)
        columns = list(self.quasi.values())
        keys, bound = pack([c.values for c in columns], [len(c.domain) for c in columns])
        distinct, owner = number(keys, bound)
        first = np.zeros(len(distinct), dtype=np.int64)
        first[owner[::-1]] = np.arange(len(owner))[::-1]
        return first, owner

    def take(self, persons: np.ndarray) -> PersonTable:
        """The chosen persons, by position, in that order."""
        return replace(
            self,
            quasi={name: column.take(persons) for name, column in self.quasi.items()},
            sensitive={name: column.take(persons) for name, column in self.sensitive.items()},
        )


@dataclass(frozen=True)
class Folding:
    """What becomes of a quasi-identifier that differs between a person's records: the value of the `latest` record by
    the column `date`, the commonest (`mode`), the `first` record's, or an `error`."""

    rule: Literal["error", "first", "mode", "latest"] = "error"
    date: str | None = None


def fold(
    table: Table,
    person: str,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    folding: Folding | None = None,
    fill: Mapping[str, Fill] | None = None,
) -> PersonTable:
    """One row a person; `fill` says how missing values of an attribute are filled, if they are."""
    folding = folding or Folding()
    if lacking := table.missing(person):
        raise DataError(
            f"The person column '{person}' of '{table.label}' is empty in {lacking:,} records, so their person is "
            "unknown. Fill it in, remove those records, or remove `person` from the study."
        )
    columns = [*quasi, *sensitive, *([folding.date] if folding.date else [])]
    domains = {c: table.domain(c) for c in dict.fromkeys(columns)}
    records = table.count()
    if not records:
        raise DataError(f"'{table.label}' has column names but no records.")
    count = -(-records // PART_ROWS)
    parts = [part for i in range(count) if len(part := _Part(table, person, domains, (i, count)))]

    def of_column(name: str) -> Fingerprints:
        values = _joined([part.fingerprints(name, folding if name in quasi else None) for part in parts])
        return values.filled(fill[name]) if fill and name in fill else values

    with ThreadPoolExecutor(2) as workers:
        found = dict(zip((*quasi, *sensitive), workers.map(of_column, (*quasi, *sensitive)), strict=True))
    check_single(found, quasi)
    return PersonTable({c: found[c] for c in quasi}, {c: found[c] for c in sensitive}, records)


def check_single(found: Mapping[str, Fingerprints], quasi: Sequence[str]) -> None:
    """A person must have one value of each quasi-identifier."""
    for name in quasi:
        several = int((found[name].lengths > 1).sum())
        if several:
            raise DataError(
                f"{several:,} persons have more than one value of the quasi-identifier '{name}' in their records. "
                "Say which value counts, at the top level of the study: fold: mode (the most frequent), fold: "
                f"first, or fold: {{latest: DATE_COLUMN}}. Or give '{name}' another role."
            )


def _joined(parts: Sequence[Fingerprints]) -> Fingerprints:
    if len(parts) == 1:
        return parts[0]
    starts = np.concatenate([[0], np.cumsum(np.concatenate([part.lengths for part in parts]))])
    return Fingerprints(parts[0].domain, starts, np.concatenate([part.values for part in parts]))


class _Part:
    """Some persons' records: whose each row is, and each row's codes."""

    def __init__(self, table: Table, person: str, domains: Mapping[str, Domain], part: tuple[int, int]) -> None:
        self._domains = domains
        found = table.visits(list(domains), person, part)
        hashes, checks, self._counts = found.hashes, found.checks, found.counts
        with ThreadPoolExecutor(1) as beside:
            coding = beside.submit(row_codes, found.columns, domains)
            self._person, self._firsts = _numbered(hashes)
            self._codes = coding.result()
        if (checks[self._firsts][self._person] != checks).any():
            raise VeilmarkError(
                "Two values of the person column have the same hash. Change the values of the person column."
            )
        if any(len(codes) != len(hashes) for codes in self._codes.values()):
            raise DataError(f"'{table.label}' changed while it was being read. Try again when nobody writes to it.")

    def __len__(self) -> int:
        return len(self._person)

    def fingerprints(self, column: str, folding: Folding | None) -> Fingerprints:
        """The persons' values of one column; a missing one counts only where a person has no other."""
        domain, codes = self._domains[column], self._codes[column]
        first = codes[self._firsts]
        if (first[self._person] == codes).all() or (folding is not None and folding.rule == "first"):
            return Fingerprints.of_codes(domain, first.astype(np.int32))
        if folding is not None and folding.rule == "latest" and folding.date:
            return Fingerprints.of_codes(domain, codes[self._latest(folding.date)].astype(np.int32))
        return self._pairs(domain, codes, folding is not None and folding.rule == "mode")

    def _latest(self, date: str) -> np.ndarray:
        """The first of each person's rows with the latest date; a missing date is the earliest."""
        when = self._codes[date].astype(np.int64)
        if (missing := self._domains[date].missing) is not None:
            when = np.where(when == missing, -1, when)
        latest = np.full(len(self._firsts), -1, dtype=np.int64)
        np.maximum.at(latest, self._person, when)
        rows = np.flatnonzero(when == latest[self._person])
        found = np.empty(len(self._firsts), dtype=np.int64)
        found[self._person[rows[::-1]]] = rows[::-1]
        return found

    def _pairs(self, domain: Domain, codes: np.ndarray, commonest: bool) -> Fingerprints:
        bits = len(domain).bit_length()
        keys = self._person.astype(np.int64) << bits
        keys |= codes
        counts = self._counts
        if counts is None:
            keys.sort()
        else:
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
        begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        keys = keys[begins]
        person, value = keys >> bits, keys & ((1 << bits) - 1)
        if domain.missing is not None or commonest:
            often = np.diff(np.append(begins, len(codes))) if counts is None else np.add.reduceat(counts, begins)
            person, value = _chosen(person, value, often, domain.missing, commonest)
        lengths = np.bincount(person, minlength=len(self._firsts))
        return Fingerprints(domain, np.concatenate([[0], np.cumsum(lengths)]), value.astype(np.int32))


def _chosen(
    person: np.ndarray, value: np.ndarray, often: np.ndarray, missing: int | None, commonest: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of person and value less the missing ones of those who have another; or the commonest of each person."""
    if missing is not None:
        stay = (np.bincount(person)[person] == 1) | (value != missing)
        person, value, often = person[stay], value[stay], often[stay]
    if commonest:
        order = np.lexsort((value, -often, person))
        person, value = person[order], value[order]
        first = np.concatenate([[True], person[1:] != person[:-1]])
        person, value = person[first], value[first]
    return person, value


def _numbered(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The person of each row, persons numbered by their first rows, and these rows.

    Most of a hash and the row's number fit into one integer, which sorts far faster than rows by their hashes. Where two
    hashes differ in the rest alone, the later ones are persons of their own.
    """
    bits = len(hashes).bit_length()
    low = np.uint64((1 << bits) - 1)
    keys = hashes & ~low
    keys |= np.arange(len(hashes), dtype=np.uint64)
    keys.sort()
    order = (keys & low).astype(np.int32)
    keys >>= np.uint64(bits)
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))[: len(hashes)]
    firsts = order[starts]
    person = np.empty(len(hashes), dtype=np.int32)
    person[order] = np.repeat(np.arange(len(firsts), dtype=np.int32), np.diff(np.append(starts, len(hashes))))
    others = np.flatnonzero(hashes[firsts][person] != hashes)
    if len(others):
        _, place, copy = np.unique(hashes[others], return_index=True, return_inverse=True)
        person[others] = len(firsts) + copy
        firsts = np.concatenate([firsts, others[place].astype(np.int32)])
    seen = np.zeros(len(hashes), dtype=np.int32)
    seen[firsts] = 1
    rank = np.cumsum(seen, dtype=np.int32)[firsts] - 1
    return rank[person], np.flatnonzero(seen)


def row_codes(batches: Iterable[pa.RecordBatch], domains: Mapping[str, Domain]) -> dict[str, np.ndarray]:
    """Every row's code in every column."""
    coders = {c: BatchCoder(d, 1, np.int16 if len(d) < 1 << 15 else np.int32) for c, d in domains.items()}
    codes: dict[str, list[np.ndarray]] = {c: [] for c in domains}
    for batch in batches:
        for i, (name, coder) in enumerate(coders.items()):
            codes[name].append(coder.shares(batch.column(i)))
    return {c: np.concatenate([np.empty(0, np.int16), *found]) for c, found in codes.items()}

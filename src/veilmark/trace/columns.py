"""Which column of a leak is which of the release's: by the user's map, by name, by its values, or by its codes' frequencies.

A name decides where the column holds labels of the release (capital letters and blanks around it aside). Columns that are
left are compared by their values with each of the release's columns that are left. Where several fit about as well, those
are taken that occur together as the release's columns do. A column that fits nothing may be coded one for one. What was
found by values or codes must be plausible (`plausible.py`); a column that the user maps is never taken for another.

All of this follows from the leak and from what all copies have in common (labels, hierarchies, how many records classes
have). No recipient's marks are looked at, so that an innocent one's are independent of what is matched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
import pyarrow as pa
from scipy import optimize

from veilmark.errors import OptionError, listing
from veilmark.tables.cells import number, pack
from veilmark.tables.domain import Domain
from veilmark.trace.evidence import Marked
from veilmark.trace.labels import ROWS_A_VALUE, Column, ColumnReading, apart, read_column
from veilmark.trace.leaked import Combinations, Leaked
from veilmark.trace.plausible import STRICT, implausible
from veilmark.trace.recode import FITS, LARGEST, Released, level_of, match_codes

READ, FAR = 0.5, 0.6
"""By its values a column is known where at least this share of its rows is read, and frequencies are no farther off."""

SAME_CLASSES = 0.9
"""By its codes a column is known where with it no fewer of the rows, but for so much, are in classes of the release."""

MOST_VALUES = 100_000
"""A column with more distinct values than this, and many more than ours has, is not one of ours."""

NEAR = 0.03
"""Where pairs of columns are no farther than this from the release's, labels are what they say."""

_LIKELY = 0.1  # columns that fit worse than the best by less than this may be the right one, too


@dataclass(frozen=True, eq=False)
class Matched:
    """`columns[ours]` is the leak's name of a column that is read, `by[ours]` how it was found (map, name, values, codes),
    `readings[ours]` what it holds. `passed` are those of the release that no column of the leak was taken for.
    `implausible[ours]` is a column that looked like it and was passed over; `misfits[ours]` one that the user mapped to it
    and that holds none of its labels."""

    columns: Mapping[str, str]
    by: Mapping[str, str]
    readings: Mapping[str, ColumnReading]
    passed: tuple[str, ...]
    implausible: Mapping[str, str] = field(default_factory=dict)
    misfits: Mapping[str, str] = field(default_factory=dict)

    @property
    def fit(self) -> float:
        """How much of the release's columns was read, in columns."""
        return sum(1 - reading.badness for reading in self.readings.values())


def same_name(there: Collection[str], wanted: Iterable[str]) -> dict[str, str]:
    """Which column that is there each of those wanted is: the one of that name or, capital letters and blanks around it
    aside, the only one."""
    columns = list(dict.fromkeys(wanted))
    found = {column: column for column in columns if column in there}
    for column in columns:
        alike = [name for name in there if name not in found and _plainly(name) == _plainly(column)]
        rivals = [other for other in columns if _plainly(other) == _plainly(column)]
        if column not in found and len(alike) == len(rivals) == 1:
            found[column] = alike[0]
    return found


def _plainly(name: str) -> str:
    return name.strip().casefold()


def check_map(given: Mapping[str, str], there: Sequence[str], wanted: Collection[str]) -> None:
    """A user's map names columns of the leak and of the release, each once."""
    for theirs, ours in given.items():
        if theirs not in there:
            raise OptionError(f"The leak has no column '{theirs}' to map. It has {listing(list(there))}.")
        if ours not in wanted:
            raise OptionError(
                f"No release has a column '{ours}' to map '{theirs}' to. They have {listing(list(wanted))}."
            )
    twice = [ours for ours in given.values() if list(given.values()).count(ours) > 1]
    if twice:
        raise OptionError(f"Two columns are mapped to '{twice[0]}'. Map one column of the leak to each.")


def match_columns(marked: Marked, leak: Leaked, given: Mapping[str, str] | None = None) -> Matched:
    """Find the release's columns in a leak; `given` maps names in the leak to ours."""
    mapped = {ours: theirs for theirs, ours in (given or {}).items() if ours in marked.columns}
    search = _Search(marked, leak, mapped)
    search.take(mapped, "map")
    free = [name for name in leak.columns if name not in mapped.values()]
    by_name = same_name(free, [c for c in marked.columns if c not in mapped])
    sure = {o: t for o, t in by_name.items() if search.known(o, t)}
    search.take(sure, "name")
    search.by_values()
    poor = {o: t for o, t in by_name.items() if o not in search.columns and t in search.free}
    search.take({o: t for o, t in poor.items() if (r := search.reading(o, t)) is not None and r.form in STRICT}, "name")
    search.by_codes({**mapped, **poor})
    search.exchanged()
    search.drop_implausible({**by_name, **mapped})
    return search.found()


@dataclass(eq=False)
class _Search:
    """What was found so far."""

    marked: Marked
    leak: Leaked
    mapped: Mapping[str, str]
    columns: dict[str, str] = field(default_factory=dict)
    by: dict[str, str] = field(default_factory=dict)
    implausible: dict[str, str] = field(default_factory=dict)
    _seen: dict[str, Column] = field(default_factory=dict)
    _read: dict[tuple[str, str], ColumnReading | None] = field(default_factory=dict)
    _joint: dict[tuple[str, str, str, str], float] = field(default_factory=dict)

    @cached_property
    def released(self) -> Released:
        codes = dict(zip(self.marked.columns, self.marked.class_codes, strict=True))
        return Released(codes, self.marked.expected)

    @property
    def free(self) -> list[str]:
        taken = {*self.columns.values(), *self.mapped.values()}
        return [name for name in self.leak.columns if name not in taken]

    @property
    def wanted(self) -> list[str]:
        return [c for c in self.marked.columns if c not in self.columns and c not in self.mapped]

    @property
    def misfits(self) -> dict[str, str]:
        """What the user mapped and that was not read."""
        return {ours: theirs for ours, theirs in self.mapped.items() if ours not in self.columns}

    def take(self, columns: Mapping[str, str], by: str) -> None:
        for ours, theirs in columns.items():
            if self.reading(ours, theirs) is not None:
                self.columns[ours], self.by[ours] = theirs, by

    def known(self, ours: str, theirs: str) -> bool:
        """Whether a column of that name is read, not by taking numbers that are as good as any for parts of labels."""
        found = self.reading(ours, theirs)
        return found is not None and found.share >= READ and (found.form in STRICT or found.distance <= FAR)

    def column(self, theirs: str) -> Column:
        if theirs not in self._seen:
            found = self.leak.combinations([theirs])
            counts = np.bincount(found.codes[0], found.counts, len(found.texts[0]))
            self._seen[theirs] = Column(found.texts[0], counts)
        return self._seen[theirs]

    def records(self, ours: str) -> np.ndarray:
        return np.bincount(self.released.codes[ours], self.released.records, len(self.marked.above[ours][0]))

    def reading(self, ours: str, theirs: str) -> ColumnReading | None:
        if (ours, theirs) not in self._read:
            column, above = self.column(theirs), self.marked.above[ours]
            too_many = len(column.texts) > max(MOST_VALUES, 10 * len(above[0]))
            self._read[ours, theirs] = None if too_many else read_column(column, above, self.records(ours))
        return self._read[ours, theirs]

    # By values.

    def by_values(self) -> None:
        """The assignment of what is left to what is wanted that fits best."""
        wanted, free = self.wanted, self.free
        if not wanted or not free:
            return
        cost = np.array([[self.badness(ours, theirs) for theirs in free] for ours in wanted])
        apart_by = np.subtract.outer(np.arange(len(wanted)), np.arange(len(free))) ** 2.0  # of equals, as they stand
        near = np.where(cost < 1, cost, 9.0) + 1e-4 * apart_by / max(len(wanted), len(free)) ** 2
        for i, j in zip(*optimize.linear_sum_assignment(near), strict=True):
            if cost[i, j] < 1:
                self.columns[wanted[i]], self.by[wanted[i]] = free[j], "values"
        self.untangle()
        self.prune()

    def badness(self, ours: str, theirs: str) -> float:
        """How badly a column fits by its values, 1 where it is out of the question."""
        found = self.reading(ours, theirs)
        if found is None or found.share < READ or found.distance > FAR:
            return 1.0
        return found.badness

    def untangle(self) -> None:
        """Exchange columns that fit about as well, as long as that brings pairs of columns nearer to the release's."""
        for _ in range(10):
            now = self.togetherness(self.columns)
            best, least = None, now - 1e-3
            for other in self.exchanges():
                if (value := self.togetherness(other)) < least:
                    best, least = other, value
            if best is None:
                return
            self.columns = best

    def exchanges(self) -> list[dict[str, str]]:
        """All that differ from what is matched now by one column, or by two that change places."""
        values = [ours for ours, by in self.by.items() if by == "values"]
        found = []
        for ours in values:
            limit = self.badness(ours, self.columns[ours]) + _LIKELY
            found += [{**self.columns, ours: t} for t in self.free if self.badness(ours, t) <= limit]
        for a, b in combinations(values, 2):
            swapped = {**self.columns, a: self.columns[b], b: self.columns[a]}
            if max(self.badness(a, swapped[a]), self.badness(b, swapped[b])) < 1:
                found.append(swapped)
        return found

    def togetherness(self, columns: Mapping[str, str]) -> float:
        """How far all pairs of columns are from the release's, in sum."""
        return sum(self.joint(a, columns[a], b, columns[b]) for a, b in combinations(columns, 2))

    def joint(self, a: str, x: str, b: str, y: str) -> float:
        """How far the frequencies of pairs of values of two columns are from the release's."""
        if (a, x, b, y) not in self._joint:
            one, other = self.reading(a, x), self.reading(b, y)
            self._joint[a, x, b, y] = 1.0 if one is None or other is None else self._pairs(a, x, one, b, y, other)
        return self._joint[a, x, b, y]

    def _pairs(self, a: str, x: str, one: ColumnReading, b: str, y: str, other: ColumnReading) -> float:
        rows = self.leak.combinations([x, y])
        theirs = np.array([one.codes[rows.codes[0]], other.codes[rows.codes[1]]])
        ours = np.array([one.up[self.released.codes[a]], other.up[self.released.codes[b]]])
        return _apart_jointly(theirs, rows.counts, ours, self.released.records)

    def prune(self) -> None:
        """Give up columns found by values with which rows fall into no class, and without which they would."""
        for ours in [c for c, by in self.by.items() if by == "values"]:
            rest = {c: t for c, t in self.columns.items() if c != ours}
            if rest and self.in_classes(self.columns) < 0.5 * self.in_classes(rest):
                del self.columns[ours], self.by[ours]

    def in_classes(self, columns: Mapping[str, str]) -> float:
        """The share of rows that fall into a class of the release by these columns."""
        rows = self.leak.combinations(list(columns.values()))
        readings = [self.reading(c, t) for c, t in columns.items()]
        known = [r for r in readings if r is not None]
        theirs = np.array([r.codes[code] for r, code in zip(known, rows.codes, strict=True)])
        ours = np.array([r.up[self.released.codes[c]] for r, c in zip(known, columns, strict=True)])
        place, count = _placed(theirs, ours)
        inside = np.isin(place, count) & (place >= 0)
        return float(rows.counts[inside].sum() / max(rows.counts.sum(), 1))

    # By codes.

    def by_codes(self, hinted: Mapping[str, str]) -> None:
        """Columns whose codes were exchanged one for one; `hinted` are those whose names or map say which they are."""
        mapped = self.misfits
        if not mapped and not (self.wanted and self.free):
            return
        ups = {c: self._levels(c) for c in (*mapped, *self.wanted)}
        chosen = {o: t for o, t in hinted.items() if o in ups and (t in self.free or mapped.get(o) == t)}
        for ours, theirs in list(chosen.items()):
            if level_of(self.column(theirs), ups[ours], self.records(ours))[1] > FITS:
                del chosen[ours]
        chosen |= self._alike_codes({c: ups[c] for c in self.wanted if c not in chosen}, set(chosen.values()))
        if not chosen:
            return
        unread = {o: ups[o][level_of(self.column(t), ups[o], self.records(o))[0]] for o, t in chosen.items()}
        names = {**self.columns, **chosen}
        rows = self.leak.combinations(list(names.values()))
        read = {c: r for c, t in self.columns.items() if (r := self.reading(c, t)) is not None}
        for ours, reading in match_codes(rows, list(names), read, unread, self.released).items():
            self._take_codes(ours, chosen[ours], reading, hinted)

    def _take_codes(self, ours: str, theirs: str, reading: ColumnReading, hinted: Mapping[str, str]) -> None:
        if reading.distance > FITS:
            return
        before = self.in_classes(self.columns) if self.columns else 1.0
        self._read[ours, theirs] = reading
        self.columns[ours], self.by[ours] = theirs, "map" if ours in self.mapped else "codes"
        if ours not in hinted and self.in_classes(self.columns) < SAME_CLASSES * before:
            del self.columns[ours], self.by[ours]

    def _levels(self, ours: str) -> list[np.ndarray]:
        """What each of our labels becomes at each level."""
        texts = [pa.array(labels, pa.string()) for labels in self.marked.above[ours]]
        return [Domain.of(of.unique()).codes_of(of) for of in texts]

    def _alike_codes(self, ups: Mapping[str, list[np.ndarray]], taken: set[str]) -> dict[str, str]:
        wanted, free = list(ups), [t for t in self.free if t not in taken]
        if not wanted or not free:
            return {}
        cost = np.array([[level_of(self.column(t), ups[o], self.records(o))[1] for t in free] for o in wanted])
        pairs = zip(*optimize.linear_sum_assignment(cost), strict=True)
        return {wanted[i]: free[j] for i, j in pairs if cost[i, j] <= FITS}

    # By labels that changed places.

    def exchanged(self) -> None:
        """Columns whose labels were exchanged with each other: each is what it says, and yet occurs with others as another
        label does. Taken for coded where that brings pairs of columns much nearer to the release's."""
        read = {c: r for c, t in self.columns.items() if (r := self.reading(c, t)) is not None}
        read = {c: of for c, of in read.items() if len(np.unique(of.up)) > 1}
        tried = {c: of.up for c, of in read.items() if of.up.min() >= 0 and len(np.unique(of.up)) <= LARGEST}
        if len(read) < 2 or not tried:
            return
        rows = self.leak.combinations([self.columns[c] for c in read])
        labels = sum(len(np.unique(up)) for up in tried.values())
        table = _Together(rows, list(read), self.released)
        if rows.counts.sum() < ROWS_A_VALUE * labels:
            return
        for _ in tried:  # a column may be seen to be exchanged only when others were put right
            if table.distances(read).max() <= NEAR or not (coded := table.exchanged(read, tried)):
                return
            read |= coded
            for c, reading in coded.items():
                self._read[c, self.columns[c]], self.by[c] = reading, "map" if c in self.mapped else "codes"

    # What is plausible.

    def drop_implausible(self, hinted: Mapping[str, str]) -> None:
        """Pass over columns that were found without their names and do not occur with the others as the release's do."""
        while True:
            named = {o for o, t in self.columns.items() if hinted.get(o) == t}
            doubtful = {o: self.by[o] for o in self.columns if o not in named}
            readings = {c: r for c, t in self.columns.items() if (r := self.reading(c, t)) is not None}
            if not doubtful:
                return
            rows = self.leak.combinations([self.columns[c] for c in readings])
            worst = implausible(rows, readings, self.released, doubtful)
            if worst is None:
                return
            self.implausible[worst] = self.columns.pop(worst)
            del self.by[worst]

    def found(self) -> Matched:
        kept = {c: self.columns[c] for c in self.marked.columns if c in self.columns}
        readings = {c: r for c, t in kept.items() if (r := self.reading(c, t)) is not None}
        passed = tuple(c for c in self.marked.columns if c not in kept)
        by = {c: self.by[c] for c in kept}
        return Matched(kept, by, readings, passed, self.implausible, self.misfits)


@dataclass(frozen=True, eq=False)
class _Together:
    """How far pairs of columns of a leak are from the release's."""

    rows: Combinations
    names: Sequence[str]
    released: Released

    def distances(self, readings: Mapping[str, ColumnReading]) -> np.ndarray:
        """For all pairs of columns."""
        theirs = {c: readings[c].codes[self.rows.codes[i]] for i, c in enumerate(self.names)}
        ours = {c: readings[c].up[self.released.codes[c]] for c in self.names}
        return np.array(
            [
                _apart_jointly(
                    np.array([theirs[a], theirs[b]]),
                    self.rows.counts,
                    np.array([ours[a], ours[b]]),
                    self.released.records,
                )
                for a, b in combinations(self.names, 2)
            ]
        )

    def exchanged(self, read: Mapping[str, ColumnReading], ups: Mapping[str, np.ndarray]) -> dict[str, ColumnReading]:
        """Readings of some columns as coded, by which the pairs are half as far off as now, or nearer."""
        better = {c: up for c, up in ups.items() if self.gains(read, {c: up}, 0.7)}
        found = [coded for some in (better, ups) if some and (coded := self.gains(read, some, 0.5))]
        return min(found, key=lambda coded: float(self.distances({**read, **coded}).sum()), default={})

    def gains(
        self, read: Mapping[str, ColumnReading], ups: Mapping[str, np.ndarray], part: float
    ) -> dict[str, ColumnReading]:
        """Readings of some columns as coded, if with them the pairs' distances are at most `part` of what they are now."""
        rest = {c: of for c, of in read.items() if c not in ups}
        coded = match_codes(self.rows, self.names, rest, ups, self.released)
        now, then = (self.distances(of).sum() for of in (read, {**read, **coded}))
        changed = {c: of for c, of in coded.items() if not np.array_equal(of.codes, read[c].codes)}
        return changed if then <= part * now else {}


def _placed(theirs: np.ndarray, ours: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes by their combination of labels, numbered alike; -1 where a label is unknown."""
    both = np.concatenate([theirs, ours], axis=1)
    known = np.all(both >= 0, axis=0)
    place = np.full(both.shape[1], -1)
    if known.any():
        _, place[known] = number(*pack(both[:, known], [int(of.max()) + 1 for of in both]))
    return place[: theirs.shape[1]], place[theirs.shape[1] :]


def _apart_jointly(theirs: np.ndarray, counts: np.ndarray, ours: np.ndarray, records: np.ndarray) -> float:
    one, other = _placed(theirs, ours)
    size = int(max(one.max(initial=0), other.max(initial=0))) + 1
    tables = [np.bincount(p[p >= 0], w[p >= 0], size) for p, w in ((one, counts), (other, records))]
    return apart(*tables)

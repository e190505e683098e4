"""What an attacker sees of a release, whatever method made it.

Its classes are the distinct combinations of published quasi-identifiers. Sensitive values stand in one or more parts
(tables), whose rows are in groups; a link says how many rows of a class lead to which group of each part. In a file with
all columns a class leads to its own rows; in tables linked by group numbers to the groups of its persons; where nothing
links them, every class leads to all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.attack.labels import Labels, Meaning
from veilmark.errors import DataError
from veilmark.hierarchy import Levels
from veilmark.tables.cells import number, pack
from veilmark.tables.domain import Domain, as_text
from veilmark.tables.persons import Fingerprints, PersonTable
from veilmark.veil.sliced import GID, Sliced, parse_fingerprints


@dataclass(frozen=True, eq=False)
class Part:
    """A table of sensitive values: its rows stand in the order of their groups, from `starts[g]` to `starts[g + 1]`."""

    starts: np.ndarray
    columns: Mapping[str, Fingerprints]

    @property
    def groups(self) -> int:
        return len(self.starts) - 1

    @property
    def rows(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def group(self) -> np.ndarray:
        """The group of each row."""
        return np.repeat(np.arange(self.groups), np.diff(self.starts))

    @classmethod
    def of(cls, group: np.ndarray, groups: int, columns: Mapping[str, Fingerprints]) -> Part:
        order = np.argsort(group, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(group, minlength=groups)))
        return cls(starts, {name: column.take(order) for name, column in columns.items()})


@dataclass(frozen=True, eq=False)
class View:
    """`codes[i]` are the classes' labels of quasi-identifier i, `links[0]` the classes of the links (in their order),
    `links[1 + j]` their groups of part j, `count` how many rows they stand for.

    `of_persons` tells whether a row is a person, with all of their values, or one record of a person.
    """

    quasi: Mapping[str, Labels]
    codes: np.ndarray
    links: np.ndarray
    count: np.ndarray
    parts: tuple[Part, ...]
    meanings: Mapping[str, Meaning]
    of_persons: bool

    def __repr__(self) -> str:
        kind = "persons" if self.of_persons else "records"
        return f"View({self.rows:,} {kind} in {len(self):,} classes; {', '.join(self.meanings)} in {len(self.parts)} parts)"

    def __len__(self) -> int:
        return self.codes.shape[1]

    @cached_property
    def size(self) -> np.ndarray:
        """The rows of each class."""
        return np.bincount(self.links[0], weights=self.count, minlength=len(self)).astype(np.int64)

    @property
    def rows(self) -> int:
        return int(self.count.sum())

    @property
    def linked(self) -> bool:
        """Whether a class tells anything of sensitive values."""
        return any(part.groups > 1 for part in self.parts)

    def part_of(self, attribute: str) -> int:
        return next(j for j, part in enumerate(self.parts) if attribute in part.columns)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What the attacks could not read."""
        labels = dict(self.quasi) | {name: meaning.labels for name, meaning in self.meanings.items()}
        return tuple(
            f"{int(of.unread.sum()):,} labels of '{name}' are neither values of the source nor labels of its "
            "hierarchy. The attacks ignore them."
            for name, of in labels.items()
            if of.unread.any()
        )


def view_of_table(columns: Mapping[str, Fingerprints], persons: PersonTable, levels: Mapping[str, Levels]) -> View:
    """A release in one table, whose columns hold one text a row."""
    quasi = {name: columns[name] for name in persons.quasi if name in columns}
    sensitive = {name: columns[name] for name in persons.sensitive if name in columns}
    read = {
        name: column
        if persons.sensitive[name].single
        else _split(column, Labels.read(column.domain.text, persons.sensitive[name].domain, levels[name]))
        for name, column in sensitive.items()
    }
    records = persons.records > len(persons) and all(column.single for column in read.values())
    codes, class_of = _classes(quasi, len(next(iter(columns.values()))))
    groups = codes.shape[1]
    links = np.tile(np.arange(groups), (2, 1))
    count = np.bincount(class_of, minlength=groups)
    return _view(quasi, codes, links, count, (Part.of(class_of, groups, read),), persons, levels, not records)


def view_of_sliced(release: Sliced, persons: PersonTable, levels: Mapping[str, Levels]) -> View:
    """A release in several tables."""
    quasi = {name: coded(release.quasi[name], name) for name in persons.quasi if name in release.quasi.column_names}
    codes, class_of = _classes(quasi, len(release.quasi))
    parts, links = [], [class_of]
    for i, table in enumerate(release.sensitive, 1):
        names = [name for name in table.column_names if name in persons.sensitive]
        columns = {name: _items(table[name]) for name in names}
        leads, group, groups = _groups(release.quasi, table, i)
        parts.append(Part.of(group, groups, columns))
        links.append(leads)
    keys, bound = pack(links, [codes.shape[1], *(part.groups for part in parts)])
    distinct, which = number(keys, bound)
    first = np.zeros(len(distinct), dtype=np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]
    count = np.bincount(which, minlength=len(distinct))
    return _view(quasi, codes, np.array(links)[:, first], count, tuple(parts), persons, levels, True)


def view_of_persons(persons: PersonTable, levels: Mapping[str, Levels]) -> View:
    """The source itself, one row a person, as if it were released."""
    codes, class_of = _classes(persons.quasi, len(persons))
    links = np.tile(np.arange(codes.shape[1]), (2, 1))
    count = np.bincount(class_of, minlength=codes.shape[1])
    part = Part.of(class_of, codes.shape[1], persons.sensitive)
    return _view(persons.quasi, codes, links, count, (part,), persons, levels, True)


def _view(
    quasi: Mapping[str, Fingerprints],
    codes: np.ndarray,
    links: np.ndarray,
    count: np.ndarray,
    parts: tuple[Part, ...],
    persons: PersonTable,
    levels: Mapping[str, Levels],
    of_persons: bool,
) -> View:
    labels = {
        name: Labels.read(column.domain.text, persons.quasi[name].domain, levels[name])
        for name, column in quasi.items()
    }
    published = {name: column for part in parts for name, column in part.columns.items()}
    meanings = {
        name: Meaning.of(Labels.read(published[name].domain.text, column.domain, levels[name]), column, levels[name])
        for name, column in persons.sensitive.items()
        if name in published
    }
    return View(labels, codes, links, count, parts, meanings, of_persons)


def _classes(quasi: Mapping[str, Fingerprints], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The labels of each class, and the class of each row."""
    if not quasi:
        return np.zeros((0, min(rows, 1)), dtype=np.int32), np.zeros(rows, dtype=np.int64)
    columns = list(quasi.values())
    distinct, class_of = number(*pack([c.values for c in columns], [len(c.domain) for c in columns]))
    first = np.zeros(len(distinct), dtype=np.int64)
    first[class_of[::-1]] = np.arange(rows)[::-1]
    return np.array([c.values[first] for c in columns], dtype=np.int32), class_of


def _groups(quasi: pa.Table, table: pa.Table, i: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The group that each row of the quasi-identifiers leads to, the group of each sensitive row, and how many."""
    name = f"{GID}_{i}"
    if name not in quasi.column_names:
        return np.zeros(len(quasi), dtype=np.int64), np.zeros(len(table), dtype=np.int64), 1
    both = [as_text(_whole(column)) for column in (quasi[name], table[GID])]
    known = both[1].dictionary_encode()
    leads = pc.index_in(both[0], value_set=known.dictionary)
    if leads.null_count or known.null_count:
        raise DataError(
            f"Column '{name}' of the release's quasi-identifiers refers to a group that is not in sensitive table "
            f"{i}. The tables are not from the same release, or one is incomplete. Write the release again."
        )
    return leads.to_numpy().astype(np.int64), known.indices.to_numpy().astype(np.int64), len(known.dictionary)


def coded(column: pa.ChunkedArray | pa.Array, name: str) -> Fingerprints:
    """A column's values by its own domain."""
    encoded = as_text(_whole(column)).dictionary_encode(null_encoding="encode")
    domain = Domain.of(encoded.dictionary, name)
    return Fingerprints.of_codes(domain, domain.codes_of(encoded.dictionary)[encoded.indices.to_numpy()])


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _items(column: pa.ChunkedArray | pa.Array) -> Fingerprints:
    """A column of fingerprints, as one of a release in several tables is written."""
    starts, labels = parse_fingerprints(as_text(_whole(column)))
    items = coded(labels, "")
    return Fingerprints(items.domain, starts, items.values)


def _split(column: Fingerprints, known: Labels) -> Fingerprints:
    """Texts that are no labels as they stand but fingerprints (`B|D|D`), each as its items."""
    texts = column.domain.text.cast(pa.string())
    joint = pc.and_(pa.array(known.unread), pc.match_substring(texts, "|").fill_null(False))
    if not pc.any(joint).as_py():
        return column
    plain = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), "|", "\\|")
    return _items(pc.if_else(joint, texts, plain)).take(column.values)

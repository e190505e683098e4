"""Small person tables at random, and releases read back as plain Python, for the methods that publish several tables."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from veilmark.hierarchy import Levels, parse_spec, resolve
from veilmark.tables.domain import Domain
from veilmark.tables.persons import Fingerprints, PersonTable
from veilmark.veil.sliced import Sliced, parse_fingerprints

Value = str | None

CITY = {"bonn": "west", "koeln": "west", "ulm": "south", "graz": "south", "linz": "south"}
CODES = {"A1": "A", "A2": "A", "B1": "B", "B2": "B", "B": "B", "C1": "C"}
"""A code may be called as its chapter is."""


@dataclass(frozen=True)
class People:
    """Rows as lists of values, the table made of them, and the hierarchies of all attributes."""

    quasi: Mapping[str, Sequence[Value]]
    sensitive: Mapping[str, Sequence[Sequence[Value]]]
    persons: PersonTable
    levels: Mapping[str, Levels]

    def __len__(self) -> int:
        return len(self.persons)


def people(
    quasi: Mapping[str, Sequence[Value]],
    sensitive: Mapping[str, Sequence[Sequence[Value]]],
    specs: Mapping[str, object] | None = None,
) -> People:
    """A person table out of plain lists; `specs` are the hierarchies that are given."""
    columns = {name: _fingerprints([[value] for value in of]) for name, of in quasi.items()}
    columns |= {name: _fingerprints(of) for name, of in sensitive.items()}
    levels = {
        name: resolve(parse_spec((specs or {})[name]) if name in (specs or {}) else None, column.domain, name)
        for name, column in columns.items()
    }
    table = PersonTable(
        {name: columns[name] for name in quasi},
        {name: columns[name] for name in sensitive},
        sum(len(of) for of in next(iter(sensitive.values()), [])),
    )
    return People(quasi, sensitive, table, levels)


def _fingerprints(values: Sequence[Sequence[Value]]) -> Fingerprints:
    domain = Domain.of(pa.array([v for of in values for v in of], pa.string()).unique())
    code = {text: i for i, text in enumerate(domain.text.to_pylist())}
    codes = [sorted(code[v] for v in of) for of in values]
    starts = np.cumsum([0, *map(len, codes)])
    return Fingerprints(domain, starts, np.array([c for of in codes for c in of], dtype=np.int32))


@st.composite
def some_people(draw: st.DrawFn, least: int = 4, most: int = 40) -> People:
    """Two or three quasi-identifiers; a disease with several codes, and perhaps a level and an income.

    The rows come from a seed, which is far faster than drawing each value.
    """
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    count, with_missing, with_sex, with_level, with_income, chapters = draw(
        st.tuples(st.integers(least, most), *[st.booleans()] * 5)
    )

    def column(values: Sequence[Value]) -> list[Value]:
        return rng.choices(values[: rng.randint(1, len(values))], k=count)

    quasi = {"age": column([*([None] if with_missing else []), *map(str, range(20, 29))])}
    quasi["city"] = column(list(CITY))
    if with_sex:
        quasi["sex"] = column(["f", "m"])
    longest = rng.randint(1, 4)
    sensitive: dict[str, list[list[Value]]] = {
        "disease": [rng.sample(list(CODES), rng.randint(1, longest)) for _ in range(count)]
    }
    if with_level:
        sensitive["level"] = [[v] for v in column(["low", None, "mid", "high"])]
    if with_income:
        sensitive["income"] = [[v] for v in column([None, *map(str, range(-3, 20))])]
    have = {v for of in sensitive["disease"] for v in of if v is not None}
    specs: dict[str, object] = {"city": {"levels": [{c: CITY[c] for c in quasi["city"] if c is not None}]}}
    if chapters:
        specs["disease"] = {"levels": [{c: CODES[c] for c in have}]}
    return people(quasi, sensitive, specs)


def fingerprints(release: Sliced, table: int = 0) -> list[tuple[int, tuple[tuple[Value, ...], ...]]]:
    """The gid and the fingerprints of each row of a sensitive table."""
    rows = release.sensitive[table]
    columns = []
    for name in rows.column_names[1:]:
        starts, labels = parse_fingerprints(rows.column(name))
        plain = labels.to_pylist()
        columns.append([tuple(plain[a:b]) for a, b in pairwise(starts)])
    return list(zip(rows.column("gid").to_pylist(), zip(*columns, strict=True), strict=True))


def by_gid(release: Sliced, table: int = 0) -> dict[int, list[tuple[tuple[Value, ...], ...]]]:
    """The fingerprints of each class or bucket."""
    found = defaultdict(list)
    for gid, sets in fingerprints(release, table):
        found[gid].append(sets)
    return dict(found)


def rows_by_gid(release: Sliced) -> dict[int, list[tuple[Value, ...]]]:
    """The quasi-identifiers of each class or bucket, by gid_1."""
    found = defaultdict(list)
    names = [name for name in release.quasi.column_names if not name.startswith("gid_")]
    for row in release.quasi.to_pylist():
        found[row["gid_1"]].append(tuple(row[name] for name in names))
    return dict(found)

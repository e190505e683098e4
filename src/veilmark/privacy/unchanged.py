"""Columns that are published unchanged: how many records become unique by one of them beside the quasi-identifiers.

k looks at quasi-identifiers alone. Whoever knows a value of another column too, such as an amount, may pick out a record
from its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from veilmark.readable import Grid, share

COUNTED = 1_000_000
"""Tables with at most so many records are counted. Of larger ones a sample is looked at."""

SAMPLED = COUNTED // 4
"""About so many records are in a sample."""

SAMPLED_CLASSES = 1_000
"""Whole classes are sampled where about so many of them or more are in the sample: a hash a record is then enough."""

TOGETHER = 8
"""So many columns are counted in one reading of the table, whose groups must be held."""

Ask = Callable[[str], Sequence[Any]]
"""Runs a statement and gives its only row."""


@dataclass(frozen=True)
class Unchanged:
    """How many of `records` are `unique` by the quasi-identifiers and one more column, of which `already` are unique without
    it; where it is an estimate, `sample` says from how many records. `sensitive`: whether it is a sensitive attribute."""

    HEADINGS: ClassVar = ("unique with it", "more than without it", "share unique")

    unique: int
    records: int
    sample: int | None = None
    already: int = 0
    sensitive: bool = False

    @property
    def exact(self) -> bool:
        return self.sample is None

    @property
    def more(self) -> int:
        """How many records become unique by this column."""
        return max(self.unique - self.already, 0)

    @property
    def share(self) -> float:
        return self.unique / self.records if self.records else 0.0

    @property
    def figures(self) -> tuple[str, str, str]:
        """What a table shows of the column, under `HEADINGS`."""
        about = "" if self.exact else "about "
        return f"{about}{self.unique:,}", f"{about}{self.more:,}", share(self.share)

    def to_dict(self) -> dict[str, Any]:
        counts = {"unique": self.unique, "already": self.already, "more": self.more}
        return {**counts, "share": self.share, "exact": self.exact, "sample": self.sample}


def unchanged_grid(found: Mapping[str, Unchanged]) -> Grid:
    """The columns that make records unique."""
    rows = [(name, *of.figures) for name, of in found.items() if of.more]
    return Grid(("column published unchanged", *Unchanged.HEADINGS), rows)


def worst_first(found: Mapping[str, Unchanged]) -> dict[str, Unchanged]:
    """The columns, the one that makes most records unique first."""
    return dict(sorted(found.items(), key=lambda pair: -pair[1].unique))


def count_unique(
    ask: Ask,
    table: str,
    keys: Sequence[str],
    columns: Mapping[str, str],
    records: int,
    hash_of: Callable[[Sequence[str]], str],
    already: int = 0,
    classes: int = 0,
) -> dict[str, Unchanged]:
    """For each column, the records that are unique by it and the keys, all SQL expressions on a table of so many records
    in so many classes, of which `already` are unique by the keys.

    `hash_of` is an expression for a hash of others, a whole number of 0 or more. Of a large table those classes are looked
    at whose hash is a multiple of `every`, or where there are few classes, those groups of a class and a value. A group is
    in the sample with all its records or not at all, so that a record that is unique there is unique in the table, and
    `every` times as many are expected there.
    """
    found: dict[str, Unchanged] = {}
    every = 1 if records <= COUNTED else -(-records // SAMPLED)
    names = list(columns)
    for first in range(0, len(names), TOGETHER):
        chosen = names[first : first + TOGETHER]
        wanted = [columns[name] for name in chosen]
        if every == 1:
            statement = _counted(table, keys, wanted)
        elif classes >= every * SAMPLED_CLASSES:
            statement = _counted(*_sampled_classes(table, hash_of(keys), wanted, every))
        else:
            statement = _sampled(table, [hash_of([*keys, column]) for column in wanted], every)
        row = ask(statement)
        for name, unique, looked_at in zip(chosen, row[::2], row[1::2], strict=True):
            estimate = min(max(int(unique) * every, already), records)
            sample = None if every == 1 else int(looked_at or 0)
            found[name] = Unchanged(estimate, records, sample, already)
    return found


def _counted(table: str, keys: Sequence[str], columns: Sequence[str]) -> str:
    """How many groups of the keys and each column have one record, and how many records there are."""
    named = {f"k{i}": key for i, key in enumerate(keys)} | {f"u{i}": column for i, column in enumerate(columns)}
    listed = ", ".join(f"{expression} AS {name}" for name, expression in named.items())
    sets = ", ".join(f"({', '.join([*(f'k{j}' for j in range(len(keys))), f'u{i}'])})" for i in range(len(columns)))
    which = ", ".join(f"GROUPING(u{i}) AS without_u{i}" for i in range(len(columns)))
    counts = ", ".join(
        f"count(*) FILTER (WHERE n = 1 AND without_u{i} = 0) AS n{i}, sum(n) FILTER (WHERE without_u{i} = 0) AS m{i}"
        for i in range(len(columns))
    )
    groups = f"SELECT {which}, count(*) AS n FROM (SELECT {listed} FROM {table}) AS r GROUP BY GROUPING SETS ({sets})"
    return f"SELECT {counts} FROM ({groups}) AS g"


def _sampled_classes(
    table: str, class_hash: str, columns: Sequence[str], every: int
) -> tuple[str, list[str], list[str]]:
    """A sample of whole classes as `_counted` takes it: the table, its keys and its columns."""
    names = [f"c{i}" for i in range(len(columns))]
    listed = ", ".join(f"{expression} AS {name}" for name, expression in zip(names, columns, strict=True))
    hashed = f"(SELECT {class_hash} AS h, {listed} FROM {table}) AS a"
    return f"(SELECT * FROM {hashed} WHERE h % {every} = 0) AS s", ["h"], names


def _sampled(table: str, hashes: Sequence[str], every: int) -> str:
    """The same of the groups in a sample, which are told by their hashes, and how many records are in these."""
    places = range(len(hashes))
    hashed = ", ".join(f"{of} AS h{i}" for i, of in enumerate(hashes))
    kept = ", ".join(f"CASE WHEN h{i} % {every} = 0 THEN h{i} END AS s{i}" for i in places)
    some = " OR ".join(f"h{i} % {every} = 0" for i in places)
    sample = f"SELECT {kept} FROM (SELECT {hashed} FROM {table}) AS r WHERE {some}"
    listed, sets = ", ".join(f"s{i}" for i in places), ", ".join(f"(s{i})" for i in places)
    groups = f"SELECT {listed}, count(*) AS n FROM ({sample}) AS s GROUP BY GROUPING SETS ({sets})"
    # In the groups of another column, s{i} is missing.
    counts = ", ".join(
        f"count(*) FILTER (WHERE n = 1 AND s{i} IS NOT NULL) AS n{i}, sum(n) FILTER (WHERE s{i} IS NOT NULL) AS m{i}"
        for i in places
    )
    return f"SELECT {counts} FROM ({groups}) AS g"

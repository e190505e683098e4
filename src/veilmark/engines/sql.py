"""Every SQL statement that veilmark runs, in the subset that DuckDB, Spark and PostgreSQL share.

Differences between engines are the constants of a `Dialect`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """How one engine spells things."""

    quote: str = '"'
    nan: str = "'NaN'"

    def name(self, identifier: str) -> str:
        """A column or table name, quoted."""
        return self.quote + identifier.replace(self.quote, self.quote * 2) + self.quote

    def clean(self, column: str, kind: str) -> str:
        """A column with empty texts and not-a-numbers as missing."""
        return self._without_empty(self.name(column), kind)

    def clean_of(self, table: str, column: str, kind: str) -> str:
        """The same of a column of a named table."""
        return self._without_empty(f"{table}.{self.name(column)}", kind)

    def _without_empty(self, expression: str, kind: str) -> str:
        empty = {"text": "''", "float": self.nan}.get(kind)
        return f"NULLIF({expression}, {empty})" if empty else expression


def literal(text: str) -> str:
    """A text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


# Columns are called c0, c1, … in results, in the order they were asked for, so that no name of the data can clash.


def group(dialect: Dialect, table: str, columns: Mapping[str, str]) -> str:
    """Distinct combinations of columns (name: kind), and how many records each has."""
    by = _positions(len(columns))
    return f"SELECT {_cleaned(dialect, columns)}count(*) AS records FROM {table}" + (f" GROUP BY {by}" if by else "")


def distinct(dialect: Dialect, table: str, column: str) -> str:
    """The distinct values of a column."""
    return f"SELECT DISTINCT {dialect.name(column)} AS c0 FROM {table}"


def visits(dialect: Dialect, table: str, columns: Mapping[str, str], person: str) -> str:
    """Distinct combinations of columns and person (`who`), and how many records (`n`) each has."""
    chosen = f"{_cleaned(dialect, columns)}{dialect.name(person)} AS who, count(*) AS n"
    return f"SELECT {chosen} FROM {table} GROUP BY {_positions(len(columns) + 1)}"


def wander(visits: str, quasi: int) -> str:
    """The persons of a table of visits who have several combinations of its first `quasi` columns."""
    pairs = f"SELECT DISTINCT {_listed('', range(quasi))}who FROM {visits}"
    return f"SELECT who FROM ({pairs}) AS pairs GROUP BY who HAVING count(*) > 1"


def group_visits(visits: str, wander: str, columns: Sequence[int]) -> str:
    """Distinct combinations of some columns of visits, their records, and their persons who do not wander."""
    own = f"SELECT {_listed('', columns)}who, sum(n) AS n FROM {visits} GROUP BY {_positions(len(columns) + 1)}"
    by = _positions(len(columns))
    return (
        f"SELECT {_listed('own.', columns)}sum(own.n) AS records, count(*) FILTER (WHERE w.who IS NULL) AS settled "
        f"FROM ({own}) AS own LEFT JOIN {wander} AS w ON own.who = w.who" + (f" GROUP BY {by}" if by else "")
    )


def wanderers(visits: str, wander: str, columns: Sequence[int]) -> str:
    """The distinct combinations of some columns of visits, with the person, of those who wander."""
    return f"SELECT DISTINCT {_listed('v.', columns)}v.who FROM {visits} AS v JOIN {wander} AS w ON v.who = w.who"


def _cleaned(dialect: Dialect, columns: Mapping[str, str]) -> str:
    return "".join(f"{dialect.clean(name, kind)} AS c{i}, " for i, (name, kind) in enumerate(columns.items()))


def _listed(prefix: str, columns: Iterable[int]) -> str:
    return "".join(f"{prefix}c{i}, " for i in columns)


def _positions(count: int) -> str:
    return ", ".join(str(i + 1) for i in range(count))


def count_missing(dialect: Dialect, table: str, column: str, kind: str) -> str:
    """How many records lack a value of the column."""
    return f"SELECT count(*) AS n FROM {table} WHERE {dialect.clean(column, kind)} IS NULL"


def count(table: str) -> str:
    return f"SELECT count(*) AS n FROM {table}"


def head(table: str, rows: int) -> str:
    return f"SELECT * FROM {table} LIMIT {rows}"


def recode(
    dialect: Dialect, table: str, columns: Mapping[str, str], maps: Mapping[str, str], last: str, local: bool
) -> str:
    """Rows with some columns recoded, less the suppressed ones.

    `columns` are those to be published (name: kind). `maps` names, for each recoded column, a table of `value`, `label`
    and `share`; the shares of a row's values add up to its key in the table `last`: of the suppressed classes, or, where
    the recoding is `local`, of the classes kept and their labels (`label0`, `label1`, … in the order of `maps`).
    """
    joins = "".join(
        f" JOIN {name} ON {dialect.clean_of('s', column, kinds)} IS NOT DISTINCT FROM {name}.value"
        for (column, name), kinds in zip(maps.items(), (columns[c] for c in maps), strict=True)
    )
    key = " + ".join(f"{name}.share" for name in maps.values()) or "0"
    labels = {column: f"{last}.label{i}" if local else f"{name}.label" for i, (column, name) in enumerate(maps.items())}
    chosen = [f"{labels.get(c, f's.{dialect.name(c)}')} AS {dialect.name(c)}" for c in columns]
    kept = f" JOIN {last} ON {last}.key = {key}" if local else f" LEFT JOIN {last} ON {last}.key = {key}"
    where = "" if local else f" WHERE {last}.key IS NULL"
    return f"SELECT {', '.join(chosen)} FROM {table} AS s{joins}{kept}{where}"

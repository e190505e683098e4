"""Every SQL statement that veilmark runs, in the subset that DuckDB, Spark and PostgreSQL share.

Differences between engines are the constants of a `Dialect`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def group(dialect: Dialect, table: str, columns: Mapping[str, str]) -> str:
    """Distinct combinations of columns (name: kind) with `records`."""
    chosen = [f"{dialect.clean(name, kind)} AS {dialect.name(name)}" for name, kind in columns.items()]
    by = ", ".join(str(i + 1) for i in range(len(chosen)))
    return f"SELECT {', '.join([*chosen, 'count(*) AS records'])} FROM {table}" + (f" GROUP BY {by}" if by else "")


def distinct(dialect: Dialect, table: str, column: str) -> str:
    """The distinct values of a column."""
    return f"SELECT DISTINCT {dialect.name(column)} FROM {table}"


def group_persons(dialect: Dialect, table: str, columns: Mapping[str, str], quasi: Sequence[str], person: str) -> str:
    """Distinct combinations with `records` and `settled`, the persons who have no second `quasi`."""
    names = "".join(f"visits.{dialect.name(name)}, " for name in columns)
    by = f" GROUP BY {names[:-2]}" if columns else ""
    return (
        f"WITH {_visits(dialect, table, columns, person)}, {_wander(dialect, quasi)} "
        f"SELECT {names}sum(visits.n) AS records, count(*) FILTER (WHERE wander.who IS NULL) AS settled "
        f"FROM visits LEFT JOIN wander ON visits.who = wander.who{by}"
    )


def wanderers(dialect: Dialect, table: str, columns: Mapping[str, str], quasi: Sequence[str], person: str) -> str:
    """The distinct combinations, with `person`, of those who have several `quasi`."""
    names = "".join(f"visits.{dialect.name(name)}, " for name in columns)
    return (
        f"WITH {_visits(dialect, table, columns, person)}, {_wander(dialect, quasi)} "
        f"SELECT {names}visits.who AS person FROM visits JOIN wander ON visits.who = wander.who"
    )


def _visits(dialect: Dialect, table: str, columns: Mapping[str, str], person: str) -> str:
    chosen = [f"{dialect.clean(name, kind)} AS {dialect.name(name)}" for name, kind in columns.items()]
    by = ", ".join(str(i + 1) for i in range(len(chosen) + 1))
    listed = ", ".join([*chosen, f"{dialect.name(person)} AS who"])
    return f"visits AS (SELECT {listed}, count(*) AS n FROM {table} GROUP BY {by})"


def _wander(dialect: Dialect, quasi: Sequence[str]) -> str:
    names = "".join(f"{dialect.name(name)}, " for name in quasi)
    pairs = f"SELECT DISTINCT {names}who FROM visits"
    return f"wander AS (SELECT who FROM ({pairs}) AS pairs GROUP BY who HAVING count(*) > 1)"


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
    the recoding is `local`, of the classes kept and their labels (a column each).
    """
    joins = "".join(
        f" JOIN {name} ON {dialect.clean_of('s', column, kinds)} IS NOT DISTINCT FROM {name}.value"
        for (column, name), kinds in zip(maps.items(), (columns[c] for c in maps), strict=True)
    )
    key = " + ".join(f"{name}.share" for name in maps.values()) or "0"
    chosen = [
        f"{_label(dialect, column, maps.get(column), last, local)} AS {dialect.name(column)}" for column in columns
    ]
    kept = f" JOIN {last} ON {last}.key = {key}" if local else f" LEFT JOIN {last} ON {last}.key = {key}"
    where = "" if local else f" WHERE {last}.key IS NULL"
    return f"SELECT {', '.join(chosen)} FROM {table} AS s{joins}{kept}{where}"


def _label(dialect: Dialect, column: str, name: str | None, last: str, local: bool) -> str:
    if name is None:
        return f"s.{dialect.name(column)}"
    return f"{last}.{dialect.name(column)}" if local else f"{name}.label"

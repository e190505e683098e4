"""Every SQL statement that veilmark runs, in the subset that DuckDB, Spark and PostgreSQL share.

Differences between engines are the constants of a `Dialect`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veilmark.engines.base import Table


@dataclass(frozen=True)
class Dialect:
    """How one engine spells things."""

    quote: str = '"'
    text_type: str = "VARCHAR"
    nan: str = (
        "CAST({} AS VARCHAR) IN ('nan', '-nan')"  # isnan would trust a Parquet file's statistics, which leave it out
    )

    def name(self, identifier: str) -> str:
        """A column or table name, quoted."""
        return self.quote + identifier.replace(self.quote, self.quote * 2) + self.quote

    def clean(self, column: str, kind: str) -> str:
        """A column with empty texts and not-a-numbers as missing."""
        return self._without_empty(self.name(column), kind)

    def clean_of(self, table: str, column: str, kind: str) -> str:
        """The same of a column of a named table."""
        return self._without_empty(f"{table}.{self.name(column)}", kind)

    def same(self, left: str, right: str, kind: str) -> str:
        """Whether two values of a kind are equal, or both missing."""
        return f"{left} IS NOT DISTINCT FROM {right}"

    def pseudonym(self, expression: str, pads: str) -> str:
        """HMAC-SHA256 of a value's text, its first 16 bytes in hexadecimal; `pads` has the key's two blocks."""
        inner = f"sha256({pads}.inner_pad || encode(CAST({expression} AS {self.text_type})))"
        return f"substr(sha256({pads}.outer_pad || unhex({inner})), 1, 32)"

    def hash(self, expressions: Sequence[str]) -> str:
        """A hash of several values, a whole number of 0 or more."""
        return f"hash({', '.join(expressions)})"

    def _without_empty(self, expression: str, kind: str) -> str:
        if kind == "float":
            return f"CASE WHEN {self.nan.format(expression)} THEN NULL ELSE {expression} END"
        return f"NULLIF({expression}, '')" if kind == "text" else expression


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


def declare_missing(
    dialect: Dialect, table: str, columns: Mapping[str, str], codes: Mapping[str, Sequence[str]]
) -> str:
    """All columns (name: kind); the listed values of some become missing."""
    chosen = []
    for column, kind in columns.items():
        name = dialect.name(column)
        numbers = kind in ("number", "float") and codes.get(column)
        test = f"{name} IN ({', '.join(numbers)})" if numbers else is_code(dialect, name, kind, codes.get(column, ()))
        chosen.append(f"CASE WHEN {test} THEN NULL ELSE {name} END AS {name}" if test else name)
    return f"SELECT {', '.join(chosen)} FROM {table}"


def is_code(
    dialect: Dialect, expression: str, kind: str, codes: Sequence[str], quoted: Callable[[str], str] = literal
) -> str | None:
    """Whether a value that is not a number is one of some codes; None where no value of its kind can be.

    A date may be written with or without a time, and is no code that is not a date; a truth value is told by its name.
    """
    if kind == "date":
        moments = [f"CAST('{moment}' AS TIMESTAMP)" for code in codes if (moment := _moment(code)) is not None]
        return f"CAST({expression} AS TIMESTAMP) IN ({', '.join(moments)})" if moments else None
    if kind != "text":
        expression, codes = f"LOWER(CAST({expression} AS {dialect.text_type}))", [code.lower() for code in codes]
    return f"{expression} IN ({', '.join(map(quoted, codes))})" if codes else None


def _moment(code: str) -> str | None:
    """A date, perhaps with a time, as all engines read it."""
    day = re.match(r"(\d{4})-(\d\d?)-(\d\d?)(?!\d)", code)
    if day is None:
        return None
    try:
        moment = datetime.fromisoformat("-".join(part.zfill(2) for part in day.groups()) + code[day.end() :])
    except ValueError:
        return None
    moment = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(" ")


def rows(dialect: Dialect, table: str, columns: Mapping[str, str], person: str, part: tuple[int, int]) -> str:
    """Some columns of the rows of one part of the persons."""
    return f"SELECT {_cleaned(dialect, columns)[:-2]} FROM {table}{_of_part(dialect, person, part)}"


def spool(dialect: Dialect, table: str, columns: Mapping[str, str], path: str) -> str:
    """Some columns copied to a Parquet file under their own names."""
    chosen = ", ".join(f"{dialect.clean(name, kind)} AS {dialect.name(name)}" for name, kind in columns.items())
    return f"COPY (SELECT {chosen} FROM {table}) TO {literal(path)} (FORMAT parquet)"


def person_hashes(dialect: Dialect, table: str, person: str, part: tuple[int, int]) -> str:
    """Two independent hashes of each row's person."""
    name = dialect.name(person)
    both = f"hash({name}) AS h0, hash(CAST({name} AS VARCHAR) || '~') AS h1"
    return f"SELECT {both} FROM {table}{_of_part(dialect, person, part)}"


def _of_part(dialect: Dialect, person: str, part: tuple[int, int]) -> str:
    return f" WHERE hash({dialect.name(person)}) % {part[1]} = {part[0]}" if part[1] > 1 else ""


def persons(
    dialect: Dialect,
    population: str,
    wanted: str,
    quasi: Mapping[str, str],
    identity: Sequence[str],
    source: str | None,
) -> str:
    """The identity (`i0`, `i1`, …, as text) and the `class` of everybody with the wanted values (`v0`, `v1`, …), and whether
    the source, if it has the identity columns, holds them too (`inside`)."""
    values = " AND ".join(
        dialect.same(dialect.clean_of("p", name, kind), f"w.v{i}", kind) for i, (name, kind) in enumerate(quasi.items())
    )
    chosen = ", ".join(f"{text} AS i{i}" for i, text in enumerate(_texts(dialect, "p", identity)))
    joined = f"FROM {population} AS p JOIN {wanted} AS w ON {values}"
    if source is None:
        return f"SELECT {chosen}, w.class, false AS inside {joined}"
    same = " AND ".join(f"s.i{i} = {text}" for i, text in enumerate(_texts(dialect, "p", identity)))
    known = f"LEFT JOIN {_known(dialect, source, identity)} AS s ON {same}"
    return f"SELECT {chosen}, w.class, s.inside IS NOT NULL AS inside {joined} {known}"


def namesakes(dialect: Dialect, population: str, names: str, identity: Sequence[str]) -> str:
    """How many records of the population (`n`) have each identity in the table `names` (`i0`, `i1`, …)."""
    own = ", ".join(f"names.i{i}" for i in range(len(identity)))
    same = " AND ".join(f"names.i{i} = {text}" for i, text in enumerate(_texts(dialect, "p", identity)))
    return f"SELECT {own}, count(*) AS n FROM {population} AS p JOIN {names} AS names ON {same} GROUP BY {own}"


def _known(dialect: Dialect, source: str, identity: Sequence[str]) -> str:
    """The distinct identities in the source."""
    own = ", ".join(f"{text} AS i{i}" for i, text in enumerate(_texts(dialect, "d", identity)))
    return f"(SELECT DISTINCT {own}, true AS inside FROM {source} AS d)"


def _texts(dialect: Dialect, table: str, columns: Sequence[str]) -> list[str]:
    """Columns as text, missing where they are empty."""
    return [f"NULLIF(CAST({table}.{dialect.name(c)} AS {dialect.text_type}), '')" for c in columns]


def recode(
    dialect: Dialect,
    table: str,
    columns: Mapping[str, str],
    maps: Mapping[str, str],
    full: Collection[str],
    keys: Sequence[Sequence[str]],
    last: str,
    local: bool,
    pseudonyms: Collection[str] = (),
    pads: str = "",
) -> str:
    """Rows with some columns recoded, less the suppressed ones.

    `columns` are those to be published (name: kind). `maps` names, for each recoded column, a table of `value`, `label`
    and `share`; columns in `full` lack no value, which is faster to join by. The shares of a row's values in the columns of
    `keys[0]` add up to its `key0` in the table `last`, and so on. That table has the suppressed classes or, where the
    recoding is `local`, the classes kept and their labels (`label0`, `label1`, … in the order of `maps`). `pads` is a
    table of one row for the columns that become pseudonyms.
    """
    joins = ""
    for column, name in maps.items():
        exactly = f"s.{dialect.name(column)} = {name}.value"
        kind = columns[column]
        with_missing = dialect.same(dialect.clean_of("s", column, kind), f"{name}.value", kind)
        joins += f" JOIN {name} ON {exactly if column in full else with_missing}"
    sums = (" + ".join(f"{maps[c]}.share" for c in of) or "0" for of in keys)
    same = " AND ".join(f"{last}.key{i} = {total}" for i, total in enumerate(sums))
    new = {column: f"{last}.label{i}" if local else f"{name}.label" for i, (column, name) in enumerate(maps.items())}
    new |= {c: dialect.pseudonym(dialect.clean_of("s", c, columns[c]), pads) for c in pseudonyms}
    clean = {c: dialect.clean_of("s", c, k) if k == "float" else f"s.{dialect.name(c)}" for c, k in columns.items()}
    chosen = [f"{new.get(c, clean[c])} AS {dialect.name(c)}" for c in columns]
    kept = f" JOIN {last} ON {same}" if local else f" LEFT JOIN {last} ON {same}"
    where = "" if local else f" WHERE {last}.key0 IS NULL"
    padded = f" CROSS JOIN {pads}" if pseudonyms else ""
    return f"SELECT {', '.join(chosen)} FROM {table} AS s{joins}{kept}{padded}{where}"


# Persons of one table in another, told by identity columns.


def recognized(source: Table, population: Table, identity: Sequence[str], quasi: Sequence[str]) -> tuple[str, str]:
    """How many persons the source has; and how many of these are in the population, and with the same quasi-identifiers."""
    dialect = source.engine.dialect
    # Of values that the two hold as different types, nothing is said.
    kinds = {c: source.columns[c] for c in quasi if source.columns[c] == population.columns[c]}
    values = [f"{dialect.clean_of('t', c, kind)} AS c{i}" for i, (c, kind) in enumerate(kinds.items())]
    texts = _identity_texts(dialect, "t", identity)
    own = ", ".join([*texts, *values])
    filled = " AND ".join(f"i{i} IS NOT NULL" for i in range(len(identity)))
    everybody = f"SELECT DISTINCT {', '.join(texts)} FROM {source.name} AS t"
    who = ", ".join(f"s.i{i}" for i in range(len(identity)))
    same_person = " AND ".join(f"s.i{i} = p.i{i}" for i in range(len(identity)))
    same_values = " AND ".join(dialect.same(f"s.c{i}", f"p.c{i}", kind) for i, kind in enumerate(kinds.values()))
    # Named last, the source is what an engine holds in memory, and not the population.
    met = (
        "SELECT count(*) AS there, sum(alike) AS alike FROM "
        f"(SELECT {who}, max(CASE WHEN {same_values or '1 = 1'} THEN 1 ELSE 0 END) AS alike "
        f"FROM (SELECT {own} FROM {population.name} AS t) AS p "
        f"JOIN (SELECT DISTINCT {own} FROM {source.name} AS t) AS s ON {same_person} GROUP BY {who}) AS found"
    )
    return f"SELECT count(*) AS n FROM ({everybody}) AS s WHERE {filled}", met


def shared_identities(population: Table, identity: Sequence[str]) -> str:
    """How many records there are, and how many of them have an identity that others have, too, or none."""
    texts = ", ".join(_identity_texts(population.engine.dialect, "p", identity))
    who = ", ".join(f"i{i}" for i in range(len(identity)))
    lacking = " OR ".join(f"i{i} IS NULL" for i in range(len(identity)))
    return (
        "SELECT sum(n) AS persons, sum(CASE WHEN n > 1 OR lacks > 0 THEN n ELSE 0 END) AS shared FROM "
        f"(SELECT count(*) AS n, max(CASE WHEN {lacking} THEN 1 ELSE 0 END) AS lacks FROM "
        f"(SELECT {texts} FROM {population.name} AS p) AS who GROUP BY {who}) AS counted"
    )


def different_values(table: Table, columns: Sequence[str]) -> str:
    """How many different values some columns have together."""
    texts = ", ".join(_identity_texts(table.engine.dialect, "p", columns))
    return f"SELECT count(*) AS n FROM (SELECT DISTINCT {texts} FROM {table.name} AS p) AS different"


def _identity_texts(dialect: Dialect, alias: str, columns: Sequence[str]) -> list[str]:
    """Columns as text, missing where they are empty, named i0, i1, …"""
    return [
        f"NULLIF(CAST({alias}.{dialect.name(c)} AS {dialect.text_type}), '') AS i{i}" for i, c in enumerate(columns)
    ]

"""Verify: a written release measured anew, by plain SQL on the file, sharing nothing with the code that made it.

The file is read once: its classes are counted, and for each sensitive attribute the records of each class and value. All
limits are measured from these counts. Limits are plain dicts, as `to_dict` of a privacy model gives them.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from veilmark.errors import VeilmarkError
from veilmark.privacy.unchanged import Unchanged, count_unique, worst_first
from veilmark.scratch import Scratch

Limit = Mapping[str, Any]
Worst = float | tuple[float, float] | None

ENTROPY_SLACK = 1e-9
SLACK = 1e-12
"""Logarithms and fractions round: by so much a limit may seem to be missed and yet be met."""

IN_PERSONS = "it counts persons, but the file has no person column"

LINE_BYTES = 2_000_000
"""Longer lines of a CSV file DuckDB reads only if it is told so, since it holds a buffer as long as the longest may be."""
MOST_LINE_BYTES = 1 << 30

LONG = ("order", "paths")
"""What a limit says of how values are compared, and no result repeats."""


@dataclass(frozen=True)
class WorstClass:
    """The worst that a class of the file shows of a limit; None where it could not be measured, or there is no class.

    Of δ-presence it is the smallest and the largest share; of enhanced β, how many times the share that it may have a
    value has. `unchecked` says why the file does not show whether the limit is kept.
    """

    limit: Limit
    worst: Worst = None
    unchecked: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """An infinite c is None: it has no number in JSON."""
        found: Any = list(self.worst) if isinstance(self.worst, tuple) else self.worst
        return {**self.limit, "found": None if found == math.inf else found, "unchecked": self.unchecked}


@dataclass(frozen=True)
class Verified:
    """What the file itself says: its records and classes, the smallest class, and for each sensitive attribute the
    fewest values, the least entropy l and the largest equal-distance t and share of a class; then limit by limit; and for
    the columns that are published unchanged, the records that each makes unique, worst first."""

    records: int
    classes: int
    k: int
    distinct: Mapping[str, int]
    entropy: Mapping[str, float]
    t: Mapping[str, float]
    alpha: Mapping[str, float]
    limits: tuple[WorstClass, ...] = ()
    unchanged: Mapping[str, Unchanged] = field(default_factory=dict)

    @property
    def unchecked(self) -> tuple[WorstClass, ...]:
        """The limits that the file does not show to be kept."""
        return tuple(found for found in self.limits if found.unchecked)

    def to_dict(self) -> dict[str, Any]:
        unchanged = {name: of.to_dict() for name, of in self.unchanged.items()}
        return asdict(self) | {"limits": [found.to_dict() for found in self.limits], "unchanged": unchanged}


def verify(
    path: Path,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    limits: Sequence[Limit] = (),
    population: pa.Table | None = None,
    persons: bool = False,
    threads: int | None = None,
    memory: str | None = None,
    others: Sequence[str] = (),
) -> Verified:
    """Measure a CSV or Parquet file that veilmark wrote, or a folder of Parquet files.

    A limit on t has its `distance`; where that is ordered, the `order` of the values' texts, low to high; where it is
    hierarchical, the `paths`: for each value's text its labels from level 1 to the top, which all values share. A missing
    value is None, and stands last in an order that does not name it. `population` has a column of labels, as the release
    has them, for each quasi-identifier in turn, then how many people have these. `persons`: the limits count persons.
    `others` are further columns that are published unchanged, beside the sensitive attributes.
    """
    with _connection(threads, memory) as connection:
        counts = _Counts(connection, path, quasi, sensitive, others)
        basics = {name: counts.basics(name) for name in sensitive}
        found = tuple(_find(counts, limit, population, persons) for limit in limits)
        unchanged = worst_first(counts.unchanged(others))
    distinct, entropy, t, alpha = ({name: values[i] for name, values in basics.items()} for i in range(4))
    return Verified(counts.records, counts.classes, counts.k, distinct, entropy, t, alpha, found, unchanged)


@contextmanager
def _connection(threads: int | None, memory: str | None) -> Iterator[duckdb.DuckDBPyConnection]:
    with Scratch() as folder:
        settings: dict[str, Any] = {"temp_directory": str(folder), "autoinstall_known_extensions": False}
        settings |= {"threads": threads} if threads else {}
        settings |= {"memory_limit": memory} if memory else {}
        try:
            with duckdb.connect(config=settings) as connection:
                connection.execute("SET enable_progress_bar=false; SET TimeZone='UTC'")
                yield connection
        except (duckdb.Error, csv.Error, UnicodeError) as error:
            raise VeilmarkError(
                f"The written file could not be read back and measured ({type(error).__name__}), so it was not "
                "published. Check that there is enough disk space and memory. If there is, please report this."
            ) from None


def _find(counts: _Counts, limit: Limit, population: pa.Table | None, persons: bool) -> WorstClass:
    """Measure one limit, or say why that cannot be."""
    model, plain = limit["model"], _plain(limit)
    if model == "k":
        return WorstClass(plain, counts.k if counts.classes else None, IN_PERSONS if persons else None)
    if persons and model in ("k_map", "delta_presence", "alpha"):
        return WorstClass(plain, unchecked=IN_PERSONS)
    if model in ("k_map", "delta_presence"):
        if population is None:
            return WorstClass(plain, unchecked="no population is given")
        return WorstClass(plain, counts.linked(model, population))
    if model == "t" and limit["distance"] != "equal":
        return counts.distance(limit)
    if model not in MEASURES:
        return WorstClass(plain, unchecked="the independent check does not know this limit")
    return WorstClass(plain, counts.worst(limit["attribute"], [limit])[0])


def _plain(limit: Limit) -> dict[str, Any]:
    return {key: value for key, value in limit.items() if key not in LONG}


# What is measured of a class: whether the least or the largest of the classes is the worst, and the number itself, out of
# its `size`, the records `n` of each of its values, their `total` in the table and `lift`, a value's share in the class
# over that in the table.

MEASURES = {
    "l": ("min", "count(*)"),
    "entropy_l": ("min", "exp(ln(size) - sum(n * ln(n)) / size)"),
    "t": ("max", "sum(greatest(n * {records} - total * size, 0)) / (size * {records})"),
    "alpha": ("max", "max(n) / size"),
    "recursive_l": ("max", "coalesce(max(n) / nullif(list_sum(list_reverse_sort(list(n))[{l}:]), 0), 'inf')"),
    "beta": ("max", "max(lift) - 1"),
    "enhanced_beta": ("max", "max(lift / (1 + least({beta}, -ln(total / {records}))))"),
    "delta_disclosure": ("max", "max(abs(ln(lift)))"),
}
BASICS = [{"model": "l"}, {"model": "entropy_l"}, {"model": "t"}, {"model": "alpha"}]


class _Counts:
    """The counts of a file, as tables in DuckDB.

    `classes` has the quasi-identifiers as c0, c1, …, the `class` number and its `size`. For each sensitive attribute i,
    `values{i}` has each `value`, its number and its `total`; `joint{i}` the records `n` of each class and value.
    Counts are floating-point numbers, which hold whole ones exactly up to 2⁵³.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path,
        quasi: Sequence[str],
        sensitive: Sequence[str],
        others: Sequence[str] = (),
    ) -> None:
        self.connection = connection
        self.sensitive = list(sensitive)
        self.keys = [f"c{i}" for i in range(len(quasi))]
        named = {f"s{i}": name for i, name in enumerate(sensitive)} | {f"o{i}": name for i, name in enumerate(others)}
        self._read(path, dict(zip(self.keys, quasi, strict=True)) | named)
        sizes = "SELECT coalesce(sum(size), 0), count(*), coalesce(min(size), 0) FROM classes"
        self.records, self.classes, self.k = (int(n) for n in self._row(sizes))
        for i in range(len(sensitive)):
            self._join(i)

    def _row(self, statement: str) -> tuple[Any, ...]:
        row: tuple[Any, ...] = self.connection.execute(statement).fetchall()[0]
        return row

    def _read(self, path: Path, names: Mapping[str, str]) -> None:
        """Open the file and count; a CSV line may be longer than DuckDB reads unless it is told so."""
        try:
            _open(self.connection, path, names, _ends_long(path))
            self._count()
        except duckdb.InvalidInputException:
            if path.suffix == ".parquet" or path.stat().st_size <= LINE_BYTES:
                raise
            _open(self.connection, path, names, long_lines=True)
            self._count()

    def _count(self) -> None:
        """One group-by of the file: its classes, or the values of each sensitive attribute in each class."""
        counted, size = "written", "count(*)"
        if self.sensitive:
            values = [f"s{i}" for i in range(len(self.sensitive))]
            sets = ", ".join(f"({', '.join([*self.keys, value])})" for value in values)
            chosen = ", ".join([*self.keys, *values, *(f"GROUPING({v}) AS without_{v}" for v in values)])
            self.connection.execute(
                f"CREATE TEMP TABLE cells AS SELECT {chosen}, count(*) AS n FROM written GROUP BY GROUPING SETS ({sets})"
            )
            counted, size = "(FROM cells WHERE without_s0 = 0)", "sum(n)"
        keys = "".join(f"{key}, " for key in self.keys)
        by = f"GROUP BY {', '.join(self.keys)}" if self.keys else "HAVING count(*) > 0"
        self.connection.execute(
            "CREATE TEMP TABLE classes AS SELECT *, row_number() OVER () AS class "
            f"FROM (SELECT {keys}{size}::DOUBLE AS size FROM {counted} {by})"
        )

    def _join(self, i: int) -> None:
        """The values of a sensitive attribute, and their joint counts with the classes."""
        mine = f"(SELECT *, s{i} AS value FROM cells WHERE without_s{i} = 0)"
        same = " AND ".join(f"cells.{key} IS NOT DISTINCT FROM classes.{key}" for key in self.keys) or "true"
        self.connection.execute(
            f"CREATE TEMP TABLE values{i} AS SELECT *, row_number() OVER () AS id "
            f"FROM (SELECT value, sum(n)::DOUBLE AS total FROM {mine} GROUP BY value)"
        )
        self.connection.execute(
            f"CREATE TEMP TABLE joint{i} AS "
            f"SELECT class, size, id, total, n::DOUBLE AS n, n::DOUBLE * {self.records} / (size * total) AS lift "
            f"FROM {mine} AS cells JOIN classes ON {same} "
            f"JOIN values{i} AS every ON cells.value IS NOT DISTINCT FROM every.value"
        )

    def unchanged(self, others: Sequence[str]) -> dict[str, Unchanged]:
        """The records that are unique by the quasi-identifiers and a column; of sensitive attributes they are counted
        already."""
        alone = {
            name: int(self._row(f"SELECT count(*) FROM joint{i} WHERE n = 1")[0])
            for i, name in enumerate(self.sensitive)
        }
        columns = {name: f"o{i}" for i, name in enumerate(others)}
        already = int(self._row("SELECT count(*) FROM classes WHERE size = 1")[0])
        found = count_unique(self._row, "written", self.keys, columns, self.records, _hash, already, self.classes)
        own = {name: Unchanged(n, self.records, already=already, sensitive=True) for name, n in alone.items()}
        return own | found

    def basics(self, attribute: str) -> list[Any]:
        """Fewest values, least entropy l, largest equal distance and share of a class; 0 where there are no classes."""
        return [found or 0 for found in self.worst(attribute, BASICS)]

    def worst(self, attribute: str, limits: Sequence[Limit]) -> list[Any]:
        """What the worst class has of each of some limits."""
        measures = [MEASURES[limit["model"]] for limit in limits]
        each = ", ".join(
            f"{measure.format(**limit, records=f'{self.records}::DOUBLE')} AS m{i}"
            for i, ((_, measure), limit) in enumerate(zip(measures, limits, strict=True))
        )
        joint = f"joint{self.sensitive.index(attribute)}"
        worst = ", ".join(f"{which}(m{i})" for i, (which, _) in enumerate(measures))
        return list(self._row(f"SELECT {worst} FROM (SELECT {each} FROM {joint} GROUP BY class, size)"))

    def linked(self, model: str, population: pa.Table) -> Worst:
        """The fewest people that a class links to, or the least and largest share of them who are in the file.

        A class links to no fewer than it has, whatever the population says.
        """
        labels = [f"l{i}" for i in range(len(self.keys))]
        self.connection.register("given", population.rename_columns([*labels, "people"]))
        cleaned = "".join(f"nullif({label}::VARCHAR, '') AS {label}, " for label in labels)
        pairs = zip(self.keys, labels, strict=True)
        same = " AND ".join(f"{key}::VARCHAR IS NOT DISTINCT FROM {label}" for key, label in pairs) or "true"
        worst = "min(people)" if model == "k_map" else "min(size / people), max(size / people)"
        found = self._row(
            f"WITH everyone AS (SELECT {cleaned}sum(people)::DOUBLE AS people FROM given GROUP BY ALL), "
            f"both_ AS (SELECT size, greatest(size, people) AS people FROM classes LEFT JOIN everyone ON {same}) "
            f"SELECT {worst} FROM both_"
        )
        return None if found[0] is None else found[0] if model == "k_map" else (found[0], found[1])

    def distance(self, limit: Limit) -> WorstClass:
        """The largest ordered or hierarchical distance of a class to the table."""
        distance, i = limit["distance"], self.sensitive.index(limit["attribute"])
        given = limit.get("order" if distance == "ordered" else "paths")
        if not given:
            lacks = "order" if distance == "ordered" else "hierarchy"
            return WorstClass(_plain(limit), unchecked=f"the {lacks} of its values is not given")
        if distance == "ordered":
            texts, paths = [*given, *([] if None in given else [None])], None
        else:
            texts, paths = list(given), pa.array(list(given.values()), pa.list_(pa.string()))
        if not self._place(i, texts, paths):
            return WorstClass(_plain(limit), unchecked="the file has values that are not among those given for it")
        if distance == "ordered":
            return WorstClass(_plain(limit), self._row(_ordered(i, self.records))[0])
        height = len(next(iter(given.values())))
        return WorstClass(_plain(limit), self._row(_hierarchical(i, self.records, height))[0])

    def _place(self, i: int, texts: Sequence[str | None], paths: pa.Array | None) -> bool:
        """Make `places`: for each value of the file its place among the texts; whether all have one.

        A number may be written otherwise in the file, as 30.0 for 30.
        """
        table = pa.table({"value": pa.array(texts, pa.string()), "place": range(len(texts))})
        self.connection.register("given", table if paths is None else table.append_column("path", paths))
        self.connection.execute(
            "CREATE OR REPLACE TEMP TABLE places AS "
            "WITH texts AS (SELECT value, max(place) AS place FROM given GROUP BY value), "
            "numbers AS (SELECT TRY_CAST(value AS DOUBLE) AS number, max(place) AS place FROM given GROUP BY number) "
            "SELECT id, total, coalesce(texts.place, numbers.place) AS place "
            f"FROM values{i} AS v LEFT JOIN texts ON v.value::VARCHAR IS NOT DISTINCT FROM texts.value "
            "LEFT JOIN numbers ON TRY_CAST(v.value::VARCHAR AS DOUBLE) = numbers.number"
        )
        return bool(self._row("SELECT count(*) = count(place) FROM places")[0])


def _hash(expressions: Sequence[str]) -> str:
    return f"hash({', '.join(expressions)})"


def _ends_long(path: Path) -> bool:
    """Whether the last line of a CSV file is longer than usual: DuckDB may leave that out without a word."""
    if path.suffix == ".parquet" or path.stat().st_size <= LINE_BYTES:
        return False
    with path.open("rb") as file:
        file.seek(-LINE_BYTES, os.SEEK_END)
        return b"\n" not in file.read()[:-1]


def _open(
    connection: duckdb.DuckDBPyConnection, path: Path, names: Mapping[str, str], long_lines: bool = False
) -> None:
    """Make `written`: the columns that matter, under short names (c0, c1, … and s0, s1, …), empty ones as missing."""
    own = re.sub(r"[\[*?]", r"[\g<0>]", path.as_posix())
    pattern = _text(f"{own}/*.parquet" if path.is_dir() else own)
    reader = f"read_parquet({pattern}, hive_partitioning=false)"
    if path.suffix != ".parquet":
        with path.open(newline="", encoding="utf-8") as file:
            columns = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in next(csv.reader(file), []))
        reader = (
            f"read_csv({pattern}, auto_detect=false, header=true, columns={{{columns}}}, delim=',', quote='\"', "
            "escape='\"', hive_partitioning=false"
            + (f", max_line_size={min(path.stat().st_size, MOST_LINE_BYTES)})" if long_lines else ")")
        )
    kinds = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE FROM {reader}").fetchall()}
    lacking = [name for name in names.values() if name not in kinds]
    if lacking:
        raise VeilmarkError(
            f"The written file lacks the column '{lacking[0]}', so it was not published. Please report this."
        )
    chosen = ", ".join(f"{_cleaned(name, kinds[name])} AS {short}" for short, name in names.items()) or "1 AS nothing"
    connection.execute(f"CREATE OR REPLACE TEMP VIEW written AS SELECT {chosen} FROM {reader}")


def _cleaned(column: str, kind: str) -> str:
    """A column with empty texts and not-a-numbers as missing.

    These are told by their text: DuckDB takes a Parquet file's statistics, which leave them out, to mean there are none.
    """
    name = '"' + column.replace('"', '""') + '"'
    if kind in ("FLOAT", "DOUBLE"):
        return f"if(ends_with({name}::VARCHAR, 'nan'), NULL, {name})"
    return f"nullif({name}::VARCHAR, '')" if kind == "VARCHAR" or kind.startswith("ENUM") else name


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _ordered(i: int, records: int) -> str:
    """The largest Σ|P - Q| / (m - 1), P and Q a class's and the table's cumulative shares at each of the table's m values.

    P stays put from one value of the class to the next (`spot` to `until`) while Q rises and perhaps crosses it, at `x`.
    So the sums on both sides come from the running sums of Q (`area`). All are multiplied by size × records.
    """
    return f"""
        WITH marks AS (SELECT place, sum(total) AS total FROM places GROUP BY place),
        line AS (SELECT place, row_number() OVER up - 1 AS spot, sum(total) OVER up AS q FROM marks
                 WINDOW up AS (ORDER BY place)),
        areas AS (SELECT place, spot, q, sum(q) OVER (ORDER BY spot) - q AS area FROM line),
        ends AS (SELECT count(*) AS m, sum(q) AS area FROM line),
        runs AS (SELECT class, size, spot, areas.area, sum(n) OVER up * {records} AS p,
                 coalesce(lead(spot) OVER up, m) AS until, coalesce(lead(areas.area) OVER up, ends.area) AS until_area,
                 if(row_number() OVER up = 1, areas.area, 0) AS start
                 FROM joint{i} JOIN places USING (id) JOIN areas USING (place), ends
                 WINDOW up AS (PARTITION BY class ORDER BY spot)),
        crossed AS (SELECT runs.*, least(until, greatest(runs.spot, areas.spot)) AS x,
                    least(until_area, greatest(runs.area, areas.area)) AS x_area
                    FROM runs ASOF JOIN areas ON least(p / size, {records}) <= areas.q)
        SELECT max(moved / (size * {records} * greatest(m - 1, 1))) FROM ends,
        (SELECT size, sum(p * (x - spot) - size * (x_area - area) + size * (until_area - x_area) - p * (until - x)
                          + size * start) AS moved FROM crossed GROUP BY class, size)"""


def _hierarchical(i: int, records: int, height: int) -> str:
    """The largest mean of the equal distances at the levels 0 to height - 1.

    What is moved within a node at height h has to leave every level below h: it counts h / height.
    """
    return f"""
        WITH steps AS (SELECT id, total, level, list_prepend(id::VARCHAR, path)[level + 1] AS label
                       FROM places JOIN given USING (place), range({height}) AS levels(level)),
        nodes AS (SELECT id, total, dense_rank() OVER (ORDER BY level, label) AS node FROM steps),
        every AS (SELECT node, sum(total) AS total FROM nodes GROUP BY node),
        here AS (SELECT class, size, node, sum(n) AS n FROM joint{i} JOIN nodes USING (id) GROUP BY ALL)
        SELECT max(moved / (size * {records} * {height})) FROM
        (SELECT size, sum(greatest(n * {records}::DOUBLE - total * size, 0)) AS moved
         FROM here JOIN every USING (node) GROUP BY class, size)"""


# Whether a release keeps its promise.


def check_release(found: Verified, records: int, classes: int, limits: Sequence[Limit]) -> None:
    """The written file holds what was promised: so many records and classes, within the limits. If not, raise.

    A limit that the file does not show to be kept (`found.unchecked`) is passed over; one that was never looked at is not.
    """
    faults = []
    if found.records != records:
        faults.append(f"{found.records:,} records instead of {records:,}")
    if found.classes != classes:
        faults.append(f"{found.classes:,} classes instead of {classes:,}")
    faults += [fault for limit in limits if (fault := _fault(found, _plain(limit)))]
    if faults:
        raise VeilmarkError(
            f"The written file was measured again and does not meet the guarantees ({'; '.join(faults)}), so it "
            "was not published. This should not happen: please report it."
        )


def _fault(found: Verified, limit: Limit) -> str | None:
    """What breaks a limit, where something does."""
    if limit["model"] == "k":
        return f"a class of {found.k}" if found.classes and found.k < limit["k"] else None
    measured = next((f for f in found.limits if f.limit == limit), None)
    if measured is None:
        return f"its limit on {limit.get('attribute', 'the population')} was not measured"
    if measured.worst is None:
        return None
    broken, words = FAULTS[limit["model"]]
    return words.format(measured.worst, **limit) if broken(measured.worst, limit) else None


FAULTS: dict[str, tuple[Callable[[Any, Limit], bool], str]] = {
    "k_map": (lambda worst, limit: worst < limit["k"], "a class that matches only {0:.0f} of the population"),
    "delta_presence": (
        lambda worst, limit: worst[0] < limit["low"] or worst[1] > limit["high"],
        "presence from {0[0]:.4f} to {0[1]:.4f}",
    ),
    "l": (lambda worst, limit: worst < limit["l"], "a class with {0} values of {attribute}"),
    "entropy_l": (
        lambda worst, limit: worst < limit["l"] * (1 - ENTROPY_SLACK),
        "entropy l {0:.4f} for {attribute}",
    ),
    "recursive_l": (lambda worst, limit: worst >= limit["c"], "recursive c {0:.4f} at l {l} for {attribute}"),
    "alpha": (lambda worst, limit: worst > limit["alpha"], "a value of {attribute} with a share of {0:.4f} of a class"),
    "t": (lambda worst, limit: worst > limit["t"] + SLACK, "t {0:.4f} for {attribute}"),
    "beta": (lambda worst, limit: 1 + worst > (1 + limit["beta"]) * (1 + SLACK), "β {0:.4f} for {attribute}"),
    "enhanced_beta": (
        lambda worst, limit: worst > 1 + SLACK,
        "a value of {attribute} {0:.4f} times as frequent in a class as enhanced β allows",
    ),
    "delta_disclosure": (
        lambda worst, limit: worst >= limit["delta"] * (1 + SLACK),
        "δ {0:.4f} for {attribute}",
    ),
}

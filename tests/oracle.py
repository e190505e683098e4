"""Slow, obvious versions of the measures, to test the fast ones against: dicts and loops over rows.

A row is a dict of texts; None is missing. What is said of classes is a dict by the class's quasi-identifier values.
Shares are fractions, so that no oracle rounds before its end.
"""

from __future__ import annotations

import atexit
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from veilmark.engines.duckdb import DuckDB
from veilmark.hierarchy import Levels, parse_spec, resolve
from veilmark.tables.classes import ClassTable

Value = str | None
Row = Mapping[str, Value]
Key = tuple[Value, ...]


# --- classes -----------------------------------------------------------------------------------------------


def classes(rows: Iterable[Row], quasi: Sequence[str]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[q] for q in quasi), []).append(row)
    return found


def sizes(rows: Iterable[Row], quasi: Sequence[str], person: str | None = None) -> dict[Key, int]:
    """Persons of each class where there is a person column, else records."""
    return {key: _count(members, person) for key, members in classes(rows, quasi).items()}


def _count(rows: Sequence[Row], person: str | None) -> int:
    return len(rows) if person is None else len({row[person] for row in rows})


def k(rows: Iterable[Row], quasi: Sequence[str], person: str | None = None) -> int:
    return min(sizes(rows, quasi, person).values())


# --- diversity ---------------------------------------------------------------------------------------------


def shares(rows: Sequence[Row], attribute: str) -> dict[Value, Fraction]:
    return {v: Fraction(n, len(rows)) for v, n in Counter(row[attribute] for row in rows).items()}


def distinct_l(rows: Sequence[Row], quasi: Sequence[str], attribute: str) -> dict[Key, int]:
    return {key: len(shares(members, attribute)) for key, members in classes(rows, quasi).items()}


def entropy_l(rows: Sequence[Row], quasi: Sequence[str], attribute: str) -> dict[Key, float]:
    result = {}
    for key, members in classes(rows, quasi).items():
        entropy = -sum(p * math.log(p) for p in shares(members, attribute).values())
        result[key] = math.exp(entropy)
    return result


def recursive_c(rows: Sequence[Row], quasi: Sequence[str], attribute: str, l: int) -> dict[Key, float]:  # noqa: E741
    result = {}
    for key, members in classes(rows, quasi).items():
        falling = sorted(Counter(row[attribute] for row in members).values(), reverse=True)
        rest = sum(falling[l - 1 :])
        result[key] = falling[0] / rest if rest else math.inf
    return result


def alpha(rows: Sequence[Row], quasi: Sequence[str], attribute: str, person: str | None = None) -> dict[Key, float]:
    result = {}
    for key, members in classes(rows, quasi).items():
        by_value = classes(members, [attribute]).values()
        result[key] = max(_count(having, person) for having in by_value) / _count(members, person)
    return result


def basic_beta(rows: Sequence[Row], quasi: Sequence[str], attribute: str) -> dict[Key, float]:
    table = shares(rows, attribute)
    result = {}
    for key, members in classes(rows, quasi).items():
        here = shares(members, attribute)
        result[key] = float(max((here.get(v, 0) - p) / p for v, p in table.items()))
    return result


def enhanced_beta(rows: Sequence[Row], quasi: Sequence[str], attribute: str) -> dict[Key, float]:
    cap = max((-math.log(p) for p in shares(rows, attribute).values()), default=0.0)
    return {key: min(beta, cap) for key, beta in basic_beta(rows, quasi, attribute).items()}


def delta(rows: Sequence[Row], quasi: Sequence[str], attribute: str) -> dict[Key, float]:
    table = shares(rows, attribute)
    return {
        key: max(abs(math.log(q / table[v])) for v, q in shares(members, attribute).items())
        for key, members in classes(rows, quasi).items()
    }


# --- closeness ---------------------------------------------------------------------------------------------


def t_equal(rows: Sequence[Row], quasi: Sequence[str], attribute: str) -> dict[Key, float]:
    return {key: float(sum(map(abs, gap.values())) / 2) for key, gap in _gaps(rows, quasi, attribute).items()}


def t_ordered(rows: Sequence[Row], quasi: Sequence[str], attribute: str, order: Sequence[Value]) -> dict[Key, float]:
    result = {}
    for key, gap in _gaps(rows, quasi, attribute).items():
        moved, cost = Fraction(0), Fraction(0)
        for value in (v for v in order if v in gap):
            moved += gap[value]
            cost += abs(moved)
        result[key] = float(cost / max(len(gap) - 1, 1))
    return result


def t_hierarchical(rows: Sequence[Row], quasi: Sequence[str], attribute: str, tree: Any) -> dict[Key, float]:
    return {key: float(_flow(tree, gap, height(tree))[1]) for key, gap in _gaps(rows, quasi, attribute).items()}


def _gaps(rows: Sequence[Row], quasi: Sequence[str], attribute: str) -> dict[Key, dict[Value, Fraction]]:
    """For each class and each value of the table, its share in the class less its share in the table."""
    table = shares(rows, attribute)
    here = {key: shares(members, attribute) for key, members in classes(rows, quasi).items()}
    return {key: {v: mine.get(v, Fraction(0)) - p for v, p in table.items()} for key, mine in here.items()}


def tree(values: Iterable[Value], maps: Sequence[Mapping[str, str]]) -> list[Any]:
    """Values under the labels that the maps lead to, as nested lists; a missing value goes up alone.

    The top stands over the last map, which must have two labels or more.
    """
    nodes: dict[Value, Any] = {value: value for value in values}
    for step in maps:
        above: dict[Value, list[Any]] = {}
        for label, node in nodes.items():
            above.setdefault(None if label is None else step[label], []).append(node)
        nodes = dict(above)
    return list(nodes.values())


def height(node: Any) -> int:
    return 1 + height(node[0]) if isinstance(node, list) else 0


def _flow(node: Any, gap: Mapping[Value, Fraction], top: int) -> tuple[Fraction, Fraction]:
    """What the node has too much of, and what it costs to even out all that is under it."""
    if not isinstance(node, list):
        return gap.get(node, Fraction(0)), Fraction(0)
    under = [_flow(child, gap, top) for child in node]
    plus = sum((max(extra, Fraction(0)) for extra, _ in under), Fraction(0))
    minus = sum((max(-extra, Fraction(0)) for extra, _ in under), Fraction(0))
    return plus - minus, sum(cost for _, cost in under) + Fraction(height(node), top) * min(plus, minus)


# --- risk --------------------------------------------------------------------------------------------------


def summary(risk: Mapping[Key, float], size: Mapping[Key, int], threshold: float) -> tuple[float, float, float]:
    """The largest, the mean and the share over the threshold, person by person."""
    each = [risk[key] for key in size for _ in range(size[key])]
    return max(each), sum(each) / len(each), sum(r > threshold for r in each) / len(each)


def prosecutor(size: Mapping[Key, int], threshold: float) -> tuple[float, float, float]:
    return summary({key: 1 / n for key, n in size.items()}, size, threshold)


def journalist(size: Mapping[Key, int], population: Mapping[Key, int], threshold: float) -> tuple[float, float, float]:
    """A population class cannot be smaller than the table's, whatever the population table says."""
    return summary({key: 1 / max(n, population.get(key, 0)) for key, n in size.items()}, size, threshold)


def marketer(size: Mapping[Key, int], population: Mapping[Key, int]) -> float:
    right = sum(n / max(n, population.get(key, 0)) for key, n in size.items())
    return right / sum(size.values())


def benedetti_franconi(f: int, p: float) -> float:
    """By the printed formulas, to 60 digits."""
    with localcontext(prec=60):
        exact = Decimal(p)
        q = 1 - exact
        if not q:
            return 1 / f
        odds, log = exact / q, -exact.ln()
        return float({1: odds * log, 2: odds - odds**2 * log}.get(f, exact / (f - q)))


def expected_inverse(f: int, p: float) -> float:
    """E[1/F | f], F negative binomial, term by term: what Benedetti and Franconi's risk is."""
    term, total, size = p**f, 0.0, f
    while term / size > 1e-17 * total:
        total += term / size
        size += 1
        term *= (1 - p) * (size - 1) / (size - f)
    return total


# --- class tables of rows ----------------------------------------------------------------------------------


def class_table(
    rows: Sequence[Row], quasi: Sequence[str], sensitive: Sequence[str] = (), person: str | None = None
) -> ClassTable:
    """The rows' class table, as the engine makes it."""
    table = pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in rows[0]})
    return ClassTable.build(_engine().open(table), quasi, sensitive, person)


@cache
def _engine() -> DuckDB:
    atexit.register(_close)
    return DuckDB(threads=1)


def _close() -> None:
    _engine().close()
    _engine.cache_clear()


def by_class(table: ClassTable, values: Iterable[Any]) -> dict[Key, Any]:
    """An array over classes in the oracle's form."""
    keys = zip(*(table.texts(c) for c in table.columns), strict=True) if table.columns else [()] * len(table)
    return dict(zip(keys, values, strict=True))


# --- random tables -----------------------------------------------------------------------------------------

SENSITIVE = ("illness", "income")
VALUES: dict[str, list[Value]] = {
    "sex": ["F", "M", None],
    "zip": ["11", "12", "21"],
    "year": ["2", "10", "1990", None],
    "illness": ["cold", "flu", "hiv", None],
    "income": ["9", "10", "20", "35.5", "100", "1000"],
}
COARSER = {
    "sex": {"F": "any", "M": "any", "X": "other"},
    "zip": {"11": "1*", "12": "1*", "21": "2*"},
    "year": {"2": "old", "10": "old", "1990": "new"},
}


@dataclass(frozen=True)
class Case:
    """Rows and the class table that should say the same of them."""

    rows: list[dict[str, Value]]
    quasi: list[str]
    person: str | None
    table: ClassTable


@st.composite
def cases(draw: Callable[..., Any], changed: bool = True) -> Case:
    """Tables with 0..3 quasi-identifiers and perhaps persons, who may wander between classes; some rolled up, with
    fewer quasi-identifiers, or with some classes split off."""
    row = {name: st.sampled_from(values) for name, values in VALUES.items()}
    row["person"] = st.sampled_from([f"p{i}" for i in range(6)])
    rows = draw(st.lists(st.fixed_dictionaries(row), min_size=1, max_size=20))
    quasi = draw(st.lists(st.sampled_from(["sex", "zip", "year"]), unique=True))
    person = draw(st.sampled_from([None, "person"]))
    case = Case(rows, quasi, person, class_table(rows, quasi, SENSITIVE, person))
    return draw(st.sampled_from([_same, _rolled_up, _narrower, _split]))(case, draw) if changed else case


def _same(case: Case, draw: Callable[..., Any]) -> Case:
    return case


def _rolled_up(case: Case, draw: Callable[..., Any]) -> Case:
    node = [draw(st.integers(0, 2)) for _ in case.quasi]
    levels = [coarser(domain, column) for domain, column in zip(case.table.domains, case.quasi, strict=True)]
    rows = [
        row | {c: _coarse(row[c], c, level) for c, level in zip(case.quasi, node, strict=True)} for row in case.rows
    ]
    return replace(case, rows=rows, table=case.table.roll_up(levels, node))


def coarser(domain: Any, column: str) -> Levels:
    return resolve(parse_spec({"levels": [COARSER[column]]}), domain, column)


def _coarse(value: Value, column: str, level: int) -> Value:
    if level == 2:
        return "*"
    return value if level == 0 or value is None else COARSER[column][value]


def _narrower(case: Case, draw: Callable[..., Any]) -> Case:
    quasi = draw(st.lists(st.sampled_from(case.quasi), unique=True)) if case.quasi else []
    return replace(case, quasi=quasi, table=case.table.keep(quasi))


def _split(case: Case, draw: Callable[..., Any]) -> Case:
    chosen = draw(st.lists(st.booleans(), min_size=len(case.table), max_size=len(case.table)))
    kept = by_class(case.table, chosen)
    rows = [row for row in case.rows if kept[tuple(row[q] for q in case.quasi)]]
    return replace(case, rows=rows, table=case.table.take(np.array(chosen, dtype=bool)))

"""A made-up source, releases of it, and random ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from veilmark.hierarchy import resolve
from veilmark.study.study import Study
from veilmark.tables.domain import Domain

RNG = np.random.default_rng(5)
ROWS = 600
AGE = RNG.integers(20, 60, ROWS)
SOURCE = pa.table(
    {
        "name": [f"N{i}" for i in range(ROWS)],
        "age": AGE,
        "zip": RNG.choice(["0123", "0129", "0211", "0219"], ROWS),
        "sex": pa.array(RNG.choice(["F", "M", None], ROWS).tolist(), pa.string()),
        "diagnosis": np.where(RNG.random(ROWS) < (AGE - 15) / 50, "ill", "well"),
        "cost": RNG.integers(1, 9, ROWS),
    }
)
ROLES = {
    "name": "direct",
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
    "zip": {"role": "quasi", "hierarchy": {"mask": 4}},
    "sex": "quasi",
    "diagnosis": "sensitive",
}
STUDY = Study.of(SOURCE, ROLES)
QUASI = ["age", "zip", "sex"]


def levels_of(table, column, roles=ROLES):
    domain = Domain.of(table[column].combine_chunks().unique(), column)
    return domain, resolve(Study.of(table, roles).spec.attributes[column].hierarchy, domain, column)


def generalized(table, node, k=1, drop=("name",)):
    """The table at some levels, without classes below k, in another order."""
    rows = table.to_pylist()
    for column, level in node.items():
        domain, levels = levels_of(table, column)
        to = levels.of_values(level).to_pylist()
        for row in rows:
            row[column] = to[domain.code_of(row[column])]
    sizes = Counter(tuple(row[c] for c in node) for row in rows)
    kept = [row for row in rows if sizes[tuple(row[c] for c in node)] >= k][::-1]
    columns = [c for c in table.column_names if c not in drop]
    kinds = {c: pa.string() if c in node else table.schema.field(c).type for c in columns}
    return pa.table({c: pa.array([row[c] for row in kept], kinds[c]) for c in columns})


VALUES = {"age": ["20", "21", "33", "48", None], "zip": ["0123", "0129", "0211"], "sex": ["F", "M"]}
LABELS = {
    "age": {"20": {"20"}, "20-33": {"20", "21", "33"}, "[21, 48)": {"21", "33"}, "*": set(VALUES["age"]), None: {None}},
    "zip": {"0123": {"0123"}, "012*": {"0123", "0129"}, "{0129, 0211}": {"0129", "0211"}, "what": set()},
    "sex": {"F": {"F"}, "M": {"M"}, "*": {"F", "M"}},
}


def tables(values, least):
    row = st.fixed_dictionaries({c: st.sampled_from(list(v)) for c, v in values.items()})
    return st.lists(row, min_size=least, max_size=30).map(
        lambda rows: pa.table({c: pa.array([r[c] for r in rows], pa.string()) for c in values})
    )

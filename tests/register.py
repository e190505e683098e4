"""A small population and a source drawn from it, as plain rows, and what a study says of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from veilmark.engines.duckdb import DuckDB
from veilmark.hierarchy import parse_spec, resolve
from veilmark.mark.discover import union_domain
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable
from veilmark.tables.domain import Domain

QUASI = ("zip", "sex", "yob")
SPECS = {"zip": {"mask": 3}, "sex": None, "yob": {"intervals": [2, 4, 8]}}
ROLES = {
    "voter": "direct",
    "zip": {"role": "quasi", "hierarchy": SPECS["zip"]},
    "sex": "quasi",
    "yob": {"role": "quasi", "hierarchy": SPECS["yob"]},
    "diagnosis": "sensitive",
    "cost": "other",
}
NUMERIC = [False, False, True]


@dataclass(frozen=True)
class Register:
    """Rows as dicts; members of the population are the source's persons."""

    people: list[dict]
    members: list[dict]

    @property
    def population(self):
        return table(self.people, ["voter", "name", "day", *QUASI])

    @property
    def source(self):
        return table(self.members, ["voter", *QUASI, "diagnosis", "cost"])

    def study(self, **roles):
        return Study.of(self.source, {**ROLES, **roles})


def table(rows, columns):
    return pa.table({c: pa.array([row[c] for row in rows], pa.string()) for c in columns})


def register(seed, people=400, members=120, missing=True, years=24, zips=("011", "012", "017", "025", "031")):
    rng = random.Random(seed)
    weights = [rng.random() + 0.1 for _ in zips]
    everybody = [
        {
            "voter": f"V{i:05d}",
            "name": rng.choice("abcdefgh"),
            "day": str(rng.randrange(1, 29)),
            "zip": rng.choices(zips, weights)[0],
            "sex": rng.choice(["f", "m", None] if missing else ["f", "m"]),
            "yob": str(1950 + min(rng.randrange(years), rng.randrange(years))),
        }
        for i in range(people)
    ]
    chosen = rng.sample(everybody, members)
    return Register(
        everybody, [{**p, "diagnosis": rng.choice("uvwxyz"), "cost": str(rng.randrange(10**6))} for p in chosen]
    )


@cache
def town():
    """A register with candidates for decoys, at k = 3."""
    return register(3, 6_000, 600, years=60, zips=tuple(f"{z:03d}" for z in range(0, 300, 17)))


@cache
def engine():
    return DuckDB(threads=1)


def class_table(rows, columns=QUASI):
    return ClassTable.build(engine().open(rows), list(columns))


def both_domains(classes, people):
    return [union_domain(*pair) for pair in zip(classes.domains, people.domains, strict=True)]


def levels_on(domains):
    specs = [SPECS[c] and parse_spec(SPECS[c]) for c in QUASI]
    return [resolve(spec, domain, c) for spec, domain, c in zip(specs, domains, QUASI, strict=True)]


def labeller(domains, levels, node):
    """A function from a row to its labels, by looking each value up."""
    known = []
    for domain, of, level in zip(domains, levels, node, strict=True):
        known.append(dict(zip(domain.text.to_pylist(), of.of_values(level).to_pylist(), strict=True)))
    return lambda row: tuple(to[row[c]] for to, c in zip(known, QUASI, strict=True))


def domain(*values):
    return Domain.of(pa.array(values, pa.string()))

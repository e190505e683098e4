"""Small random sources and releases of them, both as veilmark holds them and for the oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from attack_oracle import Column, Oracle
from hypothesis import strategies as st

from veilmark.attack.compatible import fitting_classes
from veilmark.attack.view import View, coded, view_of_sliced, view_of_table
from veilmark.hierarchy import Levels
from veilmark.hierarchy.levels import level_of, nest
from veilmark.tables.domain import Domain
from veilmark.tables.persons import Fingerprints, PersonTable
from veilmark.utility.sliced import is_amount
from veilmark.veil.sliced import Sliced, fingerprint_texts

AGES = [str(a) for a in range(20, 32)]
SEXES = ["f", "m"]
TOWNS = ["a1", "a2", "b1", "b2"]
JOBS = ["cook", "nurse", "judge"]
PAYS = ["10", "11", "14", "20", "30", "31", "50"]
CODES = ["401", "402", "490", "724", "V22"]
LEVELS = {
    "age": [{a: f"{int(a) // 4 * 4}-{int(a) // 4 * 4 + 3}" for a in AGES}],
    "sex": [],
    "town": [{t: t[0].upper() for t in TOWNS}],
    "job": [{"cook": "work", "nurse": "work", "judge": "law"}],
    "pay": [],
    "code": [{c: "V" if c[0] == "V" else "G" if c[0] == "7" else "D" for c in CODES}],
}
QUASI, SENSITIVE = ("age", "sex", "town"), ("job", "pay", "code")
NUMBERS = ("age", "pay")


@dataclass
class Case:
    persons: PersonTable
    levels: dict[str, Levels]
    view: View
    oracle: Oracle


def random_people(rng, count):
    """Persons, some of whom lack a value; codes are a set of several."""

    def draw(values, missing=0.1):
        return None if rng.random() < missing else str(rng.choice(values))

    people = []
    for _ in range(count):
        codes = sorted(set(rng.choice(CODES, rng.integers(1, 4)).tolist()))
        quasi = {"age": draw(AGES), "sex": draw(SEXES, 0), "town": draw(TOWNS)}
        people.append({"quasi": quasi, "sensitive": {"job": [draw(JOBS)], "pay": [draw(PAYS)], "code": codes}})
    return people


def person_table(people):
    records = sum(len(p["sensitive"]["code"]) for p in people)
    quasi = {n: fingerprints([[p["quasi"][n]] for p in people]) for n in QUASI}
    return PersonTable(quasi, {n: fingerprints([p["sensitive"][n] for p in people]) for n in SENSITIVE}, records)


def fingerprints(lists):
    items = [v for values in lists for v in values]
    domain = Domain.of(pa.array(sorted({v for v in items if v is not None}) + [None] * (None in items), pa.string()))
    starts = np.append(0, np.cumsum([len(values) for values in lists]))
    codes = domain.codes_of(pa.array(items, pa.string()))
    owner = np.repeat(np.arange(len(lists)), np.diff(starts))
    return Fingerprints(domain, starts, codes[np.lexsort((codes, owner))].astype(np.int32))


def levels_of(name, domain):
    middle = [
        level_of(pa.array([m.get(v) for v in domain.text.to_pylist()], pa.string()), np.arange(len(domain)))
        for m in LEVELS[name]
    ]
    return nest(domain, middle, name)


def label(rng, name, value, depth):
    """A value's label at a random level of up to `depth`."""
    if value is None and depth < 2:
        return None
    level = int(rng.integers(0, depth + 1))
    if level == 1 and LEVELS[name]:
        return None if value is None else LEVELS[name][0][value]
    return "*" if level else value


def release(seed, *, persons, kind, depth, means=False):
    """A case: `kind` is file, linked, or unlinked; labels are up to `depth` levels high, each at random."""
    rng = np.random.default_rng(seed)
    people = random_people(rng, persons)
    table = person_table(people)
    levels = {n: levels_of(n, c.domain) for n, c in [*table.quasi.items(), *table.sensitive.items()]}
    make = _file if kind in ("file", "folded") else _tables
    quasi, parts, view = make(rng, people, table, levels, depth, means, kind)
    columns = {}
    for name in (*QUASI, *SENSITIVE):
        if name in QUASI:
            had, labels = [p["quasi"][name] for p in people], {row[name] for row in quasi}
        else:
            had = [v for p in people for v in p["sensitive"][name]]
            labels = {x for rows in parts for row in rows for x in row.get(name, ())}
        present = {v for v in had if v is not None}
        middle = [{v: m[v] for v in present} for m in LEVELS[name]]
        amount = name in SENSITIVE and is_amount(table.sensitive[name], levels[name])
        columns[name] = Column(had, middle, labels, name in NUMBERS and bool(present), amount)
    oracle = Oracle(people, columns, quasi, parts, kind != "file", list(SENSITIVE))
    return Case(table, levels, view, oracle)


def _quasi_labels(rng, people, depth, means):
    """A row of labels for each person; with `means` the ages of runs of three become their mean."""
    rows = [{n: label(rng, n, p["quasi"][n], depth) for n in QUASI} for p in people]
    if means:
        ages = [p["quasi"]["age"] for p in people]
        for first in range(0, len(rows), 3):
            run = [i for i in range(first, min(first + 3, len(rows))) if ages[i] is not None]
            for i in range(first, min(first + 3, len(rows))):
                there = sum(int(ages[j]) for j in run) / len(run) + 0.25 if run else 0
                rows[i]["age"] = None if ages[i] is None else f"{there:g}"
    return rows


def _file(rng, people, table, levels, depth, means, kind):
    """One table: a row for each code of a person, or, folded, one for each person."""
    rows = []
    for person, labels in zip(people, _quasi_labels(rng, people, depth, means), strict=True):
        own = {n: label(rng, n, person["sensitive"][n][0], min(depth, 1)) for n in ("job", "pay")}
        codes = [label(rng, "code", c, min(depth, 1)) for c in person["sensitive"]["code"]]
        for group in [codes] if kind == "folded" else [[c] for c in codes]:
            rows.append((labels, {n: [v] for n, v in own.items()} | {"code": group}))
    classes = [tuple(labels.values()) for labels, _ in rows]
    numbers = [classes.index(c) for c in classes]
    quasi = [labels | {"groups": [g]} for (labels, _), g in zip(rows, numbers, strict=True)]
    parts = [[own | {"group": g} for (_, own), g in zip(rows, numbers, strict=True)]]
    texts = {n: [labels[n] for labels, _ in rows] for n in QUASI}
    texts |= {n: ["|".join(own[n]) if own[n] != [None] else None for _, own in rows] for n in SENSITIVE}
    columns = {n: coded(pa.array(of, pa.string()), n) for n, of in texts.items()}
    return quasi, parts, view_of_table(columns, table, levels)


def _tables(rng, people, table, levels, depth, means, kind):
    """Two parts, job alone and pay with codes, in groups of some persons each; rows shuffled."""
    count = len(people)
    groups = [rng.integers(0, max(count // 3, 1), count) if kind == "linked" else np.zeros(count, int) for _ in "ab"]
    quasi = [
        labels | {"groups": [int(g[i]) for g in groups]}
        for i, labels in enumerate(_quasi_labels(rng, people, depth, means))
    ]
    parts, tables = [], []
    for names, group in zip((("job",), ("pay", "code")), groups, strict=True):
        rows = []
        for i, person in enumerate(people):
            own = {n: [label(rng, n, v, min(depth, 1)) for v in person["sensitive"][n]] for n in names}
            rows.append(own | {"group": int(group[i])})
        if means and "pay" in names:
            _average(rows)
        rng.shuffle(rows)
        parts.append(rows)
        columns = {n: fingerprint_texts(fingerprints([row[n] for row in rows])) for n in names}
        tables.append(pa.table({"gid": [row["group"] for row in rows]} | columns))
    named = {n: pa.array([row[n] for row in quasi], pa.string()) for n in QUASI}
    linked = {f"gid_{j + 1}": groups[j] for j in range(2)} if kind == "linked" else {}
    published = Sliced(pa.table(named | linked), tuple(tables), (("job",), ("pay", "code")))
    return quasi, parts, view_of_sliced(published, table, levels)


def _average(rows):
    """Pay as the mean of the group, a little off, so that it is no value of the source."""
    for g in {row["group"] for row in rows}:
        mine = [row for row in rows if row["group"] == g and row["pay"] != [None] and row["pay"] != ["*"]]
        for row in mine:
            row["mean"] = f"{sum(float(r['pay'][0]) for r in mine) / len(mine) + 0.25:g}"
    for row in rows:
        row["pay"] = [row.pop("mean")] if "mean" in row else row["pay"]


CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "persons": st.integers(1, 10),
        "kind": st.sampled_from(["file", "folded", "linked", "unlinked"]),
        "depth": st.integers(0, 2),
        "means": st.booleans(),
    }
)


def sets_of(case):
    """The classes that each person fits."""
    values = {name: column.values for name, column in case.persons.quasi.items()}
    return fitting_classes(case.view, values, len(case.persons))


def facts_as_lists(case, facts):
    """For each target the pairs of attribute and value that are known."""
    found = []
    for attributes, values in zip(facts.attribute, facts.value, strict=True):
        pairs = [(facts.names[a], int(v)) for a, v in zip(attributes, values, strict=True) if a >= 0]
        found.append([(n, case.persons.sensitive[n].domain.text[v].as_py()) for n, v in pairs])
    return found

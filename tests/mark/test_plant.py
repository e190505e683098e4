"""Copies: what they hold, row by row, what decoys borrow, and that nothing but the rows tells one file from another."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mark.test_plan import KEY, linked_classes, wide
from register import QUASI, Register, town
from strength import examples
from veilmark.mark.plan import plan_marks
from veilmark.mark.plant import Rows, copy_of, donors
from veilmark.mark.request import ReleaseRequest
from veilmark.privacy.models import DistinctL, KAnonymity, TCloseness
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.workbench import ledger as ledger_verbs
from veilmark.workbench.anonymize import anonymize
from veilmark.workbench.release import release

NAMES = ("ada", "bob", "cyd")


def some_rows(linked, spare, seed=0):
    """As many rows of each class as it has, `spare` suppressed ones in classes that are not released, in any order."""
    rng = np.random.default_rng(seed)
    free = np.flatnonzero(linked.published == 0)
    owner = rng.permutation(np.append(np.repeat(np.arange(len(linked)), linked.published), rng.choice(free, spare)))
    others = pa.table({"cost": np.arange(len(owner)), "note": [f"n{i % 7}" for i in range(len(owner))]})
    others = others.set_column(1, "note", others.column("note").dictionary_encode())
    return Rows(("note", "q1", "cost", "q0"), others, owner)


cases = st.tuples(
    st.integers(0, 1 << 20), st.integers(0, 3), st.integers(0, 4), st.integers(0, 200), st.booleans(), st.booleans()
)


@settings(max_examples=examples(25))
@given(cases)
def test_a_copy_holds_what_is_released_less_the_withheld_and_the_decoys(case):
    seed, decoys, covers, spare, whole, coded = case
    linked = linked_classes(30 if not coded else 300, 60, seed)
    if not decoys + covers + coded:
        return
    given = {"collusion": 1, "covers": 0, "false_accusation": 1e-2} if coded else {"covers": covers}
    marks = plan_marks(linked, wide(NAMES, decoys=decoys, budget=0.9, **given), KEY, whole)
    rows = some_rows(linked, spare, seed)
    texts = linked.texts(np.arange(len(linked)))
    plain = rows.others.to_pylist()
    for i in range(len(NAMES)):
        borrowed = donors(rows, marks, i, KEY)
        copy = copy_of(rows, marks, i, borrowed, KEY)
        wanted = Counter()
        for place, owner in enumerate(rows.owner):
            if linked.published[owner] and owner not in marks.withheld(i):
                wanted[(*texts[owner], plain[place]["cost"], plain[place]["note"])] += 1
        decoy_classes = [c for c, n in zip(marks.decoys[i], marks.sizes[i], strict=True) for _ in range(n)]
        assert len(decoy_classes) == len(borrowed)
        for owner, place in zip(decoy_classes, borrowed, strict=True):
            wanted[(*texts[owner], plain[place]["cost"], plain[place]["note"])] += 1
        assert Counter((r["q0"], r["q1"], r["cost"], r["note"]) for r in copy.to_pylist()) == wanted
        assert copy.schema == pa.schema({"note": "string", "q1": "string", "cost": "int64", "q0": "string"})
        assert copy.schema.metadata is None


@settings(max_examples=examples(40))
@given(st.integers(0, 1 << 20), st.sampled_from([0, 20, 400]))
def test_whom_decoys_borrow_from(seed, spare):
    linked = linked_classes(30, 60, seed)
    marks = plan_marks(linked, wide(NAMES, covers=4), KEY)
    rows = some_rows(linked, spare, seed)
    chosen = [donors(rows, marks, i, KEY) for i in range(len(NAMES))]
    suppressed = linked.published[rows.owner] == 0
    for i, own in enumerate(chosen):
        assert len(set(own)) == len(own)
        share = -(-spare // len(NAMES)) if i < spare % len(NAMES) else spare // len(NAMES)
        not_its_own = share - np.isin(rows.owner[suppressed], marks.decoys[i]).sum()
        assert min(len(own), not_its_own) <= suppressed[own].sum() <= min(len(own), share)
        assert (rows.owner[own] != np.repeat(marks.decoys[i], marks.sizes[i])).all()
        there = own[~suppressed[own]]
        assert np.isin(rows.owner[there], marks.withheld(i)).all()
    kept = [set(own[suppressed[own]]) for own in chosen]
    assert sum(map(len, kept)) == len(set().union(*kept))


def test_the_nearest_rows_are_borrowed():
    linked = linked_classes(30, 60)
    marks = plan_marks(linked, wide(("ada",), decoys=1, covers=0), KEY)
    rows = some_rows(linked, 300)
    own, spare = donors(rows, marks, 0, KEY), np.flatnonzero(linked.published[rows.owner] == 0)
    name = int(marks.decoys[0][0])
    distance = {int(r): linked.unlike(name, rows.owner[[r]])[0] for r in spare if rows.owner[r] != name}
    assert sorted(distance[int(r)] for r in own) == sorted(distance.values())[: len(own)]


def test_rows_serve_again_only_where_there_are_too_few():
    linked = linked_classes(1, 30)
    marks = plan_marks(linked, wide(("ada",), decoys=8, covers=0), KEY)
    rows = some_rows(linked, 3)
    own = donors(rows, marks, 0, KEY)
    assert len(own) == marks.sizes[0].sum() > len(rows.owner)
    assert set(own) == set(range(len(rows.owner)))


def test_a_copy_depends_on_no_other_recipients_decoys():
    """Probabilities rest on it: a leaker must not see, in its own copy, what others have."""
    linked = linked_classes(40, 90)
    rows = some_rows(linked, 200)
    for whole in (False, True):
        marks = plan_marks(linked, wide(NAMES), KEY, whole)
        free = np.setdiff1d(marks.pool, np.concatenate(marks.decoys))
        changed = replace(marks, decoys=(marks.decoys[0], free[:2], free[2:4]))
        one, other = (copy_of(rows, m, 0, donors(rows, m, 0, KEY), KEY) for m in (marks, changed))
        assert one.equals(other)


def test_rows_stand_in_an_order_that_says_nothing_of_decoys():
    """The mean rank of decoys over 400 keys is that of all rows. Chance of failing: below 1e-6."""
    linked = linked_classes(30, 60)
    rows = some_rows(linked, 100)
    ranks, counts = [], 0
    for i in range(400):
        key = i.to_bytes(32, "big")
        marks = plan_marks(linked, wide(("ada",), covers=0), key)
        copy = copy_of(rows, marks, 0, donors(rows, marks, 0, key), key)
        released = {tuple(t) for t in linked.texts(np.flatnonzero(linked.published > 0))}
        planted = [
            tuple(row) not in released for row in zip(copy["q0"].to_pylist(), copy["q1"].to_pylist(), strict=True)
        ]
        ranks.append((np.flatnonzero(planted).mean() + 0.5) / len(planted))
        counts += sum(planted)
    deviation = np.sqrt(1 / 12 / counts)
    assert abs(np.mean(ranks) - 0.5) < 6 * deviation


# Files.


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("plant")


def publish(place, name, form="csv", seed=7, method=None, models=(), study=None, data=None, **marking):
    data = data or town()
    wanted = wide(NAMES, **({"k": 3, "covers": 4} | marking))
    job = ReleaseRequest(data.population, ("voter",), wanted, models, method or Ola(0.2, "dm_star"), seed, form)
    made = release(study or data.study(), job, place / f"{name}.db", place / "key", place / name)
    decoys = ledger_verbs.decoys(place / f"{name}.db", made.release, place / "key")
    return data, made, decoys


def rows_of(path):
    if path.endswith(".parquet"):
        return pq.read_table(path).to_pylist()
    with open(path, newline="") as file:
        return [{k: v or None for k, v in row.items()} for row in csv.DictReader(file)]


def key_of(row):
    return tuple(row[c] for c in QUASI)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("ola", {}),
        ("mondrian", {"method": Mondrian(), "form": "parquet"}),
        ("code", {"collusion": 2, "covers": 0, "false_accusation": 1e-2, "budget": 0.9}),
        ("diverse", {"models": (DistinctL("diagnosis", 3), TCloseness("diagnosis", 0.45)), "risk": None}),
        (
            "mondrian_diverse",
            {"method": Mondrian(), "models": (DistinctL("diagnosis", 2), TCloseness("diagnosis", 0.6))},
        ),
    ],
)
def test_published_copies_row_by_row(place, name, given):
    data, made, decoys = publish(place, name, **given)
    members = {p["voter"] for p in data.members}
    people = {p["voter"]: p for p in data.people}
    everybody = [d["voter"] for rows in decoys.values() for d in rows]
    assert len(set(everybody)) == len(everybody)
    assert set(everybody) <= set(people) - members
    files = {c.name: rows_of(c.file) for c in made.copies}
    classes = {n: Counter(map(key_of, rows)) for n, rows in files.items()}
    base = {k for n in NAMES for k in classes[n]} - {key_of(d) for rows in decoys.values() for d in rows}
    costs = {p["cost"]: p for p in data.members}
    for copy in made.copies:
        own, rows = decoys[copy.name], files[copy.name]
        planted = Counter(map(key_of, own))
        assert (len(rows), len(own), len(planted)) == (copy.records, copy.decoy_records, copy.decoy_classes)
        assert min(classes[copy.name].values()) >= 3
        assert {k: classes[copy.name][k] for k in planted} == planted
        assert not any(k in classes[n] for k in planted for n in NAMES if n != copy.name)
        lacking = len(base - set(classes[copy.name]))
        assert lacking <= copy.withheld_classes if name == "code" else lacking == copy.withheld_classes
        real = [row for row in rows if key_of(row) not in planted]
        assert all(costs[row["cost"]]["diagnosis"] == row["diagnosis"] for row in rows)
        assert len({row["cost"] for row in real}) == len(real)
        if "models" not in given and name != "mondrian":  # nobody else has what decoys borrow
            borrowed = {row["cost"] for row in rows if key_of(row) in planted}
            assert len(borrowed) == copy.decoy_records
            assert not borrowed & {row["cost"] for n in NAMES for row in files[n] if key_of(row) not in planted}
        for diverse in (m for m in given.get("models", ()) if isinstance(m, DistinctL)):
            values = {k: {r["diagnosis"] for r in rows if key_of(r) == k} for k in classes[copy.name]}
            assert min(map(len, values.values())) >= diverse.l


def test_a_t_that_the_release_just_meets_can_be_promised(place):
    """Copies lack some classes, and so differ a little from the whole that t compares with: they keep it all the same."""
    models = (KAnonymity(3), TCloseness("diagnosis", 0.5))
    plain = anonymize(town().study(), models, place / "plain.csv", Ola(0.2, "dm_star"))
    limit = plain.verified.t["diagnosis"]
    _, made, _ = publish(place, "tight", models=(TCloseness("diagnosis", limit),), covers=6, risk=None)
    worst = []
    for copy in made.copies:
        rows = rows_of(copy.file)
        whole = Counter(r["diagnosis"] for r in rows)
        classes = {k: Counter(r["diagnosis"] for r in rows if key_of(r) == k) for k in set(map(key_of, rows))}
        worst += [sum(abs(of[v] / of.total() - whole[v] / len(rows)) for v in whole) / 2 for of in classes.values()]
    assert max(worst) <= limit + 1e-12


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_same_seed_and_key_give_the_same_bytes(place, form):
    runs = [publish(place, f"same_{form}_{i}", form, seed)[1] for i, seed in enumerate((7, 7, 8))]
    read = [[Path(copy.file).read_bytes() for copy in made.copies] for made in runs]
    assert read[0] == read[1]
    assert all(a != b for a, b in zip(read[0], read[2], strict=True))


def test_the_same_seed_gives_other_recipients_other_marks(place):
    """Else one could be taken for the other."""
    drawn = []
    for i, names in enumerate((("ada", "bob"), ("cyd", "dan"), ("ada", "bob"))):
        job = ReleaseRequest(town().population, ("voter",), wide(names, k=3), (), Ola(0.2, "dm_star"), 7)
        made = release(town().study(), job, place / "others.db", place / "key", place / f"others_{i}")
        drawn.append(
            [
                set(map(key_of, rows))
                for rows in ledger_verbs.decoys(place / "others.db", made.release, place / "key").values()
            ]
        )
    assert drawn[0] == drawn[2]
    assert all(a != b for a, b in zip(drawn[0], drawn[1], strict=True))


CELL = re.compile(r'("(?:[^"]|"")*"|[^",\r\n]*)[,\n]')


def test_csv_files_are_written_alike(place):
    """A text is quoted where it must be, what is missing never, whoever's row it is."""
    odd = ["a, b", 'say "so"', "line\nend", "", None, "x"]
    members = [{**row, "cost": odd[i % 6]} for i, row in enumerate(town().members)]
    _, made, _ = publish(place, "quoted", data=Register(town().people, members))
    headers = set()
    for copy in made.copies:
        raw = Path(copy.file).read_bytes().decode()
        assert "\r" not in raw
        assert raw.endswith("\n")
        headers.add(raw.split("\n", 1)[0])
        cells = CELL.findall(raw)
        assert sum(map(len, cells)) + len(cells) == len(raw)
        assert all(cell == '""' or set(cell[1:-1]) & set(',"\n') for cell in cells if cell.startswith('"'))
    assert len(headers) == 1


def test_parquet_files_have_one_schema_and_no_dictionaries(place):
    _, made, _ = publish(place, "parquet", "parquet")
    files = [pq.ParquetFile(copy.file) for copy in made.copies]
    assert len({str(f.schema_arrow) for f in files}) == 1
    assert len({repr(f.metadata.metadata) for f in files}) == 1
    assert len({(f.metadata.created_by, f.metadata.num_row_groups, f.metadata.format_version) for f in files}) == 1
    assert not any(pa.types.is_dictionary(field.type) for field in files[0].schema_arrow)

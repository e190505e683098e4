"""Which classes of a sealed pool claims meet, compared with asking every person of every class."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.trace import sealed
from veilmark.trace.sealed import SealedPool, Values, hash_identities, seal_pool

PLACES = ["a1", "a2", "b1", "b2", "c1"]
ABOVE = {
    "place": [["a*", "b*", "c*", None], ["**", "**", "**", "**"]],
    "born": [["50-54", "55-59", "any"], ["*", "*", "*"]],
}
STANDS = {
    "place": {"a*": {"a1", "a2"}, "b*": {"b1", "b2"}, "c*": {"c1"}, None: set()},
    "born": {"50-54": set(map(str, range(50, 55))), "55-59": set(map(str, range(55, 60))), "any": None},
}
COLUMNS, IDENTITY = ("place", "born"), ("name", "born")
seeds = st.integers(0, 1 << 30)


def values(column):
    labels, stands = ABOVE[column][0], STANDS[column]
    texts = sorted({v for of in stands.values() for v in of or ()})
    pairs = [(i, texts.index(v)) for i, label in enumerate(labels) for v in sorted(stands[label] or ())]
    every = [i for i, label in enumerate(labels) if stands[label] is None]
    return Values.of(
        pa.array(texts), *(np.array(of) for of in zip(*pairs, strict=True)), np.array(every, dtype=np.int64)
    )


def some_pool(rng):
    """Classes, their persons as rows, and the pool as it comes back from the ledger."""
    every = [(i, j) for i in range(4) for j in range(3)]
    classes = rng.sample(every, rng.randint(1, len(every)))
    people = []
    for n, (place, born) in enumerate(classes):
        for _ in range(rng.randint(1, 4)):
            years = STANDS["born"][ABOVE["born"][0][born]] or {"71"}
            people.append({"name": rng.choice("xyz"), "born": rng.choice(sorted(years)), "class": n, "place": place})
    rng.shuffle(people)
    persons = pa.table({c: [p[c] for p in people] for c in IDENTITY})
    content = seal_pool(
        persons,
        np.array([p["class"] for p in people]),
        len(classes),
        {c: values(c) for c in COLUMNS},
        rng.randbytes(32),
    )
    secret = {"columns": COLUMNS, "identity": IDENTITY, "above": ABOVE}
    secret["sealed"] = {**content, "earlier": [], "spared": [[], []]}
    return classes, people, SealedPool.read(json.loads(json.dumps(secret)), np.array(classes).T)


def fits(claim, column, label):
    """Whether a value agrees with a label: as it is published, coarser, or as the population has it."""
    texts = {level[label] for level in ABOVE[column]} - {None}
    stands = STANDS[column][ABOVE[column][0][label]]
    return claim is None or claim in texts or stands is None or claim in stands


def meets(claim, place, born, persons):
    """Whether a claim meets a class, by its definition."""
    if all(v is None for v in claim.values()):
        return False
    if all(claim.get(c) is not None for c in IDENTITY):
        return any(all(p[c] == claim[c] for c in IDENTITY) for p in persons)
    by_name = claim.get("name") is None or any(p["name"] == claim["name"] for p in persons)
    return by_name and fits(claim.get("place"), "place", place) and fits(claim.get("born"), "born", born)


@settings(max_examples=examples(150))
@given(seeds, st.sets(st.sampled_from(["name", *COLUMNS]), min_size=1), st.integers(1, 12))
def test_claims_meet_the_classes_that_they_are_about(seed, kept, count):
    rng = random.Random(seed)
    classes, people, pool = some_pool(rng)
    cells = {
        "name": ["x", "y", "z", "nobody", None],
        "place": [*PLACES, "a*", "b*", "**", "elsewhere", None],
        "born": [*map(str, range(50, 60)), "71", "50-54", "*", "1066", None],
    }
    claims = [{c: rng.choice(cells[c]) for c in sorted(kept)} for _ in range(count)]
    found = pool.meet(pa.table({c: pa.array([row[c] for row in claims], pa.string()) for c in sorted(kept)}))
    distinct = [dict(row) for row in {tuple(row.items()) for row in claims}]
    met = [
        [meets(row, *labels, [p for p in people if p["class"] == n]) for n, labels in enumerate(classes)]
        for row in distinct
    ]
    assert found.claims.tolist() == np.sum(met, axis=0).tolist()
    assert found.by_any.tolist() == np.any(met, axis=0).tolist()
    assert (
        found.alone.tolist()
        == np.any([row for row in met if sum(row) == 1] or [[False] * len(classes)], axis=0).tolist()
    )


@settings(max_examples=examples(20))
@given(seeds)
def test_small_blocks_change_nothing(seed):
    rng = random.Random(seed)
    _, people, pool = some_pool(rng)
    rows = rng.choices(people, k=20)
    claims = pa.table({"name": [p["name"] for p in rows], "place": [rng.choice(PLACES) for _ in rows]})
    vague = pa.table({"place": [*PLACES, "**"]})
    with pytest.MonkeyPatch.context() as patch:
        before = [pool.meet(table).claims.tolist() for table in (claims, vague)]
        patch.setattr(sealed, "BLOCK", 3)
        assert [pool.meet(table).claims.tolist() for table in (claims, vague)] == before


def test_claims_without_any_column_of_the_release():
    assert some_pool(random.Random(1))[2].meet(pa.table({"other": ["x"]})) is None


def test_numbers_that_are_written_otherwise_are_the_same_person():
    ours, theirs = pa.array(["17", "18", None, "TRUE"]), pa.array(["17.0", "18.50", None, "true"])
    hashes = [hash_identities(texts, "voter", b"salt") for texts in (ours, theirs)]
    assert (hashes[0] == hashes[1]).tolist() == [True, False, True, True]
    assert hashes[0][2] == 0
    assert hash_identities(ours, "name", b"salt")[0] != hashes[0][0]
    assert hash_identities(ours, "voter", b"other")[0] != hashes[0][0]


def test_identities_are_not_kept_in_clear():
    rng = random.Random(3)
    persons = pa.table({"voter": [f"V{i:06d}" for i in range(20_000)]})
    content = json.dumps(seal_pool(persons, np.arange(20_000) // 10, 2_000, {}, rng.randbytes(32)))
    assert "V00000" not in content
    assert len(content) < 20 * 20_000


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30, unique=True))
def test_values_are_kept_as_runs(pairs):
    texts = pa.array([f"v{i}" for i in range(10)])
    owner, codes = (np.array([p[i] for p in pairs], dtype=np.int64) for i in (0, 1))
    kept = Values.read(json.loads(json.dumps(Values.of(texts, owner, codes, np.array([7])).to_dict())))
    labels, places = kept.pairs
    found = {(int(a), kept.texts[int(b)].as_py()) for a, b in zip(labels, places, strict=True)}
    assert found == {(a, f"v{b}") for a, b in pairs}
    assert kept.every.tolist() == [7]

"""What leaks and claims show, compared with looking at classes one by one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marks import ABOVE, COLUMNS, EVERY, as_table, copies, marked
from veilmark.trace.evidence import claimed, identity_key, sight

NAMES = ("ada", "bob", "cyd")
seeds = st.integers(0, 1 << 30)
levels = st.fixed_dictionaries({"place": st.integers(0, 2), "year": st.integers(0, 2), "sex": st.integers(0, 1)})


def images(codes, read):
    """The labels of classes at the levels that are read, class by class."""
    rows = zip(*codes.tolist(), strict=True)
    return [tuple(ABOVE[c][level][row[COLUMNS.index(c)]] for c, level in read.items()) for row in rows]


@settings(max_examples=40)
@given(seeds, levels, st.sets(st.sampled_from(COLUMNS), min_size=1), st.integers(1, 300))
def test_sighting_by_looking_at_each_class(seed, at, kept, size):
    rng = np.random.default_rng(seed)
    of = marked(rng, NAMES, classes=300, pool=60, covers=30)
    every = sorted(copies(of)[0] | copies(of)[1])
    leak = [every[i] for i in rng.permutation(len(every))[:size]]
    columns = [c for c in COLUMNS if c in kept]
    seen = sight(of, as_table(leak, at, columns))
    read = dict(seen.levels)
    there = set(images(np.array(leak).T, read))
    classes, pool = images(of.class_codes, read), images(of.pool_codes, read)
    covers = set(of.covers.tolist())
    common = {classes[j] for j in range(len(classes)) if j not in covers}
    groups = defaultdict(set)
    for place, j in enumerate(of.covers):
        assert (seen.cover_group[place] < 0) == (classes[j] in common)
        assert seen.cover_there[place] == (classes[j] in there)
        groups[int(seen.cover_group[place])].add(classes[j])
    assert all(len(alike) == 1 for group, alike in groups.items() if group >= 0)
    assert len({next(iter(alike)) for group, alike in groups.items() if group >= 0}) == len(groups.keys() - {-1})
    for j, image in enumerate(pool):
        assert seen.pool_clear[j] == (image not in classes and pool.count(image) == 1)
        assert seen.pool_there[j] == (image in there)
    assert seen.kept == (len(common & there), len(common - there))
    assert seen.known_rows == seen.rows == len(leak)


@settings(max_examples=20)
@given(seeds, levels)
def test_columns_are_read_at_their_own_level(seed, at):
    of = marked(np.random.default_rng(seed), NAMES, covers=10)
    seen = sight(of, as_table(EVERY.T.tolist()[::7], at))
    assert seen.levels == at


def test_values_of_several_levels_are_read_at_the_coarser_one_where_that_is_many():
    of = marked(np.random.default_rng(1), NAMES, covers=10)
    fine, coarse = (as_table(EVERY.T.tolist(), {"place": level}).to_pylist() for level in (0, 1))
    half = pa.Table.from_pylist(fine[::2] + coarse[1::2], as_table([]).schema)
    few = pa.Table.from_pylist(fine[1:] + coarse[:50], as_table([]).schema)
    assert (sight(of, half).levels["place"], sight(of, half).known_rows) == (1, len(half))
    assert (sight(of, few).levels["place"], sight(of, few).known_rows) == (0, len(few) - 50)


def test_what_is_no_label_is_passed_over():
    of = marked(np.random.default_rng(1), NAMES, covers=10)
    leak = as_table(EVERY.T.tolist()[:500]).append_column("other", pa.array(range(500)))
    odd = leak.set_column(0, "place", pa.array([f"?{i}" for i in range(500)]))
    noisy = pa.concat_tables([leak, odd])
    assert dict(sight(of, odd).levels) == {"year": 0, "sex": 0}
    assert (sight(of, noisy).levels["place"], sight(of, noisy).known_rows, sight(of, noisy).rows) == (0, 500, 1000)
    assert sight(of, leak.select(["other"])) is None
    assert sight(of, odd.select(["place"])) is None
    assert sight(of, leak.slice(0, 0)) is None


def test_numbers_written_otherwise_and_types_do_not_matter():
    of = marked(np.random.default_rng(1), NAMES, covers=10)
    leak = as_table(EVERY.T.tolist())
    years = pa.array([float(y) for y in leak["year"].to_pylist()])
    for column in (
        years,
        pa.array([f"{y:.1f}" for y in years.to_pylist()]),
        leak["year"].combine_chunks().dictionary_encode(),
    ):
        seen = sight(of, leak.set_column(1, "year", column))
        assert (seen.levels, seen.known_rows) == ({"place": 0, "year": 0, "sex": 0}, len(leak))


# Claims.


def some_claims(rng, of, count, columns):
    """Decoys of all recipients and strangers, some cells empty, some as the population has them."""
    decoys = [row for name in of.names for row in of.decoys[name]]
    rows = []
    for _ in range(count):
        row = dict(decoys[rng.integers(len(decoys))])
        if rng.random() < 0.3:
            row["voter"] = f"stranger {rng.integers(5)}"
        for c in COLUMNS:
            row[c] = ABOVE[c][0][rng.integers(len(ABOVE[c][0]))] if rng.random() < 0.2 else row[c]
            if row[c] is not None and rng.random() < 0.5:
                row[c] += rng.choice(["x", "y", "z"])
        rows.append({c: None if rng.random() < 0.15 else row[c] for c in columns})
    return rows


@settings(max_examples=60)
@given(seeds, st.integers(1, 30), st.sets(st.sampled_from(["voter", *COLUMNS]), min_size=1))
def test_claims_by_comparing_each_with_each_decoy(seed, count, kept):
    rng = np.random.default_rng(seed)
    of = marked(rng, NAMES, pool=40)
    columns = [c for c in ("voter", *COLUMNS) if c in kept]
    rows = some_claims(rng, of, count, columns)
    found = claimed(of, pa.table({c: pa.array([row[c] for row in rows], pa.string()) for c in columns}))
    named = [row for row in rows if row.get("voter") is not None]
    others = [row for row in rows if row.get("voter") is None]

    def agrees(row, decoy, within):
        return all(
            row[c] is not None
            and row[c] in {decoy[c], f"{decoy[c]}x", f"{decoy[c]}y"} - {None}
            and decoy[c] is not None
            for c in within
        )

    within = [c for c in columns if c != "voter"]
    for name in of.names:
        kinds = list(found[name])
        if named:
            hits = kinds.pop(0)
            persons = {row["voter"] for row in named}
            own = {d["voter"] for d in of.decoys[name]}
            assert (hits.claims, hits.hits, hits.reach, hits.exact) == (
                len(persons),
                len(persons & own),
                len(own),
                True,
            )
            assert {e["voter"] for e in hits.evidence} == persons & own
        if others and within:
            hits = kinds.pop(0)
            distinct = {
                tuple(row[c] for c in within) for row in others if any(agrees(row, d, within) for d in of.decoys[name])
            }
            assert (hits.claims, hits.hits) == (len(others), len(distinct))
            if set(within) == set(COLUMNS):
                assert (hits.reach, hits.exact) == (of.linked[name], True)
            assert {e["voter"] for e in hits.evidence} == {
                d["voter"] for d in of.decoys[name] if any(agrees(row, d, within) for row in others)
            }
        assert not kinds


def test_how_many_could_be_meant():
    of = marked(np.random.default_rng(1), NAMES)
    part = claimed(of, pa.table({"place": ["p00"], "sex": ["f"]}))["ada"][0]
    whole = claimed(of, pa.table({"place": ["p00"], "sex": ["f"], "year": ["1950"]}))["ada"][0]
    assert (part.reach, part.exact) == (5_000, False)
    assert (whole.reach, whole.exact) == (of.linked["ada"], True)


def test_empty_claims_agree_with_nobody():
    of = marked(np.random.default_rng(1), NAMES)
    nothing = pa.nulls(3, pa.string())
    for columns in (["voter"], ["sex"], ["voter", *COLUMNS]):
        found = claimed(of, pa.table(dict.fromkeys(columns, nothing)))
        assert all(hits.hits == 0 for kinds in found.values() for hits in kinds)
    assert claimed(of, pa.table({"other": ["x"]})) is None


def test_a_label_that_stands_for_everything_agrees_with_every_value():
    of = marked(np.random.default_rng(1), NAMES)
    label = of.decoys["ada"][0]["place"]
    of.covered["place"][label] = None
    row = {c: of.decoys["ada"][0][c] for c in COLUMNS}
    row["sex"] = row["sex"] or "f"
    if of.decoys["ada"][0]["sex"] is None:
        pytest.skip("this decoy has no sex")
    found = claimed(of, pa.table({**{c: [v] for c, v in row.items()}, "place": ["anywhere"]}))
    assert found["ada"][0].hits == 1


def test_an_identity_column_that_is_published_too_keeps_both_values():
    assert (identity_key("born", ["born", "zip"]), identity_key("name", ["born", "zip"])) == (
        "born of the person",
        "name",
    )

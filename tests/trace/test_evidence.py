"""What leaks and claims show, compared with looking at classes one by one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from marks import ABOVE, COLUMNS, EVERY, as_table, copies, marked
from strength import examples
from veilmark.trace.columns import match_columns
from veilmark.trace.evidence import identity_key
from veilmark.trace.leaked import LeakedTable
from veilmark.trace.sighting import sightings

NAMES = ("ada", "bob", "cyd")
seeds = st.integers(0, 1 << 30)
levels = st.fixed_dictionaries({"place": st.integers(0, 2), "year": st.integers(0, 2), "sex": st.integers(0, 1)})


def sight(of, table):
    """What a leak shows by the levels that read most of it; None where nothing is read."""
    leak = LeakedTable(table)
    matched = match_columns(of, leak)
    return sightings(of, leak, matched)[0] if matched.readings else None


def images(codes, read):
    """The labels of classes at the levels that are read, class by class."""
    rows = zip(*codes.tolist(), strict=True)
    return [tuple(ABOVE[c][level][row[COLUMNS.index(c)]] for c, level in read.items()) for row in rows]


@settings(max_examples=examples(40))
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
        assert image in there or not seen.pool_there[j]
    assert seen.kept == (len(common & there), len(common - there))
    assert seen.known_rows == seen.rows == len(leak)


@settings(max_examples=examples(20))
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


def test_an_identity_column_that_is_published_too_keeps_both_values():
    assert (identity_key("born", ["born", "zip"]), identity_key("name", ["born", "zip"])) == (
        "born of the person",
        "name",
    )

"""Claims: whoever makes them, an innocent recipient is named no more often than chosen, and whoever used its copy is."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marks import ABOVE, COLUMNS, EACH, as_table, copies, marked, secret, voter
from strength import examples
from veilmark.errors import DataError
from veilmark.trace.accuse import trace_file
from veilmark.trace.claims import MEANING, claims_tail, product_tail, trace_claims
from veilmark.trace.elsewhere import avoiding, draw_weight, explained
from veilmark.trace.evidence import Marked
from veilmark.trace.tails import smallest_probability

NAMES = ("ada", "bob", "cyd", "dan", "eve")
seeds = st.integers(0, 1 << 30)


def listed(of, classes, each=EACH):
    """Claims about the first persons of some classes of a pool."""
    return pa.table({"voter": [voter(of.pool_codes[:, j].tolist(), n) for j in classes for n in range(each)]})


def drawn(of, *names):
    """The classes of some recipients."""
    return np.flatnonzero(of.drawn[[of.names.index(name) for name in names]].any(axis=0)).tolist()


def p_values(found):
    return {s.name: s.p_value for s in found.suspects}


# Exactly: over all draws there are.


@pytest.mark.parametrize("known", [0, 1, 2])
@pytest.mark.parametrize("size", range(8))
def test_over_all_draws_the_probability_is_never_too_small(known, size):
    """Seven classes, two each for three recipients; the first `known` others list some of what is not their own."""
    chances = []
    for order in permutations(range(7), 6):
        if any(order[i] > order[i + 1] for i in (0, 2, 4)):
            continue
        holds = np.zeros((3, 7), dtype=bool)
        holds[np.repeat(np.arange(3), 2), order] = True
        avoided = holds[1 : 1 + known].any(axis=0)
        met = np.zeros(7, dtype=bool)
        met[np.flatnonzero(~avoided)[:size]] = True
        chances.append(claims_tail(holds, 0, np.ones(7, dtype=bool), met))
    for p in set(chances):
        assert np.mean([c <= p * (1 + 1e-12) for c in chances]) <= p * (1 + 1e-9)


@settings(max_examples=examples(40))
@given(seeds, st.integers(0, 14))
def test_the_probability_by_counting(seed, met):
    """Over all choices of one's own that the others' leave."""
    rng = np.random.default_rng(seed)
    of = marked(rng, NAMES[:4], pool=14, decoys=2)
    claimed = set(rng.permutation(14)[:met].tolist())
    left = [j for j in range(14) if j not in drawn(of, *NAMES[1:4])]
    choices = [set(c) for c in combinations(left, 2)]
    own = len(claimed & set(drawn(of, "ada")))
    found = sum(len(c & claimed) >= own for c in choices) / len(choices)
    free, there = np.ones(14, dtype=bool), np.isin(np.arange(14), sorted(claimed))
    assert claims_tail(of.drawn, 0, free, there) == pytest.approx(found)
    if claimed:
        assert p_values(trace_claims([of], listed(of, claimed), 0.5))["ada"] == pytest.approx(min(1.0, 4 * found))


@settings(max_examples=examples(40))
@given(seeds)
def test_where_other_releases_explain_some_classes_the_rest_is_counted(seed):
    rng = np.random.default_rng(seed)
    of = marked(rng, NAMES[:4], pool=14, decoys=2)
    free, met = rng.random(14) < 0.7, rng.random(14) < 0.5
    own = of.drawn[0] & free
    left = free & ~of.drawn[1:].any(axis=0)
    choices = list(combinations(np.flatnonzero(left), int(own.sum())))
    slow = np.mean([met[list(c)].sum() >= (own & met).sum() for c in choices])
    assert claims_tail(of.drawn, 0, free, met) == pytest.approx(slow)


# Adversaries, each with fresh keys.


def some(rng, of, count):
    return rng.permutation(of.pool_codes.shape[1])[:count]


def everything(rng, of):
    return listed(of, range(of.pool_codes.shape[1]))


def some_groups(rng, of):
    return listed(of, rng.permutation(of.pool_codes.shape[1])[: rng.integers(1, 12)])


def near_duplicates(rng, of):
    """One person of each of some groups, and everybody of a few."""
    return pa.concat_tables([listed(of, some(rng, of, 10), 1), listed(of, some(rng, of, 2))])


def framers(count, size=None):
    """So many recipients list what is not their own, all of it or a part."""

    def claims(rng, of):
        others = [j for j in range(of.pool_codes.shape[1]) if j not in drawn(of, *NAMES[:count])]
        return listed(of, rng.permutation(others)[: size or len(others)])

    return claims


def vague(rng, of):
    """All of a place, by its coarser label, and some groups."""
    places = pa.table({"place": [f"q{i}" for i in rng.permutation(10)[:3]], "voter": pa.nulls(3, pa.string())})
    return pa.concat_tables([places, listed(of, some(rng, of, 4))], promote_options="default")


@pytest.mark.parametrize(
    "attack",
    [everything, some_groups, near_duplicates, framers(1), framers(1, 6), framers(2), framers(4), framers(4, 6), vague],
    ids=["everything", "groups", "duplicates", "framer", "framer6", "two", "four", "four6", "vague"],
)
@pytest.mark.parametrize("pool", [60, 17])
def test_adversaries_name_no_innocent(attack, pool):
    """Also where the pool is tight: 15 classes of it are drawn."""
    rng = np.random.default_rng(11)
    released = fresh(rng, 60, pool=pool)
    innocent = [min(p_values(trace_claims([of], attack(rng, of), 1e-3)).values()) for of in released]
    assert min(innocent) > 1e-6
    assert sum(p <= 0.05 for p in innocent) <= 12  # of 60, 3 are expected at most; more than 12 has a chance of 1e-5


def fresh(rng, count, **given):
    for _ in range(count):
        yield marked(rng, NAMES, classes=5, **({"pool": 60, "decoys": 3} | given))


def test_whoever_used_its_copy_is_named():
    rng = np.random.default_rng(12)
    for of in fresh(rng, 30, pool=150, decoys=5):
        claims = pa.concat_tables([listed(of, drawn(of, "bob"), 2), listed(of, rng.permutation(150)[:2], 1)])
        found = trace_claims([of], claims, 1e-6)
        assert found.accused == ("bob",)
        assert len(found.suspects[0].evidence) == 5
        assert (found.suspects[0].tail, found.tested, found.meaning) == ("exact", 5, MEANING)


def test_two_who_act_together_are_both_named():
    of = marked(np.random.default_rng(1), NAMES, pool=150, decoys=5)
    assert set(trace_claims([of], listed(of, drawn(of, "bob", "eve")), 1e-6).accused) == {"bob", "eve"}


def test_a_class_counts_once():
    of = marked(np.random.default_rng(1), NAMES, pool=60, decoys=3)
    one, many = (trace_claims([of], listed(of, drawn(of, "cyd")[:1], n), 1e-3) for n in (1, EACH))
    assert p_values(one) == p_values(many)
    assert one.suspects[0].evidence[0]["claims"] == 1
    assert many.suspects[0].evidence[0]["claims"] == EACH


def test_any_person_of_a_class_will_do():
    """Also those who were not planted: drawn and undrawn classes are met alike."""
    of = marked(np.random.default_rng(1), NAMES, pool=150, decoys=5)
    planted = {row["voter"] for row in of.decoys["dan"]}
    last = [voter(of.pool_codes[:, j].tolist(), EACH - 1) for j in drawn(of, "dan")]
    assert not planted & set(last)
    assert trace_claims([of], pa.table({"voter": last}), 1e-6).accused == ("dan",)


def test_claims_by_labels_and_by_values():
    of = marked(np.random.default_rng(4), NAMES, pool=150, decoys=5)
    rows = [row for row in of.texts(of.pool_codes[:, drawn(of, "eve")]) if None not in row]
    full = drawn(of, "eve")
    by_label = pa.table({c: [row[i] for row in of.texts(of.pool_codes[:, full])] for i, c in enumerate(COLUMNS)})
    by_value = pa.table({c: [f"{row[i]}x" for row in rows] for i, c in enumerate(COLUMNS)})
    assert p_values(trace_claims([of], by_value, 1e-6))["eve"] <= 1e-3
    assert p_values(trace_claims([of], by_label, 1e-3))["eve"] <= 1e-3


def test_one_vague_line_does_not_drown_the_others():
    of = marked(np.random.default_rng(1), NAMES, pool=150, decoys=5)
    exact = listed(of, drawn(of, "bob"), 1)
    vague_line = pa.table({"sex": ["f", "m"]})
    found = trace_claims([of], pa.concat_tables([exact, vague_line], promote_options="default"), 1e-6)
    assert found.accused == ("bob",)
    assert p_values(found)["bob"] == pytest.approx(2 * p_values(trace_claims([of], exact, 1e-6))["bob"])
    assert trace_claims([of], vague_line, 0.5).accused == ()


@settings(max_examples=examples(20))
@given(seeds, st.integers(0, 2))
def test_more_classes_met_never_look_better(seed, met):
    of = marked(np.random.default_rng(seed), NAMES[:3], pool=30, decoys=3)
    mine = drawn(of, "ada")
    less, more = (p_values(trace_claims([of], listed(of, [*mine[:n], 29]), 0.5))["ada"] for n in (met, met + 1))
    assert more <= less


# What cannot be traced.


def test_an_early_ledger_says_what_is_missing():
    """No pool was sealed, so that nobody is named by claims; files are traced as before."""
    rng = np.random.default_rng(1)
    old = secret(rng, NAMES)
    old["claims"] = {"linked": {}, "reach": {}, "covered": {}}
    del old["sealed"]
    early, new = Marked.of("r00000001", old), marked(rng, NAMES, "r00000002", pool=150, decoys=5)
    claims = listed(new, drawn(new, "bob"))
    with pytest.raises(DataError, match=r"r00000001 was made by an earlier version.*Claims cannot be traced"):
        trace_claims([early], claims, 1e-3)
    found = trace_claims([early, new], claims, 1e-3)
    assert (found.accused, found.tested) == (("bob",), 5)
    assert "earlier version" in found.notes[0]


def test_a_release_without_decoys():
    of = marked(np.random.default_rng(1), NAMES, covers=5, decoys=0)
    with pytest.raises(DataError, match="has no decoys, so claims cannot be traced in it"):
        trace_claims([of], pa.table({"voter": ["x"]}), 1e-3)


def test_claims_that_share_no_column():
    of = marked(np.random.default_rng(1), NAMES)
    with pytest.raises(DataError, match=r"Its columns are 'voter', 'place'.*Rename the columns"):
        trace_claims([of], pa.table({"other": ["x"]}), 1e-3)


# Several releases.


def again(rng, of, release, names=NAMES, decoys=3, whole=None):
    """A later release with the same pool, or with another (`whole`), that spares what was drawn before."""
    content = secret(rng, names, classes=5, pool=10, decoys=0)
    every = of.pool_codes if whole is None else whole
    used = {tuple(c) for c in of.pool_codes[:, of.drawn.any(axis=0)].T.tolist()}
    spared = np.array([tuple(c) in used for c in every.T.tolist()])
    pool = every[:, ~spared]
    order = rng.permutation(pool.shape[1])[: decoys * len(names)].reshape(len(names), decoys)
    content |= {"pool": pool.tolist(), "drawn": {n: order[i].tolist() for i, n in enumerate(names)}}
    content["sealed"] |= {"earlier": [of.release], "spared": every[:, spared].tolist()}
    content["sealed"] |= {"persons": [0] * pool.shape[1], "identities": {"voter": ""}}
    return Marked.of(release, content)


def test_decoys_of_later_releases_are_set_aside():
    rng = np.random.default_rng(3)
    first = marked(rng, NAMES, classes=5, pool=60, decoys=3)
    second = again(rng, first, "r00000002")
    out = explained(first, [first, second])
    shown = {tuple(c) for c in second.pool_codes[:, second.drawn.any(axis=0)].T.tolist()}
    assert {tuple(c) for c in first.pool_codes[:, out].T.tolist()} == shown
    assert draw_weight(first, ~out, [second]) == 1.0  # of the same table, every choice is as likely


@settings(max_examples=examples(15))
@given(seeds, st.integers(0, 6), st.integers(1, 3))
def test_what_a_later_release_tells_is_allowed_for(seed, apart, decoys):
    """All draws of the first recipient, weighed by how likely they make what the second release drew; its pool is another
    one, so that they are not equally likely."""
    rng = np.random.default_rng(seed)
    names = NAMES[:2]
    first = marked(rng, names, classes=5, pool=10, decoys=2)
    other = marked(rng, names, classes=5, pool=10 + apart).pool_codes
    whole = np.unique(np.concatenate([first.pool_codes[:, : 10 - apart], other], axis=1), axis=1)
    second = again(rng, first, "r00000002", names, decoys, whole)
    shown = {tuple(c) for c in second.pool_codes[:, second.drawn.any(axis=0)].T.tolist()}
    classes = [tuple(c) for c in first.pool_codes.T.tolist()]
    met = rng.random(10) < 0.5
    weights, hits = [], []
    for choice in combinations(range(10), 2):
        mine = {classes[j] for j in choice}
        if mine & shown or any(first.drawn[1, j] for j in choice):
            continue
        used = mine | {classes[j] for j in np.flatnonzero(first.drawn[1])}
        left = sum(tuple(c) not in used for c in whole.T.tolist())
        weights.append(0.0 if left < 2 * decoys else math.factorial(left - 2 * decoys) / math.factorial(left))
        hits.append(sum(met[j] for j in choice))
    exact = np.array(weights) / sum(weights)
    own = sum(met[j] for j in np.flatnonzero(first.drawn[0]))
    free = ~explained(first, [second])
    p = draw_weight(first, free, [second]) * claims_tail(first.drawn, 0, free, met)
    assert p >= exact[np.array(hits) >= own].sum() * (1 - 1e-9)


@pytest.mark.parametrize("framers", [3, 5])
def test_files_by_those_who_hold_a_later_release_frame_nobody_of_the_first(framers):
    """They make up rows for the whole pool but their own decoys, which are where nobody's of the first release are."""
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        first = marked(rng, NAMES, classes=40, pool=60, decoys=5)
        second = again(rng, first, "r00000002", decoys=6)
        own = second.drawn[:framers].any(axis=0)
        known = {tuple(c) for c in second.pool_codes[:, own].T.tolist()}
        leak = {tuple(c) for c in np.concatenate([first.class_codes, first.pool_codes], axis=1).T.tolist()} - known
        found += [trace_file([first], as_table(leak), 1e-6, others=[second]).suspects[0].p_value]
        both = trace_file([first, second], as_table(leak), 1e-6)
        found += [min(s.p_value for s in both.suspects if s.release == first.release)]
    assert min(found) > 0.05 / len(found)


def test_whose_first_copy_leaks_is_named_beside_a_later_release():
    rng = np.random.default_rng(4)
    first = marked(rng, NAMES, classes=40, pool=60, decoys=5)
    second = again(rng, first, "r00000002")
    assert trace_file([first], as_table(copies(first)[1]), 1e-3, others=[second]).accused == (NAMES[1],)


def test_a_later_release_that_could_not_spare_anything_tells_nothing():
    rng = np.random.default_rng(4)
    first = marked(rng, NAMES, classes=5, pool=60, decoys=3)
    content = secret(rng, NAMES, classes=5, pool=10, decoys=0)
    order = rng.permutation(60)[:50].reshape(len(NAMES), 10)
    content |= {"pool": first.pool_codes.tolist(), "drawn": {n: order[i].tolist() for i, n in enumerate(NAMES)}}
    content["sealed"] |= {"earlier": [first.release], "spared": [[], [], []]}
    content["sealed"] |= {"persons": [0] * 60, "identities": {"voter": ""}}
    second = Marked.of("r00000002", content)
    assert not avoiding(first, [first, second]).any()
    assert draw_weight(first, np.ones(60, dtype=bool), [second]) == 1.0


def test_releases_of_one_recipient_together():
    rng = np.random.default_rng(8)
    releases = [marked(rng, NAMES, f"r0000000{i}", classes=5, pool=60, decoys=2) for i in range(4)]
    both = pa.concat_tables([listed(of, drawn(of, "cyd")) for of in releases])
    assert trace_claims(releases, both, 1e-3).accused == ("cyd",)
    assert trace_claims(releases, listed(releases[0], drawn(releases[0], "cyd")), 1e-3).accused == ()


def test_a_release_made_twice_is_one():
    of = marked(np.random.default_rng(1), NAMES, pool=150, decoys=5)
    twin = replace(of, release="r00000002")
    found = trace_claims([of, twin], listed(of, drawn(of, "bob")), 1e-6)
    assert (found.accused, found.tested) == (("bob",), 5)
    assert "same decoys as release r00000001" in found.notes[1]
    assert trace_claims([twin], listed(of, drawn(of, "bob")), 1e-6, [of, twin]).accused == ("bob",)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_product_of_uniform_numbers(count):
    rng = np.random.default_rng(1)
    products = rng.random((20_000, count))
    found = np.array([product_tail(row) for row in products.tolist()])
    for level in (0.5, 0.05):
        assert abs((found <= level).mean() - level) < 5 * math.sqrt(level / 20_000)
    assert product_tail([1.0] * count) == 1.0


def test_the_smallest_probability_is_that_of_all_own_classes_and_no_other():
    for decoys, pool in ((1, 20), (3, 60), (5, 150)):
        of = marked(np.random.default_rng(1), NAMES, pool=pool, decoys=decoys)
        found = p_values(trace_claims([of], listed(of, drawn(of, "dan")), 0.5))["dan"]
        assert found == pytest.approx(smallest_probability(5, decoys, pool), rel=1e-6)
    assert smallest_probability(5, 3, 60) == pytest.approx(5 / math.comb(48, 3))
    assert smallest_probability(5, 3, 15) == 1.0
    assert smallest_probability(1, 2, 15) == pytest.approx(1 / math.comb(15, 2))
    assert smallest_probability(5, 0, 15) == 1.0


def test_the_labels_of_the_made_up_pool_differ():
    of = marked(np.random.default_rng(1), NAMES)
    assert max(Counter(map(tuple, of.texts(of.pool_codes))).values()) == 1
    assert set(ABOVE) == set(COLUMNS)

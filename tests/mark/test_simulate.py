"""Mixing and tracing: no innocent is accused more often than allowed, whatever the leak; leakers are found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.errors import OptionError
from veilmark.mark.code import Code, bits, make_code, needed_length, release_length
from veilmark.mark.simulate import STRATEGIES, simulate, strategy_table
from veilmark.trace.mixing import Context, Leak, Path, mixing
from veilmark.trace.scores import SCORES, score, to_steps, weights

KEY = bytes(range(32))
NAMES = [str(i) for i in range(30)]


@st.composite
def leaks(draw):
    """A short code, what shows in a leak, and the bits of two others; nothing need fit together."""
    length = draw(st.integers(1, 5))
    p = draw(st.lists(st.sampled_from([0.07, 0.21, 0.5, 0.79, 0.95]), min_size=length, max_size=length))
    shows = draw(st.lists(st.booleans(), min_size=3 * length, max_size=3 * length))
    rows = np.array(shows).reshape(3, length)
    kept = draw(st.sampled_from([(0, 0), (50, 0), (20, 30)]))
    return Code("nuida", draw(st.integers(1, 4)), np.array(p)), rows[0], rows[1:], kept


@settings(max_examples=examples(20))
@given(leaks(), st.sampled_from(SCORES))
def test_an_innocent_scores_high_as_seldom_as_the_p_value_says(leak, kind):
    """All bits that an innocent could have, each with its probability: P(p-value ≤ a) ≤ a for every a."""
    code, present, others, kept = leak
    rows = np.array(list(itertools.product([False, True], repeat=code.length)))
    chance = np.where(rows, code.p, 1 - code.p).prod(axis=1)
    found = np.array([score(code, np.vstack([others, row]), present, kept, kind).p_value[2] for row in rows])
    for a in np.unique(found):
        assert chance[found <= a].sum() <= a * (1 + 1e-12)


def test_p_values_of_innocents_in_real_mixes():
    """Beside leakers and alone, over many mixes: p-values below a come about as often as a, or less."""
    code = make_code(KEY, "nuida", 3, 200)
    random = np.random.default_rng(1)
    seen = []
    for trial in range(40):
        held = bits(KEY + bytes([trial]), NAMES, code)
        present = random.random(code.length) < strategy_table("mix", 3)[held[:3].sum(axis=0)]
        seen.append(score(code, held, present, (100, 0)).p_value[3:])
    seen = np.concatenate(seen)
    for a in (0.3, 0.1, 0.01):
        assert (seen <= a).mean() <= a + 4 * np.sqrt(a / len(seen))


def mixed(code, coalition, strategy, seed=0, deletions=0.0):
    held = bits(KEY, NAMES, code)
    table = strategy_table(strategy, coalition) * (1 - deletions)
    return held, np.random.default_rng(seed).random(code.length) < table[held[:coalition].sum(axis=0)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_mixing_is_recognized(strategy):
    code = make_code(KEY, "nuida", 5, 30_000)
    _, present = mixed(code, 3, strategy, deletions=0.2)
    theta = mixing(Leak(code.p, present.astype(float), 3, (800, 200)), 0, np.zeros(code.length, dtype=int))
    assert theta == pytest.approx(strategy_table(strategy, 3) * 0.8, abs=0.05)


def known_context(shows, p, theta, held, known):
    return Context(Leak(p, shows, len(theta) - 1), tuple(range(known)), held, theta)


def test_beside_leakers_the_weight_is_the_likelihood_ratio():
    """Class by class, as defined: with one leaker known and a third one random; where a class shows for sure and not."""
    theta, p = np.array([0.01, 0.4, 0.7, 0.95]), np.array([0.2, 0.2, 0.7, 0.7, 0.7])
    shows, other = np.array([1.0, 0.0, 1.0, 0.0, 0.8]), np.array([1, 1, 0, 0, 1])
    gain = weights("likelihood", known_context(shows, p, theta, other, 1))
    for j in range(5):
        put = [
            sum((p[j] if third else 1 - p[j]) * theta[mine + other[j] + third] for third in (0, 1)) for mine in (0, 1)
        ]
        seen = [chance * shows[j] + (1 - chance) * (1 - shows[j]) for chance in put]
        assert gain[j] == pytest.approx(np.log(seen[1] / seen[0]))


def test_with_all_others_known_theta_alone_decides():
    theta, p = np.array([0.01, 0.4, 0.7, 0.95]), np.array([0.2, 0.2, 0.7])
    gain = weights("likelihood", known_context(np.ones(3), p, theta, np.array([0, 1, 2]), 2))
    assert gain == pytest.approx(np.log([0.4 / 0.01, 0.7 / 0.4, 0.95 / 0.7]))


def test_known_leakers_tell_how_copies_were_mixed():
    """At one p, minority and majority of three look alike; beside one leaker they do not."""
    random = np.random.default_rng(4)
    held = random.random((3, 20_000)) < 0.5
    for strategy in ("majority", "minority"):
        table = strategy_table(strategy, 3)
        present = random.random(20_000) < table[held.sum(axis=0)]
        leak = Leak(np.full(20_000, 0.5), present.astype(float), 3, (200, 0))
        theta = mixing(leak, 2, held[:2].sum(axis=0))
        assert theta == pytest.approx(table, abs=0.03)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_what_is_known_beside_a_recipient_does_not_depend_on_its_bits(seed, coalition):
    """The base of soundness: whatever bits the tested one has, its contexts are the same."""
    random = np.random.default_rng(seed)
    p = random.choice([0.2, 0.5, 0.8], 30)
    bits_of = random.random((6, 30)) < p
    shows = (random.random(30) < 0.5) * 1.0 if seed % 2 else random.random(30)
    leak = Leak(p, shows, coalition)
    tested = int(random.integers(6))
    seen = []
    for _ in range(4):
        bits_of[tested] = random.random(30) < p
        path = Path.of(leak, bits_of).without(tested, bits_of)
        seen.append([(context.leakers, tuple(context.theta)) for context in path.tested])
        assert all(tested not in context.leakers for context in path.contexts)
    assert all(one == seen[0] for one in seen)


def test_the_other_leakers_are_taken_in():
    code = make_code(KEY, "nuida", 4, 900)
    held, present = mixed(code, 4, "mix")
    path = Path.of(Leak(code.p, present.astype(float), 4, (200, 0)), held)
    assert set(path.contexts[-1].leakers) < {0, 1, 2, 3}
    for i in range(4):
        assert set(path.without(i, held).contexts[-1].leakers) == {0, 1, 2, 3} - {i}
    assert set(score(code, held, present, (200, 0)).beside[0]) <= {1, 2, 3}


def test_scores_by_their_definitions():
    p, shows = np.array([0.2, 0.2, 0.8]), np.array([1.0, 0.0, 0.0])
    context = known_context(shows, p, np.ones(4), np.zeros(3, dtype=int), 0)
    full = weights("symmetric", context)
    held, lacks = np.sqrt((1 - p) / p), np.sqrt(p / (1 - p))
    assert full == pytest.approx(np.where(shows, 1, -1) * (held + lacks))
    assert weights("presence", context) == pytest.approx(np.where(shows, full, 0))
    assert to_steps(np.array([1.0, -1.0, 0.5])).tolist() == [12, -12, 6]
    assert to_steps(np.zeros(3)).tolist() == [0, 0, 0]
    with pytest.raises(OptionError, match="no score 'x'"):
        weights("x", context)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_needed_length_is_enough(strategy):
    length = needed_length(30, 2, 1e-6).length
    found = simulate(make_code(KEY, "nuida", 2, length), KEY, 30, 2, strategy, trials=40, seed=3)
    assert found.caught_any >= 39
    assert found.innocent_accused == 0
    assert found.to_dict()["power"] == found.caught_any / 40


def test_the_needed_length_is_enough_for_few_recipients():
    length = needed_length(5, 2, 1e-3).length
    found = simulate(make_code(KEY, "nuida", 2, length), KEY, 5, 2, "mix", trials=100, false_accusation=1e-3)
    assert found.caught_any >= 96
    assert found.innocent_accused <= 2


@pytest.mark.parametrize(("kind", "share"), [("nuida", 0.5), ("nuida", 0.4), ("tardos", 0.5)])
def test_the_needed_length_is_enough_for_three(kind, share):
    length = needed_length(30, 3, 1e-6, kind=kind, share_withheld=share).length
    found = simulate(make_code(KEY, kind, 3, length, share), KEY, 30, 3, "mix", trials=20, seed=5)
    assert found.caught_any >= 19
    assert found.innocent_accused == 0


def test_thinned_leaks_need_longer_codes():
    length = needed_length(30, 2, 1e-6, deletions=0.3).length
    thinned = simulate(make_code(KEY, "nuida", 2, length), KEY, 30, 2, "mix", trials=40, deletions=0.3)
    assert thinned.caught_any >= 38
    shorter = simulate(make_code(KEY, "nuida", 2, length // 3), KEY, 30, 2, "mix", trials=40, deletions=0.3)
    assert shorter.caught < thinned.caught


@pytest.mark.parametrize("recipients", [10, 30])
def test_a_release_against_one_leaker_has_a_reserve(recipients):
    """A quarter of the classes is dropped; without the reserve, few are named."""
    length = release_length(recipients, 1, 1e-6).length
    found = [
        simulate(make_code(KEY, "nuida", 1, of), KEY, recipients, 1, "mix", trials=60, deletions=0.25)
        for of in (length, needed_length(recipients, 1, 1e-6).length)
    ]
    assert found[0].caught_any >= 57
    assert found[1].caught_any < 40
    assert release_length(recipients, 2, 1e-6) == needed_length(recipients, 2, 1e-6)
    assert length < needed_length(recipients, 2, 1e-6).length


def test_tests_beside_others_and_likelihood_find_more():
    code = make_code(KEY, "nuida", 2, 70)
    caught = [
        simulate(code, KEY, 30, 2, trials=60, beside=b, kind=k).caught_any
        for k, b in (("likelihood", True), ("likelihood", False), ("presence", False))
    ]
    assert caught[0] > caught[1] > caught[2]


def test_the_same_seed_gives_the_same_simulation():
    code = make_code(KEY, "nuida", 3, 150)
    run = [simulate(code, KEY, 10, 3, "coin", trials=10, seed=s) for s in (1, 1)]
    assert run[0] == run[1]


def test_what_is_wrong_is_said():
    code = make_code(KEY, "nuida", 2, 10)
    with pytest.raises(OptionError, match="'blend' is not a way to mix"):
        simulate(code, KEY, 5, 2, "blend")
    with pytest.raises(OptionError, match="coalition of 6 is not possible with 5"):
        simulate(code, KEY, 5, 6)


def test_a_leak_without_covers_points_to_nobody():
    code = make_code(KEY, "nuida", 2, 0)
    found = score(code, np.zeros((3, 0), dtype=bool), np.zeros(0, dtype=bool))
    assert found.p_value.tolist() == [1, 1, 1]
    assert not found.accused(0.5).any()
    assert found.to_dict()["tail"] == ["exact"] * 3

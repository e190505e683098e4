"""Privacy models: against slow versions row by row, what merging classes does to them, and what errors say."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
from strength import examples
from veilmark.domain import Domain
from veilmark.errors import OptionError
from veilmark.hierarchy import parse_spec, resolve
from veilmark.privacy import diversity
from veilmark.privacy.closeness import equal_distance, hierarchical_distance, ordered_distance
from veilmark.privacy.measures import Sensitive, measure_classes
from veilmark.privacy.models import (
    Alpha,
    BasicBeta,
    DeltaDisclosure,
    DeltaPresence,
    DistinctL,
    EnhancedBeta,
    EntropyL,
    KAnonymity,
    KMap,
    RecursiveL,
    TCloseness,
    all_monotone,
    check_attributes,
    class_distance,
    failing_classes,
)

quick = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])

MILD = {"cold": "mild", "flu": "mild", "hiv": "grave"}
SHARES = [0.1, 0.25, 1 / 3, 0.5, 0.6, 0.75, 1.0]


def how(table, distance="equal", attribute="illness"):
    domain = table.histograms[attribute].domain
    levels = resolve(parse_spec({"levels": [MILD]}), domain, attribute)
    return Sensitive(distance, np.arange(len(domain)), levels)


def with_population(table, counts):
    return replace(table, population=np.array(counts, dtype=np.int64))


def table_of(classes, person=False):
    """A class table of {"a": ["flu", "flu"], …}; with persons, the values are (person, value)."""
    rows = [{"q": q, "s": v} for q, values in classes.items() for v in values]
    if person:
        rows = [row | {"person": row["s"][0], "s": row["s"][1]} for row in rows]
    return oracle.class_table(rows, ["q"], ["s"], "person" if person else None)


def merged(table, groups, extra=0):
    """Class i becomes part of groups[i]; the population of a merged class has `extra` people of other classes."""
    domain = Domain.of(pa.array([f"g{i}" for i in range(10)]))
    codes = np.array([groups], dtype=np.int32)
    result = replace(table, columns=("group",)).merge(codes, [domain])
    return result if result.population is None else with_population(result, result.population + extra)


# --- slow versions: a dict by class, True where it fails ---------------------------------------------------


def entropy_oracle(rows, quasi, attribute, l):  # noqa: E741
    return {key: e < l * (1 - 1e-9) for key, e in oracle.entropy_l(rows, quasi, attribute).items()}


def recursive_oracle(rows, quasi, attribute, c, l):  # noqa: E741
    result = {}
    for key, members in oracle.classes(rows, quasi).items():
        falling = sorted(Counter(row[attribute] for row in members).values(), reverse=True)
        result[key] = not falling[0] < Fraction(c) * sum(falling[l - 1 :])
    return result


def beta_oracle(rows, quasi, attribute, most):
    """`most` says by how much a value of share p may gain."""
    table = oracle.shares(rows, attribute)
    result = {}
    for key, members in oracle.classes(rows, quasi).items():
        here = oracle.shares(members, attribute)
        result[key] = any((here.get(v, 0) - p) / p > most(p) + 1e-9 for v, p in table.items())
    return result


def basic_oracle(rows, quasi, attribute, beta):
    return beta_oracle(rows, quasi, attribute, lambda p: beta)


def enhanced_oracle(rows, quasi, attribute, beta):
    return beta_oracle(rows, quasi, attribute, lambda p: min(beta, -math.log(p)))


def t_oracle(case, rows, distance, t):
    values = oracle.VALUES["illness"]
    if distance == "equal":
        found = oracle.t_equal(rows, case.quasi, "illness")
    elif distance == "ordered":
        found = oracle.t_ordered(rows, case.quasi, "illness", values)
    else:
        found = oracle.t_hierarchical(rows, case.quasi, "illness", oracle.tree(values, [MILD]))
    return {key: d > t + 1e-12 for key, d in found.items()}


def failing(case, model, rows=None):
    """Slowly, which classes of the rows fail the model."""
    rows, quasi, name = case.rows if rows is None else rows, case.quasi, "illness"
    match model:
        case KAnonymity(k=k):
            return {key: n < k for key, n in oracle.sizes(rows, quasi, case.person).items()}
        case DistinctL(l=l):
            return {key: n < l for key, n in oracle.distinct_l(rows, quasi, name).items()}
        case EntropyL(l=l):
            return entropy_oracle(rows, quasi, name, l)
        case RecursiveL(c=c, l=l):
            return recursive_oracle(rows, quasi, name, c, l)
        case Alpha(alpha=alpha):
            return {key: a > alpha for key, a in oracle.alpha(rows, quasi, name, case.person).items()}
        case TCloseness(t=t, how=by):
            return t_oracle(case, rows, by.distance, t)
        case BasicBeta(beta=beta):
            return basic_oracle(rows, quasi, name, beta)
        case EnhancedBeta(beta=beta):
            return enhanced_oracle(rows, quasi, name, beta)
        case DeltaDisclosure(delta=delta):
            return {key: d >= delta for key, d in oracle.delta(rows, quasi, name).items()}
    raise AssertionError(model)


def rest_of(case, gone):
    return [row for row in case.rows if not gone[tuple(row[q] for q in case.quasi)]]


def failing_after_all(case, models):
    """Slowly, the classes to suppress: those that fail, then those that fail without these, and so on."""
    gone = {key: any(failing(case, m)[key] for m in models if m.local) for key in oracle.classes(case.rows, case.quasi)}
    while rows := rest_of(case, gone):
        found = [failing(case, m, rows) for m in models if not m.local]
        more = [key for key in oracle.classes(rows, case.quasi) if any(f[key] for f in found)]
        if not more:
            break
        gone |= dict.fromkeys(more, True)
    return gone


# --- random models -----------------------------------------------------------------------------------------

LIMITS = {
    KAnonymity: st.builds(KAnonymity, st.integers(1, 6)),
    DistinctL: st.builds(DistinctL, st.just("illness"), st.integers(1, 4)),
    EntropyL: st.builds(EntropyL, st.just("illness"), st.sampled_from([1, 1.5, 2, 2.5, 3])),
    RecursiveL: st.builds(
        RecursiveL, st.just("illness"), st.sampled_from([0.5, 1.0, 1.5, 2.0, 4.0]), st.integers(1, 4)
    ),
    Alpha: st.builds(Alpha, st.just("illness"), st.sampled_from(SHARES)),
    BasicBeta: st.builds(BasicBeta, st.just("illness"), st.sampled_from([0.3, 0.5, 1.0, 2.0, 9.0])),
    EnhancedBeta: st.builds(EnhancedBeta, st.just("illness"), st.sampled_from([0.3, 0.5, 1.0, 2.0, 9.0])),
    DeltaDisclosure: st.builds(DeltaDisclosure, st.just("illness"), st.sampled_from([0.2, 0.5, 0.7, 1.0, 2.0])),
}
DISTANCES = ["equal", "ordered", "hierarchical"]


def closeness_of(table):
    def build(t, distance):
        return TCloseness("illness", t, how(table, distance))

    return st.builds(build, st.sampled_from([0.0, *SHARES]), st.sampled_from(DISTANCES))


def model_of(table, kind):
    return closeness_of(table) if kind is TCloseness else LIMITS[kind]


def any_models(table):
    return st.lists(st.one_of(closeness_of(table), *LIMITS.values()), max_size=3)


KINDS = [*LIMITS, TCloseness]


@quick
@given(oracle.cases(), st.data())
def test_a_class_fails_where_the_oracle_says_so(case, data):
    for kind in KINDS:
        model = data.draw(model_of(case.table, kind))
        mask = model.failing(case.table)
        assert mask.dtype == bool
        assert oracle.by_class(case.table, mask.tolist()) == failing(case, model)


@quick
@given(oracle.cases(), st.data(), st.integers(1, 9), st.tuples(st.sampled_from(SHARES), st.sampled_from(SHARES)))
def test_a_class_fails_by_its_population_where_the_oracle_says_so(case, data, k, shares):
    counts = data.draw(st.lists(st.integers(0, 12), min_size=len(case.table), max_size=len(case.table)))
    table = with_population(case.table, counts)
    people = oracle.by_class(table, counts)
    size = oracle.sizes(case.rows, case.quasi, case.person)
    people = {key: max(people[key], n) for key, n in size.items()}
    assert oracle.by_class(table, KMap(k).failing(table).tolist()) == {key: people[key] < k for key in size}
    low, high = min(shares), max(shares)
    expected = {key: not low <= n / people[key] <= high for key, n in size.items()}
    assert oracle.by_class(table, DeltaPresence(low, high).failing(table).tolist()) == expected


def test_k_map_is_journalist_risk():
    table = table_of({"a": ["flu"] * 2, "b": ["flu"], "c": ["flu"] * 3})
    people = table_of({"a": ["flu"] * 6, "b": ["flu"] * 4})
    table = with_population(table, [6, 4, 0])
    assert KMap(4).failing(table).tolist() == [False, False, True]
    kept = table.take(~KMap(4).failing(table))
    assert measure_classes(kept, {}, population=people).risk.journalist.max == 1 / 4


def test_enhanced_beta_caps_each_value_by_itself():
    """flu is 3/4 of the table; in a it is all, a gain of 1/3 where -ln(3/4) = 0.29 is allowed."""
    table = table_of({"a": ["flu"] * 2, "b": ["flu", "hiv"]})
    assert EnhancedBeta("s", 5).failing(table).tolist() == [True, False]
    assert BasicBeta("s", 5).failing(table).tolist() == [False, False]
    assert diversity.enhanced_beta(table, "s").max() < 5


def test_limits_that_are_just_met():
    table = table_of({"a": ["flu"] * 3 + ["hiv"], "b": ["hiv"] * 3 + ["flu"]})
    # In a: flu 3/4 over 1/2, a gain of 1/2 and a distance of 1/4; r_1 = 3 is not below 3·1.
    assert not Alpha("s", 0.75).failing(table).any()
    assert not BasicBeta("s", 0.5).failing(table).any()
    assert not TCloseness("s", 0.25).failing(table).any()
    assert RecursiveL("s", 3, 2).failing(table).all()
    assert not RecursiveL("s", 3.01, 2).failing(table).any()
    assert not EntropyL("s", 4 / 3**0.75).failing(table).any()
    assert DeltaDisclosure("s", math.log(2)).failing(table).all()
    assert not KAnonymity(4).failing(table).any()
    assert not DistinctL("s", 2).failing(table).any()


def test_limits_that_are_just_met_in_decimals():
    """x has 5/30 of the table and 3/15 of a: a gain of 0.2, though 15·(5/30)·1.2 is below 3 in floating point."""
    table = table_of({"a": ["x"] * 3 + ["y"] * 12, "b": ["x"] * 2 + ["y"] * 13})
    assert not BasicBeta("s", 0.2).failing(table).any()
    table = table_of({"a": ["x"] * 13 + ["y"] * 7, "b": ["x"] * 7 + ["y"] * 13})
    assert not TCloseness("s", 0.15).failing(table).any()


def test_size_and_alpha_count_persons():
    visits = table_of({"a": [("1", "flu"), ("1", "flu"), ("2", "hiv")], "b": [("3", "flu"), ("3", "hiv")]}, person=True)
    assert KAnonymity(2).failing(visits).tolist() == [False, True]
    assert Alpha("s", 0.5).failing(visits).tolist() == [False, True]


# --- several models ----------------------------------------------------------------------------------------


@quick
@given(oracle.cases(), st.data())
def test_what_is_suppressed_is_what_the_oracle_suppresses(case, data):
    models = data.draw(any_models(case.table))
    mask = failing_classes(models, case.table)
    assert mask.dtype == bool
    assert oracle.by_class(case.table, mask.tolist()) == failing_after_all(case, models)


@quick
@given(oracle.cases(), st.data())
def test_the_rest_meets_every_model_by_its_own_measures(case, data):
    models = data.draw(any_models(case.table))
    rest = case.table.take(~failing_classes(models, case.table))
    if not len(rest):
        return
    for model in models:
        assert meets(rest, model)
    assert not failing_classes(models, rest).any()


def meets(rest, model):
    by = how(rest)
    found = measure_classes(rest, {"illness": by})
    attribute = found.attributes["illness"]
    match model:
        case KAnonymity(k=k):
            return found.k >= k
        case DistinctL(l=l):
            return attribute.diversity.distinct >= l
        case EntropyL(l=l):
            return attribute.diversity.entropy >= l * (1 - 1e-9)
        case RecursiveL(c=c, l=l):
            return diversity.recursive_c(rest, "illness", l).max() < c
        case Alpha(alpha=alpha):
            return attribute.alpha <= alpha
        case TCloseness(t=t, how=by):
            return attribute.t_by_distance[by.distance] <= t + 1e-12
        case BasicBeta(beta=beta):
            return attribute.beta_basic <= beta + 1e-9
        case EnhancedBeta(beta=beta):
            return attribute.beta_enhanced <= beta + 1e-9
        case DeltaDisclosure(delta=delta):
            return attribute.delta < delta
    raise AssertionError(model)


def test_suppression_goes_on_while_it_changes_what_classes_are_compared_with():
    """Without c, hiv falls from 6/17 to 3/14 of the table, and b's 2/4 lies 2/7 away from that."""
    table = table_of({"a": ["flu"] * 9 + ["hiv"], "b": ["flu"] * 2 + ["hiv"] * 2, "c": ["hiv"] * 3})
    near = TCloseness("s", 0.26)
    assert near.failing(table).tolist() == [False, False, True]
    assert failing_classes([near], table).tolist() == [False, True, True]
    assert failing_classes([TCloseness("s", 0.29)], table).tolist() == [False, False, True]
    assert failing_classes([TCloseness("s", 0.7)], table).tolist() == [False, False, False]
    assert failing_classes([TCloseness("s", 0.7), KAnonymity(4)], table).tolist() == [False, False, True]


def test_a_class_that_goes_for_its_size_is_not_compared_with():
    """a and b lie 3/23 from the table, and at no distance once c is gone."""
    table = table_of({"a": ["flu"] * 10, "b": ["flu"] * 10, "c": ["hiv"] * 3})
    assert failing_classes([TCloseness("s", 0.1)], table).tolist() == [True, True, True]
    assert failing_classes([TCloseness("s", 0.1), KAnonymity(4)], table).tolist() == [False, False, True]


def test_nothing_may_be_left():
    table = table_of({"a": ["flu"] * 2, "b": ["hiv"] * 2})
    assert failing_classes([KAnonymity(9), TCloseness("s", 0.1), EnhancedBeta("s", 1)], table).all()
    assert failing_classes([BasicBeta("s", 0.5), DeltaDisclosure("s", 0.5)], table).all()
    none = table.take(np.zeros(2, dtype=bool))
    models = [m("s", 1) for m in (DistinctL, EntropyL, Alpha, TCloseness, BasicBeta, EnhancedBeta, DeltaDisclosure)]
    for model in [*models, KAnonymity(2), RecursiveL("s", 1, 2)]:
        assert model.failing(none).tolist() == []
    assert failing_classes(models, none).tolist() == []


def test_no_model_suppresses_nothing():
    assert failing_classes([], table_of({"a": ["flu"], "b": ["hiv"]})).tolist() == [False, False]


# --- merging -----------------------------------------------------------------------------------------------


def failing_records(models, table):
    return int(table.records[failing_classes(models, table)].sum())


@quick
@given(oracle.cases(), st.data(), st.integers(1, 8), st.integers(1, 4), st.integers(1, 9), st.integers(0, 3))
def test_merging_never_adds_failing_records_to_monotone_models(case, data, k, l, k_map, extra):  # noqa: E741
    classes = len(case.table)
    table = with_population(case.table, data.draw(st.lists(st.integers(0, 12), min_size=classes, max_size=classes)))
    coarse = merged(table, data.draw(st.lists(st.integers(0, 3), min_size=classes, max_size=classes)), extra)
    models = [KAnonymity(k), DistinctL("illness", l), KMap(k_map)]
    for some in [*([m] for m in models), models]:
        assert all_monotone(some, suppression=True)
        assert failing_records(some, coarse) <= failing_records(some, table)


@quick
@given(oracle.cases(), st.data())
def test_a_passing_table_passes_after_merging(case, data):
    wander = len(case.table.tally.wander_group) > 0
    for kind in KINDS:
        model = data.draw(model_of(case.table, kind))
        if all_monotone([model], suppression=False, wander=wander):
            passing = case.table.take(~failing_classes([model], case.table))
            groups = data.draw(st.lists(st.integers(0, 3), min_size=len(passing), max_size=len(passing)))
            assert not model.failing(merged(passing, groups)).any()


def test_all_but_two_of_them_survive_merging_where_nobody_wanders():
    models = [KAnonymity(2), KMap(2), RecursiveL("s", 2, 2), TCloseness("s", 0.2)]
    models += [kind("s", 1) for kind in (DistinctL, EntropyL, Alpha, BasicBeta, EnhancedBeta)]
    assert all_monotone(models, suppression=False, wander=False)


@pytest.mark.parametrize(
    "model",
    [
        EntropyL("s", 2),
        RecursiveL("s", 1.5, 2),
        Alpha("s", 0.5),
        TCloseness("s", 0.1),
        BasicBeta("s", 0.2),
        EnhancedBeta("s", 0.2),
        DeltaDisclosure("s", 0.1),
    ],
)
def test_with_suppression_a_failing_class_drags_a_passing_one_down(model):
    table = table_of({"a": ["flu", "cold"], "b": ["flu"] * 5, "c": ["cold"] * 5})
    assert failing_records([model], table) == 10
    assert failing_records([model], merged(table, [0, 0, 1])) == 12
    assert not all_monotone([model], suppression=True)


def test_alpha_does_not_survive_merging_where_persons_wander():
    """Person 2, who has a cold, is in both classes; merged, two of three persons have flu."""
    table = table_of({"a": [("1", "flu"), ("2", "cold")], "b": [("2", "cold"), ("3", "flu")]}, person=True)
    half = Alpha("s", 0.5)
    assert not half.failing(table).any()
    assert half.failing(merged(table, [0, 0])).all()
    assert not all_monotone([half], suppression=False)
    assert all_monotone([half], suppression=False, wander=False)


def test_delta_disclosure_does_not_survive_merging():
    """hiv is 6/90 of the table: 3/4 of that in a, 3/2 in c, none in b; in a and b together 3/8."""
    hiv = {"a": ["hiv"] + ["flu"] * 19, "b": ["flu"] * 20, "c": ["hiv"] * 5 + ["flu"] * 45}
    table, limit = table_of(hiv), DeltaDisclosure("s", 0.5)
    assert not limit.failing(table).any()
    assert limit.failing(merged(table, [0, 0, 1])).tolist() == [True, False]
    assert not all_monotone([limit], suppression=False)


def test_delta_presence_does_not_survive_merging():
    """Half of the people of a and b are in the table, but nobody of a third class that they merge with."""
    table = with_population(table_of({"a": ["flu"], "b": ["flu"]}), [2, 2])
    limit = DeltaPresence(0.4, 0.6)
    assert not limit.failing(table).any()
    assert limit.failing(merged(table, [0, 0], extra=4)).all()
    assert not all_monotone([limit], suppression=False)
    assert not all_monotone([limit], suppression=True)


def test_models_are_monotone_together_only_if_each_is():
    assert all_monotone([], suppression=True)
    assert all_monotone([KAnonymity(5), KMap(5), DistinctL("s", 2)], suppression=True)
    assert all_monotone([KAnonymity(5), EntropyL("s", 2), TCloseness("s", 0.2)], suppression=False)
    assert not all_monotone([KAnonymity(5), EntropyL("s", 2)], suppression=True)


# --- distances ---------------------------------------------------------------------------------------------


def test_the_distance_is_the_attributes_own():
    rows = [{"q": q, "illness": i} for q, i in zip("aabb", ["cold", "hiv", "flu", "flu"], strict=True)]
    table = oracle.class_table(rows, ["q"], ["illness"])
    by = how(table)
    expected = {
        "equal": equal_distance(table, "illness"),
        "ordered": ordered_distance(table, "illness", by.rank),
        "hierarchical": hierarchical_distance(table, "illness", by.levels),
    }
    assert len({tuple(d) for d in expected.values()}) == 3
    for distance, found in expected.items():
        assert class_distance(table, "illness", how(table, distance)).tolist() == found.tolist()


@pytest.mark.parametrize(
    ("distance", "says"),
    [
        ("ordered", "ordered distance of 's' needs an order"),
        ("hierarchical", "hierarchical distance of 's' needs a hierarchy"),
        ("far", "one of equal, ordered, hierarchical, not 'far'"),
    ],
)
def test_a_distance_is_never_replaced_by_another(distance, says):
    with pytest.raises(OptionError, match=says):
        TCloseness("s", 0.2, Sensitive(distance))
    with pytest.raises(OptionError, match=says):
        class_distance(table_of({"a": ["flu"]}), "s", Sensitive(distance))


# --- words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words", "plain"),
    [
        (KAnonymity(5), "k ≥ 5", {"model": "k", "k": 5}),
        (KAnonymity(1_000_000), "k ≥ 1000000", {"model": "k", "k": 1_000_000}),
        (KMap(5), "k ≥ 5 in the population", {"model": "k_map", "k": 5}),
        (
            DeltaPresence(0, 0.5),
            "presence of 0 to 0.5 of the population's class",
            {"model": "delta_presence", "low": 0, "high": 0.5},
        ),
        (DistinctL("s", 3), "at least 3 values of s", {"model": "l", "attribute": "s", "l": 3}),
        (DistinctL("s", 1), "at least 1 value of s", {"model": "l", "attribute": "s", "l": 1}),
        (EntropyL("s", 2.5), "entropy l ≥ 2.5 for s", {"model": "entropy_l", "attribute": "s", "l": 2.5}),
        (
            RecursiveL("s", 2.0, 3),
            "recursive (2, 3)-diversity of s",
            {"model": "recursive_l", "attribute": "s", "c": 2.0, "l": 3},
        ),
        (Alpha("s", 0.5), "no value of s over 0.5 of a class", {"model": "alpha", "attribute": "s", "alpha": 0.5}),
        (
            TCloseness("s", 0.2),
            "t ≤ 0.2 for s (equal distance)",
            {"model": "t", "attribute": "s", "t": 0.2, "distance": "equal"},
        ),
        (
            TCloseness("s", 0.2, Sensitive("ordered", np.arange(2))),
            "t ≤ 0.2 for s (ordered distance)",
            {"model": "t", "attribute": "s", "t": 0.2, "distance": "ordered"},
        ),
        (BasicBeta("s", 1), "β ≤ 1 for s", {"model": "beta", "attribute": "s", "beta": 1}),
        (EnhancedBeta("s", 1), "enhanced β ≤ 1 for s", {"model": "enhanced_beta", "attribute": "s", "beta": 1}),
        (DeltaDisclosure("s", 0.7), "δ < 0.7 for s", {"model": "delta_disclosure", "attribute": "s", "delta": 0.7}),
    ],
)
def test_a_model_says_what_it_asks_for(model, words, plain):
    assert str(model) == words
    assert model.to_dict() == plain
    assert json.loads(json.dumps(model.to_dict())) == plain


def test_numbers_of_numpy_are_numbers():
    assert json.dumps(KAnonymity(np.int64(5)).to_dict()) == '{"model": "k", "k": 5}'
    assert json.dumps(Alpha("s", np.float64(0.5)).to_dict()) == '{"model": "alpha", "attribute": "s", "alpha": 0.5}'


def test_equal_models_are_equal():
    assert KAnonymity(5) == KAnonymity(5) != KMap(5)
    assert len({DistinctL("s", 2), DistinctL("s", 2), EntropyL("s", 2), DistinctL("r", 2)}) == 3
    near = TCloseness("s", 0.2, Sensitive("ordered", np.arange(3)))
    assert near in {near}
    assert near != TCloseness("s", 0.3, Sensitive("ordered", np.arange(3)))


# --- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: KAnonymity(0), r"^k must be a whole number of 1 or more, not 0\. Try 5\.$"),
        (lambda: KAnonymity(2.5), r"^k must be a whole number of 1 or more, not 2\.5"),
        (lambda: KAnonymity("5"), r"^k must be a whole number"),
        (lambda: KAnonymity(True), r"^k must be a whole number of 1 or more, not True"),
        (lambda: KMap(-1), r"^k of k-map must be a whole number of 1 or more, not -1"),
        (lambda: DistinctL("s", 0), r"^l for 's' must be a whole number of 1 or more, not 0"),
        (lambda: DistinctL("s", 1.5), r"^l for 's' must be a whole number of 1 or more, not 1\.5"),
        (lambda: EntropyL("s", 0.9), r"^Entropy l for 's' must be a number of 1 or more, not 0\.9\. Try 2\.$"),
        (lambda: EntropyL("s", math.inf), r"^Entropy l for 's' .* not inf"),
        (lambda: EntropyL("s", "two"), r"^Entropy l for 's' .* not two"),
        (lambda: RecursiveL("s", 0, 2), r"^c for 's' must be a number above 0, not 0\. Try 3\.$"),
        (lambda: RecursiveL("s", 1, 2.5), r"^l for 's' must be a whole number of 1 or more, not 2\.5"),
        (lambda: TCloseness("s", 1.1), r"^t for 's' must be a number from 0 to 1, not 1\.1\. Try 0\.2\.$"),
        (lambda: TCloseness("s", math.nan), r"^t for 's' must be a number from 0 to 1, not nan"),
        (lambda: Alpha("s", 0), r"^α for 's' must be a number above 0 and at most 1, not 0\. Try 0\.5\.$"),
        (lambda: Alpha("s", 1.01), r"^α for 's' .* not 1\.01"),
        (lambda: BasicBeta("s", 0), r"^β for 's' must be a number above 0, not 0\. Try 1\.$"),
        (lambda: EnhancedBeta("s", -1), r"^β for 's' must be a number above 0, not -1"),
        (lambda: DeltaDisclosure("s", 0), r"^δ for 's' must be a number above 0, not 0"),
        (lambda: DeltaPresence(-0.1, 0.5), r"^low of δ-presence must be a number from 0 to 1, not -0\.1"),
        (lambda: DeltaPresence(0.5, 0.2), r"^high of δ-presence must be a number from low, which is 0\.5, to 1, not"),
        (lambda: DeltaPresence(0.5, 1.2), r"^high of δ-presence .* not 1\.2\. Try 1\.$"),
    ],
)
def test_a_limit_out_of_range_is_named(build, says):
    with pytest.raises(OptionError, match=says):
        build()


@pytest.mark.parametrize("model", [KMap(3), DeltaPresence(0, 0.5)])
def test_a_model_about_a_population_needs_one(model):
    with pytest.raises(OptionError, match="needs a population, but none is given"):
        model.failing(table_of({"a": ["flu"]}))


def test_models_must_be_about_sensitive_attributes():
    check_attributes([KAnonymity(5), DistinctL("diagnosis", 2), KMap(2)], ["diagnosis"])
    with pytest.raises(OptionError, match=r"'diagnose' is not a sensitive attribute.* Did you mean 'diagnosis'\?"):
        check_attributes([KAnonymity(5), DistinctL("diagnose", 2)], ["diagnosis", "income"])
    with pytest.raises(OptionError, match=r"'t ≤ 0\.2 for zip .*' is asked for.* The study has none"):
        check_attributes([TCloseness("zip", 0.2)], [])

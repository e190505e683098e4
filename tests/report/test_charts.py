"""Each chart draws what a slow count says, and copes with nothing, with one value, and with very many."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from drawn import data, rows, words
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.hierarchy import Levels, parse_spec, resolve
from veilmark.privacy.measures import count_sizes
from veilmark.report import ahp_chart, charts, class_charts, hierarchy_chart, lattice_chart, score_charts, trace_chart
from veilmark.score import ahp, scores
from veilmark.score.scores import Options, RecordScore, Score, ScoreResult
from veilmark.tables.domain import Domain
from veilmark.trace.accuse import Suspect, Traced
from veilmark.veil.ola import Evaluated

LONG = "a name that is far longer than anybody would give to a column, and goes on " * 3

# Classes.


@given(st.lists(st.one_of(st.integers(1, 6), st.integers(1, 5000))))
def test_sizes_are_counted(sizes):
    found = count_sizes(np.array(sizes, dtype=np.int64))
    assert found == Counter(sizes)
    assert list(found) == sorted(found)


def bounds(text):
    """The sizes that a bar's label means, up to 9,999."""
    low, _, high = text.replace(",", "").partition("–")
    return int(low), int(high or low)


@settings(max_examples=examples(30))
@given(st.lists(st.one_of(st.integers(1, 12), st.integers(1, 9999)), min_size=1))
def test_class_sizes_draws_all_members(sizes):
    chart = class_charts.class_sizes(Counter(sizes))
    drawn = rows(chart, "members")
    for row in drawn:
        low, high = bounds(row["size"])
        within = [s for s in sizes if low <= s <= high]
        assert (row["members"], row["classes"]) == (sum(within), len(within))
    assert sum(row["members"] for row in drawn) == sum(sizes)
    marked = [row for row in drawn if row["kind"] == class_charts.HERE]
    assert len(marked) == 1
    low, high = bounds(marked[0]["size"])
    assert low <= min(sizes) <= high


@settings(max_examples=examples(30))
@given(st.lists(st.integers(1, 3000), min_size=1), st.sampled_from([0.05, 0.2, 0.5]))
def test_risk_profile_is_the_share_at_or_below_each_risk(sizes, threshold):
    chart = class_charts.risk_profile(Counter(sizes), threshold=threshold)
    for row in rows(chart, "share"):
        low = sum(s for s in sizes if 1 / s <= row["risk"])
        assert row["share"] == pytest.approx(low / sum(sizes))
    over = sum(s for s in sizes if 1 / s > threshold) / sum(sizes)
    assert f"{100 * over:.1f} %" in words(chart)


def test_a_profile_of_very_many_sizes_is_thinned_and_keeps_its_ends():
    drawn = rows(class_charts.risk_profile(dict.fromkeys(range(3, 20_000), 1)), "share")
    assert len(drawn) <= class_charts.POINTS
    assert (drawn[0]["risk"], drawn[-1]["risk"], drawn[-1]["share"]) == (1 / 19_999, 1 / 3, 1)


def test_many_records_are_drawn_briefly():
    assert [class_charts.brief(n) for n in (0, 9_999, 12_345, 999_499, 999_500, 3_400_000)] == [
        "0",
        "9,999",
        "12.3k",
        "999k",
        "1M",
        "3.4M",
    ]
    labels = [row["size"] for row in rows(class_charts.class_sizes({1: 1, 3_000_000: 2}), "size")]
    assert (labels[0], labels[-1]) == ("1", "2M to under 5M")


# Scores.


def scored(tkl, counts):
    """As much of a scored table as its distribution needs."""
    amounts = np.array(counts, dtype=float)
    return SimpleNamespace(factors=SimpleNamespace(tkl=np.array(tkl)), of=lambda values: values, amounts=amounts)


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, 50))))
def test_the_distribution_counts_every_record_in_its_step(records):
    found = scores.distribution(scored([t for t, _ in records], [n for _, n in records]))
    top = max((t for t, _ in records), default=0.0)
    slow = Counter()
    for tkl, count in records:
        slow[min(int(tkl / top * scores.STEPS), scores.STEPS - 1) if top > 0 else 0] += count
    assert found == tuple(slow[i] for i in range(scores.STEPS))


def result_of(distribution, top, worst=()):
    values = {"m": 1.0, "l_severity": 2.0, "tkl": 3.0, "tkl_max": top}
    of = {name: Score(value, None) for name, value in values.items()}
    return ScoreResult(sum(distribution), 9, 0, Options(), of, 0.0, 0.0, (), (), tuple(worst), tuple(distribution))


def test_scores_are_drawn_with_their_steps():
    drawn = rows(score_charts.distribution(result_of((5, 0, 2, 1), 2.0)), "records")
    assert [(row["low"], row["high"], row["records"]) for row in drawn] == [(0, 0.5, 5), (1, 1.5, 2), (1.5, 2, 1)]


def test_rare_scores_are_seen_beside_frequent_ones():
    spec = score_charts.distribution(result_of((50_000, 1), 1.0)).to_dict()
    assert spec["encoding"]["y"]["scale"]["type"] == "symlog"
    assert spec["encoding"]["y"]["axis"]["values"] == [0, 1, 10, 100, 1000, 10_000]


@pytest.mark.parametrize("result", [result_of((), 0.0), result_of((4,), 0.0), result_of((4,), 1.0)])
def test_scores_without_records_or_spread(result):
    assert score_charts.scores(result).to_dict()


def test_a_waterfall_adds_up():
    record = RecordScore({}, {"a": 0.5, LONG: 0.25}, 2, 3, 0.3, 0.1, 0.1, 0.35)
    drawn = rows(charts.waterfall(record), "step")
    assert [row["to"] for row in drawn] == pytest.approx([0.3, 0.8, 1.05, 0.35, 0.35])
    assert [row["from"] for row in drawn] == pytest.approx([0, 0.3, 0.8, 1.05, 0])


# Weights.


def test_of_very_many_weights_the_heaviest_are_drawn():
    chart = charts.weights({"diagnosis": {f"{LONG}{i}": i / 10_000 for i in range(10_000)}, "other": {"x": 2.0}})
    drawn = rows(chart, "weight")
    assert [row["weight"] for row in drawn] == [i / 10_000 for i in range(9999, 9999 - charts.MOST_BARS, -1)]
    assert "40 of 10,000" in words(chart)
    assert charts.weights({}).to_dict()


def matrix(names, values):
    return ahp.PairwiseMatrix(tuple(names), np.array(values, dtype=float), "The matrix")


def test_consistency_stands_against_its_limit():
    good = ahp.priorities(matrix("abc", [[1, 2, 4], [0.5, 1, 2], [0.25, 0.5, 1]]))
    with pytest.warns(match="is inconsistent"):
        bad = ahp.priorities(matrix("abc", [[1, 2, 0.25], [0.5, 1, 2], [4, 0.5, 1]]))
    for found, kind in ((good, ahp_chart.FINE), (bad, ahp_chart.AGAINST)):
        chart = ahp_chart.judged(found)
        (row,) = rows(chart, "ratio")
        assert (row["ratio"], row["kind"]) == (found.consistency_ratio, kind)
        assert kind in row["text"]
        assert [r["value"] for r in rows(chart, "weight")] == sorted(found.names, key=lambda n: -found.by_name[n])
        assert next(of for of in data(chart) if of and "at" in of[0])[0]["at"] == 0.1
    assert "Revisit first" in words(ahp_chart.judged(bad))


# The lattice.


def plan_of(nodes, chosen, names="abc", lattice=None):
    levels = dict(zip(names, chosen, strict=True))
    size = len(nodes) if lattice is None else lattice
    return SimpleNamespace(
        recoding=SimpleNamespace(levels=levels), explored=tuple(nodes), lattice=size, metric="gcp", gap=0.0
    )


def some_nodes(shape, seed):
    rng = np.random.default_rng(seed)
    found = []
    for node in product(*map(range, shape)):
        passes = bool(rng.random() < 0.6)
        found.append(Evaluated(node, passes, int(rng.integers(99)), 5, 0.0, float(rng.random()) if passes else None))
    return found


@settings(max_examples=examples(20))
@given(st.tuples(*[st.integers(1, 4)] * 3), st.integers(0, 99), st.integers(1, 64))
def test_the_lattice_has_every_node_at_its_height(shape, seed, count):
    nodes = some_nodes(shape, seed)[:count]
    chosen = nodes[seed % len(nodes)].node
    drawn = rows(lattice_chart.lattice(plan_of([*nodes, nodes[0]], chosen)), "levels")
    by_node = {tuple(row["levels"]): row for row in drawn}
    assert len(by_node) == len(drawn) == len(nodes)
    for node in nodes:
        row = by_node[node.node]
        assert (row["height"], row["passes"], row["suppressed"], row["loss"]) == (
            sum(node.node),
            node.passes,
            node.suppressed,
            node.loss,
        )
        assert row["chosen"] == (node.node == chosen)
        assert row["node"] == ",".join(map(str, node.node))
    for height in {row["height"] for row in drawn}:
        places = sorted(row["place"] for row in drawn if row["height"] == height)
        assert sum(places) == pytest.approx(0)
        assert all(b - a == 1 for a, b in pairwise(places))


def test_a_page_can_tell_which_node_was_clicked():
    spec = lattice_chart.lattice(plan_of(some_nodes((2, 2, 2), 1), (0, 1, 0))).to_dict()
    assert [(p["name"], p["select"]["type"]) for p in spec["params"]] == [("node", "point")]


def test_of_a_very_large_lattice_the_best_of_each_height_are_kept():
    nodes = some_nodes((20, 20, 20), 7)
    chart = lattice_chart.lattice(plan_of(nodes, nodes[777].node, ["age", LONG, "sex"]))
    drawn = {tuple(row["levels"]) for row in rows(chart, "levels")}
    assert len(drawn) == lattice_chart.MOST_NODES
    assert nodes[777].node in drawn
    for height in range(58):
        passing = [n for n in nodes if n.passes and sum(n.node) == height]
        if passing:
            assert min(passing, key=lambda n: n.loss).node in drawn
    assert f"Shown are {lattice_chart.MOST_NODES:,}" in words(chart)


def test_a_lattice_of_nothing_and_of_failures_alone():
    assert lattice_chart.lattice(plan_of([], (0, 0, 0))).to_dict()
    assert lattice_chart.lattice(plan_of([Evaluated((1, 0, 0), False, 3, 1, 0.0, None)], (1, 0, 0))).to_dict()


# Hierarchies.


@st.composite
def some_levels(draw):
    """Levels at random: each is a coarser grouping of the one below."""
    sizes = sorted(draw(st.lists(st.integers(2, 400), min_size=1, max_size=5)), reverse=True)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    codes = [np.arange(sizes[0], dtype=np.int32)]
    for size in [*sizes[1:], 1]:
        groups = np.unique(rng.integers(0, size, len(np.unique(codes[-1]))), return_inverse=True)[1]
        codes.append(groups.astype(np.int32)[codes[-1]])
    labels = tuple(pa.array([f"{level}:{i}" for i in range(int(of.max()) + 1)]) for level, of in enumerate(codes))
    return Levels(labels, tuple(codes))


@given(some_levels())
def test_a_tree_counts_every_value_once_and_links_what_belongs_together(levels):
    drawing = hierarchy_chart.Drawing(levels)
    drawing.add(levels.height, 0, hierarchy_chart.MOST_LEAVES)
    nodes, links = drawing.nodes, drawing.links
    ends = [node for node in nodes if node["end"]]
    assert len(ends) <= hierarchy_chart.MOST_LEAVES
    assert sorted(node["y"] for node in ends) == list(range(len(ends)))
    hidden = [int(n["label"].split()[1].replace(",", "")) for n in ends if not n["values"]]
    assert sum(n["values"] for n in ends) + sum(hidden) == len(levels.labels[0])
    at = {(node["x"], node["y"]): node for node in nodes}
    assert len(at) == len(nodes) == len(links) + 1
    for link in links:
        above, below = at[link["x"], link["y"]], at[link["x2"], link["y2"]]
        if below["values"]:
            (upper, a), (lower, b) = (map(int, node["full"].split(":")) for node in (above, below))
            assert upper == lower + 1
            assert levels.up(lower, upper)[b] == a
    assert drawing.cut == bool(hidden or any(n["values"] > 1 for n in ends))


def test_a_small_tree_is_drawn_whole():
    domain = Domain.of(pa.array(["bonn", "koeln", "ulm", None]))
    spec = parse_spec({"levels": [{"bonn": "west", "koeln": "west", "ulm": "south"}]})
    drawn = rows(hierarchy_chart.tree(resolve(spec, domain, "city")), "label")
    assert Counter(node["label"] for node in drawn) == Counter(
        ["*", "west", "south", "bonn", "koeln", "ulm", "(missing)", "(missing)"]
    )
    assert next(node["y"] for node in drawn if node["label"] == "west") == 0.5


def test_a_flat_tree_says_how_many_more():
    levels = resolve(None, Domain.of(pa.array([f"{LONG}{i}" for i in range(1000)])), "x")
    chart = hierarchy_chart.tree(levels)
    assert rows(chart, "label")[-2]["label"] == "… 941 more"
    assert "left out" in words(chart)


@pytest.mark.parametrize("values", [[], ["only"]])
def test_a_tree_of_nothing_and_of_one_value(values):
    levels = resolve(None, Domain.of(pa.array(values, pa.string())), "x")
    assert hierarchy_chart.tree(levels).to_dict()


# A trace.


def suspects(count, release="r"):
    return tuple(Suspect(f"{LONG}{i}", release, float(9 - i), 10.0 ** -(9 - i), "exact") for i in range(count))


def test_evidence_is_drawn_against_the_limit():
    found = Traced(("x",), (*suspects(5), Suspect("z", "r", 0.0, 1.0, "bound")), 1e-6, 6)
    drawn = rows(trace_chart.evidence(found), "score")
    assert [row["score"] for row in drawn] == [9, 8, 7, 6, 5, 0]
    assert [row["kind"] == trace_chart.NAMED for row in drawn] == [True] * 4 + [False] * 2
    assert (drawn[0]["text"], drawn[5]["text"]) == ("p = 1e-09, named", "p ≤ 1")
    assert next(of for of in data(trace_chart.evidence(found)) if "at" in of[0])[0]["at"] == 6


def test_evidence_of_many_recipients_and_releases_is_cut():
    many = tuple(Suspect(f"n{i}", f"release {i % 2}", 0.0, 1.0, "exact") for i in range(500))
    chart = trace_chart.evidence(Traced((), many, 1e-6, 500))
    assert len(rows(chart, "score")) == charts.MOST_BARS
    assert rows(chart, "score")[1]["recipient"] == "n1 (release 1)"
    assert "40 of 500" in words(chart)
    assert "Nobody is named" in words(chart)
    assert trace_chart.evidence(Traced((), (), 1e-6, 0)).to_dict()

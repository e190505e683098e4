"""OLA against trying every node, for every model and loss, with and without suppression."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.engines.duckdb import DuckDB
from veilmark.errors import OptionError
from veilmark.hierarchy import parse_spec, resolve
from veilmark.privacy.measures import Sensitive
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
    failing_classes,
)
from veilmark.tables.classes import ClassTable
from veilmark.utility.loss import METRICS
from veilmark.veil import ola
from veilmark.veil.anonymize import link
from veilmark.veil.ola import Ola, search

HIERARCHIES = {"z": {"mask": 2}, "a": {"intervals": [2, 4]}, "g": None}
VALUES = {"z": ["11", "12", "21", "22"], "a": ["1", "2", "3", "5", "8"], "g": ["F", "M", None], "s": ["u", "v", "w"]}
MODELS = {
    "k": [KAnonymity(3)],
    "k and distinct l": [KAnonymity(2), DistinctL("s", 2)],
    "k and entropy l": [KAnonymity(2), EntropyL("s", 1.8)],
    "k and recursive l": [KAnonymity(2), RecursiveL("s", 3, 2)],
    "k and t": [KAnonymity(2), TCloseness("s", 0.3, Sensitive())],
    "α": [Alpha("s", 0.6)],
    "β": [BasicBeta("s", 1.0)],
    "k and enhanced β": [KAnonymity(2), EnhancedBeta("s", 1.0)],
    "δ": [DeltaDisclosure("s", 1.0)],
    "k-map": [KMap(4)],
    "δ-presence": [DeltaPresence(0.2, 0.7)],
    "k-map, presence and l": [KMap(3), DeltaPresence(0.0, 0.8), DistinctL("s", 2)],
}
COMPARED = ("k-map", "δ-presence", "k-map, presence and l")


@pytest.fixture(scope="module")
def engine():
    with DuckDB(threads=1) as engine:
        yield engine


def built(engine, rows, people=None):
    table = pa.table({c: pa.array([r[c] for r in rows], pa.string()) for c in VALUES})
    classes = ClassTable.build(engine.open(table), ["z", "a", "g"], ["s"])
    if people is not None:
        others = pa.table({c: pa.array([r[c] for r in (*rows, *people)], pa.string()) for c in VALUES})
        classes = link(classes, ClassTable.build(engine.open(others), ["z", "a", "g"]))
    specs = [parse_spec(HIERARCHIES[c]) if HIERARCHIES[c] else None for c in classes.columns]
    levels = [resolve(s, d, c) for s, d, c in zip(specs, classes.domains, classes.columns, strict=True)]
    return classes, levels


def slow_loss(metric, rows, labels_of, node, heights, leaves, widths, suppressed):
    """The loss straight from METHODS §4, over rows; labels_of(row, node) are its labels."""
    n, d = len(rows), len(node)
    groups = defaultdict(list)
    for i, row in enumerate(rows):
        groups[labels_of(row, node)].append(i)
    if metric == "dm_star":
        return sum(len(g) ** 2 for g in groups.values())
    if metric == "dm":
        return sum(len(g) * (n if g[0] in suppressed else len(g)) for g in groups.values())
    total = 0.0
    columns = list(zip(*(labels_of(r, (0,) * d) for r in rows), strict=True))
    at_node = list(zip(*(labels_of(r, node) for r in rows), strict=True))
    for c in range(d):
        exact, coarse = Counter(columns[c]), Counter(at_node[c])
        for i in range(n):
            out = i in suppressed
            if metric == "precision":
                total += 1 if out else node[c] / heights[c]
            elif metric == "lm":
                total += 1 if out else (leaves[c][at_node[c][i]] - 1) / max(leaves[c].total() - 1, 1)
            elif metric == "gcp":
                total += 1 if out else widths[c][at_node[c][i]]
            else:
                total += np.log2((n if out else coarse[at_node[c][i]]) / exact[columns[c][i]])
    return total if metric == "entropy" else total / (d * n)


def exhaustive(rows, classes, levels, models):
    """Every node tried on the rows: how many it suppresses, and its loss by every metric."""
    names = classes.columns
    codes = [{t: i for i, t in enumerate(d.text.to_pylist())} for d in classes.domains]
    texts = [[of.of_values(n).to_pylist() for n in range(of.height + 1)] for of in levels]

    def labels_of(row, node):
        return tuple(texts[i][level][codes[i][row[c]]] for i, (c, level) in enumerate(zip(names, node, strict=True)))

    found = []
    for node in itertools.product(*(range(of.height + 1) for of in levels)):
        rolled = classes.roll_up(levels, node)
        rolled = rolled.take(rolled.records > 0)
        keys = list(zip(*(rolled.texts(c) for c in names), strict=True))
        bad = {k for k, f in zip(keys, failing_classes(models, rolled), strict=True) if f}
        suppressed = {i for i, r in enumerate(rows) if labels_of(r, node) in bad}
        leaves = [Counter(texts[i][level]) for i, level in enumerate(node)]
        widths = [_widths(classes.domains[i], texts[i][level]) for i, level in enumerate(node)]
        heights = [of.height for of in levels]
        losses = {m: slow_loss(m, rows, labels_of, node, heights, leaves, widths, suppressed) for m in METRICS}
        found.append((len(suppressed), losses))
    return found


def _widths(domain, labels):
    members = defaultdict(list)
    for value, label in zip(domain.text.to_pylist(), labels, strict=True):
        members[label].append(value)
    if domain.numbers is None:
        return {k: len(v) / len(domain) if len(v) > 1 else 0.0 for k, v in members.items()}
    numbers = [float(v) for v in domain.text.to_pylist() if v is not None]
    whole = (max(numbers) - min(numbers)) or 1.0
    result = {}
    for label, values in members.items():
        own = [float(v) for v in values if v is not None]
        mixed = None in values and own
        result[label] = 1.0 if mixed else ((max(own) - min(own)) / whole if own else 0.0)
    return result


ROWS = st.lists(st.fixed_dictionaries({c: st.sampled_from(v) for c, v in VALUES.items()}), min_size=4, max_size=30)


@pytest.mark.parametrize("models", MODELS)
@settings(max_examples=examples(10))
@given(rows=ROWS, people=ROWS)
def test_ola_finds_the_least_loss_of_all_nodes(engine, models, rows, people):
    """For every loss, without suppression and with some; what publishes nothing never wins."""
    classes, levels = built(engine, rows, people if models in COMPARED else None)
    nodes = exhaustive(rows, classes, levels, MODELS[models])
    for metric, limit in itertools.product(METRICS, (0.0, 0.1, 0.3, 1.0)):
        within = [(n, losses[metric]) for n, losses in nodes if n <= limit * len(rows) + 1e-9]
        passing = [loss for suppressed, loss in within if suppressed < len(rows)]
        method = Ola(suppression=limit, loss=metric)
        if not within:
            with pytest.raises(OptionError, match="No generalization reaches"):
                search(classes, levels, MODELS[models], method)
            continue
        if not passing:
            assert search(classes, levels, MODELS[models], method).failing.all()
            continue
        found = search(classes, levels, MODELS[models], method)
        assert found.loss == pytest.approx(min(passing), rel=1e-9), (metric, limit)
        assert found.gap == 0
        assert found.table.records[found.failing].sum() <= limit * len(rows) + 1e-9
        assert not found.failing.all()


def many_rows(count, seed=1):
    rng = np.random.default_rng(seed)
    return [{c: v[rng.integers(len(v))] for c, v in VALUES.items()} for _ in range(count)]


def test_levels_can_be_fixed_and_bounded(engine):
    classes, levels = built(engine, many_rows(60))
    found = search(classes, levels, [KAnonymity(5)], Ola(levels={"g": 0, "z": (1, 2)}))
    assert found.node[classes.columns.index("g")] == 0
    assert found.node[classes.columns.index("z")] >= 1
    with pytest.raises(OptionError, match="'z' has the levels 0 to 2"):
        search(classes, levels, [KAnonymity(5)], Ola(levels={"z": 3}))
    with pytest.raises(OptionError, match=r"'zz' is not a quasi-identifier.*Did you mean 'z'"):
        search(classes, levels, [KAnonymity(5)], Ola(levels={"zz": 0}))


def test_weights_of_attributes_steer_the_search(engine):
    classes, levels = built(engine, many_rows(60))
    keep_z = search(classes, levels, [KAnonymity(4)], Ola(loss="precision", weights={"z": 100}))
    keep_a = search(classes, levels, [KAnonymity(4)], Ola(loss="precision", weights={"a": 100}))
    z, a = classes.columns.index("z"), classes.columns.index("a")
    assert keep_z.node[z] <= keep_a.node[z]
    assert keep_a.node[a] <= keep_z.node[a]


def test_a_time_limit_gives_the_best_so_far_and_its_gap(engine):
    classes, levels = built(engine, many_rows(80))
    found = search(classes, levels, [KAnonymity(2)], Ola(loss="precision", seconds=1e-9))
    best = search(classes, levels, [KAnonymity(2)], Ola(loss="precision"))
    assert len(found.explored) < len(best.explored)
    assert best.loss < found.loss
    assert found.loss * (1 - found.gap) <= best.loss


def test_a_limit_that_no_node_meets_says_how_near_it_came(engine):
    classes, levels = built(engine, many_rows(10))
    with pytest.raises(OptionError, match=r"k ≥ 11.*the closest one would suppress 10 \(100\.0%\)"):
        search(classes, levels, [KAnonymity(11)], Ola())


@pytest.mark.parametrize(
    "options", [{"suppression": 1.5}, {"suppression": -0.1}, {"loss": "dmstar"}, {"weights": {"z": -1}}]
)
def test_options_that_make_no_sense(options):
    with pytest.raises(OptionError):
        Ola(**options)


@settings(max_examples=examples(25))
@given(rows=ROWS, metric=st.sampled_from(METRICS), limit=st.sampled_from([0.0, 0.1, 0.3]))
def test_a_lattice_too_large_to_hold_still_finishes_with_a_gap_that_holds(engine, rows, metric, limit):
    classes, levels = built(engine, rows)
    method = Ola(suppression=limit, loss=metric)
    with pytest.MonkeyPatch.context() as patch:
        try:
            best = search(classes, levels, [KAnonymity(3)], method)
        except OptionError:
            return
        patch.setattr("veilmark.veil.ola.LARGEST_LATTICE", 5)
        patch.setattr("veilmark.veil.ola.BLOCK", 9)
        found = search(classes, levels, [KAnonymity(3)], method)
    assert best.loss <= found.loss + 1e-9
    assert found.loss * (1 - found.gap) <= best.loss + 1e-9
    assert found.table.records[found.failing].sum() <= limit * len(rows) + 1e-9


def test_a_lattice_too_large_to_try_is_searched_for_a_minute_unless_asked_otherwise(engine, monkeypatch):
    """The clock jumps: the best so far is taken."""
    monkeypatch.setattr(ola, "LARGEST_LATTICE", 1)
    ticks = itertools.count(0, 20.0)
    monkeypatch.setattr(ola.time, "monotonic", lambda: next(ticks))
    classes, levels = built(engine, many_rows(80))
    cut = search(classes, levels, [KAnonymity(2)], Ola())
    whole = search(classes, levels, [KAnonymity(2)], Ola(seconds=np.inf))
    assert len(cut.explored) < 6 < len(whole.explored)
    assert cut.loss >= whole.loss

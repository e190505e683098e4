"""Releases measured anew: every number against a slow version row by row, and every verdict against the models'."""

from __future__ import annotations

import ast
import json
import math
import sys
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
from strength import examples
from veilmark import readable
from veilmark.errors import VeilmarkError
from veilmark.hierarchy import parse_spec, resolve
from veilmark.privacy import unchanged
from veilmark.privacy.measures import Sensitive, rank_values
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
from veilmark.veil import verify as module
from veilmark.veil.verify import Verified, check_release, verify

quick = settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Names and values that a file must quote, or that look like something else.
QUASI = ["c0", 'say "zip", please']
SENSITIVE = ["size", "größe"]
LABELS = [["[20, 30)", "*", "012", None], ['"', "a,b", "line\nend", "Ünï\r\n漢", "NULL", None]]
ILLS = ["cold, common", 'flu "A"', "hiv", "nan", "'", None]
ORDER = ["hiv", "cold, common", "'", "nan", 'flu "A"']
NEAR = {"cold, common": "cough", 'flu "A"': "cough", "hiv": "blood, \n", "nan": "blood, \n", "'": "other"}
FAR = {"cough": "mild", "blood, \n": "grave", "other": "grave"}
INCOMES = ["9", "10", "10.0", "20", "35.5", "100", "1000", "-3", None]
SHARES = [0.0, 0.1, 0.25, 1 / 3, 0.5, 0.6, 0.75, 1.0]


@st.composite
def tables(draw, fewest=1):
    kinds = [*LABELS, ILLS, INCOMES]
    row = {name: st.sampled_from(kind) for name, kind in zip([*QUASI, *SENSITIVE], kinds, strict=True)}
    return draw(st.lists(st.fixed_dictionaries(row), min_size=fewest, max_size=25))


def arrow(rows, names=(*QUASI, *SENSITIVE, "other")):
    other = [{"other": f"x{i}\n,"} for i in range(len(rows))]
    columns = {
        n: pa.array([(row | more)[n] for row, more in zip(rows, other, strict=True)], pa.string()) for n in names
    }
    return pa.table(columns)


def write(table, path, how):
    if how == "parquet":
        pq.write_table(table, path)
    elif how == "pyarrow":
        pa_csv.write_csv(table, path)
    else:
        with duckdb.connect() as connection:
            connection.register("released", table)
            connection.execute(f"COPY released TO '{path}' (FORMAT csv, HEADER)")
    return path


def written(rows, how, quasi=QUASI, sensitive=SENSITIVE, limits=(), **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("out.parquet" if how == "parquet" else "out.csv")
        return verify(write(arrow(rows), path, how), quasi, sensitive, limits, threads=1, **options)


ways = st.sampled_from(["duckdb", "pyarrow", "parquet"])
some_quasi = st.lists(st.sampled_from(QUASI), unique=True)


def worst(by_class, of=max):
    return pytest.approx(float(of(by_class.values())), abs=1e-12)


# --- the numbers -------------------------------------------------------------------------------------------


@quick
@given(tables(), some_quasi, ways)
def test_what_is_always_measured(rows, quasi, how):
    got = written(rows, how, quasi)
    sizes = oracle.sizes(rows, quasi)
    assert (got.records, got.classes, got.k) == (len(rows), len(sizes), min(sizes.values()))
    assert got.limits == got.unchecked == ()
    for name in SENSITIVE:
        assert got.distinct[name] == min(oracle.distinct_l(rows, quasi, name).values())
        assert got.entropy[name] == worst(oracle.entropy_l(rows, quasi, name), min)
        assert got.t[name] == worst(oracle.t_equal(rows, quasi, name))
        assert got.alpha[name] == worst(oracle.alpha(rows, quasi, name))


def enhanced(rows, quasi, name, beta):
    """How many times the share that it may have some value has in each class."""
    table = oracle.shares(rows, name)
    most = {v: p * (1 + Fraction(min(beta, -math.log(p)))) for v, p in table.items()}
    return {
        key: max(q / most[v] for v, q in oracle.shares(members, name).items())
        for key, members in oracle.classes(rows, quasi).items()
    }


@quick
@given(tables(), some_quasi, ways, st.sampled_from(SENSITIVE), st.integers(1, 5), st.sampled_from([0.2, 1.0, 2.5]))
def test_what_a_limit_asks_for(rows, quasi, how, name, l, beta):  # noqa: E741
    models = [RecursiveL(name, 2, l), BasicBeta(name, beta), EnhancedBeta(name, beta), DeltaDisclosure(name, beta)]
    recursive, basic, capped, delta = written(rows, how, quasi, limits=[m.to_dict() for m in models]).limits
    expected = max(oracle.recursive_c(rows, quasi, name, l).values())
    assert recursive.worst == expected
    assert recursive.to_dict()["found"] == (expected if expected < math.inf else None)
    assert basic.worst == worst(oracle.basic_beta(rows, quasi, name))
    assert capped.worst == worst(enhanced(rows, quasi, name, beta))
    assert delta.worst == worst(oracle.delta(rows, quasi, name))


def closeness(table, name, t, distance):
    """The model, and its limit with what the file cannot say: the order and the hierarchy of the values."""
    order = ORDER if name == "size" else sorted((v for v in INCOMES if v), key=float)
    domain = table.histograms[name].domain
    maps = [NEAR, FAR] if name == "size" else [{v: v[0] for v in INCOMES if v}]
    levels = resolve(parse_spec({"levels": maps}), domain, name)
    model = TCloseness(name, t, Sensitive(distance, rank_values(table, name, order), levels))
    labels = [levels.of_values(level).to_pylist() for level in range(1, levels.height + 1)]
    paths = dict(zip(domain.text.to_pylist(), zip(*labels, strict=True), strict=True))
    return model, model.to_dict() | {"order": order, "paths": paths}


@quick
@given(tables(), some_quasi, ways, st.sampled_from(SENSITIVE))
def test_distances_that_know_the_values(rows, quasi, how, name):
    table = oracle.class_table(rows, quasi, SENSITIVE)
    limits = [closeness(table, name, 0.5, distance)[1] for distance in ("equal", "ordered", "hierarchical")]
    equal, ordered, hierarchical = written(rows, how, quasi, limits=limits).limits
    values = limits[0]["order"] + [None]
    maps = [NEAR, FAR] if name == "size" else [{v: v[0] for v in INCOMES if v}]
    tree = oracle.tree(values, maps)
    assert equal.worst == worst(oracle.t_equal(rows, quasi, name))
    assert ordered.worst == worst(oracle.t_ordered(rows, quasi, name, values))
    assert hierarchical.worst == worst(oracle.t_hierarchical(rows, quasi, name, tree))
    assert ordered.limit == {"model": "t", "attribute": name, "t": 0.5, "distance": "ordered"}


@settings(quick, max_examples=examples(15))
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40)), min_size=1, max_size=60))
def test_the_ordered_distance_of_many_values(pairs):
    rows = [{"c0": q, QUASI[1]: None, "size": str(v), "größe": None} for q, v in pairs]
    order = [str(v) for v in range(41)]
    limit = {"model": "t", "attribute": "size", "t": 0.1, "distance": "ordered", "order": order}
    got = written(rows, "parquet", ["c0"], ["size"], [limit])
    assert got.limits[0].worst == worst(oracle.t_ordered(rows, ["c0"], "size", order))


@quick
@given(tables(), tables(), some_quasi, ways)
def test_what_a_population_tells(rows, others, quasi, how):
    """Some of the population's labels come in two rows, and an empty one is missing."""
    people = oracle.sizes(others, quasi)
    labels = {q: [key[i] or "" for key in people] * 2 for i, q in enumerate(quasi)}
    population = pa.table({**labels, "n": [n - 1 for n in people.values()] + [1] * len(people)})
    limits = [KMap(2).to_dict(), DeltaPresence(0.1, 0.9).to_dict()]
    got = written(rows, how, quasi, [], limits, population=population)
    size = oracle.sizes(rows, quasi)
    linked = {key: max(n, people.get(key, 0)) for key, n in size.items()}
    shares = [n / linked[key] for key, n in size.items()]
    assert [found.worst for found in got.limits] == [min(linked.values()), (min(shares), max(shares))]
    assert not got.unchecked


# --- the verdict -------------------------------------------------------------------------------------------


def models_about(name):
    beta = st.sampled_from([0.2, 0.3, 0.5, 1.0, 2.0, 9.0])
    return [
        st.builds(DistinctL, st.just(name), st.integers(1, 4)),
        st.builds(EntropyL, st.just(name), st.sampled_from([1, 1.5, 2, 3])),
        st.builds(RecursiveL, st.just(name), st.sampled_from([0.3, 0.5, 1, 1.5, 2, 4]), st.integers(1, 4)),
        st.builds(Alpha, st.just(name), st.sampled_from(SHARES[1:])),
        st.builds(BasicBeta, st.just(name), beta),
        st.builds(EnhancedBeta, st.just(name), beta),
        st.builds(DeltaDisclosure, st.just(name), st.sampled_from([0.2, 0.5, 0.7, 1.0, 2.0])),
    ]


@st.composite
def promises(draw, table):
    """Models with their limits as plain data."""
    low, high = sorted([draw(st.sampled_from(SHARES)), draw(st.sampled_from(SHARES))])
    chosen = [KAnonymity(draw(st.integers(1, 4))), KMap(draw(st.integers(1, 6))), DeltaPresence(low, high)]
    chosen += [draw(model) for name in SENSITIVE for model in models_about(name)]
    pairs = [(model, model.to_dict()) for model in chosen]
    for name in SENSITIVE:
        distance = draw(st.sampled_from(["equal", "ordered", "hierarchical"]))
        pairs.append(closeness(table, name, draw(st.sampled_from(SHARES)), distance))
    return pairs


def keeps(found, limits):
    try:
        check_release(found, found.records, found.classes, limits)
    except VeilmarkError:
        return False
    return True


@settings(quick, max_examples=examples(25))
@given(tables(), some_quasi, ways, st.data())
def test_a_release_is_refused_exactly_where_a_class_fails(rows, quasi, how, data):
    table = oracle.class_table(rows, quasi, SENSITIVE)
    people = data.draw(st.lists(st.integers(0, 9), min_size=len(table), max_size=len(table)))
    table = replace(table, population=np.array(people, dtype=np.int64))
    population = pa.table([pa.array(table.texts(q), pa.string()) for q in quasi] + [pa.array(people)], [*quasi, "n"])
    pairs = data.draw(promises(table))
    found = written(rows, how, quasi, limits=[limit for _, limit in pairs], population=population)
    assert not found.unchecked
    for model, limit in pairs:
        assert keeps(found, [limit]) == (not failing_classes([model], table).any()), model
    assert keeps(found, [limit for _, limit in pairs]) == (not failing_classes([m for m, _ in pairs], table).any())


def test_limits_that_are_just_met(tmp_path):
    """15·(5/30)·1.2 is below 3 in floating point, and so on: what is met exactly is met."""
    rows = [{"q": q, "s": s} for q, n in {"a": 3, "b": 2}.items() for s in ["x"] * n + ["y"] * (15 - n)]
    path = write(arrow(rows, ["q", "s"]), tmp_path / "out.csv", "duckdb")
    models = [
        BasicBeta("s", 0.2),
        Alpha("s", 13 / 15),
        TCloseness("s", 1 / 30),
        RecursiveL("s", 6.51, 2),
        DistinctL("s", 2),
    ]
    limits = [m.to_dict() for m in models]
    check_release(verify(path, ["q"], ["s"], limits), 30, 2, limits)
    tight = [
        BasicBeta("s", 0.199),
        Alpha("s", 0.866),
        TCloseness("s", 0.033),
        RecursiveL("s", 6.5, 2),
        DistinctL("s", 3),
    ]
    limits = [m.to_dict() for m in tight]
    with pytest.raises(VeilmarkError) as error:
        check_release(verify(path, ["q"], ["s"], limits), 30, 2, limits)
    faults = ["β 0.2000 for s", "a value of s with a share of 0.8667 of a class", "t 0.0333 for s"]
    for fault in [*faults, "recursive c 6.5000 at l 2 for s", "a class with 2 values of s"]:
        assert fault in str(error.value)


def test_records_and_classes_that_are_not_those_planned():
    found = Verified(10, 2, 5, {}, {}, {}, {})
    check_release(found, 10, 2, [{"model": "k", "k": 5}])
    with pytest.raises(VeilmarkError, match=r"10 records instead of 1,200; 2 classes instead of 3; a class of 5"):
        check_release(found, 1200, 3, [{"model": "k", "k": 6}])


# --- what cannot be checked is said ------------------------------------------------------------------------

ROWS = [dict.fromkeys([*QUASI, "größe"], "a") | {"size": s} for s in ["10", "30", "30", "200"]]


def test_what_needs_a_population_or_persons_is_unchecked():
    limits = [KAnonymity(3).to_dict(), KMap(9).to_dict(), DeltaPresence(0, 0.1).to_dict(), Alpha("size", 0.1).to_dict()]
    found = written(ROWS, "parquet", limits=limits[:3])
    assert [f.limit["model"] for f in found.unchecked] == ["k_map", "delta_presence"]
    assert keeps(found, limits[:3])
    found = written(ROWS, "parquet", limits=limits, persons=True)
    assert [f.limit for f in found.unchecked] == limits
    assert keeps(found, limits)
    assert not keeps(found, [KAnonymity(5).to_dict()])
    assert json.loads(json.dumps(found.to_dict()))["limits"][3] == limits[3] | {
        "found": None,
        "unchecked": "it counts persons, but the file has no person column",
    }


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"distance": "ordered"}, "the order of its values is not given"),
        ({"distance": "hierarchical"}, "the hierarchy of its values is not given"),
        ({"distance": "ordered", "order": ["10", "30"]}, "the file has values that are not among those given for it"),
        ({"distance": "hierarchical", "paths": {"10": ["*"]}}, "the file has values that are not among those given"),
    ],
)
def test_a_distance_without_what_it_takes_is_unchecked(more, why):
    (found,) = written(ROWS, "duckdb", limits=[{"model": "t", "attribute": "size", "t": 0.0, **more}]).unchecked
    assert why in found.unchecked
    assert found.worst is None


def test_a_limit_nobody_knows_is_unchecked_and_one_nobody_measured_is_a_fault():
    limit = {"model": "m", "attribute": "size", "m": 3}
    assert written(ROWS, "duckdb", limits=[limit]).unchecked[0].limit == limit
    with pytest.raises(VeilmarkError, match="its limit on size was not measured"):
        check_release(written(ROWS, "duckdb"), 4, 1, [DistinctL("size", 1).to_dict()])


# --- files -------------------------------------------------------------------------------------------------


def test_numbers_are_found_however_they_are_written(tmp_path):
    table = pa.table({"q": ["a", "a", "b", "b"], "s": [10.0, 30.0, 1e20, math.nan]})
    order = ["10", "30", "100000000000000000000"]
    limit = {"model": "t", "attribute": "s", "t": 0.1, "distance": "ordered", "order": order}
    texts = table.set_column(1, "s", pa.array(["10.00", "30.0", "1e+20", None]))
    for data, name in [(table, "out.parquet"), (texts, "out.csv")]:
        path = write(data, tmp_path / name, "parquet" if name.endswith("parquet") else "duckdb")
        assert verify(path, ["q"], ["s"], [limit]).limits[0].worst == pytest.approx((1 / 4 + 1 / 2 + 1 / 4) / 3)


def test_empty_texts_and_not_a_numbers_are_missing(tmp_path):
    table = pa.table({"q": ["", None, "a"], "s": ["x", "", None], "f": [math.nan, None, 1.0]})
    for how, name in [("parquet", "a.parquet"), ("duckdb", "a.csv")]:
        path = write(table, tmp_path / name, how)
        assert verify(path, ["q"], ["s"]).distinct == {"s": 1}
        assert (verify(path, ["q"], []).k, verify(path, ["q", "s"], []).classes) == (1, 3)
    assert verify(tmp_path / "a.parquet", [], ["f"]).distinct == {"f": 2}


def test_the_names_of_folders_are_no_patterns_and_no_columns(tmp_path):
    folder = tmp_path / "q=z" / "[a]*?"
    folder.mkdir(parents=True)
    (tmp_path / "q=z" / "axx").mkdir()
    for name, how in [("it's.csv", "duckdb"), ("it's.parquet", "parquet")]:
        table = pa.table({"q": ["a", "a", "b"]})
        write(table, tmp_path / "plain", how).rename(folder / name)
        write(table, tmp_path / "plain", how).rename(tmp_path / "q=z" / "axx" / name)
        assert verify(folder / name, ["q"], []) == Verified(3, 2, 1, {}, {}, {}, {})


def test_one_column_with_missing_values(tmp_path):
    path = write(pa.table({"q": [None, "a", None]}), tmp_path / "out.csv", "duckdb")
    assert verify(path, ["q"], []) == Verified(3, 2, 1, {}, {}, {}, {})
    assert verify(path, [], []) == Verified(3, 1, 3, {}, {}, {}, {})


@pytest.mark.parametrize("how", ["duckdb", "parquet"])
@pytest.mark.parametrize("quasi", [[], QUASI])
def test_a_file_without_records(how, quasi):
    limits = [
        KAnonymity(3).to_dict(),
        KMap(2).to_dict(),
        *(m.to_dict() for m in [DistinctL("size", 2), Alpha("size", 0.1)]),
    ]
    population = pa.table({**{q: ["a"] for q in quasi}, "n": [5]})
    found = written([], how, quasi, limits=limits, population=population)
    assert found == replace(found, records=0, classes=0, k=0, distinct={"size": 0, "größe": 0})
    assert [f.worst for f in found.limits] == [None] * 4
    assert keeps(found, limits)


def test_a_file_that_cannot_be_read_back(tmp_path):
    (tmp_path / "out.csv").write_text('q,s\na,b,c\n"secret', encoding="utf-8")
    with pytest.raises(VeilmarkError, match="could not be read back") as error:
        verify(tmp_path / "out.csv", ["q"], ["s"])
    assert "secret" not in str(error.value)
    (tmp_path / "out.csv").write_text("")
    with pytest.raises(VeilmarkError, match="could not be read back"):
        verify(tmp_path / "out.csv", ["q"], [])
    (tmp_path / "out.csv").write_text("q\na\n")
    with pytest.raises(VeilmarkError, match="lacks the column 's'"):
        verify(tmp_path / "out.csv", ["q"], ["s"])


def imported(of):
    """What a module imports beside the standard library."""
    tree = ast.parse(Path(of.__file__).read_text(encoding="utf-8"))
    names = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    names |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    return {n for n in names if n.split(".")[0] not in sys.stdlib_module_names}


def test_it_shares_no_code_with_what_it_checks():
    assert imported(module) == {
        "duckdb",
        "pyarrow",
        "veilmark.errors",
        "veilmark.privacy.unchanged",
        "veilmark.scratch",
    }
    assert imported(unchanged) == {"veilmark.readable"}
    assert imported(readable) == set()

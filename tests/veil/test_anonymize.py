"""Releases as files: what is written is what was planned, and holds what was promised."""

from __future__ import annotations

import itertools
import json
import warnings
from collections import Counter, defaultdict

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.cli import show_anonymize
from veilmark.cli.main import main
from veilmark.errors import DataError, HierarchyError, OptionError, StudyError, VeilmarkError, VeilmarkWarning
from veilmark.hierarchy import parse_spec, resolve
from veilmark.privacy.models import DeltaPresence, DistinctL, KAnonymity, KMap, TCloseness
from veilmark.study.study import Study
from veilmark.tables.domain import Domain
from veilmark.tables.recoding import Recoding
from veilmark.veil import planning
from veilmark.veil.anonymize import Microaggregation
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.verify import Verified, verify
from veilmark.workbench import anonymize as anonymize_verb
from veilmark.workbench.anonymize import Limits, anonymize, models_of

RNG = np.random.default_rng(3)
ROWS = 400
SOURCE = pa.table(
    {
        "name": [f"N{i}" for i in range(ROWS)],
        "key": pa.array(RNG.choice(["01234", "01239", "02111", "02119", ""], ROWS)),
        "age": pa.array(RNG.integers(20, 60, ROWS), pa.int16()),
        "sex": pa.array(RNG.choice(["F", "M", None], ROWS).tolist(), pa.string()),
        "diagnosis": RNG.choice(["u", "v", "w"], ROWS),
        "cost": RNG.integers(1, 99, ROWS),
    }
)
ROLES = {
    "name": "direct",
    "key": {"role": "quasi", "hierarchy": {"mask": 5}},
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
    "sex": "quasi",
    "diagnosis": "sensitive",
    "cost": "other",
}
STUDY = Study.of(SOURCE, ROLES)
QUASI = ["key", "age", "sex"]


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    types = pa_csv.ConvertOptions(strings_can_be_null=True, column_types=dict.fromkeys(QUASI, pa.string()))
    return pa_csv.read_csv(path, convert_options=types).to_pylist()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_ola_writes_exactly_the_recoded_unsuppressed_records(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    got = anonymize(STUDY, [KAnonymity(6)], path, Ola(suppression=0.1))
    levels = got.plan.recoding.levels

    def labels(column):
        domain = Domain.of(SOURCE[column].combine_chunks().unique(), column)
        of = resolve(STUDY.spec.attributes[column].hierarchy, domain, column)
        texts = of.of_values(levels[column]).to_pylist()
        return [texts[code] for code in domain.codes_of(SOURCE[column].combine_chunks())]

    recoded = list(zip(*map(labels, QUASI), strict=True))
    sizes = Counter(recoded)
    want = Counter(
        (*key, row["diagnosis"], row["cost"])
        for key, row in zip(recoded, SOURCE.to_pylist(), strict=True)
        if sizes[key] >= 6
    )
    rows = read(path)
    assert Counter(tuple(row.values()) for row in rows) == want
    assert list(rows[0]) == ["key", "age", "sex", "diagnosis", "cost"]
    assert got.records + got.plan.suppressed == ROWS
    assert got.k == min(v for v in sizes.values() if v >= 6)


@pytest.mark.parametrize("relaxed", [False, True])
def test_mondrian_keeps_every_record_and_its_promise(tmp_path, relaxed):
    path = tmp_path / "out.parquet"
    models = [KAnonymity(5), DistinctL("diagnosis", 2), TCloseness("diagnosis", 0.5)]
    got = anonymize(STUDY, models, path, Mondrian(relaxed=relaxed))
    rows = read(path)
    classes = Counter(tuple(row[c] for c in QUASI) for row in rows)
    assert len(rows) == ROWS
    assert got.k == min(classes.values()) >= 5
    assert got.verified.distinct["diagnosis"] >= 2
    assert got.verified.t["diagnosis"] <= 0.5
    assert 0 <= got.plan.loss["gcp"] <= 1
    assert Counter(row["cost"] for row in rows) == Counter(SOURCE["cost"].to_pylist())


def test_persons_are_what_k_counts_and_their_column_is_left_out(tmp_path, capsys):
    visits = SOURCE.append_column("id", pa.array([str(i // 4) for i in range(ROWS)]))
    constant = pa.array([visits["key"][i // 4 * 4].as_py() for i in range(ROWS)])
    visits = visits.set_column(1, "key", constant)
    study = Study.of(visits, {"name": "direct", "key": {"role": "quasi", "hierarchy": {"mask": 5}}}, person="id")
    got = anonymize(study, [KAnonymity(5)], tmp_path / "out.csv")
    assert got.k >= 5
    assert got.verified.k == got.to_dict()["k_records"] == 4 * got.k
    show_anonymize.anonymized(got)
    assert f"k = {got.k}: the smallest class has {got.k} persons." in capsys.readouterr().out
    assert "id" not in read(tmp_path / "out.csv")[0]


def test_a_recoding_can_be_saved_and_opened(tmp_path):
    for method in (Ola(suppression=0.1), Mondrian()):
        anonymize(STUDY, [KAnonymity(6)], tmp_path / "o.csv", method, tmp_path / "rules.json")
        again = Recoding.open(tmp_path / "rules.json")
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_text() == (tmp_path / "rules.json").read_text()
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(DataError, match=r"bad\.json' cannot be read as a recoding"):
        Recoding.open(tmp_path / "bad.json")


def test_a_file_that_breaks_its_promise_is_not_published(tmp_path, monkeypatch):
    lying = Verified(ROWS, 3, 1, {"diagnosis": 1}, {"diagnosis": 1.0}, {"diagnosis": 0.1}, {"diagnosis": 1.0})
    monkeypatch.setattr(anonymize_verb, "verify", lambda *_: lying)
    with pytest.raises(VeilmarkError, match="does not meet the guarantees"):
        anonymize(STUDY, [KAnonymity(5)], tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


def test_verify_measures_a_file_by_itself(tmp_path):
    pa_csv.write_csv(pa.table({"a": ["x", "x", "y", "y", None], "s": ["u", "v", "u", "u", "v"]}), tmp_path / "v[1].csv")
    got = verify(tmp_path / "v[1].csv", ["a"], ["s"])
    assert (got.records, got.classes, got.k, got.distinct["s"]) == (5, 3, 1, 1)
    assert got.t["s"] == pytest.approx(0.6)
    assert got.entropy["s"] == pytest.approx(1.0)


def test_limits_on_what_is_not_sensitive():
    with pytest.raises(OptionError, match=r"'diagnosi' is not a sensitive attribute.*Did you mean 'diagnosis'"):
        models_of(STUDY, Limits(l={"diagnosi": 2}))
    with pytest.raises(OptionError, match="l must be a whole number"):
        models_of(STUDY, Limits(l={"diagnosis": 2.5}))


def test_the_output_may_not_be_the_source(tmp_path):
    pa_csv.write_csv(SOURCE, tmp_path / "d.csv")
    study = Study.of(tmp_path / "d.csv", ROLES)
    with pytest.raises(OptionError, match="one of the input files"):
        anonymize(study, [KAnonymity(2)], tmp_path / "d.csv")


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(SOURCE, tmp_path / "d.csv")
    Study.of("d.csv", ROLES).save("study.yaml")
    options = ["--k", "4", "--suppress", "0.1", "--loss", "gcp", "--level", "sex=0", "--level", "key=0-3"]
    assert main(["anonymize", "study.yaml", *options, "-o", "out.csv", "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert got["levels"]["sex"] == 0
    assert {"dm_star", "precision", "dm", "gcp", "entropy", "lm"} <= set(got["loss"])
    assert main(["anonymize", "study.yaml", "--method", "mondrian", "--l", "diagnosis=2", "-o", "m.parquet"]) == 0
    assert "measured in the written file" in capsys.readouterr().out
    assert main(["anonymize", "study.yaml", "--method", "mondrian", "--suppress", "0.1", "-o", "x.csv"]) == 2
    assert main(["anonymize", "study.yaml", "--l", "diagnosis", "-o", "x.csv"]) == 2
    assert "such as diagnosis=3" in capsys.readouterr().err
    assert not (tmp_path / "x.csv").exists()


# From Python.


def test_a_method_carries_its_limits_and_the_release_comes_back():
    models = (DistinctL("diagnosis", 2),)
    got = STUDY.anonymize(Ola(k=4, suppression=0.1, models=models))
    rows = got.table().to_pylist()
    classes = Counter(tuple(row[c] for c in QUASI) for row in rows)
    assert got.output is None
    assert got.k == min(classes.values()) >= 4
    assert len(rows) == got.records == ROWS - got.plan.suppressed
    assert [m["model"] for m in got.to_dict()["models"]] == ["k", "l"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_release_reads_back_from_its_file(tmp_path, suffix):
    kept = STUDY.anonymize(Ola(k=4), seed=1).table()
    written = STUDY.anonymize(Ola(k=4), tmp_path / f"o{suffix}", seed=1).table()
    assert written.column_names == kept.column_names
    assert written["age"].to_pylist() == kept["age"].to_pylist()


@pytest.mark.parametrize("frame", [pa.Table.to_pandas, pl.from_arrow, lambda t: duckdb.connect().from_arrow(t)])
def test_frames_of_all_kinds(frame):
    got = Study.of(frame(SOURCE), ROLES).anonymize(Mondrian(k=5))
    assert got.table().num_rows == ROWS
    assert got.k >= 5


def test_something_must_be_asked_for():
    with pytest.raises(OptionError, match="Say what the release must meet"):
        STUDY.anonymize(Ola())
    with pytest.raises(OptionError, match="The loss dm_star depends on class sizes"):
        STUDY.anonymize(Ola(k=2, loss="dm_star", weights={"age": 2}))
    with pytest.raises(StudyError, match="has no person column"):
        STUDY.anonymize(Ola(k=2, unit="persons"))


def test_t_follows_the_study_s_distance():
    costs = {**ROLES, "diagnosis": "other", "cost": {"role": "sensitive", "distance": "ordered"}}
    got = Study.of(SOURCE, costs).anonymize(Ola(k=3, models=(TCloseness("cost", 0.15),)))
    assert got.to_dict()["models"][1]["distance"] == "ordered"
    assert got.verified.limits[1].unchecked is None
    assert got.verified.limits[1].worst <= 0.15


def test_outputs_may_not_be_one_file_nor_an_input(tmp_path):
    pa_csv.write_csv(SOURCE, tmp_path / "d.csv")
    study = Study.of(tmp_path / "d.csv", ROLES)
    with pytest.raises(OptionError, match="used for two outputs"):
        study.anonymize(Ola(k=2), tmp_path / "o.csv", recoding=tmp_path / "o.csv")
    with pytest.raises(OptionError, match="one of the input files"):
        study.anonymize(Ola(k=2), tmp_path / "o.csv", recoding=tmp_path / "d.csv")


# Against a slow search over all nodes, on rows.

HIERARCHIES = {"z": {"mask": 2}, "g": {"levels": [{"F": "P", "M": "P", "X": "Q"}]}}
VALUES = {"z": ["11", "12", "21", "22"], "g": ["F", "M", None]}
SMALL = {c: {"role": "quasi", "hierarchy": h} for c, h in HIERARCHIES.items()}


def generalized(row, node):
    z, g = row["z"], row["g"]
    coarse = {"F": "P", "M": "P", "X": "Q", None: None}
    return (z[: 2 - node[0]] + "*" * node[0], (g, coarse[g], "*")[node[1]])


def best_node(rows, fails, counts):
    """The least Σ|E|² over nodes whose failing records `counts` allows, tried one by one."""
    best = None
    for node in itertools.product(range(3), range(3)):
        keys = [generalized(row, node) for row in rows]
        lost = [i for i, key in enumerate(keys) if fails(key, node, keys)]
        if counts(lost):
            loss = sum(n**2 for n in Counter(keys).values())
            best = loss if best is None else min(best, loss)
    return best


ROW = {c: st.sampled_from(v) for c, v in VALUES.items()}
PERSON_ROW = st.fixed_dictionaries(ROW | {"id": st.sampled_from("abcdefgh")})
EVERYBODY = st.fixed_dictionaries({"z": st.sampled_from(["11", "12", "21", "31"]), "g": st.sampled_from(["F", "X"])})


def frame(rows, columns):
    return pa.table({c: pa.array([row[c] for row in rows], pa.string()) for c in columns})


@settings(max_examples=examples(25))
@given(
    rows=st.lists(st.fixed_dictionaries(ROW), min_size=1, max_size=15),
    others=st.lists(EVERYBODY, min_size=1, max_size=15),
    limit=st.sampled_from([0.0, 0.3]),
    model=st.sampled_from([KMap(4), DeltaPresence(0.2, 0.7), DeltaPresence(0.0, 0.5)]),
)
def test_models_about_a_population(rows, others, limit, model):
    everybody = rows[: len(rows) // 2] + others

    def fails(key, node, keys):
        size = keys.count(key)
        linked = max(size, sum(generalized(row, node) == key for row in everybody))
        return linked < 4 if isinstance(model, KMap) else not model.low <= size / linked <= model.high

    want = best_node(rows, fails, lambda lost: len(lost) <= limit * len(rows) + 1e-9)
    study, people = Study.of(frame(rows, VALUES), SMALL), frame(everybody, VALUES)
    method = Ola(suppression=limit, loss="dm_star", models=(model,))
    if want is None:
        with pytest.raises(OptionError, match=r"No generalization reaches|cannot be reached"):
            study.anonymize(method, population=people)
        return
    got = study.anonymize(method, population=people)
    assert got.plan.loss["dm_star"] == want
    node = tuple(got.plan.recoding.levels.values())
    keys = [generalized(row, node) for row in rows]
    assert Counter(key for key in keys if not fails(key, node, keys)) == Counter(
        (row["z"], row["g"]) for row in got.table().to_pylist()
    )


@settings(max_examples=examples(25))
@given(rows=st.lists(PERSON_ROW, min_size=2, max_size=20), limit=st.sampled_from([0.1, 0.3, 0.6]))
def test_suppression_by_persons_counts_who_loses_a_record(rows, limit):
    everyone = {row["id"] for row in rows}

    def fails(key, node, keys):
        return len({row["id"] for row, other in zip(rows, keys, strict=True) if other == key}) < 3

    want = best_node(rows, fails, lambda lost: len({rows[i]["id"] for i in lost}) <= limit * len(everyone) + 1e-9)
    study = Study.of(frame(rows, ["id", *VALUES]), SMALL, person="id")
    if want is None:
        with pytest.raises(OptionError, match="k = 3 cannot be reached" if len(everyone) < 3 else "No generalization"):
            study.anonymize(Ola(k=3, suppression=limit, loss="dm_star", unit="persons"))
        return
    got = study.anonymize(Ola(k=3, suppression=limit, loss="dm_star", unit="persons"))
    assert got.plan.loss["dm_star"] == want
    assert got.k >= 3


PEOPLE = frame([{"z": "11", "g": "F"}] * 5 + [{"z": "99", "g": "X"}], VALUES)
FEW = Study.of(frame([{"z": "11", "g": "F"}, {"z": "11", "g": "M"}], VALUES), SMALL)


def test_a_population_that_does_not_fit():
    k_map = Ola(models=(KMap(2),))
    with pytest.raises(OptionError, match="none is given"):
        FEW.anonymize(k_map)
    with pytest.raises(OptionError, match="no condition uses it"):
        FEW.anonymize(Ola(k=1), population=PEOPLE)
    with pytest.raises(OptionError, match="Mondrian does not support limits that need a population"):
        FEW.anonymize(Mondrian(models=(KMap(2),)), population=PEOPLE)
    with pytest.raises(HierarchyError, match=r"In the population: .*'Y'"):
        FEW.anonymize(k_map, population=frame([{"z": "11", "g": "Y"}], VALUES))
    with pytest.raises(DataError, match="has no column 'g'"):
        FEW.anonymize(k_map, population=PEOPLE.select(["z"]))
    twice = frame([{"id": "a", "z": "11", "g": "F"}, {"id": "a", "z": "12", "g": "F"}], ["id", *VALUES])
    with pytest.raises(DataError, match="Keep one record of each person"):
        Study.of(twice, SMALL, person="id").anonymize(k_map, population=twice)


def test_a_population_may_be_written_otherwise():
    source = pa.table({"a": pa.array([30, 30, 41], pa.int16())})
    everybody = pa.table({"a": ["30.0", "30.0", "30.0", "41.0", "42", "7.5"]})
    study = Study.of(source, {"a": {"role": "quasi", "hierarchy": {"intervals": [10]}}})
    got = study.anonymize(Ola(loss="gcp", models=(KMap(2),)), population=everybody, order="keep")
    assert got.plan.recoding.levels == {"a": 1}
    assert got.table()["a"].to_pylist() == ["[30, 40)", "[30, 40)", "[40, 50)"]


# Microaggregation.


@pytest.mark.parametrize("gamma", [None, 0.2])
def test_microaggregation_publishes_the_means_of_groups(gamma):
    roles = {"name": "direct", "age": "quasi", "cost": "quasi", "key": "other"}
    got = Study.of(SOURCE.select(list(roles)), roles).anonymize(Microaggregation(gamma, k=7), order="keep")
    release = got.table()
    assert release.schema.field("age").type == pa.float64()
    for column in ("age", "cost"):
        assert np.mean(release[column]) == pytest.approx(np.mean(SOURCE[column]), rel=1e-4)
    groups = defaultdict(list)
    for before, after in zip(SOURCE.to_pylist(), release.to_pylist(), strict=True):
        groups[after["age"], after["cost"]].append((before["age"], before["cost"]))
    assert got.k == min(map(len, groups.values())) >= 7
    for mean, members in groups.items():
        assert mean == pytest.approx(tuple(np.mean(members, axis=0)), abs=1e-3)


def test_what_microaggregation_cannot_do():
    with pytest.raises(StudyError, match="'sex' contains values that are not numbers"):
        Study.of(SOURCE, {"age": "quasi", "sex": "quasi"}).anonymize(Microaggregation(k=5))
    ages = Study.of(SOURCE, {"age": "quasi", "diagnosis": "sensitive"})
    with pytest.raises(OptionError, match="Microaggregation guarantees only k"):
        ages.anonymize(Microaggregation(k=5, models=(DistinctL("diagnosis", 2),)))
    lacking = pa.table({"age": [1, 2, None, 4]})
    with pytest.raises(DataError, match="'age' is missing in some records"):
        Study.of(lacking, {"age": "quasi"}).anonymize(Microaggregation(k=2))
    wander = Study.of(pa.table({"id": ["a", "a", "b"], "age": [1, 2, 3]}), {"age": "quasi"}, person="id")
    with pytest.raises(DataError, match="different quasi-identifiers"):
        wander.anonymize(Microaggregation(k=2))


@pytest.mark.parametrize("method", [Ola(k=2), Mondrian(k=2)])
@pytest.mark.parametrize("rows", [7, 40, 400])
def test_rows_may_keep_the_source_s_order(method, rows):
    shuffled = np.random.default_rng(rows).permutation(rows)
    table = pa.table({"age": shuffled % 30, "row": np.arange(rows)})
    roles = {"age": {"role": "quasi", "hierarchy": {"intervals": [5]}}, "row": "other"}
    order = Study.of(table, roles).anonymize(method, order="keep").table()["row"].to_pylist()
    assert order == sorted(order)


# Tables that are hard.


def test_numbers_without_a_hierarchy_are_offered_one(tmp_path):
    incomes = pa.table({"income, yearly": np.arange(1_500) * 37 + 12_000, "sex": ["F", "M", "M"] * 500})
    study = Study.of(incomes, {"income, yearly": "quasi", "sex": "quasi"})
    with pytest.warns(VeilmarkWarning, match="1,500 different numbers and no hierarchy") as caught:
        study.anonymize(Ola(k=5))
    line = str(caught[0].message).partition("attributes: in the study: ")[2]
    given = yaml.safe_load(f"{{{line}}}")
    assert list(given) == ["income, yearly"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        better = Study.of(incomes, {**given, "sex": "quasi"}).anonymize(Ola(k=5, loss="gcp"))
    assert better.plan.recoding.levels["income, yearly"] < 4


@pytest.mark.parametrize("scale", [1e-4, 0.013, 1.0, 1e6])
def test_offered_intervals_suit_any_range(scale):
    numbers = np.random.default_rng(1).random(2_000).round(6) * scale
    spec = yaml.safe_load("{" + planning._offer("x", numbers) + "}")["x"]
    widths = parse_spec(spec["hierarchy"]).intervals
    assert 10 <= np.ptp(numbers) / widths[0] <= 110


def test_a_search_in_vain_offers_a_hierarchy_too():
    table = pa.table({"x": np.arange(1_100)})
    with pytest.raises(OptionError, match=r"No generalization.*no hierarchy.*intervals"):
        Study.of(table, {"x": "quasi"}).anonymize(Ola(k=2, levels={"x": 0}))


def test_nearly_unique_columns_work_and_are_told():
    table = pa.table({"code": [f"c{i}" for i in range(300)], "sex": ["F", "M"] * 150})
    study = Study.of(table, {"code": "quasi", "sex": "quasi"})
    for method in (Ola(k=5), Mondrian(k=5)):
        with pytest.warns(VeilmarkWarning, match="'code' has 300 values in 300 records"):
            assert study.anonymize(method).k >= 5


def test_quasi_identifiers_whose_values_outgrow_one_key():
    rng = np.random.default_rng(2)
    table = pa.table({f"x{i}": rng.permutation(9_000) for i in range(6)})
    study = Study.of(table, dict.fromkeys(table.column_names, "quasi"))
    with pytest.warns(VeilmarkWarning, match="most records are unique by it"):
        got = study.anonymize(Mondrian(k=50))
    assert got.records == 9_000
    assert len(got.plan.recoding.key_columns()) == 2


# The command.


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(SOURCE, tmp_path / "d.csv")
    Study.of("d.csv", ROLES).save("study.yaml")
    return tmp_path


def run(capsys, *words):
    code = main(["anonymize", "study.yaml", *words, "-o", "out.csv", "--json"])
    printed = capsys.readouterr()
    return json.loads(printed.out) if code == 0 else printed.err


def test_every_model_has_an_option(folder, capsys):
    pa_csv.write_csv(pa.concat_tables([SOURCE.select(QUASI)] * 2), "all.csv")
    models = ["--alpha", "diagnosis=0.9", "--beta", "diagnosis=2", "--delta", "diagnosis=2", "--t", "diagnosis=0.6"]
    got = run(capsys, "--k", "3", "--suppress", "0.3", *models, "--beta-kind", "enhanced")
    assert [m["model"] for m in got["models"]] == ["k", "t", "alpha", "enhanced_beta", "delta_disclosure"]
    got = run(capsys, "--k-map", "6", "--presence", "0.1:0.5", "--population", "all.csv", "--suppress", "0.1")
    assert got["models"] == [{"model": "k_map", "k": 6}, {"model": "delta_presence", "low": 0.1, "high": 0.5}]
    assert got["k"] == 3
    got = run(capsys, "--l", "diagnosis=2", "--l-kind", "recursive", "--c", "4")
    assert [m["model"] for m in got["models"]] == ["k", "recursive_l"]


def test_options_of_the_methods(folder, capsys):
    weighted = run(capsys, "--k", "3", "--loss", "gcp", "--weight", "age=50", "--weight", "key=0.1")
    plain = run(capsys, "--k", "3", "--loss", "gcp", "--weight", "age=0.1", "--weight", "key=50")
    assert weighted["levels"]["age"] < plain["levels"]["age"]
    assert run(capsys, "--k", "3", "--method", "mondrian", "--relaxed")["suppressed"] == 0
    assert "belongs to --method mondrian" in run(capsys, "--relaxed")
    assert "belongs to --method microaggregate" in run(capsys, "--gamma", "0.2")
    assert "It belongs to --method ola" in run(capsys, "--method", "mondrian", "--weight", "age=2")
    assert "such as 0.1:0.5" in run(capsys, "--presence", "0.1")
    assert "--population" in run(capsys, "--k-map", "5")
    assert "has no person column" in run(capsys, "--suppress-unit", "persons")
    Study.of("d.csv", {"name": "direct", "age": "quasi"}).save("study.yaml")
    got = run(capsys, "--method", "microaggregate", "--gamma", "0.2", "--k", "10")
    assert got["method"] == "microaggregate"
    assert got["k"] >= 10


def test_a_file_with_another_column_is_not_published(tmp_path, monkeypatch):
    monkeypatch.setattr(anonymize_verb, "written_columns", lambda _: ["key", "age", "sex", "diagnosis", "cost", "name"])
    with pytest.raises(VeilmarkError, match="does not have the expected columns"):
        anonymize(STUDY, [KAnonymity(5)], tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("unnamed", ["leave-out", "other"])
def test_columns_of_a_file_that_the_study_does_not_name_are_told_of(tmp_path, suffix, unnamed, capsys):
    named = {name: role for name, role in ROLES.items() if name != "cost"}
    study = Study.of(SOURCE, named, unnamed=unnamed)
    got = anonymize(study, [KAnonymity(5)], tmp_path / f"out{suffix}", Ola(suppression=0.1))
    there = anonymize_verb.written_columns(tmp_path / f"out{suffix}")
    show_anonymize.anonymized(got)
    said = " ".join(capsys.readouterr().out.split())
    if unnamed == "other":
        assert there == [*QUASI, "diagnosis", "cost"]
        assert (got.as_is, got.columns_left_out) == (("cost",), ())
        assert "because the study has `unnamed: other`: cost." in said
    else:
        assert there == [*QUASI, "diagnosis"]
        assert (got.as_is, got.columns_left_out) == ((), ("cost",))
        assert "because the study does not name them: cost." in said
        assert "write `unnamed: other` at the top of the study" in said

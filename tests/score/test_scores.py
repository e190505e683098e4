"""Scores against the paper's tables and against its formulas in plain Python."""

from __future__ import annotations

import math

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from score.score_oracle import record_factors, scores, table_factors
from strength import examples
from veilmark.errors import DataError, OptionError, StudyError
from veilmark.score.scores import Options
from veilmark.study.study import Study
from veilmark.workbench.score import score as run_score

WEIGHTS = {"Migraine": 0.05472, "Flu": 0.05472, "Hypertension": 0.10944, "HIV": 0.21888}
TABLE_1A = (
    "Calgary Female Flu,Calgary Female Migraine,Edmonton Male HIV,"
    "Edmonton Male Hypertension,Edmonton Female HIV,Edmonton Female Migraine"
)
TABLE_2A = (
    "Calgary Female HIV,Calgary Female Flu,Edmonton Male HIV,Edmonton Male Flu,Edmonton Female HIV,Edmonton Female HIV"
)

# Rows 0 to 5: normalized tkl, M (x = 1), L-Severity of Tables 1b, 2b; raw tkl, M, L-Severity, DF_t, DF_l of 1d, 2c.
PRINTED = {
    TABLE_1A: (
        """0.1642 0.0417 0.0769   0.27736 0.02736 0.02736 0.5 2
        0.1642 0.0417 0.0769   0.27736 0.02736 0.02736 0.5 2
        0.2128 0.1667 0.3077   0.35944 0.10944 0.10944 0.5 2
        0.1804 0.0833 0.1538   0.30472 0.05472 0.05472 0.5 2
        0.1635 0.1667 0.3077   0.27611 0.10944 0.10944 0.33333 2
        0.1149 0.0417 0.0769   0.19403 0.02736 0.02736 0.33333 2"""
    ),
    TABLE_2A: (
        """0.1126 0.1667 0.2222   0.19277 0.10944 0.10944 0.16667 2
        0.0647 0.0417 0.0556   0.11069 0.02736 0.02736 0.16667 2
        0.1126 0.1667 0.2222   0.19277 0.10944 0.10944 0.16667 2
        0.0647 0.0417 0.0556   0.11069 0.02736 0.02736 0.16667 2
        0.3227 0.1667 0.2222   0.55221 0.10944 0.10944 0.33333 1
        0.3227 0.1667 0.2222   0.55221 0.10944 0.10944 0.33333 1"""
    ),
}


def paper_study(lines):
    rows = [line.split() for line in lines.split(",")]
    table = pa.table({c: [r[i] for r in rows] for i, c in enumerate(("City", "Gender", "Diagnosis"))})
    table = table.append_column("Job", pa.array(["Lawyer"] * len(rows)))
    present = set(table["Diagnosis"].to_pylist())
    weights = {v: w for v, w in WEIGHTS.items() if v in present}
    roles = {"Job": "quasi", "City": "quasi", "Gender": "quasi", "Diagnosis": {"role": "sensitive", "weights": weights}}
    return Study.of(table, roles), table


@pytest.mark.parametrize("lines", PRINTED, ids=["Table 1", "Table 2"])
def test_the_paper_s_tables_to_the_printed_digit(lines):
    study, table = paper_study(lines)
    for i, printed in enumerate(PRINTED[lines].splitlines()):
        result = study.score(table.slice(i, 1))
        got, worst = result.scores, result.worst[0]
        names = ("tkl", "m", "l_severity")
        normalized = [round(got[s].normalized, 4) for s in names]
        raw = [round(got[s].value, 5) for s in names]
        assert [*normalized, *raw, round(worst.df_t, 5), worst.df_l] == [float(n) for n in printed.split()]
        assert worst.df_k == 2


QUASI, SENSITIVE = ("a", "b"), ("s", "t", "u")
VALUES = {"a": ["x", "y", None], "b": ["1", "2"], "s": ["p", "q", "r"], "t": ["p", "q"], "u": ["v", "w", None]}
WEIGHT = {"s": {"p": 0.1, "q": 0.9, "r": 0.0}, "t": {"p": 0.3, "q": 0.6}, "u": {"v": 0.2, "w": 0.7, "": 0.05}}


@st.composite
def cases(draw):
    quasi = QUASI[: draw(st.integers(0, 2))]
    sensitive = SENSITIVE[: draw(st.integers(1, 3))]
    names = [*quasi, *sensitive, "id"]
    row = st.fixed_dictionaries({n: st.sampled_from(VALUES.get(n, ["i", "j", "k"])) for n in names})
    rows = draw(st.lists(row, min_size=1, max_size=30))
    chosen = draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=len(rows), unique=True))
    person = "id" if quasi and draw(st.booleans()) else None
    x = draw(st.sampled_from([1.0, 1.5, 3.0, math.inf]))
    return rows, chosen, list(quasi), list(sensitive), person, Options(x=x, cap=draw(st.booleans()))


def as_table(rows):
    return pa.table({c: pa.array([r[c] for r in rows], pa.string()) for c in rows[0]})


@pytest.mark.filterwarnings("ignore::veilmark.errors.VeilmarkWarning")
@settings(max_examples=examples(60))
@given(cases())
def test_scores_are_the_paper_s_formulas(case):
    rows, chosen, quasi, sensitive, person, options = case
    roles = dict.fromkeys(quasi, "quasi") | {s: {"role": "sensitive", "weights": WEIGHT[s]} for s in sensitive}
    study = Study.of(as_table(rows), roles, person=person)
    published = [rows[i] for i in chosen]
    got = study.score(as_table(published).select([*reversed(sensitive), *quasi]), options)

    def weight(row):
        return sum(WEIGHT[s][row[s] or ""] for s in sensitive)

    def scored(indexes):
        part = [rows[i] for i in indexes]
        if quasi:
            factors = record_factors(rows, quasi, sensitive, person)
            factors = [factors[i] for i in indexes]
        else:
            factors = table_factors(part, sensitive)
        return scores([(weight(r), *f) for r, f in zip(part, factors, strict=True)], options.x, options.cap)

    want, whole = scored(chosen), scored(range(len(rows)))
    for name, score in got.scores.items():
        assert score.value == pytest.approx(want[name], rel=1e-9, abs=1e-12)
        if whole[name]:
            assert score.normalized == pytest.approx(want[name] / whole[name], rel=1e-9)
    assert got.from_weights + got.from_closeness == pytest.approx(got.scores["tkl"].value)
    assert got.worst[0].tkl == max(r.tkl for r in got.worst)


@pytest.fixture
def study():
    return paper_study(TABLE_1A)[0]


def test_normalized_by_the_worst_record(study):
    part = pa.table({"Job": ["Lawyer"], "City": ["Edmonton"], "Gender": ["Female"], "Diagnosis": ["HIV"]})
    got = study.score(part, Options(x=math.inf, normalize="record")).scores
    assert got["m"].normalized == 1.0
    assert got["tkl_max"].normalized == pytest.approx(0.27611 / 0.35944, rel=1e-4)
    assert got["tkl"].normalized is None
    assert study.score(part, Options(x=2, normalize="record")).scores["m"].normalized is None


def test_normalized_by_the_theoretical_maximum(study):
    got = study.score(options=Options(x=2, normalize="theory")).scores
    assert got["m"].normalized == pytest.approx(0.10944 / 0.21888)
    assert got["l_severity"].normalized == pytest.approx(got["l_severity"].value / (6 * 0.21888))
    assert got["tkl"].normalized == pytest.approx(got["tkl"].value / (6 * 1.21888))
    assert got["tkl_max"].normalized == pytest.approx(0.35944 / 1.21888, rel=1e-4)


def test_records_that_the_source_does_not_have(study):
    part = pa.table(
        {"Job": ["Lawyer"] * 2, "City": ["Calgary"] * 2, "Gender": ["Male", "Female"], "Diagnosis": ["Flu", "Flu"]}
    )
    with pytest.raises(DataError, match=r"1 of the 2 records .* are not in the source"):
        study.score(part)
    got = run_score(study, part, skip_unknown=True)
    assert (got.records, got.unknown_records) == (1, 1)
    assert got.scores["tkl"].value == pytest.approx(0.27736)


def test_more_copies_than_the_source_has(study):
    twice = pa.table(
        {"Job": ["Lawyer"] * 2, "City": ["Calgary"] * 2, "Gender": ["Female"] * 2, "Diagnosis": ["Flu"] * 2}
    )
    with pytest.raises(DataError, match="1 of the 2 records"):
        study.score(twice)
    assert run_score(study, twice, skip_unknown=True).records == 1


def test_the_cap_holds_everywhere(tmp_path):
    table = pa.table({"a": ["x", "x", "y"], "s": ["p", "q", "p"], "t": ["u", "u", "v"]})
    weights = {name: {"role": "sensitive", "weights": {"default": 0.9}} for name in "st"}
    study = Study.of(table, {"a": "quasi", **weights})
    got = run_score(study, options=Options(cap=True), records=tmp_path / "r.csv")
    assert got.worst[0].tkl == got.scores["tkl_max"].value
    assert sum(pa_csv.read_csv(tmp_path / "r.csv")["tkl"].to_pylist()) == pytest.approx(got.scores["tkl"].value)
    assert sum(c.tkl for c in got.top_classes) == pytest.approx(got.scores["tkl"].value)


def test_frames_and_files_of_the_same_values_match(tmp_path):
    frame = pd.DataFrame({"a": [30.0, 31.5, 30.0], "b": [True, False, True], "s": ["u", "v", "u"]})
    frame.to_csv(tmp_path / "d.csv", index=False)
    roles = {"a": "quasi", "b": "quasi", "s": {"role": "sensitive", "weights": {"default": 0.5}}}
    assert Study.of(frame, roles).score(tmp_path / "d.csv").records == 3
    assert Study.of(tmp_path / "d.csv", roles).score(frame).records == 3


def test_a_column_called_like_a_score(tmp_path):
    table = pa.table({"weight": [70, 80], "s": ["u", "v"]})
    study = Study.of(table, {"s": {"role": "sensitive", "weights": {"default": 0.5}}})
    with pytest.raises(DataError, match="already has a column 'weight'"):
        run_score(study, records=tmp_path / "r.csv")
    assert not list(tmp_path.iterdir())


def test_one_record_explained(study):
    record = {"Job": "Lawyer", "City": "Calgary", "Gender": "Female", "Diagnosis": "Flu"}
    assert study.explain(record).tkl == pytest.approx(0.27736)
    with pytest.raises(DataError, match="No record of the source"):
        study.explain({**record, "City": "Rome"})


def test_each_record_is_written_in_the_published_order(study, tmp_path):
    run_score(study, records=tmp_path / "r.csv")
    rows = pa_csv.read_csv(tmp_path / "r.csv")
    extra = ["weight", "df_k", "df_l", "df_t", "m", "l_severity", "tkl"]
    assert rows.column_names == ["City", "Gender", "Diagnosis", "Job", *extra]
    assert [round(v, 5) for v in rows["tkl"].to_pylist()] == [0.27736, 0.27736, 0.35944, 0.30472, 0.27611, 0.19403]
    assert rows["df_k"].to_pylist() == [2] * 6


def test_unknown_records_have_no_scores_in_the_file(study, tmp_path):
    part = pa.table(
        {"Job": ["x", "Lawyer"], "City": ["Calgary"] * 2, "Gender": ["Female"] * 2, "Diagnosis": ["Flu"] * 2}
    )
    run_score(study, part, records=tmp_path / "r.parquet", skip_unknown=True)
    assert pq.read_table(tmp_path / "r.parquet")["tkl"].to_pylist() == [None, pytest.approx(0.27736)]


@pytest.mark.parametrize("x", [0.5, 0, -1, math.nan])
def test_x_below_one(x):
    with pytest.raises(OptionError, match="x must be 1 or larger"):
        Options(x=x)


def test_a_study_without_sensitive_attributes():
    with pytest.raises(StudyError, match="has no sensitive attribute"):
        Study.of(pa.table({"a": [1]}), {"a": "quasi"}).score()


def test_a_record_explains_itself(study):
    worst = study.score().worst[0]
    assert worst.record == {"Job": "Lawyer", "City": "Edmonton", "Gender": "Male", "Diagnosis": "HIV"}
    assert str(worst).startswith("tkl 0.35944 = (0.5 for how its class stands out + 0.21888 (Diagnosis)) / 2")


def test_what_carries_the_score(study):
    got = study.score()
    assert got.top_classes[0].what == {"Job": "Lawyer", "City": "Edmonton", "Gender": "Male"}
    assert got.top_classes[0].tkl == pytest.approx(0.35944 + 0.30472)
    assert sum(c.share for c in got.top_classes) == pytest.approx(1)
    assert got.top_values[0].what == {"Diagnosis": "HIV"}
    assert got.top_values[0].records == 2


def test_an_empty_published_table(study):
    empty = pa.table({c: pa.array([], pa.string()) for c in ("Job", "City", "Gender", "Diagnosis")})
    got = study.score(empty)
    assert got.records == 0
    assert got.scores["tkl"].value == 0

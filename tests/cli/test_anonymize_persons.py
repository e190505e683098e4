"""`veilmark anonymize` with the methods for many records a person."""

from __future__ import annotations

import csv
import json
import os
import random

import pyarrow.parquet as pq
import pytest
import yaml

from veilmark.cli.main import main
from veilmark.reproduce.fslip import CHAPTERS, COLUMNS, RECORDS, SCHOOLS

pytestmark = pytest.mark.filterwarnings("default::veilmark.errors.VeilmarkWarning")

GROUPS = "salary,poverty;education,disease"


@pytest.fixture
def example(tmp_path):
    """The f-slip paper's records."""
    rows = [",".join(line.split()) for line in RECORDS.split("\n") if line]
    (tmp_path / "slip.csv").write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")
    attributes = {"name": {"role": "direct"}} | {name: {"role": "quasi"} for name in ("age", "zip", "gender")}
    attributes |= {name: {"role": "sensitive"} for name in ("salary", "poverty")}
    attributes["education"] = {"role": "sensitive", "hierarchy": {"levels": [SCHOOLS]}}
    attributes["disease"] = {"role": "sensitive", "hierarchy": {"levels": [CHAPTERS]}}
    return write_study(tmp_path, {"source": "slip.csv", "person": "id", "attributes": attributes})


def write_study(folder, content):
    (folder / "study.yaml").write_text(yaml.safe_dump({"version": 1, **content}, sort_keys=False))
    return folder / "study.yaml"


def run(study, *options, code=0):
    assert main(["anonymize", str(study), *map(str, options)]) == code


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_paper_by_the_command_line(example, tmp_path, capsys):
    run(
        example,
        "--method",
        "fslip",
        "--preset",
        "paper",
        "--k",
        2,
        "--groups",
        GROUPS,
        "-o",
        tmp_path / "out",
        "--json",
    )
    out, err = capsys.readouterr()
    got = json.loads(out)
    assert got["f"] == [3, 2]
    assert got["groups"] == [["salary", "poverty"], ["education", "disease"]]
    assert (got["persons"], got["output"]) == (6, str(tmp_path / "out"))
    assert {"ncp", "sa_ncp", "nil"} <= set(got["loss"])
    assert err.startswith("Note: 'poverty' has no hierarchy")
    assert [float(row["age"]) for row in read(tmp_path / "out" / "qi.csv")] == [16, 16, 23.5, 23.5, 24, 24]
    assert [row["disease"] for row in read(tmp_path / "out" / "sensitive_2.csv")][::2] == ["C|D", "D|G", "B|D|D"]


def test_text_for_a_person_and_parquet(example, tmp_path, capsys):
    run(example, "--method", "fslip", "--k", 2, "--link", "groups", "--format", "parquet", "-o", tmp_path / "out")
    out = capsys.readouterr().out
    assert "6 persons; quasi-identifiers and 2 sensitive tables, linked by gid." in out
    assert "k = " in out
    assert "sensitive_2" in out
    assert sorted(os.listdir(tmp_path / "out")) == ["qi.parquet", "sensitive_1.parquet", "sensitive_2.parquet"]
    assert pq.read_table(tmp_path / "out" / "qi.parquet").column_names == ["age", "zip", "gender", "gid_1", "gid_2"]


def test_f_l_and_seed(example, tmp_path, capsys):
    same = []
    for seed in (1, 1, 2):
        options = ["--k", 2, "--f", "2,6", "--l", 1, "--groups", GROUPS, "--seed", seed]
        run(example, "--method", "fslip", *options, "-o", tmp_path / "out", "--json")
        got = json.loads(capsys.readouterr().out)
        assert (got["f"], got["slices"]) == ([2, 6], [3, 1])
        same.append((tmp_path / "out" / "qi.csv").read_text())
    assert same[0] == same[1] != same[2]


@pytest.mark.parametrize("method", ["onemany", "rmr", "anatomy", "slicing"])
def test_the_other_methods(method, tmp_path, capsys):
    rng = random.Random(1)
    lines = [f"p{i % 80},{20 + i % 80 // 4},{'FM'[i % 2]},{rng.choice('ABCDEFGH')}" for i in range(160)]
    (tmp_path / "d.csv").write_text("\n".join(["id,age,sex,code", *lines]))
    attributes = {"age": {"role": "quasi"}, "sex": {"role": "quasi"}, "code": {"role": "sensitive"}}
    study = write_study(tmp_path, {"source": "d.csv", "person": "id", "attributes": attributes})
    size = ["--k", 3] if method != "anatomy" else ["--l", 2]
    run(study, "--method", method, *size, "-o", tmp_path / "out", "--json")
    got = json.loads(capsys.readouterr().out)
    assert got["method"] == method
    assert got["groups"] == [["code"]]
    assert len(read(tmp_path / "out" / "qi.csv")) == len(read(tmp_path / "out" / "sensitive_1.csv")) == 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "fslip", "--l", "salary=2"], "--l takes one number for this method, such as 2, not 'salary=2'"),
        (["--method", "anatomy", "--l", "1.5"], "--l must be a whole number for this method, not 1.5"),
        (["--method", "fslip", "--f", "many"], "--f takes a number of persons"),
        (
            ["--method", "fslip", "--t", "salary=0.2"],
            "--t does not belong to --method fslip. It belongs to --method ola",
        ),
        (["--method", "fslip", "--suppress", "0.1"], "--suppress does not belong to --method fslip"),
        (["--method", "fslip", "--loss", "gcp"], "--loss does not belong to --method fslip"),
        (
            ["--method", "mondrian", "--suppress-unit", "persons"],
            "--suppress-unit does not belong to --method mondrian",
        ),
        (["--method", "mondrian", "--suppress", "0"], "--suppress does not belong to --method mondrian"),
        (["--method", "anatomy", "--k", "5"], "--k does not belong to --method anatomy"),
        (["--method", "microaggregate", "--l-kind", "distinct"], "--l-kind does not belong to --method microaggregate"),
        (["--method", "onemany", "--preset", "paper"], "--preset does not belong to --method onemany"),
        (["--method", "fslip", "--k", "7"], "There are 6 persons, fewer than k = 7"),
        (["--method", "fslip", "--groups", "salary;x"], "'x' of --groups is not a sensitive attribute"),
        (["--method", "fslip", "--l", "4"], "The largest possible l is 2"),
        (
            ["--method", "mondrian", "--link", "groups"],
            "--link does not belong to --method mondrian",
        ),
    ],
)
def test_bad_options_are_one_paragraph_and_nothing_is_written(example, tmp_path, capsys, options, message):
    run(example, *options, "-o", tmp_path / "out", code=2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert message in err
    assert not (tmp_path / "out").exists()


def test_a_study_without_persons(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("age,code\n1,A\n2,B\n")
    attributes = {"age": {"role": "quasi"}, "code": {"role": "sensitive"}}
    study = write_study(tmp_path, {"source": "d.csv", "attributes": attributes})
    run(study, "--method", "fslip", "-o", tmp_path / "out", code=2)
    assert "has no person column. Add a line such as `person: patient_id`" in capsys.readouterr().err


def test_the_source_is_never_overwritten(tmp_path, capsys):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "qi.csv").write_text("id,age,code\n1,1,A\n2,2,B\n")
    attributes = {"age": {"role": "quasi"}, "code": {"role": "sensitive"}}
    study = write_study(tmp_path, {"source": "data/qi.csv", "person": "id", "attributes": attributes})
    run(study, "--method", "fslip", "--k", 1, "-o", folder, code=2)
    assert "is one of the input files" in capsys.readouterr().err
    assert (folder / "qi.csv").read_text().startswith("id,age")


def test_the_heat_map_is_drawn(example, tmp_path, capsys):
    pytest.importorskip("altair")
    run(example, "--method", "fslip", "--k", 2, "-o", tmp_path / "out", "--chart", tmp_path / "map.json")
    chart = json.loads((tmp_path / "map.json").read_text())
    [rows] = chart["datasets"].values()
    assert {row["first"] for row in rows} == {"salary", "poverty", "education", "disease"}
    run(example, "--method", "fslip", "--k", 2, "-o", tmp_path / "other", "--chart", tmp_path / "map.gif", code=2)
    assert not (tmp_path / "other").exists()


def test_icd9_and_missing_codes(tmp_path, capsys):
    rng = random.Random(2)
    codes = ["401.9", "4019", "V22.0", "E8120", "250.00", "490", "-1"]
    lines = [f"p{i},{20 + i % 40},{rng.choice(codes)}" for i in range(60) for _ in range(rng.randint(1, 3))]
    (tmp_path / "d.csv").write_text("\n".join(["id,age,code", *lines]))
    code = {"role": "sensitive", "hierarchy": {"builtin": "icd9"}, "missing": [-1]}
    study = write_study(
        tmp_path, {"source": "d.csv", "person": "id", "attributes": {"age": {"role": "quasi"}, "code": code}}
    )
    run(study, "--method", "fslip", "--k", 5, "-o", tmp_path / "out", "--json")
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out)["loss"]["sa_ncp"] > 0
    labels = {label for row in read(tmp_path / "out" / "sensitive_1.csv") for label in row["code"].split("|")}
    assert "390-459 circulatory" in labels
    assert "V01-V91 factors influencing health" in labels
    assert "-1" not in labels

"""Releases as files: what is written is what was planned, and holds what was promised."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from veilmark import workbench
from veilmark.cli import show
from veilmark.cli.main import main
from veilmark.domain import Domain
from veilmark.errors import DataError, OptionError, VeilmarkError
from veilmark.hierarchy import resolve
from veilmark.privacy.models import DistinctL, KAnonymity, TCloseness
from veilmark.study import Study
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.recoding import Recoding
from veilmark.veil.verify import Verified, verify

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
    got = workbench.anonymize(STUDY, [KAnonymity(6)], path, Ola(suppression=0.1))
    levels = got.plan.recoding.levels

    def label(column, value):
        domain = Domain.of(SOURCE[column].combine_chunks().unique(), column)
        spec = STUDY.spec.attributes[column].hierarchy
        of = resolve(spec, domain, column)
        return of.of_values(levels[column])[domain.code_of(value)].as_py()

    recoded = [tuple(label(c, row[c]) for c in QUASI) for row in SOURCE.to_pylist()]
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
    got = workbench.anonymize(STUDY, models, path, Mondrian(relaxed=relaxed))
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
    got = workbench.anonymize(study, [KAnonymity(5)], tmp_path / "out.csv")
    assert got.k >= 5
    assert got.verified.k == got.to_dict()["k_records"] == 4 * got.k
    show.anonymized(got)
    assert f"k = {got.k}, in persons." in capsys.readouterr().out
    assert "id" not in read(tmp_path / "out.csv")[0]


def test_a_recoding_can_be_saved_and_opened(tmp_path):
    for method in (Ola(suppression=0.1), Mondrian()):
        workbench.anonymize(STUDY, [KAnonymity(6)], tmp_path / "o.csv", method, tmp_path / "rules.json")
        again = Recoding.open(tmp_path / "rules.json")
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_text() == (tmp_path / "rules.json").read_text()
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(DataError, match=r"bad\.json' cannot be read as a recoding"):
        Recoding.open(tmp_path / "bad.json")


def test_a_file_that_breaks_its_promise_is_not_published(tmp_path, monkeypatch):
    lying = Verified(ROWS, 3, 1, {"diagnosis": 1}, {"diagnosis": 1.0}, {"diagnosis": 0.1}, {"diagnosis": 1.0})
    monkeypatch.setattr(workbench.anonymizing, "verify", lambda *_: lying)
    with pytest.raises(VeilmarkError, match="does not keep the promise"):
        workbench.anonymize(STUDY, [KAnonymity(5)], tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


def test_verify_measures_a_file_by_itself(tmp_path):
    pa_csv.write_csv(pa.table({"a": ["x", "x", "y", "y", None], "s": ["u", "v", "u", "u", "v"]}), tmp_path / "v[1].csv")
    got = verify(tmp_path / "v[1].csv", ["a"], ["s"])
    assert (got.records, got.classes, got.k, got.distinct["s"]) == (5, 3, 1, 1)
    assert got.t["s"] == pytest.approx(0.6)
    assert got.entropy["s"] == pytest.approx(1.0)


def test_limits_on_what_is_not_sensitive():
    with pytest.raises(OptionError, match=r"'diagnosi' is not a sensitive attribute.*Did you mean 'diagnosis'"):
        workbench.models_of(STUDY, 5, {"diagnosi": 2}, {}, {}, {"l": "distinct", "c": 3})
    with pytest.raises(OptionError, match="l must be a whole number"):
        workbench.models_of(STUDY, 5, {"diagnosis": 2.5}, {}, {}, {"l": "distinct", "c": 3})


def test_the_output_may_not_be_the_source(tmp_path):
    pa_csv.write_csv(SOURCE, tmp_path / "d.csv")
    study = Study.of(tmp_path / "d.csv", ROLES)
    with pytest.raises(OptionError, match="one of the input files"):
        workbench.anonymize(study, [KAnonymity(2)], tmp_path / "d.csv")


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
    assert "measured anew" in capsys.readouterr().out
    assert main(["anonymize", "study.yaml", "--method", "mondrian", "--suppress", "0.1", "-o", "x.csv"]) == 2
    assert main(["anonymize", "study.yaml", "--l", "diagnosis", "-o", "x.csv"]) == 2
    assert "such as diagnosis=3" in capsys.readouterr().err
    assert not (tmp_path / "x.csv").exists()

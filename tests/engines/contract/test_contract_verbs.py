"""Every verb gives the same numbers, and writes the same rows, on every engine."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engines.contract.helpers import opened, plain, plain_fold, read_rows, row_counts, study_of
from veilmark.cli.main import main
from veilmark.output import write_table
from veilmark.privacy import unchanged
from veilmark.sample import hospital, voters
from veilmark.score.scores import Options
from veilmark.tables.persons import Folding, fold
from veilmark.veil.fslip import FSlip
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola

VISITS = hospital(150, seed=5)
VISITS_ROLES = {
    "name": "direct",
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
    "sex": "quasi",
    "zip": {"role": "quasi", "hierarchy": {"mask": 5}},
    "diagnosis": {"role": "sensitive", "weights": {"default": 0.1}},
    "poverty": {"role": "sensitive", "weights": {"default": 0.2}},
}


def patients_table():
    """Some voters with a diagnosis; a gender or two is missing."""
    random = np.random.default_rng(3)
    table = voters(2_000, 3).select(["voter_id", "zip", "gender", "yob"])
    blank = pa.array(np.arange(len(table)) % 97 == 0)
    gender = pc.if_else(blank, None, table["gender"].combine_chunks().cast(pa.string()))
    table = table.set_column(2, "gender", gender)
    table = table.append_column("diagnosis", pa.array(random.choice(list("uvwxyz"), len(table))))
    return table.append_column("cost", pa.array(random.integers(10, 999, len(table)) / 4))


PATIENTS = patients_table()
PATIENTS_ROLES = {
    "voter_id": "direct",
    "zip": {"role": "quasi", "hierarchy": {"mask": 5}},
    "gender": "quasi",
    "yob": {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8]}},
    "diagnosis": {"role": "sensitive", "weights": {"default": 0.3}},
    "cost": "other",
}


@pytest.fixture(scope="module")
def visits(case, duck):
    return case.load(VISITS, "visits"), duck.load(VISITS, "visits")


@pytest.fixture(scope="module")
def patients(case, duck):
    return case.load(PATIENTS, "patients"), duck.load(PATIENTS, "patients")


def both(sources, ask, roles=PATIENTS_ROLES, **more):
    found, expected = (ask(study_of(source, roles, **more)) for source in sources)
    return found, expected


@pytest.mark.parametrize("person", [None, "patient_id"])
def test_measure(visits, person):
    found, expected = both(visits, lambda study: plain(study.measure()), VISITS_ROLES, person=person)
    assert found == expected


@pytest.mark.parametrize("x", [1, 3, math.inf])
def test_score(patients, x):
    found, expected = both(patients, lambda study: plain(study.score(options=Options(x=x))))
    assert found == expected


def test_score_of_a_published_file_record_by_record(patients, tmp_path):
    write_table(PATIENTS.slice(100, 300), tmp_path / "published.csv")

    def ask(study):
        result = plain(study.score(tmp_path / "published.csv", records=tmp_path / "one.csv"))
        study.score(records=tmp_path / "all.csv")
        return result, (tmp_path / "one.csv").read_bytes(), read_rows(tmp_path / "all.csv")

    found, expected = both(patients, ask)
    assert found == expected


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("method", [Ola(k=4, suppression=0.05), Mondrian(k=4)], ids=["ola", "mondrian"])
@pytest.mark.parametrize("order", ["shuffle", "keep"])
def test_anonymize(patients, tmp_path, method, suffix, order):
    """A seed gives the same rows in the same order from every engine, and the same text."""
    path = tmp_path / f"release.{suffix}"

    def ask(study):
        made = study.anonymize(method, path, order=order, seed=5)
        return plain(made), pq.read_table(path).to_pylist() if suffix == "parquet" else path.read_bytes()

    found, expected = both(patients, ask)
    assert found == expected


@pytest.mark.parametrize("counted", [1_000_000, 400])
def test_columns_published_unchanged(patients, tmp_path, monkeypatch, counted):
    """Counted, the same everywhere; by samples, near it, as each engine has its own hashes."""
    monkeypatch.setattr(unchanged, "COUNTED", counted)
    monkeypatch.setattr(unchanged, "SAMPLED", counted)
    roles = {**PATIENTS_ROLES, "voter_id": "other", "cost": "other"}
    found, expected = both(patients, lambda study: study.measure().unchanged, roles)
    groups = Counter(tuple(row.values()) for row in PATIENTS.drop_columns(["voter_id", "diagnosis"]).to_pylist())
    alone = sum(size == 1 for size in groups.values())
    if counted > len(PATIENTS):
        assert found == expected
        assert (found["voter_id"].unique, found["cost"].unique) == (len(PATIENTS), alone)
    else:
        assert (found["cost"].exact, found["diagnosis"].exact) == (False, True)
        assert found["cost"].unique == pytest.approx(alone, abs=6 * math.sqrt(4 * alone))
        assert found["cost"].sample == pytest.approx(400, abs=130)


@pytest.mark.parametrize("unnamed", ["leave-out", "other"])
def test_columns_that_the_study_does_not_name(patients, tmp_path, unnamed):
    roles = {name: role for name, role in PATIENTS_ROLES.items() if name not in ("diagnosis", "cost")}

    def ask(study):
        made = study.anonymize(Mondrian(k=4), tmp_path / "release.parquet", recoding=tmp_path / "rules.json")
        again = study.apply(tmp_path / "rules.json", output=tmp_path / "again.parquet")
        return plain(made), plain(again), *(read_rows(tmp_path / f"{name}.parquet") for name in ("release", "again"))

    found, expected = both(patients, ask, roles, unnamed=unnamed)
    assert found == expected
    extra = ["diagnosis", "cost"]
    assert [made["columns_left_out"] for made in found[:2]] == [extra if unnamed == "leave-out" else []] * 2
    columns = pq.read_schema(tmp_path / "release.parquet").names
    assert columns == ["zip", "gender", "yob", *(extra if unnamed == "other" else [])]


def test_pseudonyms_persons_and_a_recoding_applied(visits, tmp_path):
    (tmp_path / "key").write_text("5a" * 32)
    roles = VISITS_ROLES | {"patient_id": {"role": "direct", "keep": "pseudonym"}}

    def ask(study):
        method = Ola(k=3, suppression=0.2)
        files = {"recoding": tmp_path / "rules.json", "pseudonym_key": tmp_path / "key"}
        made = study.anonymize(method, tmp_path / "release.csv", **files)
        again = study.apply(tmp_path / "rules.json", output=tmp_path / "again.csv", pseudonym_key=tmp_path / "key")
        files = [read_rows(tmp_path / name) for name in ("release.csv", "again.csv")]
        return plain(made), plain(again), files, (tmp_path / "rules.json").read_text()

    found, expected = both(visits, ask, roles, person="patient_id")
    assert found == expected


RULES = [Folding("first"), Folding("mode"), Folding("latest", "visit_date")]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule)
def test_folding(visits, rule):
    def ask(study):
        quasi = ["age", "zip", "income"]
        return opened(study, lambda table: plain_fold(fold(table, "patient_id", quasi, ["diagnosis"], rule)))

    found, expected = both(visits, ask, VISITS_ROLES)
    assert found == expected


@pytest.mark.filterwarnings("ignore:.* no hierarchy, so")
def test_fslip_and_attacks_on_it(visits):
    def ask(study):
        release = study.anonymize(FSlip(k=3, seed=4))
        tables = [row_counts(table) for table in (release.quasi, *release.sensitive)]
        return plain(release), tables, plain(study.attack(release, targets=60))

    found, expected = both(visits, ask, VISITS_ROLES, person="patient_id", fold="mode")
    assert found == expected


def test_attack_and_utility_of_a_file(patients, tmp_path):
    path = tmp_path / "release.csv"
    study_of(patients[1], PATIENTS_ROLES).anonymize(Ola(k=4, suppression=0.05), path)
    attacks = ("bk", "qicorr", "linkage")

    def ask(study):
        return plain(study.attack(path, attacks=attacks, targets=100)), plain(study.utility(path))

    found, expected = both(patients, ask)
    assert found == expected


def test_commands(case, patients, tmp_path, capsys):
    """The study file names the source; a release is written by the command line."""
    roles = {c: {"role": a} if isinstance(a, str) else a for c, a in PATIENTS_ROLES.items()}
    content = {"version": 1, "source": case.described(patients[0]), "attributes": roles}
    (tmp_path / "study.yaml").write_text(json.dumps(content))
    arguments = ["--method", "ola", "--k", "3", "--suppress", "0.1", "-o", str(tmp_path / "release.csv"), "--json"]
    assert main(["anonymize", str(tmp_path / "study.yaml"), *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = study_of(patients[1], PATIENTS_ROLES).anonymize(Ola(k=3, suppression=0.1), tmp_path / "expected.csv")
    assert (found["k"], found["levels"]) == (plain(expected)["k"], plain(expected)["levels"])
    assert read_rows(tmp_path / "release.csv") == read_rows(tmp_path / "expected.csv")

"""Attacks on files and folders: what must come out, what can go wrong, and the command line."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from veilmark.attack.harness import wilson
from veilmark.cli.main import main
from veilmark.errors import DataError, OptionError, StudyError
from veilmark.study.study import Study
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.sliced import Sliced
from veilmark.workbench.anonymize import anonymize
from veilmark.workbench.attack import attack

ATTRIBUTES = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 30]}},
    "sex": {"role": "quasi"},
    "disease": {"role": "sensitive"},
    "job": {"role": "sensitive"},
}


@pytest.fixture
def people(tmp_path):
    """Two hundred people whose disease depends on their quasi-identifiers, and on nothing else."""
    rng = np.random.default_rng(4)
    age, sex = rng.integers(20, 60, 200), rng.choice(["f", "m"], 200)
    diseases = np.array(["flu", "cold", "gout", "acne"])
    table = pa.table(
        {
            "age": age,
            "sex": sex,
            "disease": diseases[age % 3 + (sex == "f")],
            "job": rng.choice(["cook", "judge", "nurse", "miner"], 200),
        }
    )
    pa_csv.write_csv(table, tmp_path / "people.csv")
    return table


@pytest.fixture
def study(people, tmp_path):
    return Study.of(tmp_path / "people.csv", ATTRIBUTES)


def hidden(people, *names):
    return pa.table({n: ["*"] * len(people) if n in names else people[n] for n in people.column_names})


def test_the_source_itself_gives_all_away(study, people):
    attacks = attack(study, people).attacks
    assert attacks["qicorr"].details["attributes"]["disease"]["success"] == 1
    assert attacks["qicorr"].control < 0.5
    assert (attacks["mcorr"].success, attacks["nmcorr"].success) == (1, 1)
    assert (attacks["mcorr"].control, attacks["nmcorr"].control) == (0.5, 0)
    assert attacks["linkage"].success == pytest.approx(len(study_classes(people)) / 200)


def study_classes(people):
    return set(zip(people["age"].to_pylist(), people["sex"].to_pylist(), strict=True))


def test_nothing_told_of_persons_is_no_better_than_the_control(study, people):
    attacks = attack(study, hidden(people, "age", "sex")).attacks
    for name in ("qicorr", "mcorr", "nmcorr", "linkage"):
        assert attacks[name].success == pytest.approx(attacks[name].control)


def test_hidden_sensitive_values_leave_the_marginals(study, people):
    attacks = attack(study, hidden(people, "disease", "job")).attacks
    for name in ("qicorr", "bk", "msacorr"):
        assert attacks[name].success == pytest.approx(attacks[name].control)


def test_unlinked_tables_tell_a_neighbour_nothing(study, people):
    parts = (
        pa.table({"gid": [1] * 200, "disease": people["disease"]}),
        pa.table({"gid": [1] * 200, "job": people["job"]}),
    )
    release = Sliced(people.select(["age", "sex"]), parts, (("disease",), ("job",)))
    attacks = attack(study, release).attacks
    for name in ("qicorr", "bk", "msacorr"):
        assert attacks[name].success == pytest.approx(attacks[name].control)


@pytest.mark.parametrize("method", [Ola(k=10), Mondrian(k=10)])
def test_releases_of_anonymize(study, people, tmp_path, method):
    output = tmp_path / "release.csv"
    anonymize(study, (), output, method)
    found = attack(study, output)
    assert not found.notes
    assert found.rows == 200
    assert found.attacks["linkage"].success <= 1 / 10
    raw = attack(study, people).attacks
    assert found.attacks["qicorr"].success < raw["qicorr"].success
    for result in found.attacks.values():
        assert 0 <= result.interval[0] <= result.success <= result.interval[1] <= 1


def test_seeds_and_targets(study, people):
    some = [attack(study, people, targets=50, seed=seed).to_dict() for seed in (1, 1, 2)]
    assert some[0] == some[1] != some[2]
    assert some[0]["attacks"]["bk"]["targets"] == 50
    alone = attack(study, people, ["bk"], targets=50).to_dict()
    assert alone["attacks"] == {"bk": some[0]["attacks"]["bk"]}


def test_a_population_is_linked_by_the_labels(study, people):
    release = pa.table({"age": ["20-29", "30-39"], "sex": ["*", "f"], "disease": ["flu", "cold"]})
    everybody = pa.table({"age": [20, 25, 29, 31, 39, 39, 99], "sex": ["f", "m", "m", "f", "f", "m", "f"]})
    found = attack(study, release, ["linkage"], population=everybody)
    linkage = found.attacks["linkage"]
    assert linkage.success == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert linkage.control == pytest.approx(1 / 7)
    assert linkage.to_dict()["min_linked"] == 2
    assert found.notes == ("Not attacked, because the release does not have them: 'job'.",)


def test_labels_that_mean_nothing_are_told(study, people):
    odd = people.set_column(1, "sex", pa.array(["?"] * 200))
    found = attack(study, odd)
    assert "1 labels of 'sex'" in found.notes[0]


def test_one_sensitive_attribute_has_nothing_to_correlate(people):
    study = Study.of(people, {"age": "quasi", "disease": "sensitive"})
    attacks = attack(study, people).attacks
    assert (attacks["msacorr"].targets, attacks["msacorr"].interval) == (0, (0.0, 1.0))


def test_wilson_by_the_book():
    assert wilson(0.5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert wilson(1, 10) == pytest.approx((0.7225, 1), abs=1e-4)
    assert wilson(0.3, 0) == (0, 1)


def test_bad_input(study, people, tmp_path):
    with pytest.raises(OptionError, match="Did you mean 'qicorr'"):
        attack(study, people, ["qicor"])
    with pytest.raises(OptionError, match="at least one"):
        attack(study, people, known=0)
    with pytest.raises(DataError, match="none of the sensitive attributes"):
        attack(study, people.select(["age", "sex"]))
    with pytest.raises(DataError, match="no records"):
        attack(study, people.slice(0, 0))
    with pytest.raises(DataError, match="is not a release in several tables"):
        attack(study, tmp_path)
    with pytest.raises(DataError, match="has no column 'sex'"):
        attack(study, people, population=people.select(["age"]))
    with pytest.raises(StudyError, match="needs at least one quasi-identifier"):
        attack(Study.of(people, {"disease": "sensitive"}), people)


def test_tables_that_do_not_belong_together(study, people):
    quasi = people.select(["age", "sex"]).append_column("gid_1", pa.array([7] * 200))
    with pytest.raises(DataError, match="a group that is not in sensitive table 1"):
        attack(study, Sliced(quasi, (pa.table({"gid": [1] * 200, "job": people["job"]}),), (("job",),)))


def test_command_line(study, people, tmp_path, capsys):
    study.save(tmp_path / "study.yaml")
    assert main(["attack", str(tmp_path / "study.yaml"), str(tmp_path / "people.csv"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed["attacks"]) == {"bk", "msacorr", "qicorr", "mcorr", "nmcorr", "linkage"}
    assert {"success", "control", "interval", "targets"} <= set(printed["attacks"]["bk"])
    chart = ["--attacks", "qicorr, mcorr", "--chart", str(tmp_path / "attacks.json")]
    assert main(["attack", str(tmp_path / "study.yaml"), str(tmp_path / "people.csv"), *chart]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"Better than guessing: \w+ \(\+[\d.]+ points, a lot\), \w+ \(\+[\d.]+ points, a lot\)\.", shown)
    assert "bk" not in shown
    assert json.loads((tmp_path / "attacks.json").read_text())["layer"]
    assert main(["attack", str(tmp_path / "study.yaml"), str(tmp_path / "nothing.csv")]) == 2
    assert "nothing.csv" in capsys.readouterr().err

"""`veilmark compare`: the same figures as making and attacking each release by itself, the frontier, and refusals."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from people import people
from veilmark import sample
from veilmark.attack import AttackResult
from veilmark.cli import compare as cli
from veilmark.cli.show_compare import compared
from veilmark.errors import OptionError, StudyError
from veilmark.report.frontier_chart import _place, _point, frontier
from veilmark.study.study import Study
from veilmark.veil.fslip import FSlip
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.workbench.anonymize_persons import anonymize_persons
from veilmark.workbench.attack import attack
from veilmark.workbench.compare import METHODS, Compared, CompareRequest, Tried, compare_methods, sa_loss

pytestmark = pytest.mark.filterwarnings("ignore::veilmark.errors.VeilmarkWarning")

ROLES = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}},
    "sex": "quasi",
    "race": "quasi",
    "income": "sensitive",
    "education": "sensitive",
    "diagnosis": {"role": "sensitive", "hierarchy": {"builtin": "icd9"}},
}


def hospital(persons: int = 300, person: str | None = "patient_id") -> Study:
    return Study.of(sample.hospital(persons, 1), ROLES, person=person)


@pytest.fixture(scope="module")
def everything() -> Compared:
    return compare_methods(hospital(), list(METHODS), CompareRequest(4, suppress=0.1))


def test_every_method_is_made_measured_and_attacked(everything: Compared) -> None:
    assert (everything.persons, list(everything.methods)) == (300, list(METHODS))
    for name, tried in everything.methods.items():
        assert tried.refused is None
        assert {"ncp", "sa_ncp", "nil", "sa_nil"} <= set(tried.loss)
        assert all(0 <= share <= 1 for share in (*tried.loss.values(), tried.sa_loss, tried.total_loss))
        assert set(tried.attacks) == {"bk", "msacorr", "qicorr", "mcorr", "nmcorr", "linkage"}
        assert tried.notes == ()
        assert tried.seconds is not None
        assert tried.linked == (name not in ("fslip", "fslip-paper"))
    for name in ("ola", "mondrian", "fslip", "fslip-linked", "onemany", "rmr"):
        assert everything.methods[name].k == everything.methods[name].facts["k"] >= 4
    assert everything.methods["anatomy"].k == everything.methods["slicing"].k == 1
    assert 0 < everything.methods["ola"].facts["suppressed"] <= 30


def test_attacks_are_those_on_the_written_release(everything: Compared, tmp_path) -> None:
    study = hospital()
    made = anonymize_persons(study, FSlip(4, link="groups", seed=1), tmp_path / "release")
    found = attack(study, tmp_path / "release")
    tried = everything.methods["fslip-linked"]
    assert tried.loss == made.loss
    assert {name: of.to_dict() for name, of in tried.attacks.items()} == {
        name: of.to_dict() for name, of in found.attacks.items()
    }


def test_without_a_person_column_each_record_is_a_person() -> None:
    study = hospital(60, person=None)
    found = compare_methods(study, ["ola", "fslip", "anatomy"], CompareRequest(3), ["qicorr"])
    assert found.persons == found.records == len(sample.hospital(60, 1))
    assert all(tried.attacks["qicorr"].targets == found.persons for tried in found.made.values())


def test_a_method_that_cannot_is_told_of_and_the_others_run() -> None:
    found = compare_methods(
        hospital(100), ["slicing", "fslip", "onemany", "anatomy"], CompareRequest(3, 60), ["qicorr"]
    )
    assert list(found.made) == ["slicing", "anatomy"]
    assert "no slicing is 60-diverse" in str(found.methods["fslip"].refused)
    content = found.to_dict()["methods"]["fslip"]
    assert (content["loss"], content["seconds"], content["attacks"]) == ({}, None, {})
    found = compare_methods(hospital(100), ["slicing", "anatomy"], CompareRequest(3, 2.5), ["qicorr"])
    assert "whole number, not 2.5" in str(found.methods["anatomy"].refused)


def test_where_no_method_can_it_is_an_error() -> None:
    with pytest.raises(OptionError, match=r"No method can meet these requirements\. ola: .*onemany: "):
        compare_methods(hospital(50), ["ola", "onemany"], CompareRequest(3, 60))


def test_an_impossible_k_is_refused() -> None:
    with pytest.raises(OptionError, match=r"k = 200 cannot be reached: the table has only 50 persons.* at most 50"):
        compare_methods(hospital(50), ["ola", "rmr"], CompareRequest(200))
    with pytest.raises(OptionError, match=r"k = 999 cannot be reached: the table has only \d+ records"):
        compare_methods(without_persons(), ["ola"], CompareRequest(999))


def without_persons() -> Study:
    """Ages by a hierarchy whose labels are ranges, though they are given as categories."""
    rng = np.random.default_rng(12)
    ages = rng.integers(20, 60, 400)
    decades = {str(age): f"{age // 10 * 10}-{age // 10 * 10 + 9}" for age in range(20, 60)}
    halves = {label: "20-39" if label < "40" else "40-59" for label in decades.values()}
    table = pa.table({"age": ages, "sex": rng.choice(["f", "m"], 400), "ill": rng.choice(list("uvw"), 400)})
    levels = {"role": "quasi", "hierarchy": {"levels": [decades, halves]}}
    return Study.of(table, {"age": levels, "sex": "quasi", "ill": "sensitive"})


def test_methods_that_anonymize_refuses_are_left_out_and_told() -> None:
    study = without_persons()
    found = compare_methods(study, asked=CompareRequest(3), attacks=["qicorr"])
    assert list(found.methods) == ["ola", "mondrian"]
    assert set(found.left_out) == {"fslip", "fslip-linked", "onemany", "rmr", "anatomy", "slicing"}
    assert set(found.frontier()) <= {"ola", "mondrian"}
    assert "has no person column" in str(found)
    assert compare_methods(hospital(60), asked=CompareRequest(3), attacks=["qicorr"]).left_out == {}


def test_a_method_loses_what_anonymize_says_it_loses() -> None:
    study = without_persons()
    found = compare_methods(study, ["ola", "mondrian"], CompareRequest(3), ["qicorr"]).to_dict()["methods"]
    for name, method in (("ola", Ola(k=3)), ("mondrian", Mondrian(k=3))):
        assert found[name]["loss"]["gcp"] == pytest.approx(study.anonymize(method).plan.loss["gcp"])


def test_attacks_without_targets_say_why() -> None:
    found = compare_methods(without_persons(), ["ola"], CompareRequest(3), ["bk", "msacorr", "qicorr"])
    console = Console(width=300, record=True, quiet=True)
    compared(found, console)
    why = "bk and msacorr have no targets: they know a sensitive value of a person and want another"
    assert why in str(found)
    assert "qicorr have no targets" not in str(found)


def test_ties_are_kept_on_the_frontier() -> None:
    loss = {"ncp": 0.2, "sa_ncp": 0.0, "sa_nil": 0.0}
    nearly = {**loss, "ncp": 0.2001}
    found = Compared("t", 9, 9, CompareRequest(2), {"one": Tried(loss, k=2), "other": Tried(nearly, k=2)})
    assert found.frontier() == ["one", "other"]


@pytest.mark.parametrize(
    ("methods", "attacks", "asked", "words"),
    [
        (["mondrain"], ["bk"], {}, "Did you mean 'mondrian'"),
        ([], ["bk"], {}, "at least one method"),
        (["ola"], ["qicor"], {}, "Did you mean 'qicorr'"),
        (["ola"], ["bk"], {"k": 0}, "k must be"),
        (["ola"], ["bk"], {"l": 0.5}, "l must be"),
        (["ola"], ["bk"], {"suppress": 2}, "share of the persons"),
    ],
)
def test_wrong_options_are_errors(methods, attacks, asked, words) -> None:
    with pytest.raises(OptionError, match=words):
        compare_methods(hospital(20), methods, CompareRequest(**asked), attacks)


def test_a_study_without_sensitive_attributes_is_an_error() -> None:
    with pytest.raises(StudyError, match="sensitive attribute"):
        compare_methods(Study.of(sample.hospital(20), {"age": "quasi"}, person="patient_id"))


def test_no_release_is_left(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compare_methods(hospital(40), ["mondrian", "fslip"], CompareRequest(2), ["qicorr"])
    assert not list(tmp_path.iterdir())


def test_sa_loss_is_a_mean_over_attributes() -> None:
    income = [[str(i)] for i in range(40)]
    who = people({"age": ["20"] * 40}, {"income": income, "level": [["a"], ["b"]] * 20, "code": [["x", "y"]] * 40})
    loss = {"sa_ncp": 0.2, "sa_nil": 0.1, "sa_added": 0.5}
    assert sa_loss(who.persons, who.levels, loss) == pytest.approx((0.1 + 0.2 + (0.2 + 0.8 * 0.5)) / 3)
    assert sa_loss(who.persons, who.levels, {"sa_ncp": 0.2, "sa_nil": 0.1}) == pytest.approx((0.1 + 0.2 + 0.2) / 3)


def tried_at(loss: float, risk: float, linked: bool = True) -> Tried:
    attacks = {
        "bk": AttackResult(risk + 0.1, 0.1, (risk, risk + 0.2), 50),
        "qicorr": AttackResult(0.1, 0.1, (0, 1), 50),
    }
    return Tried({"ncp": loss, "sa_ncp": loss, "sa_nil": loss}, loss, 1.0, 5, attacks, linked)


shares = st.integers(0, 8).map(lambda n: n / 10)


@given(st.lists(st.tuples(shares, shares, st.booleans(), st.booleans()), min_size=1, max_size=9))
def test_the_frontier_is_what_nothing_beats_among_those_that_reach_k(points) -> None:
    methods = {f"m{i}": replace(tried_at(*point), meets_k=met) for i, (*point, met) in enumerate(points)}
    found = Compared("x", 1, 1, CompareRequest(), {**methods, "no": Tried(refused="cannot")})
    for linked in (False, True):
        among = {n: (t.total_loss, t.risk) for n, t in methods.items() if t.meets_k and (t.linked or not linked)}
        expected = {
            name
            for name, (loss, risk) in among.items()
            if not any(a <= loss and b <= risk and (a < loss or b < risk) for a, b in among.values())
        }
        assert set(found.frontier(linked)) == expected
        assert [among[n][0] for n in found.frontier(linked)] == sorted(among[n][0] for n in expected)


@given(st.lists(st.tuples(shares, shares), min_size=1, max_size=9))
def test_no_label_of_the_chart_covers_another(points) -> None:
    values = [_point(f"method {i}", tried_at(*point)) for i, point in enumerate(points)]
    _place(values)
    right, top = (max(v[name] for v in values) or 1 for name in ("loss", "high"))
    for i, one in enumerate(values):
        for other in values[:i]:
            apart = abs(one["place"] - other["place"]) / top
            beside = abs(one["loss"] - other["loss"]) / right
            assert apart > 0.03 or beside > 0.01 * max(len(one["text"]), len(other["text"]))


def test_the_chart_has_a_point_a_method_and_two_frontiers() -> None:
    methods = {"a": tried_at(0.1, 0.3), "b": tried_at(0.2, 0.1, linked=False), "c": tried_at(0.3, 0.2)}
    drawn = frontier(Compared("x", 1, 1, CompareRequest(3, 2), {**methods, "no": Tried(refused="cannot")})).to_dict()
    lines, *_ = (drawn["datasets"][layer["data"]["name"]] for layer in drawn["layer"] if "data" in layer)
    assert [(of["line"], of["loss"]) for of in lines] == [
        ("frontier of all", 0.1),
        ("frontier of all", 0.2),
        ("frontier of the linked", 0.1),
        ("frontier of the linked", 0.3),
    ]
    texts = {value["text"] for rows in drawn["datasets"].values() for value in rows if "text" in value}
    assert texts == {"a (bk)", "b (bk)", "c (bk)"}


def test_a_method_that_misses_k_is_marked_and_off_the_frontier() -> None:
    methods = {"a": tried_at(0.3, 0.3), "b": replace(tried_at(0.1, 0.1), k=1, meets_k=False)}
    found = Compared("x", 1, 1, CompareRequest(3), methods)
    content = found.to_dict()
    assert (content["frontier"], content["frontier_linked"], content["below_k"]) == (["a"], ["a"], ["b"])
    assert [of["meets_k"] for of in content["methods"].values()] == [True, False]
    drawn = frontier(found).to_dict()
    points = {row["method"]: row for rows in drawn["datasets"].values() for row in rows if "method" in row}
    assert (points["b"]["kind"], points["b"]["text"]) == ("misses the k asked for", "b (k = 1)")
    assert "misses the k asked for" not in str(
        frontier(Compared("x", 1, 1, CompareRequest(3), {"a": methods["a"]})).to_dict()
    )
    text = shown_text(found)
    assert "1 (below 3)" in text
    assert "Not on the frontier, because k is below 3: b." in text
    assert "No method reaches k = 3." in shown_text(Compared("x", 1, 1, CompareRequest(3), {"b": methods["b"]}))


def test_each_release_is_held_to_the_k_asked_for(everything: Compared) -> None:
    for tried in everything.made.values():
        assert tried.meets_k == (tried.k >= everything.asked.k)
    assert "anatomy" in everything.below_k


def shown_text(found: Compared) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    compared(found, console)
    return console.export_text()


def test_the_table_says_what_is_refused_and_what_to_choose_between(everything: Compared) -> None:
    shown = Compared(
        "x.csv", 300, 1000, CompareRequest(), {**everything.methods, "no": Tried(refused="k is too large.")}
    )
    text = shown_text(shown)
    assert "no was not tried. k is too large." in text
    assert f"Choose one of these: {', '.join(everything.frontier())}." in text
    assert all(name in text for name in METHODS)


def test_the_command_line(tmp_path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(sample.hospital(80, 1), tmp_path / "visits.parquet")
    study = Study.of(str(tmp_path / "visits.parquet"), ROLES, person="patient_id")
    study.save(tmp_path / "study.yaml")
    app = typer.Typer()
    cli.register(app)
    chart = tmp_path / "frontier.json"
    options = ["--methods", "ola, fslip,ola", "--k", "3", "--attacks", "qicorr", "--chart", str(chart)]
    options += ["--targets", "30"]
    done = CliRunner().invoke(app, [str(tmp_path / "study.yaml"), *options, "--json"])
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert list(content["methods"]) == ["ola", "fslip"]
    for of in content["methods"].values():
        assert of["seconds"] > 0
        assert of["attacks"]["qicorr"]["targets"] == 30
        assert of["loss"]["total"] == pytest.approx(np.mean([of["loss"]["ncp"], of["loss"]["sa"]]))
    assert "layer" in json.loads(chart.read_text())
    assert "qicorr" in CliRunner().invoke(app, [str(tmp_path / "study.yaml"), *options[:6]]).stdout

"""A local method that would lose much less is named after OLA: what it would lose is what it loses when asked for."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from veilmark import DeltaPresence, DistinctL, KMap, Mondrian, Ola, Study
from veilmark.cli.main import main
from veilmark.workbench import anonymize_offer as offering

RNG = np.random.default_rng(3)
ROWS = 600
TABLE = pa.table(
    {
        "age": RNG.integers(18, 90, ROWS),
        "zip": [f"{z:03d}" for z in RNG.integers(100, 200, ROWS)],
        "sex": RNG.choice(["F", "M"], ROWS),
        "ill": RNG.choice(list("uvw"), ROWS),
    }
)
ROLES = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 40]}},
    "zip": {"role": "quasi", "hierarchy": {"mask": 3}},
    "sex": "quasi",
    "ill": "sensitive",
}
STUDY = Study.of(TABLE, ROLES)


def test_the_offer_is_what_mondrian_loses():
    models = (DistinctL("ill", 2),)
    offer = STUDY.anonymize(Ola(k=5, suppression=0.05, models=models)).plan.local
    made = STUDY.anonymize(Mondrian(k=5, models=models))
    assert offer.loss == pytest.approx(made.plan.loss["gcp"])
    assert offer.instead_of == STUDY.anonymize(Ola(k=5, suppression=0.05, models=models)).plan.loss["gcp"]
    assert offer.loss <= 0.5 * offer.instead_of
    assert offer.judged == offer.classes


def test_weights_count_in_both(monkeypatch):
    monkeypatch.setattr(offering, "CLEARLY_LESS", 1.0)
    monkeypatch.setattr(offering, "AT_LEAST", -1.0)
    weights = {"age": 5.0, "zip": 0.5}
    made = STUDY.anonymize(Ola(k=5, suppression=0.05, weights=weights)).plan
    own = STUDY.anonymize(Mondrian(k=5)).plan.by_attribute
    each = {**dict.fromkeys(own, 1.0), **weights}
    assert made.local.instead_of == pytest.approx(made.loss["gcp"])
    assert made.local.loss == pytest.approx(sum(each[n] * own[n]["gcp"] for n in own) / sum(each.values()))


def test_no_offer_where_it_is_no_better_or_cannot_be():
    assert STUDY.anonymize(Ola(k=1)).plan.local is None
    assert STUDY.anonymize(Mondrian(k=5)).plan.local is None
    assert STUDY.anonymize(Ola(k=5, levels={"sex": 1})).plan.local is None
    people = pa.concat_tables([TABLE.select(["age", "zip", "sex"])] * 2)
    for model in (KMap(5), DeltaPresence(0.0, 0.9)):
        assert STUDY.anonymize(Ola(suppression=0.1, models=(model,)), population=people).plan.local is None


def test_of_a_large_class_table_a_sample_is_judged(monkeypatch):
    monkeypatch.setattr(offering, "MOST_CELLS", 900)
    offer = STUDY.anonymize(Ola(k=3)).plan.local
    assert (offer.judged, offer.classes) == (
        300,
        len(set(zip(*TABLE.select([0, 1, 2]).to_pydict().values(), strict=True))),
    )
    assert f"(estimated from 300 of {offer.classes:,} classes)" in str(offer)


def test_on_the_screen_and_in_json(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(TABLE, "d.csv")
    Study.of("d.csv", ROLES).save("study.yaml")
    asked = ["anonymize", "study.yaml", "--k", "5", "-o", "out.csv"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["local"]
    assert found["method"] == "mondrian"
    assert main(asked) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Mondrian would lose" in out
    assert out.count("--method mondrian") == 1
    assert main([*asked, "--method", "mondrian", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["local"] is None
    assert made["loss"]["gcp"] == pytest.approx(found["loss"])


def test_a_method_that_loses_a_third_less_is_named():
    """Clearly less is worth a line, not only half."""
    rng = np.random.default_rng(8)
    table = pa.table({name: rng.integers(0, 8, 150) for name in "abc"})
    study = Study.of(table, {name: {"role": "quasi", "hierarchy": {"intervals": [2, 4]}} for name in "abc"})
    plan = study.anonymize(Ola(k=5)).plan
    mondrian = study.anonymize(Mondrian(k=5)).plan.loss["gcp"]
    assert 0.5 * plan.loss["gcp"] < mondrian < 0.8 * plan.loss["gcp"]
    assert plan.local.loss == pytest.approx(mondrian)


def outlier_study():
    """A few records that differ from all others make every column coarse."""
    usual = {"age": [30 + i % 4 for i in range(400)], "zip": [f"10{i % 3}" for i in range(400)]}
    rare = {"age": [80, 81, 82, 83], "zip": ["900", "911", "922", "933"]}
    table = pa.table({name: usual[name] + rare[name] for name in usual})
    return Study.of(table, {name: ROLES[name] for name in usual})


def test_what_a_little_suppression_would_save_is_what_it_saves():
    study = outlier_study()
    plan = study.anonymize(Ola(k=5)).plan
    made = study.anonymize(Ola(k=5, suppression=0.05)).plan
    assert plan.suppression.loss == pytest.approx(made.loss["gcp"])
    assert plan.suppression.instead_of == pytest.approx(plan.loss["gcp"])
    assert made.suppression is None
    assert "With up to 5 % of the records suppressed, the loss would be" in str(study.anonymize(Ola(k=5)))


def test_suppression_is_not_tried_where_that_takes_long(monkeypatch):
    monkeypatch.setattr(offering, "MOST_TRIED", 10)
    assert outlier_study().anonymize(Ola(k=5)).plan.suppression is None


def test_suppression_is_offered_on_the_screen_and_in_json(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    study = outlier_study()
    pa_csv.write_csv(study.data, "d.csv")
    Study.of("d.csv", {name: ROLES[name] for name in ("age", "zip")}).save("study.yaml")
    asked = ["anonymize", "study.yaml", "--k", "5", "-o", "out.csv"]
    assert main(asked) == 0
    assert "--suppress 5%" in capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    offer = json.loads(capsys.readouterr().out)["suppression_offer"]
    assert offer["share"] == 0.05
    assert offer["loss"] < 0.8 * offer["instead_of"]

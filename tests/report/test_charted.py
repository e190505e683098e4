"""Every result shows its chart in a notebook, saves it in every form, and does without where nothing can draw."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow.csv as pa_csv
import pytest
from drawn import data, rows, words

from veilmark import FSlip, Mondrian, Ola, Study
from veilmark.charted import Charted
from veilmark.errors import OptionError, VeilmarkError
from veilmark.hierarchy import resolve
from veilmark.mark.marking import CopyMarking
from veilmark.sample import voters
from veilmark.score import ahp
from veilmark.study.opening import class_table, engine_of, open_source
from veilmark.trace.accuse import Suspect, Traced
from veilmark.veil.sliced import Sliced
from veilmark.workbench.compare import compare_methods
from veilmark.workbench.feasible import feasible
from veilmark.workbench.init import make_sample
from veilmark.workbench.simulate import simulate

STUDY = """version: 1
source: visits.csv
person: patient_id
attributes:
  patient_id: {role: direct}
  name: {role: direct}
  age: {role: quasi, hierarchy: {intervals: [10, 20, 40]}}
  sex: {role: quasi}
  income: {role: sensitive, weights: {default: 0.2}}
  diagnosis: {role: sensitive, hierarchy: {builtin: icd9}, weights: {'250': 0.9, default: 0.1}}
"""
VOTERS = """version: 1
source: patients.csv
attributes:
  race: {role: quasi}
  gender: {role: quasi}
  yob: {role: quasi, hierarchy: {intervals: [4, 8]}}
"""
NAMES = (
    "measures",
    "score",
    "record",
    "ranking",
    "ahp",
    "panel",
    "hierarchy",
    "ola",
    "mondrian",
    "sliced",
    "opened",
    "attacked",
    "compared",
    "utility",
    "feasible",
    "simulated",
    "traced",
    "levels",
)


def judgements():
    one = ahp.PairwiseMatrix(("a", "b", "c"), np.array([[1, 2, 4], [0.5, 1, 2], [0.25, 0.5, 1]]), "One")
    two = ahp.PairwiseMatrix(("d", "e"), np.array([[1, 3], [1 / 3, 1]]), "Two")
    return {
        "ahp": ahp.priorities(one),
        "panel": ahp.aggregate([one, one]),
        "hierarchy": ahp.hierarchical(two, {"d": one, "e": two}),
    }


def decoys(folder):
    people = voters(4000, 3)
    pa_csv.write_csv(people, folder / "voters.csv")
    pa_csv.write_csv(people.slice(0, 400), folder / "patients.csv")
    (folder / "voters.yaml").write_text(VOTERS)
    marking = CopyMarking(recipients=("a", "b"), k=5, decoys=1, covers=1)
    return feasible(Study.open(folder / "voters.yaml"), str(folder / "voters.csv"), marking, (2, 3), (0.1,))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("charted")
    make_sample("hospital", folder / "visits.csv", 150, 1)
    (folder / "study.yaml").write_text(STUDY)
    study = Study.open(folder / "study.yaml")
    release = folder / "release.csv"
    sliced = study.anonymize(FSlip(k=3))
    sliced.write(folder / "sliced")
    scored = study.score()
    domain = resolve(None, class_domain(study), "age")
    return {
        "measures": study.measure(),
        "score": scored,
        "record": scored.worst[0],
        "ranking": study.rank([str(folder / "visits.csv")], draws=10),
        **judgements(),
        "ola": study.anonymize(Ola(k=3, suppression=0.1, loss="gcp")),
        "mondrian": study.anonymize(Mondrian(k=3), release),
        "sliced": sliced,
        "opened": Sliced.open(folder / "sliced"),
        "attacked": study.attack(str(release), attacks=("bk", "qicorr"), targets=50),
        "compared": compare_methods(study, ("mondrian", "anatomy"), attacks=("bk",), targets=50),
        "utility": study.utility(str(release)),
        "feasible": decoys(folder),
        "simulated": simulate(6, 2, 1e-2, trials=3),
        "traced": Traced(("ada",), (Suspect("ada", "r", 9.0, 1e-9, "exact"),), 1e-6, 1),
        "levels": domain,
    }


def class_domain(study):
    with engine_of(study) as engine:
        return class_table(open_source(engine, study), study).domains[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_the_chart(results, name):
    result = results[name]
    assert isinstance(result, Charted)
    bundle = result._repr_mimebundle_(include=None, exclude=None)
    spec = result.chart().to_dict()
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/v")
    assert spec["description"]
    assert spec["config"]["font"]
    assert json.dumps(spec)
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/plain"] == str(result)
    tables, _, picture = bundle["text/html"].partition('<img alt="" src="data:image/svg+xml;base64,')
    assert tables == result._repr_html_()
    assert "<table>" in tables
    assert base64.b64decode(picture.removesuffix('">')).startswith(b"<svg")


@pytest.mark.parametrize("name", NAMES)
def test_every_chart_can_be_drawn(results, name, tmp_path):
    results[name].save_chart(tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


def test_a_chart_is_saved_in_every_form(results, tmp_path):
    for suffix in ("html", "svg", "png", "json"):
        results["traced"].save_chart(str(tmp_path / f"chart.{suffix}"))
    page = (tmp_path / "chart.html").read_text()
    assert "<script src" not in page  # nothing is fetched
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "chart.json").read_text())["layer"]
    assert len(list(tmp_path.iterdir())) == 4


def test_another_suffix_is_refused_and_leaves_nothing(results, tmp_path):
    with pytest.raises(OptionError, match="must end in one of"):
        results["measures"].save_chart(tmp_path / "chart.gif")
    assert not list(tmp_path.iterdir())


def test_a_chart_that_fails_leaves_nothing(results, tmp_path):
    class Broken(Charted):
        def chart(self):
            raise RuntimeError("no picture")

        def __repr__(self):
            return "Broken()"

    assert Broken()._repr_mimebundle_() == {"text/html": Broken()._repr_html_(), "text/plain": "Broken"}
    with pytest.raises(RuntimeError):
        Broken().save_chart(tmp_path / "chart.png")
    assert not list(tmp_path.iterdir())


def test_without_altair_the_text_is_shown(results, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "altair", None)
    shown = results["measures"]
    assert shown._repr_mimebundle_() == {"text/html": shown._repr_html_(), "text/plain": str(shown)}
    with pytest.raises(VeilmarkError, match="report"):
        results["measures"].save_chart(tmp_path / "chart.png")


def test_importing_loads_no_chart_package():
    modules = "veilmark.study.study, veilmark.workbench, veilmark.report.class_charts, veilmark.veil.anonymize"
    code = f"import sys, {modules}; assert not {{'altair', 'vl_convert'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_results_keep_what_their_charts_need(results):
    measured = results["measures"]
    assert min(measured.class_sizes) == measured.k
    assert sum(measured.class_sizes.values()) == measured.classes
    assert "class_sizes" not in measured.to_dict()
    assert sum(results["score"].distribution) == results["score"].records
    made = results["ola"]
    drawn = rows(made.chart(), "levels")
    assert len(drawn) == len({e.node for e in made.plan.explored}) <= made.plan.lattice
    assert next(row["levels"] for row in drawn if row["chosen"]) == list(made.plan.recoding.levels.values())
    assert sum(row["members"] for row in rows(results["mondrian"].chart(), "members")) == int(
        results["mondrian"].plan.sizes.sum()
    )


def test_a_sliced_release_shows_correlations_or_else_its_classes(results):
    (pair,) = results["sliced"].facts["correlations"]["pairs"]
    drawn = rows(results["sliced"].chart(), "strength")
    assert {row["strength"] for row in drawn} == {pair[f"{pair['measure']}_corrected"]}
    assert sum(row["members"] for row in rows(results["opened"].chart(), "members")) == len(results["opened"])


def test_a_ranking_shows_scores_and_ranks(results):
    (row,) = rows(results["ranking"].chart(), "candidate")
    assert row["tkl"] == results["score"].scores["tkl"].value
    assert "rank 1" in row["text"]


def test_a_table_without_records_has_a_chart(results, tmp_path):
    empty = replace(results["measures"], records=0, class_sizes={})
    empty.save_chart(tmp_path / "empty.svg")
    assert "nothing to show" in str(data(empty.chart()))
    assert "Sizes of the classes" in words(empty.chart())

"""The Score pages: scores, candidates compared, and weights by pairs and by a data model."""

from __future__ import annotations

import math
import os
import re
import time
from contextlib import suppress

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark import Study
from veilmark.errors import VeilmarkError, WeightsError
from veilmark.score.ahp import read_matrix
from veilmark.web.forms.weights import Judgements, Pair, judge, tree_of
from veilmark.web.pages.weights import compared_pairs, step_of, times_of
from web.helpers import wait

MODEL = """\
tree:
  Person:
    sensitivity: 0.8
    children:
      Sickness:
        attribute: illness
        sensitivity: 0.5
        values: {flu: 0.2, cold: 0.1, HIV: 1}
  Work:
    sensitivity: 0.5
infers:
  - {from: Sickness, to: Work, value: 0.5}
"""


def saved(workspace, name="people"):
    return yaml.safe_load((workspace.folder / f"{name}.yaml").read_text())["attributes"]["illness"]


def without_weights(workspace):
    study = workspace.folder / "people.yaml"
    study.write_text(study.read_text().replace(", weights: {flu: 0.1, default: 0.2}", ""))


@pytest.fixture
def extracts(workspace):
    header, *rows = (workspace.folder / "people.csv").read_text().splitlines()
    for name, kept in (("mild.csv", "flu"), ("grave.csv", "HIV")):
        lines = [header, *(row for row in rows if f",{kept}," in row)]
        (workspace.folder / name).write_text("\n".join(lines) + "\n")
    yield ["mild.csv", "grave.csv"]
    for name in ("mild.csv", "grave.csv"):
        (workspace.folder / name).unlink()


# --- scores ----------------------------------------------------------------------------------------------------


def test_score_the_source(workspace, custodian):
    assert "The higher a score, the worse" in custodian.get("/studies/people/score").text
    job = wait(custodian, custodian.post("/api/studies/people/score", json={}).json())
    assert job["state"] == "done", job
    view = custodian.get("/api/studies/people/score").json()
    expected = Study.open(workspace.folder / "people.yaml").score()
    assert view["result"]["scores"]["tkl"]["value"] == pytest.approx(expected.scores["tkl"].value)
    assert 0 < view["result"]["scores"]["tkl"]["normalized"] < 1
    assert 2 <= len(view["job"]["charts"]) <= 4
    page = custodian.get(f"/studies/people/score?job={job['id']}").text
    for text in ("tkl-Score", "L-Severity", "The worst records", "Score again", "of the largest score there can be"):
        assert text in page
    assert not re.search(r"person \d", page)
    assert "person 1" not in custodian.get("/api/studies/people/score").text


def test_an_extract_by_form_and_an_edit_that_outdates_it(workspace, custodian, extracts):
    form = {"published": "grave.csv", "x": "inf", "normalize": "source"}
    answer = custodian.post("/studies/people/score", data=form, follow_redirects=False)
    assert answer.status_code == 303
    job = wait(custodian, {"id": answer.headers["location"].rpartition("=")[2]})
    assert job["state"] == "done", job
    page = custodian.get("/studies/people/score").text
    assert "20 of 60 records" in page
    assert "was changed since" not in page
    later = time.time() + 60
    os.utime(workspace.folder / "people.yaml", (later, later))
    assert "was changed since" in custodian.get("/studies/people/score").text
    assert custodian.get("/api/studies/people/score").json()["outdated"]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"x": "0.5", "normalize": "theory"}, "1 or larger"),
        ({"x": "many", "normalize": "theory"}, "not &#39;many&#39;"),
        ({"x": "1", "normalize": "nothing"}, "100 % stands for"),
    ],
)
def test_what_is_wrong_is_said_at_the_form(custodian, form, said):
    answer = custodian.post("/studies/people/score", data=form)
    assert answer.status_code == 400
    assert said in answer.text
    assert "What is to be shared" in answer.text


def test_only_tables_of_the_workspace(workspace, custodian):
    (workspace.folder / "releases").mkdir(exist_ok=True)
    (workspace.folder / "releases" / "copy.csv").write_text("age,sex,illness\n")
    for table in ("nothing.csv", "../people.csv", "releases/copy.csv", "/etc/passwd", ".veilmark/users.json"):
        assert custodian.post("/api/studies/people/score", json={"published": table}).status_code == 404
        tables = {"tables": [table, "people.csv"]}
        assert custodian.post("/api/studies/people/score/compare", json=tables).status_code == 404


def test_nothing_to_score_yet(workspace, custodian):
    without_weights(workspace)
    for page in ("score", "score/compare"):
        found = custodian.get(f"/studies/people/{page}").text
        assert "no weights yet" in found
        assert "<button>Score</button>" not in found
    assert "Not weighed yet" in custodian.get("/studies/people/score/weights").text
    job = wait(custodian, custodian.post("/api/studies/people/score", json={}).json())
    assert "has no weights" in job["error"]
    study = workspace.folder / "people.yaml"
    study.write_text(study.read_text().replace("sensitive", "other"))
    for page in ("score", "score/compare", "score/weights", "score/model"):
        assert "No column is sensitive yet" in custodian.get(f"/studies/people/{page}").text
    assert custodian.get("/studies/people/score/pairs?column=illness").status_code == 404


def test_a_job_of_another_page_is_not_shown(custodian):
    job = custodian.post("/api/studies/people/measures").json()
    for page in ("score", "score/compare"):
        assert custodian.get(f"/studies/people/{page}?job={job['id']}").status_code == 404


def test_no_inline_script_or_style(custodian):
    for path in ("", "/compare", "/weights", "/pairs?column=illness", "/model"):
        page = custodian.get(f"/studies/people/score{path}").text
        assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son[a-z]+=|javascript:", page), path


# --- candidates ------------------------------------------------------------------------------------------------


def test_compare(workspace, custodian, extracts):
    assert "mild.csv" in custodian.get("/studies/people/score/compare").text
    form = {"table": extracts, "x": "1", "spread": "10"}
    answer = custodian.post("/studies/people/score/compare", data=form, follow_redirects=False)
    job = wait(custodian, {"id": answer.headers["location"].rpartition("=")[2]})
    assert job["state"] == "done", job
    result = custodian.get("/api/studies/people/score/compare").json()["result"]
    assert result["ranking"] == ["mild.csv", "grave.csv"]
    assert result["stability"]["tkl"]["same_order"] == 1
    assert result["spread"] == 0.1
    page = custodian.get("/studies/people/score/compare").text
    assert "<strong>mild.csv</strong> is the least harmful" in page
    assert str(workspace.folder) not in page + str(result)


def test_compare_needs_two_and_sensible_options(custodian, extracts):
    post = custodian.post
    assert "Tick 2 to 50" in post("/studies/people/score/compare", data={"table": "mild.csv", "spread": "20"}).text
    assert "less than 100 %" in post("/studies/people/score/compare", data={"table": extracts, "spread": "200"}).text
    assert post("/api/studies/people/score/compare", json={"tables": ["mild.csv"] * 2}).status_code == 400
    assert post("/api/studies/people/score/compare", json={"tables": ["mild.csv"]}).status_code == 422


def test_upload_a_candidate(workspace, custodian):
    files = {"file": ("extract.csv", b"age,sex,illness\n20,F,flu\n")}
    assert custodian.post("/api/studies/people/score/tables", files=files).json() == {"table": "data/extract.csv"}
    answer = custodian.post("/studies/people/score/tables", files=files)
    assert "data/extract-2.csv can be compared now." in answer.text
    assert custodian.post("/studies/people/score/tables", data={"file": ""}).status_code == 400


# --- pairs -----------------------------------------------------------------------------------------------------


def sliders(values, **more):
    return {"value": values, "scale": "sum", "default": ""} | more


def test_pairs_by_form(workspace, custodian):
    page = custodian.get("/studies/people/score/pairs?column=illness").text
    assert page.count('type="range"') == 3
    form = sliders(["HIV", "flu", "cold"]) | {"pair:0-1": "-4", "pair:0-2": "-8", "pair:1-2": "-1"}
    tried = custodian.post("/studies/people/score/judge", data=form).text
    assert "the judgements fit together" in tried
    answer = custodian.post("/studies/people/score/pairs?column=illness", data=form)
    assert "is weighed by your judgements" in answer.text
    assert saved(workspace)["weights"] == {"ahp": "weights/people-illness.csv"}
    matrix = read_matrix(workspace.folder / "weights" / "people-illness.csv")
    assert matrix.names == ("HIV", "flu", "cold")
    assert matrix.values[0].tolist() == pytest.approx([1, 5, 9])
    again = custodian.get("/api/studies/people/score/pairs?column=illness").json()
    assert [pair["times"] for pair in again["pairs"]] == pytest.approx([5, 9, 2])
    assert custodian.post("/studies/people/score/pairs?column=illness", data=form).status_code == 200
    assert saved(workspace)["weights"] == {"ahp": "weights/people-illness.csv"}, "its own file is written again"
    assert "from pairwise judgements" in custodian.get("/studies/people/score/weights").text


def test_contradictions_are_named(custodian):
    pairs = [
        {"left": "HIV", "right": "flu", "times": 9},
        {"left": "flu", "right": "cold", "times": 9},
        {"left": "HIV", "right": "cold", "times": 1 / 9},
    ]
    asked = {"values": ["HIV", "flu", "cold"], "pairs": pairs}
    found = custodian.post("/api/studies/people/score/judge", json=asked).json()
    assert not found["acceptable"]
    assert found["consistency_ratio"] > 1
    assert "'HIV' against" in found["revisit"]["sentence"]
    form = sliders(["HIV", "flu", "cold"]) | {"pair:0-1": "-8", "pair:1-2": "-8", "pair:0-2": "8"}
    tried = custodian.post("/studies/people/score/judge", data=form).text
    assert "contradict each other. Think again about" in tried


def test_open_pairs(custodian):
    form = sliders(["HIV", "flu", "cold"]) | {"pair:0-1": "-4", "open:0-2": "on", "pair:1-2": "-1"}
    assert "judged just once" in custodian.post("/studies/people/score/judge", data=form).text
    form |= {"open:0-1": "on"}
    assert "no judgement between them" in custodian.post("/studies/people/score/judge", data=form).text


def test_values_that_are_not_compared_need_a_weight(workspace, custodian):
    form = sliders(["HIV", "flu"]) | {"pair:0-1": "-4"}
    answer = custodian.post("/studies/people/score/pairs?column=illness", data=form)
    assert answer.status_code == 400
    assert "cold" in answer.text
    assert "-4" in answer.text, "the slider stands where it stood"
    assert saved(workspace)["weights"] == {"flu": 0.1, "default": 0.2}
    answer = custodian.post("/studies/people/score/pairs?column=illness", data=form | {"default": "lots"})
    assert answer.status_code == 400
    form |= {"default": "0.05", "scale": "heaviest"}
    assert custodian.post("/studies/people/score/pairs?column=illness", data=form).status_code == 200
    weights = saved(workspace)["weights"]
    assert weights["ahp"].startswith("weights/people-illness")
    assert (weights["rescale"], weights["default"]) == (True, 0.05)
    assert Study.open(workspace.folder / "people.yaml").score().worst[0].weights["illness"] == 1


def test_pairs_by_api(workspace, custodian):
    pairs = [{"left": "HIV", "right": "flu", "times": 3}]
    edit = {"values": ["HIV", "flu"], "pairs": pairs, "default": 0.1, "rescale": True}
    found = custodian.put("/api/studies/people/score/pairs?column=illness", json=edit).json()
    assert found["judged"]["weights"] == pytest.approx({"HIV": 1, "flu": 1 / 3})
    assert saved(workspace)["weights"]["default"] == 0.1
    edit["pairs"] = pairs * 2
    assert custodian.put("/api/studies/people/score/pairs?column=illness", json=edit).status_code == 400
    edit["pairs"] = [{"left": "HIV", "right": "flu", "times": 10}]
    assert custodian.put("/api/studies/people/score/pairs?column=illness", json=edit).status_code == 422
    assert custodian.put("/api/studies/people/score/pairs?column=age", json={**edit, "pairs": pairs}).status_code == 404


def test_broken_texts_are_refused(custodian):
    text = '{"text": "\\ud800"}'
    kind = {"Content-Type": "application/json"}
    assert custodian.post("/api/studies/people/score/model", content=text, headers=kind).status_code == 422
    text = '{"values": ["\\ud800", "b"], "pairs": []}'
    assert custodian.post("/api/studies/people/score/judge", content=text, headers=kind).status_code == 422


def test_choosing_among_many_values(workspace, custodian):
    rows = "\n".join(f"p{i},{20 + i},F,illness {i % 30},x" for i in range(300))
    (workspace.folder / "people.csv").write_text(f"name,age,sex,illness,extra\n{rows}\n")
    url = "/api/studies/people/score/pairs?column=illness"
    assert len(custodian.get(url).json()["pairs"]) == 10
    assert len(custodian.get(url + "&value=illness 3&value=illness 4").json()["pairs"]) == 1
    assert custodian.get(url + "&value=illness 3").status_code == 400
    assert custodian.get(url + "&value=illness 3&value=nothing").status_code == 400
    many = "".join(f"&value=illness {i}" for i in range(10))
    assert "Choose 2 to 9" in custodian.get(url + many).json()["error"]


def test_hostile_values_stay_texts_and_blanks_are_told(workspace, custodian):
    evil = "<script>alert(1)</script>"
    rows = "\n".join(f"p{i},{20 + i},F,{evil if i % 2 else '  cold '},x" for i in range(30))
    (workspace.folder / "people.csv").write_text(f"name,age,sex,illness,extra\n{rows}\n")
    page = custodian.get("/studies/people/score/pairs?column=illness").text
    assert evil not in page
    assert "&lt;script&gt;" in page
    assert evil not in custodian.get("/studies/people/score/weights").text
    names = [v["value"] for v in custodian.get("/api/studies/people/score/pairs?column=illness").json()["values"]]
    answer = custodian.post("/studies/people/score/pairs?column=illness", data=sliders(names) | {"pair:0-1": "2"})
    expected = 400 if any(n != n.strip() for n in names) else 200
    assert answer.status_code == expected


def test_a_panel_is_left_alone_until_saved(workspace, custodian):
    (workspace.folder / "weights").mkdir(exist_ok=True)
    for i in (1, 2):
        (workspace.folder / "weights" / f"e{i}.csv").write_text(",HIV,flu,cold\nHIV,1,2.5,12\nflu,,1,2\ncold,,,1\n")
    study = workspace.folder / "people.yaml"
    text = study.read_text()
    study.write_text(text.replace("{flu: 0.1, default: 0.2}", "{ahp: [weights/e1.csv, weights/e2.csv]}"))
    assert "stay so until you save" in custodian.get("/studies/people/score/pairs?column=illness").text
    study.write_text(text.replace("{flu: 0.1, default: 0.2}", "{ahp: weights/e1.csv}"))
    page = custodian.get("/studies/people/score/pairs?column=illness")
    assert "shown at the nearest" in page.text
    assert [p["times"] for p in custodian.get("/api/studies/people/score/pairs?column=illness").json()["pairs"]] == [
        pytest.approx(2.5),
        9,
        2,
    ]


@given(st.integers(-8, 8))
def test_steps_and_times_are_the_same(step):
    assert step_of(times_of(str(step))) == step
    assert times_of(str(step)) == pytest.approx(1 / times_of(str(-step)))


NAMES = st.lists(st.text("abcdefgh", min_size=1, max_size=3), min_size=1, max_size=9, unique=True)


@given(NAMES, st.data())
def test_pairs_always_join_all_values(names, data):
    known = data.draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=8))
    judged = {}
    for left, right in known:
        if left != right and (left, right) not in judged:
            judged[left, right] = times = data.draw(st.sampled_from([1 / 9, 0.5, 1, 3, 9, 20]))
            judged[right, left] = 1 / times
    pairs = compared_pairs(names, judged)
    assert len(pairs) == math.comb(len(names), 2)
    for pair in pairs:
        if (pair.left, pair.right) in judged:
            assert pair.times == pytest.approx(min(9, max(1 / 9, judged[pair.left, pair.right])))
    if pairs:
        assert judge(Judgements(values=names, pairs=pairs)).weights.keys() == set(names)


@given(st.lists(st.sampled_from([1 / 9, 1 / 3, 1, 2, 9, None]), min_size=3, max_size=3))
def test_any_judgements_are_weights_or_told(times):
    pairs = [Pair(left=a, right=b, times=t) for (a, b), t in zip(("ab", "ac", "bc"), times, strict=True)]
    try:
        found = judge(Judgements(values=list("abc"), pairs=pairs))
    except WeightsError:
        assert sum(t is not None for t in times) < 2
        return
    assert sum(found.weights.values()) == pytest.approx(1)
    assert found.acceptable == (found.consistency_ratio <= 0.1)


# --- data model ------------------------------------------------------------------------------------------------


def test_model_by_form(workspace, custodian):
    page = custodian.get("/studies/people/score/model").text
    assert "illness:" in page, "a model to begin with"
    tried = custodian.post("/studies/people/score/model/try", data={"text": MODEL}).text
    assert "Sickness" in tried
    assert "tells of Work (0.5)" in tried
    answer = custodian.post("/studies/people/score/model", data={"text": MODEL, "column": "illness", "default": ""})
    assert "come from the data model" in answer.text
    assert saved(workspace)["weights"] == {"model": "weights/people-model.yaml"}
    found = custodian.get("/api/studies/people/score/model").json()
    assert found["tree"]["weights"]["illness"]["HIV"] == pytest.approx(0.8 * 0.5 * (1 + 0.5 * 0.5))
    score = Study.open(workspace.folder / "people.yaml").score()
    assert score.worst[0].weights["illness"] == pytest.approx(0.5)
    custodian.post("/studies/people/score/model", data={"text": MODEL, "column": "illness", "default": "0.2"})
    assert saved(workspace)["weights"] == {"model": "weights/people-model.yaml", "default": 0.2}
    assert "from a data model" in custodian.get("/studies/people/score/weights").text


def test_model_by_file_and_api(workspace, custodian):
    files = {"file": ("m.yaml", MODEL.encode())}
    answer = custodian.post("/studies/people/score/model", data={"text": "", "column": "illness"}, files=files)
    assert "come from the data model" in answer.text
    answer = custodian.post(
        "/studies/people/score/model", data={"column": "illness"}, files={"file": ("m.yaml", b"\xff\xfe\x00")}
    )
    assert "not UTF-8" in answer.text
    assert custodian.post("/api/studies/people/score/model", json={"text": MODEL}).json()["rule"] == "inference"
    edit = {"text": MODEL, "columns": ["illness"]}
    assert custodian.put("/api/studies/people/score/model", json=edit).json()["columns"] == ["illness"]
    for wrong in (["age"], ["nothing"]):
        assert custodian.put("/api/studies/people/score/model", json=edit | {"columns": wrong}).status_code == 400


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("tree: [", "not valid YAML"),
        ("tree: {A: {sensitivity: 2, values: {x: 1}}}", "line 1"),
        ("tree: {B: {sensitivity: 1, values: {x: 1}}}", "no values for the column"),
        (MODEL.replace("HIV: 1", "AIDS: 1"), "HIV"),
    ],
)
def test_a_model_that_is_wrong(workspace, custodian, text, said):
    before = (workspace.folder / "people.yaml").read_text()
    answer = custodian.post("/studies/people/score/model", data={"text": text, "column": "illness"})
    assert answer.status_code == 400
    assert said in answer.text
    assert "/tmp" not in answer.text
    assert (workspace.folder / "people.yaml").read_text() == before


def test_a_deep_model():
    deep = {"sensitivity": 1, "values": {"x": 1}}
    for i in range(30):
        deep = {"sensitivity": 1, "children": {f"c{i}": deep}}
    with pytest.raises(WeightsError, match="levels"):
        tree_of(yaml.safe_dump({"tree": {"a": deep}}))
    with pytest.raises(VeilmarkError):
        tree_of("tree: " + "{a: {sensitivity: 1, children: " * 5_000)


def test_a_model_outside_is_not_shown(workspace, custodian, tmp_path):
    (tmp_path / "m.yaml").write_text(MODEL)
    study = workspace.folder / "people.yaml"
    study.write_text(study.read_text().replace("{flu: 0.1, default: 0.2}", f"{{model: {tmp_path / 'm.yaml'}}}"))
    page = custodian.get("/studies/people/score/model").text
    assert "outside the workspace" in page
    assert "Sickness" not in page


@settings(max_examples=examples(50))
@given(st.text(max_size=80) | st.text("tree: {}[]sensitivity1.0,valuesx\n -", max_size=120))
def test_any_text_is_a_model_or_told(text):
    with suppress(VeilmarkError):
        assert tree_of(text).weights

"""The Anonymize pages: what is asked, the release, the lattice, methods compared, and attacks."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.errors import OptionError
from veilmark.web.forms.anonymize import (
    METHODS,
    TAKES,
    AnonymizeForm,
    from_fields,
    last_asked,
    persons_method,
    to_fields,
)
from veilmark.web.pages.attacks import release_path, releases
from veilmark.web.tasks import lattice
from veilmark.web.tasks.anonymize import _new, anonymize_source
from veilmark.web.workspace import NotFoundError
from web.helpers import STUDY, Client, people, wait

OLA = {"method": "ola", "k": "3", "suppress": "10", "loss": "gcp", "l:illness": "2", "format": "csv"}
PERSONS = """\
version: 1
source: visits.csv
person: id
attributes:
  age: {role: quasi}
  sex: {role: quasi}
  illness: {role: sensitive}
  plan: {role: sensitive}
"""


@pytest.fixture
def visits(workspace):
    rows = (f"{i % 40},{20 + i % 20},{'FM'[i % 2]},{'abcde'[i % 5]},{i % 4}" for i in range(80))
    (workspace.folder / "visits.csv").write_text("\n".join(["id,age,sex,illness,plan", *rows]) + "\n")
    (workspace.folder / "visits.yaml").write_text(PERSONS)
    return workspace


def result(client, job):
    assert job["state"] == "done", job
    return client.get(f"/api/jobs/{job['id']}/result").json()


def run(client, url, asked):
    answer = client.post(url, json=asked)
    assert answer.status_code == 202, answer.text
    return wait(client, answer.json())


# --- what is asked ---------------------------------------------------------------------------------------------

NUMBERS = st.dictionaries(st.sampled_from(["illness", "a:b", "ü"]), st.integers(1, 9).map(float), max_size=2)
SETTINGS = {
    "k": st.none() | st.integers(1, 99),
    **dict.fromkeys(("l", "t", "alpha", "beta", "delta", "weights"), NUMBERS),
    "l_kind": st.sampled_from(["distinct", "entropy"]),
    "k_map": st.none() | st.integers(1, 9),
    "presence": st.none() | st.just((0.25, 0.5)),
    "population": st.none() | st.just("all.csv"),
    "suppress": st.integers(0, 100).map(lambda share: share / 100),
    "loss": st.sampled_from(["gcp", "dm"]),
    "levels": st.dictionaries(st.sampled_from(["age", "x y"]), st.just((0, 2)) | st.just((1, 1)), max_size=2),
    "relaxed": st.booleans(),
    "gamma": st.none() | st.just(0.2),
    "slice_l": st.none() | st.just(2.0),
    "preset": st.sampled_from(["strict", "paper"]),
    "groups": st.none() | st.just([["illness"], ["a", "b"]]),
    "f": st.none() | st.just([3, 2]),
    "m": st.none() | st.integers(1, 5),
    "merge": st.none() | st.just(0.5),
}


@settings(max_examples=examples(100))
@given(st.sampled_from(sorted(METHODS)), st.data())
def test_the_form_says_what_the_api_says(method, data):
    names = data.draw(st.sets(st.sampled_from([name for name in TAKES[method] if name in SETTINGS])))
    asked = AnonymizeForm(method=method, **{name: data.draw(SETTINGS[name]) for name in sorted(names)})
    assert from_fields(to_fields(asked)) == asked
    assert AnonymizeForm(**asked.given()) == asked


def test_fields_of_other_methods_are_left_aside():
    asked = from_fields(OLA | {"method": "mondrian", "low:age": "1", "preset": "paper", "relaxed": "on"})
    assert asked == AnonymizeForm(method="mondrian", k=3, l={"illness": 2}, relaxed=True)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"k": "five"}, "k must be a number"),
        ({"k": "2.5"}, "k: "),
        ({"k": "0"}, "k: "),
        ({"t:illness": "x"}, "t of illness must be a number"),
        ({"low:age": "1e999"}, "The level of age"),
        ({"suppress": "150"}, "suppress: "),
        ({"method": "magic"}, "method: "),
    ],
)
def test_what_was_typed_wrongly(fields, words):
    with pytest.raises(OptionError, match=words):
        from_fields(OLA | fields)


def test_methods_of_persons():
    assert persons_method(AnonymizeForm(method="fslip", groups=[["a"], ["b"]], f=[3, 2])).f == (3, 2)
    assert persons_method(AnonymizeForm(method="rmr", merge=0.5)).delta == 0.5
    with pytest.raises(OptionError, match="whole number"):
        persons_method(AnonymizeForm(method="anatomy", slice_l=2.5))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"method": "mondrian", "suppress": 0.1}, "'suppress' does not belong to Mondrian"),
        ({"k": None}, "Say what the release must meet"),
        ({"k_map": 3}, "Choose its table"),
        ({"population": "people.csv"}, "no condition uses it"),
        ({"method": "fslip"}, "which column tells persons apart"),
        ({"l": {"age": 2}}, "'age' is not a sensitive attribute"),
        ({"t": {"illness": 7}}, "must be a number from 0 to 1"),
    ],
)
def test_what_cannot_be_asked(analyst, asked, words):
    answer = analyst.post("/api/studies/people/anonymize", json=asked)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_what_is_not_there(analyst):
    unknown = {"k_map": 3, "population": "nothing.csv"}
    assert analyst.post("/api/studies/people/anonymize", json=unknown).status_code == 404
    assert analyst.post("/api/studies/people/anonymize", json={"kk": 3}).status_code == 422
    assert analyst.get("/studies/nothing/anonymize").status_code == 404


def test_errors_stand_at_the_form_with_what_was_typed(app, analyst):
    before = len(app.state.jobs.all("custodian"))
    answer = analyst.post("/studies/people/anonymize", data=OLA | {"l:illness": "2.5", "weights:age": "7"})
    assert answer.status_code == 400
    assert 'role="alert">l must be a whole number' in answer.text
    assert 'name="l:illness" type="number" step="any" min="1" value="2.5"' in answer.text
    assert 'value="7"' in answer.text
    assert len(app.state.jobs.all("custodian")) == before


def test_a_study_without_quasi_identifiers(workspace, analyst):
    (workspace.folder / "people.yaml").write_text(
        "version: 1\nsource: people.csv\nattributes: {name: {role: direct}}\n"
    )
    assert "No column is a quasi-identifier yet" in analyst.get("/studies/people/anonymize").text
    for url in ("compare", "attacks"):
        assert "needs at least one quasi-identifier" in analyst.get(f"/studies/people/anonymize/{url}").text
    assert analyst.post("/api/studies/people/anonymize/compare", json={}).status_code == 400
    (workspace.folder / "people.csv").unlink()
    (workspace.folder / "people.yaml").write_text(STUDY)
    page = analyst.get("/studies/people/anonymize").text
    assert "people.csv" in page
    assert str(workspace.folder) not in page


# --- the release and its lattice -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(app):
    """A release by OLA, made with the form."""
    (app.state.workspace.folder / "people.csv").write_text(people())
    (app.state.workspace.folder / "people.yaml").write_text(STUDY)
    client = Client(app, "analyst")
    answer = client.post("/studies/people/anonymize", data=OLA, follow_redirects=False)
    job = wait(client, {"id": answer.headers["location"].rpartition("=")[2]})
    return job | {"result": result(client, job)}


def test_the_release(workspace, analyst, made):
    assert made["title"] == "Anonymize people by OLA, k = 3"
    found = made["result"]
    assert found["k"] >= 3
    assert (found["as_is"], found["columns_left_out"]) == ([], ["extra"])
    assert [one["unchecked"] for one in found["limits"]] == [None, None]
    assert len(made["charts"]) == 3
    view = analyst.get("/api/studies/people/anonymize").json()
    assert view["job"]["id"] == made["id"]
    assert view["asked"]["l"] == {"illness": 2}
    names = [file["name"] for file in view["files"]]
    assert names == ["people-ola.csv", "people-ola.recoding.json"]
    release = analyst.get(f"/download/{view['files'][0]['path']}").text
    assert release.splitlines()[0] == "age,sex,illness"
    assert "person" not in release
    page = analyst.get("/studies/people/anonymize").text
    said = ("The release", "at least 2 values of illness", "people-ola.csv", "Other generalizations")
    assert list(found["unchanged"]) == ["illness"]
    assert (found["unchanged"]["illness"]["exact"], found["missing_counted"]) == (True, {})
    said = (*said, "Columns published unchanged", "make it a quasi-identifier")
    for words in (*said, "because the study does not name them: extra."):
        assert words in page
    assert "person 1" not in page
    assert str(workspace.folder) not in page
    assert last_asked(workspace, "people").k == 3


def test_pages_keep_to_the_policy(analyst, made):
    node = ",".join(map(str, made["result"]["nodes"][0]["levels"]))
    for url in ("", f"?node={node}", "/compare", "/attacks", f"/node?levels={node}"):
        page = analyst.get(f"/studies/people/anonymize{url}").text
        assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son[a-z]+=|javascript:", page), url


def test_a_node(analyst, made):
    found = made["result"]
    for one in found["nodes"]:
        node = ",".join(map(str, one["levels"]))
        view = analyst.get("/api/studies/people/anonymize/node", params={"levels": node}).json()
        assert (view["suppressed"], view["classes"], view["passes"]) == (one["suppressed"], one["classes"], True)
        assert view["loss"]["gcp"] == pytest.approx(one["loss"])
        assert view["columns"] == ["age", "sex", "illness"]
        assert len(view["rows"]) == 10
        assert view["chart"]["$schema"]
        assert "Use this one" in analyst.get(f"/studies/people/anonymize/node?levels={node}").text
        page = analyst.get("/studies/people/anonymize", params={"node": node, "job": made["id"]}).text
        assert "Its first rows" in page
    chosen = ",".join(str(level) for level in found["levels"].values())
    assert chosen == ",".join(map(str, found["nodes"][0]["levels"]))


@pytest.mark.parametrize(
    ("levels", "status", "words"),
    [
        ("9,9", 400, "has the levels 0 to"),
        ("1", 400, "Give 2 levels"),
        ("x", 422, "levels"),
        ("1,-1", 422, "levels"),
    ],
)
def test_nodes_that_are_not_there(analyst, made, levels, status, words):
    answer = analyst.get("/api/studies/people/anonymize/node", params={"levels": levels, "job": made["id"]})
    assert answer.status_code == status
    assert words in answer.json()["error"]
    page = analyst.get("/studies/people/anonymize", params={"node": levels, "job": made["id"]})
    assert page.status_code == 200
    assert "Use this one" not in page.text


def test_a_node_that_leaves_out_too_much(analyst, made):
    page = analyst.get("/studies/people/anonymize/node?levels=0,0").text
    assert "All records would be suppressed" in page
    assert "Use this one" not in page


def test_the_source_is_read_once_and_again_when_it_changed(workspace, made):
    asked = AnonymizeForm(**made["result"]["asked"])
    one = lattice._explorer(workspace, "people", asked)
    assert lattice._explorer(workspace, "people", asked) is one
    text = (workspace.folder / "people.csv").read_text()
    (workspace.folder / "people.csv").write_text(text + "person 99,44,F,flu,note\n")
    other = lattice._explorer(workspace, "people", asked)
    assert other.classes.total_records == one.classes.total_records + 1
    for k in (4, 5, 6):
        lattice._explorer(workspace, "people", asked.model_copy(update={"k": k}))
    assert len(lattice._OPENED) == 2


def test_a_study_that_changed_since(workspace, analyst, made):
    (workspace.folder / "people.yaml").write_text(STUDY.replace("sex: {role: quasi}", "sex: {role: other}"))
    answer = analyst.get("/api/studies/people/anonymize/node", params={"levels": "1", "job": made["id"]})
    assert "other quasi-identifiers now" in answer.json()["error"]


def test_use_another_node(analyst, made):
    chosen = {"levels": "2,0", "job": made["id"]}
    answer = analyst.post("/studies/people/anonymize/node", data=chosen, follow_redirects=False)
    job = wait(analyst, {"id": answer.headers["location"].rpartition("=")[2]})
    found = result(analyst, job)
    assert found["levels"] == {"age": 2, "sex": 0}
    assert found["lattice"] == made["id"]
    assert found["asked"] == made["result"]["asked"]
    page = analyst.get(answer.headers["location"]).text
    assert "at levels chosen by hand" in page
    assert "Other generalizations" not in page
    assert analyst.post("/api/studies/people/anonymize/node", json={"levels": [1]}).status_code == 400
    wrong = {"levels": [1, 0], "job": "nothing"}
    assert analyst.post("/api/studies/people/anonymize/node", json=wrong).status_code == 404


def test_jobs_of_another_kind_or_study_are_not_shown(visits, analyst, made):
    other = run(analyst, "/api/studies/people/measures", {})
    assert analyst.get(f"/studies/people/anonymize?job={other['id']}").status_code == 404
    assert analyst.get(f"/studies/visits/anonymize?job={made['id']}").status_code == 404
    assert analyst.get(f"/studies/people/anonymize/compare?job={made['id']}").status_code == 404
    chosen = {"levels": [1, 0], "job": made["id"]}
    assert analyst.post("/api/studies/visits/anonymize/node", json=chosen).status_code == 404


def test_names_are_taken_at_once_and_freed_on_failure(workspace):
    with _new(workspace, "twice", ".csv") as one, _new(workspace, "twice", ".csv") as other:
        assert one != other
    with pytest.raises(ZeroDivisionError), _new(workspace, "gone", "") as folder:
        (folder / "qi.csv").write_text(str(1 / 0))
    assert not folder.exists()
    assert "anonymized/twice.csv" not in releases(workspace, "people")  # It is still empty.
    for path in (one, other):
        path.unlink()


def test_a_failure_leaves_nothing(workspace):
    before = sorted((workspace.folder / "anonymized").iterdir())
    with pytest.raises(OptionError, match="k = 1,000 cannot be reached"):
        anonymize_source(workspace, "people", {"method": "ola", "k": 1000})
    assert sorted((workspace.folder / "anonymized").iterdir()) == before


def test_mondrian_and_microaggregation(workspace):
    found = anonymize_source(workspace, "people", {"method": "mondrian", "k": 3, "format": "parquet"}).result
    assert found["output"] == "anonymized/people-mondrian.parquet"
    assert found["nodes"] == []
    numbers = STUDY.replace("sex: {role: quasi}", "sex: {role: other}")
    (workspace.folder / "people.yaml").write_text(numbers)
    found = anonymize_source(workspace, "people", {"method": "microaggregate", "k": 3}).result
    assert found["k"] >= 3


def test_a_population(workspace):
    asked = {"k_map": 2, "population": "people.csv", "suppress": 0.5}
    found = anonymize_source(workspace, "people", asked).result
    assert [one["limit"] for one in found["limits"]] == ["k ≥ 5", "k ≥ 2 in the population"]


@pytest.mark.parametrize("method", ["fslip", "onemany", "rmr", "anatomy", "slicing"])
def test_methods_of_persons_write_a_folder(visits, analyst, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = anonymize_source(visits, "visits", {"method": method}).result
    assert "qi.csv" in [path.rpartition("/")[2] for path in found["files"]]
    assert found["output"] in releases(visits, "visits")
    assert release_path(visits, found["output"]).is_dir()


def test_a_page_of_persons(visits, analyst):
    job = run(analyst, "/api/studies/visits/anonymize", {"method": "fslip", "k": 4, "groups": [["illness"], ["plan"]]})
    found = result(analyst, job)
    assert found["groups"] == [["illness"], ["plan"]]
    page = analyst.get("/studies/visits/anonymize").text
    assert "Its tables, and what was lost" in page
    assert "sensitive_2.csv" in page
    assert "has no hierarchy" in page or "have no hierarchy" in page
    answer = analyst.get("/api/studies/visits/anonymize/node", params={"levels": "0,0"})
    assert answer.status_code == 404
    wrong = {"method": "fslip", "groups": [["illness"]]}
    assert analyst.post("/api/studies/visits/anonymize", json=wrong).status_code == 400


# --- compare and attack ----------------------------------------------------------------------------------------


def test_compare(analyst):
    asked = {"methods": ["ola", "anatomy", "rmr"], "k": 3, "l": 3, "targets": 40}
    found = result(analyst, run(analyst, "/api/studies/people/anonymize/compare", asked))
    assert set(found["methods"]) == {"ola", "anatomy", "rmr"}
    page = analyst.get("/studies/people/anonymize/compare").text
    assert "No other method has both less loss and less risk." in page
    data = {"k": "3", "method:ola": "on", "targets": "many", "suppress": "5"}
    answer = analyst.post("/studies/people/anonymize/compare", data=data)
    assert answer.status_code == 400
    assert "targets must be a number" in answer.text
    answer = analyst.post("/studies/people/anonymize/compare", data={"k": "3"})
    assert "Choose at least one method" in answer.text
    assert analyst.post("/api/studies/people/anonymize/compare", json={"methods": ["magic"]}).status_code == 422


def test_attack(workspace, analyst, made):
    data = {"release": made["result"]["output"], "attack:qicorr": "on", "attack:linkage": "on", "targets": "50"}
    answer = analyst.post("/studies/people/anonymize/attacks", data=data, follow_redirects=False)
    found = result(analyst, wait(analyst, {"id": answer.headers["location"].rpartition("=")[2]}))
    assert set(found["attacks"]) == {"qicorr", "linkage"}
    assert found["release"] == made["result"]["output"]
    page = analyst.get("/studies/people/anonymize/attacks").text
    assert "A published row fits at least" in page
    assert str(workspace.folder) not in page
    for lacking, words in (("release", "Choose the release"), ("attack:qicorr", "at least one attack")):
        data = {"release": made["result"]["output"], "attack:qicorr": "on"} | {lacking: ""}
        answer = analyst.post("/studies/people/anonymize/attacks", data=data)
        assert answer.status_code == 400
        assert words in answer.text


@pytest.mark.parametrize(
    "name",
    [
        "releases/copy.csv",
        "./releases/copy.csv",
        "anonymized/../releases/copy.csv",
        "anonymized/../releases",
        "linked.csv",
        "../people.csv",
        "/etc/passwd",
        ".veilmark/users.json",
        "nothing.csv",
        "anonymized",
        "a\0b.csv",
    ],
)
def test_recipients_copies_and_what_lies_outside_cannot_be_attacked(workspace, custodian, name):
    (workspace.folder / "releases").mkdir(exist_ok=True)
    for file in ("copy.csv", "qi.csv"):
        (workspace.folder / "releases" / file).write_text("age\n1\n")
    link = workspace.folder / "linked.csv"
    link.unlink(missing_ok=True)
    link.symlink_to(workspace.folder / "releases" / "copy.csv")
    with pytest.raises(NotFoundError):
        release_path(workspace, name)
    assert custodian.post("/api/studies/people/anonymize/attacks", json={"release": name}).status_code == 404
    asked = {"k_map": 2, "population": name}
    assert custodian.post("/api/studies/people/anonymize", json=asked).status_code == 404
    link.unlink()

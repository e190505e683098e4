"""The Studies pages: a new study, its roles, its columns, and what is wrong with what was typed."""

from __future__ import annotations

import html
import io
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from veilmark.errors import HierarchyError
from veilmark.hierarchy.spec import parse_spec
from veilmark.web.forms.hierarchy import from_form, to_form
from veilmark.web.forms.study import FieldsError, with_roles
from veilmark.web.tasks.guesses import GuessView
from veilmark.web.tasks.samples import open_sample
from web.helpers import wait


def saved(workspace, name="people"):
    return yaml.safe_load((workspace.folder / f"{name}.yaml").read_text())


# --- a new study -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["register", "hospital"])
def test_samples(workspace, custodian, kind):
    study = open_sample(workspace, kind)["study"]
    view = custodian.get(f"/api/studies/{study}").json()
    assert view["problem"] is None
    assert all(column["guess"] for column in view["columns"])
    assert {"quasi", "sensitive"} <= {column["role"] for column in view["columns"]}
    assert len(view["rows"]) == 10
    assert custodian.get(f"/studies/{study}").status_code == 200
    assert (workspace.folder / "data" / "register-voters.parquet").exists() or kind == "hospital"


def test_upload(workspace, custodian):
    table = pa.table({"email": [f"a{i}@example.org" for i in range(40)], "age": list(range(40)), "nest": [[1]] * 40})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    files = {"file": ("My table.parquet", buffer.getvalue())}
    answer = custodian.post("/uploads", files=files, data={"name": "Ü study"}, follow_redirects=False)
    job = wait(custodian, {"id": answer.headers["location"].rpartition("=")[2]})
    assert job["state"] == "done", job
    assert custodian.get(answer.headers["location"]).url.path == "/studies/u-study"
    columns = {c["name"]: c for c in custodian.get("/api/studies/u-study").json()["columns"]}
    assert columns["email"]["role"] == "direct"
    assert columns["email"]["examples"] == ["•••••"]
    assert columns["nest"]["role"] is None
    assert "a1@example.org" not in custodian.get("/studies/u-study").text
    assert "a1@example.org" in custodian.get("/studies/u-study?show=direct").text


def test_only_the_custodian_sees_direct_identifiers(app, custodian, analyst):
    assert "person 3" in custodian.get("/studies/people?show=direct").text
    assert app.state.audit.last(1)[0].what == "looked at direct identifiers"
    assert "person 3" not in analyst.get("/studies/people?show=direct").text
    assert "person 3" not in custodian.get("/api/studies/people").text


def test_an_upload_that_is_no_table_is_removed(workspace, custodian):
    before = workspace.tables()
    answer = custodian.post("/api/uploads", files={"file": ("x.parquet", b"nonsense")})
    job = wait(custodian, answer.json())
    assert job["state"] == "failed"
    assert "x.parquet" in job["error"]
    assert str(workspace.folder) not in job["error"]
    assert workspace.tables() == before
    assert custodian.post("/uploads", files={"csrf": (None, custodian.token)}).status_code == 400
    assert custodian.post("/api/uploads", files={"file": ("x.exe", b"MZ")}).status_code == 400


def test_a_table_of_the_workspace(workspace, custodian):
    answer = custodian.post("/api/studies", json={"table": "people.csv"})
    assert wait(custodian, answer.json())["state"] == "done"
    assert custodian.get(f"/api/jobs/{answer.json()['id']}/result").json() == {"study": "people-2"}
    assert saved(workspace, "people-2")["source"] == "people.csv"
    assert custodian.post("/api/studies", json={"table": "nothing.csv"}).status_code == 404
    assert {s["name"] for s in custodian.get("/api/studies").json()["studies"]} >= {"people", "people-2"}
    assert custodian.delete("/api/studies/people-2").json() == {"removed": "people-2"}
    assert custodian.get("/api/studies/people-2").status_code == 404


def test_an_empty_workspace_and_a_broken_study(workspace, custodian):
    assert "people" in custodian.get("/studies").text
    (workspace.folder / "broken.yaml").write_text("version: 1\nsource: people.csv\nattributes: {age: {rol: quasi}}\n")
    page = custodian.get("/studies").text
    assert "unknown key &#39;rol&#39;" in page
    assert custodian.get("/studies/broken").status_code == 400
    (workspace.folder / "broken.yaml").unlink()
    (workspace.folder / "people.csv").unlink()
    page = custodian.get("/studies/people")
    assert page.status_code == 200
    assert "people.csv" in page.text
    assert str(workspace.folder) not in page.text


def test_hostile_names_and_values_stay_texts(workspace, custodian):
    evil = '<script>alert("x")</script>'
    (workspace.folder / "evil.csv").write_text(
        f'"{evil.replace(chr(34), chr(34) * 2)}",age\n' + f"{evil.replace(chr(34), '')},3\n" * 40
    )
    job = wait(custodian, custodian.post("/api/studies", json={"table": "evil.csv"}).json())
    assert job["state"] == "done", job
    page = custodian.get("/studies/evil").text
    assert "<script>alert" not in page
    assert html.escape(evil).replace("&quot;", "&#34;") in page
    chosen = {f"role:{evil}": "quasi", "role:age": "quasi"}
    assert custodian.post("/studies/evil", data=chosen).status_code == 200
    assert saved(workspace, "evil")["attributes"][evil]["role"] == "quasi"
    assert "<script>alert" not in custodian.get("/studies/evil/column", params={"column": evil}).text
    for name in ("evil.csv", "evil.yaml"):
        (workspace.folder / name).unlink()


# --- roles -----------------------------------------------------------------------------------------------------


def test_saving_roles(workspace, custodian):
    chosen = {
        "role:name": "person",
        "role:age": "quasi",
        "role:sex": "sensitive",
        "role:extra": "other",
        "role:illness": "quasi",
    }
    answer = custodian.post("/studies/people", data=chosen)
    assert "The roles are saved." in answer.text
    study = saved(workspace)
    assert study["person"] == "name"
    assert {c: a["role"] for c, a in study["attributes"].items()} == {
        "name": "direct", "age": "quasi", "sex": "sensitive", "illness": "quasi", "extra": "other"
    }  # fmt: skip
    assert study["attributes"]["age"]["hierarchy"] == {"intervals": [5, 10]}
    assert "weights" not in study["attributes"]["illness"]


def test_wrong_roles_are_told_at_their_columns(workspace, custodian):
    before = saved(workspace)
    answer = custodian.post("/studies/people", data={"role:name": "person", "role:age": "person", "role:sex": "quasi"})
    assert answer.status_code == 400
    assert answer.text.count('aria-invalid="true"') == 2
    assert custodian.post("/studies/people", data={"role:age": "nonsense"}).status_code == 400
    assert saved(workspace) == before


def test_the_api_tells_each_column(workspace, custodian):
    edit = {"attributes": {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 7]}}, "sex": {"rol": "quasi"}}}
    answer = custodian.put("/api/studies/people", json=edit)
    assert answer.status_code == 400
    assert "7 is not a multiple of 5" in answer.json()["fields"]["age"]
    assert "unknown key 'rol'" in answer.json()["fields"]["sex"]
    right = {"person": "name", "attributes": {"age": {"role": "quasi"}}}
    assert custodian.put("/api/studies/people", json=right).status_code == 200
    assert saved(workspace) == {
        "version": 1,
        "source": "people.csv",
        "person": "name",
        "attributes": {"age": {"role": "quasi"}},
    }
    lacking = {"person": "nobody", "attributes": {}}
    assert "nobody" in custodian.put("/api/studies/people", json=lacking).json()["problem"]


def test_guessing_again(custodian):
    job = wait(custodian, custodian.post("/api/studies/people/guess").json())
    assert job["state"] == "done"
    columns = {c["name"]: c for c in custodian.get("/api/studies/people").json()["columns"]}
    assert columns["name"]["guess"]["role"] == "direct"
    edit = {"attributes": {"name": {"role": "other"}}}
    columns = {c["name"]: c for c in custodian.put("/api/studies/people", json=edit).json()["columns"]}
    assert "looks like a direct identifier" in columns["name"]["warnings"][0]
    assert columns["name"]["examples"] == ["•••••"]


ROLES = st.sampled_from(["direct", "quasi", "sensitive", "other", "person"])


@given(
    st.dictionaries(st.sampled_from("abcde"), ROLES),
    st.dictionaries(st.sampled_from("abcde"), ROLES.filter(lambda r: r != "person")),
)
def test_roles_are_as_chosen(chosen, before):
    old = {column: {"role": role, "missing": ["-1"]} for column, role in before.items()}
    guesses = {"a": GuessView(role="quasi", reason="", hierarchy={"mask": 3})}
    persons = [c for c, r in chosen.items() if r == "person"]
    if len(persons) > 1:
        with pytest.raises(FieldsError):
            with_roles(old, None, chosen, guesses)
        return
    person, attributes = with_roles(old, None, chosen, guesses)
    assert person == (persons[0] if persons else None)
    for column, role in {**before, **chosen}.items():
        if role != "person":
            assert attributes[column]["role"] == role
    assert {c: a for c, a in attributes.items() if c not in chosen} == {c: a for c, a in old.items() if c not in chosen}


def test_removing_needs_the_name(workspace, custodian, analyst):
    assert custodian.post("/studies/people/remove", data={"confirm": "peple"}).status_code == 400
    assert analyst.post("/studies/people/remove", data={"confirm": "people"}).status_code == 403
    assert custodian.post("/studies/people/remove", data={"confirm": "people"}).url.path == "/studies"
    assert not (workspace.folder / "people.yaml").exists()


# --- a column --------------------------------------------------------------------------------------------------


def test_the_preview_counts(custodian):
    found = custodian.get("/api/studies/people/column", params={"column": "age"}).json()["preview"]
    assert [level["labels"] for level in found["levels"]] == [30, 6, 3, 1]
    assert [level["smallest"] for level in found["levels"]] == [2, 10, 20, 60]
    assert found["levels"][2]["groups"][0] == {"label": "20-29", "values": 10, "records": 20}
    assert found["rows"][0] == ["20", "20-24", "20-29", "*"]
    asked = {"hierarchy": {"intervals": [2]}, "missing": ["20"]}
    tried = custodian.post("/api/studies/people/preview", params={"column": "age"}, json=asked).json()
    assert tried["levels"][0]["labels"] == 30
    assert tried["rows"][-1][0] is None
    wrong = custodian.post(
        "/api/studies/people/preview", params={"column": "sex"}, json={"hierarchy": {"intervals": [2]}}
    )
    assert wrong.status_code == 400


@pytest.mark.parametrize(
    ("form", "hierarchy"),
    [
        ({"kind": "none"}, None),
        ({"kind": "intervals", "widths": "5, 10 20", "offset": "1"}, {"intervals": [5, 10, 20], "offset": 1}),
        ({"kind": "mask", "characters": "2", "side": "left"}, {"mask": 2, "side": "left"}),
        ({"kind": "intervals", "widths": "10", "others": "on"}, {"intervals": [10], "others": "*"}),
    ],
)
def test_saving_a_hierarchy(workspace, custodian, form, hierarchy):
    url = "/studies/people/column?column=age"
    part = custodian.post("/studies/people/preview?column=age", data=form | {"missing": "-1"})
    assert part.status_code == 200
    assert "Level 1" in part.text
    assert "<html" not in part.text
    assert "The column is saved." in custodian.post(url, data=form | {"missing": "-1, 99"}).text
    content = saved(workspace)["attributes"]["age"]
    assert content.get("hierarchy") == hierarchy
    assert content["missing"] == ["-1", "99"]


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"kind": "intervals", "widths": "5, 7"}, "7 is not a multiple of 5"),
        ({"kind": "intervals", "widths": ""}, "list is empty"),
        ({"kind": "mask", "characters": ""}, "integer"),
        ({"kind": "dates"}, "list is empty"),
        ({"kind": "levels", "groups": ""}, "No groups are given"),
        ({"kind": "levels", "groups": "20; a\n21; a; b"}, "as many"),
        ({"kind": "levels", "groups": "20; young\n21; young"}, "lack"),
        ({"kind": "file"}, "No hierarchy file"),
        ({"kind": "nonsense"}, "not a kind"),
    ],
)
def test_a_wrong_hierarchy_is_told_and_kept_in_the_form(workspace, custodian, form, says):
    before = saved(workspace)
    answer = custodian.post("/studies/people/column?column=age", data=form)
    assert answer.status_code == 400
    assert says in html.unescape(answer.text)
    assert html.escape(form.get("widths", "")) in answer.text
    assert says in html.unescape(custodian.post("/studies/people/preview?column=age", data=form).text)
    assert saved(workspace) == before


def test_groups_and_files(workspace, custodian):
    url = "/studies/people/column?column=sex"
    assert custodian.post(url, data={"kind": "levels", "groups": "F; person\nM; person"}).status_code == 200
    assert saved(workspace)["attributes"]["sex"]["hierarchy"] == {"levels": [{"F": "person", "M": "person"}]}
    assert "F; person" in custodian.get(url).text
    files = {"file": ("sex levels.csv", b"F;all\nM;all\n")}
    assert custodian.post(url, data={"kind": "file"}, files=files).status_code == 200
    assert saved(workspace)["attributes"]["sex"]["hierarchy"] == {"file": "hierarchies/sex-levels.csv"}
    assert workspace.hierarchies() == ["hierarchies/sex-levels.csv"]


def test_weights_and_distance(workspace, custodian):
    url = "/studies/people/column?column=illness"
    values = custodian.get("/api/studies/people/column", params={"column": "illness"}).json()["values"]
    assert {v["value"]: (v["records"], v["weight"]) for v in values} == {
        "flu": (20, 0.1),
        "cold": (20, None),
        "HIV": (20, None),
    }
    form = {
        "kind": "none",
        "distance": "ordered",
        "order": "cold, flu, HIV",
        "default": "0.3",
        "weight:flu": "",
        "weight:HIV": "0.9",
    }
    assert custodian.post(url, data=form).status_code == 200
    content = saved(workspace)["attributes"]["illness"]
    assert content == {
        "role": "sensitive",
        "distance": "ordered",
        "order": ["cold", "flu", "HIV"],
        "weights": {"HIV": 0.9, "default": 0.3},
    }
    answer = custodian.post(url, data=form | {"weight:HIV": "much"})
    assert answer.status_code == 400
    assert "weight of HIV must be a number" in answer.text


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"intervals": [5, 10], "offset": 2},
        {"intervals": [0.5], "others": "*"},
        {"mask": 3},
        {"mask": 3, "side": "left"},
        {"dates": ["month", "year"], "format": "%d.%m.%Y"},
        {"levels": [{"a": "x", "b": "x"}, {"x": "y"}]},
        {"levels": [{"a;b": 'x "y"'}]},
        {"file": "hierarchies/a.csv", "others": "*"},
        {"builtin": "icd9"},
    ],
)
def test_forms_and_specs_are_the_same(spec):
    made = from_form(to_form(spec))
    assert (made is None) == (spec is None)
    if spec is not None:
        assert parse_spec(made) == parse_spec(spec)


@given(
    st.dictionaries(st.sampled_from(["kind", "widths", "groups", "characters", "path", "offset"]), st.text(max_size=20))
)
def test_any_form_is_a_hierarchy_or_told(form):
    with suppress(HierarchyError):
        made = from_form(form)
        assert made is None or form["kind"] in made

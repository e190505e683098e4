from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from veilmark.errors import HierarchyError, StudyError
from veilmark.study.study import Study

GOOD = """\
version: 1
source: patients.csv
person: patient_id
attributes:
  name:      {role: direct}
  age:       {role: quasi, hierarchy: {intervals: [5, 10, 20]}}
  zip:       {role: quasi, hierarchy: {mask: 5}}
  gender:    {role: quasi, hierarchy: {levels: [{Male: Person, Female: Person}]}}
  race:      {role: quasi}
  education: {role: quasi, hierarchy: {file: education.csv}}
  diagnosis:
    role: sensitive
    distance: equal
    weights: {Flu: 0.05472, HIV: 0.21888}
"""


def write(folder, text):
    (folder / "study.yaml").write_text(text)
    return folder / "study.yaml"


def test_the_contract_s_example_opens(tmp_path):
    study = Study.open(write(tmp_path, GOOD))
    assert study.quasi == ["age", "zip", "gender", "race", "education"]
    assert study.sensitive == ["diagnosis"]
    assert study.direct == ["name"]
    assert study.person == "patient_id"
    assert study.source() == (str(tmp_path / "patients.csv"), None)


def test_saving_and_opening_gives_the_same_study(tmp_path):
    study = Study.open(write(tmp_path, GOOD))
    study.save(tmp_path / "again.yaml")
    assert Study.open(tmp_path / "again.yaml").spec == study.spec


def test_texts_that_look_like_something_else_survive_saving(tmp_path):
    study = Study.of(
        "a.csv",
        {"no": {"role": "sensitive", "weights": {"yes": 0.1, "01234": 0.2, "1e3": 0.3}}, "1": "quasi"},
    )
    study.save(tmp_path / "again.yaml")
    assert Study.open(tmp_path / "again.yaml").spec.attributes == study.spec.attributes


FAULTS = {
    "unknown key": ("atributes: {}\n" + GOOD, "line 1.*unknown key 'atributes'.*Did you mean 'attributes'"),
    "unknown role": (
        GOOD.replace("role: direct", "role: dierct"),
        "line 5.*'dierct' is not known.*Did you mean 'direct'",
    ),
    "unknown attribute key": (
        GOOD.replace("{role: quasi}", "{role: quasi, hierachy: {mask: 2}}"),
        "line 9.*Did you mean 'hierarchy'",
    ),
    "unknown hierarchy": (GOOD.replace("mask: 5", "maks: 5"), "line 7.*maks.*mask"),
    "widths that do not nest": (GOOD.replace("[5, 10, 20]", "[4, 6]"), "line 6.*6 is not a multiple of 4"),
    "no version": (GOOD.replace("version: 1\n", ""), "'version' is missing"),
    "another version": (GOOD.replace("version: 1", "version: 7"), "line 1, version.*7"),
    "no source": (GOOD.replace("source: patients.csv\n", ""), "has no source"),
    "a list": ("- a\n- b\n", "must be a mapping"),
    "nothing": ("", "is empty"),
    "bad indentation": ("version: 1\n source: x\n", "line 2, column .* is not valid YAML"),
    "a key twice": (GOOD + "version: 1\n", "version: this key appears twice"),
    "person as quasi": (GOOD.replace("patient_id", "age"), "'age' is the person column"),
    "weights of a quasi": (
        GOOD.replace("{role: quasi}", "{role: quasi, weights: {a: 1}}"),
        "need the role sensitive",
    ),
    "no hierarchy for its distance": (
        GOOD.replace("distance: equal", "distance: hierarchical"),
        "needs a hierarchy",
    ),
    "an engine to come": (GOOD.replace("patients.csv", "{engine: sparc, path: x}"), "engine 'sparc'"),
    "no engine": (
        GOOD.replace("patients.csv", "{url: x, table: y}"),
        "line 2.*engine is missing. Add engine: postgres.",
    ),
    "no engine of two": (GOOD.replace("patients.csv", "{table: y}"), "Add engine: postgres or engine: spark."),
    "no engine, a file": (GOOD.replace("patients.csv", "{path: x, format: orc}"), "Add engine: spark."),
    "unknown key of a file": (
        GOOD.replace("patients.csv", "{pth: x}"),
        "unknown key 'pth'. Did you mean 'path'. Known here: engine, path, delimiter, quote, encoding.$",
    ),
    "unknown key of a database": (
        GOOD.replace("patients.csv", "{engine: postgres, urll: x, table: y}"),
        "source.urll: .*Did you mean 'url'. Known here: engine, url, table.$",
    ),
    "an address": (
        GOOD.replace("patients.csv", "postgresql://u:sesame@h/d"),
        "source: this is a URL, not a file path. Write",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_with_their_line(tmp_path, fault):
    text, words = FAULTS[fault]
    with pytest.raises(StudyError, match=words) as caught:
        Study.open(write(tmp_path, text)).source()
    assert "\n" not in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(StudyError, match=r"no file .*nowhere\.yaml"):
        Study.open(tmp_path / "nowhere.yaml")
    with pytest.raises(StudyError, match="is a folder"):
        Study.open(tmp_path)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_study_of_a_frame(frame):
    study = Study.of(frame({"a": [1, 1, 2, 2], "s": ["x", "y", "x", "x"]}), {"a": "quasi", "s": "sensitive"})
    measured = study.measure()
    assert measured.k == 2
    assert measured.attributes["s"].diversity.distinct == 1
    assert study.measure(frame({"s": ["x"], "a": [5]})).k == 1


def test_a_study_of_a_frame_is_saved_without_a_source(tmp_path):
    frame = pa.table({"a": [1, 1, 2]})
    Study.of(frame, {"a": "quasi"}).save(tmp_path / "x.yaml")
    with pytest.raises(StudyError, match=r"x\.yaml has no source\. Add a line such as `source: patients\.csv`"):
        Study.open(tmp_path / "x.yaml").measure()
    assert Study.open(tmp_path / "x.yaml", data=frame).measure().records == 3


def test_a_frame_in_place_of_the_source(tmp_path):
    (tmp_path / "x.yaml").write_text("version: 1\nsource: nowhere.csv\nattributes: {a: {role: quasi}}\n")
    assert Study.open(tmp_path / "x.yaml", data=pa.table({"a": [1, 1]})).measure().k == 2


def test_a_wrong_role_in_python():
    with pytest.raises(StudyError, match=r"'quasy' is not known\. Did you mean 'quasi'"):
        Study.of(pa.table({"a": [1]}), {"a": "quasy"})


def test_the_form_of_a_csv_can_be_given(tmp_path):
    (tmp_path / "p.csv").write_bytes("a|é\n1|2\n".encode("cp1252"))
    text = "version: 1\nsource: {path: p.csv, delimiter: '|', encoding: cp1252}\nattributes: {é: {role: quasi}}\n"
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    assert Study.open(tmp_path / "s.yaml").measure().records == 1


def test_saving_to_another_folder_keeps_paths_right(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "d.csv").write_text("x,s\n1,u\n1,u\n")
    (tmp_path / "a" / "x.csv").write_text("1;*\n")
    (tmp_path / "a" / "m.yaml").write_text("tree: {s: {sensitivity: 0.5, values: {u: 1}}}\n")
    text = "version: 1\nsource: d.csv\nattributes:\n  x: {role: quasi, hierarchy: {file: x.csv}}\n"
    (tmp_path / "a" / "s.yaml").write_text(text + "  s: {role: sensitive, weights: {model: m.yaml}}\n")
    Study.open(tmp_path / "a" / "s.yaml").save(tmp_path / "b" / "s.yaml")
    moved = Study.open(tmp_path / "b" / "s.yaml")
    assert moved.measure().k == 2
    assert moved.score().scores["l_severity"].value == 0.5


def test_measuring_checks_the_hierarchies(tmp_path):
    roles = {"a": {"role": "quasi", "hierarchy": {"intervals": [5]}}}
    with pytest.raises(HierarchyError, match="'a'"):
        Study.of(pa.table({"a": ["x", "1"]}), roles).measure()
    assert Study.of(pa.table({"a": ["1"]}), roles).measure(pa.table({"a": ["0-4"]})).k == 1


@pytest.mark.parametrize("name", ["who", "n", "settled", "person", "records", "key", "label", "c0", "share"])
def test_any_column_name_will_do(name):
    table = pa.table({"id": ["p", "p", "q"], name: ["a", "b", "a"], "s": ["u", "u", "v"]})
    measured = Study.of(table, {name: "quasi", "s": "sensitive"}, person="id").measure()
    assert (measured.persons, measured.k, measured.classes) == (2, 1, 2)
    assert Study.of(table, {name: "quasi", "s": "sensitive"}).measure().k == 1


def test_a_population_of_persons():
    table = pa.table({"id": ["p"] * 5 + ["q"] * 5, "a": ["x"] * 10})
    measured = Study.of(table, {"a": "quasi"}, person="id").measure(population=table)
    assert measured.risk.journalist.max == measured.risk.prosecutor.max == 0.5

"""The data model: Table 1c to the printed digit, hand-worked inferences, and what each error says."""

from __future__ import annotations

import json
import math
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from veilmark.errors import WeightsError
from veilmark.score import datamodel
from veilmark.score.datamodel import RULES, DataModel, Inference, read_model

TABLE_1C_MODEL = """
rule: inference
tree:
  Patient:
    sensitivity: 0.6
    children:
      Medical:
        sensitivity: 0.8
        children:
          Disease:
            attribute: Disease
            sensitivity: 0.9
            values: {HIV: 1, H1N1: 0.8, Hypertension: 0.8, Flu: 0.2}
  Treatment:
    sensitivity: 1
    children:
      Medication:
        sensitivity: 0.5
        values: {Antibiotics: 0.2, Paracetamol: 0.2, ARV: 0.2, Tamiflu: 0.2, Statin: 0.2}
  Consultation:
    sensitivity: 0.9
    children:
      Initial Diagnosis:
        sensitivity: 0.5
        values: {HIV: 0.4, Hypertension: 0.2, Migraine: 0.1, Flu: 0.1}
  Age:
    sensitivity: 0.4
    values: {30+: 0.2, < 30: 0.2}
infers:
  - {from: Medication, to: Disease, value: 0.1}
  - {from: Initial Diagnosis, to: Disease, value: 0.5}
"""

TABLE_1C = {
    "Disease": {"Flu": 0.0864, "H1N1": 0.3456, "Hypertension": 0.3456, "HIV": 0.432},
    "Medication": dict.fromkeys(("Antibiotics", "Paracetamol", "ARV", "Tamiflu", "Statin"), 0.10432),
    "Age": {"30+": 0.08, "< 30": 0.08},
    "Initial Diagnosis": {"Migraine": 0.05472, "Flu": 0.05472, "Hypertension": 0.10944, "HIV": 0.21888},
}


def write(folder: Path, text: str) -> Path:
    path = folder / "model.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


@pytest.fixture
def paper(tmp_path: Path) -> DataModel:
    return read_model(write(tmp_path, TABLE_1C_MODEL))


def attribute(sensitivity: float, **more: Any) -> dict[str, Any]:
    return {"sensitivity": sensitivity, "values": {"x": 1, "y": 0.5}, **more}


def from_content(content: Any) -> DataModel:
    with tempfile.TemporaryDirectory() as folder:
        return read_model(write(Path(folder), yaml.safe_dump(content, sort_keys=False)))


def model(tree: dict[str, Any], *edges: tuple[str, str, float], **more: Any) -> DataModel:
    infers = [{"from": start, "to": to, "value": value} for start, to, value in edges]
    content = datamodel._File.model_validate({"tree": tree, "infers": infers, **more})
    return DataModel._built(content, "The data model")


class TestTable1c:
    def test_all_of_it(self, paper: DataModel) -> None:
        weights = paper.weights()
        assert set(weights) == set(TABLE_1C)
        for name, values in TABLE_1C.items():
            assert weights[name] == pytest.approx(values, rel=1e-14)
            assert {value: round(weight, 5) for value, weight in weights[name].items()} == values

    def test_order_of_the_file_is_kept(self, paper: DataModel) -> None:
        assert list(paper.weights()) == ["Disease", "Medication", "Initial Diagnosis", "Age"]
        children = {"sensitivity": 1, "children": {name: attribute(1) for name in "zya"}}
        assert list(model({"Top": children, "B": attribute(1)}).weights()) == ["z", "y", "a", "B"]

    def test_explanation(self, paper: DataModel) -> None:
        rows = {(row.attribute, row.value): row for row in paper.explain()}
        assert len(rows) == 15
        arv = rows["Medication", "ARV"]
        assert arv.base == pytest.approx(0.1)
        assert arv.inferences == (Inference("Disease", 0.1, 0.6 * 0.8 * 0.9),)
        assert arv.weight == pytest.approx(0.10432)
        assert rows["Disease", "HIV"].inferences == ()

    def test_to_dict_is_json(self, paper: DataModel) -> None:
        told = json.loads(json.dumps(paper.to_dict()))
        assert told["weights"]["Age"] == pytest.approx({"30+": 0.08, "< 30": 0.08})
        assert told["explanation"][4]["inferences"][0]["target"] == "Disease"

    def test_docstring_example(self) -> None:
        lines = [line for line in (datamodel.__doc__ or "").splitlines() if line.startswith("    ")]
        weights = from_content(yaml.safe_load(textwrap.dedent("\n".join(lines)))).weights()
        assert weights["Disease"] == pytest.approx(TABLE_1C["Disease"])
        assert weights["Medication"] == pytest.approx({"ARV": 0.10432, "Statin": 0.10432})


class TestInference:
    def test_chain_by_hand(self) -> None:
        # W(C) = .5; W(B) = .4·(1 + 1·.5) = .6; a value of A: .2·x·(1 + .5·.6).
        weights = model(
            {"A": attribute(0.2), "B": attribute(0.4), "C": attribute(0.5)}, ("A", "B", 0.5), ("B", "C", 1)
        ).weights()
        assert weights["A"] == pytest.approx({"x": 0.26, "y": 0.13})
        assert weights["B"] == pytest.approx({"x": 0.6, "y": 0.3})
        assert weights["C"] == pytest.approx({"x": 0.5, "y": 0.25})

    def test_several_targets_add_up(self) -> None:
        weights = model(
            {"A": attribute(0.2), "B": attribute(0.4), "C": attribute(0.5)}, ("A", "B", 0.5), ("A", "C", 2)
        ).weights()
        assert weights["A"]["x"] == pytest.approx(0.2 * (1 + 0.2 + 1.0))

    def test_single_values_as_ends(self) -> None:
        weights = model({"A": attribute(0.2), "B": attribute(0.4)}, ("A=x", "B=y", 0.5)).weights()
        assert weights["A"] == pytest.approx({"x": 0.2 * (1 + 0.5 * 0.2), "y": 0.1})

    def test_own_inference_stands_for_the_inherited_one(self) -> None:
        weights = model({"A": attribute(0.2), "B": attribute(0.4)}, ("A", "B", 0.5), ("A=x", "B", 1)).weights()
        assert weights["A"] == pytest.approx({"x": 0.2 * 1.4, "y": 0.1 * 1.2})

    def test_inherited_from_a_concept_above(self) -> None:
        tree = {"Top": {"sensitivity": 0.5, "children": {"A": attribute(0.4)}}, "B": attribute(0.3)}
        assert model(tree, ("Top", "B", 1)).weights()["A"]["x"] == pytest.approx(0.2 * 1.3)

    def test_infers_inside_a_concept(self) -> None:
        inside = model({"A": attribute(0.2, infers={"B": 0.5}), "B": attribute(0.4)})
        assert inside.weights() == model({"A": attribute(0.2), "B": attribute(0.4)}, ("A", "B", 0.5)).weights()

    def test_a_concept_without_values_can_be_inferred(self) -> None:
        assert model({"A": attribute(0.2), "B": {"sensitivity": 0.4}}, ("A", "B", 1)).weights() == {
            "A": pytest.approx({"x": 0.28, "y": 0.14})
        }

    def test_a_value_may_infer_its_own_attribute(self) -> None:
        assert model({"A": attribute(0.2)}, ("A=x", "A", 1)).weights()["A"]["x"] == pytest.approx(0.24)

    def test_weights_may_pass_one(self) -> None:
        assert model({"A": attribute(1), "B": attribute(1)}, ("A", "B", 1)).weights()["A"]["x"] == 2


class TestAttributes:
    def test_column_of_another_name(self) -> None:
        made = model({"Illness": attribute(0.5, attribute="icd10"), "A": attribute(0.2)}, ("A", "icd10", 1))
        assert made.weights()["icd10"] == pytest.approx({"x": 0.5, "y": 0.25})
        assert made.weights()["A"]["x"] == pytest.approx(0.3)

    def test_one_column_in_several_concepts(self) -> None:
        tree = {
            "Infectious": {"sensitivity": 0.9, "attribute": "Disease", "values": {"HIV": 1}},
            "Common": {"sensitivity": 0.2, "attribute": "Disease", "values": {"Flu": 1}},
            "A": attribute(0.5),
        }
        made = model(tree, ("A", "Disease=HIV", 1))
        assert made.weights()["Disease"] == {"HIV": 0.9, "Flu": 0.2}
        assert made.weights()["A"]["x"] == pytest.approx(0.95)

    def test_a_concept_name_goes_before_a_column_name(self) -> None:
        tree = {
            "B": attribute(0.5),
            "C": {**attribute(0.1), "attribute": "B", "values": {"z": 1}},
            "A": attribute(1),
        }
        assert model(tree, ("A", "B", 1)).weights()["A"]["x"] == pytest.approx(1.5)

    def test_values_stay_as_written(self, tmp_path: Path) -> None:
        text = "tree: {Code: {sensitivity: 1e-1, values: {No: 1, 007: 1, 1.0: 1, 2020-01-01: 1, '': 1}}}"
        with pytest.raises(
            WeightsError, match=r"line 1, tree\.Code\.values\.: String should have at least 1 character"
        ):
            read_model(write(tmp_path, text))
        weights = read_model(write(tmp_path, text.replace(", '': 1", ""))).weights()
        assert weights == {"Code": dict.fromkeys(("No", "007", "1.0", "2020-01-01"), 0.1)}


class TestRules:
    TREE = {"A": attribute(0.2), "B": attribute(0.4), "C": attribute(0.5)}  # noqa: RUF012
    EDGES = (("A", "B", 0.5), ("A", "C", 2.0))

    @pytest.mark.parametrize(("rule", "expected"), [("none", 0.2), ("maximum", 0.4), ("inference", 0.44)])
    def test_built_in(self, rule: str, expected: float) -> None:
        assert model(self.TREE, *self.EDGES, rule=rule).weights()["A"]["x"] == pytest.approx(expected)

    def test_maximum_without_inference(self) -> None:
        assert model({"A": attribute(0.2)}, rule="maximum").weights()["A"]["x"] == 0.2

    @pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
    def test_a_rule_that_fails(self, monkeypatch: pytest.MonkeyPatch, weight: float) -> None:
        monkeypatch.setitem(RULES, "own", lambda base, inferences: weight)
        with pytest.raises(WeightsError, match=rf"rule 'own' gives 'A' the weight {weight}"):
            model({"A": attribute(0.2)}, rule="own").weights()

    def test_unknown(self) -> None:
        with pytest.raises(WeightsError, match=r"rule 'maximun' is not known\. Did you mean 'maximum'\?"):
            model(self.TREE, rule="maximun")


class TestCycles:
    @pytest.mark.parametrize(
        ("edges", "spelled"),
        [
            ([("A", "B", 1), ("B", "C", 1), ("C", "A", 1)], "A → B → C → A"),
            ([("A", "A", 1)], "A → A "),
            ([("A", "A=x", 1)], "A=x → A=x"),
            ([("A", "B=x", 1), ("B", "A", 1)], "A → B=x → A"),
            ([("C", "A", 1), ("A=x", "B=y", 1), ("B=y", "A=x", 1)], "A=x → B=y → A=x"),
        ],
    )
    def test_spelled_out(self, edges: list[tuple[str, str, float]], spelled: str) -> None:
        with pytest.raises(WeightsError, match=f"form a cycle: {spelled}"):
            model({name: attribute(0.5) for name in "ABC"}, *edges)

    def test_two_ways_to_one_target_are_no_cycle(self) -> None:
        edges = (("A", "B", 1.0), ("A", "C", 1.0), ("B", "D", 1.0), ("C", "D", 1.0))
        weights = model({name: attribute(0.5) for name in "ABCD"}, *edges).weights()
        assert weights["A"]["x"] == pytest.approx(0.5 * (1 + 0.75 + 0.75))


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", r"model\.yaml' is empty"),
            ("- a", r"'model\.yaml' must be a mapping of keys to values"),
            ("rule: none", r"model\.yaml, tree: the key 'tree' is missing\. Add it"),
            ("tree: {}", "line 1, tree: .* at least 1 item .* not 0"),
            ("tree:", r"line 1, tree: .* valid dictionary \(given: None\)"),
            ("tre: {A: 1}", r"line 1, tre: unknown key 'tre'\. Did you mean 'tree'\? Known here: rule, tree, infers\."),
            ("tree: {A: {sensitivity: 1}}", "has no values to weigh"),
            ("tree: {A: {sensitivity: 1, values: {}}}", r"line 1, tree\.A\.values: .* at least 1 item .* not 0"),
            ("tree: {A: 0.9}", r"line 1, tree\.A: .* valid dictionary .*\(given: 0\.9\)"),
            ("tree: {A: {values: {x: 1}}}", r"tree\.A\.sensitivity: the key 'sensitivity' is missing\. Add it"),
            (
                "tree: {A: {sensitivity: 1, children: {B: {sensitivty: 1}}}}",
                r"tree\.A\.children\.B\.sensitivty: unknown key 'sensitivty'\. Did you mean 'sensitivity'\?",
            ),
            (
                "tree:\n A (a):\n  sensitivity: 1\n  children:\n   values:\n    sensitivity: 1\n    vales: {x: 1}",
                r"line 7, tree\.A \(a\)\.children\.values\.vales: unknown key 'vales'\. Did you mean 'values'\?",
            ),
            (
                "tree: {A: {sensitivity: 1, value: {x: 1}}}",
                r"tree\.A\.value: unknown key 'value'\. Did you mean 'values'\? Known here: sens",
            ),
            (
                "{rules: none, tree: {A: {sensitivity: 1, values: {x: 1}}}}",
                r"line 1, rules: unknown key 'rules'\. Did you mean 'rule'\?",
            ),
            (
                "tree: {A: {sensitivity: 1.5, values: {x: 1}}}",
                r"A\.sensitivity: .* less than or equal to 1 \(given: 1\.5\)",
            ),
            ("tree: {A: {sensitivity: .nan, values: {x: 1}}}", r"A\.sensitivity: .* number .*\(given: '\.nan'\)"),
            ("tree: {A: {sensitivity: nan, values: {x: 1}}}", r"A\.sensitivity: .* finite number \(given: 'nan'\)"),
            ("tree: {A: {sensitivity: high, values: {x: 1}}}", r"A\.sensitivity: .* valid number.*\(given: 'high'\)"),
            (
                "tree: {A: {sensitivity: 1, values: {x: -1}}}",
                r"A\.values\.x: .* greater than or equal to 0 \(given: -1\)",
            ),
            ("tree: {A: {sensitivity: 1, values: {x: }}}", r"A\.values\.x: .* valid number \(given: None\)"),
            (
                "tree: {A: {sensitivity: 1, values: {Diabetes (type 2): 7}}}",
                r"line 1, tree\.A\.values\.Diabetes \(type 2\): .* less than or equal to 1 \(given: 7\)",
            ),
            ("tree: {A: {sensitivity: 1, values: {x: true}}}", r"line 1, tree\.A\.values\.x: true is not a number"),
            ("tree: {A: {sensitivity: false, values: {x: 1}}}", r"line 1, tree\.A\.sensitivity: false is not a number"),
            (
                "tree: {A: {sensitivity: 1, values: {x: 1}}, B: {sensitivity: 1,\n values: }}",
                r"line 2, tree\.B\.values: it is empty\. Fill it in, or remove the key",
            ),
            ("tree: {A: {sensitivity: 1, values: {x: 1}, children: }}", r"tree\.A\.children: it is empty"),
            ("tree: {A: {sensitivity: 1, values: {x: 1}, attribute: ~}}", r"tree\.A\.attribute: it is empty"),
            (
                "tree: {A: {sensitivity: 1, values: {x: 1, x: 0.5}}}",
                r"line 1, tree\.A\.values\.x: this key appears twice",
            ),
            ("tree:\n  A: {sensitivity: 1}\n  A: {sensitivity: 1}", r"line 3, tree\.A: this key appears twice"),
            ("tree: {[A]: {sensitivity: 1}}", "line 1: a key must be a text"),
            (
                "tree: {A: {sensitivity: 1, values: {x: 1}},B: {sensitivity: 1,attribute: A,values: {x: 1}}}",
                "the value 'x' of 'A' occurs twice in the tree",
            ),
            (
                "tree: {A: {sensitivity: 1, attribute: c, children: {B: {sensitivity: 1, values: {x: 1}}}}}",
                "concept 'A' names the column 'c' but has no values",
            ),
            ("tree: {A: [", r"line 1, column \d+ is not valid YAML: "),
            ("tree: \x00", "not valid YAML: unacceptable character"),
            ("tree: &t {A: *t}", "nested too deeply, or contains itself"),
        ],
    )
    def test_the_file(self, tmp_path: Path, text: str, words: str) -> None:
        with pytest.raises(WeightsError, match=words) as caught:
            read_model(write(tmp_path, text))
        assert "model.yaml" in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("infers", "words"),
        [
            ([{"from": "A", "to": "Bs", "value": 1}], r"names 'Bs', but the tree has no such concept"),
            (
                [{"from": "A", "to": "Disese", "value": 1}],
                r"'Disese', but the tree has no such concept\. Did you mean 'Disease'",
            ),
            ([{"from": "A=z", "to": "Disease", "value": 1}], "names 'A=z', but the tree has no such concept"),
            ([{"from": "A", "to": "Disease", "value": -1}], r"infers\.0\.value: .* or equal to 0 \(given: -1\)"),
            ([{"from": "A", "to": "Disease"}], r"infers\.0\.value: the key 'value' is missing\. Add it"),
            (
                [{"from": "A", "to": "Disease", "value": 1, "form": 2}],
                r"infers\.0\.form: unknown key 'form'\. Did you mean 'from'\? Known here: from, to, value\.",
            ),
            ([{"from": "A", "to": "Disease", "value": 1}] * 2, "from 'A' to 'Disease' occurs twice"),
            ([{"from": "A", "to": "Other", "value": 1}], "names 'Other', but 2 concepts have this name"),
            ([{"form": "A", "to": "Disease", "value": 1}], r"infers\.0\.form: unknown key .* Did you mean 'from'\?"),
            ({"A": "Disease"}, "infers: .* valid list"),
        ],
    )
    def test_the_inferences(self, infers: Any, words: str) -> None:
        other = {"Other": {"sensitivity": 0.1}}
        tree = {"A": attribute(0.5, children=other), "Disease": attribute(0.5, children=other)}
        with pytest.raises(WeightsError, match=words):
            from_content({"tree": tree, "infers": infers})

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(WeightsError, match=r"There is no file '.*none\.yaml'"):
            read_model(tmp_path / "none.yaml")

    def test_not_a_file(self, tmp_path: Path) -> None:
        with pytest.raises(WeightsError, match="is a folder"):
            read_model(tmp_path)

    def test_not_text(self, tmp_path: Path) -> None:
        (tmp_path / "m.yaml").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(WeightsError, match=r"m\.yaml' cannot be read: 'utf-8' codec"):
            read_model(tmp_path / "m.yaml")


def slow_weight(name: str, bases: dict[str, float], edges: dict[tuple[str, str], float]) -> float:
    """The formula, read aloud."""
    inferred = sum(v * slow_weight(to, bases, edges) for (start, to), v in edges.items() if start == name)
    return bases[name] * (1 + inferred)


unit = st.floats(0, 1)


@given(
    st.lists(unit, min_size=5, max_size=5),
    st.dictionaries(st.sampled_from([(a, b) for a in "ABCDE" for b in "ABCDE" if a < b]), st.floats(0, 2)),
    unit,
)
def test_against_the_formula(bases: list[float], edges: dict[tuple[str, str], float], share: float) -> None:
    by_name = dict(zip("ABCDE", bases, strict=True))
    tree = {name: {"sensitivity": base, "values": {"x": share}} for name, base in by_name.items()}
    weights = model(tree, *((a, b, v) for (a, b), v in edges.items())).weights()
    for name in by_name:
        assert weights[name]["x"] == pytest.approx(share * slow_weight(name, by_name, edges))
        assert weights[name]["x"] >= share * by_name[name] * (1 - 1e-12)


def test_large_models_are_quick() -> None:
    tree = {f"A{i}": {"sensitivity": 0.5, "values": {str(v): 0.5 for v in range(200)}} for i in range(200)}
    edges = [(f"A{i}", f"A{i + 1}", 0.5) for i in range(199)]
    start = time.process_time()
    weights = model(tree, *edges).weights()
    assert time.process_time() - start < 5
    assert weights["A198"]["7"] == pytest.approx(0.25 * 1.25)

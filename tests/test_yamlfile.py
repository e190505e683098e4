"""YAML files: what is refused, and that each message names the place and the nearest spelling."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from veilmark.errors import InputError
from veilmark.yamlfile import explain, read_yaml, validate


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    weight: float
    parts: dict[str, Part] | None = None


class Checked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: int

    @model_validator(mode="after")
    def _positive(self) -> Checked:
        if self.path < 0:
            raise ValueError("the path is negative")
        return self


class Kind(BaseModel):
    note: str = ""
    role: Literal["quasi", "direct"]


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")

    parts: dict[str, Part] = Field(default_factory=dict)
    names: dict[int, Part] = Field(default_factory=dict)
    source: Checked | int = 0
    plain: Part | Annotated[list[str], Field(min_length=1)] | None = None
    version: Literal[1, 2] = 1
    only: Literal[1] = 1
    kind: dict[str, Kind] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _not_both(self) -> Whole:
        if self.parts and self.names:
            raise ValueError("give parts or names, not both")
        return self


def read(folder: Path, text: str) -> Whole:
    path = folder / "whole.yaml"
    path.write_text(text, encoding="utf-8")
    return validate(read_yaml(path, InputError), Whole, InputError)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parts: &p {a: *p}", r"whole\.yaml' is nested too deeply, or contains itself"),
        ("parts: " + "[" * 3000, r"whole\.yaml' is nested too deeply"),
        ("parts:\n  [a, b]: {weight: 1}", r"whole\.yaml, line 2: a key must be a text"),
        ("parts:\n  {a: b}: {weight: 1}", r"whole\.yaml, line 2: a key must be a text"),
        ("parts:\n  Income (EUR): {weight: x}", r"whole\.yaml, line 2, parts\.Income \(EUR\)\.weight: .*given: 'x'"),
        ("parts:\n  a: {wieght: 1}", r"line 2, parts\.a\.wieght: unknown key 'wieght'\. Did you mean 'weight'\?"),
        ("parts:\n  a: {}", r"line 2, parts\.a\.weight: the key 'weight' is missing"),
        ("names:\n  a: {weight: 1}", r"line 2, names\.a: .*given: 'a'"),
        ("source:\n  path: x", r"line 2, source\.path: .*given: 'x'"),
        ("version: 3", r"line 1, version: '3' is not known\. Use one of: 1, 2\.$"),
        ("only: 2", r"line 1, only: '2' is not known\. Use 1\.$"),
        ("only: '1'", r"line 1, only: '1' is in quotes, so it is text\. Remove the quotes\.$"),
        ("kind: {a: quasi}", r"kind\.a: .*\(mapping\) such as \{role: quasi\} \(given: 'quasi'\)\.$"),
        ("kind: {a: 5}", r"kind\.a: .*\(mapping\) such as \{role: …\} \(given: 5\)\.$"),
        ("kind: {note: {rloe: 5}}", r"kind\.note\.role: the key 'role' is missing"),
        ("source: x", r"source: .*such as \{path: …\} or a valid integer.*\(given: 'x'\)"),
        ("plain: 5", r"line 1, plain: .*such as \{weight: …\} or a valid list \(given: 5\)\.$"),
        ("plain: {wieght: 1}", r"line 1, plain\.wieght: .*Did you mean 'weight'\? Known here: weight, parts\."),
        ("- a", r"whole\.yaml' must be a mapping of keys .*Known keys: parts, names, source, plain, .*"),
        ("", r"whole\.yaml' is empty\. Fill it in, or name another file\."),
    ],
)
def test_faults(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(tmp_path, text)


def test_unknown_key_of_a_model_within_itself(tmp_path: Path) -> None:
    text = "parts:\n  parts:\n    weight: 1\n    parts:\n      weight:\n        weight: 1\n        prats: {}"
    words = r"line 7, parts\.parts\.parts\.weight\.prats: .* Did you mean 'parts'\? Known here: weight, parts\."
    with pytest.raises(InputError, match=words):
        read(tmp_path, text)


def test_a_fault_elsewhere_does_not_hide_the_missing_key(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"parts\.a\.weight: the key 'weight' is missing"):
        read(tmp_path, "parts:\n  a: {}\n  b: {weight: 1, wieght: 1}")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"parts": {"a": {"weight": 1}}, "names": {1: {"weight": 1}}}, "^give parts or names, not both"),
        ({"parts": {"b (c)": {"wieght": 1}}}, r"^parts\.b \(c\)\.wieght: unknown key .* Did you mean 'weight'\?"),
        ({"names": {"a": {"weight": 1}}}, r"^names\.a: "),
        ({"source": {"path": "x"}}, r"^source\.path: "),
        ({"plain": {"weight": "x"}}, r"^plain\.weight: "),
        ({"plain": []}, r"^plain: "),
        ({"kind": {"Kind": {"role": "qasi"}}}, r"^kind\.Kind\.role: 'qasi' is not known. Did you mean 'quasi'\?"),
    ],
)
def test_explain_without_a_file(content: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(content)
    with pytest.raises(InputError, match=words):
        raise InputError(explain(caught.value, Whole))


@pytest.mark.parametrize("text", ["source: x", "plain: 5", "kind: {a: 5}", "parts: {a: x}", "names: {1: []}"])
def test_no_name_of_a_class_is_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert not any(name in str(caught.value) for name in ("Part", "Checked", "Kind", "Whole", "instance"))

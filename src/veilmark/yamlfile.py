"""YAML files that people write: scalars mean what they look like, and every error names its line.

Unlike plain YAML 1.1, `no`, `on` and `2024-01-05` are texts, `01234` is the text 01234, and keys are always texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from veilmark.errors import InputError, did_you_mean

Model = TypeVar("Model", bound=BaseModel)
Path_ = tuple[str | int, ...]

SCALARS: list[tuple[re.Pattern[str], Callable[[str], Any]]] = [
    (re.compile(r"null|Null|NULL|~|"), lambda _: None),
    (re.compile(r"true|True|TRUE"), lambda _: True),
    (re.compile(r"false|False|FALSE"), lambda _: False),
    (re.compile(r"-?(0|[1-9][0-9]*)"), int),
    (re.compile(r"-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"), float),
]

# What pydantic adds to the place of a fault: `function-after[check(), str]` of a union, `[key]` after a key.
_TAG = re.compile(r"\[key\]|[a-z-]+\[.*\(\).*\]")


@dataclass
class Document:
    """A file's content, and the line on which each key stands."""

    path: Path
    data: Any = None
    lines: dict[Path_, int] = field(default_factory=dict)

    def place(self, keys: Path_) -> str:
        """`study.yaml, line 7, attributes.age`, for messages."""
        line = next((self.lines[keys[:n]] for n in range(len(keys), 0, -1) if keys[:n] in self.lines), None)
        where = f"{self.path.name}, line {line}" if line else self.path.name
        return f"{where}, {'.'.join(map(str, keys))}" if keys else where


def read_yaml(path: Path, error: type[InputError]) -> Document:
    """Read a file, or raise `error` with what is wrong and where."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise error(f"There is no file '{path}'. Check the name and the folder.") from None
    except IsADirectoryError:
        raise error(f"'{path}' is a folder. Name the file in it.") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise error(f"'{path}' cannot be read: {problem}.") from None
    document = Document(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise error(f"'{path}' is empty.")
        document.data = _build(node, (), document, error)
    except yaml.YAMLError as problem:
        raise error(_syntax(path, problem)) from None
    except RecursionError:
        raise error(f"'{path}' is nested too deeply, or within itself. Make it flatter.") from None
    return document


def _syntax(path: Path, problem: yaml.YAMLError) -> str:
    mark = getattr(problem, "problem_mark", None)
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    what = getattr(problem, "problem", None) or str(problem).splitlines()[0]
    return f"'{path.name}'{where} is not valid YAML: {what}. Check indentation, colons and quotes there."


def _build(node: yaml.Node, keys: Path_, document: Document, error: type[InputError]) -> Any:
    document.lines.setdefault(keys, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, keys, document, error)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*keys, i), document, error) for i, item in enumerate(node.value)]
    return _scalar(node)


def _mapping(node: yaml.MappingNode, keys: Path_, document: Document, error: type[InputError]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise error(f"{document.path.name}, line {line}: a key must be a text, not a list or mapping.")
        name = str(key.value)
        document.lines[(*keys, name)] = line
        if name in result:
            raise error(f"{document.place((*keys, name))}: this key stands twice. Keep one of them.")
        result[name] = _build(value, (*keys, name), document, error)
    return result


def _scalar(node: yaml.Node) -> Any:
    if node.style is not None:
        return node.value
    return next((make(node.value) for shape, make in SCALARS if shape.fullmatch(node.value)), node.value)


def validate(document: Document, model: type[Model], error: type[InputError]) -> Model:
    """The file's content as a model, or `error` with the first fault in plain words."""
    if not isinstance(document.data, dict):
        raise error(f"'{document.path.name}' must be a mapping of keys to values, as in `version: 1`.")
    try:
        return model.model_validate(document.data)
    except ValidationError as problem:
        raise error(explain(problem, model, document)) from None


def explain(problem: ValidationError, model: type[BaseModel], document: Document | None = None) -> str:
    """The first fault that pydantic found, with its place and the nearest right spelling."""
    fault = _most_telling(problem.errors(include_url=False))
    keys: Path_ = tuple(part for part in fault["loc"] if not _TAG.fullmatch(str(part)))
    keys = _real_keys(keys, document.data) if document else keys
    place = document.place(keys) if document else ".".join(map(str, keys))
    where = f"{place}: " if place else ""
    name = str(keys[-1]) if keys else ""
    if fault["type"] == "extra_forbidden":
        known = _fields_at(model, keys[:-1])
        return f"{where}unknown key '{name}'.{did_you_mean(name, known)} Known here: {', '.join(known)}."
    if fault["type"] == "missing":
        return f"{where}the key '{name}' is missing. Add it."
    if fault["type"] == "literal_error":
        expected = re.findall(r"'([^']*)'", fault["ctx"]["expected"])
        given = fault["input"]
        return f"{where}'{given}' is not known.{did_you_mean(str(given), expected)} Use one of: {', '.join(expected)}."
    message = fault["msg"].removeprefix("Value error, ").rstrip(".")
    given = (
        ""
        if isinstance(fault["input"], dict | list) or fault["type"] == "value_error"
        else f" (given: {fault['input']!r})"
    )
    return f"{where}{message}{given}."


def _most_telling(faults: Sequence[ErrorDetails]) -> ErrorDetails:
    """The first fault; of a misspelt key, which is also a missing one, the misspelling."""
    first = faults[0]
    unknown = (f for f in faults if f["type"] == "extra_forbidden" and f["loc"][:-1] == first["loc"][:-1])
    return next(unknown, first) if first["type"] == "missing" else first


def _real_keys(keys: Path_, data: Any) -> Path_:
    """The keys without the names of union members that pydantic mixes in."""
    real: list[str | int] = []
    for i, key in enumerate(keys):
        last = i == len(keys) - 1
        if isinstance(data, dict) and (key in data or last):
            real.append(key)
            data = data.get(str(key))
        elif isinstance(data, list) and isinstance(key, int) and key < len(data):
            real.append(key)
            data = data[key]
    return tuple(real)


def _fields_at(model: type[BaseModel], keys: Path_) -> list[str]:
    """The keys a model takes at some depth, as far as its annotations tell."""
    for key in keys:
        found = _models_in(model.model_fields[str(key)].annotation) if str(key) in model.model_fields else [model]
        if found:
            model = found[0]
    return [f.alias or name for name, f in model.model_fields.items()]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for part in getattr(annotation, "__args__", ()) for m in _models_in(part)]

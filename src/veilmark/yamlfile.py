"""YAML files that people write: scalars mean what they look like, and every error names its line.

Unlike plain YAML 1.1, `no`, `on` and `2024-01-05` are texts, `01234` is the text 01234, and keys are always texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from veilmark.errors import InputError, did_you_mean, is_address

Model = TypeVar("Model", bound=BaseModel)
Path_ = tuple[str | int, ...]

SCALARS: list[tuple[re.Pattern[str], Callable[[str], Any]]] = [
    (re.compile(r"null|Null|NULL|~|"), lambda _: None),
    (re.compile(r"true|True|TRUE"), lambda _: True),
    (re.compile(r"false|False|FALSE"), lambda _: False),
    (re.compile(r"-?(0|[1-9][0-9]*)"), int),
    (re.compile(r"-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"), float),
]

MUST = "Input should be"
"""How pydantic says that a value is of the wrong kind."""


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
        if is_address(path):
            raise error("This is a URL (…://), not a file path. Name a file on this machine.") from None
        raise error(f"There is no file '{path}'. Check the name and the folder.") from None
    except IsADirectoryError:
        raise error(f"'{path}' is a folder. Name the file in it.") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise error(f"'{path}' cannot be read: {problem}.") from None
    document = Document(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise error(f"'{path}' is empty. Fill it in, or name another file.")
        document.data = _build(node, (), document, error)
    except yaml.YAMLError as problem:
        raise error(_syntax(path, problem)) from None
    except RecursionError:
        raise error(f"'{path}' is nested too deeply, or contains itself. Reduce the nesting.") from None
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
            raise error(f"{document.place((*keys, name))}: this key appears twice. Keep one of them.")
        result[name] = _build(value, (*keys, name), document, error)
    return result


def _scalar(node: yaml.Node) -> Any:
    if node.style is not None:
        return node.value
    return next((make(node.value) for shape, make in SCALARS if shape.fullmatch(node.value)), node.value)


def validate(document: Document, model: type[Model], error: type[InputError]) -> Model:
    """The file's content as a model, or `error` with the first fault in plain words."""
    if not isinstance(document.data, dict):
        known = ", ".join(f.alias or name for name, f in model.model_fields.items())
        raise error(f"'{document.path.name}' must be a mapping of keys to values (`key: value`). Known keys: {known}.")
    try:
        return model.model_validate(document.data)
    except ValidationError as problem:
        raise error(explain(problem, model, document)) from None


def explain(problem: ValidationError, model: type[BaseModel], document: Document | None = None) -> str:
    """The first fault that pydantic found, with its place and the nearest right spelling."""
    faults = problem.errors(include_url=False)
    fault = _most_telling(faults)
    keys = _keys(fault["loc"], model)
    place = document.place(keys) if document else ".".join(map(str, keys))
    where = f"{place}: " if place else ""
    name = str(keys[-1]) if keys else ""
    if fault["type"] == "extra_forbidden":
        known = [f.alias or n for m in _holders(fault["loc"], model) for n, f in m.model_fields.items()]
        listed = f" Known here: {', '.join(known)}." if known else " Remove it."
        return f"{where}unknown key '{name}'.{did_you_mean(name, known)}{listed}"
    if fault["type"] == "missing":
        return f"{where}the key '{name}' is missing. Add it."
    if fault["type"] == "literal_error":
        return f"{where}{_not_among(fault)}"
    same = [f for f in faults if _keys(f["loc"], model) == keys]
    message = _any_of([_message(f, _models_at(model, keys)) for f in [fault, *same]])
    given = (
        ""
        if isinstance(fault["input"], dict | list) or fault["type"] == "value_error"
        else f" (given: {fault['input']!r})"
    )
    return f"{where}{message}{given}."


def _not_among(fault: ErrorDetails) -> str:
    """What to write in place of a word, or a number, that is none of the known ones."""
    quoted = re.findall(r"'([^']*)'|([^\s,']+)", fault["ctx"]["expected"])
    expected = [text or number for text, number in quoted if number != "or"]
    given = fault["input"]
    if given in expected:
        return f"'{given}' is in quotes, so it is text. Remove the quotes."
    known = f"Use one of: {', '.join(expected)}." if len(expected) > 1 else f"Use {expected[0]}."
    return f"'{given}' is not known.{did_you_mean(str(given), expected)} {known}"


def _message(fault: ErrorDetails, models: Sequence[type[BaseModel]]) -> str:
    """Pydantic's words, without the names of classes."""
    if fault["type"].startswith(("model_", "dataclass_")):
        return f"{MUST} a valid dictionary (mapping){_example(models, fault['input'])}"
    return fault["msg"].removeprefix("Value error, ").rstrip(".")


def _example(models: Sequence[type[BaseModel]], given: Any) -> str:
    """` such as {role: quasi}`: a key that the given value may have been meant for, else one that is needed."""
    fields = [(f.alias or name, f) for model in models for name, f in model.model_fields.items()]
    meant = [f"{{{name}: {given}}}" for name, f in fields if isinstance(given, str) and given in get_args(f.annotation)]
    needed = [f"{{{name}: …}}" for name, f in fields if f.is_required()]
    return next((f" such as {shown}" for shown in meant + needed), "")


def _any_of(messages: Sequence[str]) -> str:
    """The first message; where it is one of several things that would do, all of them."""
    first, *others = dict.fromkeys(messages)
    if not first.startswith(MUST):
        return first
    return " or".join([first, *(m.removeprefix(MUST) for m in others if m.startswith(MUST))])


def _most_telling(faults: Sequence[ErrorDetails]) -> ErrorDetails:
    """The first fault; of a misspelt key, which is also a missing one, the misspelling."""
    first = faults[0]
    unknown = (f for f in faults if f["type"] == "extra_forbidden" and f["loc"][:-1] == first["loc"][:-1])
    return next(unknown, first) if first["type"] == "missing" else first


# --- where a fault is --------------------------------------------------------------------------------------


def _keys(place: Path_, model: type[BaseModel]) -> Path_:
    """The keys of a fault's place, without what pydantic adds: the member of a union, and `[key]` after a key."""
    return tuple(key for key, _ in _walk(place, model))


def _holders(place: Path_, model: type[BaseModel]) -> list[type[BaseModel]]:
    """The models that could hold the last key of a fault's place; of a union, the member that pydantic names there."""
    *_, (_, members) = _walk(place, model)
    return [m for m in members if _is_model(m)]


def _walk(place: Path_, model: type[BaseModel]) -> Iterator[tuple[str | int, list[Any]]]:
    """Key by key of a fault's place, and what may hold each."""
    here: list[Any] = [model]
    for part in place:
        members = [m for annotation in here for m in _members(annotation)]
        if len(members) > len(here):
            here = [m for annotation in here for m in _tagged(annotation, part)] or members
        elif part != "[key]":
            yield part, members
            here = [inner for member in members for inner in _within(member, part)]


def _models_at(model: type[BaseModel], keys: Path_) -> list[type[BaseModel]]:
    """The models that may stand under some keys, as far as annotations tell."""
    here: list[Any] = [model]
    for key in keys:
        here = [inner for annotation in here for member in _members(annotation) for inner in _within(member, key)]
    return [m for annotation in here for m in _members(annotation) if _is_model(m)]


def _members(annotation: Any) -> list[Any]:
    """What an annotation allows besides None: the members of a union, else itself."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [m for part in get_args(annotation) if part is not type(None) for m in _members(part)]
    return [annotation]


def _tagged(annotation: Any, tag: str | int) -> list[Any]:
    """The members of a union that bear a tag."""
    inner, *notes = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    if any(isinstance(note, Tag) and note.tag == tag for note in notes):
        return _members(inner)
    parts = get_args(inner) if get_origin(inner) in (Union, UnionType) else ()
    return [m for part in parts for m in _tagged(part, tag)]


def _within(annotation: Any, key: str | int) -> list[Any]:
    """What may stand under a key of a model, a mapping or a list."""
    if _is_model(annotation):
        return [f.annotation for name, f in annotation.model_fields.items() if key in (name, f.alias)]
    inner = [a for a in get_args(annotation) if a is not ...]
    return inner[1:] if get_origin(annotation) is dict else inner if get_origin(annotation) in (list, tuple) else []


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)

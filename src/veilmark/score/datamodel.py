"""Weights from a data model: a tree of concepts with sensitivities, and what can be inferred from what.

The weights of L-Severity (Vavilis, Petković and Zannone 2016), as the tkl-Score paper uses them. A model is a
YAML file; this one gives the paper's weights of diseases and medication:

    tree:
      Patient:
        sensitivity: 0.6
        children:
          Medical:
            sensitivity: 0.8
            children:
              Disease:
                sensitivity: 0.9
                values: {HIV: 1, H1N1: 0.8, Hypertension: 0.8, Flu: 0.2}
      Medication:
        sensitivity: 0.5
        values: {ARV: 0.2, Statin: 0.2}
    infers:
      - {from: Medication, to: Disease, value: 0.1}

A concept with `values` is an attribute: the column `attribute`, by default the concept's name. An end of
an inference is a concept or one value, `Disease=HIV`. Concepts may hold their own: `infers: {Disease: 1}`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from veilmark.errors import WeightsError, did_you_mean, listing
from veilmark.yamlfile import Document, read_yaml, validate

__all__ = ["RULES", "DataModel", "Explanation", "Inference", "Node", "Rule", "read_model"]

Rule = Callable[[float, Sequence[tuple[float, float]]], float]
"""From a base and the (inference value, weight of the target) of each inference, a weight ≥ 0."""


def _inference(base: float, inferences: Sequence[tuple[float, float]]) -> float:
    return base * (1 + sum(value * weight for value, weight in inferences))


def _maximum(base: float, inferences: Sequence[tuple[float, float]]) -> float:
    return base * (1 + max((value * weight for value, weight in inferences), default=0.0))


def _none(base: float, inferences: Sequence[tuple[float, float]]) -> float:
    return base


RULES: dict[str, Rule] = {"inference": _inference, "maximum": _maximum, "none": _none}
"""How a base and its inferences become a weight: all of them, the strongest alone, or none."""


@dataclass(frozen=True)
class Node:
    """A concept, or a value of an attribute, with the inferences that hold for it, inherited ones included.

    `base` is the product of the sensitivities from the root, 0..1. `inferences` are (place of the target
    among the nodes, inference value ≥ 0).
    """

    name: str
    base: float
    inferences: tuple[tuple[int, float], ...] = ()
    attribute: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class Inference:
    """What a value gives away: `target`, whose own weight is `weight`, with the strength `value`."""

    target: str
    value: float
    weight: float


@dataclass(frozen=True)
class Explanation:
    """Why a value weighs what it does: `base` (0..1) raised by its inferences to `weight` (≥ 0)."""

    attribute: str
    value: str
    base: float
    inferences: tuple[Inference, ...]
    weight: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class DataModel:
    """A checked data model: concepts and values in the order of the file.

    With the rule `inference`, W(n) = base(n)·(1 + Σ I(n,m)·W(m)) over the inferences n→m, not capped at 1.
    A value inherits the inferences of its concept and of all above it; one of its own to the same target
    stands instead. The weight of a target concept is its own W, not that of one of its values.
    """

    nodes: tuple[Node, ...]
    rule: str = "inference"
    source: str = "The data model"

    @classmethod
    def _built(cls, model: _File, source: str) -> DataModel:
        _check_rule(model.rule, source)
        nodes = _linked(_flattened(model.tree, source), model.infers, source)
        _check_values(nodes, source)
        _targets_first(nodes, source)
        return cls(nodes, model.rule, source)

    def weights(self) -> dict[str, dict[str, float]]:
        """Weights ≥ 0 by attribute and value."""
        weights: dict[str, dict[str, float]] = {}
        for node, weight in zip(self.nodes, self._node_weights(), strict=True):
            if node.attribute is not None and node.value is not None:
                weights.setdefault(node.attribute, {})[node.value] = weight
        return weights

    def explain(self) -> tuple[Explanation, ...]:
        """A row for each value: its base, what it infers, its weight."""
        weights = self._node_weights()
        return tuple(
            Explanation(node.attribute, node.value, node.base, self._inferences(node, weights), weight)
            for node, weight in zip(self.nodes, weights, strict=True)
            if node.attribute is not None and node.value is not None
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "weights": self.weights(),
            "explanation": [row.to_dict() for row in self.explain()],
        }

    def _inferences(self, node: Node, weights: Sequence[float]) -> tuple[Inference, ...]:
        return tuple(Inference(self.nodes[t].name, value, weights[t]) for t, value in node.inferences)

    def _node_weights(self) -> list[float]:
        _check_rule(self.rule, self.source)
        combine = RULES[self.rule]
        weights = [math.nan] * len(self.nodes)
        for place in _targets_first(self.nodes, self.source):
            node = self.nodes[place]
            weight = combine(node.base, [(value, weights[target]) for target, value in node.inferences])
            weights[place] = self._checked(weight, node)
        return weights

    def _checked(self, weight: float, node: Node) -> float:
        if not (math.isfinite(weight) and weight >= 0):
            raise WeightsError(
                f"{self.source}: the rule '{self.rule}' gives '{node.name}' the weight {weight}. "
                "A rule must give a finite number of at least 0; correct it, or choose another."
            )
        return weight


def read_model(path: str | os.PathLike[str]) -> DataModel:
    """A data model from its YAML file; names of concepts and values are the text written there."""
    document = read_yaml(Path(path), WeightsError)
    model = validate(document, _File, WeightsError)
    _check_scalars(document)
    return DataModel._built(model, os.fspath(path))


# --- the file ----------------------------------------------------------------------------------------------

Sensitivity = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Strength = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class _Concept(_Part):
    sensitivity: Sensitivity
    attribute: Name | None = None
    values: Annotated[dict[Name, Sensitivity], Field(min_length=1)] | None = None
    children: Annotated[dict[Name, _Concept], Field(min_length=1)] | None = None
    infers: dict[Name, Strength] = {}


class _Edge(_Part):
    start: Name = Field(alias="from")
    to: Name
    value: Strength


class _File(_Part):
    rule: Name = "inference"
    tree: Annotated[dict[Name, _Concept], Field(min_length=1)]
    infers: list[_Edge] = []


def _check_scalars(document: Document) -> None:
    """An empty key, true or false is a slip, which pydantic would take for not given, 1 or 0."""
    for keys in document.lines:
        scalar = reduce(getitem, keys, document.data)
        if scalar is None:
            raise WeightsError(f"{document.place(keys)}: it is empty. Fill it in, or remove the key.")
        if isinstance(scalar, bool):
            raise WeightsError(
                f"{document.place(keys)}: {str(scalar).lower()} is not a number. Write one, such as 0.5."
            )


# --- the tree and its inferences ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Branch:
    """A node before its inferences are joined; `parent` is its place, or -1 for a root."""

    node: Node
    parent: int
    infers: Mapping[str, float]
    aliases: tuple[str, ...]


def _flattened(tree: dict[str, _Concept], source: str) -> list[_Branch]:
    """Concepts, each followed by its values and children, parents before children."""
    branches: list[_Branch] = []
    waiting = [(name, concept, -1) for name, concept in reversed(tree.items())]
    while waiting:
        name, concept, parent = waiting.pop()
        _check_attribute(name, concept, source)
        place = len(branches)
        base = concept.sensitivity * (branches[parent].node.base if parent >= 0 else 1.0)
        attribute = concept.attribute or name
        aliases = (name, attribute) if concept.values else (name,)
        branches.append(_Branch(Node(name, base), parent, concept.infers, aliases))
        branches.extend(_value_branches(name, attribute, base, place, concept.values or {}))
        waiting.extend((child, below, place) for child, below in reversed((concept.children or {}).items()))
    return branches


def _value_branches(
    name: str, attribute: str, base: float, parent: int, values: Mapping[str, float]
) -> Iterator[_Branch]:
    for value, sensitivity in values.items():
        node = Node(f"{attribute}={value}", base * sensitivity, (), attribute, value)
        yield _Branch(node, parent, {}, (node.name, f"{name}={value}"))


def _linked(branches: Sequence[_Branch], edges: Sequence[_Edge], source: str) -> tuple[Node, ...]:
    """The nodes with their inferences: those of the parent, overridden by their own."""
    own = _own_inferences(branches, edges, source)
    effective: list[dict[int, float]] = []
    for place, branch in enumerate(branches):
        inherited = effective[branch.parent] if branch.parent >= 0 else {}
        effective.append({**inherited, **own[place]} if own[place] else inherited)
    return tuple(
        Node(b.node.name, b.node.base, tuple(infers.items()), b.node.attribute, b.node.value)
        for b, infers in zip(branches, effective, strict=True)
    )


def _own_inferences(branches: Sequence[_Branch], edges: Sequence[_Edge], source: str) -> list[dict[int, float]]:
    places = _places(branches)
    own: list[dict[int, float]] = [{} for _ in branches]
    listed = [(_place(edge.start, places, source), edge.to, edge.value) for edge in edges]
    nested = [(place, to, value) for place, branch in enumerate(branches) for to, value in branch.infers.items()]
    for start, to, value in nested + listed:
        target = _place(to, places, source)
        if target in own[start]:
            ends = f"from '{branches[start].node.name}' to '{branches[target].node.name}'"
            raise WeightsError(f"{source}: the inference {ends} occurs twice. Keep one of them.")
        own[start][target] = value
    return own


def _places(branches: Sequence[_Branch]) -> dict[str, list[int]]:
    """Where the nodes are that a name can mean; a concept's own name goes before a column's."""
    places: dict[str, list[int]] = {}
    for rank in range(2):
        known = set(places)
        for place, branch in enumerate(branches):
            for alias in branch.aliases[rank : rank + 1]:
                if alias not in known and place not in places.setdefault(alias, []):
                    places[alias].append(place)
    return places


def _place(name: str, places: Mapping[str, list[int]], source: str) -> int:
    found = places.get(name, [])
    if len(found) == 1:
        return found[0]
    if found:
        raise WeightsError(
            f"{source}: an inference names '{name}', but {len(found)} concepts have this name. Give them "
            "different names ('attribute' can keep the column)."
        )
    raise WeightsError(
        f"{source}: an inference names '{name}', but the tree has no such concept.{did_you_mean(name, places)} "
        "Name a concept, or a single value as 'Disease=HIV'."
    )


# --- checks ------------------------------------------------------------------------------------------------


def _check_rule(rule: str, source: str) -> None:
    if rule not in RULES:
        raise WeightsError(
            f"{source}: the rule '{rule}' is not known.{did_you_mean(rule, RULES)} "
            f"Use one of {listing(list(RULES))}, or register it."
        )


def _check_attribute(name: str, concept: _Concept, source: str) -> None:
    if concept.attribute and not concept.values:
        raise WeightsError(
            f"{source}: the concept '{name}' names the column '{concept.attribute}' but has no values. "
            "Give it 'values', or move 'attribute' to the concepts below that have them."
        )


def _check_values(nodes: Sequence[Node], source: str) -> None:
    seen: set[tuple[str | None, str]] = set()
    for node in nodes:
        if node.value is None:
            continue
        if (node.attribute, node.value) in seen:
            raise WeightsError(
                f"{source}: the value '{node.value}' of '{node.attribute}' occurs twice in the tree. "
                "Keep it under one concept."
            )
        seen.add((node.attribute, node.value))
    if not seen:
        raise WeightsError(f"{source} has no values to weigh. Give a concept 'values: {{Flu: 0.2, HIV: 1}}'.")


def _targets_first(nodes: Sequence[Node], source: str) -> list[int]:
    """Places of the nodes such that each comes after all it infers; a cycle is an error."""
    order: list[int] = []
    done: set[int] = set()
    for start in range(len(nodes)):
        path = {start: iter(nodes[start].inferences)} if start not in done else {}
        while path:
            place, targets = next(reversed(path.items()))
            target = next((t for t, _ in targets if t not in done), None)
            if target is None:
                path.pop(place)
                done.add(place)
                order.append(place)
            elif target in path:
                _raise_cycle([nodes[p].name for p in path], nodes[target].name, source)
            else:
                path[target] = iter(nodes[target].inferences)
    return order


def _raise_cycle(path: list[str], again: str, source: str) -> None:
    cycle = [*path[path.index(again) :], again]
    raise WeightsError(
        f"{source}: the inferences form a cycle: {' → '.join(cycle)} (a value inherits the inferences of the "
        "concepts above it). A weight would depend on itself. Remove one of them."
    )

"""Weights of sensitive values: how bad it would be if this one came out.

An attribute's `weights` in the study file are one of

    {Flu: 0.05, HIV: 0.2, "": 0, default: 0.1}          direct; "" is the missing value
    {ranges: [{to: 20000, weight: 0.3}, {from: 20000, weight: 0.1}], missing: 0}        numbers, from ≤ value < to
    {ahp: matrix.csv, method: geometric, rescale: true}  experts' pairwise judgements; several files are a panel
    {ahp: values.csv, attributes: attributes.csv}        hierarchical: attributes first, then values within each
    {model: model.yaml}                                  the data model of L-Severity
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from veilmark.errors import VeilmarkWarning, WeightsError, listing
from veilmark.messages import command
from veilmark.score import ahp, datamodel
from veilmark.tables.domain import Domain
from veilmark.yamlfile import explain

M = TypeVar("M", bound=BaseModel)
KINDS = ("ranges", "ahp", "model")
DEFAULT = "default"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Range(_Strict):
    """Numbers from `from` up to, and without, `to`."""

    low: float = Field(default=-math.inf, alias="from")
    to: float = math.inf
    weight: float


class Ranges(_Strict):
    ranges: list[Range]
    missing: float | None = None
    default: float | None = None


class Ahp(_Strict):
    ahp: str | list[str]
    attributes: str | None = None
    method: Literal["eigenvector", "geometric"] = "eigenvector"
    rescale: bool = False
    default: float | None = None


class Model(_Strict):
    model: str
    default: float | None = None


@dataclass(frozen=True)
class WeightTable:
    """The weight of each value of one attribute; `default` stands for values not named."""

    attribute: str
    values: Mapping[str, float]
    default: float | None = None
    ranges: tuple[Range, ...] = ()
    missing: float | None = None

    @property
    def largest(self) -> float:
        """The largest weight any value can have."""
        candidates = [*self.values.values(), *(r.weight for r in self.ranges), self.default, self.missing]
        return max((c for c in candidates if c is not None), default=0.0)

    def of(self, domain: Domain) -> np.ndarray:
        """The weight of each value of a domain; a value without one is an error."""
        stated, weights = self.stated(domain)
        self._warn_of_absent(["" if t is None else t for t in domain.text.to_pylist()])
        return weights[stated]

    def stated(self, domain: Domain) -> tuple[np.ndarray, np.ndarray]:
        """For each value of a domain the number of the statement that gives its weight, and the statements' weights.

        A range, or the default, is one statement for all values it covers.
        """
        if self.ranges:
            found, weights = self._by_range(domain), [r.weight for r in self.ranges]
        else:
            place = {value: i for i, value in enumerate(self.values)}
            texts = ["" if t is None else t for t in domain.text.to_pylist()]
            found, weights = np.array([place.get(t, -1) for t in texts], dtype=np.int64), list(self.values.values())
        if domain.missing is not None and found[domain.missing] < 0 and self.missing is not None:
            found[domain.missing] = len(weights)
            weights.append(self.missing)
        lacking = found < 0
        if lacking.any() and self.default is None:
            raise WeightsError(self._no_weight([domain.text[int(i)].as_py() or "" for i in np.flatnonzero(lacking)]))
        found[lacking] = len(weights)
        return found, np.array([*weights, self.default if self.default is not None else 0.0])

    def _by_range(self, domain: Domain) -> np.ndarray:
        if domain.numbers is None:
            raise WeightsError(
                f"The weights of '{self.attribute}' use ranges, but not all of its values are numbers. Give a "
                "weight for each value instead."
            )
        found = np.full(len(domain), -1, dtype=np.int64)
        for i, r in enumerate(self.ranges):
            found[(domain.numbers >= r.low) & (domain.numbers < r.to)] = i
        return found

    def _no_weight(self, lacking: Sequence[str]) -> str:
        key = "missing" if self.ranges else "''"
        missing = f" Give missing values a weight under the key {key}." if "" in lacking else ""
        named = [t for t in lacking if t]
        what = f"the values {listing(named)}" if named else "missing values"
        return (
            f"The weights of '{self.attribute}' lack {what}, which occur in the data.{missing} Add them, or a "
            "weight for all values not named: default: 0.1."
        )

    def _warn_of_absent(self, texts: Sequence[str]) -> None:
        absent = sorted(set(self.values) - set(texts))
        if absent:
            warnings.warn(
                f"The weights of '{self.attribute}' name values that do not occur in the data: {listing(absent)}. "
                "Check their spelling.",
                VeilmarkWarning,
                stacklevel=3,
            )


def read_weights(attribute: str, given: Mapping[str, Any] | None, folder: Path) -> WeightTable:
    """An attribute's weights, from whatever the study says they are made of."""
    if not given:
        raise WeightsError(
            f"'{attribute}' is sensitive but has no weights, so its misuse cannot be scored. Add them to the study: "
            "weights: {Flu: 0.1, HIV: 0.9, default: 0.2}, with your values, or see docs/score.md."
        )
    kinds = [k for k in KINDS if k in given and not isinstance(given[k], int | float)]
    if not kinds:
        return _direct(attribute, given)
    return {"ranges": _ranges, "ahp": _from_ahp, "model": _from_model}[kinds[0]](attribute, given, folder)


def check_weights(attribute: str, given: Mapping[str, Any] | None, folder: Path) -> None:
    """Weights that stand in the study itself are right, if there are any; files are read when they are needed."""
    if given and not {"ahp", "model"} & set(given):
        read_weights(attribute, given, folder)


def _direct(attribute: str, given: Mapping[str, Any]) -> WeightTable:
    weights = {str(value): _weight(attribute, value, w) for value, w in given.items()}
    default = weights.pop(DEFAULT, None)
    return WeightTable(attribute, weights, default)


def _weight(attribute: str, value: object, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise WeightsError(
            f"The weight of '{attribute}' value '{value}' is {given!r}. A weight is a number from 0 (harmless) to "
            "1 (most harmful)."
        )
    return float(given)


def _ranges(attribute: str, given: Mapping[str, Any], folder: Path) -> WeightTable:
    spec = _parsed(Ranges, attribute, given)
    for r in spec.ranges:
        _weight(attribute, f"from {r.low:g} to {r.to:g}", r.weight)
        if not r.low < r.to:
            raise WeightsError(
                f"The weights of '{attribute}' have an empty range, from {r.low:g} to {r.to:g}. Correct its limits."
            )
    ordered = sorted(spec.ranges, key=lambda r: r.low)
    for before, after in pairwise(ordered):
        if after.low < before.to:
            raise WeightsError(
                f"The weights of '{attribute}' have overlapping ranges: one ends at {before.to:g}, the next "
                f"starts at {after.low:g}. Correct their limits."
            )
    return WeightTable(attribute, {}, spec.default, tuple(ordered), spec.missing)


def _from_ahp(attribute: str, given: Mapping[str, Any], folder: Path) -> WeightTable:
    spec = _parsed(Ahp, attribute, given)
    files = [spec.ahp] if isinstance(spec.ahp, str) else spec.ahp
    matrices = [ahp.read_matrix(folder / f) for f in files]
    panel = ahp.aggregate(matrices, spec.method) if len(matrices) > 1 else None
    values = ahp.priorities(matrices[0], spec.method) if panel is None else panel.result
    share = _attribute_share(attribute, spec, folder) if spec.attributes else 1.0
    scale = max(values.by_name.values()) if spec.rescale else 1.0
    return WeightTable(attribute, {v: share * w / scale for v, w in values.by_name.items()}, spec.default)


def _attribute_share(attribute: str, spec: Ahp, folder: Path) -> float:
    """How much the attribute counts against the others."""
    if spec.rescale:
        raise WeightsError(
            f"The weights of '{attribute}': rescale cannot be combined with attributes, because another attribute "
            "may have the largest weight. Rescale these weights alone, and write the result into the study. "
            f"{command('weights ahp', 'MATRIX.csv', rescale=True)}"
        )
    shares = ahp.priorities(ahp.read_matrix(folder / str(spec.attributes)), spec.method).by_name
    if attribute not in shares:
        raise WeightsError(f"'{spec.attributes}' compares {listing(list(shares))}, but not '{attribute}'.")
    return shares[attribute]


def _from_model(attribute: str, given: Mapping[str, Any], folder: Path) -> WeightTable:
    spec = _parsed(Model, attribute, given)
    weights = datamodel.read_model(folder / spec.model).weights()
    if attribute not in weights:
        raise WeightsError(
            f"The data model '{spec.model}' has no attribute '{attribute}'; it has {listing(list(weights))}. Name the "
            "column in the model with attribute: …."
        )
    return WeightTable(attribute, weights[attribute], spec.default)


def _parsed(model: type[M], attribute: str, given: Mapping[str, Any]) -> M:
    try:
        spec = model.model_validate(dict(given))
    except ValidationError as problem:
        raise WeightsError(f"The weights of '{attribute}': {explain(problem, model)}") from None
    for name in ("default", "missing"):
        if getattr(spec, name, None) is not None:
            _weight(attribute, name, getattr(spec, name))
    return spec

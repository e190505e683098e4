"""Requirements that a measured table must meet: `k=5`, `l.diagnosis=2`, `t.diagnosis=0.2`, `risk=0.1`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from veilmark.errors import OptionError, did_you_mean
from veilmark.messages import param
from veilmark.privacy.measures import AttributeMeasures, Measures
from veilmark.shares import share

OF_TABLE: dict[str, tuple[str, Callable[[Measures], float]]] = {
    "k": (">=", lambda m: m.k),
    "risk": ("<=", lambda m: m.risk.prosecutor.max),
}
OF_ATTRIBUTE: dict[str, tuple[str, Callable[[AttributeMeasures], float]]] = {
    "l": (">=", lambda a: a.diversity.distinct),
    "entropy": (">=", lambda a: a.diversity.entropy),
    "t": ("<=", lambda a: a.t),
    "alpha": ("<=", lambda a: a.alpha),
    "beta": ("<=", lambda a: a.beta_basic),
    "delta": ("<=", lambda a: a.delta),
}
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Requirement:
    """A limit, what was measured, and whether it holds."""

    what: str
    limit: float
    value: float
    met: bool

    def __str__(self) -> str:
        return f"{self.what}: {self.value:.6g} measured, {self.limit:g} required: {'met' if self.met else 'NOT met'}"

    def to_dict(self) -> dict[str, Any]:
        return vars(self)


def check_requirements(measures: Measures, given: Sequence[str]) -> list[Requirement]:
    """Each requirement, compared with what was measured."""
    return [_check(measures, text) for text in given]


def _check(measures: Measures, text: str) -> Requirement:
    what, equals, number = text.rpartition("=")
    try:
        limit = share(number)
    except ValueError:
        equals = ""
    if not equals:
        raise OptionError(
            f"{param('require')} takes a limit such as k=5, l.diagnosis=2 or t.diagnosis=0.2, not '{text}'."
        )
    sign, value = _measured(measures, what)
    met = value >= limit - TOLERANCE if sign == ">=" else value <= limit + TOLERANCE
    return Requirement(what, limit, value, met)


def _measured(measures: Measures, what: str) -> tuple[str, float]:
    if what in OF_TABLE:
        sign, of_table = OF_TABLE[what]
        return sign, float(of_table(measures))
    kind, _, attribute = what.partition(".")
    if kind not in OF_ATTRIBUTE:
        known = [*OF_TABLE, *(f"{name}.ATTRIBUTE" for name in OF_ATTRIBUTE)]
        raise OptionError(
            f"'{what}' is not a measure that can be required.{did_you_mean(kind, [*OF_TABLE, *OF_ATTRIBUTE])} "
            f"Known: {', '.join(known)}."
        )
    if attribute not in measures.attributes:
        raise OptionError(
            f"'{attribute}' is not a sensitive attribute of the study.{did_you_mean(attribute, measures.attributes)} Write "
            f"{kind}.ATTRIBUTE=LIMIT."
        )
    sign, of_attribute = OF_ATTRIBUTE[kind]
    return sign, float(of_attribute(measures.attributes[attribute]))

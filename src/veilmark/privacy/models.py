"""Privacy models: what a release must meet. Each says which classes fail; any method can use any of them.

A class's size counts persons where they are known, and so does α; all else counts records, as in `diversity`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol

import numpy as np

from veilmark.errors import OptionError, did_you_mean, listing
from veilmark.privacy import closeness, diversity
from veilmark.privacy.measures import Sensitive
from veilmark.tables.classes import ClassTable

ENTROPY_TOLERANCE = 1e-9
"""How far, as a share of l, exp(H) may fall short: logarithms round."""

TOLERANCE = 1e-12
"""How far a distance may exceed t, and a share its bound (as a share of it): sums of fractions round."""


class PrivacyModel(Protocol):
    """A limit that every class of a release must meet."""

    @property
    def name(self) -> str:
        """One word for it, the `model` of `to_dict`."""

    @property
    def attribute(self) -> str | None:
        """The sensitive attribute that it is about."""

    @property
    def local(self) -> bool:
        """Whether a class fails by itself, whatever other classes the table has."""

    @property
    def monotone(self) -> bool:
        """Whether merging classes never makes more records fail, even where failing classes are suppressed.

        It does where one passing class makes whatever it is merged with pass.
        """

    def survives_merging(self, wander: bool) -> bool:
        """Whether a table without failing classes has none after any merging of classes.

        `wander`: persons may occur in several classes.
        """

    def failing(self, classes: ClassTable) -> np.ndarray:
        """A mask of the classes that fail, compared with the table given where the model compares."""

    def to_dict(self) -> dict[str, Any]:
        """The model and its limits as plain values."""


@dataclass(frozen=True, eq=False)
class _Model:
    name: ClassVar[str]
    local: ClassVar[bool] = True
    monotone: ClassVar[bool] = False

    def survives_merging(self, wander: bool) -> bool:
        return True

    def to_dict(self) -> dict[str, Any]:
        limits = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"model": self.name} | {k: v.item() if isinstance(v, np.generic) else v for k, v in limits.items()}


@dataclass(frozen=True, eq=False)
class _AboutAttribute(_Model):
    attribute: str


# The size of classes.


@dataclass(frozen=True)
class KAnonymity(_Model):
    """Every class has at least k persons (records where persons are not known). (Sweeney 2002)

    Merging: a class that contains one of size k has size k.
    """

    name = "k"
    attribute: ClassVar[str | None] = None
    monotone = True

    k: int

    def __post_init__(self) -> None:
        _require_whole("k", self.k, "5")

    def __str__(self) -> str:
        return f"k ≥ {self.k}"

    def failing(self, classes: ClassTable) -> np.ndarray:
        return classes.size < self.k


@dataclass(frozen=True)
class KMap(_Model):
    """Every class links to at least k in the population, of whom at least those in the class. (Sweeney 2002)

    Equal to: no journalist risk is above 1/k. Merging: population classes only grow.
    """

    name = "k_map"
    attribute: ClassVar[str | None] = None
    monotone = True

    k: int

    def __post_init__(self) -> None:
        _require_whole("k of k-map", self.k, "5")

    def __str__(self) -> str:
        return f"k ≥ {self.k} in the population"

    def failing(self, classes: ClassTable) -> np.ndarray:
        return _linked(classes, self) < self.k


@dataclass(frozen=True)
class DeltaPresence(_Model):
    """Of each class's people in the population, a share from `low` to `high` is in the table, each in 0..1.

    Judged are the classes that the table has: people of other population classes are known to be absent.
    (Nergiz, Atzori and Clifton 2007)
    Merging: can bring in such absent people and push a share below `low`, so that no passing is safe.
    """

    name = "delta_presence"
    attribute: ClassVar[str | None] = None

    low: float
    high: float

    def __post_init__(self) -> None:
        _require("low of δ-presence", self.low, lambda low: 0 <= low <= 1, "from 0 to 1", "0")
        rule = f"from low, which is {self.low}, to 1"
        _require("high of δ-presence", self.high, lambda high: self.low <= high <= 1, rule, "1")

    def __str__(self) -> str:
        return f"presence of {self.low:g} to {self.high:g} of the population's class"

    def survives_merging(self, wander: bool) -> bool:
        return False

    def failing(self, classes: ClassTable) -> np.ndarray:
        share = classes.size / _linked(classes, self)
        return (share < self.low) | (share > self.high)


def _linked(classes: ClassTable, model: PrivacyModel) -> np.ndarray:
    """The people each class links to: not fewer than are in the class, whatever the population table says."""
    if classes.population is None:
        raise OptionError(f"'{model}' needs a population, but none is given. Give one, or drop this model.")
    return np.maximum(classes.population, classes.size)


# The sensitive values of a class by themselves.


@dataclass(frozen=True)
class DistinctL(_AboutAttribute):
    """Every class has at least l values of the attribute. (Machanavajjhala et al. 2007)

    Merging: a class has the values of all its parts.
    """

    name = "l"
    monotone = True

    l: int  # noqa: E741

    def __post_init__(self) -> None:
        _require_whole(f"l for '{self.attribute}'", self.l, "2")

    def __str__(self) -> str:
        return f"at least {self.l} value{'s' if self.l > 1 else ''} of {self.attribute}"

    def failing(self, classes: ClassTable) -> np.ndarray:
        return diversity.distinct_values(classes, self.attribute) < self.l


@dataclass(frozen=True)
class EntropyL(_AboutAttribute):
    """exp(H) ≥ l in every class, l any number from 1. (Machanavajjhala et al. 2007)

    Merging: the entropy of a mixture is at least its parts' mean, so that passing parts pass; but a part that
    fails can pull the mixture down.
    """

    name = "entropy_l"

    l: float  # noqa: E741

    def __post_init__(self) -> None:
        _require(f"Entropy l for '{self.attribute}'", self.l, lambda l: l >= 1, "of 1 or more", "2")  # noqa: E741

    def __str__(self) -> str:
        return f"entropy l ≥ {self.l:g} for {self.attribute}"

    def failing(self, classes: ClassTable) -> np.ndarray:
        return diversity.entropy_diversity(classes, self.attribute) < self.l * (1 - ENTROPY_TOLERANCE)


@dataclass(frozen=True)
class RecursiveL(_AboutAttribute):
    """r_1 < c·(r_l + … + r_m) in every class, r its values' counts, falling. (Machanavajjhala et al. 2007)

    c is any number above 0, l a whole one from 1; fewer than l values fail.
    Merging: r_1 is at most the sum of the parts' and the tail at least, so that passing parts pass; but a
    part that fails can outweigh the others.
    """

    name = "recursive_l"

    c: float
    l: int  # noqa: E741

    def __post_init__(self) -> None:
        _require(f"c for '{self.attribute}'", self.c, _positive, "above 0", "3")
        _require_whole(f"l for '{self.attribute}'", self.l, "2")

    def __str__(self) -> str:
        return f"recursive ({self.c:g}, {self.l})-diversity of {self.attribute}"

    def failing(self, classes: ClassTable) -> np.ndarray:
        return diversity.recursive_c(classes, self.attribute, self.l) >= self.c


@dataclass(frozen=True)
class Alpha(_AboutAttribute):
    """At most a share α of each class, in (0, 1], has any one value: the α of (α,k). (Wong et al. 2006)

    Of its persons, where they are known.
    Merging: a mixture's share is at most its parts' largest, so that passing parts pass. Not so where persons
    wander: the merged class counts them once, and the share of the others grows.
    """

    name = "alpha"

    alpha: float

    def __post_init__(self) -> None:
        _require(f"α for '{self.attribute}'", self.alpha, lambda a: 0 < a <= 1, "above 0 and at most 1", "0.5")

    def __str__(self) -> str:
        return f"no value of {self.attribute} over {self.alpha:g} of a class"

    def survives_merging(self, wander: bool) -> bool:
        return not wander

    def failing(self, classes: ClassTable) -> np.ndarray:
        return diversity.largest_share(classes, self.attribute) > self.alpha


# The sensitive values of a class compared with the whole table's.


@dataclass(frozen=True, eq=False)
class TCloseness(_AboutAttribute):
    """The earth mover's distance of every class to the table is at most t, in 0..1. (Li et al. 2007)

    Two of them are equal only where they are one: their orders and hierarchies are not compared.
    Merging: the distance is convex, so that a mixture lies no farther than its farthest part.
    """

    name = "t"
    local = False

    t: float
    how: Sensitive = field(default_factory=Sensitive, repr=False)

    def __post_init__(self) -> None:
        _require(f"t for '{self.attribute}'", self.t, lambda t: 0 <= t <= 1, "from 0 to 1", "0.2")
        _check_distance(self.attribute, self.how)

    def __str__(self) -> str:
        return f"t ≤ {self.t:g} for {self.attribute} ({self.how.distance} distance)"

    def to_dict(self) -> dict[str, Any]:
        plain = super().to_dict()
        del plain["how"]
        return plain | {"distance": self.how.distance}

    def failing(self, classes: ClassTable) -> np.ndarray:
        return class_distance(classes, self.attribute, self.how) > self.t + TOLERANCE


def class_distance(classes: ClassTable, name: str, how: Sensitive) -> np.ndarray:
    """The distance of each class's values to the table's, by the one that the attribute is compared by; 0..1."""
    _check_distance(name, how)
    if how.distance == "ordered" and how.rank is not None:
        return closeness.ordered_distance(classes, name, how.rank)
    if how.distance == "hierarchical" and how.levels is not None:
        return closeness.hierarchical_distance(classes, name, how.levels)
    return closeness.equal_distance(classes, name)


def _check_distance(attribute: str, how: Sensitive) -> None:
    known = {"equal": True, "ordered": how.rank is not None, "hierarchical": how.levels is not None}
    if how.distance not in known:
        raise OptionError(f"The distance of '{attribute}' must be one of {', '.join(known)}, not '{how.distance}'.")
    if not known[how.distance]:
        lacks = "an order" if how.distance == "ordered" else "a hierarchy"
        raise OptionError(
            f"The {how.distance} distance of '{attribute}' needs {lacks}. Give one, or use the distance equal."
        )


@dataclass(frozen=True)
class BasicBeta(_AboutAttribute):
    """No value's share q in a class exceeds its share p in the table by more: (q - p)/p ≤ β, β > 0.

    (Cao and Karras 2012) Merging: a mixture's share is at most its parts' largest.
    """

    name = "beta"
    local = False

    beta: float

    def __post_init__(self) -> None:
        _require(f"β for '{self.attribute}'", self.beta, _positive, "above 0", "1")

    def __str__(self) -> str:
        return f"β ≤ {self.beta:g} for {self.attribute}"

    def failing(self, classes: ClassTable) -> np.ndarray:
        return _over(classes, self.attribute, _table_shares(classes, self.attribute) * (1 + self.beta))


@dataclass(frozen=True)
class EnhancedBeta(_AboutAttribute):
    """(q - p)/p ≤ min(β, -ln p) for every value, as Cao and Karras (2012) define it; β > 0.

    The cap is each value's own: it keeps frequent values below certainty. `diversity.enhanced_beta` reports
    pyCANON's single number, which caps all values by the rarest one's -ln p; it is at most β where this holds,
    but not the other way round. Merging: a mixture's share is at most its parts' largest.
    """

    name = "enhanced_beta"
    local = False

    beta: float

    def __post_init__(self) -> None:
        _require(f"β for '{self.attribute}'", self.beta, _positive, "above 0", "1")

    def __str__(self) -> str:
        return f"enhanced β ≤ {self.beta:g} for {self.attribute}"

    def failing(self, classes: ClassTable) -> np.ndarray:
        share = _table_shares(classes, self.attribute)
        log = np.log(share, out=np.zeros_like(share), where=share > 0)
        return _over(classes, self.attribute, share * (1 + np.minimum(self.beta, -log)))


@dataclass(frozen=True)
class DeltaDisclosure(_AboutAttribute):
    """|ln(q/p)| < δ for every value that a class has, p its share in the table, δ > 0.

    (Brickell and Shmatikov 2008.) A value that a class lacks is passed over, as pyCANON does; they would let no
    class lack one. Merging: so a class with the value can pass, one without it too, and both together fail.
    """

    name = "delta_disclosure"
    local = False

    delta: float

    def __post_init__(self) -> None:
        _require(f"δ for '{self.attribute}'", self.delta, _positive, "above 0", "1")

    def __str__(self) -> str:
        return f"δ < {self.delta:g} for {self.attribute}"

    def survives_merging(self, wander: bool) -> bool:
        return False

    def failing(self, classes: ClassTable) -> np.ndarray:
        return diversity.disclosure(classes, self.attribute) >= self.delta


def _table_shares(classes: ClassTable, attribute: str) -> np.ndarray:
    overall = classes.histograms[attribute].overall
    share: np.ndarray = overall / max(overall.sum(), 1)
    return share


def _over(classes: ClassTable, attribute: str, most: np.ndarray) -> np.ndarray:
    """The classes where a value has more than its `most`, the largest share it may have."""
    histogram = classes.histograms[attribute]
    bound = most[histogram.value] * classes.records[histogram.owner]
    failing = np.zeros(len(classes), dtype=bool)
    failing[histogram.owner[histogram.records > bound * (1 + TOLERANCE)]] = True
    return failing


# Several models together.


def failing_classes(models: Sequence[PrivacyModel], classes: ClassTable) -> np.ndarray:
    """A mask of the classes to suppress so that the rest meets every model, as measured on the rest itself.

    What a class is compared with changes as others go, so that those that then fail go too, until none does.
    The rest may be empty.
    """
    failing = _failing_any([m for m in models if m.local], classes)
    comparing = [m for m in models if not m.local]
    if not comparing:
        return failing
    needed = {m.attribute: classes.histograms[m.attribute] for m in comparing if m.attribute is not None}
    rest = replace(classes, histograms=needed)
    rest = rest.take(~failing) if failing.any() else rest
    position = np.flatnonzero(~failing)
    while (worse := _failing_any(comparing, rest)).any():
        failing[position[worse]] = True
        position, rest = position[~worse], rest.take(~worse)
    return failing


def _failing_any(models: Sequence[PrivacyModel], classes: ClassTable) -> np.ndarray:
    failing = np.zeros(len(classes), dtype=bool)
    for model in models:
        failing |= model.failing(classes)
    return failing


def all_monotone(models: Sequence[PrivacyModel], suppression: bool, wander: bool = True) -> bool:
    """Whether what passes still passes after any merging of classes, so that a search may tag without looking.

    With suppression, that the records of failing classes never grow; without, that a table with no failing
    class gets none. `wander`: persons may occur in several classes; say False where there are none.
    """
    return all(m.monotone or (not suppression and m.survives_merging(wander)) for m in models)


def check_attributes(models: Sequence[PrivacyModel], sensitive: Sequence[str]) -> None:
    """Every model must be about a sensitive attribute, or none."""
    for model in models:
        if model.attribute is not None and model.attribute not in sensitive:
            have = f"The sensitive ones are {listing(sensitive)}." if sensitive else "The study has none."
            raise OptionError(
                f"'{model}' needs a sensitive attribute, but '{model.attribute}' is not one. "
                f"{have}{did_you_mean(model.attribute, sensitive)} Name one of them, or give it role: sensitive "
                "in the study."
            )


# Limits.


def _positive(value: float) -> bool:
    return value > 0


def _require(option: str, value: object, fits: Callable[[Any], bool], rule: str, offer: str) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not (number and fits(value)):
        raise OptionError(f"{option} must be a number {rule}, not {value}. Try {offer}.")


def _require_whole(option: str, value: object, offer: str) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise OptionError(f"{option} must be a whole number of 1 or more, not {value}. Try {offer}.")

"""Measures: everything that veilmark can say of a table's privacy, in one result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from veilmark.charted import Charted
from veilmark.defaults import THRESHOLD
from veilmark.errors import OptionError, StudyError, listing
from veilmark.hierarchy import Levels
from veilmark.privacy import closeness, diversity, risk
from veilmark.privacy.population import Uniques, population_uniques
from veilmark.privacy.risk import Risk
from veilmark.privacy.unchanged import Unchanged, unchanged_grid
from veilmark.readable import Grid, Summary, count, share
from veilmark.tables.classes import ClassTable

MANY = 1024
"""Classes smaller than that are counted without sorting them."""


LIMITS = {"l": "the distinct l", "entropy_l": "the entropy l", "recursive_l": "the recursive l", "t": "the t"}


@dataclass(frozen=True)
class Sensitive:
    """How a sensitive attribute is compared: its `distance`, the place of each code where its values have an
    order, and its hierarchy where it has one."""

    distance: str = "equal"
    rank: np.ndarray | None = None
    levels: Levels | None = None


@dataclass(frozen=True)
class Diversity:
    """l-diversity of the least diverse class: distinct values; exp of the entropy; and the c above which the
    table is recursively (c, l)-diverse, at the distinct l (at 2 where that is 1)."""

    distinct: int
    entropy: float
    recursive_c: float | None
    recursive_l: int


@dataclass(frozen=True)
class AttributeMeasures:
    """What the classes give away of one sensitive attribute, each of the worst class."""

    diversity: Diversity
    t: float
    t_by_distance: dict[str, float]
    alpha: float
    beta_basic: float
    beta_enhanced: float
    delta: float


@dataclass(frozen=True)
class Risks:
    """Re-identification risk by the intruder's knowledge; None where no population was given.

    The share of the population that is unique is counted where it is a table (`unique_in_population`), and estimated
    where only its size is known (`population_uniques`).
    """

    prosecutor: Risk
    marketer: float
    journalist: Risk | None = None
    marketer_population: float | None = None
    sample: Risk | None = None
    unlinked_classes: int | None = None
    population_uniques: Uniques | None = None
    unique_in_population: float | None = None


@dataclass(frozen=True)
class Measures(Charted):
    """The privacy of a table as it stands. A class's size counts persons where the study names them.

    `unseen` are the table's columns that the study does not name; `class_sizes` says how many classes have each size;
    `unchanged` how many records become unique by one more column that would be published unchanged, worst first;
    `missing_counted` by sensitive attribute, how many classes meet its l and t only because a missing value counts as one.
    """

    records: int
    persons: int | None
    classes: int
    k: int
    uniques: int
    attributes: dict[str, AttributeMeasures]
    risk: Risks
    missing: dict[str, int]
    unseen: tuple[str, ...] = ()
    class_sizes: Mapping[int, int] = field(default_factory=dict, repr=False)
    unchanged: Mapping[str, Unchanged] = field(default_factory=dict)
    missing_counted: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def chart(self) -> Any:
        """The sizes of the classes, and the risk that they mean."""
        from veilmark.report.class_charts import measures

        return measures(self)

    def summary(self) -> Summary:
        who = "record" if self.persons is None else "person"
        of = "" if self.persons is None else f" of {count(self.persons, 'person')}"
        unique = "1 is" if self.uniques == 1 else f"{self.uniques:,} are"
        said = (
            f"{unique} unique" if self.uniques else f"every {who} shares its class with at least {self.k - 1:,} others"
        )
        headline = f"{count(self.records, 'record')}{of} in {count(self.classes, 'class')}. k = {self.k:,}: {said}."
        rows = [
            (n, a.diversity.distinct, f"{a.diversity.entropy:.2f}", f"{a.t:.3f}") for n, a in self.attributes.items()
        ]
        worst = Grid(("sensitive attribute", "distinct l", "entropy l", "t"), rows)
        named = {"prosecutor": self.risk.prosecutor, "journalist": self.risk.journalist, "sample": self.risk.sample}
        over = f"{who}s over {self.risk.prosecutor.threshold:g}"
        risks = [(n, f"{r.max:.4f}", f"{r.mean:.4f}", share(r.over)) for n, r in named.items() if r is not None]
        missing = (
            [f"Missing values: {', '.join(f'{n} {v:,}' for n, v in self.missing.items())}."] if self.missing else []
        )
        told = Grid(("re-identification risk", "highest", "mean", over), risks)
        return Summary(
            headline,
            (worst, told, unchanged_grid(self.unchanged)),
            [*missing, *missing_counted_lines(self.missing_counted)],
        )

    def to_dict(self) -> dict[str, Any]:
        """As the command line prints it as JSON."""
        by = self.attributes
        return {
            "records": self.records,
            "persons": self.persons,
            "classes": self.classes,
            "k": self.k,
            "uniques": self.uniques,
            "l": {name: _diversity_dict(a.diversity) for name, a in by.items()},
            "t": {name: a.t for name, a in by.items()},
            "t_by_distance": {name: a.t_by_distance for name, a in by.items()},
            "alpha": {name: a.alpha for name, a in by.items()},
            "beta": {name: {"basic": a.beta_basic, "enhanced": a.beta_enhanced} for name, a in by.items()},
            "delta": {name: a.delta for name, a in by.items()},
            "risk": asdict(self.risk),
            "missing": self.missing,
            "unseen": list(self.unseen),
            "missing_counted": {name: dict(of) for name, of in self.missing_counted.items()},
            "unchanged": {name: of.to_dict() for name, of in self.unchanged.items()},
        }


def _diversity_dict(diversity: Diversity) -> dict[str, Any]:
    return {
        "distinct": diversity.distinct,
        "entropy": diversity.entropy,
        "recursive": {"c": diversity.recursive_c, "l": diversity.recursive_l},
    }


def missing_counted_lines(found: Mapping[str, Mapping[str, int]]) -> list[str]:
    """A sentence on each attribute whose limits hold only because a missing value counts as a value."""
    return [
        f"{name}: {' and '.join(_classes_meet(n, LIMITS[model]) for model, n in of.items())} only because a missing "
        f"value counts as a value. To be safe, remove the records without {name}, or fill in the value."
        for name, of in found.items()
    ]


def _classes_meet(classes: int, limit: str) -> str:
    return f"1 class meets {limit}" if classes == 1 else f"{classes:,} classes meet {limit}"


def measure_classes(
    classes: ClassTable,
    sensitive: Mapping[str, Sensitive],
    population: ClassTable | None = None,
    population_size: int | None = None,
    threshold: float = THRESHOLD,
) -> Measures:
    """Measure a class table; the population is linked by the quasi-identifiers, or only its size is known."""
    return Measures(
        records=classes.total_records,
        persons=classes.total_persons,
        classes=len(classes),
        k=classes.k,
        uniques=classes.alone,
        attributes={name: _measure_attribute(classes, name, how) for name, how in sensitive.items()},
        risk=measure_risk(classes, population, population_size, threshold),
        missing=_missing(classes),
        class_sizes=count_sizes(classes.size),
    )


def count_sizes(size: np.ndarray) -> dict[int, int]:
    """How many classes have each size, in ascending order. There are few different ones: at most about √(2·records)."""
    few = np.bincount(np.minimum(size, MANY), minlength=MANY + 1)
    few[MANY] = 0
    sizes, counts = np.unique(size[size >= MANY], return_counts=True)
    small = np.flatnonzero(few)
    return dict(zip([*small.tolist(), *sizes.tolist()], [*few[small].tolist(), *counts.tolist()], strict=True))


def _measure_attribute(classes: ClassTable, name: str, how: Sensitive) -> AttributeMeasures:
    distances = _distances(classes, name, how)
    return AttributeMeasures(
        diversity=_measure_diversity(classes, name),
        t=distances[how.distance],
        t_by_distance=distances,
        alpha=_worst(diversity.largest_share(classes, name)),
        beta_basic=_worst(diversity.basic_beta(classes, name)),
        beta_enhanced=_worst(diversity.enhanced_beta(classes, name)),
        delta=_worst(diversity.disclosure(classes, name)),
    )


def _worst(amounts: np.ndarray) -> float:
    """The largest over the classes; 0 where there are none."""
    return float(amounts.max(initial=0.0))


def _measure_diversity(classes: ClassTable, name: str) -> Diversity:
    if not len(classes):
        return Diversity(0, 0.0, None, 2)
    distinct = int(diversity.distinct_values(classes, name).min())
    at = max(distinct, 2)
    c = float(diversity.recursive_c(classes, name, at).max())
    entropy = float(diversity.entropy_diversity(classes, name).min())
    return Diversity(distinct, entropy, c if np.isfinite(c) else None, at)


def _distances(classes: ClassTable, name: str, how: Sensitive) -> dict[str, float]:
    """t by each distance that the attribute has what it takes for."""
    found: dict[str, Callable[[], np.ndarray]] = {"equal": lambda: closeness.equal_distance(classes, name)}
    rank, levels = how.rank, how.levels
    if rank is not None:
        found["ordered"] = lambda: closeness.ordered_distance(classes, name, rank)
    if levels is not None:
        found["hierarchical"] = lambda: closeness.hierarchical_distance(classes, name, levels)
    return {distance: _worst(compute()) for distance, compute in found.items()}


def measure_risk(
    classes: ClassTable, population: ClassTable | None, population_size: int | None, threshold: float
) -> Risks:
    """Re-identification risks of a class table.

    Where only the population's size is known, a person in it is taken to be in as many classes as one here.
    """
    size = classes.size
    everyone = classes.total_records if classes.total_persons is None else classes.total_persons
    base = Risks(risk.prosecutor(size, threshold), risk.marketer(size))
    if population is not None:
        return _linked_risk(classes, population, base, threshold)
    if population_size is None:
        return base
    if population_size < everyone:
        raise OptionError(
            f"A population of {population_size:,} is smaller than the {everyone:,} in the table. Give the number "
            "of people that the table was sampled from."
        )
    kept = everyone / population_size if everyone else 1.0
    sample = risk.summarize(risk.sample_risk(size, kept), size, threshold)
    uniques = population_uniques(size, round(size.sum() / kept))
    return Risks(base.prosecutor, base.marketer, sample=sample, population_uniques=uniques)


def _linked_risk(classes: ClassTable, population: ClassTable, base: Risks, threshold: float) -> Risks:
    size = classes.size
    linked = np.append(population.size, 0)[classes.find_in(population)]
    share = size / np.maximum(linked, size)
    return Risks(
        base.prosecutor,
        base.marketer,
        journalist=risk.journalist(size, linked, threshold),
        marketer_population=risk.marketer(size, linked),
        sample=risk.summarize(risk.sample_risk(size, share), size, threshold),
        unlinked_classes=int((linked < size).sum()),
        unique_in_population=population.alone / int(population.size.sum()) if len(population) else 0.0,
    )


def _missing(classes: ClassTable) -> dict[str, int]:
    """Records that lack a value, for each quasi-identifier and sensitive attribute where there are any."""
    counts = {
        name: int(classes.records[classes.codes[i] == domain.missing].sum())
        for i, (name, domain) in enumerate(zip(classes.columns, classes.domains, strict=True))
        if domain.missing is not None
    }
    for name, histogram in classes.histograms.items():
        if histogram.domain.missing is not None:
            counts[name] = int(histogram.overall[histogram.domain.missing])
    return counts


def rank_values(classes: ClassTable, name: str, order: list[str] | None) -> np.ndarray | None:
    """The place of each value in its order: as listed, else by size where all are numbers; missing last."""
    domain = classes.histograms[name].domain
    if order is None:
        return np.arange(len(domain)) if domain.numbers is not None else None
    place = {value: i for i, value in enumerate(order)}
    texts = domain.text.to_pylist()
    unknown = [t for t in texts if t is not None and t not in place]
    if unknown:
        raise StudyError(
            f"The order of '{name}' lacks the values {listing(unknown)}, which occur in the data. Add them to "
            "its order."
        )
    return np.argsort(np.argsort([len(order) if t is None else place[t] for t in texts]))

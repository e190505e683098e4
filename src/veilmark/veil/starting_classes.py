"""Where the driver cannot hold a table's classes: those at the lowest levels that it can hold, and OLA from there on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.engines.base import Table
from veilmark.errors import TooManyClassesError, VeilmarkWarning
from veilmark.hierarchy import Levels, resolve
from veilmark.study.opening import class_table, source_classes
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable, Tally
from veilmark.tables.domain import Domain
from veilmark.veil.lattice import Bounds, Node
from veilmark.veil.ola import Ola, level_bounds


@dataclass(frozen=True, eq=False)
class RaisedClasses(ClassTable):
    """Classes that were counted at higher levels than the values. Each has the codes of one of the combinations that it
    stands for, so that it rolls up as they do. `ground` has the records of each value, by quasi-identifier; `raw` the number
    of classes by the values themselves, and the sum of their sizes squared."""

    ground: tuple[tuple[Domain, np.ndarray], ...] = ()
    raw: tuple[int, float] = (0, 0.0)

    @property
    def raw_sizes(self) -> tuple[int, float]:
        """How many classes there are by the values themselves, and the sum of their sizes squared."""
        return self.raw

    def value_records(self, i: int) -> np.ndarray:
        """The records of each value of a quasi-identifier."""
        own, records = self.ground[i]
        found = np.zeros(len(self.domains[i]))
        found[self.domains[i].codes_of(own.text)] = records
        return found


def starting_classes(table: Table, study: Study, method: Any) -> tuple[ClassTable, Any]:
    """A table's classes, and the method. Where they are too many, OLA gets those at the lowest levels that fit, and begins
    there."""
    try:
        return source_classes(table, study), method
    except TooManyClassesError:
        if not isinstance(method, Ola) or not hasattr(table, "leveled"):
            raise
    return _raised(table, study, method)


def _raised(table: Any, study: Study, method: Ola) -> tuple[ClassTable, Ola]:
    names = study.quasi
    values = [table.group([c]) for c in names]
    domains = tuple(of.domains[0] for of in values)
    specs = [study.spec.attributes[name].hierarchy for name in names]
    levels = [resolve(*given, study.folder) for given in zip(specs, domains, names, strict=True)]
    nothing = ClassTable(tuple(names), domains, np.empty((len(names), 0), np.int32), Tally(np.empty(0, np.int64)))
    bounds = level_bounds(nothing, levels, method)
    frame = table.leveled({c: _map(d, of) for c, d, of in zip(names, domains, levels, strict=True)})
    node, about = lowest_node(frame, names, study.sensitive, bounds, table.engine.most_classes)
    shown = ", ".join(f"{name} at level {level}" for name, level in zip(names, node, strict=True) if level)
    warnings.warn(
        f"'{table.label}' has more classes than the driver's limit ({table.engine.most_classes:,}, most_classes "
        f"in the study). So OLA starts at {shown}, with about {about:,} classes. Lower levels were not tried.",
        VeilmarkWarning,
        stacklevel=5,
    )
    ground = tuple(zip(domains, (of.records for of in values), strict=True))
    found = class_table(frame.at(names, node), study)
    classes = _on_values(found, domains, levels, node, ground, table.class_sizes(names))
    raised = dict(zip(names, zip(node, bounds.high, strict=True), strict=True))
    return classes, replace(method, levels=raised)


def lowest_node(
    frame: Any, names: Sequence[str], sensitive: Sequence[str], bounds: Bounds, most: int
) -> tuple[Node, int]:
    """Levels whose classes fit, and about how many these are: one level is raised at a time, always the one that leaves the
    fewest classes; of several that fit, the one with the most."""
    node, about = bounds.low, frame.estimate([bounds.low], sensitive)[0]
    while about > most:
        above = [(*node[:i], level + 1, *node[i + 1 :]) for i, level in enumerate(node) if level < bounds.high[i]]
        if not above:
            raise TooManyClassesError(
                f"Even at the highest levels there are about {about:,} combinations of "
                f"{', '.join([*names, *sensitive])}, but the driver holds at most {most:,}. Use fewer sensitive "
                "attributes, or raise most_classes in the study."
            )
        counts = frame.estimate(above, sensitive)
        fitting = [n for n in counts if n <= most]
        about = max(fitting) if fitting else min(counts)
        node = above[counts.index(about)]
    return node, about


def _map(domain: Domain, levels: Levels) -> pa.Table:
    """For the engine: each value and the number of its label at every level."""
    return pa.table({"value": domain.values, **{f"g{n}": pa.array(codes) for n, codes in enumerate(levels.codes)}})


def _on_values(
    found: ClassTable,
    domains: Sequence[Domain],
    levels: Sequence[Levels],
    node: Node,
    ground: tuple[tuple[Domain, np.ndarray], ...],
    raw: tuple[int, float],
) -> RaisedClasses:
    """Classes by the numbers of labels, as classes by values: of each label, one of the values under it."""
    codes = np.empty_like(found.codes)
    for i, (of, level, numbers) in enumerate(zip(levels, node, found.domains, strict=True)):
        one = np.unique(of.codes[level], return_index=True)[1]
        codes[i] = one[np.array(numbers.text.to_pylist(), dtype=np.int64)][found.codes[i]]
    plain = found.merge(codes, domains)
    given = {f.name: getattr(plain, f.name) for f in fields(ClassTable)}
    return RaisedClasses(**given, ground=ground, raw=raw)

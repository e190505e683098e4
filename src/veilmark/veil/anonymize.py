"""Anonymize: from classes to a recoding, by the method asked for, and what became of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.classes import ClassTable
from veilmark.hierarchy import Levels
from veilmark.privacy.models import PrivacyModel
from veilmark.utility.local import local_losses
from veilmark.utility.loss import NodeLoss
from veilmark.veil import mondrian, ola, recoding
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Evaluated, Ola
from veilmark.veil.recoding import Recoding
from veilmark.veil.verify import Verified

Method = Ola | Mondrian


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to become of a table: the recoding, how many records it leaves out, the loss by every metric, the sizes of
    the classes it publishes, and of OLA the nodes it tried."""

    method: str
    recoding: Recoding
    suppressed: int
    loss: Mapping[str, float]
    sizes: np.ndarray
    gap: float = 0.0
    explored: tuple[Evaluated, ...] = ()


@dataclass(frozen=True, eq=False)
class Anonymized:
    """A release: its plan, and what the written file says of itself.

    Where the study names persons, `k` counts them, as planned: their column is not in the file, which can only show that
    its classes have `verified.k` records.
    """

    plan: Plan
    models: tuple[PrivacyModel, ...]
    records: int
    k: int
    verified: Verified
    output: str
    of_persons: bool = False

    def to_dict(self) -> dict[str, Any]:
        found = self.verified
        return {
            "method": self.plan.method,
            "levels": dict(self.plan.recoding.levels),
            "records": self.records,
            "suppressed": self.plan.suppressed,
            "classes": found.classes,
            "k": self.k,
            "k_records": found.k,
            "l": {name: {"distinct": found.distinct[name], "entropy": found.entropy[name]} for name in found.distinct},
            "t": dict(found.t),
            "loss": dict(self.plan.loss),
            "models": [m.to_dict() for m in self.models],
            "gap": self.plan.gap,
            "explored": len(self.plan.explored),
            "output": self.output,
        }


def plan(
    classes: ClassTable,
    levels: Sequence[Levels],
    numeric: Sequence[bool],
    models: Sequence[PrivacyModel],
    method: Method,
) -> Plan:
    """The recoding that the method finds."""
    if isinstance(method, Mondrian):
        return _by_mondrian(classes, levels, numeric, models, method)
    return _by_ola(classes, levels, models, method)


def _by_ola(classes: ClassTable, levels: Sequence[Levels], models: Sequence[PrivacyModel], method: Ola) -> Plan:
    found = ola.search(classes, levels, models, method)
    table, failing = found.table, found.failing
    losses = NodeLoss(classes, levels, method.weights).all_of(table, found.node, failing)
    losses["average_class"] = float(table.records[~failing].mean()) if (~failing).any() else 0.0
    made = recoding.full_domain(classes.columns, classes.domains, levels, found.node, table.codes[:, failing])
    suppressed = int(table.records[failing].sum())
    sizes = table.size[~failing & (table.records > 0)]
    return Plan("ola", made, suppressed, losses, sizes, found.gap, found.explored)


def _by_mondrian(
    classes: ClassTable,
    levels: Sequence[Levels],
    numeric: Sequence[bool],
    models: Sequence[PrivacyModel],
    method: Mondrian,
) -> Plan:
    found = mondrian.partition(classes, levels, numeric, models, method)
    losses = local_losses(classes, levels, numeric, found.part, found.parts)
    tally = classes.tally.merge(found.part, found.parts)
    losses["average_class"] = float(tally.records.mean())
    made = recoding.local(classes, found.part, [pa.array(of) for of in found.labels])
    return Plan("mondrian", made, 0, losses, tally.size)

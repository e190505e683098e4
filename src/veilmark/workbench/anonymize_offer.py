"""What a local method, or OLA with some records suppressed, would lose on the same classes: worth a line where it is
clearly less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from veilmark.errors import VeilmarkError
from veilmark.privacy.models import PrivacyModel
from veilmark.study.opening import is_number, resolve_quasi
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable
from veilmark.utility.local import local_by_attribute
from veilmark.utility.loss import NodeLoss
from veilmark.veil import mondrian, ola
from veilmark.veil.anonymize import LocalOffer, Method, Plan, SuppressionOffer
from veilmark.veil.ola import Ola

MOST_CELLS = 400_000
"""Classes times columns that Mondrian cuts in less than a second; of larger class tables a sample is judged."""
CLEARLY_LESS, AT_LEAST = 0.8, 0.02
"""What counts as clearly less: at most this share of OLA's loss, and at least this much below it."""
SUPPRESSED = 0.05
"""The share of suppressed records that is tried."""
MOST_TRIED = 5_000_000
"""Classes times generalizations that a second search may try: about a second."""
SECOND_SEARCH = 5.0
"""It ends after so many seconds with the best so far."""


def local_offer(
    study: Study, classes: ClassTable, plan: Plan, models: Sequence[PrivacyModel], method: Method
) -> LocalOffer | None:
    """What Mondrian would lose, where it meets the same models and loses clearly less; no row is read for it.

    A sample of classes lies less dense than all, so that what Mondrian loses on it is rather too much than too little.
    """
    if not isinstance(method, Ola) or method.levels or classes.population is not None or not len(classes):
        return None
    judged = _sample(classes)
    try:
        loss = _mondrian_loss(study, judged, models, method.weights)
    except VeilmarkError:
        return None
    own = _mean({name: of["gcp"] for name, of in plan.by_attribute.items()}, method.weights)
    if not _clearly_less(loss, own):
        return None
    return LocalOffer("mondrian", loss, own, len(judged), len(classes))


def suppression_offer(
    study: Study, classes: ClassTable, plan: Plan, models: Sequence[PrivacyModel], method: Method
) -> SuppressionOffer | None:
    """What OLA would lose with up to 5 % suppressed, where that is clearly less; no row is read for it. Left out where a
    second search would take long."""
    if not isinstance(method, Ola) or method.suppression >= SUPPRESSED or classes.population is not None:
        return None
    if plan.gap or len(classes) * max(len(plan.explored), 1) > MOST_TRIED:
        return None
    levels = resolve_quasi(study, classes)
    found = ola.search(classes, levels, models, replace(method, suppression=SUPPRESSED, seconds=SECOND_SEARCH))
    if found.failing.all():
        return None
    by_attribute = NodeLoss(classes, levels, method.weights).by_attribute(found.table, found.node, found.failing)
    loss, own = (
        _mean({name: of["gcp"] for name, of in each.items()}, method.weights)
        for each in (by_attribute, plan.by_attribute)
    )
    return SuppressionOffer(SUPPRESSED, method.unit, loss, own) if _clearly_less(loss, own) else None


def _clearly_less(loss: float, own: float) -> bool:
    return loss <= CLEARLY_LESS * own and own - loss >= AT_LEAST


def _sample(classes: ClassTable) -> ClassTable:
    most = max(MOST_CELLS // max(len(classes.columns), 1), 1)
    if len(classes) <= most:
        return classes
    chosen = np.zeros(len(classes), dtype=bool)
    chosen[np.random.default_rng(1).choice(len(classes), most, replace=False)] = True
    return classes.take(chosen)


def _mondrian_loss(
    study: Study, classes: ClassTable, models: Sequence[PrivacyModel], weights: Mapping[str, float]
) -> float:
    levels = resolve_quasi(study, classes)
    numeric = [is_number(study, name, domain) for name, domain in zip(classes.columns, classes.domains, strict=True)]
    found = mondrian.partition(classes, levels, numeric, models)
    own = local_by_attribute(classes, levels, numeric, found.part, found.parts)
    return _mean({name: of["gcp"] for name, of in own.items()}, weights)


def _mean(loss: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The mean over columns, each as much as it counts."""
    each = np.array([weights.get(name, 1.0) for name in loss])
    return float(np.dot(each, list(loss.values())) / (each.sum() or 1.0))

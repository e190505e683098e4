"""The verb anonymize: search, write, and measure what was written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from veilmark.classes import ClassTable
from veilmark.domain import Domain
from veilmark.errors import OptionError, StudyError, VeilmarkError, did_you_mean
from veilmark.hierarchy import IntervalSpec
from veilmark.output import check_table_path, refuse_inputs, whole_file
from veilmark.privacy.models import (
    Alpha,
    DistinctL,
    EntropyL,
    KAnonymity,
    PrivacyModel,
    RecursiveL,
    TCloseness,
    check_attributes,
)
from veilmark.study import Study
from veilmark.veil.anonymize import Anonymized, Method, Plan, plan
from veilmark.veil.ola import Ola
from veilmark.veil.verify import Verified, verify
from veilmark.workbench.sources import class_table, compare_by, engine_of, open_source, resolve_quasi


def models_of(
    study: Study,
    k: int,
    l: Mapping[str, float],  # noqa: E741
    t: Mapping[str, float],
    alpha: Mapping[str, float],
    kinds: Mapping[str, Any],
) -> list[PrivacyModel]:
    """Privacy models from limits by attribute; `kinds` says what l counts, and the c of recursive l."""
    check = [*l, *t, *alpha]
    unknown = [name for name in check if name not in study.sensitive]
    if unknown:
        raise OptionError(
            f"'{unknown[0]}' is not a sensitive attribute of {study.name}.{did_you_mean(unknown[0], study.sensitive)} "
            "Limits such as l and t are about sensitive attributes."
        )
    with engine_of(study) as engine:
        hows = compare_by(study, class_table(open_source(engine, study), study)) if t else {}
    models: list[PrivacyModel] = [KAnonymity(k)]
    models += [_l_model(name, limit, kinds) for name, limit in l.items()]
    models += [TCloseness(name, limit, hows[name]) for name, limit in t.items()]
    return models + [Alpha(name, limit) for name, limit in alpha.items()]


def _l_model(name: str, limit: float, kinds: Mapping[str, Any]) -> PrivacyModel:
    if kinds["l"] == "entropy":
        return EntropyL(name, limit)
    if limit != int(limit):
        raise OptionError(f"l must be a whole number of values, not {limit:g}, unless it counts entropy.")
    return DistinctL(name, int(limit)) if kinds["l"] == "distinct" else RecursiveL(name, kinds["c"], int(limit))


def anonymize(
    study: Study,
    models: Sequence[PrivacyModel],
    output: str | os.PathLike[str],
    method: Method | None = None,
    recoding: str | os.PathLike[str] | None = None,
) -> Anonymized:
    """Find the least change that meets all models, write the release, and measure the written file.

    `recoding` is a file for the rules that were applied.
    """
    target = Path(output)
    check_table_path(target)
    refuse_inputs(target, [study.source()[0], recoding])
    check_attributes(models, study.sensitive)
    if not study.quasi:
        raise StudyError(
            f"{study.name} names no quasi-identifier, so there is nothing to generalize. Give one its role."
        )
    with engine_of(study) as engine:
        table = open_source(engine, study)
        classes = class_table(table, study)
        levels = resolve_quasi(study, classes)
        numeric = [
            is_number(study, name, domain) for name, domain in zip(classes.columns, classes.domains, strict=True)
        ]
        made = plan(classes, levels, numeric, models, method or Ola())
        if not len(made.sizes):
            raise OptionError("Every record would have to be suppressed. Relax the limits.")
        columns = [c for c in table.columns if c not in study.direct and c != study.person]
        with whole_file(target) as temporary:
            table.write_recoded(made.recoding, columns, temporary)
            found = verify(temporary, study.quasi, study.sensitive)
            check_release(found, classes, made, models)
            if recoding is not None:
                made.recoding.save(recoding)
    k = int(made.sizes.min()) if study.person else found.k
    return Anonymized(made, tuple(models), found.records, k, found, str(target), study.person is not None)


def is_number(study: Study, name: str, domain: Domain) -> bool:
    """Whether Mondrian cuts an attribute as numbers: they are numbers, and no hierarchy of categories is given."""
    spec = study.spec.attributes[name].hierarchy
    return domain.numbers is not None and (spec is None or isinstance(spec, IntervalSpec))


def check_release(found: Verified, classes: ClassTable, made: Plan, models: Sequence[PrivacyModel]) -> None:
    """The written file holds what was promised; if not, it is not published."""
    promised = {m.name: m for m in models}
    faults = []
    if found.records != classes.total_records - made.suppressed:
        faults.append(f"{found.records:,} records where {classes.total_records - made.suppressed:,} were to be written")
    if found.classes != len(made.sizes):
        faults.append(f"{found.classes:,} classes where there should be {len(made.sizes):,}")
    k = promised.get("k")
    if isinstance(k, KAnonymity) and found.k < k.k:
        faults.append(f"a class of {found.k}")
    for m in models:
        if isinstance(m, DistinctL) and found.distinct[m.attribute] < m.l:
            faults.append(f"a class with {found.distinct[m.attribute]} values of {m.attribute}")
        if isinstance(m, TCloseness) and m.how.distance == "equal" and found.t[m.attribute] > m.t + 1e-9:
            faults.append(f"t {found.t[m.attribute]:.4f} for {m.attribute}")
    if faults:
        raise VeilmarkError(
            f"The written file was measured anew and does not keep the promise ({'; '.join(faults)}), so it was not "
            "published. This should not happen: please report it."
        )

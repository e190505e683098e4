"""What the ledger keeps of a release: what anybody may read, and what only tracing needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from veilmark import __version__
from veilmark.mark.plan import Marks
from veilmark.privacy.models import PrivacyModel
from veilmark.trace.evidence import identity_key
from veilmark.workbench.linking import Ground

if TYPE_CHECKING:
    from veilmark.workbench.releasing import Copy, Job


def public_entry(
    job: Job, ground: Ground, models: Sequence[PrivacyModel], made: Sequence[Copy], seed: str
) -> dict[str, Any]:
    """What the ledger shows to anybody: no decoys, no covers."""
    marking, plan = job.marking, ground.plan
    return {
        "study": ground.study.name,
        "source": ground.study.label,
        "parameters": {
            "method": plan.method,
            "k": marking.k,
            "models": [m.to_dict() for m in models],
            "levels": dict(plan.recoding.levels),
            "suppressed": plan.suppressed,
            "decoys": marking.decoys,
            "covers": marking.covers,
            "collusion": marking.collusion,
            "false_accusation": marking.false_accusation,
            "risk": list(marking.risk),
            "near": marking.near,
            "strategy": marking.strategy,
            "budget": marking.budget,
            "seed": seed,
            "version": __version__,
            "format": job.form,
        },
        "recipients": [
            {
                "name": copy.name,
                "file": copy.file,
                "records": copy.records,
                **(job.terms[copy.name].to_dict() if copy.name in job.terms else {}),
            }
            for copy in made
        ],
    }


def secret_entry(ground: Ground, marks: Marks, people: Sequence[pa.Table]) -> dict[str, Any]:
    """What tracing needs, encrypted in the ledger; `people` are the identities of each recipient's decoys."""
    linked, names = marks.linked, marks.marking.recipients
    released = np.flatnonzero(linked.published > 0)
    return {
        "columns": list(linked.columns),
        "identity": list(ground.identity),
        "above": ground.above(),
        "classes": linked.codes[:, released].tolist(),
        "sizes": linked.published[released].tolist(),
        "covers": np.searchsorted(released, marks.covers).tolist(),
        "holds": {name: "".join("1" if held else "0" for held in marks.holds[i]) for i, name in enumerate(names)},
        "code": None if marks.code is None else {**marks.code.to_dict(), "p": marks.code.p.tolist()},
        "pool": linked.codes[:, marks.pool].tolist(),
        "drawn": {name: np.searchsorted(marks.pool, of).tolist() for name, of in zip(names, marks.decoys, strict=True)},
        "population": ground.people.total_records,
        "decoys": {name: _decoy_rows(marks, i, people[i]) for i, name in enumerate(names)},
        "claims": _claims(ground, marks, people),
    }


def _decoy_rows(marks: Marks, recipient: int, people: pa.Table) -> list[dict[str, str | None]]:
    linked = marks.linked
    labels = linked.texts(np.repeat(marks.decoys[recipient], marks.sizes[recipient]))
    keys = [identity_key(c, linked.columns) for c in people.column_names]
    return [
        {**person, **dict(zip(linked.columns, label, strict=True))}
        for person, label in zip(people.rename_columns(keys).to_pylist(), labels, strict=True)
    ]


def _claims(ground: Ground, marks: Marks, people: Sequence[pa.Table]) -> dict[str, Any]:
    """How many of the population claims could be about, by chance: by recipient, all who link to its decoys; by column, all
    who agree with any of them there. And what the decoys' labels stand for."""
    linked, names = marks.linked, marks.marking.recipients
    reach: dict[str, dict[str, int]] = {name: {} for name in names}
    covered = {}
    for i, column in enumerate(linked.columns):
        labels = np.unique(linked.codes[i, np.concatenate([np.empty(0, np.int64), *marks.decoys])])
        stands = dict(zip(labels.tolist(), ground.covered(i, labels), strict=True))
        persons, text = ground.people_by_value(i), ground.domains[i].text
        covered[column] = [[linked.labels[i][label].as_py(), _listed(text, values)] for label, values in stands.items()]
        for name, classes in zip(names, marks.decoys, strict=True):
            there = np.zeros(len(text), dtype=bool)
            for label in np.unique(linked.codes[i, classes]):
                there[stands[int(label)]] = True
            reach[name][column] = int(persons[there].sum())
    for column in ground.identity if len(ground.identity) > 1 else ():
        for name, own in zip(names, _namesakes(ground, column, people), strict=True):
            reach[name].setdefault(column, own)
    known = {name: int(linked.population[of].sum()) for name, of in zip(names, marks.decoys, strict=True)}
    sizes = np.zeros(len(marks.pool), dtype=np.int64)
    for classes, records in zip(marks.decoys, marks.sizes, strict=True):
        sizes[np.searchsorted(marks.pool, classes)] = records
    return {
        "linked": known,
        "reach": reach,
        "covered": covered,
        "persons": linked.population[linked.published > 0].tolist(),
        "pool_persons": linked.population[marks.pool].tolist(),
        "pool_sizes": sizes.tolist(),
    }


def _listed(text: pa.Array, values: np.ndarray) -> list[str] | None:
    """The values that a label stands for; None for all."""
    present = np.asarray(text.is_valid())
    if present.sum() == present[values].sum():
        return None
    return [t for t in text.take(pa.array(values)).to_pylist() if t is not None]


def _namesakes(ground: Ground, column: str, people: Sequence[pa.Table]) -> list[int]:
    """For each recipient, how many of the population have one of its decoys' values of an identity column."""
    names = pa.concat_tables([table.select([column]) for table in people])
    counted = ground.namesakes(names, [column])
    known = dict(zip(counted.column("i0").to_pylist(), counted.column("n").to_pylist(), strict=True))
    return [sum(known[value] for value in set(table.column(column).to_pylist())) for table in people]

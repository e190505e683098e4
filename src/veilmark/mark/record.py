"""What the ledger keeps of a release: what anybody may read, and what only tracing needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark import __version__
from veilmark.mark.claimable import Claimable
from veilmark.mark.linking import Ground
from veilmark.mark.plan import Marks
from veilmark.mark.request import Copy, ReleaseRequest
from veilmark.privacy.models import PrivacyModel
from veilmark.trace.evidence import identity_key


def public_entry(
    request: ReleaseRequest,
    ground: Ground,
    models: Sequence[PrivacyModel],
    made: Sequence[Copy],
    seed: str,
    claims: Claimable | None,
) -> dict[str, Any]:
    """What the ledger shows to anybody: no decoys, no covers."""
    marking, plan = request.marking, ground.plan
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
            "risk": None if marking.risk is None else list(marking.risk),
            "near": marking.near,
            "strategy": marking.strategy,
            "marks": marking.marks,
            "budget": marking.budget,
            "most_lost": marking.most_lost,
            "claims_probability": None if claims is None else claims.smallest_probability,
            "seed": seed,
            "version": __version__,
            "format": request.form,
        },
        "recipients": [
            {
                "name": copy.name,
                "file": copy.file,
                "records": copy.records,
                **(request.terms[copy.name].to_dict() if copy.name in request.terms else {}),
            }
            for copy in made
        ],
    }


def secret_entry(
    ground: Ground, marks: Marks, people: Sequence[pa.Table], sealed: dict[str, Any], key: bytes, epoch: int
) -> dict[str, Any]:
    """What tracing needs, encrypted in the ledger; `people` are the identities of each recipient's decoys, `sealed` what
    tells which classes of the pool claims are about, `key` draws the decoys, and `epoch` is that of the covers."""
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
        "rows": None if marks.rows is None else marks.rows.to_secret(released, names),
        "code": None if marks.code is None else {**marks.code.to_dict(), "p": marks.code.p.tolist()},
        "pool": linked.codes[:, marks.pool].tolist(),
        "drawn": {name: np.searchsorted(marks.pool, of).tolist() for name, of in zip(names, marks.decoys, strict=True)},
        "decoys": {name: _decoy_rows(marks, i, people[i]) for i, name in enumerate(names)},
        "sealed": sealed,
        "epoch": epoch,
        "cover_key": marks.cover_key.hex(),
        "decoy_key": key.hex(),
        "population": linked.population[released].tolist() if marks.marking.strategy == "risk" else None,
    }


def _decoy_rows(marks: Marks, recipient: int, people: pa.Table) -> list[dict[str, str | None]]:
    linked = marks.linked
    labels = linked.texts(np.repeat(marks.decoys[recipient], marks.sizes[recipient]))
    keys = [identity_key(c, linked.columns) for c in people.column_names]
    return [
        {**person, **dict(zip(linked.columns, label, strict=True))}
        for person, label in zip(people.rename_columns(keys).to_pylist(), labels, strict=True)
    ]

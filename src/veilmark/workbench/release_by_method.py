"""A release to recipients as Python asks for it: the method carries k and the models, the ledger its key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from veilmark.errors import OptionError
from veilmark.mark.marking import Marking
from veilmark.mark.request import ReleaseRequest, Terms
from veilmark.privacy.models import KAnonymity
from veilmark.study.study import Study
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.workbench.release import Released, release

if TYPE_CHECKING:
    from veilmark.study.ledger import Ledger

File = str | os.PathLike[str]


def release_copies(
    study: Study,
    recipients: tuple[str, ...],
    method: Ola | Mondrian,
    marking: Marking | None,
    population: Any,
    identity: tuple[str, ...],
    ledger: Ledger | None,
    folder: File | None,
    form: str,
    terms: Mapping[str, Terms],
    sign_key: File | None,
    seed: int | None,
    dry_run: bool,
) -> Released:
    """Write a marked copy for each recipient, and record it."""
    k, others = _without_k(method)
    job = ReleaseRequest(
        population,
        identity,
        (marking or Marking()).of_copies(recipients, k),
        method=others,
        seed=seed,
        form=form,
        terms=terms,
    )
    if dry_run:
        return release(study, job, dry_run=True)
    if ledger is None or ledger.key is None or folder is None:
        raise OptionError(
            "A release needs a ledger with its key, and a folder: "
            'ledger=Ledger("ledger.db", key="ledger.key"), folder="copies". Only a dry run (dry_run=True) needs neither.'
        )
    return release(study, job, ledger.place, ledger.key, folder, sign_key=sign_key)


def _without_k(method: Ola | Mondrian) -> tuple[int, Ola | Mondrian]:
    """The k that a method asks for, and the method with its other models."""
    if not isinstance(method, Ola | Mondrian):
        raise OptionError(f"Copies are made by Ola or by Mondrian, not by {type(method).__name__}.")
    asked = [m.k for m in method.models if isinstance(m, KAnonymity)] + ([] if method.k is None else [method.k])
    if not asked:
        raise OptionError("Say how many persons every class must have, such as Ola(k=5).")
    return max(asked), replace(method, k=None, models=tuple(m for m in method.models if not isinstance(m, KAnonymity)))

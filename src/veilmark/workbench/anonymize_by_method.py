"""The verb anonymize for any method, each with the options it knows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from veilmark.errors import OptionError
from veilmark.study.study import Study
from veilmark.veil.anonymize import Anonymized, Method
from veilmark.veil.sliced import PersonsMethod, Sliced
from veilmark.workbench.anonymize import anonymize
from veilmark.workbench.anonymize_persons import anonymize_persons


def anonymize_by(
    study: Study,
    method: Method | PersonsMethod,
    output: str | os.PathLike[str] | None,
    for_one_table: Mapping[str, Any],
    for_folders: Mapping[str, Any],
) -> Anonymized | Sliced:
    """Anonymize by a method that publishes one table, or by one that publishes a folder of them. Options that are None were
    not given."""
    if isinstance(method, Method):
        return anonymize(study, (), output, method, **_given(for_one_table, for_folders, method))
    return anonymize_persons(study, method, output, **_given(for_folders, for_one_table, method))


def _given(known: Mapping[str, Any], unknown: Mapping[str, Any], method: object) -> dict[str, Any]:
    for name, value in unknown.items():
        if value is not None:
            raise OptionError(f"{type(method).__name__} does not use '{name}'. Leave it out.")
    return {name: value for name, value in known.items() if value is not None}

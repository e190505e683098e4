"""The verbs. The command line and the web app call these and nothing below them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veilmark.workbench.anonymizing import Limits, anonymize, models_of
    from veilmark.workbench.applying import apply
    from veilmark.workbench.attacking import attack
    from veilmark.workbench.comparing import Asked, compare_methods
    from veilmark.workbench.measuring import measure, require
    from veilmark.workbench.releasing import Job, read_terms, release
    from veilmark.workbench.reporting import Wanted, report
    from veilmark.workbench.scoring import (
        breach,
        compare_scores,
        explain,
        score,
        scorer_of,
        weights_from_ahp,
        weights_from_model,
        with_weights,
    )
    from veilmark.workbench.sources import check_columns, engine_of, open_source, open_study
    from veilmark.workbench.starting import hierarchy, init, make_sample
    from veilmark.workbench.tracing import trace
    from veilmark.workbench.utility import view_utility

__all__ = [
    "Asked",
    "Job",
    "Limits",
    "Wanted",
    "anonymize",
    "apply",
    "attack",
    "breach",
    "check_columns",
    "compare_methods",
    "compare_scores",
    "engine_of",
    "explain",
    "hierarchy",
    "init",
    "make_sample",
    "measure",
    "models_of",
    "open_source",
    "open_study",
    "read_terms",
    "release",
    "report",
    "require",
    "score",
    "scorer_of",
    "trace",
    "view_utility",
    "weights_from_ahp",
    "weights_from_model",
    "with_weights",
]

_MODULES = {
    "anonymizing": "Limits anonymize models_of",
    "applying": "apply",
    "attacking": "attack",
    "comparing": "Asked compare_methods",
    "measuring": "measure require",
    "previewing": "preview_node",
    "releasing": "Job read_terms release",
    "reporting": "Wanted report",
    "scoring": "breach compare_scores explain score scorer_of weights_from_ahp weights_from_model with_weights",
    "sources": "check_columns engine_of open_source open_study",
    "starting": "hierarchy init make_sample",
    "tracing": "trace",
    "utility": "view_utility",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """A module is loaded when one of its verbs is first used, so that a command loads what it needs and no more."""
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

"""veilmark: score, anonymize, mark and trace person-level tables."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veilmark.errors import (
        DataError,
        HierarchyError,
        InputError,
        OptionError,
        OutputError,
        StudyError,
        VeilmarkError,
        VeilmarkWarning,
        WeightsError,
    )
    from veilmark.privacy.models import (
        Alpha,
        BasicBeta,
        DeltaDisclosure,
        DeltaPresence,
        DistinctL,
        EnhancedBeta,
        EntropyL,
        KAnonymity,
        KMap,
        RecursiveL,
        TCloseness,
    )
    from veilmark.score.monitor import Monitor
    from veilmark.score.scores import Options
    from veilmark.study import Settings, Study
    from veilmark.veil.anatomy import Anatomy
    from veilmark.veil.anonymize import Microaggregation
    from veilmark.veil.fslip import FSlip
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola
    from veilmark.veil.onemany import OneMany
    from veilmark.veil.recoding import Recoding
    from veilmark.veil.rmr import Rmr
    from veilmark.veil.slicing import Slicing

__version__ = "0.1.0.dev0"

_ERRORS = (
    "DataError HierarchyError InputError OptionError OutputError StudyError VeilmarkError VeilmarkWarning WeightsError"
)
_MODELS = "Alpha BasicBeta DeltaDisclosure DeltaPresence DistinctL EnhancedBeta EntropyL"
_MODELS += " KAnonymity KMap RecursiveL TCloseness"
_HOMES = {
    "Anatomy": "veilmark.veil.anatomy",
    "FSlip": "veilmark.veil.fslip",
    "Microaggregation": "veilmark.veil.anonymize",
    "Mondrian": "veilmark.veil.mondrian",
    "Monitor": "veilmark.score.monitor",
    "Ola": "veilmark.veil.ola",
    "OneMany": "veilmark.veil.onemany",
    "Options": "veilmark.score.scores",
    "Recoding": "veilmark.veil.recoding",
    "Rmr": "veilmark.veil.rmr",
    "Settings": "veilmark.study",
    "Slicing": "veilmark.veil.slicing",
    "Study": "veilmark.study",
}
_HOMES |= dict.fromkeys(_ERRORS.split(), "veilmark.errors") | dict.fromkeys(_MODELS.split(), "veilmark.privacy.models")

__all__ = [
    "Alpha",
    "Anatomy",
    "BasicBeta",
    "DataError",
    "DeltaDisclosure",
    "DeltaPresence",
    "DistinctL",
    "EnhancedBeta",
    "EntropyL",
    "FSlip",
    "HierarchyError",
    "InputError",
    "KAnonymity",
    "KMap",
    "Microaggregation",
    "Mondrian",
    "Monitor",
    "Ola",
    "OneMany",
    "OptionError",
    "Options",
    "OutputError",
    "Recoding",
    "RecursiveL",
    "Rmr",
    "Settings",
    "Slicing",
    "Study",
    "StudyError",
    "TCloseness",
    "VeilmarkError",
    "VeilmarkWarning",
    "WeightsError",
]


def __getattr__(name: str) -> Any:
    """Modules are loaded when a name is first used, so that `veilmark --help` answers at once."""
    if name not in _HOMES:
        raise AttributeError(f"module 'veilmark' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)

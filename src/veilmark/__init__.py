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
    from veilmark.score.monitor import Monitor
    from veilmark.score.scores import Options
    from veilmark.study import Settings, Study

__version__ = "0.1.0.dev0"

_ERRORS = (
    "DataError HierarchyError InputError OptionError OutputError StudyError VeilmarkError VeilmarkWarning WeightsError"
)
_HOMES = {
    "Monitor": "veilmark.score.monitor",
    "Options": "veilmark.score.scores",
    "Settings": "veilmark.study",
    "Study": "veilmark.study",
} | dict.fromkeys(_ERRORS.split(), "veilmark.errors")

__all__ = [
    "DataError",
    "HierarchyError",
    "InputError",
    "Monitor",
    "OptionError",
    "Options",
    "OutputError",
    "Settings",
    "Study",
    "StudyError",
    "VeilmarkError",
    "VeilmarkWarning",
    "WeightsError",
]


def __getattr__(name: str) -> Any:
    """Modules are loaded when a name is first used, so that `veilmark --help` answers at once."""
    if name not in _HOMES:
        raise AttributeError(f"module 'veilmark' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)

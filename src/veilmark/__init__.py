"""veilmark: score, anonymize, mark and trace person-level tables."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veilmark.attack.harness import AttackResult
    from veilmark.engines.sources import PostgresTable, SparkFiles
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
    from veilmark.hierarchy.kinds import Dates, Intervals, Mask
    from veilmark.ledger.releases import Release
    from veilmark.ledger.verification import Verification
    from veilmark.mark.marking import Marking
    from veilmark.mark.request import Copy, Terms
    from veilmark.privacy.measures import Measures
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
    from veilmark.report.document import Report
    from veilmark.score.breach import Breach
    from veilmark.score.ranking import Ranking
    from veilmark.score.scores import Options, RecordScore, ScoreResult
    from veilmark.services.monitor import Monitor, MonitorOptions
    from veilmark.study.ledger import Ledger
    from veilmark.study.study import Settings, Study
    from veilmark.tables.recoding import Recoding
    from veilmark.trace.accuse import Suspect, Traced
    from veilmark.utility.view import UtilityView
    from veilmark.veil.anatomy import Anatomy
    from veilmark.veil.anonymize import Anonymized, Microaggregation
    from veilmark.veil.fslip import FSlip
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola
    from veilmark.veil.onemany import OneMany
    from veilmark.veil.rmr import Rmr
    from veilmark.veil.sliced import Sliced
    from veilmark.veil.slicing import Slicing
    from veilmark.workbench.apply import Applied
    from veilmark.workbench.attack import Attacked
    from veilmark.workbench.compare import Compared, Tried
    from veilmark.workbench.release import Released

__version__ = "0.1.0.dev0"

_NAMES = {
    "attack.harness": "AttackResult",
    "engines.sources": "PostgresTable SparkFiles",
    "errors": (
        "DataError HierarchyError InputError OptionError OutputError "
        "StudyError VeilmarkError VeilmarkWarning WeightsError"
    ),
    "hierarchy.kinds": "Dates Intervals Mask",
    "ledger.releases": "Release",
    "ledger.verification": "Verification",
    "study.ledger": "Ledger",
    "mark.marking": "Marking",
    "privacy.measures": "Measures",
    "privacy.models": (
        "Alpha BasicBeta DeltaDisclosure DeltaPresence DistinctL EnhancedBeta "
        "EntropyL KAnonymity KMap RecursiveL TCloseness"
    ),
    "report.document": "Report",
    "score.breach": "Breach",
    "services.monitor": "Monitor MonitorOptions",
    "score.ranking": "Ranking",
    "score.scores": "Options RecordScore ScoreResult",
    "study.study": "Settings Study",
    "trace.accuse": "Suspect Traced",
    "utility.view": "UtilityView",
    "veil.anatomy": "Anatomy",
    "veil.anonymize": "Anonymized Microaggregation",
    "veil.fslip": "FSlip",
    "veil.mondrian": "Mondrian",
    "veil.ola": "Ola",
    "veil.onemany": "OneMany",
    "tables.recoding": "Recoding",
    "veil.rmr": "Rmr",
    "veil.sliced": "Sliced",
    "veil.slicing": "Slicing",
    "workbench.apply": "Applied",
    "workbench.attack": "Attacked",
    "workbench.compare": "Compared Tried",
    "mark.request": "Copy Terms",
    "workbench.release": "Released",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Alpha",
    "Anatomy",
    "Anonymized",
    "Applied",
    "AttackResult",
    "Attacked",
    "BasicBeta",
    "Breach",
    "Compared",
    "Copy",
    "DataError",
    "Dates",
    "DeltaDisclosure",
    "DeltaPresence",
    "DistinctL",
    "EnhancedBeta",
    "EntropyL",
    "FSlip",
    "HierarchyError",
    "InputError",
    "Intervals",
    "KAnonymity",
    "KMap",
    "Ledger",
    "Marking",
    "Mask",
    "Measures",
    "Microaggregation",
    "Mondrian",
    "Monitor",
    "MonitorOptions",
    "Ola",
    "OneMany",
    "OptionError",
    "Options",
    "OutputError",
    "PostgresTable",
    "Ranking",
    "Recoding",
    "RecordScore",
    "RecursiveL",
    "Release",
    "Released",
    "Report",
    "Rmr",
    "ScoreResult",
    "Settings",
    "Sliced",
    "Slicing",
    "SparkFiles",
    "Study",
    "StudyError",
    "Suspect",
    "TCloseness",
    "Terms",
    "Traced",
    "Tried",
    "UtilityView",
    "VeilmarkError",
    "VeilmarkWarning",
    "Verification",
    "WeightsError",
]


def __dir__() -> list[str]:
    """The public names; what this module needs for itself is not among them."""
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    """Modules are loaded when a name is first used, so that the command line answers at once."""
    if name not in _HOMES:
        raise AttributeError(f"module 'veilmark' has no attribute '{name}'")
    return getattr(importlib.import_module(f"veilmark.{_HOMES[name]}"), name)

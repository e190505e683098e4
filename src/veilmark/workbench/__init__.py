"""The verbs. The command line and the web app call these and nothing below them."""

from veilmark.workbench.anonymizing import anonymize, models_of
from veilmark.workbench.measuring import measure, require
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

__all__ = [
    "anonymize",
    "breach",
    "check_columns",
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
    "require",
    "score",
    "scorer_of",
    "weights_from_ahp",
    "weights_from_model",
    "with_weights",
]

"""What happens without options is the same on the command line, in the web app and in Python."""

from __future__ import annotations

import inspect

import pytest

from veilmark import Ola, defaults
from veilmark.cli import anonymize, attack, compare, feasible, measure, release
from veilmark.mark.marking import CopyMarking, Marking
from veilmark.utility.loss import METRICS
from veilmark.web.forms import anonymize as anonymizing
from veilmark.web.forms import release as releases
from veilmark.workbench.anonymize import Limits
from veilmark.workbench.attack import attack as attack_release
from veilmark.workbench.compare import CompareRequest
from veilmark.workbench.measure import measure as measure_study


def default(function, name):
    return inspect.signature(function).parameters[name].default


def test_gcp_decides_everywhere():
    assert defaults.LOSS == "gcp"
    web = {anonymizing.AnonymizeForm().loss, releases.ReleaseForm().loss}
    assert {Ola().loss, default(feasible.feasible, "loss"), *web} == {"gcp"}
    assert {default(verb, "loss") or defaults.LOSS for verb in (anonymize.anonymize, release.release)} == {"gcp"}
    assert defaults.LOSS in METRICS


@pytest.mark.parametrize(
    ("value", "places"),
    [
        (
            defaults.K,
            [
                Limits().k,
                CompareRequest().k,
                anonymizing.AnonymizeForm().k,
                releases.ReleaseForm().k,
                default(release.release, "k"),
            ],
        ),
        (
            defaults.SUPPRESSION,
            [
                Ola().suppression,
                CompareRequest().suppress,
                anonymizing.AnonymizeForm().suppress,
                releases.ReleaseForm().suppress,
            ],
        ),
        (defaults.DECOYS, [CopyMarking(("a",), 5).decoys]),
        (
            None,
            [
                releases.ReleaseForm().decoys,
                *(default(release.release, name) for name in ("decoys", "covers", "risk")),
            ],
        ),
        (defaults.COVERS, [CopyMarking(("a",), 5).covers, releases.ReleaseForm().covers]),
        (defaults.COLLUSION, [Marking().of_copies(("a", "b"), 5).collusion, releases.ReleaseForm().collusion]),
        (defaults.RISK, [CopyMarking(("a",), 5).risk, releases.ReleaseForm().risk]),
        (defaults.THRESHOLD, [default(measure.measure, "threshold"), default(measure_study, "threshold")]),
        (defaults.TARGETS, [default(f, "targets") for f in (attack.attack, compare.compare, attack_release)]),
        (defaults.KNOWN, [default(f, "known") for f in (attack.attack, compare.compare, attack_release)]),
    ],
)
def test_one_value_everywhere(value, places):
    assert places == [value] * len(places)

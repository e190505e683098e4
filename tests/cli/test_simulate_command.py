"""`veilmark simulate`: power and false accusations of a code, before a release."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from veilmark.cli import simulate as command
from veilmark.errors import OptionError
from veilmark.mark.code import needed_length
from veilmark.mark.simulate import STRATEGIES
from veilmark.workbench.simulate import simulate

SMALL = ["--recipients", "8", "--collusion", "2", "--false-accusation", "1e-3"]


def run(*options):
    app = typer.Typer()
    command.register(app)
    done = CliRunner().invoke(app, [*SMALL, *options], env={"COLUMNS": "160"})
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_every_way_to_mix():
    content = json.loads(run("--trials", "25", "--json"))
    assert list(content["strategies"]) == list(STRATEGIES)
    assert content["code"]["length"] == content["needed"] == needed_length(8, 2, 1e-3).length
    assert content["trials"] == 25 * len(STRATEGIES)
    assert content["power"] == min(of["power"] for of in content["strategies"].values()) >= 0.9
    assert content["innocent_accused"] <= 3
    for found in content["strategies"].values():
        assert found["trials"] == 25
        assert found["interval"][0] <= found["power"] <= found["interval"][1]


def test_ways_that_are_the_same_are_said_to_be():
    said = " ".join(run("--trials", "2").split())
    assert "mix, majority, minority and coin are the same: where two copies differ" in said
    assert "nothing to mix" in run("--trials", "2", "--collusion", "1")
    assert "the same" not in run("--trials", "2", "--collusion", "3")
    assert "the same" not in run("--trials", "2", "--strategy", "mix")


def test_the_seed_decides():
    first, again, other = (
        json.loads(run("--strategy", "mix", "--trials", "20", "--classes", "30", "--seed", seed, "--json"))
        for seed in "778"
    )
    assert first == again
    assert first != other


def test_too_short_a_code_finds_fewer_and_says_so():
    short = run("--strategy", "coin", "--trials", "30", "--classes", "12")
    assert f"Coalitions of this size need {needed_length(8, 2, 1e-3).length:,}" in short
    assert "where copies differ, at random" in short
    found = json.loads(run("--strategy", "coin", "--trials", "30", "--classes", "12", "--json"))
    assert found["power"] < 0.5
    assert found["withstands"] < 2


def test_half_of_the_allowance_is_kept_for_decoys():
    """A leaker who would be named with all of it, but not with half, is not counted."""
    arguments = {"recipients": 8, "collusion": 2, "classes": 45, "strategy": "mix", "trials": 60}
    strict, lax = (simulate(false_accusation=rate, **arguments).power for rate in (1e-3, 2e-3))
    assert strict < lax


def test_thinned_copies_need_more_classes():
    plain, thinned = (simulate(8, 2, 1e-3, strategy="mix", trials=5, deletions=d) for d in (0.0, 0.3))
    assert thinned.needed > plain.needed
    assert thinned.to_dict()["deletions"] == 0.3


def test_a_chart(tmp_path):
    pytest.importorskip("altair")
    run("--strategy", "union", "--trials", "5", "--chart", str(tmp_path / "power.json"))
    drawn = json.loads((tmp_path / "power.json").read_text())
    assert "2 of 8 recipients mix their copies" in json.dumps(drawn["title"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--strategy", "blend"], "'blend' is not a way to mix"),
        (["--collusion", "9"], "from 1 to 8"),
        (["--false-accusation", "0"], "between 0 and 1"),
        (["--deletions", "1"], "must lie between 0 and 1, not 1"),
        (["--chart", "power.txt"], "must end in one of"),
    ],
)
def test_what_is_wrong_is_said(options, message):
    with pytest.raises(OptionError, match=message):
        run(*options)

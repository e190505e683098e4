"""What `veilmark release` and `veilmark trace` say beside their results, and what Ctrl-C does."""

from __future__ import annotations

import csv
import json
import logging
import os
from contextlib import contextmanager

import pytest
from rich.console import Console

from marked_release import make_release
from veilmark import __version__
from veilmark.cli import main as module
from veilmark.cli.main import main
from veilmark.cli.show_release import traced
from veilmark.ledger import Ledger
from veilmark.readable import probability
from veilmark.study.opening import engine_of
from veilmark.trace.accuse import Suspect, Traced

RELEASE = [
    "--population",
    "population.csv",
    "--identity",
    "voter_id",
    "--k",
    "5",
    "--loss",
    "dm_star",
    "--suppress",
    "0.1",
    "--risk",
    "1:20",
]
TRACE = ["--ledger", "ledger.db", "--key", "key", "--false-accusation", "1e-3"]


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("said"), people=60_000, members=6_000, decoys=3)


@pytest.fixture
def run(case, monkeypatch, capsys):
    monkeypatch.chdir(case.folder)
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments, code=0):
        assert main(list(arguments)) == code
        out, err = capsys.readouterr()
        return json.loads(out) if "--json" in arguments else " ".join((err or out).split())

    return run


def release(run, *more, **given):
    return run("release", "study.yaml", *RELEASE, *more, **given)


def test_advice_that_helps(run):
    two = release(run, "--recipients", "ada,bob", "--covers", "6", "--decoys", "1", "--dry-run")
    assert "Nobody could be named." in two
    assert "More covers do not help with so few recipients" in two
    assert "Ask for --decoys" in release(
        run, "--recipients", "ada", "--decoys", "1", "--dry-run", "--false-accusation", "1e-3"
    )
    assert "from presence alone; for sizes and rarity, run: veilmark crosscopy" in two
    assert "compare their copies" not in release(run, "--recipients", "ada", "--dry-run")
    renamed = release(run, "--recipients", "../evil,bob", "--dry-run", "--json")["notes"][-1]
    assert "'../evil': evil.csv" in renamed


def test_what_groups_lose_is_said_and_limited(run):
    asked = ("--recipients", "ada,bob,cyd", "--covers", "6", "--decoys", "1", "--dry-run", "--seed", "3")
    found = release(run, *asked, "--json")["cost"]
    worst = max(labels["worst"]["share"] for labels in found["lost"].values())
    assert found["most_lost"] == worst > 0
    assert set(found["lost"]["yob"]) == {"worst", "smallest", "lowest", "highest"}
    text = release(run, *asked)
    assert "Withheld by group" in text
    assert f"{worst:.1%}" in text
    refused = release(run, *asked, "--most-lost", "0.1%", code=2)
    assert "--most-lost allows at most 0.1%" in refused
    assert release(run, *asked, "--most-lost", "100%", "--json")["cost"]["most_lost"] == worst
    assert "'much' is not a share" in release(run, *asked, "--most-lost", "much", code=2)


def test_the_version_is_recorded(run, case):
    told = run("ledger", "show", case.release, "--ledger", "ledger.db", "--json")
    assert told["parameters"]["version"] == __version__


def test_a_trace_says_in_which_release_and_that_lists_are_cut(run, case):
    text = run("trace", "--file", "copies/bob.csv", *TRACE)
    found = run("trace", "--file", "copies/bob.csv", *TRACE, "--json")["recipients"][0]
    assert "an innocent recipient (5 recipients tested) is at most 0.001" in text
    assert f"Evidence against bob, release {case.release}" in text
    assert f"{probability(found['p_value'])} {len(found['evidence'])}" in text
    many = [{"kind": "decoy class", "zip": str(i)} for i in range(13)]
    console = Console(record=True, file=open(os.devnull, "w"), width=160)  # noqa: SIM115
    traced(Traced(("ada",), (Suspect("ada", "r1", 9.0, 2.21e-13, "exact", evidence=tuple(many)),), 1e-6, 1), console)
    assert "and 3 more. --json lists all." in (text := console.export_text())
    assert "2.3e-13" in text


def test_columns_in_capitals_and_with_blanks(run, case):
    header, *rows = case.copy("bob").read_text().splitlines()
    (case.folder / "upper.csv").write_text("\n".join([header.upper(), *rows]) + "\n")
    assert run("trace", "--file", "upper.csv", *TRACE, "--json")["accused"] == ["bob"]
    with open(case.folder / "claims.csv", "w", newline="") as file:
        csv.writer(file).writerows([["Voter_ID ", "why"], *([f" {d['voter_id']}", "x"] for d in case.decoys("bob"))])
    assert run("trace", "--claims", "claims.csv", *TRACE, "--json")["accused"] == ["bob"]
    assert "not both" in run("trace", "--claims", "claims.csv", "--file", "upper.csv", *TRACE, code=2)


def test_a_missing_option_names_its_verb(run):
    assert "See: veilmark trace --help." in run("trace", "--ledger", "ledger.db", code=2)
    assert "See: veilmark --help." in run("trcae", code=2)


@contextmanager
def pressed_at_the_end(study):
    with engine_of(study) as engine:
        yield engine
    raise KeyboardInterrupt


def pressed_after(*names):
    os.rename(*names)
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("step", "pressed"),
    [
        ("veilmark.ledger.publish._rename", pressed_after),
        ("veilmark.workbench.release.engine_of", pressed_at_the_end),
    ],
)
def test_ctrl_c_after_the_release_is_published_is_too_late(run, monkeypatch, tmp_path, step, pressed):
    monkeypatch.setattr(step, pressed)
    book = str(tmp_path / "l.db")
    own = ("--ledger", book, "--key", str(tmp_path / "key"), "-o", str(tmp_path / "copies"))
    assert "is published and recorded in the ledger" in release(run, "--recipients", "ada,bob,cyd", *own)
    assert [r.status for r in Ledger.open(book).releases()] == ["published"]


@pytest.mark.parametrize("step", ["veilmark.workbench.release.secret_entry", "veilmark.mark.linking.Ground.rows"])
def test_ctrl_c_before_anything_is_recorded_leaves_nothing(run, case, monkeypatch, step):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    before = sorted(os.listdir(case.folder))
    monkeypatch.setattr(step, pressed)
    said = release(run, "--recipients", "ada,bob,cyd", "--ledger", "none.db", "--key", "none.key", "-o", "none", code=1)
    assert said == "Error: Stopped. No unfinished output was left."
    assert sorted(os.listdir(case.folder)) == before


def test_closing_a_connection_says_nothing(monkeypatch):
    monkeypatch.setattr(module, "main", lambda arguments: 0)
    logger = logging.getLogger("sqlalchemy.pool")
    monkeypatch.setattr(module.signal, "signal", lambda *_: None)
    level = logger.level
    with pytest.raises(SystemExit):
        module.run()
    assert not logging.getLogger("sqlalchemy.pool.impl.NullPool").isEnabledFor(logging.ERROR)
    logger.setLevel(level)

"""`veilmark release` and `veilmark trace`, from files to files: what they say, what they refuse, whom they name."""

from __future__ import annotations

import csv
import json
import os
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.helpers import edit, forge
from mark.test_plan import wide
from register import QUASI, Register, labeller, register, town
from strength import examples
from veilmark.cli.main import main
from veilmark.engines.duckdb import DuckDB
from veilmark.errors import DataError, OptionError, StudyError
from veilmark.ledger import Key, Ledger
from veilmark.mark.linking import Ground
from veilmark.mark.pool import candidate_pool
from veilmark.mark.request import ReleaseRequest
from veilmark.output import write_table
from veilmark.privacy.models import BasicBeta, KAnonymity, KMap
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.workbench import ledger as ledger_verbs
from veilmark.workbench.anonymize import anonymize
from veilmark.workbench.release import release as run_release
from veilmark.workbench.trace import trace

STUDY = """
version: 1
source: patients.csv
attributes:
  voter: {role: direct}
  zip: {role: quasi, hierarchy: {mask: 3}}
  sex: {role: quasi}
  yob: {role: quasi, hierarchy: {intervals: [2, 4, 8]}}
  diagnosis: {role: sensitive}
"""
NAMES = ("ada", "bob", "cyd", "dan")
RELEASE = [
    "--population",
    "people.csv",
    "--identity",
    "voter",
    "--recipients",
    ",".join(NAMES),
    "--k",
    "3",
    "--loss",
    "dm_star",
]
RELEASE += ["--suppress", "0.2", "--risk", "1:20", "--decoys", "3", "--covers", "8", "--seed", "5"]
BOOK = ["--ledger", "ledger.db", "--key", "key"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A study, its population, and a release of it."""
    folder = tmp_path_factory.mktemp("release")
    write_table(town().source, folder / "patients.csv")
    write_table(town().population, folder / "people.csv")
    (folder / "study.yaml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["release", "study.yaml", *RELEASE, *BOOK, "-o", "copies", "--json"]) == 0
    return folder


@pytest.fixture
def run(files, monkeypatch, capsys):
    """Runs veilmark there; gives what it printed, of JSON the content."""
    monkeypatch.chdir(files)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments, code=0):
        before = sorted(p.name for p in files.iterdir())
        assert main(list(map(str, arguments))) == code
        out, err = capsys.readouterr()
        if code:
            assert out == ""
            assert err.startswith("Error: ")
            assert err.count("\n") == 1
            assert len(err) < 1000
            assert sorted(p.name for p in files.iterdir()) == before
            return err
        return json.loads(out) if "--json" in arguments else out

    return run


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def released():
    return Ledger.open("ledger.db").releases()[0].id


def decoys(run, name):
    return run("ledger", "decoys", released(), *BOOK, "--json")["decoys"][name]


# Releasing.


def test_a_dry_run_says_all_and_needs_nothing(run, files):
    before = sorted(p.name for p in files.iterdir())
    found = run("release", "study.yaml", *RELEASE, "--dry-run", "--json")
    assert sorted(p.name for p in files.iterdir()) == before
    assert (found["release"], found["output"]) == (None, None)
    assert found["min_link"] > 3
    assert found["candidates"]["classes"] >= 12
    assert found["cost"]["seen_once"] == pytest.approx(3 / 11)
    assert found["loss_after"]["dm"] > found["loss"]["dm"]
    assert {"dm_star", "dm", "average_class"} <= found["loss_after"].keys()
    for copy in found["recipients"]:
        assert (copy["decoy_classes"], copy["withheld_classes"]) == (3, 24)
        assert copy["decoy_records"] >= 9
    again = run("release", "study.yaml", *RELEASE, "--dry-run", "--json", "--ledger", "no/where", "-o", "no/where/else")
    assert again == found
    text = run("release", "study.yaml", *RELEASE, "--dry-run")
    assert "Nothing was written" in text
    assert "can serve as decoys" in text


def test_the_dry_run_plans_what_is_released(run):
    planned = run("release", "study.yaml", *RELEASE, "--dry-run", "--json")
    made = run("release", "study.yaml", *RELEASE, *BOOK, "-o", "planned", "--json")
    for key in ("min_link", "candidates", "levels", "suppressed", "loss"):
        assert planned[key] == made[key]
    for copy in made["recipients"]:
        assert len(rows_of(copy["file"])) == copy["records"]


def test_a_release_and_its_recipients_in_the_ledger(run, files):
    (files / "terms.yaml").write_text("ada: {agreement: DUA-7, consent: volunteers}\nbob: {contact: bob@example.org}\n")
    made = run("release", "study.yaml", *RELEASE, *BOOK, "-o", "with_terms", "--terms", "terms.yaml", "--json")
    told = run("ledger", "show", made["release"], *BOOK[:2], "--json")
    assert [r["name"] for r in told["recipients"]] == list(NAMES)
    assert told["recipients"][0]["agreement"] == "DUA-7"
    assert told["recipients"][1]["contact"] == "bob@example.org"
    assert "decoys" not in told or isinstance(told["decoys"], int)
    raw = b"".join(p.read_bytes() for p in files.glob("ledger.db*"))
    assert not any(d["voter"].encode() in raw for name in NAMES for d in decoys(run, name))


def test_marks_that_cannot_convict_are_said_beforehand(run):
    weak = [*RELEASE[:-4], "--covers", "0", "--decoys", "1"]
    found = run("release", "study.yaml", *weak, "--dry-run", "--json")
    assert any("Nobody could be named" in note for note in found["notes"])
    assert "Nobody could be named" in " ".join(run("release", "study.yaml", *weak, "--dry-run").split())


BAD = {
    "no ledger": (["-o", "new"], "--ledger, --key and -o"),
    "a population that is not there": (["--population", "gone.csv"], "gone.csv"),
    "a population without a column": (["--population", "short.csv"], "no column 'yob'"),
    "a population without records": (["--population", "empty.csv"], "no records"),
    "values outside the hierarchies": (["--population", "odd.csv"], "With the population's values"),
    "longer values": (["--population", "long.csv"], "Write both in one format"),
    "an identity column that is not there": (["--identity", "voters"], "Did you mean 'voter'"),
    "an identity column twice": (["--identity", "voter,voter"], "twice"),
    "no identity column": (["--identity", ","], "--identity is missing"),
    "too few candidates": (["--decoys", "500"], "That is enough for"),
    "no candidates in reach": (["--risk", "1:1.0001"], "Widen or omit --risk"),
    "too many covers": (["--covers", "90"], "At most"),
    "a code too long": (["--covers", "0", "--collusion", "4"], "needs"),
    "both covers and a code": (["--collusion", "2"], "not both"),
    "a recipient twice": (["--recipients", "ada,bob,ada"], "'ada' is named twice"),
    "an empty recipient": (["--recipients", "ada,,bob"], "at least one recipient"),
    "recipients with one file": (["--recipients", "a b,a?b"], "same file"),
    "terms for a stranger": (["--terms", "strangers.yaml"], "'adda', who is not a recipient. Did you mean 'ada'"),
    "terms of another form": (["--terms", "study.yaml"], "for each recipient"),
    "an output that is there": (["-o", "copies"], "exists already"),
    "an output in no folder": (["-o", "no/where"], "there is no folder"),
    "a risk that is no range": (["--risk", "high"], "such as 1.1:1.5"),
    "a share beyond 1": (["--near", "2"], "--near"),
    "a k that cannot be": (["--k", "0"], "k"),
    "a limit on what is not sensitive": (["--l", "zip=2"], "not a sensitive attribute"),
    "suppression by Mondrian": (["--method", "mondrian"], "--suppress does not belong to --method mondrian"),
    "another key": (["--key", "other"], "written with another key"),
    "a lost key": (["--key", "lost"], "no key file"),
    "a key that is none": (["--key", "study.yaml"], "study.yaml"),
    "a ledger that is none": (["--ledger", "study.yaml"], "not a ledger"),
}


@pytest.fixture(scope="module")
def bad_files(files):
    people = town().population.slice(0, 2_000)
    write_table(people.drop_columns("yob"), files / "short.csv")
    write_table(people.slice(0, 0), files / "empty.csv")
    odd = pa.array(["next year", *people["yob"].to_pylist()[1:]])
    write_table(people.set_column(people.column_names.index("yob"), "yob", odd), files / "odd.csv")
    longer = pa.array([f"{z}00" for z in people["zip"].to_pylist()])
    write_table(people.set_column(people.column_names.index("zip"), "zip", longer), files / "long.csv")
    (files / "strangers.yaml").write_text("adda: {agreement: X}\n")
    ledger_verbs.open_to_publish(files / "other.db", files / "other")
    os.chmod(files / "study.yaml", 0o600)


@pytest.mark.parametrize("fault", BAD)
def test_bad_input_is_refused_and_nothing_is_left(bad_files, run, fault):
    changes, word = BAD[fault]
    arguments = [*RELEASE, *BOOK, "-o", "new"] if fault != "no ledger" else RELEASE
    err = run("release", "study.yaml", *arguments, *changes, code=2)
    assert word in err
    assert "V0" not in err


def test_copies_must_not_tell_who_somebody_is():
    data = town()
    job = ReleaseRequest(data.population, ("voter",), wide(NAMES, k=3), (), Ola(0.2, "dm_star"))
    with pytest.raises(StudyError, match="would contain 'voter'"):
        run_release(data.study(voter="other"), job, dry_run=True)
    with pytest.raises(StudyError, match="pseudonym"):
        run_release(data.study(voter={"role": "direct", "keep": "pseudonym"}), job, dry_run=True)
    with pytest.raises(StudyError, match="no quasi-identifier"):
        run_release(data.study(zip="other", sex="other", yob="other"), job, dry_run=True)


@pytest.mark.parametrize("model", [KMap(3), BasicBeta("diagnosis", 2)])
def test_what_copies_cannot_promise_is_refused(model):
    job = ReleaseRequest(town().population, ("voter",), wide(NAMES, k=3), (model,), Ola(0.2, "dm_star"))
    with pytest.raises(OptionError, match="cannot be guaranteed"):
        run_release(town().study(), job, dry_run=True)


def test_relaxed_mondrian_is_refused():
    job = ReleaseRequest(town().population, ("voter",), wide(NAMES, k=3), (), Mondrian(relaxed=True))
    with pytest.raises(OptionError, match="strict Mondrian"):
        run_release(town().study(), job, dry_run=True)


def test_a_copy_that_breaks_the_promise_is_not_published(run, files, monkeypatch):
    from veilmark.mark import copies

    real = copies.copy_of
    monkeypatch.setattr(copies, "copy_of", lambda rows, marks, i, *rest: real(rows, marks, i, *rest).slice(i))
    err = run("release", "study.yaml", *RELEASE, *BOOK, "-o", "broken", code=1)
    assert "does not meet the guarantees" in err
    assert not (files / "broken").exists()
    assert not [p for p in files.iterdir() if p.name.startswith(".veilmark")]


# Without a register.

NO_REGISTER = ["--recipients", ",".join(NAMES), "--k", "3", "--suppress", "0.2", "--decoys", "0", "--covers", "8"]


@pytest.mark.parametrize("method", [["--method", "ola"], ["--method", "mondrian"]])
def test_no_register_is_needed_without_decoys(run, files, tmp_path, method):
    wanted = [a for a in NO_REGISTER if a not in ("--suppress", "0.2")] if "mondrian" in method else NO_REGISTER
    book = ["--ledger", tmp_path / "ledger.db", "--key", tmp_path / "key"]
    told = run("release", "study.yaml", *wanted, *method, "--dry-run")
    assert "because there is no population" in told
    assert "Claims of re-identification cannot" in told.replace("\n", " ")
    found = run("release", "study.yaml", *wanted, *method, *book, "-o", tmp_path / "copies", "--json")
    assert (found["min_link"], found["feasibility"]) == (None, None)
    assert found["candidates"] == {"classes": 0, "records": 0, "excluded": 0}
    assert [r["decoy_records"] for r in found["recipients"]] == [0] * 4
    for name in NAMES:
        rows = rows_of(tmp_path / "copies" / f"{name}.csv")
        assert min(Counter(tuple(r[c] for c in QUASI) for r in rows).values()) >= 3
    traced = run("trace", "--file", tmp_path / "copies" / "cyd.csv", *book, "--false-accusation", "1e-3", "--json")
    assert traced["accused"] == ["cyd"]
    assert run("ledger", "decoys", found["release"], *book, "--json")["decoys"] == {name: [] for name in NAMES}


def test_a_population_without_identity_tells_the_risk(run):
    found = run("release", "study.yaml", *NO_REGISTER, "--population", "people.csv", "--dry-run", "--json")
    assert found["min_link"] > 0
    assert found["cost"]["pool"] == 0 or found["candidates"]["classes"] > 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            ["--decoys", "2"],
            "--population and --identity are missing. Give both, or release without decoys: --decoys 0",
        ),
        (["--decoys", "2", "--population", "people.csv"], "--identity is missing. Give it, or"),
        (["--decoys", "2", "--identity", "voter"], "--population is missing. Give it, or"),
        (["--identity", "voter"], "--identity names columns of the population, but there is no --population"),
        (["--strategy", "risk"], "--strategy risk needs --population"),
        (
            ["--decoys", "2", "--population", "people.csv", "--identity", "zip"],
            "zip does not identify persons: 6,000 of",
        ),
    ],
)
def test_what_decoys_need_is_said(run, given, says):
    assert says in run("release", "study.yaml", *NO_REGISTER, *given, "--dry-run", code=2)


# Who can serve as a decoy.


def ground(data, identity, k=3, method=None):
    study = data.study()
    with DuckDB(threads=1) as engine:
        marking = wide(("ada",), k=k)
        return Ground.prepare(
            engine, study, data.population, identity, marking, [KAnonymity(k)], method or Ola(0.3, "dm_star")
        )


@settings(max_examples=examples(10))
@given(st.integers(0, 1 << 30), st.sampled_from([("voter",), ("name", "day"), ("voter", "day")]), st.booleans())
def test_persons_who_serve_by_looking_at_each(seed, identity, mondrian):
    data = register(seed, 500, 60)
    rng = random.Random(seed)
    data.people[:] = [{**p, "day": str(rng.randrange(400))} for p in data.people]
    data.people[::9] = [{**p, "day": None} for p in data.people[::9]]
    try:
        found = ground(data, identity, method=Mondrian() if mondrian else None)
    except OptionError:
        return
    linked = found.linked
    known = set(identity) <= {"voter"}
    members = {p["voter"] for p in data.members}
    told = Counter(tuple(p[c] for c in identity) for p in data.people)
    candidates = {
        tuple(t): int(c)
        for c, t in zip(np.flatnonzero(linked.found(3)), linked.texts(np.flatnonzero(linked.found(3))), strict=True)
    }
    expected = Counter()
    if mondrian:
        place = {
            tuple(v): int(b)
            for v, b in zip(zip(*(found.people.texts(c) for c in QUASI), strict=True), linked.of_people, strict=True)
        }
        home = lambda p: place[tuple(p[c] for c in QUASI)]  # noqa: E731
    else:
        label = labeller(found.domains, found.levels, [found.plan.recoding.levels[c] for c in QUASI])
        home = lambda p: candidates.get(label(p), -1)  # noqa: E731
    chosen = set(candidates.values())
    for p in data.people:
        c, who = home(p), tuple(p[i] for i in identity)
        doubtful = linked.suppressed[c] > 0 if not known else False
        if (
            c in chosen
            and None not in who
            and told[who] == 1
            and not doubtful
            and not (known and p["voter"] in members)
        ):
            expected[c] += 1
    assert {c: int(n) for c, n in enumerate(linked.outside) if n} == dict(expected)
    assert len(found.persons) == sum(expected.values())


@pytest.mark.parametrize("method", [Ola(0.2, "dm_star"), Mondrian()])
def test_a_population_that_is_the_source_has_no_decoys(method):
    data = Register([dict(p) for p in town().members], town().members)
    job = ReleaseRequest(data.population, ("voter",), wide(NAMES, k=3), (), method)
    with pytest.raises(OptionError, match="That is enough for none"):
        run_release(data.study(), job, dry_run=True)


def test_an_unlucky_class_is_suppressed_for_the_sake_of_decoys():
    """There are too few candidates until some released classes that link to few persons are left out."""
    data, method = (
        register(18, 3_000, 600, years=60, zips=tuple(f"{z:03d}" for z in range(0, 300, 17))),
        Ola(0.3, "dm_star"),
    )
    plain = anonymize(data.study(), [KAnonymity(3)], None, method)
    with DuckDB(threads=1) as engine:
        wanted = wide(("ada",), k=3, decoys=10)
        found = Ground.prepare(engine, data.study(), data.population, ("voter",), wanted, [KAnonymity(3)], method)
    linked, everybody = found.linked, len(data.members)
    assert found.spared > 0
    assert found.plan.suppressed == plain.plan.suppressed + found.spared == linked.suppressed.sum() <= 0.3 * everybody
    kept = linked.published[linked.published > 0]
    assert kept.sum() + found.plan.suppressed == everybody
    assert found.plan.loss["dm"] == (kept**2).sum() + found.plan.suppressed * everybody
    assert found.plan.loss["average_class"] == pytest.approx(kept.mean())
    assert found.plan.loss["gcp"] > plain.plan.loss["gcp"]
    assert len(candidate_pool(linked, wanted)) >= 10


def test_members_who_are_not_recognized_keep_their_class_out():
    """The source writes its identities otherwise than the population, so that nobody is found in it."""
    data = town()
    other = Register(data.people, [{**p, "voter": p["voter"].lower()} for p in data.members])
    found, right = ground(other, ("voter",)), ground(data, ("voter",))
    for linked in (found.linked, right.linked):
        assert (linked.suppressed[linked.found(3)] > 0).any()
    assert not (found.linked.outside[found.linked.suppressed > 0] > 0).any()
    assert (right.linked.outside[right.linked.suppressed > 0] > 0).any()


# Tracing.


def traced(run, files, rows, *more):
    """Whom a leak with these rows names."""
    columns = list(rows[0])
    with open(files / "leak.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return run(
        "trace", "--file", "leak.csv", *BOOK, "--release", released(), "--false-accusation", "1e-3", *more, "--json"
    )


def test_a_leaked_copy_names_its_recipient(run, files):
    for name in NAMES:
        found = traced(run, files, rows_of(files / "copies" / f"{name}.csv"))
        assert found["accused"] == [name]
        assert found["recipients"][0]["evidence"]
    page = ["-o", "evidence.html"]
    text = run("trace", "--file", "leak.csv", *BOOK, "--release", released(), "--false-accusation", "1e-3", *page)
    assert "Wrote the evidence to evidence.html." in text
    assert (files / "evidence.html").stat().st_size > 1_000
    assert f"Named: {NAMES[-1]}" in text
    assert "decoy class" in text


def test_a_part_in_another_order_without_columns_and_with_noise(run, files):
    rng = np.random.default_rng(1)
    rows = rows_of(files / "copies" / "bob.csv")
    part = [rows[i] for i in rng.permutation(len(rows))[: len(rows) * 9 // 10]]
    noise = [{**part[0], "zip": f"x{i}"} for i in range(50)]
    assert traced(run, files, [{c: r[c] for c in QUASI} for r in part + noise])["accused"] == ["bob"]


def test_other_names_of_columns_are_matched_or_mapped(run, files):
    renamed = {"zip": "region", "yob": "born in", "sex": "g"}
    rows = [{renamed.get(c, c): v for c, v in r.items()} for r in rows_of(files / "copies" / "bob.csv")]
    found = traced(run, files, rows)
    assert (found["accused"], found["columns"]) == (["bob"], {c: renamed[c] for c in QUASI})
    found = traced(run, files, rows, "--map", "region=zip", "--map", "born in=yob")
    assert (found["accused"], found["columns"]) == (["bob"], {c: renamed[c] for c in QUASI})


MAPS = {
    "no pair": (["--map", "region"], "THEIRS=OURS, such as region=zip, not by 'region'"),
    "no such column of theirs": (["--map", "q=zip"], "The leak has no column 'q'"),
    "no such column of ours": (["--map", "sex=q"], "No release has a column 'q'"),
    "twice": (["--map", "sex=zip", "--map", "sex=yob"], "The column 'sex' is mapped twice"),
    "to the same": (["--map", "sex=zip", "--map", "yob=zip"], "Two columns are mapped to 'zip'"),
}


@pytest.mark.parametrize("fault", MAPS)
def test_maps_that_cannot_be_are_refused(run, files, fault):
    given, word = MAPS[fault]
    err = run("trace", "--file", "copies/ada.csv", *BOOK, "--release", released(), *given, code=2)
    assert word in " ".join(err.split())


def test_claims_are_not_mapped(run, files):
    err = run("trace", "--claims", "copies/ada.csv", *BOOK, "--map", "sex=zip", code=2)
    assert "--map is for a leaked table" in err


def test_what_everybody_has_names_nobody(run, files):
    held = [rows_of(files / "copies" / f"{name}.csv") for name in NAMES]
    common = set.intersection(*({tuple(r[c] for c in QUASI) for r in rows} for rows in held))
    found = traced(run, files, [r for r in held[0] if tuple(r[c] for c in QUASI) in common])
    assert found["accused"] == []
    assert all(r["p_value"] > 1e-3 for r in found["recipients"])


def test_coarser_values_name_the_leaker_or_nobody(run, files):
    def wider(yob):
        return yob if "-" not in yob else f"{int(yob[:4]) // 8 * 8}-{int(yob[:4]) // 8 * 8 + 7}"

    for column, to in (("sex", lambda v: "*"), ("yob", wider)):
        rows = rows_of(files / "copies" / "cyd.csv")
        found = traced(run, files, [{**r, column: to(r[column])} for r in rows])
        assert set(found["accused"]) <= {"cyd"}
        assert found["notes"]


def test_claims_by_name_by_label_and_by_value(run, files):
    everybodys = {name: decoys(run, name) for name in NAMES}
    leaker = max(NAMES, key=lambda name: sum(bool(d["sex"]) for d in everybodys[name]))  # the key is drawn anew
    own = everybodys[leaker]
    real = {p["voter"]: p for p in town().people}
    strangers = [p for p in town().members if p["voter"] not in {d["voter"] for d in own}]

    def claim(rows):
        write_table(pa.Table.from_pylist(rows), files / "claims.csv")
        return run(
            "trace", "--claims", "claims.csv", *BOOK, "--release", released(), "--false-accusation", "1e-2", "--json"
        )

    one_each = {tuple(d[c] for c in QUASI): d for d in own}.values()
    by_name = [{"voter": d["voter"]} for d in one_each] + [{"voter": f"stranger {i}"} for i in range(30)]
    found = claim(by_name)
    assert found["accused"] == [leaker]
    assert "secret key drew the decoy classes" in found["meaning"]
    assert {e["kind"] for e in found["recipients"][0]["evidence"]} == {"decoy class claimed"}
    assert claim([{"voter": p["voter"]} for p in strangers[:300]])["accused"] == []
    assert claim([{"voter": p["voter"]} for p in town().people])["accused"] == []
    full = [d for d in own if d["sex"]]
    raw = [{c: real[d["voter"]][c] for c in QUASI} for d in full]
    labels = [{c: d[c] for c in QUASI} for d in full]
    for rows in (raw, labels):
        found = claim(rows)
        suspect = next(r for r in found["recipients"] if r["name"] == leaker)
        others = [r["p_value"] for r in found["recipients"] if r["name"] != leaker]
        assert suspect["p_value"] < min(others)
        assert set(found["accused"]) <= {leaker}
    assert claim([{"sex": "f"} for _ in range(50)])["accused"] == []
    assert claim([{"voter": None, "sex": None} for _ in range(50)])["accused"] == []


def test_mondrian_releases_are_traced(run, files):
    arguments = [a for a in RELEASE if a not in ("--suppress", "0.2", "--loss", "dm_star")]
    made = run("release", "study.yaml", *arguments, "--method", "mondrian", *BOOK, "-o", "boxes", "--json")
    assert made["levels"] == {}
    for copy in made["recipients"]:
        found = run("trace", "--file", copy["file"], *BOOK, "--false-accusation", "1e-3", "--json")
        assert found["accused"] == [copy["name"]]
        assert found["recipients"][0]["release"] == made["release"]
    rows = run("ledger", "decoys", made["release"], *BOOK, "--json")["decoys"]["ada"]
    people = {p["voter"]: p for p in town().people}
    for d in rows:
        low, _, high = d["yob"].partition("-")
        assert int(low) <= int(people[d["voter"]]["yob"]) <= int(high or low)
    write_table(pa.Table.from_pylist([{c: people[d["voter"]][c] for c in QUASI} for d in rows]), files / "claims.csv")
    found = run("trace", "--claims", "claims.csv", *BOOK, "--release", made["release"], "--json")
    assert found["recipients"][0]["name"] == "ada"


def test_identity_of_several_columns(run, files):
    arguments = [*RELEASE, "--identity", "name,day,voter", "--decoys", "2"]
    book = ["--ledger", "named.db", "--key", "key"]
    made = run("release", "study.yaml", *arguments, *book, "-o", "named", "--json")
    own = run("ledger", "decoys", made["release"], *book, "--json")["decoys"]["bob"]

    def claim(columns):
        write_table(pa.Table.from_pylist([{c: d[c] for c in columns} for d in own]), files / "claims.csv")
        found = run("trace", "--claims", "claims.csv", *book, "--release", made["release"], "--json")
        return next(r for r in found["recipients"] if r["name"] == "bob")

    whole, part = claim(["name", "day", "voter"]), claim(["name", "day"])
    assert (whole["tail"], part["tail"]) == ("exact", "exact")
    assert whole["p_value"] == pytest.approx(made["claims"]["smallest_probability"])
    assert part["p_value"] >= whole["p_value"]  # others may have the same name and birthday
    assert len(part["evidence"]) == len(whole["evidence"]) == 2


def test_an_identity_column_that_is_published_coarser(run, files):
    book = ["--ledger", "born.db", "--key", "key"]
    made = run(
        "release", "study.yaml", *RELEASE, "--identity", "voter,yob", "--decoys", "2", *book, "-o", "born", "--json"
    )
    own = run("ledger", "decoys", made["release"], *book, "--json")["decoys"]["bob"]
    people = {p["voter"]: p for p in town().people}
    assert all(d["yob of the person"] == people[d["voter"]]["yob"] for d in own)
    rows = [{c: people[d["voter"]][c] for c in ("voter", "yob")} for d in own]
    write_table(pa.Table.from_pylist(rows), files / "claims.csv")
    limit = made["claims"]["smallest_probability"]
    asked = ["--release", made["release"], "--false-accusation", f"{1.001 * limit}", "--json"]
    found = run("trace", "--claims", "claims.csv", *book, *asked)
    assert (found["accused"], found["recipients"][0]["tail"]) == (["bob"], "exact")


PLACES = (("seals", "entry"), ("wrapped_keys", "entry"), ("entries", "number"))

NOT_TRACED = {
    "nothing to trace": ([], "Give --claims or --file"),
    "both": (["--file", "leak.csv", "--claims", "leak.csv"], "Give --claims or --file"),
    "a file that is not there": (["--file", "gone.csv"], "gone.csv"),
    "a file that shares no columns": (["--file", "strange.csv"], "no column has its values"),
    "claims that share no columns": (["--claims", "strange.csv"], "no column has its values"),
    "a file of other values": (["--file", "values.csv"], "no column has its values"),
    "empty claims": (["--claims", "empty_claims.csv"], "no records"),
    "an empty leak": (["--file", "empty_claims.csv"], "no records"),
    "another key": (["--file", "leak.csv", "--key", "other"], "another key"),
    "a lost key": (["--file", "leak.csv", "--key", "lost"], "no key file"),
    "a ledger that is not there": (["--file", "leak.csv", "--ledger", "gone.db"], "no ledger"),
    "a release that is not there": (["--file", "leak.csv", "--release", "r0"], "no release 'r0'"),
    "a probability beyond 1": (["--file", "leak.csv", "--false-accusation", "2"], "between 0 and 1"),
}


@pytest.mark.parametrize("fault", NOT_TRACED)
def test_what_cannot_be_traced_is_refused(bad_files, run, files, fault):
    (files / "leak.csv").write_text("zip,sex,yob\n0**,f,1950\n")
    (files / "strange.csv").write_text("a,b\n1,2\n")
    (files / "values.csv").write_text("zip,sex,yob\nx,y,z\n")
    (files / "empty_claims.csv").write_text("voter,zip\n")
    changes, word = NOT_TRACED[fault]
    err = run("trace", *BOOK, *changes, code=2)
    assert word in err


def test_a_changed_ledger_accuses_nobody(run, files, tmp_path):
    ledger_verbs.export("ledger.db", tmp_path / "backup")
    ledger_verbs.restore(tmp_path / "backup", tmp_path / "changed.db")
    edit(Ledger.open(tmp_path / "changed.db"), "UPDATE veilmark_entries SET body = '{}' WHERE number = 2")
    err = run("trace", "--file", "copies/ada.csv", "--ledger", tmp_path / "changed.db", "--key", "key", code=2)
    assert "entry 2 was changed" in err
    assert "Nobody can be accused" in err


@pytest.mark.parametrize(
    ("kind", "release", "wrong"),
    [
        ("aborted", None, "cannot become aborted"),
        ("started", "r00000bad", "somebody without the key"),
        ("note", None, "somebody without the key"),
    ],
)
def test_a_forged_entry_accuses_and_clears_nobody(run, files, tmp_path, kind, release, wrong):
    ledger_verbs.export("ledger.db", tmp_path / "backup")
    ledger_verbs.restore(tmp_path / "backup", tmp_path / "forged.db")
    forge(Ledger.open(tmp_path / "forged.db"), kind, release or released(), {"recovered": True})
    book = ["--ledger", tmp_path / "forged.db", "--key", "key"]
    err = run("trace", "--file", "copies/ada.csv", *book, code=2)
    assert wrong in err
    assert "Nobody can be accused" in err
    assert wrong in ledger_verbs.verify(tmp_path / "forged.db", "key").what


def test_a_ledger_that_lost_its_end_is_told_by_a_head(run, files, tmp_path):
    ledger_verbs.export("ledger.db", tmp_path / "backup")
    cut = ledger_verbs.restore(tmp_path / "backup", tmp_path / "cut.db")
    ledger = Ledger.open(tmp_path / "cut.db")
    edit(ledger, *(f"DELETE FROM veilmark_{t} WHERE {c} = {cut.entries}" for t, c in PLACES))
    book = ["--ledger", tmp_path / "cut.db", "--key", "key"]
    err = run("trace", "--file", "copies/ada.csv", *book, "--head", cut.head, code=2)
    assert "entries were removed" in err
    run("trace", "--file", "copies/ada.csv", *BOOK, "--head", cut.head, "--json")


def test_an_aborted_release_is_not_traced(run, files, tmp_path):
    ledger = Ledger.open("ledger.db")
    key = Key.open("key")
    ledger.append("started", "r0000dead", {"folder": str(tmp_path / "x"), "host": "elsewhere"}, key=key)
    ledger.append("aborted", "r0000dead", {}, key=key)
    err = run("trace", "--file", "copies/ada.csv", *BOOK, "--release", "r0000dead", code=2)
    assert "not published" in err


def test_the_report_is_written(run, files):
    run(
        "trace",
        "--file",
        "copies/ada.csv",
        *BOOK,
        "--release",
        released(),
        "--false-accusation",
        "1e-3",
        "-o",
        "report.html",
    )
    assert "ada" in (files / "report.html").read_text()


def test_frames_can_be_traced(files, monkeypatch):
    monkeypatch.chdir(files)
    leak = pa.Table.from_pylist(rows_of("copies/ada.csv"))
    found = trace("ledger.db", "key", file=leak, release=released(), false_accusation=1e-3)
    assert found.accused == ("ada",)
    with pytest.raises(DataError, match="no records"):
        trace("ledger.db", "key", file=leak.slice(0, 0))


def test_many_records_a_person():
    """Persons count, their column is not in the copies, and suppressed persons are recognized."""
    data = town()
    twice = Register(data.people, data.members + [{**p, "cost": "again"} for p in data.members[::3]])
    study = replace(twice.study(), spec=twice.study().spec.model_copy(update={"person": "voter"}))
    job = ReleaseRequest(twice.population, ("voter",), wide(NAMES, k=3), (), Ola(0.2, "dm_star"), 5)
    found = run_release(study, job, dry_run=True)
    assert found.feasible.classes > 0
    assert found.feasible.min_link > 3

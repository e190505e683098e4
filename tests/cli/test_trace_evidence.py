"""What stands behind an accusation: the record of each trace, copies that are equal, and what a third party can check."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import pwd
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import read_csv

from ledger.responder import Authority, serving
from register import town
from veilmark.cli.main import main
from veilmark.ledger import Key, Ledger
from veilmark.output import write_table
from veilmark.trace.bits import redacted
from veilmark.workbench import trace as tracing
from veilmark.workbench.trace import trace
from veilmark.workbench.trace_record import begin, verdict_digest

STUDY = """
version: 1
source: patients.csv
attributes:
  voter: {role: direct}
  zip: {role: quasi, hierarchy: {mask: 3}}
  sex: {role: quasi}
  yob: {role: quasi, hierarchy: {intervals: [2, 4, 8]}}
"""
RELEASE = [
    "--population",
    "people.csv",
    "--identity",
    "voter",
    "--recipients",
    "ada,bob,cyd",
    "--k",
    "3",
    "--seed",
    "5",
]
RELEASE += ["--suppress", "0.2", "--loss", "dm_star", "--risk", "1:20", "--decoys", "3", "--covers", "8"]
BOOK = ["--ledger", "ledger.db", "--key", "key"]
LIMIT = ["--false-accusation", "1e-3"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study and a release of it; nobody changes it."""
    folder = tmp_path_factory.mktemp("evidence")
    write_table(town().source, folder / "patients.csv")
    write_table(town().population, folder / "people.csv")
    (folder / "study.yaml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["release", "study.yaml", *RELEASE, *BOOK, "-o", "copies", "--json"]) == 0
        header, *rows = (folder / "copies" / "bob.csv").read_text().splitlines()
        (folder / "leak.csv").write_text("\n".join([header, *rows[10:]]) + "\n")
    return folder


@pytest.fixture
def run(made, monkeypatch, capsys):
    monkeypatch.chdir(made)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments, code=0):
        assert main(list(map(str, arguments))) == code
        out, err = capsys.readouterr()
        return err if code == 2 else json.loads(out) if "--json" in arguments else out

    return run


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- the record of a trace -----------------------------------------------------------------------------------


def test_a_trace_is_recorded_before_its_result(run, made):
    found = run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "--json")
    assert found["accused"] == ["bob"]
    before, after = Ledger.open("ledger.db").entries()[-2:]
    assert (before.kind, after.kind) == ("trace", "traced")
    assert before.public["evidence"] == [
        {"name": "leak.csv", "bytes": (made / "leak.csv").stat().st_size, "sha256": sha256(made / "leak.csv")}
    ]
    assert (before.public["kind"], before.public["false_accusation"], before.public["release"]) == ("leak", 1e-3, None)
    assert found["record"]["entry"] == before.number == after.public["of"]
    assert found["record"]["hash"] == before.hash
    assert run("ledger", "verify", *BOOK, "--json")["ok"]


def test_a_trace_that_fails_is_recorded_too(run, made):
    """Otherwise one could try until the result pleases."""
    (made / "strange.csv").write_text("a,b\n1,2\n")
    run("trace", "--file", "strange.csv", *BOOK, code=2)
    assert Ledger.open("ledger.db").entries()[-1].public["evidence"][0]["name"] == "strange.csv"


def test_the_record_says_nothing_of_the_verdict(run, made):
    run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "--json")
    for entry in Ledger.open("ledger.db").entries()[-2:]:
        assert "bob" not in json.dumps(entry.public)


def test_the_digest_of_the_verdict_can_be_computed_again(run, made):
    found = run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "--json")
    told = [[r["name"], r["release"], r["p_value"]] for r in found["recipients"]]
    text = json.dumps([found["accused"], told, found["false_accusation"]], separators=(",", ":"))
    assert Ledger.open("ledger.db").entries()[-1].public["verdict"] == hashlib.sha256(text.encode()).hexdigest()


def test_tables_in_memory_are_recorded_by_their_content(run, made):
    leak = read_csv(made / "leak.csv")
    for frame in (leak, leak.to_pandas()):
        found = trace("ledger.db", "key", file=frame, false_accusation=1e-3)
        entry = Ledger.open("ledger.db").entries()[-1]
        assert entry.public["verdict"] == verdict_digest(found)
        assert len(Ledger.open("ledger.db").entries()[-2].public["evidence"][0]["sha256"]) == 64


def test_a_ledger_that_can_only_be_read_is_traced_and_says_what_is_missing(run, made, monkeypatch):
    count = len(Ledger.open("ledger.db").entries())
    monkeypatch.setattr("os.access", lambda *_: False)
    found = trace("ledger.db", "key", file="leak.csv", false_accusation=1e-3)
    assert (found.accused, found.record) == (("bob",), None)
    assert any("is not recorded" in note for note in found.notes)
    assert len(Ledger.open("ledger.db").entries()) == count


# --- copies that are equal -----------------------------------------------------------------------------------


def test_a_leak_that_is_a_copy_byte_for_byte(run, made):
    found = run("trace", "--file", "copies/bob.csv", *BOOK, *LIMIT, "-o", "whole.html", "--json")
    (release,) = (r.id for r in Ledger.open("ledger.db").releases())
    assert found["identical"] == [{"evidence": "bob.csv", "release": release, "recipient": "bob", "file": "bob.csv"}]
    assert f"bob.csv is, byte for byte, the copy of bob in release {release}." in found["notes"]
    page = (made / "whole.html").read_text()
    assert "The file is a recorded copy." in page
    assert "Before the evidence was compared, entry" in page
    assert run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "--json")["identical"] == []


def test_the_key_opens_the_ledger_still(run, made):
    assert Ledger.open("ledger.db").verify(Key.open("key")).ok


# --- what a third party can check ------------------------------------------------------------------------------


def test_a_third_party_comes_to_the_same_verdict_without_ledger_and_key(run, made, tmp_path):
    release = Ledger.open("ledger.db").releases()[0].id
    published = run("ledger", "commitment", release, "--ledger", "ledger.db", "--json")["commitment"]
    ours = run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "--json")
    run("ledger", "open-commitment", release, *BOOK, "-o", tmp_path / "opened.json")
    theirs = run(
        *("ledger", "verify-commitment", tmp_path / "opened.json", "--commitment", published),
        *("--file", "leak.csv", *LIMIT, "--json"),
    )
    assert theirs["accused"] == ours["accused"] == ["bob"]
    assert theirs["recipients"] == ours["recipients"]
    check = ["ledger", "verify-commitment", tmp_path / "opened.json", "--commitment"]
    err = run(*check, "0" * 64, "--file", "leak.csv", code=2)
    assert "does not match what was published" in err
    err = run(*check, published, code=2)
    assert "Give --claims or --file" in err


def test_the_release_says_its_commitment(run, made, tmp_path):
    book = ["--ledger", tmp_path / "l.db", "--key", tmp_path / "k"]
    told = run("release", "study.yaml", *RELEASE, *book, "-o", tmp_path / "c", "--json")
    assert told["commitment"] == run("ledger", "commitment", told["release"], *book[:2]).strip()


def test_signed_releases_and_receipts_from_end_to_end(run, made, tmp_path):
    book = ["--ledger", tmp_path / "l.db", "--key", tmp_path / "k"]
    Ledger.open(tmp_path / "l.db", create=True)
    Key.open_or_make(tmp_path / "k")
    run("ledger", "signing-key", tmp_path / "olga")
    run("ledger", "operator", "olga", *book, "--public-key", tmp_path / "olga.pub")
    run("release", "study.yaml", *RELEASE, *book, "--sign-key", tmp_path / "olga", "-o", tmp_path / "c", "--json")
    assert run("ledger", "verify", *book, "--public-key", tmp_path / "olga.pub", "--json")["signed"] == 3
    run("ledger", "signing-key", tmp_path / "bob")
    copy, receipt = tmp_path / "c" / "bob.csv", tmp_path / "receipt.json"
    run("ledger", "sign-receipt", copy, "--recipient", "bob", "--sign-key", tmp_path / "bob", "-o", receipt)
    assert "It was not checked whose key" in run("ledger", "receipt", receipt, *book)
    assert [r["recipient"] for r in run("ledger", "receipt", *book[:2], "--json")["receipts"]] == ["bob"]
    assert "bob.csv" in run("ledger", "receipt", *book[:2])
    run("ledger", "anchor", tmp_path / "anchor.json", *book)
    assert run("trace", "--file", copy, *book, *LIMIT, "--anchor", tmp_path / "anchor.json", "--json")["accused"] == [
        "bob"
    ]
    run("ledger", "key", "split", tmp_path / "shares", "--key", tmp_path / "k")
    shares = [tmp_path / "shares" / f"share-{i}-of-3" for i in (1, 3)]
    run("ledger", "key", "join", *shares, "--key", tmp_path / "again")
    assert run("ledger", "verify", *book[:2], "--key", tmp_path / "again", "--json")["ok"]


# --- what is recorded is what was traced ---------------------------------------------------------------------


def test_evidence_exchanged_after_its_digest_was_recorded(run, made, tmp_path, monkeypatch):
    """The verdict, the report and the record are of the file that was recorded."""
    evidence = tmp_path / "e.csv"
    evidence.write_bytes((made / "copies" / "bob.csv").read_bytes())
    before = sha256(evidence)

    def then_exchanged(*asked):
        begun = begin(*asked)
        evidence.write_bytes((made / "copies" / "ada.csv").read_bytes())
        return begun

    monkeypatch.setattr(tracing, "begin", then_exchanged)
    found = run("trace", "--file", evidence, *BOOK, *LIMIT, "-o", tmp_path / "r.html", "--json")
    assert (found["accused"], [one["recipient"] for one in found["identical"]]) == (["bob"], ["bob"])
    assert found["evidence"] == [
        {"name": "e.csv", "bytes": (made / "copies" / "bob.csv").stat().st_size, "sha256": before}
    ]
    assert before in (tmp_path / "r.html").read_text()
    assert sha256(evidence) not in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("pattern", ["part=*/*.csv", "part=1/*.csv"])
def test_evidence_of_several_files_in_folders(run, made, tmp_path, pattern):
    (tmp_path / "part=1").mkdir()
    header, *rows = (made / "leak.csv").read_text().splitlines()
    for name, half in (("a", rows[::2]), ("b", rows[1::2])):
        (tmp_path / "part=1" / f"{name}.csv").write_text("\n".join([header, *half]) + "\n")
    found = run("trace", "--file", f"{tmp_path}/{pattern}", *BOOK, *LIMIT, "--json")
    assert (found["accused"], [one["name"] for one in found["evidence"]]) == (["bob"], ["a.csv", "b.csv"])


def test_an_anchor_of_a_trace_is_written_before_its_result(run, made, tmp_path, monkeypatch):
    """With it, an attempt that was removed later is missed; an older anchor does not show it."""
    book = ["--ledger", tmp_path / "l.db", "--key", "key"]
    shutil.copy(made / "ledger.db", tmp_path / "l.db")
    run("ledger", "anchor", tmp_path / "old.json", *book)
    shutil.copy(tmp_path / "l.db", tmp_path / "keep.db")
    authority = Authority()
    (tmp_path / "root.pem").write_bytes(authority.pem)
    trusted = ["--tsa-certificate", tmp_path / "root.pem"]
    compared = tracing.trace_marked

    def after_the_anchor(*given):
        assert (tmp_path / "anchor.json").exists()
        return compared(*given)

    monkeypatch.setattr(tracing, "trace_marked", after_the_anchor)
    asked = ["trace", "--file", "leak.csv", *book, *LIMIT, "--write-anchor", tmp_path / "anchor.json"]
    with serving(authority) as url:
        found = run(*asked, "--tsa", url, *trusted, "--json")
    check = ["ledger", "verify", *book, "--anchor", tmp_path / "anchor.json", *trusted, "--json"]
    (anchored,) = run(*check)["anchors"]
    assert (anchored["entries"], anchored["head"]) == (found["record"]["entry"], found["record"]["hash"])
    assert "exists already" in run(*asked, code=2)
    assert "--write-anchor" in run(*asked[:-2], "--tsa", url, code=2)
    for left in tmp_path.glob("l.db*"):
        left.unlink()
    shutil.copy(tmp_path / "keep.db", tmp_path / "l.db")
    assert run("ledger", "verify", *book, "--anchor", tmp_path / "old.json", "--json")["ok"]
    assert not run(*check, code=1)["ok"]


def test_what_is_wrong_with_evidence_is_said_by_its_own_name(run, tmp_path):
    for name, content in (("none.csv", "zip,sex,yob\n"), ("bad.parquet", "no")):
        (tmp_path / name).write_text(content)
        err = run("trace", "--file", tmp_path / name, *BOOK, code=2)
        assert f"'{tmp_path / name}'" in err
        assert "scratch" not in err


def test_mapped_columns_and_the_account_are_recorded(run, made, monkeypatch, tmp_path):
    monkeypatch.setenv("LOGNAME", "the judge")
    text = (made / "leak.csv").read_text()
    (tmp_path / "x.csv").write_text(text.replace("zip", "region", 1))
    found = run("trace", "--file", tmp_path / "x.csv", "--map", "region=zip", *BOOK, *LIMIT, "--json")
    entry = next(e for e in Ledger.open("ledger.db").entries(kind="trace") if e.number == found["record"]["entry"])
    account = pwd.getpwuid(os.getuid()).pw_name
    assert entry.public["columns"] == {"region": "zip"}
    assert (entry.public["who"], entry.public["account"]) == (account, account)
    trace("ledger.db", "key", file="leak.csv", false_accusation=1e-3, who="ruth")
    last = Ledger.open("ledger.db").entries(kind="trace")[-1].public
    assert (last["who"], last["account"], last["columns"]) == ("ruth", account, {})


# --- every mark ------------------------------------------------------------------------------------------------


def test_every_mark_is_written(run, made, tmp_path):
    """Against the ledger's secret and the leak, class by class."""
    found = run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "--bits", tmp_path / "bits.json", "--json")
    marks = json.loads((tmp_path / "bits.json").read_text())["marks"]
    release = found["recipients"][0]["release"]
    secret = Ledger.open("ledger.db").secrets(release, Key.open("key"))
    columns, labels = secret["columns"], {c: secret["above"][c][0] for c in secret["columns"]}
    leaked = {tuple(row[c] or None for c in columns) for row in csv.DictReader((made / "leak.csv").open())}
    covers = [m for m in marks if m["mark"] == "cover"]
    assert len(covers) == len(secret["covers"])
    assert len(marks) - len(covers) == len(secret["pool"][0])
    for j, mark in enumerate(covers):
        codes = [of[secret["covers"][j]] for of in secret["classes"]]
        expected = tuple(labels[c][code] for c, code in zip(columns, codes, strict=True))
        assert tuple(mark[c] for c in columns) == expected
        assert mark["in_leak"] == (expected in leaked)
        held = {name: secret["holds"][name][j] == "1" for name in secret["holds"]}
        assert {name: mark[f"holds: {name}"] for name in held} == held
        assert mark["held_by"] == sum(held.values())
    for j, mark in enumerate(marks[len(covers) :]):
        assert {n for n in secret["drawn"] if mark[f"holds: {n}"]} == {
            n for n, of in secret["drawn"].items() if j in of
        }


def test_marks_can_be_shown_without_their_labels(run, made, tmp_path):
    run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "--bits", tmp_path / "bits.csv")
    run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "--bits", tmp_path / "hidden.csv", "--redact")
    whole, hidden = (list(csv.DictReader((tmp_path / f"{n}.csv").open())) for n in ("bits", "hidden"))
    assert set(whole[0]) - set(hidden[0]) == {"zip", "sex", "yob", "group"}
    assert [(row["mark"], row["number"]) for row in hidden] == [(row["mark"], row["number"]) for row in whole]
    shown = [name for name in hidden[0] if name != "number"]
    rows, left = ([tuple(row[name] for name in shown) for row in marks] for marks in (whole, hidden))
    assert sorted(left) == sorted(rows)
    assert left != rows  # Their order is that of their labels, which anybody with the register can list.
    assert (tmp_path / "bits.csv").stat().st_mode & 0o777 == 0o600


def test_what_was_written_of_the_marks_is_told_and_holds_no_nan(run, made, tmp_path):
    told = run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "--bits", tmp_path / "bits.csv")
    rows = list(csv.DictReader((tmp_path / "bits.csv").open()))
    assert f"Wrote {len(rows):,} marks to {tmp_path / 'bits.csv'}." in told
    assert not any(value.lower() == "nan" for row in rows for value in row.values())
    run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "--bits", tmp_path / "bits.json")
    assert "NaN" not in (tmp_path / "bits.json").read_text()


def test_the_report_holds_every_mark_of_the_named(run, made, tmp_path):
    run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "-o", tmp_path / "r.html", "--bits", tmp_path / "bits.json")
    marks = json.loads((tmp_path / "bits.json").read_text())["marks"]
    page = (tmp_path / "r.html").read_text()
    assert f"All {len(marks):,} marks of the release" in page
    assert page.count("bob holds it") == 1
    assert "ada holds it" not in page


@pytest.mark.parametrize("name", ["bits.txt", "nowhere/bits.csv", "leak.csv"])
def test_marks_that_cannot_be_written(run, made, name):
    before = (made / "leak.csv").read_bytes()
    run("trace", "--file", "leak.csv", *BOOK, *LIMIT, "--bits", name, code=2)
    assert (made / "leak.csv").read_bytes() == before


def test_redacted_marks_are_in_another_order_each_time():
    table = pa.table(
        {
            "release": ["r"] * 200,
            "mark": ["cover"] * 100 + ["decoy candidate"] * 100,
            "number": [*range(1, 101)] * 2,
            "zip": [f"{i:03}" for i in range(200)],
            "told": [True] * 200,
            "group": range(200),
            "probability": [i / 200 for i in range(200)],
        }
    )
    orders = [tuple(redacted(table).column("probability").to_pylist()) for _ in range(3)]
    assert len(set(orders)) == 3
    for order in orders:
        assert sorted(order[:100]) == [i / 200 for i in range(100)]
        ranks = np.argsort(order[100:])
        assert abs(np.corrcoef(ranks, np.arange(100))[0, 1]) < 0.5
    assert redacted(table).column_names == ["release", "mark", "number", "told", "probability"]

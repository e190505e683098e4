"""`veilmark ledger`: what each verb prints, its exit code, and that errors give nothing away."""

from __future__ import annotations

import json
import os

import pytest

from ledger.helpers import PUBLIC, SECRET, edit, forge, publish
from veilmark.cli import main
from veilmark.errors import OptionError, OutputError
from veilmark.ledger import Key, Ledger
from veilmark.workbench import ledger as verbs

AGREED = PUBLIC | {
    "consent": "volunteers, form 7",
    "recipients": [
        {"name": "ada", "agreement": "DUA-12", "contact": "ada@example.org"},
        {"name": "[/b]", "agreement": None, "contact": None},
    ],
}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs `veilmark ledger …` in a folder of its own; gives what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments, code=0):
        assert main.main(["ledger", *map(str, arguments)]) == code
        out, err = capsys.readouterr()
        if "--json" in arguments and not err:
            return json.loads(out)
        return out if code != 2 else err

    return run


@pytest.fixture
def here(run, tmp_path):
    """A ledger l.db with its key, and one release."""
    ledger = Ledger.open("l.db", create=True)
    publish(ledger, Key.open_or_make("key"), "copies", AGREED)
    return ledger


def the_id(ledger):
    return ledger.releases()[0].id


# --- what they print ---------------------------------------------------------------------------------------


def test_list(run, here):
    listed = run("list", "--ledger", "l.db", "--json")["releases"]
    (release,) = here.releases()
    expected = {"id": release.id, "study": "visits.yaml", "recipients": ["ada", "[/b]"], "status": "published"}
    assert listed == [expected | {"time": release.time}]
    text = run("list", "--ledger", "l.db", "--key", "key")
    assert all(word in text for word in (release.id, "visits.yaml", "ada, [/b]", "published"))


def test_an_empty_list(run):
    Ledger.open("l.db", create=True)
    assert run("list", "--ledger", "l.db", "--json") == {"releases": []}
    assert "no releases yet" in run("list", "--ledger", "l.db")


def test_show(run, here):
    shown = run("show", the_id(here), "--ledger", "l.db", "--json")
    assert shown["recipients"] == AGREED["recipients"]
    assert (shown["consent"], shown["parameters"], shown["status"]) == ("volunteers, form 7", {"k": 5}, "published")
    assert shown["digests"] == here.releases()[0].digests
    assert [step["kind"] for step in shown["history"]] == ["started", "prepared", "published"]
    text = run("show", the_id(here), "--ledger", "l.db")
    for word in ("DUA-12", "ada@example.org", "[/b]", "parameters.k", "volunteers, form 7", "ada.csv", "published"):
        assert word in text
    assert "V000123" not in text


def test_decoys(run, here):
    arguments = ("decoys", the_id(here), "--ledger", "l.db", "--key", "key")
    decoys = run(*arguments, "--json")["decoys"]
    assert decoys == SECRET["decoys"]
    assert list(decoys["ada"][0]) == ["voter", "zip"]
    assert all(word in run(*arguments) for word in ("Decoys of ada", "V000123", "130**", "V000456"))


def test_verify(run, here):
    found = run("verify", "--ledger", "l.db", "--key", "key", "--files", "--json")
    assert (found["ok"], found["entries"], found["secrets"], found["files"]) == (True, 3, 1, 2)
    text = run("verify", "--ledger", "l.db", "--head", found["head"])
    assert "The ledger is intact: 3 entries." in text
    assert found["head"] in text
    assert "secrets opened: 1; files compared: 2." in run("verify", "--ledger", "l.db", "--key", "key", "--files")


def test_an_edited_ledger_ends_with_1_and_says_where(run, here):
    edit(here, "UPDATE veilmark_entries SET time = '' WHERE number = 2")
    found = run("verify", "--ledger", "l.db", "--json", code=1)
    assert (found["ok"], found["where"], found["entries"]) == (False, 2, 1)
    assert "entry 2 was changed after it was written" in run("verify", "--ledger", "l.db", code=1)


def test_files_that_changed_are_told_apart_from_the_ledger(run, here):
    for name, content in (("ada.csv", "x"), ("bob.csv", None)):
        path = os.path.join("copies", name)
        os.unlink(path)
        if content:
            with open(path, "w") as file:
                file.write(content)
    text = run("verify", "--ledger", "l.db", "--files", code=1)
    assert "The ledger is intact: 3 entries; files compared: 1." in text
    assert f"Changed since they were published (1):\n  {os.path.abspath('copies/ada.csv')}" in text
    assert f"No longer in the folder where they were published (1):\n  {os.path.abspath('copies/bob.csv')}" in text
    assert "was changed" not in text


def test_a_broken_ledger_is_listed_with_a_warning(here, capsys):
    edit(here, "UPDATE veilmark_entries SET time = 'x' WHERE number = 1")
    forge(here, "started", "r00000000", {"folder": os.path.abspath("cut"), "host": "elsewhere"})
    os.mkdir(".veilmark-r00000000")
    for arguments in (["list"], ["show", the_id(here)], ["list", "--json"]):
        assert main.main(["ledger", *arguments, "--ledger", "l.db"]) == 0
        out, err = capsys.readouterr()
        assert the_id(here) in out
        assert err.startswith("Warning: The ledger 'l.db' was changed: entry 1 was changed")
        assert err.count("\n") == 1
    assert len(here.entries()) == 4


def test_one_entry_is_no_entries(run):
    Ledger.open("l.db", create=True).append("note", None, {})
    assert "intact: 1 entry." in run("verify", "--ledger", "l.db")
    assert "Wrote 1 entry to b" in run("export", "b", "--ledger", "l.db")


def test_rotate(run, here):
    arguments = ("rotate", "--ledger", "l.db", "--key", "key", "--new-key", "new.key")
    assert run(*arguments, "--json") == {"secrets": 1, "key": "new.key"}
    assert os.stat("new.key").st_mode & 0o777 == 0o600
    assert run("decoys", the_id(here), "--ledger", "l.db", "--key", "new.key", "--json")["decoys"] == SECRET["decoys"]
    assert "another key" in run("decoys", the_id(here), "--ledger", "l.db", "--key", "key", code=2)
    assert "another key" in run(*arguments, code=2)
    assert "now open only with third.key" in run(*arguments[:3], "--key", "new.key", "--new-key", "third.key")


def test_a_rotation_with_the_wrong_key_makes_no_new_one(run, here):
    Key.open_or_make("wrong")
    assert "another key" in run("rotate", "--ledger", "l.db", "--key", "wrong", "--new-key", "new.key", code=2)
    assert not os.path.exists("new.key")


def test_export_and_import(run, here):
    exported = run("export", "b.jsonl", "--ledger", "l.db", "--json")
    assert exported["entries"] == 3
    assert run("import", "b.jsonl", "--ledger", "l2.db", "--json") == {"entries": 3, "head": exported["head"]}
    assert run("verify", "--ledger", "l2.db", "--key", "key", "--json")["secrets"] == 1
    assert "Wrote 3 entries to c.jsonl" in run("export", "c.jsonl", "--ledger", "l.db")
    assert "Restored 3 entries" in run("import", "c.jsonl", "--ledger", "l3.db")
    assert "exists already" in run("import", "c.jsonl", "--ledger", "l3.db", code=2)


# --- bad input ---------------------------------------------------------------------------------------------


def test_decoys_without_the_key_are_refused(run, here):
    assert "Give the ledger's key file with --key" in run("decoys", the_id(here), "--ledger", "l.db", code=2)


def test_a_lost_a_wrong_and_an_open_key(run, here):
    Key.open_or_make("wrong")
    arguments = ("decoys", the_id(here), "--ledger", "l.db", "--json", "--key")
    lost = run(*arguments, "lost", code=2)
    assert "There is no key file 'lost'" in lost
    assert Key.open("key").id in lost
    assert not os.path.exists("lost")
    assert "was written with another key" in run(*arguments, "wrong", code=2)
    os.chmod("copies/ada.csv", 0o600)
    assert "is not a key file" in run(*arguments, "copies/ada.csv", code=2)
    os.chmod("key", 0o644)
    assert "chmod 600" in run(*arguments, "key", code=2)
    for verb in ("list", "verify"):
        assert "was written with another key" in run(verb, "--ledger", "l.db", "--key", "wrong", code=2)


def test_an_unknown_release_names_the_known_ones(run, here):
    for verb in ("show", "decoys"):
        error = run(verb, "zzz", "--ledger", "l.db", "--key", "key", code=2)
        assert f"no release 'zzz'. It has '{the_id(here)}'" in error


def test_no_ledger(run):
    for verb in (["list"], ["show", "r"], ["verify"], ["export", "b"]):
        assert "There is no ledger 'l.db'" in run(*verb, "--ledger", "l.db", code=2)
    assert not os.path.exists("l.db")
    assert "Missing option '--ledger'. See: veilmark ledger list --help." in run("list", code=2)


def test_errors_give_nothing_away(run, here, tmp_path):
    edit(here, "UPDATE veilmark_wrapped_keys SET wrapped = secret FROM veilmark_entries WHERE number = entry")
    error = run("decoys", the_id(here), "--ledger", "l.db", "--key", "key", code=2)
    assert "data key of entry 2 cannot be decrypted" in error
    key = (tmp_path / "key").read_text().strip()
    assert not any(hidden in error for hidden in ("V000123", "130**", key))


# --- opening -----------------------------------------------------------------------------------------------


def test_what_was_cut_short_is_settled_by_looking_with_the_key(run, here):
    for kind, verb in enumerate((["list"], ["show", "r0000000{}"], ["verify"])):
        name = f"r0000000{kind}"
        target = os.path.abspath(f"cut{kind}")
        os.makedirs(f".veilmark-{name}/copies")
        here.append("started", name, {"folder": target, "host": "elsewhere"}, key=Key.open("key"))
        words = (*(word.format(kind) for word in verb), "--ledger", "l.db")
        run(*words)
        assert here.release(name).status == "unfinished"
        run(*words, "--key", "key")
        assert here.release(name).status == "aborted"
        assert not os.path.exists(f".veilmark-{name}")


def test_a_broken_ledger_is_not_added_to_by_verifying(run, here):
    forge(here, "started", "r00000000", {"folder": os.path.abspath("cut"), "host": "elsewhere"})
    os.mkdir(".veilmark-r00000000")
    edit(here, "UPDATE veilmark_entries SET time = '' WHERE number = 2")
    run("verify", "--ledger", "l.db", code=1)
    assert len(here.entries()) == 4


def test_opening_to_publish_makes_ledger_and_key_once(run):
    ledger, key = verbs.open_to_publish("l.db", "key")
    publish(ledger, key, "copies")
    again, same = verbs.open_to_publish("l.db", "key")
    assert same == key
    assert len(again.releases()) == 1


def test_planning_to_publish_makes_nothing(run, tmp_path, monkeypatch):
    ledger, key = verbs.plan_to_publish("l.db", "key")
    assert (ledger, list(tmp_path.iterdir())) == (None, [])
    made, same = verbs.open_to_publish("l.db", "key", key)
    assert (same, Key.open("key"), made.entries()) == (key, key, [])
    with pytest.raises(OptionError, match="Another process created the key file 'key' in the meantime"):
        verbs.open_to_publish("l.db", "key", Key.new())
    (tmp_path / "no").mkdir()
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(tmp_path / "no") and real(path, mode))
    for places in (("no/l.db", "new.key"), ("new.db", "no/key")):
        with pytest.raises(OutputError, match=r"cannot be created: .*no' is not writable"):
            verbs.plan_to_publish(*places)
    with pytest.raises(OptionError, match="there is no folder"):
        verbs.plan_to_publish("new.db", "nowhere/key")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["key", "l.db", "no"]


def test_a_mistyped_key_is_not_made_for_a_ledger_that_has_one(run, here):
    with pytest.raises(OptionError, match="There is no key file 'kye'"):
        verbs.open_to_publish("l.db", "kye")
    assert not os.path.exists("kye")
    Key.open_or_make("wrong")
    with pytest.raises(OptionError, match="another key"):
        verbs.open_to_publish("l.db", "wrong")


def test_a_bad_key_makes_no_ledger(run, tmp_path):
    (tmp_path / "key").write_text("x")
    with pytest.raises(OptionError, match=r"Other users can read|not a key file"):
        verbs.open_to_publish("l.db", "key")
    assert [p.name for p in tmp_path.iterdir()] == ["key"]
